//! The heart: (Desired, Observed, Ledger) -> Plan of steps and holds. A pure function.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::hold::Hold;
use crate::resource::ResourceKey;
use crate::step::Step;

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
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Change {
    /// It is as asked for.
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
