//! `holdfast hold` and `holdfast unhold`.

use anyhow::Result;
use holdfast_core::report::escape;
use holdfast_core::status::SCHEMA;
use serde_json::json;

use crate::door::Door;
use crate::output::Output;

/// Sets the operator's hold, or ends it where there is no note.
pub async fn set(door: &Door, module: &str, note: Option<&str>, output: &Output) -> Result<u8> {
    door.set_operator_hold(module, note).await?;
    let text = match note {
        Some(note) => {
            let note = escape(note);
            format!("{module} is held: {note}; apply leaves it as it is until holdfast unhold {module}")
        }
        None => format!("the operator's hold on {module} has ended\nHint: holdfast plan {module}"),
    };
    let value = json!({ "schema": SCHEMA, "module": module, "held": note.is_some(), "note": note });
    output.answer(text, &value)?;
    Ok(0)
}
