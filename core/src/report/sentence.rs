//! The one-line sentences of a report: the same words in the journal, on the bus and on the command line.

use std::collections::BTreeMap;

use super::{Counts, Deployed, EntryOutcome, HoldEnded, Report, ReportEntry};
use crate::step::Stop;

impl Report {
    /// The line that ends every apply:
    /// `applied 330 of 346 resource(s) (12 changed), 16 held for untaken modules (route-proxy: 13, photos: 3)`.
    ///
    /// The holds that a take would end are counted for the module that would have to be taken, which is the cause's.
    #[must_use]
    pub fn sentence(&self) -> String {
        match self.action.as_str() {
            "hold" if self.counts.total == 0 => return "the operator's hold is set".to_owned(),
            "unhold" if self.counts.total == 0 => return "the operator's hold has ended".to_owned(),
            _ => {}
        }
        let Counts { total, applied, changed, unchanged: _, held: _, failed, not_attempted, removed } = self.counts;
        let mut untaken: BTreeMap<String, u32> = BTreeMap::new();
        let mut otherwise: BTreeMap<String, u32> = BTreeMap::new();
        for (entry, held) in self.held() {
            if held.waiting_on_take {
                *untaken.entry(held.cause.module.clone()).or_default() += 1;
            } else {
                *otherwise.entry(format!("{}: {}", entry.module, held.reason)).or_default() += 1;
            }
        }
        if self.action != "apply" {
            return format!("{} done", self.action);
        }
        let mut line = format!("applied {applied} of {total} resource(s) ({changed} changed)");
        if !untaken.is_empty() {
            let number: u32 = untaken.values().sum();
            line += &format!(", {number} held for untaken modules ({})", by_number(untaken, ": "));
        }
        if !otherwise.is_empty() {
            let number: u32 = otherwise.values().sum();
            line += &format!(", {number} held otherwise ({})", by_number(otherwise, " "));
        }
        for (number, before, what) in [
            (failed, ", ", "failed"),
            (not_attempted, ", ", "not attempted"),
            (removed, "; ", "removed"),
            (self.newly_held, "; ", "newly held"),
        ] {
            if number != 0 {
                line += &format!("{before}{number} {what}");
            }
        }
        line
    }
}

impl ReportEntry {
    /// What became of this resource, subject first, without a full stop. Foreign text in it is not escaped.
    #[must_use]
    pub fn sentence(&self) -> String {
        let Self { module, resource, unit: _, outcome } = self;
        match outcome {
            EntryOutcome::Created(what) => format!("{resource} of {module} was created{}", image(what)),
            EntryOutcome::Changed(what) => format!("{resource} of {module} was changed{}", image(what)),
            EntryOutcome::Recreated(what) => format!("{resource} of {module} was recreated{}", image(what)),
            EntryOutcome::Removed(what) => format!("{resource} of {module} was removed{}", image(what)),
            EntryOutcome::Held(held) => held.sentence.clone(),
            EntryOutcome::Failed { step, error, errno: _, exit_status: _ } => {
                format!("{resource} of {module} failed: {step}: {error}")
            }
            EntryOutcome::NotAttempted { after } => {
                format!("{resource} of {module} was not attempted, because {}", not_attempted(after))
            }
        }
    }
}

impl HoldEnded {
    /// That a hold is no more, and how it ended.
    #[must_use]
    pub fn sentence(&self) -> String {
        let Self { module, resource, unit: _, reason, ended_by } = self;
        let how = match ended_by.as_str() {
            "applied" => "it is applied",
            "removed" => "its file is gone from the module",
            "unassigned" => "its module is no longer assigned",
            "reason-changed" => "it is held for another reason now",
            other => other,
        };
        format!("{resource} of {module} is no longer held ({reason}): {how}")
    }
}

/// Why something was not attempted, as a clause.
pub(crate) fn not_attempted(after: &str) -> String {
    match after {
        stop if stop == Stop::Canceled.token() => "the job was canceled".to_owned(),
        stop if stop == Stop::Terminated.token() => "the agent had to end".to_owned(),
        failed => format!("{failed} failed"),
    }
}

fn image(what: &Deployed) -> String {
    let Deployed { image, digest } = what;
    match (image, digest) {
        (Some(image), Some(digest)) => format!(" (image {image}, {digest})"),
        (Some(image), None) => format!(" (image {image})"),
        (None, Some(digest)) => format!(" ({digest})"),
        (None, None) => String::new(),
    }
}

/// `a: 13, b: 3`: the most first, then by name.
fn by_number(numbers: BTreeMap<String, u32>, between: &str) -> String {
    let mut numbers: Vec<(String, u32)> = numbers.into_iter().collect();
    numbers.sort_by_key(|(_, number)| std::cmp::Reverse(*number));
    numbers.iter().map(|(name, number)| format!("{name}{between}{number}")).collect::<Vec<_>>().join(", ")
}
