//! What stops the whole road, with its word on the bus and on the socket.

use thiserror::Error;

/// An error that ends a verb before it could answer.
#[derive(Debug, Error)]
pub enum AgentError {
    /// A module that was named is not assigned.
    #[error("no module \"{name}\" is assigned to this host; {}", choice(.assigned))]
    NoSuchModule {
        /// What was asked for.
        name: String,
        /// What could have been meant.
        assigned: Vec<String>,
    },
    /// No report of this id is in the journal.
    #[error("no report {0} is in the journal")]
    NoSuchReport(String),
    /// Another apply runs.
    #[error("another apply runs (pid {pid}, since {since})")]
    Busy {
        /// The process that holds the lock.
        pid: u32,
        /// When it began, as text.
        since: String,
    },
    /// A job of the agent runs.
    #[error("job {id} ({kind}) runs")]
    JobInProgress {
        /// Its number.
        id: u32,
        /// apply
        kind: &'static str,
    },
    /// The settings cannot be used.
    #[error("cannot use the settings")]
    Settings(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The ledger cannot be read or written.
    #[error("cannot use the ledger")]
    Store(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The host could not be looked at.
    #[error("cannot look at the host")]
    Observe(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The journal cannot be written, so nothing was done.
    #[error("cannot write to the journal, so nothing was done")]
    ReportNotDurable(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The journal could not be read.
    #[error("cannot read the journal")]
    Journal(#[source] Box<dyn std::error::Error + Send + Sync>),
}

impl AgentError {
    /// The word on the bus and on the socket.
    #[must_use]
    pub fn token(&self) -> &'static str {
        match self {
            Self::NoSuchModule { name: _, assigned: _ } => "NoSuchModule",
            Self::NoSuchReport(_) => "NoSuchReport",
            Self::Busy { pid: _, since: _ } | Self::JobInProgress { id: _, kind: _ } => "JobInProgress",
            Self::Settings(_) => "InvalidSettings",
            Self::Store(_) => "InvalidLedger",
            Self::Observe(_) => "EngineUnavailable",
            Self::ReportNotDurable(_) => "ReportNotDurable",
            Self::Journal(_) => "JournalUnavailable",
        }
    }
}

fn choice(assigned: &[String]) -> String {
    if assigned.is_empty() { "none is".to_owned() } else { format!("assigned are {}", assigned.join(", ")) }
}

/// An error with all that it goes back to, in one line.
#[must_use]
pub fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        text.push_str(": ");
        text.push_str(&error.to_string());
        source = error.source();
    }
    text
}
