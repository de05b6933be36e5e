//! The seam to the Quadlet reader: which texts it reads, for whom, and with which neighbours.

use std::collections::BTreeMap;

use crate::expand::{self, EnvFiles, HostFacts};
use crate::generated::Printed;
use crate::module::{Module, QuadletSource};
use crate::name::HostPath;
use crate::quadlet::{self, QuadletFacts};
use crate::resource::Kind;
use crate::unitfile::{Entry, UnitFile};

use super::{Inputs, Need};

/// All Quadlet files of the host by name: Podman reads one of a name, and it may be foreign.
pub(super) struct Siblings<'a>(BTreeMap<&'a str, &'a UnitFile>);

impl<'a> Siblings<'a> {
    /// What the generator printed, and what it dropped as its module writes it.
    pub fn of(modules: &'a [Module], printed: &'a Printed) -> Self {
        let mut files: BTreeMap<&str, &UnitFile> = printed.firsts().collect();
        for (name, sources) in modules.iter().flat_map(|module| &module.quadlets) {
            if let Some(source) = sources.first() {
                files.entry(name).or_insert(&source.parsed);
            }
        }
        Self(files)
    }

    fn get(&self, file_name: &str) -> Option<&'a UnitFile> {
        self.0.get(file_name).copied()
    }

    /// What references to networks and containers of Quadlet files come down to if those are outside of the modules.
    pub fn foreign(&self, facts: &QuadletFacts) -> BTreeMap<String, Need> {
        facts.files.iter().filter_map(|file_name| Some((file_name.clone(), self.need(file_name)?))).collect()
    }

    fn need(&self, file_name: &str) -> Option<Need> {
        let need = match Kind::of_quadlet(file_name)? {
            Kind::Network => Need::Network,
            Kind::Container => Need::Container,
            _ => return None,
        };
        Some(need(quadlet::object_name(Kind::of_quadlet(file_name)?, file_name, self.0.get(file_name)?)?))
    }
}

/// The facts of a text that stands for a module's Quadlet file.
pub(super) fn facts(
    input: &Inputs, file_name: &str, directory: &HostPath, kind: Kind, unit: &UnitFile, siblings: &Siblings,
) -> QuadletFacts {
    let facts = quadlet::read(kind, file_name, directory, unit, input.host, input.env, &|name| siblings.get(name));
    let starts_with_pod = kind == Kind::Container && unit.boolean("Container", "StartWithPod") != Some(false);
    QuadletFacts { starts_with_pod, ..facts }
}

/// `Yaml=` of a `.kube` file, as written.
pub(super) fn kube_yaml(unit: &UnitFile) -> Option<&str> {
    unit.last("Kube", "Yaml")
}

/// The facts that a file tells without a host: good enough for what travels with it.
pub(super) fn offline_facts(file_name: &str, source: &QuadletSource) -> QuadletFacts {
    let (host, env) = (HostFacts::default(), EnvFiles::new());
    quadlet::read(source.kind, file_name, &HostPath::root(), &source.parsed, &host, &env, &|_| None)
}

/// Gives the assignments the lines on which the module has them; 0 where the generator or an operator's drop-in brought
/// them.
pub(super) fn with_lines_of(unit: &UnitFile, own: &UnitFile) -> UnitFile {
    let mut unit = unit.clone();
    for entry in &mut unit.entries {
        let same = |other: &&Entry| {
            other.section == entry.section && other.key == entry.key && other.value.trim_end() == entry.value.trim_end()
        };
        entry.line = own.entries.iter().find(same).map_or(0, |other| other.line);
    }
    unit
}

/// The unit that Podman makes of a file, where its generator did not say.
pub(super) fn unit_name(file_name: &str, source: &QuadletSource) -> String {
    quadlet::unit_name(source.kind, file_name, &source.parsed)
}

/// `[Service] EnvironmentFile=` without `-`: files without which systemd does not start the unit.
pub(super) fn required_env_files(unit: &UnitFile, unit_name: &str, host: &HostFacts) -> Vec<HostPath> {
    let files = expand::environment_files(unit, host, unit_name).into_iter().filter(|(_, optional)| !optional);
    files.filter_map(|(path, _)| HostPath::new(&path).ok()).collect()
}
