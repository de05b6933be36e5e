//! The host's Quadlet directories, read once, with the wanted files of the modules in their places.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File, Metadata};
use std::io::{self, Read};
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Component, Path, PathBuf};

use holdfast_core::generated::GeneratorMessage;
use holdfast_core::resource::Kind;
use rustix::fs::OFlags;
use sha2::{Digest, Sha256};

use super::{GeneratorError, Staged};

/// Larger files are known by time and size, and the staged tree has a link to them.
const WHOLE: u64 = 1024 * 1024;

/// How many entries behind links are looked at: a link to `/` shall cost no minute.
const BEHIND: usize = 10_000;

/// The folder of ours, and what shall be in it.
pub(super) struct Ours<'a> {
    /// Settings' `quadlet_dir`.
    pub quadlet_dir: &'a Path,
    /// The modules whose files are replaced.
    pub staged: &'a [Staged],
}

/// All trees, in the generator's order.
pub(super) struct Snapshot {
    /// The trees by the path at which the host has them.
    pub trees: Vec<(PathBuf, BTreeMap<PathBuf, Node>)>,
    /// False when more lies behind links than was looked at: then no answer can be cached.
    pub complete: bool,
}

/// One entry of a tree.
pub(super) enum Node {
    /// A directory.
    Directory,
    /// A file, whole.
    File(Vec<u8>),
    /// A file that is large or cannot be read: the generator shall meet the real one.
    Elsewhere {
        /// What would change with it.
        stamp: String,
    },
    /// A link.
    Link {
        /// Where it points.
        target: PathBuf,
        /// What would change with what is behind it.
        stamp: String,
    },
    /// A FIFO, or a link to one: opening it would block the generator for ever.
    Blocks,
}

impl Snapshot {
    /// Reads the trees. A root that is not there is none, but the one with our folder is made up.
    pub fn take(roots: &[PathBuf], ours: &Ours<'_>) -> Result<Self, GeneratorError> {
        let mut reader = Reader { behind: 0 };
        let mut trees: Vec<(PathBuf, BTreeMap<PathBuf, Node>)> = Vec::new();
        let mut placed = false;
        let own_root = [ours.quadlet_dir.to_owned()];
        let below = |root: &PathBuf| ours.quadlet_dir.starts_with(root);
        let all = if roots.iter().any(below) { roots.iter().chain(&[]) } else { roots.iter().chain(&own_root) };
        for root in all {
            let folder = ours.quadlet_dir.strip_prefix(root).ok().filter(|_| !placed);
            placed |= folder.is_some();
            let located = match root.canonicalize() {
                Ok(located) => located,
                Err(error) if error.kind() == io::ErrorKind::NotFound && folder.is_none() => continue,
                Err(error) if error.kind() == io::ErrorKind::NotFound => root.clone(),
                Err(source) => return Err(GeneratorError::Read { path: root.clone(), source }),
            };
            if trees.iter().any(|(other, _)| *other == located) {
                continue;
            }
            let mut nodes = BTreeMap::new();
            let place = Place { root: &located, folder, staged: ours.staged };
            reader.directory(&place, Path::new(""), &mut nodes)?;
            if let Some(folder) = folder {
                put(ours.staged, folder, &mut nodes)?;
            }
            trees.push((located, nodes));
        }
        Ok(Self { trees, complete: reader.behind < BEHIND })
    }

    /// What the generator on the host would do with a file that the staged tree leaves out.
    pub fn messages(&self) -> Vec<GeneratorMessage> {
        let mut messages = Vec::new();
        for (root, nodes) in &self.trees {
            for (path, node) in nodes {
                if let Node::Blocks = node
                    && is_read(path)
                {
                    let path = root.join(path).display().to_string();
                    let text = format!("error loading \"{path}\", a FIFO, on which Podman's generator waits for ever");
                    messages.push(GeneratorMessage { file: Some(path), text });
                }
            }
        }
        messages
    }

    /// A hash over names, kinds, contents and links.
    pub fn hash(&self, hasher: &mut Sha256) {
        let mut field = |bytes: &[u8]| {
            hasher.update((bytes.len() as u64).to_le_bytes());
            hasher.update(bytes);
        };
        for (root, nodes) in &self.trees {
            field(b"tree");
            field(root.as_os_str().as_encoded_bytes());
            for (path, node) in nodes {
                field(path.as_os_str().as_encoded_bytes());
                match node {
                    Node::Directory => field(b"directory"),
                    Node::File(bytes) => {
                        field(b"file");
                        field(bytes);
                    }
                    Node::Elsewhere { stamp } => {
                        field(b"elsewhere");
                        field(stamp.as_bytes());
                    }
                    Node::Link { target, stamp } => {
                        field(b"link");
                        field(target.as_os_str().as_encoded_bytes());
                        field(stamp.as_bytes());
                    }
                    Node::Blocks => field(b"blocks"),
                }
            }
        }
    }
}

/// Puts the wanted files into our folder.
fn put(staged: &[Staged], folder: &Path, nodes: &mut BTreeMap<PathBuf, Node>) -> Result<(), GeneratorError> {
    for Staged { module, files, installed: _ } in staged {
        for (path, bytes) in files {
            let relative = Path::new(module).join(path);
            let plain = relative.components().all(|part| matches!(part, Component::Normal(_)));
            if !plain || module.contains('/') || module.is_empty() || path.is_empty() {
                return Err(GeneratorError::Name(format!("{module}/{path}")));
            }
            // As the first apply will make them: that is no change of what the generator reads.
            for parent in relative.ancestors().skip(1).filter(|parent| !parent.as_os_str().is_empty()) {
                nodes.insert(folder.join(parent), Node::Directory);
            }
            nodes.insert(folder.join(relative), Node::File(bytes.clone()));
        }
    }
    Ok(())
}

