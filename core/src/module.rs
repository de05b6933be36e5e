//! A module's files -> what they are: Quadlet files with their drop-ins, plain units, files, declared paths.

mod classify;
mod dropins;
mod place;
mod read;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use crate::manifest::Manifest;
use crate::name::HostPath;
use crate::problem::Problem;
use crate::resource::Kind;
use crate::unitfile::UnitFile;

pub use classify::{is_left_alone, size_cap};
pub use dropins::dropin_folders;
pub(crate) use place::refusal;
pub use read::read;

/// The files of one directory below the modules directory, as read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ModuleFiles {
    /// The directory's name, whatever it is.
    pub name: String,
    /// Its files by relative path with `/`.
    pub files: BTreeMap<String, FileEntry>,
    /// What made the reading itself fail or unsafe: unreadable directory, too many files.
    pub problems: Vec<Problem>,
    /// Files or directories that somebody other than root may change, as sentences.
    pub unsafe_owner: Vec<String>,
}

/// One entry of a module directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileEntry {
    /// What it holds.
    pub content: Content,
    /// Permission bits, `mode & 0o777`.
    pub mode: u32,
    /// For a link to a file of the same module: that file's relative path.
    pub link_to: Option<String>,
}

/// What an entry of a module directory holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Content {
    /// A regular file, whole.
    Bytes(Vec<u8>),
    /// A regular file above the size cap; it was not read.
    TooLarge {
        /// Its size in bytes.
        size: u64,
    },
    /// A FIFO, socket or device; it was not opened for reading.
    Special(&'static str),
    /// A link out of the module.
    LinkOutside {
        /// Where it points.
        target: String,
    },
    /// A link to nothing.
    LinkDangling {
        /// Where it points.
        target: String,
    },
    /// It could not be read.
    Unreadable {
        /// The system's error.
        error: String,
    },
}

/// A module that was read: what each file is. What could not be understood is in `problems`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Module {
    /// The directory's name (a valid module name, else `problems` says so).
    pub name: String,
    /// `module.toml`, or the default.
    pub manifest: Manifest,
    /// Quadlet files by the name under which they are installed (`web.container`). Several files of one name are all kept.
    pub quadlets: BTreeMap<String, Vec<QuadletSource>>,
    /// Plain units by name.
    pub units: BTreeMap<String, UnitSource>,
    /// Files of `files/` by their path on the host.
    pub files: BTreeMap<HostPath, FileSource>,
    /// Paths that `tmpfiles.d/*.conf` declares.
    pub declared: Vec<Declared>,
    /// The text for `/etc/tmpfiles.d/holdfast-NAME.conf`: the lines below /run; empty if there are none.
    pub runtime_lines: String,
    /// Every other file, by relative path: an asset travels only if a Quadlet file refers to it.
    pub assets: BTreeMap<String, FileEntry>,
    /// Files that were left alone, by relative path, for lint.
    pub left_alone: Vec<String>,
    /// Errors make the whole module unreadable; warnings are for lint.
    pub problems: Vec<Problem>,
    /// Why the module is held as `unsafe-owner`, as sentences.
    pub unsafe_owner: Vec<String>,
}

/// One Quadlet file with its drop-ins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QuadletSource {
    /// Relative path in the module.
    pub file: String,
    /// Its kind.
    pub kind: Kind,
    /// The file as written, its drop-ins appended in Podman's order. This is installed, with a trailer.
    pub text: String,
    /// The same, parsed. Line numbers beyond `own_lines` belong to drop-ins.
    pub parsed: UnitFile,
    /// How many lines the file itself has in `text`.
    pub own_lines: u32,
    /// The drop-ins that were appended, by relative path.
    pub dropins: Vec<String>,
}

/// One plain unit with its drop-ins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnitSource {
    /// Relative path in the module.
    pub file: String,
    /// Its text.
    pub text: String,
    /// The same, parsed.
    pub parsed: UnitFile,
    /// Its drop-ins: file name to text.
    pub dropins: BTreeMap<String, String>,
}

/// One file of `files/`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileSource {
    /// Relative path in the module.
    pub file: String,
    /// Its bytes.
    pub content: Vec<u8>,
    /// `mode & 0o777`.
    pub mode: u32,
}

/// One line of a `tmpfiles.d/*.conf`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Declared {
    /// Directory, empty file or link.
    pub kind: Kind,
    /// Its path.
    pub path: HostPath,
    /// `mode & 0o7777`; none = the default (0755, 0644).
    pub mode: Option<u32>,
    /// User, by name or number; none = root.
    pub user: Option<String>,
    /// Group, by name or number; none = root.
    pub group: Option<String>,
    /// A link's target.
    pub target: Option<String>,
    /// Relative path of the file in the module.
    pub file: String,
    /// Its line.
    pub line: u32,
}
