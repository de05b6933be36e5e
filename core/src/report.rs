//! The account of one apply: what was asked, what was done, what is held. Display is the operator's text.

mod bounds;
mod escape;
mod json;
mod sentence;
mod text;

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use thiserror::Error;

pub use self::bounds::cut;
pub use self::escape::escape;
pub(crate) use self::sentence::not_attempted;
pub use self::text::VERBS;
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
    #[serde(flatten)]
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
    /// Somebody canceled it; what was begun was finished.
    Canceled,
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
#[serde(into = "json::EntryRow", try_from = "json::EntryRow")]
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
#[derive(Debug, Clone, PartialEq, Eq)]
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
        /// The resource that failed before it, as `MODULE kind/name`; or the token of what stopped the run, see
        /// [`crate::step::Stop`].
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
#[derive(Debug, Clone, PartialEq, Eq)]
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

/// Numbers that do not add up: a report with them must not be written.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum CountsError {
    /// A resource is in no state of the report, or in two.
    #[error(
        "{asked} resource(s) were asked for, but {applied} applied, {held} held, {failed} failed and {not_attempted} \
         not attempted make {sum}"
    )]
    Total {
        /// `total`.
        asked: u32,
        /// `applied`.
        applied: u32,
        /// `held`.
        held: u32,
        /// `failed`.
        failed: u32,
        /// `not_attempted`.
        not_attempted: u32,
        /// What the last four make.
        sum: u64,
    },
    /// `applied` is not `changed + unchanged`.
    #[error("{applied} resource(s) are applied, but {changed} changed and {unchanged} unchanged make {sum}")]
    Applied {
        /// `applied`.
        applied: u32,
        /// `changed`.
        changed: u32,
        /// `unchanged`.
        unchanged: u32,
        /// What the last two make.
        sum: u64,
    },
    /// A number is not that of the entries that are listed.
    #[error("{counted} resource(s) are counted as {what}, but {listed} are listed")]
    Listed {
        /// changed, held, failed, not attempted, removed, newly held.
        what: &'static str,
        /// The number.
        counted: u32,
        /// The entries.
        listed: u32,
    },
}

impl Counts {
    /// Checks that the numbers add up to what was asked.
    ///
    /// # Errors
    /// [`CountsError`] with the numbers that do not.
    pub fn check(&self) -> Result<(), CountsError> {
        let Self { total, applied, changed, unchanged, held, failed, not_attempted, removed: _ } = *self;
        let sum = [applied, held, failed, not_attempted].into_iter().map(u64::from).sum();
        if u64::from(total) != sum {
            return Err(CountsError::Total { asked: total, applied, held, failed, not_attempted, sum });
        }
        let sum = u64::from(changed) + u64::from(unchanged);
        if u64::from(applied) != sum {
            return Err(CountsError::Applied { applied, changed, unchanged, sum });
        }
        Ok(())
    }

    /// What the numbers make of the whole, if nothing cut it off. What failed beats what is held.
    #[must_use]
    pub fn result(&self) -> ReportResult {
        match (self.failed + self.not_attempted, self.applied, self.held) {
            (0, _, 0) => ReportResult::Done,
            (0, _, _) => ReportResult::Held,
            (_, 0, _) => ReportResult::Failed,
            (_, _, _) => ReportResult::Partial,
        }
    }

    /// The numbers of what is listed; what is unchanged is not, so it is given.
    #[must_use]
    pub fn of(resources: &[ReportEntry], unchanged: u32) -> Self {
        let mut counts = Self { unchanged, ..Self::default() };
        for entry in resources {
            let number = match &entry.outcome {
                EntryOutcome::Created(_) | EntryOutcome::Changed(_) | EntryOutcome::Recreated(_) => &mut counts.changed,
                EntryOutcome::Removed(_) => &mut counts.removed,
                EntryOutcome::Held(_) => &mut counts.held,
                EntryOutcome::Failed { step: _, error: _, errno: _, exit_status: _ } => &mut counts.failed,
                EntryOutcome::NotAttempted { after: _ } => &mut counts.not_attempted,
            };
            *number += 1;
        }
        counts.applied = counts.changed + counts.unchanged;
        counts.total = counts.applied + counts.held + counts.failed + counts.not_attempted;
        counts
    }
}

