//! Reports of the past: found in the journal and rebuilt from it.

use holdfast_core::record::{Fields, Summary, rebuild};
use holdfast_core::report::Report;

use crate::error::AgentError;
use crate::journal::{Journal, JournalError};

/// How many reports are searched for an id that was cut short, and listed.
pub const MANY: usize = 1000;

/// A report as far as the journal has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// It; without its end it counts as interrupted.
    pub report: Report,
    /// What its reader must know, if it is not all there.
    pub warning: Option<String>,
}

/// A report by its id, by the first characters of it, or, for "", the last one.
///
/// # Errors
/// [`AgentError::NoSuchReport`], also where several begin so; [`AgentError::Journal`].
pub async fn find(id: &str) -> Result<Found, AgentError> {
    let id = whole_id(id).await?;
    let rebuilt = rebuild(&entries(&id).await?);
    let warning = rebuilt.warning();
    let report = rebuilt.report.ok_or(AgentError::NoSuchReport(id))?;
    Ok(Found { report, warning })
}

/// The entries of a report, by its whole id.
///
/// # Errors
/// [`AgentError::NoSuchReport`], [`AgentError::Journal`].
pub async fn entries(id: &str) -> Result<Vec<Fields>, AgentError> {
    match Journal::read(id).await {
        Ok(entries) if entries.is_empty() => Err(AgentError::NoSuchReport(id.to_owned())),
        Ok(entries) => Ok(entries),
        Err(JournalError::ReportId(id)) => Err(AgentError::NoSuchReport(id)),
        Err(error) => Err(journal(error)),
    }
}

/// The newest reports, the newest first.
///
/// # Errors
/// [`AgentError::Journal`] when the journal cannot be read.
pub async fn list(since_usec: Option<u64>, max: usize) -> Result<Vec<Summary>, AgentError> {
    Journal::list(since_usec, max).await.map_err(journal)
}

/// A report's whole id, from the first characters of it, or, for "", the last one's.
///
/// # Errors
/// [`AgentError::NoSuchReport`], [`AgentError::Journal`].
pub async fn whole_id(start: &str) -> Result<String, AgentError> {
    if start.len() == 32 {
        return Ok(start.to_owned());
    }
    let all = list(None, if start.is_empty() { 1 } else { MANY }).await?;
    let mut matches = all.into_iter().filter(|summary| summary.report.starts_with(start)).map(|summary| summary.report);
    match (matches.next(), matches.next()) {
        (Some(one), None) => Ok(one),
        (None, _) if start.is_empty() => Err(AgentError::NoSuchReport("at all".to_owned())),
        (None, _) => Err(AgentError::NoSuchReport(start.to_owned())),
        (Some(one), Some(other)) => Err(AgentError::NoSuchReport(format!("{start} alone ({one}, {other} begin so)"))),
    }
}

fn journal(error: JournalError) -> AgentError {
    AgentError::Journal(Box::new(error))
}
