//! A report as journal entries, and back: a pure function in both directions, so that the journal is the only store.

mod messages;
mod rebuild;

use std::collections::BTreeMap;
use std::fmt::Display;

pub use self::messages::{COMMON, Message};
pub use self::rebuild::{Rebuilt, RebuiltState, Summary, rebuild, summaries};
use crate::hold::Reason;
use crate::plan::Note;
use crate::report::{
    Counts, Deployed, EntryOutcome, HeldEntry, HoldEnded, Report, ReportEntry, ReportResult, cut, escape,
};

/// The version of the fields, as HOLDFAST_SCHEMA=.
pub const SCHEMA: &str = "1";
/// SYSLOG_IDENTIFIER= of everything that holdfast writes.
pub const IDENTIFIER: &str = "holdfast";
/// The longest MESSAGE= in bytes; what is longer is cut there, and whole in a field of its own.
const MESSAGE_LIMIT: usize = 1536;
/// HELD_MODULE= of the finished entry stops here, so that the entry stays below 16 kB; each hold has its own.
const HELD_MODULES: usize = 32;

/// One journal entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// What kind of entry it is.
    pub message: Message,
    /// How loud it is.
    pub priority: Priority,
    /// MESSAGE=, escaped.
    pub text: String,
    /// All other fields but MESSAGE_ID=, PRIORITY= and SYSLOG_IDENTIFIER=, in order. Some repeat.
    pub fields: Vec<(&'static str, String)>,
}

/// PRIORITY=, as syslog(3) counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Priority {
    /// Something failed.
    Error = 3,
    /// Something needs a look.
    Warning = 4,
    /// Normal, but worth reading.
    Notice = 5,
    /// For completeness.
    Info = 6,
}

/// The fields of an entry as the journal gives them back: each with all its values.
pub type Fields = BTreeMap<String, Vec<String>>;

/// Which run of the agent an entry belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Run<'a> {
    /// The report's id: 32 hex digits.
    pub report: &'a str,
    /// apply, hold, unhold, …
    pub action: &'a str,
}

/// Who asked for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caller {
    /// The real user id.
    pub uid: u32,
    /// The audit login uid, none when unset.
    pub loginuid: Option<u32>,
    /// The command line, for people.
    pub command_line: String,
}

/// The answer of polkit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// The caller may.
    Allowed,
    /// The caller may not.
    Denied,
}

/// The first entry of a report, written before anything is done. An empty list of modules means all.
#[must_use]
pub fn started(run: Run<'_>, caller: &Caller, modules: &[String]) -> Record {
    let Caller { uid, loginuid, command_line } = caller;
    let who = if modules.is_empty() { "all modules".to_owned() } else { modules.join(", ") };
    let text = format!("{} of {who} started by uid {uid}: {command_line}", run.action);
    Record::new(Message::Started, Priority::Info, &text, run, 0)
        .with("HOLDFAST_CALLER_UID", uid)
        .with_some("HOLDFAST_LOGINUID", loginuid.as_ref())
        .with("HOLDFAST_COMMAND_LINE", cut(command_line, MESSAGE_LIMIT))
        .with_each("HOLDFAST_MODULE", modules.iter().take(HELD_MODULES))
}

/// That the caller was allowed or denied to do it, and by which polkit action.
#[must_use]
pub fn authorised(run: Run<'_>, seq: u32, uid: u32, polkit_action: &str, answer: Answer) -> Record {
    let answer = match answer {
        Answer::Allowed => "allowed",
        Answer::Denied => "denied",
    };
    let text = format!("{} by uid {uid} is {answer} ({polkit_action})", run.action);
    Record::new(Message::Authorised, Priority::Notice, &text, run, seq)
        .with("HOLDFAST_CALLER_UID", uid)
        .with("HOLDFAST_POLKIT_ACTION", polkit_action)
        .with("HOLDFAST_ANSWER", answer)
}

/// That the report ends here without having done what was asked: `because` says why.
#[must_use]
pub fn refused(run: Run<'_>, seq: u32, because: &str, reason: Option<Reason>, hint: Option<&str>) -> Record {
    Record::new(Message::Refused, Priority::Warning, &format!("{} is refused: {because}", run.action), run, seq)
        .with("HOLDFAST_ERROR", cut(because, MESSAGE_LIMIT))
        .with_some("REASON", reason.as_ref())
        .with_some("HOLDFAST_HINT", hint.map(|hint| cut(hint, MESSAGE_LIMIT)))
}

