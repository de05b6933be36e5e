//! `holdfast hold` and `holdfast unhold`.

use anyhow::Result;
use holdfast_agent::apply::set_operator_hold;
use holdfast_agent::settings::Settings;
use serde_json::json;

use crate::caller::caller;
use crate::output::Output;

/// Sets the operator's hold, or ends it where there is no note.
pub async fn set(settings: &Settings, module: &str, note: Option<&str>, output: &Output) -> Result<u8> {
    set_operator_hold(settings, module, note, &caller()).await?;
    let text = match note {
        Some(note) => format!("{module} is held: {note}; apply leaves it as it is until holdfast unhold {module}"),
        None => format!("the operator's hold on {module} has ended\nHint: holdfast plan {module}"),
    };
    let value = json!({
        "schema": holdfast_core::status::SCHEMA, "module": module, "held": note.is_some(), "note": note,
    });
    output.answer(text, &value)?;
    Ok(0)
}
