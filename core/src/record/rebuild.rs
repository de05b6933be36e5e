//! The report again, from the fields of its journal entries alone; and what is missing is noticed.

use std::collections::{BTreeMap, BTreeSet};
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::{Fields, Message, SCHEMA};
use crate::hold::{Cause, Reason};
use crate::plan::Note;
use crate::report::{Counts, Deployed, EntryOutcome, HeldEntry, HoldEnded, Report, ReportEntry, ReportResult};
use crate::resource::ResourceKey;

/// What the journal still has of a report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rebuilt {
    /// The report; none when no entry of it can be read. Without a finished entry it is `Interrupted` and its numbers
    /// are those of what is listed.
    pub report: Option<Report>,
    /// How much of it there is.
    pub state: RebuiltState,
    /// How many entries of it can be read.
    pub entries: u32,
}

/// Whether a report is all there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RebuiltState {
    /// Every entry is there, and none too many.
    Complete,
    /// It was finished, but not all of its entries can be read, or there are more than it says.
    Incomplete {
        /// How many there were.
        of: u32,
    },
    /// It was refused or cut off, and says so: the sentence.
    Ended(String),
    /// It has no end: it still runs, or was killed, or the journal lost its end.
    Open,
}

/// A report in a list. In JSON, a row of the agent's lists.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Summary {
    /// Its id.
    pub report: String,
    /// apply, hold, unhold, …
    pub action: String,
    /// How it ended; none when it has no finished entry.
    pub result: Option<ReportResult>,
    /// When it began: microseconds since 1970.
    pub started_usec: u64,
    /// When it ended.
    pub finished_usec: Option<u64>,
    /// The numbers; all 0 when it has no finished entry.
    #[serde(flatten)]
    pub counts: Counts,
    /// The sentence of its last entry.
    pub sentence: String,
}

/// Builds the report from its entries, in any order. Entries that are not ours or not of the first one's report are
/// passed over; entries that cannot be read count as missing.
#[must_use]
pub fn rebuild(entries: &[Fields]) -> Rebuilt {
    let mut parts = Parts::default();
    for (entry, message) in entries.iter().filter_map(known) {
        let Ok(id) = entry.one("HOLDFAST_REPORT_ID") else { continue };
        if parts.report.get_or_insert_with(|| id.to_owned()) == id {
            parts.damaged |= parts.add(entry, message).is_err();
        }
    }
    parts.finish()
}

/// Lists reports from their started and finished entries, in the order in which each is first seen.
#[must_use]
pub fn summaries(entries: &[Fields]) -> Vec<Summary> {
    let mut list: Vec<Summary> = Vec::new();
    for (entry, message) in entries.iter().filter_map(known) {
        let Ok(summary) = summary(entry, message) else { continue };
        match list.iter_mut().find(|other| other.report == summary.report) {
            // Whichever comes first: the finished entry knows more.
            Some(other) if other.result.is_none() => {
                let started_usec = other.started_usec.min(summary.started_usec);
                *other = Summary { started_usec, ..summary };
            }
            Some(_) => {}
            None => list.push(summary),
        }
    }
    list
}

impl Rebuilt {
    /// True when the report is as it was written.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.state == RebuiltState::Complete
    }

    /// What the reader must know of a report that is not complete.
    #[must_use]
    pub fn warning(&self) -> Option<String> {
        let Self { report: _, state, entries } = self;
        match state {
            RebuiltState::Complete => None,
            RebuiltState::Incomplete { of } => {
                Some(format!("The report is incomplete: {entries} of {of} entries are in the journal"))
            }
            RebuiltState::Ended(sentence) => Some(format!("The report has no result: {sentence}")),
            RebuiltState::Open => Some(format!(
                "The report has no end: it still runs or was cut off ({entries} entries are in the journal)"
            )),
        }
    }
}

