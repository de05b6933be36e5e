//! What the next apply would do, as `holdfast plan` tells it: a pure view of a plan.

use std::fmt;

use serde_json::{Value, json};

use super::holds::Holds;
use super::{Dress, SCHEMA, Sources};
use crate::plan::{Change, Note, Planned};
use crate::report::escape;
use crate::resource::ResourceKey;
use crate::step::Step;

/// The changes and holds of a look.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Changes {
    /// When the host was looked at: microseconds since 1970.
    pub observed_usec: u64,
    /// Everything that is not unchanged.
    pub changes: Vec<(String, ResourceKey, Planned)>,
    /// How many resources are as asked for.
    pub unchanged: usize,
    /// What would be done, in this order.
    pub steps: Vec<Step>,
    /// What is held.
    pub holds: Holds,
    /// Worth knowing.
    pub notes: Vec<Note>,
}

impl Changes {
    /// The changes of some modules; an empty list means all.
    #[must_use]
    pub fn of(sources: &Sources<'_>, modules: &[String]) -> Self {
        let asked = |module: &String| modules.is_empty() || modules.contains(module);
        let plan = sources.plan;
        let all = plan.resources.iter().filter(|(module, _)| asked(module));
        let all =
            all.flat_map(|(module, resources)| resources.iter().map(move |(key, planned)| (module, key, planned)));
        let (same, other): (Vec<_>, Vec<_>) = all.partition(|(_, _, planned)| planned.change == Change::Unchanged);
        Self {
            observed_usec: sources.observed.taken_usec,
            changes: other.into_iter().map(|(m, key, planned)| (m.clone(), key.clone(), planned.clone())).collect(),
            unchanged: same.len(),
            steps: plan.steps.iter().filter(|step| asked(&step.module)).cloned().collect(),
            holds: Holds::of(sources, modules, None),
            notes: plan.notes.iter().filter(|note| asked(&note.module)).cloned().collect(),
        }
    }

    /// `plan --json`.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let Self { observed_usec, changes, unchanged, steps, holds, notes } = self;
        let changes: Vec<Value> = changes.iter().map(change_json).collect();
        let steps: Vec<Value> = steps.iter().map(step_json).collect();
        let holds = holds.to_json();
        let notes: Vec<Value> = notes.iter().map(note_json).collect();
        json!({
            "schema": SCHEMA,
            "observed_usec": observed_usec,
            "unchanged": unchanged,
            "changes": changes,
            "steps": steps,
            "holds": holds["holds"],
            "notes": notes,
        })
    }

    /// The text for a terminal.
    #[must_use]
    pub fn text<'a>(&'a self, dress: &'a Dress<'a>) -> impl fmt::Display + 'a {
        Text { changes: self, dress }
    }

    fn count(&self, change: Change) -> usize {
        self.changes.iter().filter(|(_, _, planned)| planned.change == change).count()
    }
}

/// The verb in front of a resource: "create container/web".
fn verb(change: Change) -> &'static str {
    match change {
        Change::Unchanged => "unchanged",
        Change::Create => "create",
        Change::Change => "change",
        Change::Recreate => "recreate",
        Change::Remove => "remove",
    }
}

fn change_json((module, resource, planned): &(String, ResourceKey, Planned)) -> Value {
    let Planned { change, unit, image, because, object } = planned;
    json!({
        "module": module, "resource": resource, "kind": resource.kind, "unit": unit, "object": object,
        "change": change, "image": image, "because": because,
    })
}

/// A step without its content: no file's text leaves by this door.
fn step_json(step: &Step) -> Value {
    let Step { module, resource, needs: _, act } = step;
    json!({ "module": module, "resource": resource, "step": act.to_string() })
}

fn note_json(note: &Note) -> Value {
    let Note { module, resource, note, sentence, unit: _ } = note;
    json!({ "module": module, "resource": resource, "note": note, "sentence": sentence })
}

struct Text<'a> {
    changes: &'a Changes,
    dress: &'a Dress<'a>,
}

impl fmt::Display for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Changes { observed_usec: _, changes, unchanged, steps: _, holds, notes } = self.changes;
        let numbers = [Change::Create, Change::Change, Change::Recreate, Change::Remove];
        let numbers = numbers.map(|change| format!("{} to {}", self.changes.count(change), verb(change)));
        writeln!(f, "plan: {}, {unchanged} unchanged, {} held", numbers.join(", "), holds.holds.len())?;
        let module_width = changes.iter().map(|(module, _, _)| module.len()).max().unwrap_or_default();
        let key_width = changes.iter().map(|(_, key, _)| key.to_string().chars().count()).max().unwrap_or_default();
        for (module, key, planned) in changes {
            let key = key.to_string();
            let (module, key, because) = (escape(module), escape(&key), escape(&planned.because));
            let verb = verb(planned.change);
            writeln!(f, "  {module:<module_width$}  {verb:<8}  {key:<key_width$}  {because}")?;
        }
        for note in notes {
            writeln!(f, "note: {}: {}", escape(&note.module), escape(&note.sentence))?;
        }
        if !holds.holds.is_empty() {
            write!(f, "{}", holds.text(self.dress))?;
        }
        Ok(())
    }
}
