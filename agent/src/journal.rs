//! Reports to the journal and back. It is the only store of reports, so what cannot be written here is not done.

mod read;
mod sync;

use std::sync::Arc;
use std::time::Duration;

use holdfast_core::record::{IDENTIFIER, Priority, Record};
use log::kv::{Key, Source, Value, VisitSource};
use log::{Level, LevelFilter};
use systemd_journal_logger::JournalLog;
use thiserror::Error;
use tokio::sync::oneshot;

/// How long journald may take to accept the entries of one report, or to answer.
const DEADLINE: Duration = Duration::from_secs(10);

/// The way to journald.
#[derive(Clone)]
pub struct Journal {
    log: Arc<JournalLog>,
}

/// What went wrong with the journal.
#[derive(Debug, Error)]
pub enum JournalError {
    /// There is no journald.
    #[error("journald does not listen on /run/systemd/journal/socket")]
    Open(#[source] std::io::Error),
    /// journald did not accept an entry.
    #[error("cannot send to journald")]
    Send(#[source] std::io::Error),
    /// The entries may not be on disk.
    #[error("journald did not synchronise")]
    Synchronize(#[source] std::io::Error),
    /// journald answered with something else.
    #[error("journald refused to synchronise: {0}")]
    Refused(String),
    /// journald does not answer.
    #[error("journald did not answer within {} s", DEADLINE.as_secs())]
    Deadline,
    /// The journal cannot be read.
    #[error("cannot run journalctl")]
    Read(#[source] std::io::Error),
    /// journalctl failed.
    #[error("journalctl ended with {status}: {message}")]
    Journalctl {
        /// How it ended.
        status: std::process::ExitStatus,
        /// The last line that it said.
        message: String,
    },
    /// journalctl takes too long.
    #[error("journalctl did not end within {} s", read::DEADLINE.as_secs())]
    ReadDeadline,
    /// journalctl printed something that is no entry.
    #[error("cannot read what journalctl printed")]
    Parse(#[source] serde_json::Error),
    /// The id of a report is not what it must be.
    #[error("\"{0}\" is no report id: it has 32 hex digits")]
    ReportId(String),
    /// The agent's own diagnostics are installed already.
    #[error("diagnostics go to the journal already")]
    Diagnostics(#[source] log::SetLoggerError),
}

impl Journal {
    /// Opens the way to journald.
    ///
    /// # Errors
    /// [`JournalError::Open`] when nobody listens: no journal, no work.
    pub fn open() -> Result<Self, JournalError> {
        // Sends an empty datagram, which journald passes over: it fails when nobody listens.
        let log = JournalLog::empty().map_err(JournalError::Open)?;
        Ok(Self { log: Arc::new(log.with_syslog_identifier(IDENTIFIER.to_owned())) })
    }

    /// Sends entries in their order. They are on disk only after [`Journal::synchronize`].
    ///
    /// # Errors
    /// [`JournalError::Send`] and [`JournalError::Deadline`]; the entries before the failed one are sent.
    pub async fn send(&self, records: &[Record]) -> Result<(), JournalError> {
        let (log, records) = (Arc::clone(&self.log), records.to_vec());
        // A journald that is stopped blocks its senders. A thread of our own may then be left behind; one of tokio's
        // would keep the whole process from ending.
        let (done, ended) = oneshot::channel();
        let send = move || {
            let sent = records.iter().try_for_each(|record| send(&log, record));
            // Nobody waits any more after the deadline.
            drop(done.send(sent));
        };
        std::thread::Builder::new().name("journal".to_owned()).spawn(send).map_err(JournalError::Send)?;
        match tokio::time::timeout(DEADLINE, ended).await {
            Ok(Ok(sent)) => sent.map_err(JournalError::Send),
            Ok(Err(_)) => Err(JournalError::Send(std::io::ErrorKind::BrokenPipe.into())),
            Err(_) => Err(JournalError::Deadline),
        }
    }

    /// Waits until everything that was sent before is on disk. Needs root.
    ///
    /// # Errors
    /// [`JournalError::Synchronize`], [`JournalError::Refused`], [`JournalError::Deadline`].
    pub async fn synchronize(&self) -> Result<(), JournalError> {
        match tokio::time::timeout(DEADLINE, sync::synchronize(sync::SOCKET)).await {
            Ok(result) => result,
            Err(_) => Err(JournalError::Deadline),
        }
    }
}

/// Sends what the `log` macros say to the journal: the agent's own diagnostics, which belong to no report.
///
/// # Errors
/// [`JournalError::Open`] when nobody listens, [`JournalError::Diagnostics`] when it was called before.
pub fn init_diagnostics() -> Result<(), JournalError> {
    let log = JournalLog::empty().map_err(JournalError::Open)?;
    log.with_syslog_identifier(IDENTIFIER.to_owned())
        .add_extra_field("VERSION", env!("CARGO_PKG_VERSION"))
        .install()
        .map_err(JournalError::Diagnostics)?;
    log::set_max_level(LevelFilter::Info);
    Ok(())
}

/// Sends one entry through the logger's own call, with a record made by hand: its macros know neither repeated fields
/// nor fields that are there only sometimes, and `Log::log` would swallow the error.
fn send(log: &JournalLog, record: &Record) -> std::io::Result<()> {
    let fields = OwnFields(record);
    let mut entry = log::Record::builder();
    entry.level(level(record.priority)).target(IDENTIFIER).key_values(&fields);
    log.journal_send(&entry.args(format_args!("{}", record.text)).build())
}

/// The level that systemd-journal-logger writes as this PRIORITY=.
fn level(priority: Priority) -> Level {
    match priority {
        Priority::Error => Level::Error,
        Priority::Warning => Level::Warn,
        Priority::Notice => Level::Info,
        Priority::Info => Level::Debug,
    }
}

/// The fields of a record as `log` wants them.
struct OwnFields<'a>(&'a Record);

impl Source for OwnFields<'_> {
    fn visit<'kvs>(&'kvs self, visitor: &mut dyn VisitSource<'kvs>) -> Result<(), log::kv::Error> {
        let Self(record) = self;
        visitor.visit_pair(Key::from_str("MESSAGE_ID"), Value::from(record.message.id()))?;
        for (field, value) in &record.fields {
            visitor.visit_pair(Key::from_str(field), Value::from(value.as_str()))?;
        }
        Ok(())
    }
}
