//! The resources of each module and what they are on the host; needs and claims come later.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, LazyLock};

use crate::name::HostPath;
use crate::quadlet::{MountType, QuadletFacts};
use crate::resource::{Kind, ResourceKey};

use super::directories::Directories;
use super::draft::{Draft, FileDraft};
use super::{Body, Desired, DesiredModule, Inputs, Resource, below, units};

/// What there is to know of all that is no Quadlet file, shared by all of it.
static NO_FACTS: LazyLock<Arc<QuadletFacts>> = LazyLock::new(Arc::default);

/// Lists what every module asks for, and what the ledger has of modules whose directory vanished.
pub(super) fn list(input: &Inputs, drafts: &[Draft], directories: &[Directories]) -> Desired {
    let made = volumes_made(drafts);
    let mut desired = Desired::default();
    for (draft, directories) in drafts.iter().zip(directories) {
        let mut resources = BTreeMap::new();
        for (file_name, file) in &draft.files {
            resources.insert(quadlet_key(file_name, file), quadlet(draft, file, &input.quadlet_dir));
        }
        for (name, unit) in &draft.module.units {
            resources.insert(ResourceKey::new(Kind::Unit, name), units::resource(&input.unit_dir, name, unit));
        }
        resources.extend(files(input, draft));
        for (path, source) in &directories.own {
            resources.insert(ResourceKey::new(Kind::Directory, path.as_str()), directory(draft, path, source));
        }
        for (name, source) in plain_volumes(draft, &made) {
            let resource = Resource { object: Some(name.to_owned()), ..resource(source, Body::PlainVolume) };
            resources.insert(plain_volume_key(draft, name), resource);
        }
        if draft.is_held_whole() {
            add_unread(input, draft, &mut resources);
        }
        let manifest = draft.module.manifest.clone();
        let module = DesiredModule { name: draft.name.clone(), manifest, resources };
        desired.modules.insert(draft.module.name.clone(), module);
    }
    add_vanished(input, &mut desired);
    desired
}

/// The key of a Quadlet file: its kind and its stem.
pub(super) fn quadlet_key(file_name: &str, file: &FileDraft) -> ResourceKey {
    ResourceKey::new(file.source.kind, stem(file_name))
}

/// The key of a volume that is only named. Beside a file of that stem, which makes another volume, it needs another key.
pub(super) fn plain_volume_key(draft: &Draft, name: &str) -> ResourceKey {
    let taken = draft.files.contains_key(format!("{name}.volume").as_str());
    ResourceKey::new(Kind::Volume, if taken { format!("name:{name}") } else { name.to_owned() })
}

/// Volumes that a file names and no `.volume` file of any module makes, with the first file that names each.
pub(super) fn plain_volumes<'a>(draft: &'a Draft, made: &BTreeSet<String>) -> BTreeMap<&'a str, &'a str> {
    let mut volumes = BTreeMap::new();
    for file in draft.files.values() {
        for name in volume_names(&file.facts).filter(|name| !made.contains(*name)) {
            volumes.entry(name).or_insert(file.source.file.as_str());
        }
    }
    volumes
}

/// The volumes that a Quadlet file names, rather than refers to by a `.volume` file.
pub(super) fn volume_names(facts: &QuadletFacts) -> impl Iterator<Item = &str> {
    let named = facts.mounts.iter().filter(|mount| mount.kind == MountType::Volume && mount.file.is_none());
    let named = named.filter(|mount| !mount.source.is_empty());
    named.map(|mount| mount.source.as_str())
}

/// Names of the volumes that `.volume` files make.
pub(super) fn volumes_made(drafts: &[Draft]) -> BTreeSet<String> {
    let files = drafts.iter().flat_map(|draft| draft.files.values());
    files.filter(|file| file.source.kind == Kind::Volume).filter_map(|file| file.facts.podman_name.clone()).collect()
}

/// A resource of which only its body is known.
pub(super) fn resource(source: impl Into<String>, body: Body) -> Resource {
    Resource {
        source: source.into(),
        unit: None,
        object: None,
        body,
        needs: BTreeSet::new(),
        facts: Arc::clone(&NO_FACTS),
        troubles: Vec::new(),
    }
}

fn quadlet(draft: &Draft, file: &FileDraft, quadlet_dir: &HostPath) -> Resource {
    let directory = below(quadlet_dir, &draft.module.name);
    let assets = file.assets.found.iter().map(|(name, asset)| (below(&directory, name), asset.installed()));
    let body = Body::Quadlet {
        path: file.path.clone(),
        text: file.source.text.clone(),
        assets: assets.collect(),
        hash: file.hash.clone(),
    };
    Resource {
        unit: Some(file.unit.clone()),
        object: file.facts.podman_name.clone(),
        facts: Arc::clone(&file.facts),
        ..resource(&file.source.file, body)
    }
}

