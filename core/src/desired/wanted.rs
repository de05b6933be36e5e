//! What a look at the host must cover for a plan.

use crate::ledger::{Entry, Ledger};
use crate::name::HostPath;
use crate::observed::Wanted;
use crate::quadlet::MountType;

use super::{Body, Desired, Need, Resource};

/// Every path, unit and image that the plan must know of.
#[must_use]
pub fn wanted(desired: &Desired, ledger: &Ledger) -> Wanted {
    let mut wanted = Wanted::default();
    for part in desired.modules.values() {
        for (key, resource) in &part.resources {
            let entry = part.name.as_ref().and_then(|name| ledger.entry(name, key));
            add_resource(&mut wanted, resource, entry);
        }
    }
    for entry in ledger.modules.values().flat_map(|module| module.resources.values()) {
        wanted.units.extend(entry.unit.clone());
        for (path, digest) in &entry.paths {
            add_path(&mut wanted, path, is_digest(digest));
        }
        // Where data lay: a mount that moved away from it is told by it.
        entry.mounts.values().for_each(|path| add_path(&mut wanted, path, false));
    }
    wanted
}

fn add_resource(wanted: &mut Wanted, resource: &Resource, entry: Option<&Entry>) {
    wanted.units.extend(resource.unit.clone());
    let mut hash = None;
    match &resource.body {
        Body::Quadlet { path, text: _, assets, hash: definition } => {
            hash = Some(definition);
            add_path(wanted, path, true);
            assets.keys().for_each(|path| add_path(wanted, path, true));
        }
        Body::Unit { files, install: _ } => files.keys().for_each(|path| add_path(wanted, path, true)),
        Body::File { path, .. } => add_path(wanted, path, true),
        Body::Directory { path, .. } | Body::Link { path, .. } => add_path(wanted, path, false),
        Body::PlainVolume | Body::Opaque => {}
    }
    for need in &resource.needs {
        match need {
            Need::Path(path) | Need::EnvFile(path) => add_path(wanted, path, false),
            Need::Image(image) => {
                let pin = entry.and_then(|entry| entry.pin.as_ref());
                if pin.is_none_or(|pin| pin.written != *image) {
                    wanted.images.insert(image.clone());
                }
            }
            Need::Resource { .. } | Need::Secret(_) | Need::Network(_) | Need::Container(_) => {}
        }
    }
    let mounts = resource.facts.mounts.iter().filter(|mount| mount.kind == MountType::Bind);
    mounts.filter_map(|mount| HostPath::new(&mount.source).ok()).for_each(|path| add_path(wanted, &path, false));
    // A changed definition may publish what it did not hold before.
    let confirmed = entry.is_some_and(|entry| !entry.intent && (hash.is_none() || entry.hash.as_ref() == hash));
    wanted.listeners |= !resource.facts.ports.is_empty() && !confirmed;
}

/// A path that one asks for with its digest is read, whoever else only wants to know that it is there.
fn add_path(wanted: &mut Wanted, path: &HostPath, digest: bool) {
    *wanted.paths.entry(path.clone()).or_insert(false) |= digest;
}

/// The ledger also keeps marks of directories and targets of links in the place of a digest.
fn is_digest(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|c| c.is_ascii_hexdigit())
}
