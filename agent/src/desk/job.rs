//! A job: a running apply as its askers see it. It belongs to the agent, so that no client can wedge or lose it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::apply::{Caller, Progress};
use crate::error::AgentError;
use crate::latest::Once;
use crate::stop::StopSign;
use holdfast_core::report::{Report, ReportResult};
use holdfast_core::status::view::View;
use holdfast_core::step::Stop;

/// A job, kept for a while after its end.
#[derive(Debug)]
pub struct Job {
    /// Its number, from 1.
    pub id: u32,
    /// What it does.
    pub work: Work,
    /// The modules; none means all.
    pub modules: Vec<String>,
    /// Who asked for it.
    pub caller: Caller,
    /// When it was asked for: microseconds since 1970.
    pub started_usec: u64,
    /// Ends it early.
    pub stop: StopSign,
    now: Mutex<Now>,
    end: Once<Arc<End>>,
}

/// What a job does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Work {
    /// Applies.
    Apply,
    /// Only looks: a dry run.
    Look,
}

/// How far a job is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Now {
    /// queued, running, finished
    pub state: State,
    /// The report's id, empty until it is begun.
    pub report: String,
    /// What is done now.
    pub step: String,
    /// The resource of the step that ended last, as `MODULE kind/name`.
    pub resource: String,
    /// Steps that are finished.
    pub done: usize,
    /// All steps; 0 while it is not known.
    pub of: usize,
    /// Steps whose end was told.
    pub told: u32,
}

/// The states of a job that exist so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum State {
    /// Another one runs first.
    #[default]
    Queued,
    /// It runs.
    Running,
    /// It has ended.
    Finished,
}

/// How a job ended.
#[derive(Debug)]
pub enum End {
    /// With a report.
    Reported(Box<Report>),
    /// A dry run: what it saw of its modules.
    Looked(Box<View>),
    /// It could not begin, or not go on.
    Failed(AgentError),
    /// It was canceled while it waited for another one.
    Canceled,
}

/// One step that ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StepEnd {
    /// Counts the steps of the job, from 0.
    pub seq: u32,
    /// The act.
    pub step: String,
    /// The module that it was for.
    pub module: String,
    /// The resource that it was for.
    pub resource: String,
    /// done, failed, not-attempted.
    pub result: &'static str,
    /// Why it is not done.
    pub reason: String,
}

impl Work {
    /// The word on the bus.
    #[must_use]
    pub fn token(self) -> &'static str {
        match self {
            Self::Apply => "apply",
            Self::Look => "check",
        }
    }
}

impl State {
    /// The word on the bus.
    #[must_use]
    pub fn token(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Running => "running",
            Self::Finished => "finished",
        }
    }
}

impl End {
    /// The word of JobRemoved.
    #[must_use]
    pub fn result(&self) -> &'static str {
        match self {
            Self::Reported(report) => report.result.token(),
            Self::Looked(view) if view.holds.is_empty() => ReportResult::Done.token(),
            Self::Looked(_) => ReportResult::Held.token(),
            Self::Failed(_) => "failed",
            Self::Canceled => Stop::Canceled.token(),
        }
    }
}

impl Now {
    /// How much of it is done: at most 99 before the end, 100 only after it.
    #[must_use]
    pub fn percent(&self) -> u32 {
        match (self.state, self.of) {
            (State::Finished, _) => 100,
            (State::Queued, _) | (State::Running, 0) => 0,
            (State::Running, of) => u32::try_from(self.done * 99 / of).unwrap_or(99).min(99),
        }
    }
}

impl Job {
    /// A job that waits for its turn.
    #[must_use]
    pub fn new(id: u32, work: Work, modules: Vec<String>, caller: Caller, started_usec: u64) -> Self {
        let (stop, now, end) = (StopSign::default(), Mutex::default(), Once::default());
        Self { id, work, modules, caller, started_usec, stop, now, end }
    }

    /// How far it is.
    #[must_use]
    pub fn now(&self) -> Now {
        self.state().clone()
    }

    /// How it ended; none while it has not.
    #[must_use]
    pub fn end(&self) -> Option<Arc<End>> {
        self.end.get()
    }

    /// Waits for its end.
    pub async fn wait(&self) -> Arc<End> {
        self.end.wait().await
    }

    /// Its turn has come.
    pub(super) fn begin(&self) {
        self.state().state = State::Running;
    }

    /// It has ended.
    pub(super) fn finish(&self, end: End) {
        self.state().state = State::Finished;
        self.end.set(Arc::new(end));
    }

    /// Notes what the road tells; gives a step that ended.
    pub(super) fn note(&self, progress: Progress) -> Option<StepEnd> {
        let mut now = self.state();
        match progress {
            Progress::Began { report } => now.report = report,
            Progress::Doing { text, done, of } => (now.step, now.done, now.of) = (text, done, of),
            Progress::Ended { step, module, resource, result, reason } => {
                let resource = resource.to_string();
                now.resource = format!("{module} {resource}");
                now.done = (now.done + 1).min(now.of);
                let seq = now.told;
                now.told += 1;
                return Some(StepEnd { seq, step, module, resource, result, reason });
            }
        }
        None
    }

    /// A thread that panicked while it wrote these few words leaves them as they are.
    fn state(&self) -> MutexGuard<'_, Now> {
        self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
