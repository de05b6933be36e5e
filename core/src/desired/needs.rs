//! What each resource cannot do without: other resources, over all modules, and things of the host.

use std::collections::{BTreeMap, BTreeSet};

use crate::name::HostPath;
use crate::resource::{Kind, ResourceKey};

use super::draft::{Draft, FileDraft};
use super::{Body, Desired, Inputs, Need, bodies, directories, real, units};

/// Fills in the needs of all resources.
pub(super) fn tie(input: &Inputs, drafts: &[Draft], desired: &mut Desired) {
    let index = Index::of(input, drafts, desired);
    let mut needs: BTreeMap<Id, BTreeSet<Need>> = BTreeMap::new();
    for draft in drafts {
        let module = draft.module.name.as_str();
        for (file_name, file) in &draft.files {
            let id = (module.to_owned(), bodies::quadlet_key(file_name, file));
            needs.insert(id, quadlet(input, &index, draft, file));
        }
        for (name, unit) in &draft.module.units {
            let id = (module.to_owned(), ResourceKey::new(Kind::Unit, name));
            let required = units::requires(name, unit);
            needs.insert(id, required.iter().filter_map(|unit| index.unit(module, unit)).collect());
        }
    }
    for (module, part) in &mut desired.modules {
        for (key, resource) in &mut part.resources {
            let id = (module.clone(), key.clone());
            resource.needs = match &resource.body {
                Body::Directory { path, .. } | Body::File { path, .. } | Body::Link { path, .. } => {
                    index.nearest_directory_above(input, path, &id).into_iter().collect()
                }
                Body::Quadlet { .. } | Body::PlainVolume | Body::Unit { .. } | Body::Opaque => {
                    needs.remove(&id).unwrap_or_default()
                }
            };
            resource.needs.remove(&need(&id));
        }
    }
}

/// A resource on this host.
type Id = (String, ResourceKey);

fn need((module, key): &Id) -> Need {
    Need::Resource { module: module.clone(), key: key.clone() }
}

fn quadlet(input: &Inputs, index: &Index, draft: &Draft, file: &FileDraft) -> BTreeSet<Need> {
    let (module, facts) = (draft.module.name.as_str(), &file.facts);
    let mut needs = BTreeSet::new();
    let volume_files = facts.mounts.iter().filter_map(|mount| mount.file.as_ref());
    for name in facts.files.iter().chain(volume_files) {
        needs.extend(index.file(module, name).or_else(|| file.foreign.get(name).cloned()));
    }
    for name in bodies::volume_names(facts) {
        needs.extend(index.volumes.get(module, name));
    }
    for (path, _) in directories::bind_mounts(facts) {
        needs.extend(index.path(input, module, &path, Need::Path));
    }
    if let Some(path) = &file.yaml {
        needs.extend(index.path(input, module, path, Need::Path));
    }
    for path in &file.env_files {
        needs.extend(index.path(input, module, path, Need::EnvFile));
    }
    for name in &facts.networks {
        needs.insert(index.networks.get(module, name).unwrap_or_else(|| Need::Network(name.clone())));
    }
    for name in &facts.containers {
        needs.insert(index.containers.get(module, name).unwrap_or_else(|| Need::Container(name.clone())));
    }
    needs.extend(facts.requires.iter().filter_map(|unit| index.unit(module, unit)));
    needs.extend(facts.secrets.iter().cloned().map(Need::Secret));
    needs.extend(file.images().map(str::to_owned).map(Need::Image));
    needs
}

/// Names of one sort, and who makes each; the module's own first.
#[derive(Default)]
struct Names(BTreeMap<String, Vec<Id>>);

impl Names {
    fn add(&mut self, name: &str, id: &Id) {
        self.0.entry(name.to_owned()).or_default().push(id.clone());
    }

    fn get(&self, module: &str, name: &str) -> Option<Need> {
        let ids = self.0.get(name)?;
        ids.iter().find(|(owner, _)| owner == module).or_else(|| ids.first()).map(need)
    }
}

/// Who makes what, over all modules.
#[derive(Default)]
struct Index {
    units: Names,
    files: Names,
    volumes: Names,
    networks: Names,
    containers: Names,
    /// Own directories, files and links, links in their parents resolved.
    paths: BTreeMap<HostPath, Vec<Id>>,
    /// Modules that are held as a whole.
    idle: BTreeSet<String>,
}

