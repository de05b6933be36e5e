//! What a look at the host must cover for a plan.

use crate::ledger::{Entry, Ledger};
use crate::name::HostPath;
use crate::observed::Wanted;
use crate::quadlet::{MountType, QuadletFacts};
use crate::resource::{Kind, ResourceKey};

use super::draft::{Draft, FileDraft};
use super::{Inputs, below, bodies, units};

/// Every path, unit and image that the plan may have to know of, whosever they turn out to be.
pub(super) fn wanted(input: &Inputs, drafts: &[Draft]) -> Wanted {
    let mut wanted = Wanted::default();
    for draft in drafts {
        for (file_name, file) in &draft.files {
            add_quadlet(&mut wanted, input, draft, file_name, file);
        }
        add_plain(&mut wanted, input, draft);
    }
    add_known(&mut wanted, input.ledger);
    wanted
}

fn add_quadlet(wanted: &mut Wanted, input: &Inputs, draft: &Draft, file_name: &str, file: &FileDraft) {
    let entry = entry(input, draft, &bodies::quadlet_key(file_name, file));
    wanted.units.insert(file.unit.clone());
    add_path(wanted, &file.path, true);
    let directory = below(&input.quadlet_dir, &draft.module.name);
    file.assets.found.keys().for_each(|name| add_path(wanted, &below(&directory, name), true));
    let binds = file.facts.mounts.iter().filter(|mount| mount.kind == MountType::Bind);
    binds.filter_map(|mount| HostPath::new(&mount.source).ok()).for_each(|path| add_path(wanted, &path, false));
    file.reads().for_each(|path| add_path(wanted, path, false));
    for image in file.images() {
        let pin = entry.and_then(|entry| entry.pin.as_ref());
        if pin.is_none_or(|pin| pin.written != image) {
            wanted.images.insert(image.to_owned());
        }
    }
    add_ports(wanted, &file.facts, entry, Some(&file.hash));
}

/// Units, files, links and directories.
fn add_plain(wanted: &mut Wanted, input: &Inputs, draft: &Draft) {
    for (name, source) in &draft.module.units {
        let unit = units::resource(&input.unit_dir, name, source);
        wanted.units.insert(name.clone());
        units::paths(&input.unit_dir, name, source).for_each(|path| add_path(wanted, &path, true));
        add_ports(wanted, &unit.facts, entry(input, draft, &ResourceKey::new(Kind::Unit, name)), None);
    }
    draft.module.files.keys().for_each(|path| add_path(wanted, path, true));
    draft.module.declared.iter().for_each(|line| add_path(wanted, &line.path, line.kind == Kind::File));
    draft.module.manifest.own_paths.iter().for_each(|path| add_path(wanted, path, false));
    if !draft.module.runtime_lines.is_empty() {
        add_path(wanted, &bodies::runtime_file(input, draft), true);
    }
}

/// What the ledger has, whoever still asks for it.
fn add_known(wanted: &mut Wanted, ledger: &Ledger) {
    for entry in ledger.modules.values().flat_map(|module| module.resources.values()) {
        wanted.units.extend(entry.unit.clone());
        for (path, digest) in &entry.paths {
            add_path(wanted, path, is_digest(digest));
        }
        // Where data lay: a mount that moved away from it is told by it.
        entry.mounts.values().for_each(|path| add_path(wanted, path, false));
    }
}

fn entry<'a>(input: &Inputs<'a>, draft: &Draft, key: &ResourceKey) -> Option<&'a Entry> {
    input.ledger.entry(draft.name.as_ref()?, key)
}

/// A changed definition may publish what it did not hold before.
fn add_ports(wanted: &mut Wanted, facts: &QuadletFacts, entry: Option<&Entry>, hash: Option<&String>) {
    let confirmed = entry.is_some_and(|entry| !entry.intent && (hash.is_none() || entry.hash.as_ref() == hash));
    wanted.listeners |= !facts.ports.is_empty() && !confirmed;
}

/// A path that one asks for with its digest is read, whoever else only wants to know that it is there.
fn add_path(wanted: &mut Wanted, path: &HostPath, digest: bool) {
    match wanted.paths.get_mut(path) {
        Some(known) => *known |= digest,
        None => {
            wanted.paths.insert(path.clone(), digest);
        }
    }
}

/// The ledger also keeps marks of directories and targets of links in the place of a digest.
fn is_digest(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|c| c.is_ascii_hexdigit())
}
