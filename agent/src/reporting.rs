//! The report of one run, as it grows: started and authorised before the work, everything else after it, on disk before
//! success is told.

use holdfast_core::record::{self, Answer, Caller, Run};
use holdfast_core::report::Report;

use crate::error::{AgentError, chain};
use crate::journal::{Journal, JournalError};
use crate::store::CutOff;

/// The polkit action of every verb that changes something at this stage; only root gets this far without polkit.
const POLKIT_ACTION: &str = "io.holdfast.agent1.apply";

/// A report that was begun.
pub struct Reporting {
    journal: Journal,
    id: String,
    action: &'static str,
    entries: u32,
}

impl Reporting {
    /// Opens the journal and writes the first entries. Nothing may be done before: no journal, no work.
    ///
    /// # Errors
    /// [`AgentError::ReportNotDurable`].
    pub async fn start(action: &'static str, caller: &Caller, modules: &[String]) -> Result<Self, AgentError> {
        let journal = Journal::open().map_err(not_durable)?;
        let id = new_id()?;
        let run = Run { report: &id, action };
        let records = [
            record::started(run, caller, modules),
            record::authorised(run, 1, caller.uid, POLKIT_ACTION, Answer::Allowed),
        ];
        journal.send(&records).await.map_err(not_durable)?;
        let entries = u32::try_from(records.len()).unwrap_or(u32::MAX);
        Ok(Self { journal, id, action, entries })
    }

    /// Writes that polkit denied something. It is one entry and no report: nothing was begun, and nobody who may do
    /// nothing shall have the last word on what was done.
    ///
    /// # Errors
    /// [`AgentError::ReportNotDurable`].
    pub async fn denied(action: &'static str, uid: u32, polkit_action: &str) -> Result<(), AgentError> {
        let journal = Journal::open().map_err(not_durable)?;
        let run = Run { report: &new_id()?, action };
        let denied = record::authorised(run, 0, uid, polkit_action, Answer::Denied);
        journal.send(&[denied]).await.map_err(not_durable)
    }

    /// Says of an earlier run that it was cut off: it could not say so itself.
    ///
    /// # Errors
    /// [`AgentError::ReportNotDurable`].
    pub async fn tell_cut_off(&self, earlier: &CutOff) -> Result<(), AgentError> {
        let run = Run { report: &earlier.report, action: &earlier.action };
        let because = format!("its process ended before its report; report {} has what is so now", self.id);
        self.journal.send(&[record::interrupted(run, self.entries, &because)]).await.map_err(not_durable)
    }

    /// The report's id: 32 hex digits.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Waits until what was written is on disk: before the first act, so that a journal that hangs stops it.
    ///
    /// # Errors
    /// [`AgentError::ReportNotDurable`]: nothing may be done.
    pub async fn durable(&self) -> Result<(), AgentError> {
        self.journal.synchronize().await.map_err(not_durable)
    }

    /// Writes the rest and waits until it is on disk.
    ///
    /// # Errors
    /// [`AgentError::ReportNotDurable`]: what was done is done, but nobody may call it a success.
    pub async fn finish(self, report: &Report) -> Result<(), AgentError> {
        self.journal.send(&record::records(report, self.entries)).await.map_err(not_durable)?;
        self.durable().await
    }

    /// Says that the run could not go on, and gives back the error that ended it.
    pub async fn cut_off(self, error: AgentError) -> AgentError {
        let run = Run { report: &self.id, action: self.action };
        let interrupted = record::interrupted(run, self.entries, &chain(&error));
        let sent = self.journal.send(&[interrupted]).await;
        match sent.map_err(not_durable).and(self.durable().await) {
            Ok(()) => error,
            Err(lost) => {
                log::error!("the end of report {} is not in the journal: {}", self.id, chain(&lost));
                error
            }
        }
    }
}

/// A new report id.
fn new_id() -> Result<String, AgentError> {
    let uuid = std::fs::read_to_string("/proc/sys/kernel/random/uuid")
        .map_err(|error| AgentError::ReportNotDurable(error.into()))?;
    Ok(uuid.trim().replace('-', ""))
}

fn not_durable(error: JournalError) -> AgentError {
    AgentError::ReportNotDurable(error.into())
}