fn directory(draft: &Draft, path: &HostPath, source: &str) -> Resource {
    let line = draft.module.declared.iter().find(|line| line.kind == Kind::Directory && line.path == *path);
    let mode = line.and_then(|line| line.mode).unwrap_or(0o755);
    let owner = owner(line.and_then(|line| line.user.as_ref()), line.and_then(|line| line.group.as_ref()));
    resource(source, Body::Directory { path: path.clone(), mode, owner })
}

/// Files of `files/`, what `tmpfiles.d` declares beside directories, and its lines for /run.
fn files(input: &Inputs, draft: &Draft) -> BTreeMap<ResourceKey, Resource> {
    let module = draft.module;
    let root = || owner(None, None);
    let mut resources = BTreeMap::new();
    for (path, file) in &module.files {
        let body =
            Body::File { path: path.clone(), content: file.content.clone(), mode: file.mode & 0o777, owner: root() };
        resources.insert(ResourceKey::new(Kind::File, path.as_str()), resource(&file.file, body));
    }
    for line in &module.declared {
        let path = line.path.clone();
        let body = match (line.kind, &line.target) {
            (Kind::File, _) => Body::File {
                path,
                content: Vec::new(),
                mode: line.mode.unwrap_or(0o644) & 0o777,
                owner: owner(line.user.as_ref(), line.group.as_ref()),
            },
            (Kind::Link, Some(target)) => Body::Link { path, target: target.clone() },
            _ => continue,
        };
        resources.insert(ResourceKey::new(line.kind, line.path.as_str()), resource(&line.file, body));
    }
    if !module.runtime_lines.is_empty() {
        let path = runtime_file(input, draft);
        let key = ResourceKey::new(Kind::File, path.as_str());
        let content = module.runtime_lines.clone().into_bytes();
        resources.insert(key, resource("tmpfiles.d", Body::File { path, content, mode: 0o644, owner: root() }));
    }
    resources
}

/// Where the lines for `/run` are installed.
pub(super) fn runtime_file(input: &Inputs, draft: &Draft) -> HostPath {
    below(&input.tmpfiles_dir, &format!("holdfast-{}.conf", draft.module.name))
}

fn owner(user: Option<&String>, group: Option<&String>) -> (String, String) {
    let name = |name: Option<&String>| name.cloned().unwrap_or_else(|| "root".to_owned());
    (name(user), name(group))
}

/// A module that is held as a whole still counts all it asks for: what could not be read, by its file's name, and what
/// it has here already, so that nothing of it is taken for removed.
fn add_unread(input: &Inputs, draft: &Draft, resources: &mut BTreeMap<ResourceKey, Resource>) {
    for problem in &draft.problems {
        let file_name = problem.file.rsplit('/').next().unwrap_or_default();
        let in_folder = |folder: &str| problem.file.strip_prefix(folder).is_some();
        let key = if in_folder("files/") {
            Some(ResourceKey::new(Kind::File, problem.file.trim_start_matches("files")))
        } else if in_folder("tmpfiles.d/") {
            None
        } else if let Some(kind) = Kind::of_quadlet(file_name) {
            Some(ResourceKey::new(kind, stem(file_name)))
        } else {
            units::is_unit_name(file_name).then(|| ResourceKey::new(Kind::Unit, file_name))
        };
        if let Some(key) = key {
            resources.entry(key).or_insert_with(|| resource(&problem.file, Body::Opaque));
        }
    }
    let entries = draft.name.as_ref().and_then(|name| input.ledger.modules.get(name));
    for (key, entry) in entries.into_iter().flat_map(|entry| &entry.resources) {
        resources.entry(key.clone()).or_insert_with(|| from_ledger(entry));
    }
    if resources.is_empty() {
        let key = ResourceKey::new(Kind::File, draft.module.name.as_str());
        resources.insert(key, resource("", Body::Opaque));
    }
}

fn add_vanished(input: &Inputs, desired: &mut Desired) {
    for (name, entry) in &input.ledger.modules {
        let asks = desired.modules.get(name.as_str()).is_some_and(|module| !module.resources.is_empty());
        if asks || entry.resources.is_empty() {
            continue;
        }
        let resources = entry.resources.iter().map(|(key, entry)| (key.clone(), from_ledger(entry))).collect();
        let module = DesiredModule { name: Some(name.clone()), resources, ..DesiredModule::default() };
        desired.modules.insert(name.as_str().to_owned(), module);
    }
}

fn from_ledger(entry: &crate::ledger::Entry) -> Resource {
    Resource { unit: entry.unit.clone(), object: entry.object.clone(), ..resource("", Body::Opaque) }
}

fn stem(file_name: &str) -> &str {
    file_name.rsplit_once('.').map_or(file_name, |(stem, _)| stem)
}