/// That the report was cut off: written by the run itself when it cannot go on, or by the next one that finds it.
#[must_use]
pub fn interrupted(run: Run<'_>, seq: u32, because: &str) -> Record {
    Record::new(Message::Interrupted, Priority::Warning, &format!("{} was cut off: {because}", run.action), run, seq)
        .with("HOLDFAST_ERROR", cut(because, MESSAGE_LIMIT))
}

/// All further entries of a report: one for each resource that is not unchanged, each hold that ended, each note, and
/// the finished one. `first` is the number of entries that were written before. What is longer than an entry may be is
/// cut as [`Report::bounded`] does.
#[must_use]
pub fn records(report: &Report, first: u32) -> Vec<Record> {
    let report = &report.clone().bounded();
    let Report { report: id, action, result, counts, started_usec, duration_usec, resources, notes, newly_held, ended } =
        report;
    let run = Run { report: id, action };
    let mut records = Vec::with_capacity(resources.len() + ended.len() + notes.len() + 1);
    let mut seq = first..;
    for (entry, seq) in resources.iter().zip(&mut seq) {
        records.push(resource(run, seq, entry));
    }
    for (ended, seq) in ended.iter().zip(&mut seq) {
        records.push(hold_ended(run, seq, ended));
    }
    for (note, seq) in notes.iter().zip(&mut seq) {
        records.push(self::note(run, seq, note));
    }
    let Counts { total, applied, changed, unchanged, held, failed, not_attempted, removed } = counts;
    let quiet = *changed + *failed + *not_attempted + *removed + *newly_held == 0 && ended.is_empty();
    // `hold` and `unhold` change something, although no resource.
    let quiet = quiet && action == "apply" && matches!(result, ReportResult::Done | ReportResult::Held);
    let priority = if quiet { Priority::Info } else { Priority::Notice };
    let last = seq.start;
    let held_modules: std::collections::BTreeSet<&str> =
        report.held().map(|(entry, _)| entry.module.as_str()).collect();
    records.push(
        Record::new(Message::Finished, priority, &report.sentence(), run, last)
            .with("HOLDFAST_RESULT", result.token())
            .with("HOLDFAST_TOTAL", total)
            .with("HOLDFAST_APPLIED", applied)
            .with("HOLDFAST_CHANGED", changed)
            .with("HOLDFAST_UNCHANGED", unchanged)
            .with("HOLDFAST_HELD", held)
            .with("HOLDFAST_FAILED", failed)
            .with("HOLDFAST_NOT_ATTEMPTED", not_attempted)
            .with("HOLDFAST_REMOVED", removed)
            .with("HOLDFAST_NEWLY_HELD", newly_held)
            .with("HOLDFAST_ENTRIES", last + 1)
            .with("HOLDFAST_STARTED_USEC", started_usec)
            .with("HOLDFAST_DURATION_USEC", duration_usec)
            .with_each("HELD_MODULE", held_modules.into_iter().take(HELD_MODULES)),
    );
    records
}

