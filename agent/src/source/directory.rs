//! A module directory -> ModuleFiles.
//!
//! Everything is opened relative to its directory's descriptor and without following links, so that nobody can swap a
//! path between the look and the read; what is no regular file is never opened for reading.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::CString;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use holdfast_core::module::{Content, FileEntry, ModuleFiles, is_left_alone, size_cap};
use holdfast_core::problem::Problem;
use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, Stat, fstat, openat, readlinkat, statat};
use rustix::io::Errno;
use thiserror::Error;

use super::links::{Leads, Paths};

const MAX_ENTRIES: usize = 5000;
const MAX_DEPTH: usize = 16;
const MAX_BYTES: u64 = 64 * 1024 * 1024;

/// How many unsafe paths are named one by one; a copied tree has hundreds, and one command cures them all.
const NAMED_OWNERS: usize = 5;

/// What keeps the modules from being read at all.
#[derive(Debug, Error)]
pub enum SourceError {
    /// The directory could not be opened.
    #[error("cannot open {path}")]
    Open {
        /// The directory.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The directory could not be listed.
    #[error("cannot list {path}")]
    List {
        /// The directory.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
}

/// Whose the files must be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ownership {
    /// Only root may change them, since they will run as root.
    RootOnly,
    /// Anybody's: they are only looked at.
    Any,
}

/// Reads all modules of a modules directory, by name. A directory that is not there has none.
///
/// What is no directory is ignored, but a link to one, or to nothing, is a module that cannot be read: somebody meant it.
///
/// # Errors
/// [`SourceError`] when the directory itself cannot be read; what is wrong in one module is in its `problems`.
pub fn read_all(modules_dir: &Path) -> Result<Vec<ModuleFiles>, SourceError> {
    let dir = match openat(CWD, modules_dir, OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty()) {
        Ok(dir) => dir,
        Err(Errno::NOENT) => return Ok(Vec::new()),
        Err(error) => return Err(SourceError::Open { path: modules_dir.to_owned(), source: error.into() }),
    };
    let list = |error: Errno| SourceError::List { path: modules_dir.to_owned(), source: error.into() };
    let above = unsafe_owner(modules_dir, &fstat(&dir).map_err(list)?);
    let mut modules = Vec::new();
    for name in names(dir.as_fd()).map_err(list)? {
        if name.as_bytes() == b".git" {
            continue;
        }
        let path = modules_dir.join(name.to_string_lossy().as_ref());
        let Some(mut module) = read_entry(dir.as_fd(), &name, path) else { continue };
        module.unsafe_owner.splice(0..0, above.clone());
        modules.push(module);
    }
    Ok(modules)
}

/// Reads one module directory, wherever it is.
///
/// # Errors
/// [`SourceError::Open`] when it is no directory or cannot be opened.
pub fn read_one(path: &Path, ownership: Ownership) -> Result<ModuleFiles, SourceError> {
    let failed = |source: io::Error| SourceError::Open { path: path.to_owned(), source };
    let dir = openat(CWD, path, OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty());
    let dir = dir.map_err(|error| failed(error.into()))?;
    let located = path.canonicalize().map_err(failed)?;
    let name = located.file_name().unwrap_or_default().to_string_lossy().into_owned();
    Ok(Walk::new(path.to_owned(), ownership).module(name, dir))
}

/// An entry directly below the modules directory; none for what is no module.
fn read_entry(above: BorrowedFd<'_>, name: &CString, path: PathBuf) -> Option<ModuleFiles> {
    let text = name.to_string_lossy().into_owned();
    let broken = |message: String| ModuleFiles {
        name: text.clone(),
        problems: vec![Problem::error("", None, message)],
        ..ModuleFiles::default()
    };
    let stat = statat(above, name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::Directory => {
            let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            match openat(above, name, flags, Mode::empty()) {
                Ok(dir) => Some(Walk::new(path, Ownership::RootOnly).module(text, dir)),
                Err(Errno::NOENT) => None,
                Err(error) => Some(broken(format!("the directory cannot be opened: {}", io::Error::from(error)))),
            }
        }
        FileType::Symlink => {
            let to_file = statat(above, name, AtFlags::empty())
                .is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) != FileType::Directory);
            let path = path.display();
            let mut module = broken(format!("{path} is a link; a module is a directory of its own"));
            let hint = format!("cp -aT \"$(readlink -f {path})\" {path}.new && rm {path} && mv {path}.new {path}");
            module.problems = module.problems.into_iter().map(|problem| problem.hint(&hint)).collect();
            (!to_file).then_some(module)
        }
        _ => None,
    }
}

