//! `holdfast report`: a report as the journal has it.

use anyhow::Result;
use holdfast_core::record::Summary;
use serde_json::{Value, json};

use crate::door::{Door, Found};
use crate::output::Output;

/// How many reports are listed.
const MANY: u32 = 1000;

/// Shows one report.
pub async fn show(door: &Door, id: Option<&str>, output: &Output) -> Result<u8> {
    let Found { report, warning } = door.report(id.unwrap_or_default()).await?;
    if let Some(warning) = &warning {
        output.message(warning);
    }
    let mut value = report.to_json()?;
    if let Value::Object(fields) = &mut value {
        fields.insert("complete".to_owned(), warning.is_none().into());
    }
    output.answer(&report, &value)?;
    Ok(0)
}

/// Lists what the journal has, the newest first.
pub async fn list(door: &Door, output: &Output) -> Result<u8> {
    let list = door.reports(MANY).await?;
    let lines: Vec<String> = list.iter().map(|summary| line(summary, output)).collect();
    let text = if lines.is_empty() { "no report is in the journal".to_owned() } else { lines.join("\n") };
    let reports: Vec<Value> = list.iter().map(entry).collect();
    output.answer(text, &json!({ "schema": holdfast_core::status::SCHEMA, "reports": reports }))?;
    Ok(0)
}

fn line(summary: &Summary, output: &Output) -> String {
    let Summary { report, action, result, started_usec, finished_usec: _, counts: _, sentence } = summary;
    let short: String = report.chars().take(8).collect();
    let result = result.map_or("unfinished", |result| result.token());
    format!("{short}  {:>19}  {action:<7}  {result:<11}  {sentence}", output.time(*started_usec))
}

fn entry(summary: &Summary) -> Value {
    let Summary { report, action, result, started_usec, finished_usec, counts, sentence } = summary;
    json!({
        "report": report, "action": action, "result": result.map(|result| result.token()),
        "started_usec": started_usec, "finished_usec": finished_usec, "sentence": sentence,
        "total": counts.total, "applied": counts.applied, "changed": counts.changed, "held": counts.held,
        "failed": counts.failed, "not_attempted": counts.not_attempted, "removed": counts.removed,
    })
}