fn resource(run: Run<'_>, seq: u32, entry: &ReportEntry) -> Record {
    let ReportEntry { module, resource, unit, outcome } = entry;
    let sentence = entry.sentence();
    let record = |message, priority| {
        Record::new(message, priority, &sentence, run, seq)
            .with("HOLDFAST_MODULE", module)
            .with("HOLDFAST_RESOURCE", resource)
            .with("HOLDFAST_KIND", resource.kind)
            .with("HOLDFAST_OUTCOME", outcome.token())
            .with_some("OBJECT_SYSTEMD_UNIT", unit.as_ref())
    };
    match outcome {
        EntryOutcome::Created(what)
        | EntryOutcome::Changed(what)
        | EntryOutcome::Recreated(what)
        | EntryOutcome::Removed(what) => {
            let Deployed { image, digest } = what;
            record(Message::Changed, Priority::Info)
                .with_some("HOLDFAST_IMAGE", image.as_ref())
                .with_some("HOLDFAST_DIGEST", digest.as_ref())
        }
        EntryOutcome::Held(what) => {
            let HeldEntry { reason, also, cause, sentence, hint, since_usec, waiting_on_take, known } = what;
            record(Message::Held, if *known { Priority::Info } else { Priority::Notice })
                .with("HELD_MODULE", module)
                .with("REASON", reason)
                .with_each("HOLDFAST_ALSO", also)
                .with("CAUSE", &cause.resource)
                .with("CAUSE_MODULE", &cause.module)
                .with_sentence(sentence)
                .with_some("HOLDFAST_HINT", hint.as_ref())
                .with("HOLDFAST_SINCE", since_usec)
                .with("HOLDFAST_WAITING_ON_TAKE", if *waiting_on_take { "yes" } else { "no" })
        }
        EntryOutcome::Failed { step, error, errno, exit_status } => record(Message::Failed, Priority::Error)
            .with("HOLDFAST_STEP", step)
            .with("HOLDFAST_ERROR", error)
            .with_some("ERRNO", errno.as_ref())
            .with_some("EXIT_STATUS", exit_status.as_ref()),
        EntryOutcome::NotAttempted { after } => {
            record(Message::NotAttempted, Priority::Warning).with("HOLDFAST_AFTER", after)
        }
    }
}

fn hold_ended(run: Run<'_>, seq: u32, ended: &HoldEnded) -> Record {
    let HoldEnded { module, resource, unit, reason, ended_by } = ended;
    Record::new(Message::HoldEnded, Priority::Notice, &ended.sentence(), run, seq)
        .with("HOLDFAST_MODULE", module)
        .with("HELD_MODULE", module)
        .with("HOLDFAST_RESOURCE", resource)
        .with("HOLDFAST_KIND", resource.kind)
        .with("REASON", reason)
        .with("HOLDFAST_ENDED_BY", ended_by)
        .with_some("OBJECT_SYSTEMD_UNIT", unit.as_ref())
}

fn note(run: Run<'_>, seq: u32, note: &Note) -> Record {
    let Note { module, resource, note, sentence, unit } = note;
    Record::new(Message::Note, Priority::Notice, sentence, run, seq)
        .with("HOLDFAST_MODULE", module)
        .with("HOLDFAST_RESOURCE", resource)
        .with("HOLDFAST_KIND", resource.kind)
        .with("HOLDFAST_NOTE", note)
        .with_sentence(sentence)
        .with_some("OBJECT_SYSTEMD_UNIT", unit.as_ref())
}

impl Record {
    fn new(message: Message, priority: Priority, text: &str, run: Run<'_>, seq: u32) -> Self {
        let text = cut(&escape(text), MESSAGE_LIMIT);
        Self { message, priority, text, fields: Vec::with_capacity(16) }
            .with("HOLDFAST_SCHEMA", SCHEMA)
            .with("HOLDFAST_REPORT_ID", run.report)
            .with("HOLDFAST_SEQ", seq)
            .with("HOLDFAST_ACTION", run.action)
    }

    fn with(mut self, field: &'static str, value: impl Display) -> Self {
        self.fields.push((field, value.to_string()));
        self
    }

    fn with_some(self, field: &'static str, value: Option<impl Display>) -> Self {
        self.with_each(field, value)
    }

    fn with_each(self, field: &'static str, values: impl IntoIterator<Item = impl Display>) -> Self {
        values.into_iter().fold(self, |record, value| record.with(field, value))
    }

    /// The sentence as it was, only where MESSAGE= had to be escaped or cut.
    fn with_sentence(self, sentence: &str) -> Self {
        let differs = self.text != sentence;
        self.with_some("HOLDFAST_SENTENCE", differs.then_some(sentence))
    }

    /// The fields as the journal gives them back.
    #[must_use]
    pub fn to_fields(&self) -> Fields {
        let mut fields = Fields::new();
        let own = self.fields.iter().map(|(field, value)| (*field, value.clone()));
        let common = [
            ("MESSAGE", self.text.clone()),
            ("MESSAGE_ID", self.message.id().to_owned()),
            ("PRIORITY", (self.priority as u8).to_string()),
            ("SYSLOG_IDENTIFIER", IDENTIFIER.to_owned()),
        ];
        for (field, value) in common.into_iter().chain(own) {
            fields.entry(field.to_owned()).or_default().push(value);
        }
        fields
    }
}

#[cfg(test)]
mod tests;
