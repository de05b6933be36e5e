mod cases;
mod claimed;
mod needed;
mod unread;

use std::collections::BTreeMap;

use super::{Body, Desired, Drafts, Inputs, Need, Resource, staged};
use crate::expand::{EnvFiles, HostFacts};
use crate::generated::{Generated, GeneratedUnit, GeneratorMessage, Printed};
use crate::hold::Reason;
use crate::ledger::{Entry, Ledger};
use crate::module::{Content, FileEntry, Module, ModuleFiles, read};
use crate::name::{HostPath, ModuleName};
use crate::observed::{PathFacts, PathState, Wanted};
use crate::quadlet;
use crate::resource::ResourceKey;

pub(super) const QUADLETS: &str = "/etc/containers/systemd/holdfast";

/// A host in memory: modules, what its generator is told to refuse, files, ledger.
#[derive(Default)]
pub(super) struct World {
    pub modules: Vec<Module>,
    /// Quadlet files that the generator drops, by path below [`QUADLETS`], with what it says.
    pub dropped: BTreeMap<String, String>,
    pub foreign: Vec<GeneratedUnit>,
    pub env: EnvFiles,
    pub ledger: Ledger,
    pub seen: BTreeMap<HostPath, PathFacts>,
}

impl World {
    pub fn of(modules: &[(&str, &[(&str, &str)])]) -> Self {
        Self { modules: modules.iter().map(|(name, files)| module(name, files)).collect(), ..Self::default() }
    }

    pub fn drop(mut self, file: &str, message: &str) -> Self {
        self.dropped.insert(file.to_owned(), message.to_owned());
        self
    }

    pub fn own(mut self, module: &str, key: &str, entry: Entry) -> Self {
        let part = self.ledger.module_mut(&ModuleName::new(module).unwrap());
        part.resources.insert(self::key(key), entry);
        self
    }

    pub fn see(mut self, path: &str, state: PathState) -> Self {
        let path = self::path(path);
        let facts = PathFacts { state, real: path.clone(), unsafe_link: None, unmounted: None, writable: true };
        self.seen.insert(path, facts);
        self
    }

    /// Echoes each Quadlet file as Podman does: the Quadlet section under `X-`, the others as they are.
    pub fn generated(&self) -> Generated {
        let mut generated = Generated { units: self.foreign.clone(), ..Generated::default() };
        let mut names: Vec<&str> = Vec::new();
        // What cannot be staged is not there, as on a host where nothing of it was installed before.
        for module in self.modules.iter().filter(|module| staged(module).is_ok()) {
            for (name, sources) in &module.quadlets {
                let (source, below) = (&sources[0], format!("{}/{name}", module.name));
                let path = format!("{QUADLETS}/{below}");
                if let Some(text) = self.dropped.get(&below) {
                    let text = format!("converting \"{name}\": {text} in {path}");
                    generated.messages.push(GeneratorMessage { file: Some(path), text });
                } else if !names.contains(&name.as_str()) {
                    names.push(name);
                    let section = quadlet::section(source.kind);
                    let text = source.text.replace(&format!("[{section}]"), &format!("[X-{section}]"));
                    let text =
                        format!("{text}\n[Unit]\nAfter=network-online.target\nRequiresMountsFor=%t/containers\n");
                    let name = quadlet::unit_name(source.kind, name, &source.parsed);
                    generated.units.push(GeneratedUnit { name, source: path, text });
                }
            }
        }
        generated
    }

    pub fn desired(&self) -> Desired {
        self.desired_of(self.generated())
    }

    pub fn desired_of(&self, generated: Generated) -> Desired {
        self.read(generated, |inputs, printed| Drafts::read(inputs, printed).assemble(inputs))
    }

    /// What a look must cover, before there was one.
    pub fn wanted(&self) -> Wanted {
        self.read(self.generated(), |inputs, printed| Drafts::read(inputs, printed).wanted(inputs))
    }

    fn read<T>(&self, generated: Generated, read: impl Fn(&Inputs, &Printed) -> T) -> T {
        let host = HostFacts { hostname: "box.example.test".to_owned(), ..HostFacts::default() };
        let inputs = Inputs {
            modules: &self.modules,
            host: &host,
            env: &self.env,
            quadlet_dir: path(QUADLETS),
            unit_dir: path("/etc/systemd/system"),
            tmpfiles_dir: path("/etc/tmpfiles.d"),
            podman_version: "5.4.2",
            ledger: &self.ledger,
            seen: &self.seen,
        };
        read(&inputs, &generated.into())
    }
}

pub(super) fn module(name: &str, files: &[(&str, &str)]) -> Module {
    let entry = |text: &str| FileEntry { content: Content::Bytes(text.into()), mode: 0o644, link_to: None };
    let files = files.iter().map(|(path, text)| ((*path).to_owned(), entry(text))).collect();
    read(ModuleFiles { name: name.to_owned(), files, ..ModuleFiles::default() })
}

pub(super) fn path(text: &str) -> HostPath {
    HostPath::new(text).unwrap()
}

pub(super) fn key(text: &str) -> ResourceKey {
    text.parse().unwrap()
}

pub(super) fn get<'a>(desired: &'a Desired, module: &str, key: &str) -> &'a Resource {
    let part = desired.modules.get(module).unwrap_or_else(|| panic!("no module {module}"));
    part.resources.get(&self::key(key)).unwrap_or_else(|| panic!("no {key} in {:?}", keys(desired, module)))
}

pub(super) fn keys(desired: &Desired, module: &str) -> Vec<String> {
    desired.modules[module].resources.keys().map(ToString::to_string).collect()
}

pub(super) fn reasons(desired: &Desired, module: &str, key: &str) -> Vec<Reason> {
    get(desired, module, key).troubles.iter().map(|trouble| trouble.reason).collect()
}

pub(super) fn clause(desired: &Desired, module: &str, key: &str, reason: Reason) -> String {
    let troubles = &get(desired, module, key).troubles;
    let found = troubles.iter().find(|trouble| trouble.reason == reason);
    found.unwrap_or_else(|| panic!("{key} has no {reason}, but {troubles:?}")).clause.clone()
}

pub(super) fn needs(desired: &Desired, module: &str, key: &str) -> Vec<String> {
    let written = |need: &Need| match need {
        Need::Resource { module, key } => format!("{module} {key}"),
        Need::Path(path) => format!("path {path}"),
        Need::EnvFile(path) => format!("env {path}"),
        Need::Secret(name) => format!("secret {name}"),
        Need::Network(name) => format!("network {name}"),
        Need::Container(name) => format!("container {name}"),
        Need::Image(name) => format!("image {name}"),
    };
    get(desired, module, key).needs.iter().map(written).filter(|need| !need.starts_with("image ")).collect()
}

pub(super) fn hash(desired: &Desired, module: &str, key: &str) -> String {
    match &get(desired, module, key).body {
        Body::Quadlet { hash, .. } => hash.clone(),
        other => panic!("{key} is no Quadlet file: {other:?}"),
    }
}