/// An entry that does not have what its kind always has.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("the entry has no single, readable {0}")]
struct Damaged(&'static str);

/// What was read so far. By HOLDFAST_SEQ, since the journal may give entries of one microsecond in any order.
#[derive(Default)]
struct Parts {
    report: Option<String>,
    action: String,
    /// Each entry once; two entries of one number are damage.
    seen: BTreeSet<u32>,
    damaged: bool,
    resources: BTreeMap<u32, ReportEntry>,
    ended: BTreeMap<u32, HoldEnded>,
    notes: BTreeMap<u32, Note>,
    finished: Option<Finished>,
    end: Option<String>,
    started_usec: u64,
}

struct Finished {
    result: ReportResult,
    counts: Counts,
    newly_held: u32,
    entries: u32,
    started_usec: u64,
    duration_usec: u64,
}

impl Parts {
    fn add(&mut self, entry: Entry<'_>, message: Message) -> Result<(), Damaged> {
        let seq = entry.parse("HOLDFAST_SEQ")?;
        match message {
            Message::Started => self.started_usec = entry.written_usec(),
            Message::Authorised => {}
            Message::Changed | Message::Held | Message::Failed | Message::NotAttempted => {
                self.resources.insert(seq, entry.resource(message)?);
            }
            Message::HoldEnded => {
                self.ended.insert(seq, entry.hold_ended()?);
            }
            Message::Note => {
                self.notes.insert(seq, entry.note()?);
            }
            Message::Finished => self.finished = Some(entry.finished()?),
            Message::Interrupted | Message::Refused => self.end = Some(entry.one("MESSAGE")?.to_owned()),
        }
        entry.one("HOLDFAST_ACTION")?.clone_into(&mut self.action);
        if self.seen.insert(seq) { Ok(()) } else { Err(Damaged("HOLDFAST_SEQ")) }
    }

    fn finish(self) -> Rebuilt {
        let Self { report, action, seen, damaged, resources, ended, notes, finished, end, started_usec } = self;
        let entries = u32::try_from(seen.len()).unwrap_or(u32::MAX);
        let resources: Vec<ReportEntry> = resources.into_values().collect();
        let state = match (&finished, end) {
            (Some(finished), _) if !damaged && seen.iter().copied().eq(0..finished.entries) => RebuiltState::Complete,
            (Some(finished), _) => RebuiltState::Incomplete { of: finished.entries },
            (None, Some(sentence)) => RebuiltState::Ended(sentence),
            (None, None) => RebuiltState::Open,
        };
        let finished = finished.unwrap_or_else(|| Finished::unknown(&resources, started_usec));
        let Finished { result, counts, newly_held, entries: _, started_usec, duration_usec } = finished;
        let report = report.filter(|_| entries != 0).map(|report| Report {
            report,
            action,
            result,
            counts,
            started_usec,
            duration_usec,
            resources,
            notes: notes.into_values().collect(),
            newly_held,
            ended: ended.into_values().collect(),
        });
        Rebuilt { report, state, entries }
    }
}

impl Finished {
    /// The end of a report that has none.
    fn unknown(resources: &[ReportEntry], started_usec: u64) -> Self {
        let newly = |entry: &&ReportEntry| matches!(&entry.outcome, EntryOutcome::Held(held) if !held.known);
        Self {
            result: ReportResult::Interrupted,
            counts: Counts::of(resources, 0),
            newly_held: u32::try_from(resources.iter().filter(newly).count()).unwrap_or(u32::MAX),
            entries: 0,
            started_usec,
            duration_usec: 0,
        }
    }
}

/// The entry with its kind, if it is one of ours in a version that we know.
fn known(fields: &Fields) -> Option<(Entry<'_>, Message)> {
    let entry = Entry(fields);
    let message = Message::of_id(entry.one("MESSAGE_ID").ok()?)?;
    (entry.one("HOLDFAST_SCHEMA").ok()? == SCHEMA).then_some((entry, message))
}

fn summary(entry: Entry<'_>, message: Message) -> Result<Summary, Damaged> {
    let finished = if message == Message::Finished { Some(entry.finished()?) } else { None };
    let written = entry.written_usec();
    Ok(Summary {
        report: entry.one("HOLDFAST_REPORT_ID")?.to_owned(),
        action: entry.one("HOLDFAST_ACTION")?.to_owned(),
        result: finished.as_ref().map(|finished| finished.result),
        started_usec: finished.as_ref().map_or(written, |finished| finished.started_usec),
        finished_usec: finished.as_ref().map(|finished| finished.started_usec.saturating_add(finished.duration_usec)),
        counts: finished.map(|finished| finished.counts).unwrap_or_default(),
        sentence: entry.one("MESSAGE")?.to_owned(),
    })
}

/// One entry's fields.
#[derive(Clone, Copy)]
struct Entry<'a>(&'a Fields);

