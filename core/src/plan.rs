//! The heart: (Desired, Observed, Ledger) -> Plan of steps and holds. A pure function.

mod change;
mod closure;
mod files;
mod judge;
mod steps;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::desired::{Desired, Need};
use crate::hold::Hold;
use crate::ledger::Ledger;
use crate::observed::Observed;
use crate::resource::ResourceKey;
use crate::step::Step;

pub use files::content_sha256;
pub(crate) use files::files_as_wanted;

/// What a plan is made from.
#[derive(Debug, Clone, Copy)]
pub struct Given<'a> {
    /// What the modules ask for: always all of them, since needs and claims cross modules.
    pub desired: &'a Desired,
    /// What the host has.
    pub observed: &'a Observed,
    /// What is ours.
    pub ledger: &'a Ledger,
    /// Units that foreign Quadlet files make: unit name to those files.
    pub foreign_quadlets: &'a BTreeMap<String, Vec<String>>,
    /// Which modules are asked for.
    pub scope: &'a Scope,
}

/// Which modules are asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Scope {
    /// All.
    All,
    /// These, by directory name.
    Only(BTreeSet<String>),
}

impl Scope {
    /// The modules that were named; no names mean all.
    #[must_use]
    pub fn of(names: &[String]) -> Self {
        if names.is_empty() { Self::All } else { Self::Only(names.iter().cloned().collect()) }
    }

    /// True when a module is asked for.
    #[must_use]
    pub fn has(&self, module: &str) -> bool {
        match self {
            Self::All => true,
            Self::Only(names) => names.contains(module),
        }
    }
}

/// What will be done, what will not, and why.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// What will be done, in this order.
    pub steps: Vec<Step>,
    /// What is held.
    pub holds: Vec<Hold>,
    /// Every resource that is not held, by module: what happens to it.
    pub resources: BTreeMap<String, BTreeMap<ResourceKey, Planned>>,
    /// Worth knowing, changes nothing.
    pub notes: Vec<Note>,
}

/// What happens to one resource.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Planned {
    /// The verb.
    pub change: Change,
    /// Its unit.
    pub unit: Option<String>,
    /// Its image, as the module writes it.
    pub image: Option<String>,
    /// Why, where it is not unchanged: a clause.
    pub because: String,
    /// Podman's name of what it makes.
    pub object: Option<String>,
}

/// The verbs of a plan.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Change {
    /// It is as asked for.
    #[default]
    Unchanged,
    /// It is made.
    Create,
    /// It is changed in place.
    Change,
    /// Its container is replaced.
    Recreate,
    /// It is removed: its file is gone from the module.
    Remove,
}

/// A note on a resource.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Note {
    /// The module.
    pub module: String,
    /// The resource.
    pub resource: ResourceKey,
    /// The token, as HOLDFAST_NOTE=.
    pub note: String,
    /// The sentence.
    pub sentence: String,
    /// The unit, if one is meant.
    pub unit: Option<String>,
}

/// A resource of any module, by module and key.
pub(crate) type At = (String, ResourceKey);

/// Decides what to do and what to hold. The same input gives the same plan, byte for byte.
#[must_use]
pub fn plan(given: Given<'_>) -> Plan {
    let reasons = judge::own_reasons(given);
    let holds = closure::close(given, &reasons);
    let held: BTreeSet<At> = holds.iter().map(|hold| (hold.module.clone(), hold.resource.clone())).collect();
    let changes = change::changes(given, &held);
    let steps = steps::steps(given, &held, &changes);
    let mut resources: BTreeMap<String, BTreeMap<ResourceKey, Planned>> = BTreeMap::new();
    let mut notes = Vec::new();
    for ((module, key), decided) in changes {
        if given.scope.has(&module) {
            notes.extend(decided.notes);
            if !decided.stays {
                resources.entry(module).or_default().insert(key, decided.planned);
            }
        }
    }
    notes.sort();
    Plan { steps, holds: holds.into_iter().filter(|hold| given.scope.has(&hold.module)).collect(), resources, notes }
}

/// The resources that a resource cannot do without.
fn needed(given: Given<'_>, at: &At) -> Vec<At> {
    let resource = given.desired.modules.get(&at.0).and_then(|desired| desired.resources.get(&at.1));
    let needs = resource.into_iter().flat_map(|resource| &resource.needs);
    needs
        .filter_map(|need| match need {
            Need::Resource { module, key } => Some((module.clone(), key.clone())),
            _ => None,
        })
        .collect()
}