impl ReportResult {
    /// All of them.
    pub const ALL: [Self; 6] = [Self::Done, Self::Held, Self::Partial, Self::Failed, Self::Interrupted, Self::Canceled];

    /// The word in HOLDFAST_RESULT= and on the bus.
    #[must_use]
    pub fn token(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Held => "held",
            Self::Partial => "partial",
            Self::Failed => "failed",
            Self::Interrupted => "interrupted",
            Self::Canceled => "canceled",
        }
    }
}

impl EntryOutcome {
    /// The word in HOLDFAST_OUTCOME= and in JSON.
    #[must_use]
    pub fn token(&self) -> &'static str {
        match self {
            Self::Created(_) => "created",
            Self::Changed(_) => "changed",
            Self::Recreated(_) => "recreated",
            Self::Removed(_) => "removed",
            Self::Held(_) => "held",
            Self::Failed { step: _, error: _, errno: _, exit_status: _ } => "failed",
            Self::NotAttempted { after: _ } => "not-attempted",
        }
    }
}

impl Report {
    /// Checks that the numbers add up, and that they are those of the entries that are listed.
    ///
    /// # Errors
    /// [`CountsError`] with the first number that is wrong.
    pub fn check(&self) -> Result<(), CountsError> {
        self.counts.check()?;
        let listed = Counts::of(&self.resources, self.counts.unchanged);
        let newly_held = self.held().filter(|(_, held)| !held.known).map(|_| 1).sum();
        for (what, counted, listed) in [
            ("changed", self.counts.changed, listed.changed),
            ("held", self.counts.held, listed.held),
            ("failed", self.counts.failed, listed.failed),
            ("not attempted", self.counts.not_attempted, listed.not_attempted),
            ("removed", self.counts.removed, listed.removed),
            ("newly held", self.newly_held, newly_held),
        ] {
            if counted != listed {
                return Err(CountsError::Listed { what, counted, listed });
            }
        }
        Ok(())
    }

    /// The exit status of `apply`: 0 all that was asked is so, 1 nothing of it is so, 3 some of it failed, 6 something
    /// is held or waits (a unit that the operator stopped, a restart that is pending).
    #[must_use]
    pub fn exit_status(&self) -> u8 {
        match self.result {
            ReportResult::Done if self.notes.iter().any(|note| WAITING_NOTES.contains(&note.note.as_str())) => 6,
            ReportResult::Done => 0,
            ReportResult::Held => 6,
            ReportResult::Partial => 3,
            ReportResult::Failed => 1,
            ReportResult::Interrupted | ReportResult::Canceled if self.counts.applied == 0 => 1,
            ReportResult::Interrupted | ReportResult::Canceled => 3,
        }
    }

    /// The holds, in the order of the report.
    pub fn held(&self) -> impl Iterator<Item = (&ReportEntry, &HeldEntry)> {
        self.resources.iter().filter_map(|entry| match &entry.outcome {
            EntryOutcome::Held(held) => Some((entry, held)),
            EntryOutcome::Created(_)
            | EntryOutcome::Changed(_)
            | EntryOutcome::Recreated(_)
            | EntryOutcome::Removed(_)
            | EntryOutcome::Failed { step: _, error: _, errno: _, exit_status: _ }
            | EntryOutcome::NotAttempted { after: _ } => None,
        })
    }
}

/// Notes that say that what was asked is not so yet.
const WAITING_NOTES: [&str; 3] = ["stopped-by-operator", "restart-pending", "unhealthy"];

#[cfg(test)]
mod tests;