impl<'a> Entry<'a> {
    /// A field that is there once.
    fn one(self, field: &'static str) -> Result<&'a str, Damaged> {
        match self.0.get(field).map(Vec::as_slice) {
            Some([value]) => Ok(value),
            Some(_) | None => Err(Damaged(field)),
        }
    }

    /// A field that is there at most once.
    fn maybe(self, field: &'static str) -> Result<Option<String>, Damaged> {
        match self.0.get(field) {
            Some(_) => self.one(field).map(|value| Some(value.to_owned())),
            None => Ok(None),
        }
    }

    fn parse<T: FromStr>(self, field: &'static str) -> Result<T, Damaged> {
        self.one(field)?.parse().map_err(|_| Damaged(field))
    }

    fn parse_maybe<T: FromStr>(self, field: &'static str) -> Result<Option<T>, Damaged> {
        self.maybe(field)?.map(|value| value.parse().map_err(|_| Damaged(field))).transpose()
    }

    /// When journald got it; 0 where that is not told.
    fn written_usec(self) -> u64 {
        self.parse("__REALTIME_TIMESTAMP").unwrap_or_default()
    }

    /// The sentence as it was: MESSAGE= unless that had to be escaped.
    fn sentence(self) -> Result<String, Damaged> {
        match self.maybe("HOLDFAST_SENTENCE")? {
            Some(sentence) => Ok(sentence),
            None => self.one("MESSAGE").map(str::to_owned),
        }
    }

    fn key(self, field: &'static str) -> Result<ResourceKey, Damaged> {
        self.parse(field)
    }

    fn resource(self, message: Message) -> Result<ReportEntry, Damaged> {
        let outcome = match (message, self.one("HOLDFAST_OUTCOME")?) {
            (Message::Changed, "created") => EntryOutcome::Created(self.deployed()?),
            (Message::Changed, "changed") => EntryOutcome::Changed(self.deployed()?),
            (Message::Changed, "recreated") => EntryOutcome::Recreated(self.deployed()?),
            (Message::Changed, "removed") => EntryOutcome::Removed(self.deployed()?),
            (Message::Held, "held") => EntryOutcome::Held(self.held()?),
            (Message::Failed, "failed") => EntryOutcome::Failed {
                step: self.one("HOLDFAST_STEP")?.to_owned(),
                error: self.one("HOLDFAST_ERROR")?.to_owned(),
                errno: self.parse_maybe("ERRNO")?,
                exit_status: self.parse_maybe("EXIT_STATUS")?,
            },
            (Message::NotAttempted, "not-attempted") => {
                EntryOutcome::NotAttempted { after: self.one("HOLDFAST_AFTER")?.to_owned() }
            }
            (_, _) => return Err(Damaged("HOLDFAST_OUTCOME")),
        };
        Ok(ReportEntry {
            module: self.one("HOLDFAST_MODULE")?.to_owned(),
            resource: self.key("HOLDFAST_RESOURCE")?,
            unit: self.maybe("OBJECT_SYSTEMD_UNIT")?,
            outcome,
        })
    }

    fn deployed(self) -> Result<Deployed, Damaged> {
        Ok(Deployed { image: self.maybe("HOLDFAST_IMAGE")?, digest: self.maybe("HOLDFAST_DIGEST")? })
    }

    fn held(self) -> Result<HeldEntry, Damaged> {
        let also = self.0.get("HOLDFAST_ALSO").into_iter().flatten();
        let also = also.map(|token| token.parse::<Reason>().map_err(|_| Damaged("HOLDFAST_ALSO")));
        Ok(HeldEntry {
            reason: self.parse("REASON")?,
            also: also.collect::<Result<_, _>>()?,
            cause: Cause { module: self.one("CAUSE_MODULE")?.to_owned(), resource: self.key("CAUSE")? },
            sentence: self.sentence()?,
            hint: self.maybe("HOLDFAST_HINT")?,
            since_usec: self.parse("HOLDFAST_SINCE")?,
            waiting_on_take: self.choice("HOLDFAST_WAITING_ON_TAKE", "yes", "no")?,
            // A hold that was told before is told less loudly.
            known: self.choice("PRIORITY", "6", "5")?,
        })
    }

    fn choice(self, field: &'static str, yes: &str, no: &str) -> Result<bool, Damaged> {
        match self.one(field)? {
            value if value == yes => Ok(true),
            value if value == no => Ok(false),
            _ => Err(Damaged(field)),
        }
    }

    fn hold_ended(self) -> Result<HoldEnded, Damaged> {
        Ok(HoldEnded {
            module: self.one("HOLDFAST_MODULE")?.to_owned(),
            resource: self.key("HOLDFAST_RESOURCE")?,
            unit: self.maybe("OBJECT_SYSTEMD_UNIT")?,
            reason: self.parse("REASON")?,
            ended_by: self.one("HOLDFAST_ENDED_BY")?.to_owned(),
        })
    }

    fn note(self) -> Result<Note, Damaged> {
        Ok(Note {
            module: self.one("HOLDFAST_MODULE")?.to_owned(),
            resource: self.key("HOLDFAST_RESOURCE")?,
            note: self.one("HOLDFAST_NOTE")?.to_owned(),
            sentence: self.sentence()?,
            unit: self.maybe("OBJECT_SYSTEMD_UNIT")?,
        })
    }

    fn finished(self) -> Result<Finished, Damaged> {
        let result = self.one("HOLDFAST_RESULT")?;
        let result = ReportResult::ALL.into_iter().find(|known| known.token() == result);
        Ok(Finished {
            result: result.ok_or(Damaged("HOLDFAST_RESULT"))?,
            counts: Counts {
                total: self.parse("HOLDFAST_TOTAL")?,
                applied: self.parse("HOLDFAST_APPLIED")?,
                changed: self.parse("HOLDFAST_CHANGED")?,
                unchanged: self.parse("HOLDFAST_UNCHANGED")?,
                held: self.parse("HOLDFAST_HELD")?,
                failed: self.parse("HOLDFAST_FAILED")?,
                not_attempted: self.parse("HOLDFAST_NOT_ATTEMPTED")?,
                removed: self.parse("HOLDFAST_REMOVED")?,
            },
            newly_held: self.parse("HOLDFAST_NEWLY_HELD")?,
            entries: self.parse("HOLDFAST_ENTRIES")?,
            started_usec: self.parse("HOLDFAST_STARTED_USEC")?,
            duration_usec: self.parse("HOLDFAST_DURATION_USEC")?,
        })
    }
}
