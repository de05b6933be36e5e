//! A report as the JSON object of `report --json`. Strings in it are as they are, not escaped for a terminal.

use serde_json::{Map, Value, json};

use super::{Counts, Deployed, EntryOutcome, HeldEntry, HoldEnded, Report, ReportEntry};
use crate::plan::Note;

impl Report {
    /// `{schema: 1, report, action, result, …, resources: […], notes: […], ended: […]}`; `resources` lists all but the
    /// unchanged, each with the same keys (null where they do not apply), and further ones by outcome.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let Self { report, action, result, counts, started_usec, duration_usec, resources, notes, newly_held, ended } =
            self;
        let Counts { total, applied, changed, unchanged, held, failed, not_attempted, removed } = counts;
        json!({
            "schema": 1,
            "report": report,
            "action": action,
            "result": result.token(),
            "total": total,
            "applied": applied,
            "changed": changed,
            "unchanged": unchanged,
            "held": held,
            "failed": failed,
            "not_attempted": not_attempted,
            "removed": removed,
            "newly_held": newly_held,
            "started_usec": started_usec,
            "duration_usec": duration_usec,
            "resources": resources.iter().map(resource).collect::<Vec<_>>(),
            "notes": notes.iter().map(note).collect::<Vec<_>>(),
            "ended": ended.iter().map(hold_ended).collect::<Vec<_>>(),
        })
    }
}

fn resource(entry: &ReportEntry) -> Value {
    let ReportEntry { module, resource, unit, outcome } = entry;
    let mut object = Map::new();
    let mut set = |key: &str, value: Value| object.insert(key.to_owned(), value);
    set("module", json!(module));
    set("resource", json!(resource));
    set("kind", json!(resource.kind));
    set("unit", json!(unit));
    set("outcome", json!(outcome.token()));
    for key in ["reason", "also", "cause", "cause_module"] {
        set(key, Value::Null);
    }
    set("sentence", json!(entry.sentence()));
    set("hint", Value::Null);
    match outcome {
        EntryOutcome::Created(what)
        | EntryOutcome::Changed(what)
        | EntryOutcome::Recreated(what)
        | EntryOutcome::Removed(what) => {
            let Deployed { image, digest } = what;
            set("image", json!(image));
            set("digest", json!(digest));
        }
        EntryOutcome::Held(what) => {
            let HeldEntry { reason, also, cause, sentence: _, hint, since_usec, waiting_on_take, known } = what;
            set("reason", json!(reason));
            set("also", json!(also));
            set("cause", json!(cause.resource));
            set("cause_module", json!(cause.module));
            set("hint", json!(hint));
            set("since_usec", json!(since_usec));
            set("waiting_on_take", json!(waiting_on_take));
            set("known", json!(known));
        }
        EntryOutcome::Failed { step, error, errno, exit_status } => {
            set("step", json!(step));
            set("error", json!(error));
            set("errno", json!(errno));
            set("exit_status", json!(exit_status));
        }
        EntryOutcome::NotAttempted { after } => {
            set("after", json!(after));
        }
    }
    Value::Object(object)
}

fn note(note: &Note) -> Value {
    let Note { module, resource, note, sentence, unit } = note;
    json!({ "module": module, "resource": resource, "note": note, "sentence": sentence, "unit": unit })
}

fn hold_ended(ended: &HoldEnded) -> Value {
    let HoldEnded { module, resource, unit, reason, ended_by } = ended;
    json!({ "module": module, "resource": resource, "unit": unit, "reason": reason, "ended_by": ended_by })
}
