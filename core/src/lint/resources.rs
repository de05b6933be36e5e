//! What a module asks for, as a list.

use std::collections::BTreeMap;

use crate::lint::{LintMount, LintResource, Looked, LookedFile};
use crate::module::Module;
use crate::name::HostPath;
use crate::paths::Ground;
use crate::quadlet::{MountType, object_name};
use crate::resource::{Kind, ResourceKey};

/// Every resource once, by its key.
pub(super) fn all(module: &Module, looked: &Looked<'_>) -> Vec<LintResource> {
    let ground = Ground::new(&module.manifest, &module.declared);
    let mut found: BTreeMap<ResourceKey, LintResource> = BTreeMap::new();
    let mut add = |resource: LintResource| {
        found.entry(resource.resource.clone()).or_insert(resource);
    };
    let made = looked.names(Kind::Volume);
    for file in &looked.files {
        let resource = quadlet(module, &ground, file);
        for mount in &resource.mounts {
            let file = resource.file.as_str();
            match (mount.kind, mount.owner) {
                (MountType::Bind, "own") => add(plain(Kind::Directory, &mount.source, file)),
                (MountType::Volume, _) if !made.contains_key(mount.source.as_str()) => {
                    add(LintResource { name: Some(mount.source.clone()), ..plain(Kind::Volume, &mount.source, file) });
                }
                _ => {}
            }
        }
        add(resource);
    }
    for (name, unit) in &module.units {
        let requires = ["Requires", "BindsTo", "Requisite"].iter().flat_map(|key| unit.parsed.all("Unit", key));
        let requires = requires.flat_map(|entry| entry.value.split_whitespace()).map(str::to_owned).collect();
        add(LintResource { unit: Some(name.clone()), requires, ..plain(Kind::Unit, name, &unit.file) });
    }
    for (path, file) in &module.files {
        add(plain(Kind::File, path.as_str(), &file.file));
    }
    for declared in &module.declared {
        add(plain(declared.kind, declared.path.as_str(), &declared.file));
    }
    found.into_values().collect()
}

fn quadlet(module: &Module, ground: &Ground, file: &LookedFile<'_>) -> LintResource {
    let facts = &file.facts;
    let stem = file.name.rsplit_once('.').map_or(file.name, |(stem, _)| stem);
    let mounts: Vec<LintMount> = facts
        .mounts
        .iter()
        .map(|mount| LintMount {
            kind: mount.kind,
            source: mount.source.clone(),
            target: mount.target.clone(),
            read_only: mount.read_only,
            owner: ground.word(mount),
        })
        .collect();
    let named = mounts.iter().filter(|mount| mount.kind == MountType::Volume);
    let mut volumes: Vec<String> = named.map(|mount| mount.source.clone()).collect();
    volumes.sort();
    volumes.dedup();
    let mut networks = facts.networks.clone();
    for name in facts.files.iter().filter(|name| Kind::of_quadlet(name) == Some(Kind::Network)) {
        let source = module.quadlets.get(name).and_then(|sources| sources.first());
        networks.extend(source.and_then(|source| object_name(Kind::Network, name, &source.parsed)));
    }
    LintResource {
        unit: Some(file.unit.clone()),
        name: facts.podman_name.clone(),
        image: facts.image.clone(),
        mounts,
        ports: facts.published.clone(),
        networks,
        volumes,
        secrets: facts.secrets.clone(),
        env_files: facts.env_files.clone(),
        requires: facts.requires.clone(),
        ..plain(file.source.kind, stem, &file.source.file)
    }
}

fn plain(kind: Kind, name: &str, file: &str) -> LintResource {
    // What is relative in a module has been made absolute before; a path that is none stays as it is written.
    let name = match kind {
        Kind::Directory | Kind::File | Kind::Link => HostPath::new(name).map_or_else(|_| name.to_owned(), String::from),
        _ => name.to_owned(),
    };
    LintResource {
        resource: ResourceKey::new(kind, name),
        unit: None,
        file: file.to_owned(),
        name: None,
        image: None,
        mounts: Vec::new(),
        ports: Vec::new(),
        networks: Vec::new(),
        volumes: Vec::new(),
        secrets: Vec::new(),
        env_files: Vec::new(),
        requires: Vec::new(),
    }
}
