//! What the operator sees at three in the morning: a pure view of plan, observed state and last report.

pub mod changes;
pub mod holds;
mod judge;
mod rows;
#[cfg(test)]
mod tests;
pub mod view;

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::desired::Desired;
use crate::hold::{Hold, Reason};
use crate::ledger::Ledger;
use crate::observed::Observed;
use crate::plan::Plan;
use crate::report::{EntryOutcome, Report, escape, not_attempted};
use crate::resource::ResourceKey;
use judge::{Judge, Verdict};

/// Version of every JSON shape of the command line.
pub const SCHEMA: u32 = 1;

/// What a status is made of: one look at the host, and what the last apply said.
#[derive(Debug, Clone, Copy)]
pub struct Sources<'a> {
    /// What the modules ask for.
    pub desired: &'a Desired,
    /// What the host has.
    pub observed: &'a Observed,
    /// What would be done and what is held.
    pub plan: &'a Plan,
    /// What is ours.
    pub ledger: &'a Ledger,
}

/// What status needs to know of the last apply.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LastApply {
    /// The report's id.
    pub report: String,
    /// When it ended: microseconds since 1970.
    pub finished_usec: u64,
    /// What failed, or was not tried because something else failed, and why.
    pub failed: BTreeMap<(String, ResourceKey), String>,
}

impl From<&Report> for LastApply {
    fn from(report: &Report) -> Self {
        let why = |outcome: &EntryOutcome| match outcome {
            EntryOutcome::Failed { step, error, errno: _, exit_status: _ } => Some(format!("{step}: {error}")),
            EntryOutcome::NotAttempted { after } => Some(format!("not tried, because {}", not_attempted(after))),
            EntryOutcome::Created(_)
            | EntryOutcome::Changed(_)
            | EntryOutcome::Recreated(_)
            | EntryOutcome::Removed(_)
            | EntryOutcome::Held(_) => None,
        };
        let failed = report.resources.iter();
        let failed = failed.filter_map(|e| Some(((e.module.clone(), e.resource.clone()), why(&e.outcome)?))).collect();
        let finished_usec = report.started_usec.saturating_add(report.duration_usec);
        Self { report: report.report.clone(), finished_usec, failed }
    }
}

/// How a module is, the worst first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum State {
    /// Something failed and is still not so.
    Failed,
    /// Its files cannot be read; what it ran goes on.
    Unreadable,
    /// It is held, and a take would end that.
    WaitingOnTake,
    /// It is held for another reason, the first in the order of [`Reason`].
    Held(Reason),
    /// The operator stopped a unit of it.
    Stopped,
    /// The next apply would do something.
    Pending,
    /// Everything that was asked is so.
    Applied,
}

impl State {
    /// The word on the bus and in JSON; why something is held stands beside it.
    #[must_use]
    pub fn token(self) -> &'static str {
        match self {
            Self::Failed => "failed",
            Self::Unreadable => "unreadable",
            Self::WaitingOnTake | Self::Held(_) => "held",
            Self::Stopped => "stopped",
            Self::Pending => "pending",
            Self::Applied => "applied",
        }
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::WaitingOnTake => f.write_str("waiting on take"),
            Self::Held(reason) => write!(f, "held: {reason}"),
            Self::Stopped => f.write_str("stopped by operator"),
            Self::Failed | Self::Unreadable | Self::Pending | Self::Applied => f.write_str(self.token()),
        }
    }
}

/// `total = applied + held + failed + stopped + pending`; what will be removed is counted apart.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// What was asked.
    pub total: u32,
    /// As asked, and running where it should.
    pub applied: u32,
    /// Left untouched with a reason.
    pub held: u32,
    /// Failed and still not so.
    pub failed: u32,
    /// Stopped by the operator.
    pub stopped: u32,
    /// The next apply would make or change it.
    pub pending: u32,
    /// The next apply would remove it.
    pub to_remove: u32,
}

/// How one module is. In JSON, a row of `status --json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "rows::ModuleRow", try_from = "rows::ModuleRow")]
pub struct ModuleStatus {
    /// Its directory's name.
    pub name: String,
    /// The worst that can be said of it.
    pub state: State,
    /// Its numbers.
    pub counts: Counts,
    /// How many containers it wants to run.
    pub wanted: u32,
    /// How many of them run.
    pub running: u32,
    /// How many holds there are for each reason.
    pub reasons: BTreeMap<Reason, u32>,
    /// True when a take would end a hold of it.
    pub waiting_on_take: bool,
    /// Why it is not fine: the first cause, as a clause.
    pub cause: Option<String>,
    /// How many further causes there are.
    pub more: u32,
    /// What can be run to learn more or to go on.
    pub hint: Option<String>,
}

