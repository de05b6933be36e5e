//! Reports of the past: found in the journal, rebuilt from it, printed as the apply printed them.

use anyhow::Result;
use holdfast_agent::error::AgentError;
use holdfast_agent::journal::{Journal, JournalError};
use holdfast_core::record::{Summary, rebuild};
use holdfast_core::report::Report;

/// How many reports are searched for an id that was cut short, and listed.
pub const MANY: usize = 1000;

/// How many reports are searched for the last apply: holds and other acts of the operator may have come after it.
const RECENT: usize = 100;

/// A report as far as the journal has it.
pub struct Found {
    /// It; without its end it counts as interrupted.
    pub report: Report,
    /// What its reader must know, if it is not all there.
    pub warning: Option<String>,
}

/// The last finished apply; none when there was none.
///
/// # Errors
/// [`JournalError`] when the journal cannot be read.
pub async fn last_apply() -> Result<Option<Report>, JournalError> {
    let recent = Journal::list(None, RECENT).await?;
    let last = recent.into_iter().find(|summary| summary.action == "apply" && summary.finished_usec.is_some());
    match last {
        Some(last) => Ok(rebuild(&Journal::read(&last.report).await?).report),
        None => Ok(None),
    }
}

/// A report by its id, by the first characters of it, or the last one.
///
/// # Errors
/// [`AgentError::NoSuchReport`], [`AgentError::Journal`], or that several reports begin so.
pub async fn find(id: Option<&str>) -> Result<Found> {
    let id = match id {
        Some(id) if id.len() == 32 => id.to_owned(),
        Some(start) => whole_id(start).await?,
        None => newest().await?,
    };
    let entries = Journal::read(&id).await.map_err(journal)?;
    let rebuilt = rebuild(&entries);
    let warning = rebuilt.warning();
    let report = rebuilt.report.ok_or(AgentError::NoSuchReport(id))?;
    Ok(Found { report, warning })
}

/// The newest reports.
///
/// # Errors
/// [`AgentError::Journal`] when the journal cannot be read.
pub async fn list() -> Result<Vec<Summary>, AgentError> {
    Journal::list(None, MANY).await.map_err(journal)
}

async fn newest() -> Result<String> {
    let last = Journal::last_report_id().await.map_err(journal)?;
    Ok(last.ok_or_else(|| AgentError::NoSuchReport("at all".to_owned()))?)
}

async fn whole_id(start: &str) -> Result<String> {
    let all = list().await?;
    let mut matches = all.into_iter().filter(|summary| summary.report.starts_with(start)).map(|summary| summary.report);
    match (matches.next(), matches.next()) {
        (Some(one), None) => Ok(one),
        (None, _) => Err(AgentError::NoSuchReport(start.to_owned()).into()),
        (Some(one), Some(other)) => anyhow::bail!("several reports begin with {start}: {one}, {other}"),
    }
}

fn journal(error: JournalError) -> AgentError {
    AgentError::Journal(Box::new(error))
}