/// The tree that is read, and what of it is not.
struct Place<'a> {
    root: &'a Path,
    folder: Option<&'a Path>,
    staged: &'a [Staged],
}

impl Place<'_> {
    /// `users/` belongs to users' generators, which the system's skips. Of modules to be replaced what we installed is
    /// not read, nor is the ledger's part beside installed files, which changes with every apply.
    fn skips(&self, path: &Path) -> bool {
        let administrators = self.root == Path::new("/etc/containers/systemd")
            || self.folder.is_some_and(|folder| folder.parent() == Some(Path::new("")));
        if administrators && path == Path::new("users") {
            return true;
        }
        let Some(below) = self.folder.and_then(|folder| path.strip_prefix(folder).ok()) else { return false };
        let mut parts = below.components();
        let Some(module) = parts.next() else { return false };
        let path = parts.as_path();
        let staged = self.staged.iter().find(|staged| module.as_os_str() == staged.module.as_str());
        path == Path::new(".holdfast.json")
            || staged.is_some_and(|staged| path.to_str().is_some_and(|path| staged.installed.contains(path)))
    }
}

struct Reader {
    /// How many entries behind links were looked at.
    behind: usize,
}

impl Reader {
    fn directory(
        &mut self, place: &Place<'_>, relative: &Path, nodes: &mut BTreeMap<PathBuf, Node>,
    ) -> Result<(), GeneratorError> {
        let directory = place.root.join(relative);
        let failed = |source: io::Error| GeneratorError::Read { path: directory.clone(), source };
        let entries = match fs::read_dir(&directory) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(failed(error)),
        };
        for entry in entries {
            let path = relative.join(entry.map_err(failed)?.file_name());
            if place.skips(&path) {
                continue;
            }
            let full = place.root.join(&path);
            let Ok(metadata) = full.symlink_metadata() else { continue };
            // The way to our own folder is rebuilt as directories, whatever it is: nothing is staged through a link.
            let own = place.folder.is_some_and(|folder| folder.starts_with(&path));
            if metadata.is_dir() || (own && full.is_dir()) {
                nodes.insert(path.clone(), Node::Directory);
                self.directory(place, &path, nodes)?;
            } else {
                nodes.insert(path, self.node(&full, &metadata));
            }
        }
        Ok(())
    }

    fn node(&mut self, path: &Path, metadata: &Metadata) -> Node {
        if metadata.is_symlink() {
            let target = path.read_link().unwrap_or_default();
            return match path.metadata() {
                Ok(behind) if behind.file_type().is_fifo() => Node::Blocks,
                Ok(behind) => Node::Link { target, stamp: self.stamp(path, &behind, &mut BTreeSet::new()) },
                Err(error) => Node::Link { target, stamp: error.kind().to_string() },
            };
        }
        if metadata.file_type().is_fifo() {
            return Node::Blocks;
        }
        match whole(path, metadata) {
            Ok(bytes) => Node::File(bytes),
            Err(stamp) => Node::Elsewhere { stamp },
        }
    }

    /// What would change with what is behind a link: contents of what the generator reads, names of the rest.
    fn stamp(&mut self, path: &Path, metadata: &Metadata, seen: &mut BTreeSet<(u64, u64)>) -> String {
        self.behind += 1;
        if metadata.is_file() {
            return match whole(path, metadata) {
                Ok(bytes) => hex(&Sha256::digest(bytes)),
                Err(stamp) => stamp,
            };
        }
        if !metadata.is_dir() || self.behind >= BEHIND || !seen.insert((metadata.dev(), metadata.ino())) {
            return format!("{:o}", metadata.mode());
        }
        let mut hasher = Sha256::new();
        let names: BTreeSet<_> =
            fs::read_dir(path).into_iter().flatten().filter_map(|entry| Some(entry.ok()?.file_name())).collect();
        for name in names {
            let path = path.join(&name);
            hasher.update(name.as_encoded_bytes());
            let stamp = match path.metadata() {
                Ok(metadata) if metadata.is_dir() || is_read(&path) => self.stamp(&path, &metadata, seen),
                Ok(_) => String::new(),
                Err(error) => error.kind().to_string(),
            };
            hasher.update([0]);
            hasher.update(stamp);
            hasher.update([0]);
        }
        hex(&hasher.finalize())
    }
}

/// A file's bytes, or what stands for them.
fn whole(path: &Path, metadata: &Metadata) -> Result<Vec<u8>, String> {
    let stamp = |size: u64| format!("{size} {}.{:09}", metadata.mtime(), metadata.mtime_nsec());
    if !metadata.is_file() {
        return Err(format!("{:o}", metadata.mode()));
    }
    if metadata.len() > WHOLE {
        return Err(stamp(metadata.len()));
    }
    let mut bytes = Vec::with_capacity(usize::try_from(metadata.len()).unwrap_or(0) + 1);
    // NONBLOCK: it may have become a FIFO since the look.
    let flags = i32::try_from((OFlags::NONBLOCK | OFlags::NOCTTY).bits()).unwrap_or(0);
    let opened: io::Result<File> = fs::OpenOptions::new().read(true).custom_flags(flags).open(path);
    match opened.and_then(|file| file.take(WHOLE + 1).read_to_end(&mut bytes)) {
        Ok(read) if read as u64 <= WHOLE => Ok(bytes),
        Ok(read) => Err(stamp(read as u64)),
        Err(error) => Err(error.to_string()),
    }
}

/// True for what the generator opens.
fn is_read(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    Kind::of_quadlet(&name).is_some() || name.ends_with(".conf")
}

pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
