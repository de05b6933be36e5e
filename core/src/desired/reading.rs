//! The seam to the Quadlet reader: which texts it reads, for whom, and with which neighbours.

use crate::expand::{self, EnvFiles, HostFacts};
use crate::module::QuadletSource;
use crate::name::HostPath;
use crate::quadlet::QuadletFacts;
use crate::resource::Kind;
use crate::unitfile::UnitFile;

use super::Inputs;

/// Facts of one Quadlet file.
pub(super) fn facts(
    _input: &Inputs, _file_name: &str, _directory: &HostPath, _unit: &UnitFile, _kind: Kind, _siblings: &Siblings,
) -> QuadletFacts {
    QuadletFacts::default()
}

/// Facts as far as a file tells without a host: good enough for what travels with it.
pub(super) fn offline(_file_name: &str, _source: &QuadletSource) -> QuadletFacts {
    let _ = (HostFacts::default(), EnvFiles::new());
    QuadletFacts::default()
}

/// Other Quadlet files that a reference can mean.
pub(super) struct Siblings;

impl Siblings {
    pub fn of(_input: &Inputs) -> Self {
        Self
    }
}

/// The unit that Podman makes of a file, where its generator did not say.
pub(super) fn unit_name(_file_name: &str, _source: &QuadletSource) -> String {
    String::new()
}

/// What Podman calls the object of a Quadlet file that is no module's.
pub(super) fn foreign_name(_input: &Inputs, _file_name: &str) -> Option<String> {
    None
}

/// `[Service] EnvironmentFile=` of a unit, and whether it starts without the file.
pub(super) fn service_env_files(unit: &UnitFile, unit_name: &str, host: &HostFacts) -> Vec<(String, bool)> {
    expand::environment_files(unit, host, unit_name)
}

/// Those that a unit does not start without, as paths.
pub(super) fn required_env_files(unit: &UnitFile, unit_name: &str, host: &HostFacts) -> Vec<HostPath> {
    let files = service_env_files(unit, unit_name, host).into_iter().filter(|(_, optional)| !optional);
    files.filter_map(|(path, _)| HostPath::new(&path).ok()).collect()
}
