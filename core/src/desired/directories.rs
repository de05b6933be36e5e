//! Which directories are a module's own: what it says, and what it mounts where data lies.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::name::HostPath;
use crate::observed::PathState;
use crate::paths::{Asked, Ground, Owner, Owners, Seen};
use crate::quadlet::{Mount, MountType, QuadletFacts};
use crate::resource::Kind;

use super::Inputs;
use super::draft::Draft;

/// One module's own directories, each with the file of the module that asks for it.
pub(super) struct Directories {
    pub ground: Ground,
    pub own: BTreeMap<HostPath, String>,
}

/// Judges every module among the others, in the order of the drafts.
pub(super) fn judge(input: &Inputs, drafts: &[Draft]) -> Vec<Directories> {
    let placed = placed(drafts);
    let grounds: Vec<Ground> = drafts.iter().map(|draft| ground(input, draft)).collect();
    let mut owners = Owners::default();
    for (index, (draft, ground)) in drafts.iter().zip(&grounds).enumerate() {
        // A module that is held as a whole takes nothing from the others but what it has already.
        let counts = |path: &HostPath| !draft.is_held_whole() || keeps(input, draft, path);
        let paths = own(input, draft, ground, &placed).into_keys().filter(counts);
        paths.for_each(|path| owners.add(path, index));
    }
    let owners = Arc::new(owners);
    let among = |(index, (draft, ground)): (usize, (&Draft, Ground))| {
        let ground = ground.among(Arc::clone(&owners), index);
        Directories { own: own(input, draft, &ground, &placed), ground }
    };
    drafts.iter().zip(grounds).enumerate().map(among).collect()
}

/// The absolute host paths that a Quadlet file mounts, as far as they are known.
pub(super) fn bind_mounts(facts: &QuadletFacts) -> impl Iterator<Item = (HostPath, &Mount)> {
    let binds = facts.mounts.iter().filter(|mount| mount.kind == MountType::Bind && !mount.relative);
    binds.filter_map(|mount| Some((HostPath::new(&mount.source).ok()?, mount)))
}

fn ground(input: &Inputs, draft: &Draft) -> Ground {
    let entries = draft.name.as_ref().and_then(|name| input.ledger.modules.get(name));
    let keys = entries.into_iter().flat_map(|entry| entry.resources.keys());
    let kept = keys.filter(|key| key.kind == Kind::Directory).filter_map(|key| HostPath::new(&key.name).ok());
    Ground::new(&draft.module.manifest, &draft.module.declared).keeping(kept.collect())
}

fn keeps(input: &Inputs, draft: &Draft, path: &HostPath) -> bool {
    let entry = draft.name.as_ref().and_then(|name| input.ledger.modules.get(name));
    entry
        .is_some_and(|entry| entry.resources.keys().any(|key| key.kind == Kind::Directory && key.name == path.as_str()))
}

/// Files and links that some module puts in their place: mounting one makes no directory.
fn placed(drafts: &[Draft]) -> BTreeSet<HostPath> {
    let declared = drafts.iter().flat_map(|draft| &draft.module.declared);
    let declared = declared.filter(|line| line.kind != Kind::Directory).map(|line| line.path.clone());
    declared.chain(drafts.iter().flat_map(|draft| draft.module.files.keys().cloned())).collect()
}

fn own(input: &Inputs, draft: &Draft, ground: &Ground, placed: &BTreeSet<HostPath>) -> BTreeMap<HostPath, String> {
    let mut own = BTreeMap::new();
    for line in draft.module.declared.iter().filter(|line| line.kind == Kind::Directory) {
        own.entry(line.path.clone()).or_insert_with(|| line.file.clone());
    }
    for file in draft.files.values() {
        for (path, mount) in bind_mounts(&file.facts).filter(|(path, _)| !placed.contains(path)) {
            let look = input.seen.get(&path);
            let asked = Asked {
                path: &path,
                real: look.map(|look| &look.real),
                target: &mount.target,
                read_only: mount.read_only,
                seen: look.map_or(Seen::Unknown, |look| seen(&look.state)),
            };
            // Before the first look a name like a file's is taken for a file: nothing is made by mistake.
            match ground.owner(&asked) {
                Owner::Own => {
                    own.entry(path).or_insert_with(|| file.source.file.clone());
                }
                Owner::OwnUnlessFileLike | Owner::Host => {}
            }
        }
    }
    for path in ground.stated() {
        own.entry(path.clone()).or_insert_with(|| "module.toml".to_owned());
    }
    own
}

fn seen(state: &PathState) -> Seen {
    match state {
        PathState::Missing | PathState::Link { dangling: true, .. } => Seen::Missing,
        PathState::Directory { .. } | PathState::Link { to_directory: true, .. } => Seen::Directory,
        PathState::File { .. } | PathState::Link { .. } | PathState::Other { .. } => Seen::Other,
        PathState::Unknown { .. } => Seen::Unknown,
    }
}
