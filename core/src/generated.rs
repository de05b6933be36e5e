//! What Podman's own generator says about a tree of Quadlet files: the authority on what a unit will run.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::unitfile::UnitFile;

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
}

/// The same with each text read, once: everything that looks at a unit looks at this.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Printed {
    /// Every unit, in the generator's order.
    pub units: Vec<PrintedUnit>,
    /// What it said.
    pub messages: Vec<GeneratorMessage>,
    /// Which units come from files of a name.
    files: BTreeMap<String, Vec<usize>>,
}

/// One unit that the generator printed, read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PrintedUnit {
    /// `web.service`.
    pub name: String,
    /// The Quadlet file that it comes from, as a path on the host.
    pub source: String,
    /// The merged file: its `[X-Container]` is `[Container]` again, with all drop-ins. None for a text that is no unit.
    pub merged: Option<UnitFile>,
}

impl From<Generated> for Printed {
    fn from(generated: Generated) -> Self {
        let mut files: BTreeMap<String, Vec<usize>> = BTreeMap::new();
        let mut units = Vec::with_capacity(generated.units.len());
        for (at, GeneratedUnit { name, source, text }) in generated.units.into_iter().enumerate() {
            let file_name = source.rsplit('/').next().unwrap_or_default();
            files.entry(file_name.to_owned()).or_default().push(at);
            units.push(PrintedUnit { name, source, merged: merged(&text) });
        }
        Self { units, messages: generated.messages, files }
    }
}

impl Printed {
    /// All units that come from files of a name, wherever they lie.
    pub fn of_name(&self, file_name: &str) -> impl DoubleEndedIterator<Item = &PrintedUnit> {
        self.files.get(file_name).into_iter().flatten().filter_map(|at| self.units.get(*at))
    }

    /// All units that come from one file, by its path on the host.
    pub fn of_source<'a>(&'a self, source: &str) -> impl DoubleEndedIterator<Item = &'a PrintedUnit> {
        self.of_name(source.rsplit('/').next().unwrap_or_default()).filter(move |unit| unit.source == source)
    }

    /// Of the files of each name the first that could be read: Podman reads one file of a name.
    pub fn firsts(&self) -> impl Iterator<Item = (&str, &UnitFile)> {
        self.files
            .keys()
            .filter_map(|name| Some((name.as_str(), self.of_name(name).find_map(|unit| unit.merged.as_ref())?)))
    }
}

/// The merged text that the generator printed: its `[X-Container]` is the Quadlet section with all drop-ins.
fn merged(text: &str) -> Option<UnitFile> {
    let mut unit = UnitFile::parse(text).ok()?;
    for section in unit.entries.iter_mut().map(|entry| &mut entry.section).chain(&mut unit.sections) {
        if section.starts_with("X-") {
            section.drain(.."X-".len());
        }
    }
    Some(unit)
}
