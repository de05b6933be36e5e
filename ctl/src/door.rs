//! The way to the agent: the bus, and, for root where there is none, the socket. Both say the same.

mod bus;
mod password;
#[rustfmt::skip]
mod proxies;

use holdfast_core::record::Summary;
use holdfast_core::report::Report;
use holdfast_core::status::view::View;

use crate::refusal::Refusal;
pub use password::Ask;

/// An open door.
pub enum Door {
    /// The system bus.
    Bus(bus::Bus),
}

/// A report as far as the journal has it.
pub struct Found {
    /// It; without its end it counts as interrupted.
    pub report: Report,
    /// What its reader must know, if it is not all there.
    pub warning: Option<String>,
}

/// A job that runs, waits, or has just ended.
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
        bus::Bus::open(ask).await.map(Self::Bus)
    }

    /// Looks at the host now.
    ///
    /// # Errors
    /// [`Refusal`]
    pub async fn look(&self, modules: &[String]) -> Result<View, Refusal> {
        let Self::Bus(bus) = self;
        bus.look(modules).await
    }

    /// The last look that anybody made.
    ///
    /// # Errors
    /// [`Refusal`]
    pub async fn last_look(&self) -> Result<View, Refusal> {
        let Self::Bus(bus) = self;
        bus.last_look().await
    }

    /// Starts an apply.
    ///
    /// # Errors
    /// [`Refusal`]
    pub async fn apply(&self, modules: &[String], wait: Wait) -> Result<Job, Refusal> {
        let Self::Bus(bus) = self;
        bus.apply(modules, wait).await.map(Job::Bus)
    }

    /// Sets the operator's hold, or ends it where there is no note.
    ///
    /// # Errors
    /// [`Refusal`]
    pub async fn set_operator_hold(&self, module: &str, note: Option<&str>) -> Result<(), Refusal> {
        let Self::Bus(bus) = self;
        bus.set_operator_hold(module, note).await
    }

    /// A report by its id, the first characters of it, or "" for the last one.
    ///
    /// # Errors
    /// [`Refusal`]
    pub async fn report(&self, id: &str) -> Result<Found, Refusal> {
        let Self::Bus(bus) = self;
        bus.report(id).await
    }

    /// The newest reports.
    ///
    /// # Errors
    /// [`Refusal`]
    pub async fn reports(&self, max: u32) -> Result<Vec<Summary>, Refusal> {
        let Self::Bus(bus) = self;
        bus.reports(max).await
    }

    /// Jobs that run, wait, or have just ended.
    ///
    /// # Errors
    /// [`Refusal`]
    pub async fn jobs(&self) -> Result<Vec<JobLine>, Refusal> {
        let Self::Bus(bus) = self;
        bus.jobs().await
    }

    /// Ends a job early.
    ///
    /// # Errors
    /// [`Refusal`]
    pub async fn cancel(&self, id: u32) -> Result<(), Refusal> {
        let Self::Bus(bus) = self;
        bus.cancel(id).await
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
}

impl Job {
    /// Its number.
    pub fn id(&self) -> u32 {
        let Self::Bus(job) = self;
        job.id
    }

    /// The next news; the last is [`News::Reported`] or [`News::Ended`].
    pub async fn next(&mut self) -> News {
        let Self::Bus(job) = self;
        job.next().await
    }
}
