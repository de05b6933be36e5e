//! What Podman's own generator says about a tree of Quadlet files: the authority on what a unit will run.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// One run of the generator over the host's Quadlet directories with the wanted files of the modules in their places.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Generated {
    /// Every unit that it printed, in its order. A name may occur twice: systemd would get the last one.
    pub units: Vec<GeneratedUnit>,
    /// What it said, with the file that each line is about where it names one.
    pub messages: Vec<GeneratorMessage>,
}

/// One unit that the generator printed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GeneratedUnit {
    /// `web.service`.
    pub name: String,
    /// The Quadlet file that it comes from, as a path on the host.
    pub source: String,
    /// The unit's text; its `[X-Container]` (or `[X-Volume]`, …) section is the merged Quadlet section.
    pub text: String,
}

/// One complaint of the generator.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GeneratorMessage {
    /// The Quadlet file that it names, as a path on the host.
    pub file: Option<String>,
    /// Its text, without the process prefix.
    pub text: String,
}

impl Generated {
    /// All units that come from one file, by its path on the host.
    pub fn of_source<'a>(&'a self, source: &'a str) -> impl Iterator<Item = &'a GeneratedUnit> {
        self.units.iter().filter(move |unit| unit.source == source)
    }

    /// The sources of each unit name, in the generator's order.
    #[must_use]
    pub fn by_name(&self) -> BTreeMap<&str, Vec<&GeneratedUnit>> {
        let mut names: BTreeMap<&str, Vec<&GeneratedUnit>> = BTreeMap::new();
        for unit in &self.units {
            names.entry(&unit.name).or_default().push(unit);
        }
        names
    }
}
