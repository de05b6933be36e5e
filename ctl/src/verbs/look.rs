//! The verbs that look and do nothing: status, holds, plan, is-applied.

use std::fmt::Write as _;

use anyhow::Result;
use holdfast_core::hold::Reason;
use holdfast_core::status::view::View;
use holdfast_core::status::{ModuleStatus, State};
use serde_json::json;

use crate::door::Door;
use crate::output::Output;
use crate::refusal::Refusal;

/// The exit status for what is held, pending, unreadable or stopped.
const NOT_SO: u8 = 6;

/// `holdfast status`
pub async fn status(door: &Door, modules: &[String], output: &Output) -> Result<u8> {
    let status = look_if_allowed(door, modules, output).await?.status();
    output.dressed(|dress| output.answer(status.text(dress), &status.to_json()))?;
    Ok(status.exit_status())
}

/// `holdfast holds`
pub async fn holds(door: &Door, module: Option<String>, reason: Option<Reason>, output: &Output) -> Result<u8> {
    let modules: Vec<String> = module.into_iter().collect();
    let holds = look_if_allowed(door, &modules, output).await?.holds();
    let holds = match reason {
        Some(reason) => holds.only(reason),
        None => holds,
    };
    output.dressed(|dress| output.answer(holds.text(dress), &holds.to_json()))?;
    Ok(0)
}

/// `holdfast plan`, `holdfast apply --dry-run`
pub async fn plan(door: &Door, modules: &[String], output: &Output) -> Result<u8> {
    let view = door.look(modules).await?;
    let changes = view.changes();
    output.dressed(|dress| output.answer(changes.text(dress), &changes.to_json()))?;
    Ok(view.status().exit_status())
}

/// `holdfast is-applied`: the gate. It opens only for what was looked at now and is so.
pub async fn is_applied(door: &Door, module: Option<String>, output: &Output) -> Result<u8> {
    let modules: Vec<String> = module.into_iter().collect();
    let status = door.look(&modules).await?.status();
    // A module that asks for nothing is most likely one that is still being copied here.
    let empty = status.modules.iter().any(|module| module.counts.total == 0) || status.modules.is_empty();
    let exit = if empty && status.exit_status() == 0 { NOT_SO } else { status.exit_status() };
    let mut text = String::new();
    for module in &status.modules {
        writeln!(text, "{}", sentence(module))?;
    }
    if status.modules.is_empty() {
        writeln!(text, "no module is assigned")?;
    }
    let applied = exit == 0;
    let modules: Vec<_> = status
        .modules
        .iter()
        .map(|module| {
            json!({
                "name": module.name, "state": module.state.token(), "wanted": module.wanted, "running": module.running,
                "cause": module.cause,
            })
        })
        .collect();
    let value = json!({
        "schema": holdfast_core::status::SCHEMA, "observed_usec": status.observed_usec, "applied": applied,
        "modules": modules,
    });
    output.answer(text, &value)?;
    Ok(exit)
}

fn sentence(module: &ModuleStatus) -> String {
    let ModuleStatus { name, state, counts, wanted, running, cause, .. } = module;
    match (state, cause) {
        (State::Applied, _) if counts.total == 0 => format!("{name} asks for nothing"),
        (State::Applied, _) => {
            format!("{name} is applied: {} resource(s), {running} of {wanted} containers run", counts.applied)
        }
        (state, Some(cause)) => format!("{name} is not applied: {state}, {cause}"),
        (state, None) => format!("{name} is not applied: {state}"),
    }
}

/// A look now; for whoever may not look, the last one, with its time.
async fn look_if_allowed(door: &Door, modules: &[String], output: &Output) -> Result<View, Refusal> {
    match door.look(modules).await {
        Err(refusal) if refusal.is_denied() => {
            output.message("not authorised to look at the host now: this is the last look");
            let view = door.last_look().await?;
            match modules.iter().find(|module| !view.modules.contains_key(*module)) {
                Some(module) => {
                    Err(Refusal::new("NoSuchModule", format!("no module \"{module}\" is assigned to this host")))
                }
                None => Ok(view.only(modules)),
            }
        }
        looked => looked,
    }
}