/// One walk through one module.
struct Walk {
    path: PathBuf,
    ownership: Ownership,
    files: BTreeMap<String, FileEntry>,
    directories: BTreeSet<String>,
    links: BTreeMap<String, String>,
    problems: Vec<Problem>,
    unsafe_owner: Vec<String>,
    entries: usize,
    bytes: u64,
}

impl Walk {
    fn new(path: PathBuf, ownership: Ownership) -> Self {
        Self {
            path,
            ownership,
            files: BTreeMap::new(),
            directories: BTreeSet::new(),
            links: BTreeMap::new(),
            problems: Vec::new(),
            unsafe_owner: Vec::new(),
            entries: 0,
            bytes: 0,
        }
    }

    fn module(mut self, name: String, dir: OwnedFd) -> ModuleFiles {
        self.directory(dir, "", 1);
        self.resolve_links();
        let more = self.unsafe_owner.len().saturating_sub(NAMED_OWNERS);
        if more > 0 {
            self.unsafe_owner.truncate(NAMED_OWNERS);
            let path = self.path.display();
            let cure = format!("chown -R root:root {path} && chmod -R go-w {path}");
            self.unsafe_owner.push(format!("{more} more paths in {path} may be changed by others ({cure})"));
        }
        let Self { files, problems, unsafe_owner, .. } = self;
        ModuleFiles { name, files, problems, unsafe_owner }
    }

    fn directory(&mut self, dir: OwnedFd, relative: &str, depth: usize) {
        let listed = fstat(&dir).and_then(|stat| {
            self.owner(relative, &stat);
            names(dir.as_fd())
        });
        let names = match listed {
            Ok(names) => names,
            Err(error) => return self.problem(relative, format!("cannot be listed: {}", io::Error::from(error))),
        };
        for name in names {
            self.entries += 1;
            match self.entries {
                ..=MAX_ENTRIES => self.entry(dir.as_fd(), &name, relative, depth),
                entries if entries == MAX_ENTRIES + 1 => {
                    let path = join(relative, &name.to_string_lossy());
                    self.problem(
                        &path,
                        format!("the module has more than {MAX_ENTRIES} entries; the rest is not read"),
                    );
                }
                _ => return,
            }
        }
    }

