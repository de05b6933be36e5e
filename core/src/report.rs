//! The account of one apply: what was asked, what was done, what is held. Display is the operator's text.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::hold::{Cause, Reason};
use crate::plan::Note;
use crate::resource::ResourceKey;

/// One report. It can be rebuilt from the journal, entry for entry; unchanged resources are only counted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    /// 32 hex digits.
    pub report: String,
    /// apply, hold, unhold, …
    pub action: String,
    /// How it ended.
    pub result: ReportResult,
    /// The numbers.
    pub counts: Counts,
    /// When it began: microseconds since 1970.
    pub started_usec: u64,
    /// How long it took, in microseconds.
    pub duration_usec: u64,
    /// Everything but the unchanged.
    pub resources: Vec<ReportEntry>,
    /// Worth knowing.
    pub notes: Vec<Note>,
    /// How many holds were not there in the report before.
    pub newly_held: u32,
    /// Holds of the report before that are no more.
    pub ended: Vec<HoldEnded>,
}

/// How a report ended, as in JobRemoved.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ReportResult {
    /// All that was asked is so.
    Done,
    /// Something is held, nothing failed.
    Held,
    /// Something failed, something is so.
    Partial,
    /// Nothing of it is so.
    Failed,
    /// It was cut off.
    Interrupted,
}

/// `total = applied + held + failed + not_attempted`; removed ones are counted apart.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// What was asked.
    pub total: u32,
    /// Changed and unchanged.
    pub applied: u32,
    /// Created, changed, recreated.
    pub changed: u32,
    /// As they were.
    pub unchanged: u32,
    /// Left untouched with a reason.
    pub held: u32,
    /// Tried in vain.
    pub failed: u32,
    /// Not tried because another one failed.
    pub not_attempted: u32,
    /// Gone from their module, and removed.
    pub removed: u32,
}

/// One resource in a report.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReportEntry {
    /// Its module.
    pub module: String,
    /// The resource.
    pub resource: ResourceKey,
    /// Its unit.
    pub unit: Option<String>,
    /// What became of it.
    pub outcome: EntryOutcome,
}

/// What became of a resource.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "kebab-case")]
pub enum EntryOutcome {
    /// It was not there and is now.
    Created(Deployed),
    /// It was changed in place.
    Changed(Deployed),
    /// Its container was replaced.
    Recreated(Deployed),
    /// It was removed, since its file is gone from the module.
    Removed(Deployed),
    /// It is held.
    Held(HeldEntry),
    /// It failed.
    Failed {
        /// The act that failed.
        step: String,
        /// Why.
        error: String,
        /// The system's error number.
        errno: Option<i32>,
        /// The exit status of a process.
        exit_status: Option<i32>,
    },
    /// It was not tried.
    NotAttempted {
        /// The resource that failed before it, as `MODULE kind/name`.
        after: String,
    },
}

/// Which image runs now.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Deployed {
    /// `Image=` as the module writes it.
    pub image: Option<String>,
    /// What was deployed: a digest or image ID.
    pub digest: Option<String>,
}

/// A hold in a report.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeldEntry {
    /// The reason.
    pub reason: Reason,
    /// The others.
    pub also: BTreeSet<Reason>,
    /// Where it goes back to.
    pub cause: Cause,
    /// The sentence.
    pub sentence: String,
    /// What to do.
    pub hint: Option<String>,
    /// Since when: microseconds since 1970.
    pub since_usec: u64,
    /// True when a take of the cause's module would end it.
    pub waiting_on_take: bool,
    /// True when the report before had it for the same reason.
    pub known: bool,
}

/// A hold that is no more.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HoldEnded {
    /// Its module.
    pub module: String,
    /// The resource.
    pub resource: ResourceKey,
    /// Its unit.
    pub unit: Option<String>,
    /// The former reason.
    pub reason: Reason,
    /// applied, removed, unassigned, reason-changed.
    pub ended_by: String,
}