/// How the host is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Status {
    /// When the host was looked at: microseconds since 1970.
    pub observed_usec: u64,
    /// The last apply, if the journal has one.
    pub last: Option<LastApply>,
    /// All modules together.
    pub counts: Counts,
    /// The worst first.
    pub modules: Vec<ModuleStatus>,
}

/// How a text for a terminal is dressed: the core knows neither clock zones nor colours.
pub struct Dress<'a> {
    /// A time in microseconds since 1970, for people.
    pub time: &'a dyn Fn(u64) -> String,
    /// A state's words, padded already; colour may be put around them.
    pub state: &'a dyn Fn(State, &str) -> String,
}

impl Dress<'static> {
    /// No colour, and times as plain numbers: for tests.
    pub const PLAIN: Self = Self { time: &|usec| usec.to_string(), state: &|_, words| words.to_owned() };
}

impl Status {
    /// The status of all modules.
    #[must_use]
    pub fn of(sources: &Sources<'_>, last: Option<LastApply>) -> Self {
        let judge = Judge::new(sources, last.as_ref());
        let plan = sources.plan;
        let mut names: BTreeSet<&str> = sources.desired.modules.keys().map(String::as_str).collect();
        names.extend(plan.resources.keys().map(String::as_str));
        names.extend(plan.holds.iter().map(|hold| hold.module.as_str()));
        let modules = names.into_iter().map(|name| judge.module(name)).collect();
        Self::new(sources.observed.taken_usec, last, modules)
    }

    /// The status of a host whose modules are these.
    #[must_use]
    pub fn new(observed_usec: u64, last: Option<LastApply>, mut modules: Vec<ModuleStatus>) -> Self {
        modules.sort_by(|a, b| (a.state, b.counts.held, &a.name).cmp(&(b.state, a.counts.held, &b.name)));
        let counts = modules.iter().fold(Counts::default(), |sum, module| sum.plus(module.counts));
        Self { observed_usec, last, counts, modules }
    }

    /// The worst state of all; applied where nothing is asked for.
    #[must_use]
    pub fn state(&self) -> State {
        self.modules.iter().map(|module| module.state).min().unwrap_or(State::Applied)
    }

    /// The exit status of `status`, `plan` and `is-applied`: 0 all is so, 1 failed and nothing is so, 3 something
    /// failed, 6 something is held, pending, unreadable, or stopped by the operator.
    #[must_use]
    pub fn exit_status(&self) -> u8 {
        match self.state() {
            State::Failed if self.counts.applied == 0 => 1,
            State::Failed => 3,
            State::Unreadable | State::WaitingOnTake | State::Held(_) | State::Stopped | State::Pending => 6,
            State::Applied => 0,
        }
    }

    /// `status --json`.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let Self { observed_usec, last, counts, modules } = self;
        json!({
            "schema": SCHEMA,
            "observed_usec": observed_usec,
            "last_report": last.as_ref().map(|last| &last.report),
            "last_apply_usec": last.as_ref().map(|last| last.finished_usec),
            "counts": counts,
            "modules": modules,
        })
    }

    /// The text for a terminal.
    #[must_use]
    pub fn text<'a>(&'a self, dress: &'a Dress<'a>) -> impl fmt::Display + 'a {
        Text { status: self, dress }
    }
}

impl Counts {
    /// What one resource adds.
    fn one(verdict: &Verdict) -> Self {
        let mut counts = Self { total: 1, ..Self::default() };
        match verdict {
            Verdict::Applied => counts.applied = 1,
            Verdict::Failed(_) => counts.failed = 1,
            Verdict::Stopped(_) => counts.stopped = 1,
            Verdict::Pending(_) => counts.pending = 1,
            Verdict::ToRemove(_) => return Self { to_remove: 1, ..Self::default() },
        }
        counts
    }

    fn plus(self, other: Self) -> Self {
        let Self { total, applied, held, failed, stopped, pending, to_remove } = other;
        Self {
            total: self.total + total,
            applied: self.applied + applied,
            held: self.held + held,
            failed: self.failed + failed,
            stopped: self.stopped + stopped,
            pending: self.pending + pending,
            to_remove: self.to_remove + to_remove,
        }
    }
}