impl Index {
    fn of(input: &Inputs, drafts: &[Draft], desired: &Desired) -> Self {
        let idle = drafts.iter().filter(|draft| draft.is_held_whole()).map(|draft| draft.module.name.clone());
        let mut index = Self { idle: idle.collect(), ..Self::default() };
        for draft in drafts {
            for (file_name, file) in &draft.files {
                let id = (draft.module.name.clone(), bodies::quadlet_key(file_name, file));
                index.files.add(file_name, &id);
            }
        }
        for (module, part) in &desired.modules {
            for (key, resource) in &part.resources {
                let id = (module.clone(), key.clone());
                if let Some(unit) = &resource.unit {
                    index.units.add(unit, &id);
                }
                index.add_object(resource.object.as_deref(), &id);
                if matches!(key.kind, Kind::Directory | Kind::File | Kind::Link)
                    && let Ok(path) = HostPath::new(&key.name)
                {
                    index.paths.entry(real(input, &path).clone()).or_default().push(id);
                } else if matches!(resource.body, Body::Opaque) {
                    index.files.add(&format!("{}.{}", key.name, key.kind), &id);
                }
            }
        }
        index
    }

    fn add_object(&mut self, object: Option<&str>, id: &Id) {
        let Some(name) = object else { return };
        match id.1.kind {
            Kind::Volume => self.volumes.add(name, id),
            Kind::Network => self.networks.add(name, id),
            Kind::Container => self.containers.add(name, id),
            Kind::Directory
            | Kind::File
            | Kind::Link
            | Kind::Image
            | Kind::Build
            | Kind::Pod
            | Kind::Kube
            | Kind::Unit => {}
        }
    }

    /// A Quadlet file by its name; an instance that has no file of its own is its template's.
    fn file(&self, module: &str, name: &str) -> Option<Need> {
        self.files.get(module, name).or_else(|| self.files.get(module, &template(name)?))
    }

    /// A unit, or a Quadlet file that stands where a unit should: Podman before 5.5 does not translate it.
    fn unit(&self, module: &str, name: &str) -> Option<Need> {
        let by_name = self.units.get(module, name).or_else(|| self.units.get(module, &template(name)?));
        by_name.or_else(|| Kind::of_quadlet(name).and_then(|_| self.file(module, name)))
    }

    /// What a mount or a read of a path needs. Every own path at, above or below it: what is mounted from `/` holds all.
    /// But a module that is held as a whole makes nothing below what others mount from above, so it stops none of them.
    fn path(&self, input: &Inputs, module: &str, path: &HostPath, otherwise: fn(HostPath) -> Need) -> BTreeSet<Need> {
        let place = real(input, path);
        let above = place.above().filter_map(|above| self.paths.get(above)).flatten().map(need);
        let mut needs: BTreeSet<Need> = above.collect();
        // What lies at or below the path brings it along; what lies above does not.
        let counts = |(owner, _): &&Id| owner == module || !self.idle.contains(owner);
        let below = place.below(&self.paths).flat_map(|(_, ids)| ids.iter().filter(counts));
        let here = self.paths.get(place).into_iter().flatten();
        let mut is_made = *path == HostPath::root();
        for id in here.chain(below) {
            is_made = true;
            needs.insert(need(id));
        }
        if !is_made {
            needs.insert(otherwise(path.clone()));
        }
        needs
    }

    fn nearest_directory_above(&self, input: &Inputs, path: &HostPath, id: &Id) -> Option<Need> {
        let is_directory = |ids: &&Vec<Id>| ids.iter().any(|other| other.1.kind == Kind::Directory && other != id);
        let mut above = real(input, path).above().filter_map(|above| self.paths.get(above));
        let ids = above.find(is_directory)?;
        ids.iter()
            .find(|(module, key)| *module == id.0 && key.kind == Kind::Directory)
            .or_else(|| ids.iter().find(|(_, key)| key.kind == Kind::Directory))
            .map(need)
    }
}

/// `web@a.service` -> `web@.service`.
fn template(name: &str) -> Option<String> {
    let (stem, rest) = name.split_once('@')?;
    let (_, suffix) = rest.rsplit_once('.')?;
    Some(format!("{stem}@.{suffix}"))
}
