//! What is wrong or worth knowing in a module directory, without a host.

mod findings;
mod resources;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fmt;

use serde::Serialize;

use crate::expand::{EnvFiles, HostFacts};
use crate::kube;
use crate::module::{Content, Module, QuadletSource};
use crate::name::HostPath;
use crate::problem::{Problem, Severity};
use crate::quadlet::{self, Published, QuadletFacts};
use crate::resource::{Kind, ResourceKey};

/// The version of the report's shape.
pub const SCHEMA: u32 = 1;

/// What `holdfast lint` says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LintReport {
    /// [`SCHEMA`].
    pub schema: u32,
    /// The module's name.
    pub module: String,
    /// What is wrong, errors first.
    pub problems: Vec<Problem>,
    /// What the module asks for, as far as it is known without a host.
    pub resources: Vec<LintResource>,
}

/// One resource of a module.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LintResource {
    /// `kind/name`.
    pub resource: ResourceKey,
    /// The unit that runs it or makes it.
    pub unit: Option<String>,
    /// The file that asks for it.
    pub file: String,
    /// What Podman will call it.
    pub name: Option<String>,
    /// Its image as expanded.
    pub image: Option<String>,
    /// What it mounts.
    pub mounts: Vec<LintMount>,
    /// What it publishes.
    pub ports: Vec<Published>,
    /// The networks it joins, by Podman's names.
    pub networks: Vec<String>,
    /// The volumes it uses, by Podman's names.
    pub volumes: Vec<String>,
    /// The Podman secrets it uses.
    pub secrets: Vec<String>,
    /// The environment files that Podman reads for it.
    pub env_files: Vec<HostPath>,
    /// The units that it cannot do without.
    pub requires: Vec<String>,
}

/// One mount of a resource.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LintMount {
    /// bind, volume, anonymous, tmpfs, image, other.
    #[serde(rename = "type")]
    pub kind: quadlet::MountType,
    /// Host path, volume or image.
    pub source: String,
    /// Where it is mounted.
    pub target: String,
    /// True for `ro`.
    pub read_only: bool,
    /// own, host, volume.
    pub owner: &'static str,
}

impl LintReport {
    /// The worst of all problems; none when there is no problem.
    #[must_use]
    pub fn worst(&self) -> Option<Severity> {
        self.problems.iter().map(|problem| problem.severity).min()
    }
}

/// Looks through a module that was read. What only a host can tell is left open and named.
#[must_use]
pub fn lint(module: &Module, host: &HostFacts) -> LintReport {
    let looked = Looked::at(module, host);
    let mut problems = module.problems.clone();
    problems.extend(module.unsafe_owner.iter().map(|sentence| Problem::error("", None, sentence.clone())));
    problems.extend(findings::all(module, &looked));
    problems.sort_by(|a, b| (a.severity, &a.file, a.line, &a.message).cmp(&(b.severity, &b.file, b.line, &b.message)));
    problems.dedup();
    LintReport { schema: SCHEMA, module: module.name.clone(), problems, resources: resources::all(module, &looked) }
}

/// The Quadlet files of a module with their facts.
struct Looked<'a> {
    files: Vec<LookedFile<'a>>,
}

struct LookedFile<'a> {
    name: &'a str,
    source: &'a QuadletSource,
    unit: String,
    facts: QuadletFacts,
    /// The file of the kube YAML and what is wrong in it.
    yaml_problem: Option<Problem>,
}

impl<'a> Looked<'a> {
    fn at(module: &'a Module, host: &HostFacts) -> Self {
        // A module that ships the environment files of its services brings their values along.
        let shipped = |(path, file): (&HostPath, &crate::module::FileSource)| {
            (path.to_string(), Some(String::from_utf8_lossy(&file.content).into_owned()))
        };
        let env: EnvFiles = module.files.iter().map(shipped).collect();
        let installed = HostPath::new(&format!("/etc/containers/systemd/holdfast/{}", module.name));
        let installed = installed.unwrap_or_else(|_| HostPath::root());
        let siblings = |name: &str| module.quadlets.get(name)?.first().map(|source| &source.parsed);
        let mut files = Vec::new();
        for (name, source) in &module.quadlets {
            let Some(source) = source.first() else { continue };
            let mut facts = quadlet::read(source.kind, name, &installed, &source.parsed, host, &env, &siblings);
            let yaml_problem = match source.kind {
                Kind::Kube => add_yaml(module, source, &mut facts),
                _ => None,
            };
            let unit = quadlet::unit_name(source.kind, name, &source.parsed);
            files.push(LookedFile { name, source, unit, facts, yaml_problem });
        }
        Self { files }
    }

    /// Podman's names of the objects of a kind that the module makes.
    fn names(&self, kind: Kind) -> BTreeMap<&str, &LookedFile<'a>> {
        let of_kind = self.files.iter().filter(|file| file.source.kind == kind);
        of_kind.filter_map(|file| Some((file.facts.podman_name.as_deref()?, file))).collect()
    }
}

/// Adds what the kube YAML of a `.kube` file says, where the file is the module's own.
fn add_yaml(module: &Module, source: &QuadletSource, facts: &mut QuadletFacts) -> Option<Problem> {
    let yaml = source.parsed.last("Kube", "Yaml")?;
    let path = beside(source, yaml);
    let Content::Bytes(bytes) = &module.assets.get(&path)?.content else { return None };
    match kube::read(&String::from_utf8_lossy(bytes)) {
        Ok(read) => {
            read.add_to(facts);
            None
        }
        Err(error) => Some(Problem::error(path, Some(error.line), error.message)),
    }
}

/// A path relative to a Quadlet file as a path in the module.
fn beside(source: &QuadletSource, relative: &str) -> String {
    let folder = source.file.rsplit_once('/').map_or("", |(folder, _)| folder);
    let path = HostPath::new(&format!("/{folder}/{relative}")).unwrap_or_else(|_| HostPath::root());
    path.as_str().trim_start_matches('/').to_owned()
}

impl fmt::Display for LintReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { schema: _, module, problems, resources } = self;
        for problem in problems {
            let word = match problem.severity {
                Severity::Error => "error",
                Severity::Warning => "warning",
            };
            writeln!(f, "{word}: {problem}")?;
            if let Some(hint) = &problem.hint {
                writeln!(f, "  Hint: {hint}")?;
            }
        }
        let count = |severity| problems.iter().filter(|problem| problem.severity == severity).count();
        let (errors, warnings) = (count(Severity::Error), count(Severity::Warning));
        write!(f, "{module}: {} resource(s), {errors} error(s), {warnings} warning(s)", resources.len())
    }
}
