//! Whose is a host path: the module's own or the host's, as a table.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::manifest::Manifest;
use crate::module::Declared;
use crate::name::HostPath;
use crate::quadlet::{Mount, MountType};
use crate::resource::Kind;

/// Everything at or below these is the host's.
const REFERENCE_ROOTS: &[&str] =
    &["/etc", "/usr", "/run", "/var/run", "/dev", "/proc", "/sys", "/boot", "/tmp", "/home", "/root", "/mnt", "/media"];

/// The directories whose own entries are the host's: `/var/lib` is, `/var/lib/web` need not be.
const SHARED_PARENTS: &[&str] = &["/", "/var", "/opt"];

/// Whose a host path is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Owner {
    /// The module's: a `directory/` resource, made where it is not there.
    Own,
    /// The module's if a directory is there; nobody has looked yet. Its name is that of a file, so where nothing or a
    /// file is there it is a reference: a directory is never made where a file was meant.
    OwnUnlessFileLike,
    /// The host's: a reference that must exist and is never made.
    Host,
}

/// What a look at the host told about a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Seen {
    /// Nobody has looked, or the look failed.
    Unknown,
    /// Nothing is there.
    Missing,
    /// A directory.
    Directory,
    /// A file, device or socket.
    Other,
}

/// A path as a mount asks for it.
#[derive(Debug, Clone, Copy)]
pub struct Asked<'a> {
    /// The path on the host.
    pub path: &'a HostPath,
    /// The same with its links resolved, where that is known.
    pub real: Option<&'a HostPath>,
    /// Where it is mounted.
    pub target: &'a str,
    /// True for a read-only mount.
    pub read_only: bool,
    /// What is there.
    pub seen: Seen,
}

/// What a module says of paths, and what the others own.
#[derive(Debug, Clone, Default)]
pub struct Ground {
    /// Directories that `tmpfiles.d` declares: these, and not what is below them.
    declared: BTreeSet<HostPath>,
    /// `[paths] own`.
    own: BTreeSet<HostPath>,
    /// `[paths] host`.
    host: BTreeSet<HostPath>,
    /// Directories of this module in the ledger: another module that comes later takes none of them away.
    kept: BTreeSet<HostPath>,
    /// What all modules own, and which of them this one is.
    owners: Arc<Owners>,
    module: usize,
}

/// What is owned by which module, the modules by number.
#[derive(Debug, Clone, Default)]
pub struct Owners(BTreeMap<HostPath, BTreeSet<usize>>);

impl Owners {
    /// Notes that a module owns a path.
    pub fn add(&mut self, path: HostPath, module: usize) {
        self.0.entry(path).or_default().insert(module);
    }

    fn another_is_below(&self, path: &HostPath, module: usize) -> bool {
        path.below(&self.0).any(|(_, modules)| modules.iter().any(|other| *other != module))
    }
}

impl Ground {
    /// What one module says, before the others are known.
    #[must_use]
    pub fn new(manifest: &Manifest, declared: &[Declared]) -> Self {
        let directories = declared.iter().filter(|line| line.kind == Kind::Directory);
        Self {
            declared: directories.map(|line| line.path.clone()).collect(),
            own: manifest.own_paths.iter().cloned().collect(),
            host: manifest.host_paths.iter().cloned().collect(),
            ..Self::default()
        }
    }

    /// The same where the ledger has these directories as the module's.
    #[must_use]
    pub fn keeping(self, kept: BTreeSet<HostPath>) -> Self {
        Self { kept, ..self }
    }

    /// The same among other modules, being the one of this number.
    #[must_use]
    pub fn among(self, owners: Arc<Owners>, module: usize) -> Self {
        Self { owners, module, ..self }
    }

    /// The directories that are the module's own because it says so.
    pub fn stated(&self) -> impl Iterator<Item = &HostPath> {
        self.declared.union(&self.own)
    }

    /// True when the module says that the path is the host's.
    #[must_use]
    pub fn yields(&self, path: &HostPath) -> bool {
        self.said(path) == Some(Owner::Host)
    }

    /// Whose a mounted path is.
    #[must_use]
    pub fn owner(&self, asked: &Asked) -> Owner {
        if let Some(said) = self.said(asked.path) {
            // Below an own path a read-only mount still makes nothing: it refers to what is there.
            let exact = self.declared.contains(asked.path) || self.own.contains(asked.path);
            return if asked.read_only && !exact { Owner::Host } else { said };
        }
        let names = || [Some(asked.path), asked.real].into_iter().flatten();
        let parent_of_other =
            || !self.kept.contains(asked.path) && self.owners.another_is_below(asked.path, self.module);
        if asked.read_only || asked.seen == Seen::Other || names().any(is_reference) || parent_of_other() {
            return Owner::Host;
        }
        match asked.seen {
            Seen::Unknown | Seen::Missing if self.kept.contains(asked.path) => Owner::Own,
            Seen::Unknown if is_file_like(asked) => Owner::OwnUnlessFileLike,
            Seen::Missing if is_file_like(asked) => Owner::Host,
            Seen::Unknown | Seen::Missing | Seen::Directory | Seen::Other => Owner::Own,
        }
    }

    /// The word of `lint --json` for one mount: own, host, or volume.
    #[must_use]
    pub fn word(&self, mount: &Mount) -> &'static str {
        let path = match mount.kind {
            MountType::Bind => HostPath::new(&mount.source),
            MountType::Volume | MountType::Anonymous | MountType::Tmpfs | MountType::Image | MountType::Other => {
                return "volume";
            }
        };
        let Ok(path) = path else { return "host" };
        let asked =
            Asked { path: &path, real: None, target: &mount.target, read_only: mount.read_only, seen: Seen::Unknown };
        match self.owner(&asked) {
            Owner::Own if !mount.relative => "own",
            Owner::Own | Owner::OwnUnlessFileLike | Owner::Host => "host",
        }
    }

    /// What the module itself says: the nearest of its own words counts, so that a part of a host's directory can be own.
    fn said(&self, path: &HostPath) -> Option<Owner> {
        if self.declared.contains(path) {
            return Some(Owner::Own);
        }
        let nearest = |set: &BTreeSet<HostPath>| {
            set.iter().filter(|said| said.contains(path)).map(|said| said.parts().count()).max()
        };
        match (nearest(&self.own), nearest(&self.host)) {
            (Some(own), Some(host)) if host > own => Some(Owner::Host),
            (Some(_), _) => Some(Owner::Own),
            (None, Some(_)) => Some(Owner::Host),
            (None, None) => None,
        }
    }
}

fn is_reference(path: &HostPath) -> bool {
    let below = |root: &&str| HostPath::new(root).is_ok_and(|root| root.contains(path));
    let parent = path.parent();
    let shared = parent.as_ref().is_none_or(|parent| SHARED_PARENTS.contains(&parent.as_str()));
    shared || REFERENCE_ROOTS.iter().any(below)
}

/// True when the path, or where it is mounted, is named as files are: `web.yml`, `app.sock`.
fn is_file_like(asked: &Asked) -> bool {
    let target = asked.target.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
    has_extension(asked.path.file_name()) || has_extension(target)
}

/// A leading dot makes a hidden name, not an extension: `.cache` is a directory as likely as not.
fn has_extension(name: &str) -> bool {
    name.trim_start_matches('.').rsplit_once('.').is_some_and(|(stem, extension)| {
        !stem.is_empty() && !extension.is_empty() && extension.bytes().any(|c| c.is_ascii_alphabetic())
    })
}

#[cfg(test)]
mod tests;
