//! The verbs that look and do nothing: status, holds, plan, is-applied.

use std::fmt::Write as _;

use anyhow::Result;
use holdfast_agent::apply::{Look, look};
use holdfast_agent::error::chain;
use holdfast_agent::settings::Settings;
use holdfast_core::hold::Reason;
use holdfast_core::status::changes::Changes;
use holdfast_core::status::holds::Holds;
use holdfast_core::status::{LastApply, ModuleStatus, Sources, State, Status};
use serde_json::json;

use crate::history;
use crate::output::Output;

/// The exit status for what is held, pending, unreadable or stopped.
const NOT_SO: u8 = 6;

/// `holdfast status`
pub async fn status(settings: &Settings, modules: &[String], output: &Output) -> Result<u8> {
    let look = look(settings, modules).await?;
    let status = Status::of(&sources(&look), last_apply(output).await, modules);
    output.dressed(|dress| output.answer(status.text(dress), &status.to_json()))?;
    Ok(status.exit_status())
}

/// `holdfast holds`
pub async fn holds(settings: &Settings, module: Option<String>, reason: Option<Reason>, output: &Output) -> Result<u8> {
    let modules: Vec<String> = module.into_iter().collect();
    let look = look(settings, &modules).await?;
    let holds = Holds::of(&sources(&look), &modules, reason);
    output.dressed(|dress| output.answer(holds.text(dress), &holds.to_json()))?;
    Ok(0)
}

/// `holdfast plan`, `holdfast apply --dry-run`
pub async fn plan(settings: &Settings, modules: &[String], output: &Output) -> Result<u8> {
    let look = look(settings, modules).await?;
    let changes = Changes::of(&sources(&look), modules);
    output.dressed(|dress| output.answer(changes.text(dress), &changes.to_json()))?;
    Ok(Status::of(&sources(&look), last_apply(output).await, modules).exit_status())
}

/// `holdfast is-applied`: the gate. It opens only for what was looked at now and is so.
pub async fn is_applied(settings: &Settings, module: Option<String>, output: &Output) -> Result<u8> {
    let modules: Vec<String> = module.into_iter().collect();
    let look = look(settings, &modules).await?;
    let status = Status::of(&sources(&look), last_apply(output).await, &modules);
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

fn sources(look: &Look) -> Sources<'_> {
    let Look { desired, observed, ledger, plan, .. } = look;
    Sources { desired, observed, plan, ledger }
}

/// The last apply, for its time and for what failed in it. Truth comes from the look: without a journal to read, status
/// still answers, and says so.
async fn last_apply(output: &Output) -> Option<LastApply> {
    match history::last_apply().await {
        Ok(report) => report.as_ref().map(LastApply::from),
        Err(error) => {
            output.message(format_args!("the last report cannot be read: {}", chain(&error)));
            None
        }
    }
}