    fn entry(&mut self, dir: BorrowedFd<'_>, name: &CString, above: &str, depth: usize) {
        let path = join(above, &name.to_string_lossy());
        if name.to_str().map_or(true, |name| name.contains(char::is_control)) {
            return self.problem(&path, "the name is not UTF-8 or has control characters in it".to_owned());
        }
        let stat = match statat(dir, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => stat,
            Err(Errno::NOENT) => return,
            Err(error) => return self.unreadable(path, error),
        };
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::Directory => self.subdirectory(dir, name, path, depth),
            FileType::RegularFile => self.file(dir, name, path),
            FileType::Symlink => {
                self.owner(&path, &stat);
                match readlinkat(dir, name, Vec::new()) {
                    Ok(target) => {
                        self.links.insert(path, target.to_string_lossy().into_owned());
                    }
                    Err(error) => self.unreadable(path, error),
                }
            }
            special => self.insert(path, Content::Special(kind(special)), &stat),
        }
    }

    fn subdirectory(&mut self, dir: BorrowedFd<'_>, name: &CString, path: String, depth: usize) {
        let opened = openat(dir, name, OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty());
        match opened {
            Ok(opened) if is_left_alone(&path) => match fstat(&opened) {
                Ok(stat) => self.insert(path, Content::Special("directory"), &stat),
                Err(error) => self.unreadable(path, error),
            },
            Ok(_) if depth >= MAX_DEPTH => {
                self.problem(&path, format!("the directory lies deeper than {MAX_DEPTH} levels and is not read"));
            }
            Ok(opened) => {
                self.directory(opened, &path, depth + 1);
                self.directories.insert(path);
            }
            Err(error) => self.problem(&path, format!("cannot be opened: {}", io::Error::from(error))),
        }
    }

    fn file(&mut self, dir: BorrowedFd<'_>, name: &CString, path: String) {
        // NONBLOCK: it may have become a FIFO since the look.
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let opened = openat(dir, name, flags, Mode::empty()).and_then(|fd| fstat(&fd).map(|stat| (fd, stat)));
        let (fd, stat) = match opened {
            Ok(opened) => opened,
            Err(error) => return self.unreadable(path, error),
        };
        let content = match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => self.content(File::from(fd), &path, u64::try_from(stat.st_size).unwrap_or(0)),
            other => Content::Special(kind(other)),
        };
        self.insert(path, content, &stat);
    }

    fn content(&mut self, file: File, path: &str, size: u64) -> Content {
        let cap = size_cap(path);
        if size > cap {
            return Content::TooLarge { size };
        }
        if self.bytes + size > MAX_BYTES {
            let mib = MAX_BYTES / (1024 * 1024);
            self.problem(path, format!("the module has more than {mib} MiB in its files; this one is not read"));
            return Content::TooLarge { size };
        }
        let mut bytes = Vec::new();
        // One byte more than the cap: a file may grow while it is read.
        match file.take(cap + 1).read_to_end(&mut bytes) {
            Ok(read) if read as u64 > cap => Content::TooLarge { size: read as u64 },
            Ok(read) => {
                self.bytes += read as u64;
                Content::Bytes(bytes)
            }
            Err(error) => Content::Unreadable { error: error.to_string() },
        }
    }

    fn resolve_links(&mut self) {
        let located = self.path.canonicalize().unwrap_or_else(|_| self.path.clone());
        let paths = Paths {
            roots: vec![&self.path, &located],
            links: &self.links,
            directories: &self.directories,
            is_file: &|path| self.files.contains_key(path),
        };
        let mut resolved = BTreeMap::new();
        for (link, target) in &self.links {
            let target = target.clone();
            // Whether something is there decides only the words: it is not opened.
            let there = self.path.join(link).metadata();
            let content = match (paths.follow(link), there) {
                (Leads::File(file), _) => {
                    let entry = self.files.get(&file).cloned();
                    resolved.extend(entry.map(|entry| (link.clone(), FileEntry { link_to: Some(file), ..entry })));
                    continue;
                }
                (Leads::Directory, _) => {
                    Content::Unreadable { error: format!("it is a link to the directory {target}") }
                }
                (_, Err(error)) if error.kind() == io::ErrorKind::NotFound => Content::LinkDangling { target },
                (Leads::Outside, _) => Content::LinkOutside { target },
                (Leads::Loop, _) => Content::Unreadable { error: format!("the link to {target} leads in a circle") },
                (Leads::Nowhere, _) => {
                    Content::Unreadable { error: format!("it is a link to {target}, which is not read") }
                }
            };
            resolved.insert(link.clone(), FileEntry { content, mode: 0o777, link_to: None });
        }
        self.files.extend(resolved);
    }

    fn insert(&mut self, path: String, content: Content, stat: &Stat) {
        self.owner(&path, stat);
        self.files.insert(path, FileEntry { content, mode: stat.st_mode & 0o777, link_to: None });
    }

    fn unreadable(&mut self, path: String, error: Errno) {
        let content = Content::Unreadable { error: io::Error::from(error).to_string() };
        self.files.insert(path, FileEntry { content, mode: 0, link_to: None });
    }

    fn problem(&mut self, path: &str, message: String) {
        self.problems.push(Problem::error(path, None, message));
    }

    fn owner(&mut self, relative: &str, stat: &Stat) {
        if self.ownership == Ownership::RootOnly {
            let path = if relative.is_empty() { self.path.clone() } else { self.path.join(relative) };
            self.unsafe_owner.extend(unsafe_owner(&path, stat));
        }
    }
}

/// Why somebody other than root may change a path, with the command that ends it. A link's mode means nothing.
fn unsafe_owner(path: &Path, stat: &Stat) -> Option<String> {
    let path = path.display();
    let link = FileType::from_raw_mode(stat.st_mode) == FileType::Symlink;
    let mode = stat.st_mode & 0o7777;
    let writable = !link && mode & 0o022 != 0;
    match (stat.st_uid, writable) {
        (0, false) => None,
        (0, true) => Some(format!("{path} may be written by others than root, mode {mode:04o} (chmod go-w {path})")),
        (uid, false) => Some(format!("{path} belongs to uid {uid}, not to root (chown -h root:root {path})")),
        (uid, true) => Some(format!(
            "{path} belongs to uid {uid}, not to root, and has mode {mode:04o} (chown root:root {path} && chmod go-w {path})"
        )),
    }
}

/// The names in a directory, sorted: the order on disk is nobody's.
fn names(dir: BorrowedFd<'_>) -> rustix::io::Result<Vec<CString>> {
    let mut names = Vec::new();
    for entry in Dir::read_from(dir)? {
        let name = entry?.file_name().to_owned();
        if !matches!(name.as_bytes(), b"." | b"..") {
            names.push(name);
        }
    }
    names.sort();
    Ok(names)
}

fn join(above: &str, name: &str) -> String {
    if above.is_empty() { name.to_owned() } else { format!("{above}/{name}") }
}

fn kind(file_type: FileType) -> &'static str {
    match file_type {
        FileType::Fifo => "FIFO",
        FileType::Socket => "socket",
        FileType::CharacterDevice => "character device",
        FileType::BlockDevice => "block device",
        FileType::Directory => "directory",
        FileType::Symlink => "link",
        FileType::RegularFile | FileType::Unknown => "special file",
    }
}
