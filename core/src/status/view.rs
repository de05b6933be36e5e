//! One look as everybody may see it: what the agent keeps, and hands out through its doors.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::changes::{ChangeRow, Changes, StepRow};
use super::holds::{HoldSince, Holds};
use super::{LastApply, ModuleStatus, SCHEMA, Sources, Status};
use crate::hold::Reason;
use crate::plan::{Change, Note};
use crate::report::escape;

/// A look. It names no secret, no environment value and no file's content.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct View {
    /// [`SCHEMA`].
    pub schema: u32,
    /// When the host was looked at: microseconds since 1970; 0 for never.
    pub observed_usec: u64,
    /// The last apply.
    pub last: Option<LastSeen>,
    /// All modules, by name.
    pub modules: BTreeMap<String, ModuleView>,
    /// Everything that an apply would change.
    pub changes: Vec<ChangeRow>,
    /// What it would do.
    pub steps: Vec<StepRow>,
    /// Everything that is held.
    pub holds: Vec<HoldSince>,
    /// Worth knowing.
    pub notes: Vec<Note>,
}

/// The last apply, by its report.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LastSeen {
    /// The report's id.
    pub report: String,
    /// When it ended: microseconds since 1970.
    pub finished_usec: u64,
}

/// A module in a look.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModuleView {
    /// How it is.
    #[serde(flatten)]
    pub status: ModuleStatus,
    /// How many of its resources are as asked for.
    pub unchanged: u32,
    /// The units that its resources become.
    pub units: Vec<String>,
    /// The operator's note, if the operator holds it.
    pub operator_note: Option<String>,
}

impl View {
    /// What a look at all modules says.
    #[must_use]
    pub fn of(sources: &Sources<'_>, last: Option<&LastApply>) -> Self {
        let Sources { desired, observed: _, plan, ledger } = sources;
        let status = Status::of(sources, last.cloned());
        let module = |status: ModuleStatus| {
            let planned = plan.resources.get(&status.name).into_iter().flatten();
            let unchanged = planned.filter(|(_, planned)| planned.change == Change::Unchanged).count();
            let resources = desired.modules.get(&status.name).into_iter().flat_map(|module| module.resources.values());
            let mut units: Vec<String> = resources.filter_map(|resource| resource.unit.clone()).collect();
            units.sort();
            let entry = ledger.modules.iter().find(|(name, _)| name.as_str() == status.name).map(|(_, entry)| entry);
            let operator_note = entry.and_then(|entry| entry.operator_hold.as_ref()).map(|hold| hold.note.clone());
            let unchanged = u32::try_from(unchanged).unwrap_or(u32::MAX);
            (status.name.clone(), ModuleView { status, unchanged, units, operator_note })
        };
        let all = plan.resources.iter();
        let all =
            all.flat_map(|(module, resources)| resources.iter().map(move |(key, planned)| (module, key, planned)));
        Self {
            schema: SCHEMA,
            observed_usec: status.observed_usec,
            last: last.map(LastSeen::from),
            modules: status.modules.into_iter().map(module).collect(),
            changes: all.filter_map(|(module, key, planned)| ChangeRow::of(module, key, planned)).collect(),
            steps: plan.steps.iter().map(StepRow::from).collect(),
            holds: Holds::of(sources).holds,
            notes: plan.notes.clone(),
        }
    }

    /// Only what concerns some modules; an empty list means all.
    #[must_use]
    pub fn only(mut self, modules: &[String]) -> Self {
        if modules.is_empty() {
            return self;
        }
        let asked = |module: &String| modules.contains(module);
        self.modules.retain(|name, _| asked(name));
        self.changes.retain(|row| asked(&row.module));
        self.steps.retain(|row| asked(&row.module));
        self.holds.retain(|row| asked(&row.hold.module));
        self.notes.retain(|note| asked(&note.module));
        self
    }

    /// Whether another look found the same: only when it was, and what the last apply was, may differ.
    #[must_use]
    pub fn says_the_same(&self, other: &Self) -> bool {
        let Self { schema, observed_usec: _, last: _, modules, changes, steps, holds, notes } = self;
        *schema == other.schema
            && *modules == other.modules
            && *changes == other.changes
            && *steps == other.steps
            && *holds == other.holds
            && *notes == other.notes
    }

    /// What is held: of a module, for a reason, or all.
    pub fn held(&self, module: Option<&str>, reason: Option<Reason>) -> impl Iterator<Item = &HoldSince> {
        let of = move |held: &&HoldSince| module.is_none_or(|module| held.hold.module == module);
        self.holds.iter().filter(of).filter(move |held| reason.is_none_or(|reason| held.hold.reason == reason))
    }

    /// How the host is.
    #[must_use]
    pub fn status(&self) -> Status {
        let last = self.last.clone().map(|LastSeen { report, finished_usec }| LastApply {
            report,
            finished_usec,
            failed: BTreeMap::new(),
        });
        Status::new(self.observed_usec, last, self.modules.values().map(|module| module.status.clone()).collect())
    }

    /// What is held.
    #[must_use]
    pub fn holds(&self) -> Holds {
        Holds { observed_usec: self.observed_usec, holds: self.holds.clone() }
    }

    /// What an apply would do.
    #[must_use]
    pub fn changes(&self) -> Changes {
        Changes {
            observed_usec: self.observed_usec,
            changes: self.changes.clone(),
            unchanged: self.modules.values().map(|module| module.unchanged).sum(),
            steps: self.steps.clone(),
            holds: self.holds(),
            notes: self.notes.clone(),
        }
    }

    /// "330 applied, 16 held: route-proxy 13, photos 3": the host in a line, for STATUS=.
    #[must_use]
    pub fn words(&self) -> String {
        if self.observed_usec == 0 {
            return "not looked at the host yet".to_owned();
        }
        let (mut applied, mut failed, mut held) = (0, 0, Vec::new());
        for ModuleView { status, .. } in self.modules.values() {
            applied += status.counts.applied;
            failed += status.counts.failed;
            held.extend((status.counts.held > 0).then_some((status.counts.held, status.name.as_str())));
        }
        held.sort_by_key(|(number, name)| (std::cmp::Reverse(*number), *name));
        let sum: u32 = held.iter().map(|(number, _)| number).sum();
        let mut words = format!("{applied} applied");
        if failed > 0 {
            words += &format!(", {failed} failed");
        }
        if sum > 0 {
            let names: Vec<String> = held.iter().map(|(number, name)| format!("{} {number}", escape(name))).collect();
            words += &format!(", {sum} held: {}", names.join(", "));
        }
        words
    }

    /// What [`View::modules`] is in JSON: a row each.
    ///
    /// # Errors
    /// None that a view can have.
    pub fn module_rows(&self) -> Result<Vec<Value>, serde_json::Error> {
        self.modules.values().map(serde_json::to_value).collect()
    }
}

impl From<&LastApply> for LastSeen {
    fn from(last: &LastApply) -> Self {
        let LastApply { report, finished_usec, failed: _ } = last;
        Self { report: report.clone(), finished_usec: *finished_usec }
    }
}
