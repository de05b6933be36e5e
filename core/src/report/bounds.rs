//! How long a string of a report may be, so that each journal entry stays below 16 kB.
//!
//! The bounds are a property of the report, not of the writing: a report within them comes back from the journal as it
//! was, and what was cut is cut everywhere alike (journal, bus, command).

use super::{Deployed, EntryOutcome, HeldEntry, HoldEnded, Report, ReportEntry};
use crate::hold::Cause;
use crate::plan::Note;
use crate::resource::ResourceKey;

/// Names of modules, units and tokens: file names have at most 255 bytes.
const NAME: usize = 256;
/// Names of resources: paths have at most 4095 bytes.
const PATH: usize = 4096;
/// Two names, as in "not attempted after".
const NAMES: usize = NAME + PATH + 32;
/// Image references and digests.
const IMAGE: usize = 1024;
/// What to do.
const HINT: usize = 1024;
/// Sentences and errors.
pub(crate) const TEXT: usize = 1536;
/// The end of a text that was cut.
const MARK: &str = " … (cut)";

/// The text if it has at most `limit` bytes, else its beginning and a mark; cutting twice is cutting once.
#[must_use]
pub fn cut(text: &str, limit: usize) -> String {
    if text.len() <= limit {
        return text.to_owned();
    }
    let mut end = limit.saturating_sub(MARK.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    format!("{}{MARK}", &text[..end])
}

impl Report {
    /// The same report with over-long strings cut. A report that was assembled goes through here once.
    #[must_use]
    pub fn bounded(self) -> Self {
        let Self { report, action, result, counts, started_usec, duration_usec, resources, notes, newly_held, ended } =
            self;
        Self {
            report,
            action: cut(&action, NAME),
            result,
            counts,
            started_usec,
            duration_usec,
            resources: resources.into_iter().map(entry).collect(),
            notes: notes.into_iter().map(note).collect(),
            newly_held,
            ended: ended.into_iter().map(hold_ended).collect(),
        }
    }
}

fn entry(entry: ReportEntry) -> ReportEntry {
    let ReportEntry { module, resource, unit, outcome } = entry;
    let outcome = match outcome {
        EntryOutcome::Created(what) => EntryOutcome::Created(deployed(&what)),
        EntryOutcome::Changed(what) => EntryOutcome::Changed(deployed(&what)),
        EntryOutcome::Recreated(what) => EntryOutcome::Recreated(deployed(&what)),
        EntryOutcome::Removed(what) => EntryOutcome::Removed(deployed(&what)),
        EntryOutcome::Held(what) => EntryOutcome::Held(held(what)),
        EntryOutcome::Failed { step, error, errno, exit_status } => {
            EntryOutcome::Failed { step: cut(&step, TEXT), error: cut(&error, TEXT), errno, exit_status }
        }
        EntryOutcome::NotAttempted { after } => EntryOutcome::NotAttempted { after: cut(&after, NAMES) },
    };
    ReportEntry { module: cut(&module, NAME), resource: key(&resource), unit: option(unit, NAME), outcome }
}

fn held(held: HeldEntry) -> HeldEntry {
    let HeldEntry { reason, also, cause, sentence, hint, since_usec, waiting_on_take, known } = held;
    let Cause { module, resource } = cause;
    HeldEntry {
        reason,
        also,
        cause: Cause { module: cut(&module, NAME), resource: key(&resource) },
        sentence: cut(&sentence, TEXT),
        hint: option(hint, HINT),
        since_usec,
        waiting_on_take,
        known,
    }
}

fn deployed(deployed: &Deployed) -> Deployed {
    let Deployed { image, digest } = deployed;
    Deployed { image: option(image.clone(), IMAGE), digest: option(digest.clone(), IMAGE) }
}

fn note(note: Note) -> Note {
    let Note { module, resource, note, sentence, unit } = note;
    Note {
        module: cut(&module, NAME),
        resource: key(&resource),
        note: cut(&note, NAME),
        sentence: cut(&sentence, TEXT),
        unit: option(unit, NAME),
    }
}

fn hold_ended(ended: HoldEnded) -> HoldEnded {
    let HoldEnded { module, resource, unit, reason, ended_by } = ended;
    HoldEnded {
        module: cut(&module, NAME),
        resource: key(&resource),
        unit: option(unit, NAME),
        reason,
        ended_by: cut(&ended_by, NAME),
    }
}

fn key(key: &ResourceKey) -> ResourceKey {
    ResourceKey::new(key.kind, cut(&key.name, PATH))
}

fn option(text: Option<String>, limit: usize) -> Option<String> {
    text.map(|text| cut(&text, limit))
}

#[cfg(test)]
mod tests {
    use super::cut;

    #[test]
    fn cutting_twice_is_cutting_once() {
        let long = "ä".repeat(60);
        for limit in 20..140 {
            let once = cut(&long, limit);
            assert!(once.len() <= limit, "{limit}");
            assert_eq!(cut(&once, limit), once);
            assert_eq!(once == long, limit >= 120);
        }
    }
}