impl ModuleStatus {
    /// "0 of 3 containers run".
    fn containers(&self) -> String {
        let (running, wanted) = (self.running, self.wanted);
        let as_before = matches!(self.state, State::Held(_) | State::Unreadable) && running == wanted;
        match (wanted, as_before) {
            (0, _) => "no containers".to_owned(),
            (1, true) => "1 of 1 runs as before".to_owned(),
            (_, true) => format!("{running} of {wanted} run as before"),
            (1, false) => format!("{running} of 1 container runs"),
            (_, false) => format!("{running} of {wanted} containers run"),
        }
    }

    /// "13 held", "1 failed": the number that belongs to the state.
    fn number(&self) -> String {
        let counts = self.counts;
        let (number, word) = match self.state {
            State::Failed => (counts.failed, "failed"),
            State::Unreadable | State::WaitingOnTake | State::Held(_) => (counts.held, "held"),
            State::Stopped => (counts.stopped, "stopped"),
            State::Pending => (counts.pending + counts.to_remove, "pending"),
            State::Applied => (counts.applied, "applied"),
        };
        format!("{number} {word}")
    }
}

struct Text<'a> {
    status: &'a Status,
    dress: &'a Dress<'a>,
}

impl fmt::Display for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.first_line(f)?;
        let rows: Vec<Row<'_>> = self.status.modules.iter().filter_map(Row::of).collect();
        let width = |column: fn(&Row<'_>) -> usize| rows.iter().map(column).max().unwrap_or_default();
        let name = width(|row| row.name.chars().count());
        let state = width(|row| row.state.chars().count());
        let containers = width(|row| row.containers.chars().count());
        let number = width(|row| row.number.chars().count());
        for row in &rows {
            let words = (self.dress.state)(row.of, &format!("{:<state$}", row.state));
            let Row { name: called, containers: run, number: n, cause, .. } = row;
            writeln!(f, "  {called:<name$}  {words}  {run:<containers$}  {n:>number$}   {cause}")?;
        }
        match self.status.modules.iter().find_map(|module| module.hint.as_ref()) {
            Some(hint) => writeln!(f, "Hint: {}", escape(hint)),
            None => Ok(()),
        }
    }
}

impl Text<'_> {
    fn first_line(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Status { observed_usec, last, counts, modules } = self.status;
        let state = self.status.state();
        // What cannot be read is counted as held, so the first word is that of the numbers.
        let word = if state == State::Unreadable { "held" } else { state.token() };
        let word = (self.dress.state)(state, word);
        if modules.is_empty() {
            write!(f, "{word}: no module is assigned")?;
        } else {
            let Counts { total, applied, held, failed, stopped, pending, to_remove } = counts;
            write!(f, "{word}: {applied} of {total} resource(s) applied, {held} held, {failed} failed")?;
            for (number, words) in [(stopped, "stopped by operator"), (pending, "pending"), (to_remove, "to remove")] {
                if *number > 0 {
                    write!(f, ", {number} {words}")?;
                }
            }
        }
        write!(f, "   (looked at {}; ", (self.dress.time)(*observed_usec))?;
        match last {
            Some(last) => {
                let short: String = last.report.chars().take(8).collect();
                writeln!(f, "last apply {}, report {short})", (self.dress.time)(last.finished_usec))
            }
            None => writeln!(f, "no apply yet)"),
        }
    }
}

/// A line of the table: a module that is not fine.
struct Row<'a> {
    of: State,
    name: Cow<'a, str>,
    state: String,
    containers: String,
    number: String,
    cause: String,
}

impl<'a> Row<'a> {
    fn of(module: &'a ModuleStatus) -> Option<Self> {
        if module.state == State::Applied {
            return None;
        }
        let more = if module.more > 0 { format!(" (+{})", module.more) } else { String::new() };
        Some(Self {
            of: module.state,
            name: escape(&module.name),
            state: module.state.to_string(),
            containers: module.containers(),
            number: module.number(),
            cause: format!("{}{more}", escape(module.cause.as_deref().unwrap_or_default())),
        })
    }
}

/// True for a hold that goes back to nothing but itself.
fn is_root(hold: &Hold) -> bool {
    hold.cause.module == hold.module && hold.cause.resource == hold.resource
}
