//! The way to the agent: the bus, and, for root where there is none, the socket. Both say the same.

mod bus;
mod password;
#[rustfmt::skip]
mod proxies;
mod socket;

use holdfast_core::record::Summary;
use holdfast_core::report::Report;
use holdfast_core::status::view::View;
use rustix::process::geteuid;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use crate::refusal::Refusal;
pub use password::Ask;

/// An open door.
pub enum Door {
    /// The system bus.
    Bus(bus::Bus),
    /// The agent's socket.
    Socket(socket::Socket),
}

/// A report as far as the journal has it.
pub struct Found {
    /// It; without its end it counts as interrupted.
    pub report: Report,
    /// What its reader must know, if it is not all there.
    pub warning: Option<String>,
}

/// A job that runs, waits, or has just ended. In JSON, a row of `jobs --json`; the socket's rows are read as such.
#[derive(Serialize, Deserialize)]
pub struct JobLine {
    /// Its number.
    pub id: u32,
    /// apply, check
    pub kind: String,
    /// Its modules; none means all.
    pub modules: Vec<String>,
    /// queued, running, finished
    pub state: String,
    /// 100 only when it has ended.
    pub percent: u32,
    /// The report's id, once it is begun.
    #[serde(alias = "report_id", deserialize_with = "or_empty")]
    pub report: String,
    /// When it was asked for: microseconds since 1970.
    pub started_usec: u64,
    /// Who asked for it.
    pub uid: u32,
    /// What is done now.
    pub step: String,
}

/// What comes from a job.
pub enum News {
    /// It is so far: per cent, and what is done now.
    Progress(u32, String),
    /// It ended with a report.
    Reported(Box<Report>),
    /// It ended without one.
    Ended(Refusal),
}

impl Door {
    /// Opens the way to the agent, which need not run yet.
    ///
    /// # Errors
    /// [`Refusal`] with the token `NoAgent`.
    pub async fn open(ask: Ask) -> Result<Self, Refusal> {
        match bus::Bus::open(ask).await {
            Err(no_bus) if geteuid().is_root() => socket::Socket::open().await.map(Self::Socket).map_err(|_| no_bus),
            bus => bus.map(Self::Bus),
        }
    }

    /// Looks at the host now.
    ///
    /// # Errors
    /// [`Refusal`]
    pub async fn look(&self, modules: &[String]) -> Result<View, Refusal> {
        match self {
            Self::Bus(bus) => bus.look(modules).await,
            Self::Socket(socket) => socket.look(modules).await,
        }
    }

    /// The last look that anybody made.
    ///
    /// # Errors
    /// [`Refusal`]
    pub async fn last_look(&self) -> Result<View, Refusal> {
        match self {
            Self::Bus(bus) => bus.last_look().await,
            Self::Socket(socket) => socket.last_look().await,
        }
    }

    /// Starts an apply.
    ///
    /// # Errors
    /// [`Refusal`]
    pub async fn apply(&self, modules: &[String], wait: Wait) -> Result<Job, Refusal> {
        match self {
            Self::Bus(bus) => bus.apply(modules, wait).await.map(Job::Bus),
            Self::Socket(socket) => socket.apply(modules, wait).await.map(Job::Socket),
        }
    }

    /// Sets the operator's hold, or ends it where there is no note.
    ///
    /// # Errors
    /// [`Refusal`]
    pub async fn set_operator_hold(&self, module: &str, note: Option<&str>) -> Result<(), Refusal> {
        match self {
            Self::Bus(bus) => bus.set_operator_hold(module, note).await,
            Self::Socket(socket) => socket.set_operator_hold(module, note).await,
        }
    }

    /// A report by its id, the first characters of it, or "" for the last one.
    ///
    /// # Errors
    /// [`Refusal`]
    pub async fn report(&self, id: &str) -> Result<Found, Refusal> {
        match self {
            Self::Bus(bus) => bus.report(id).await,
            Self::Socket(socket) => socket.report(id).await,
        }
    }

    /// The newest reports.
    ///
    /// # Errors
    /// [`Refusal`]
    pub async fn reports(&self, max: u32) -> Result<Vec<Summary>, Refusal> {
        match self {
            Self::Bus(bus) => bus.reports(max).await,
            Self::Socket(socket) => socket.reports(max).await,
        }
    }

    /// Jobs that run, wait, or have just ended.
    ///
    /// # Errors
    /// [`Refusal`]
    pub async fn jobs(&self) -> Result<Vec<JobLine>, Refusal> {
        match self {
            Self::Bus(bus) => bus.jobs().await,
            Self::Socket(socket) => socket.jobs().await,
        }
    }

    /// Ends a job early.
    ///
    /// # Errors
    /// [`Refusal`]
    pub async fn cancel(&self, id: u32) -> Result<(), Refusal> {
        match self {
            Self::Bus(bus) => bus.cancel(id).await,
            Self::Socket(socket) => socket.cancel(id).await,
        }
    }
}

/// Whether to wait while another job runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wait {
    /// Be refused at once.
    No,
    /// Wait for its end.
    Yes,
}

/// A job that was started here.
pub enum Job {
    /// Over the bus.
    Bus(bus::Job),
    /// Over the socket.
    Socket(socket::Job),
}

impl Job {
    /// Its number.
    pub fn id(&self) -> u32 {
        match self {
            Self::Bus(job) => job.id,
            Self::Socket(job) => job.id,
        }
    }

    /// The next news; the last is [`News::Reported`] or [`News::Ended`].
    pub async fn next(&mut self) -> News {
        match self {
            Self::Bus(job) => job.next().await,
            Self::Socket(job) => job.next().await,
        }
    }
}

fn or_empty<'de, D: Deserializer<'de>>(value: D) -> Result<String, D::Error> {
    Option::deserialize(value).map(Option::unwrap_or_default)
}

fn lost() -> Refusal {
    Refusal::new(
        "Lost",
        "the agent ended before the job; what was done is in the report, and the next apply does the rest",
    )
}

/// A row that another version of the agent may have written otherwise.
fn read<T: DeserializeOwned>(value: Value) -> Result<T, Refusal> {
    let other = |error: serde_json::Error| {
        Refusal::new("OtherVersion", format!("the agent's answer is not understood, it is of another version: {error}"))
    };
    serde_json::from_value(value).map_err(other)
}
