//! Reasons that lie in paths: what is there already, who may write it, what a mount would do to it.

use super::{Judge, OwnReason};
use shell_words::quote;

use crate::desired::Body;
use crate::hold::Reason;
use crate::name::HostPath;
use crate::observed::{PathFacts, PathState};
use crate::plan::files::{FileState, file_state, wanted_files};
use crate::plan::judge::{entry, moves_to};
use crate::quadlet::MountType;
use crate::resource::Kind;

impl Judge<'_> {
    /// The paths that the resource itself would make.
    pub(super) fn paths(&self, reasons: &mut Vec<OwnReason>) {
        match &self.resource.body {
            Body::Directory { path, .. } => self.own_path(path, reasons),
            Body::File { path, .. } | Body::Link { path, .. } => self.own_path(path, reasons),
            Body::Quadlet { path, assets, .. } => {
                self.installed(path, reasons);
                for asset in assets.keys() {
                    self.installed(asset, reasons);
                }
            }
            Body::Unit { files, .. } => {
                for path in files.keys() {
                    self.installed(path, reasons);
                }
            }
            Body::PlainVolume | Body::Opaque => {}
        }
    }

    /// A file that we install: found when it is there and not in the ledger.
    fn installed(&self, path: &HostPath, reasons: &mut Vec<OwnReason>) {
        let Some(facts) = self.observed().paths.get(path) else { return };
        let known = self.entry().is_some_and(|entry| entry.paths.contains_key(path));
        // A unit file of the name is told by `unit` already, with its rank.
        let told = self.key.kind == Kind::Unit && reasons.iter().any(|own| own.clause.contains(path.as_str()));
        if !matches!(facts.state, PathState::Missing) && !known && !told {
            reasons.push(self.found(format!("{path} was found on this host, not made by holdfast")));
        }
        self.reachable(path, facts, reasons);
    }

    fn own_path(&self, path: &HostPath, reasons: &mut Vec<OwnReason>) {
        let Some(facts) = self.observed().paths.get(path) else { return };
        let entry = self.entry().and_then(|entry| entry.paths.get(path));
        let named = |what: &str| {
            let real = if facts.real == *path { String::new() } else { format!(", which is {}", facts.real) };
            format!("{what} {path}{real}")
        };
        let clause = match (&facts.state, entry) {
            (PathState::Missing, _) => None,
            (PathState::Unknown { error }, _) => Some(format!("{path} cannot be looked at: {error}")),
            (PathState::Directory { mark, empty, .. }, entry) if self.key.kind == Kind::Directory => match entry {
                Some(written) if written == "marked" && mark.as_deref() != Some(self.module) => {
                    Some(format!("{}, found on this host, is not the one that holdfast made", named("directory")))
                }
                Some(_) => None,
                None if moves_to(self.given, self.module, path) => None,
                None if *empty => {
                    Some(format!("{} was found on this host (empty), not made by holdfast", named("directory")))
                }
                None => {
                    Some(format!("{} was found on this host (not empty), not made by holdfast", named("directory")))
                }
            },
            (PathState::File { .. }, Some(_)) if self.key.kind == Kind::File => None,
            (PathState::Link { .. }, Some(_)) if self.key.kind == Kind::Link => None,
            (state, _) => Some(format!("{} was found on this host, not made by holdfast", named(word(state)))),
        };
        reasons.extend(clause.map(|clause| self.found(clause)));
        self.reachable(path, facts, reasons);
    }

    /// Files of ours that were edited on the host and in the module.
    pub(super) fn edited(&self, reasons: &mut Vec<OwnReason>) {
        let Some(entry) = self.entry() else { return };
        for file in wanted_files(Some(entry), self.module, self.key, self.resource) {
            if file_state(self.given, Some(entry), &file) == FileState::EditedTwice {
                reasons.push(Self::other(
                    Reason::ChangedLocally,
                    format!("{} was edited on this host, and the module changed it, too", file.path),
                    Some(format!("mv {0} {0}.saved, then: holdfast apply {1}", file.path, quote(self.module))),
                ));
            }
        }
    }

    /// Links, missing mounts and read-only places on the way to a path of ours.
    fn reachable(&self, path: &HostPath, facts: &PathFacts, reasons: &mut Vec<OwnReason>) {
        if let Some(link) = &facts.unsafe_link {
            reasons.push(Self::other(
                Reason::Found,
                format!("{path} leads through {link}, a link that somebody other than root could have made"),
                None,
            ));
        }
        if let Some(mount) = &facts.unmounted {
            reasons.push(Self::other(
                Reason::MissingPath,
                format!("{path} is on a file system that is not mounted ({mount})"),
                Some(format!("systemctl start {mount}")),
            ));
        }
        if !facts.writable && matches!(facts.state, PathState::Missing) {
            reasons.push(Self::other(
                Reason::PathNotWritable,
                format!("holdfast may not write {path}"),
                Some(format!(
                    "systemctl edit holdfast-apply.service, with [Service] and ReadWritePaths={}",
                    path.parent().unwrap_or_else(HostPath::root)
                )),
            ));
        }
    }

    /// A container that writes as another user than the one who owns the directory.
    pub(super) fn owners(&self, reasons: &mut Vec<OwnReason>) {
        let facts = &self.resource.facts;
        let Some(user) = facts.uid.filter(|uid| *uid != 0) else { return };
        for mount in facts.mounts.iter().filter(|mount| mount.kind == MountType::Bind && !mount.read_only) {
            let Ok(path) = HostPath::new(&mount.source) else { continue };
            if facts.relabels.contains(&path) || self.own_directory(&path) {
                continue;
            }
            let state = self.observed().paths.get(&path).map(|facts| &facts.state);
            if let Some(PathState::Directory { uid, mode, .. }) = state {
                // Which groups the container has is not known here: a group that may write is believed.
                if *uid != user && mode & 0o022 == 0 {
                    reasons.push(Self::other(
                        Reason::OwnerDiffers,
                        format!("it writes {path} as user {user}, and user {uid} owns it"),
                        Some(format!("chown {user} {path}")),
                    ));
                }
            }
        }
    }

    /// `:z`, `:Z`, `:U` on anything that is not a directory made for this module alone.
    pub(super) fn relabels(&self, reasons: &mut Vec<OwnReason>) {
        for path in self.resource.facts.relabels.iter().filter(|path| !self.own_directory(path)) {
            reasons.push(Self::other(
                Reason::RelabelRisk,
                format!("its mount would change owner or label of {path}, which is not this module's alone"),
                Some(format!("remove :z, :Z or :U from {} in {}", path, self.resource.source)),
            ));
        }
    }

    /// True when a directory that this module makes covers the path and nothing foreign is there.
    fn own_directory(&self, path: &HostPath) -> bool {
        let Some(module) = self.given.desired.modules.get(self.module) else { return false };
        module.resources.iter().any(|(key, resource)| match &resource.body {
            Body::Directory { path: own, .. } if own.contains(path) => {
                let missing = |facts: &PathFacts| matches!(facts.state, PathState::Missing);
                entry(self.given.ledger, self.module, key).is_some()
                    || self.observed().paths.get(own).is_none_or(missing)
            }
            _ => false,
        })
    }

    /// The host path behind a mount target changed while the data stayed behind.
    pub(super) fn moved_mounts(&self, reasons: &mut Vec<OwnReason>) {
        let Some(entry) = self.entry() else { return };
        for mount in self.resource.facts.mounts.iter().filter(|mount| mount.kind == MountType::Bind) {
            let (Some(old), Ok(new)) = (entry.mounts.get(&mount.target), HostPath::new(&mount.source)) else {
                continue;
            };
            let holds_data = |path: &HostPath| match self.observed().paths.get(path).map(|facts| &facts.state) {
                Some(PathState::Directory { empty, .. }) => !empty,
                Some(PathState::File { size, .. }) => *size > 0,
                _ => false,
            };
            if *old != new && holds_data(old) && !holds_data(&new) {
                reasons.push(Self::other(
                    Reason::MountMoved,
                    format!("{} would move from {old}, which holds data, to {new}, which does not", mount.target),
                    Some(format!("move the data from {old} to {new}, then: holdfast apply {}", quote(self.module))),
                ));
            }
        }
    }
}

fn word(state: &PathState) -> &str {
    match state {
        PathState::Missing => "nothing at",
        PathState::Directory { .. } => "directory",
        PathState::File { .. } => "file",
        PathState::Link { .. } => "link",
        PathState::Other { what } => what,
        PathState::Unknown { .. } => "something at",
    }
}
