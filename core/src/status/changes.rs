//! What the next apply would do, as `holdfast plan` tells it: a pure view of a plan.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::holds::Holds;
use super::{Dress, SCHEMA};
use crate::plan::{Change, Note, Planned};
use crate::report::escape;
use crate::resource::{Kind, ResourceKey};
use crate::step::Step;

/// The changes and holds of a look.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Changes {
    /// When the host was looked at: microseconds since 1970.
    pub observed_usec: u64,
    /// Everything that is not unchanged.
    pub changes: Vec<ChangeRow>,
    /// How many resources are as asked for.
    pub unchanged: u32,
    /// What would be done, in this order.
    pub steps: Vec<StepRow>,
    /// What is held.
    pub holds: Holds,
    /// Worth knowing.
    pub notes: Vec<Note>,
}

/// What happens to one resource. In JSON, a row of `plan --json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangeRow {
    /// Its module.
    pub module: String,
    /// The resource.
    pub resource: ResourceKey,
    /// Its kind.
    pub kind: Kind,
    /// Its unit.
    pub unit: Option<String>,
    /// Podman's name of what it makes.
    pub object: Option<String>,
    /// The verb.
    pub change: Change,
    /// Its image, as the module writes it.
    pub image: Option<String>,
    /// Why: a clause.
    pub because: String,
}

/// One act that would be done, without its content: no file's text leaves by this door.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StepRow {
    /// The module that it is for.
    pub module: String,
    /// The resource that it is for.
    pub resource: ResourceKey,
    /// The act, in words.
    pub step: String,
}

impl From<&Step> for StepRow {
    fn from(step: &Step) -> Self {
        let Step { module, resource, needs: _, act } = step;
        Self { module: module.clone(), resource: resource.clone(), step: act.to_string() }
    }
}

impl ChangeRow {
    /// None for what is unchanged.
    pub(super) fn of(module: &str, resource: &ResourceKey, planned: &Planned) -> Option<Self> {
        let Planned { change, unit, image, because, object } = planned.clone();
        let (module, resource, kind) = (module.to_owned(), resource.clone(), resource.kind);
        (change != Change::Unchanged).then_some(Self { module, resource, kind, unit, object, change, image, because })
    }
}

impl Changes {
    /// `plan --json`.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let Self { observed_usec, changes, unchanged, steps, holds, notes } = self;
        let holds = holds.to_json();
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
        self.changes.iter().filter(|row| row.change == change).count()
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
        let module_width = changes.iter().map(|row| row.module.len()).max().unwrap_or_default();
        let key_width = changes.iter().map(|row| row.resource.to_string().chars().count()).max().unwrap_or_default();
        for ChangeRow { module, resource, kind: _, unit: _, object: _, change, image: _, because } in changes {
            let key = resource.to_string();
            let (module, key, because) = (escape(module), escape(&key), escape(because));
            let verb = verb(*change);
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
