//! Reports of the past, read from the journal.

use holdfast_agent::error::AgentError;
use holdfast_core::report::{Report, ReportResult};
use serde_json::{Value, json};

use crate::output::Output;

pub async fn last_apply() -> Result<Option<Report>, AgentError> {
    Ok(None)
}

pub async fn show(id: Option<String>, _output: &Output) -> anyhow::Result<u8> {
    Err(AgentError::NoSuchReport(id.unwrap_or_default()).into())
}

pub async fn list(_output: &Output) -> anyhow::Result<u8> {
    Ok(0)
}

pub fn text(report: &Report) -> String {
    report.report.clone()
}

pub fn json(report: &Report) -> Value {
    json!(report)
}

pub fn exit_status(report: &Report) -> u8 {
    match report.result {
        ReportResult::Done => 0,
        ReportResult::Held => 6,
        ReportResult::Partial => 3,
        ReportResult::Failed | ReportResult::Interrupted => 1,
    }
}
