//! `holdfast jobs` and `holdfast cancel`.

use anyhow::Result;
use holdfast_core::status::SCHEMA;
use serde_json::json;

use crate::door::{Door, JobLine};
use crate::output::Output;

/// Lists jobs that run, wait, or have just ended.
pub async fn jobs(door: &Door, output: &Output) -> Result<u8> {
    let jobs = door.jobs().await?;
    let lines: Vec<String> = jobs.iter().map(|job| line(job, output)).collect();
    let text = if lines.is_empty() { "no job runs".to_owned() } else { lines.join("\n") };
    output.answer(text, &json!({ "schema": SCHEMA, "jobs": jobs }))?;
    Ok(0)
}

/// Ends a job early: after the step that runs.
pub async fn cancel(door: &Door, id: u32, output: &Output) -> Result<u8> {
    door.cancel(id).await?;
    let value = json!({ "schema": SCHEMA, "job": id, "canceled": true });
    output.answer(format!("job {id} is canceled: a step that runs is finished first"), &value)?;
    Ok(0)
}

fn line(job: &JobLine, output: &Output) -> String {
    let JobLine { id, kind, modules, state, percent, report: _, started_usec, uid, step } = job;
    let modules = if modules.is_empty() { "all modules".to_owned() } else { modules.join(", ") };
    let since = output.time(*started_usec);
    format!("{id:>3}  {kind} of {modules}  {state}  {percent:>3} %  since {since} by uid {uid}  {step}")
}
