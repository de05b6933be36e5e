//! Makes, writes and removes files, each through the open directory that holds it.
//!
//! Paths are walked one part at a time. A link is followed only if root made it where nobody else can make one, so
//! that no user can lead a write of root's to another place, not even between look and act.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;

use holdfast_core::name::HostPath;
use rustix::fs::{AtFlags, FileType, Gid, Mode, OFlags, RawMode, RenameFlags, Stat, Uid, XattrFlags};
use rustix::io::Errno;
use sha2::{Digest, Sha256};
use thiserror::Error;

/// The mark on a directory that we made: the module's name.
const MARK: &str = "trusted.holdfast.module";

/// How many links a path may lead through, as in the kernel.
const MAX_LINKS: u32 = 40;

/// What went wrong with a path.
#[derive(Debug, Error)]
pub enum FileError {
    /// A system call failed.
    #[error("cannot {act} {path}")]
    System {
        /// The verb.
        act: &'static str,
        /// The path.
        path: String,
        /// The system's error.
        #[source]
        source: std::io::Error,
    },
    /// Something is where nothing was when the plan was made.
    #[error("{0} was found meanwhile; it is left as it is")]
    FoundMeanwhile(String),
    /// A file of ours is no longer as we wrote it.
    #[error("{0} was changed meanwhile; it is left as it is")]
    ChangedMeanwhile(String),
    /// A link that somebody other than root may have made.
    #[error("{0} is a link that somebody other than root may have made")]
    UnsafeLink(String),
    /// A part of the path is no directory.
    #[error("{0} is no directory")]
    NotDirectory(String),
    /// What should be a file is something else.
    #[error("{0} is no regular file")]
    NotFile(String),
    /// The path has no last part to act on.
    #[error("{0} cannot be written: it is the root directory")]
    Root(String),
    /// A user or group that this host does not have.
    #[error("there is no {what} \"{name}\" on this host")]
    NoSuchOwner {
        /// user or group.
        what: &'static str,
        /// Its name.
        name: String,
    },
}

impl FileError {
    /// The system's error number, where there is one.
    #[must_use]
    pub fn errno(&self) -> Option<i32> {
        match self {
            Self::System { act: _, path: _, source } => source.raw_os_error(),
            Self::FoundMeanwhile(_) => Some(Errno::EXIST.raw_os_error()),
            Self::UnsafeLink(_) => Some(Errno::LOOP.raw_os_error()),
            Self::NotDirectory(_) => Some(Errno::NOTDIR.raw_os_error()),
            Self::ChangedMeanwhile(_) | Self::NotFile(_) | Self::Root(_) | Self::NoSuchOwner { what: _, name: _ } => {
                None
            }
        }
    }

    fn system(act: &'static str, path: impl ToString) -> impl FnOnce(Errno) -> Self {
        let path = path.to_string();
        move |errno| Self::System { act, path, source: errno.into() }
    }
}

/// What may be at the path when a file is written there.
#[derive(Debug, Clone, Copy)]
pub enum Before<'a> {
    /// Nothing.
    Nothing,
    /// A file with this SHA-256.
    Sha256(&'a str),
    /// Anything: the file is holdfast's own book, not a module's.
    Anything,
}

/// What a written file is like.
#[derive(Debug, Clone, Copy)]
pub struct Attributes<'a> {
    /// `mode & 0o7777`.
    pub mode: u32,
    /// User and group, by name or number.
    pub owner: (&'a str, &'a str),
}

impl Attributes<'static> {
    /// Root's, with this mode.
    #[must_use]
    pub fn root(mode: u32) -> Self {
        Self { mode, owner: ("root", "root") }
    }
}

/// Makes a directory that is not there, and its missing parents (0755 root), and marks it with the module's name.
///
/// # Errors
/// [`FileError`]; nothing of the directory itself is left then.
pub fn make_directory(path: &HostPath, like: Attributes<'_>, module: &str) -> Result<(), FileError> {
    let owner = owner_ids(like.owner)?;
    let place = Place::of(path, Parents::Make)?;
    match rustix::fs::mkdirat(&place.dir, &place.name, Mode::RWXU) {
        Err(Errno::EXIST) => return Err(FileError::FoundMeanwhile(path.to_string())),
        made => made.map_err(FileError::system("make", path))?,
    }
    let finished = finish_directory(&place, path, like.mode, owner, module);
    if finished.is_err() {
        // Best effort: the first error is the one to tell.
        rustix::fs::unlinkat(&place.dir, &place.name, AtFlags::REMOVEDIR).unwrap_or_default();
    }
    finished
}

/// Makes a symbolic link where nothing is.
///
/// # Errors
/// [`FileError`]
pub fn make_link(path: &HostPath, target: &str) -> Result<(), FileError> {
    let place = Place::of(path, Parents::Make)?;
    match rustix::fs::symlinkat(target, &place.dir, &place.name) {
        Err(Errno::EXIST) => Err(FileError::FoundMeanwhile(path.to_string())),
        made => made.map_err(FileError::system("make", path)),
    }?;
    place.sync()
}

/// Writes a file as a whole: afterwards the path holds the old file or the new one, also after a power cut.
///
/// # Errors
/// [`FileError`]; the old file is whole then, and no other one is left beside it.
pub fn write_file(path: &HostPath, content: &[u8], like: Attributes<'_>, before: Before<'_>) -> Result<(), FileError> {
    let owner = owner_ids(like.owner)?;
    let place = Place::of(path, Parents::Make)?;
    let temp = place.temp_name();
    let written = write_temp(&place, &temp, content, like.mode, owner).and_then(|()| place.put(&temp, before));
    if written.is_err() {
        rustix::fs::unlinkat(&place.dir, temp.as_str(), AtFlags::empty()).unwrap_or_default();
    }
    written?;
    place.sync()
}

/// Removes a file if it is as we wrote it. One that is gone already is no error.
///
/// # Errors
/// [`FileError::ChangedMeanwhile`] when it was edited.
pub fn remove_file(path: &HostPath, sha256: &str) -> Result<(), FileError> {
    let Some(place) = Place::existing(path)? else { return Ok(()) };
    match place.sha256()? {
        None => Ok(()),
        Some(found) if found != sha256 => Err(FileError::ChangedMeanwhile(path.to_string())),
        Some(_) => {
            rustix::fs::unlinkat(&place.dir, &place.name, AtFlags::empty())
                .map_err(FileError::system("remove", path))?;
            place.sync()
        }
    }
}

/// Removes a directory if it is there and empty.
///
/// # Errors
/// [`FileError`]; a directory that holds something is no error.
pub fn remove_empty_directory(path: &HostPath) -> Result<Emptied, FileError> {
    let Some(place) = Place::existing(path)? else { return Ok(Emptied::Gone) };
    match rustix::fs::unlinkat(&place.dir, &place.name, AtFlags::REMOVEDIR) {
        Ok(()) => place.sync().map(|()| Emptied::Gone),
        Err(Errno::NOENT) => Ok(Emptied::Gone),
        Err(Errno::NOTEMPTY | Errno::EXIST | Errno::BUSY) => Ok(Emptied::HoldsSomething),
        Err(errno) => Err(FileError::system("remove", path)(errno)),
    }
}

/// Whether a directory went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Emptied {
    /// It is not there any more.
    Gone,
    /// Something is in it; it stays.
    HoldsSomething,
}

/// The content of a regular file; none where nothing is.
///
/// # Errors
/// [`FileError`]
pub fn read_file(path: &HostPath) -> Result<Option<Vec<u8>>, FileError> {
    match Place::existing(path)? {
        Some(place) => place.read(),
        None => Ok(None),
    }
}

/// The names in a directory, sorted; none where nothing is.
///
/// # Errors
/// [`FileError`]
pub fn read_directory(path: &HostPath) -> Result<Option<Vec<String>>, FileError> {
    let Some(dir) = walk(path, Parents::Leave)? else { return Ok(None) };
    let mut names = Vec::new();
    for entry in rustix::fs::Dir::read_from(&dir).map_err(FileError::system("list", path))? {
        let entry = entry.map_err(FileError::system("list", path))?;
        names.push(entry.file_name().to_string_lossy().into_owned());
    }
    names.retain(|name| name != "." && name != "..");
    names.sort();
    Ok(Some(names))
}

/// Lower-case hex.
#[must_use]
pub fn sha256(content: &[u8]) -> String {
    format!("{:x}", Sha256::digest(content))
}

/// Opens a directory by a walk that no user can mislead, and makes what is missing of it 0755 root.
///
/// # Errors
/// [`FileError`]
pub fn open_directory(path: &HostPath) -> Result<OwnedFd, FileError> {
    walk(path, Parents::Make)?.ok_or_else(|| FileError::NotDirectory(path.to_string()))
}

/// What to do about a missing parent.
#[derive(Clone, Copy)]
enum Parents {
    Make,
    Leave,
}

/// The open directory that holds a path, and the path's last part.
struct Place {
    dir: OwnedFd,
    name: String,
    path: HostPath,
}

impl Place {
    fn of(path: &HostPath, parents: Parents) -> Result<Self, FileError> {
        let parent = path.parent().ok_or_else(|| FileError::Root(path.to_string()))?;
        let dir = walk(&parent, parents)?.ok_or_else(|| FileError::system("open", &parent)(Errno::NOENT))?;
        Ok(Self { dir, name: path.file_name().to_owned(), path: path.clone() })
    }

    /// None when the directory is not there.
    fn existing(path: &HostPath) -> Result<Option<Self>, FileError> {
        let parent = path.parent().ok_or_else(|| FileError::Root(path.to_string()))?;
        let dir = walk(&parent, Parents::Leave)?;
        Ok(dir.map(|dir| Self { dir, name: path.file_name().to_owned(), path: path.clone() }))
    }

    /// One name per target, so that what a crash left is found again; no name that systemd or Quadlet would read.
    fn temp_name(&self) -> String {
        format!(".holdfast-{}.tmp", &sha256(self.name.as_bytes())[..16])
    }

    /// The file's content; none where nothing is.
    fn read(&self) -> Result<Option<Vec<u8>>, FileError> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let fd = match rustix::fs::openat(&self.dir, &self.name, flags, Mode::empty()) {
            Ok(fd) => fd,
            Err(Errno::NOENT) => return Ok(None),
            Err(Errno::LOOP | Errno::NXIO) => return Err(FileError::NotFile(self.path.to_string())),
            Err(errno) => return Err(FileError::system("read", &self.path)(errno)),
        };
        let stat = rustix::fs::fstat(&fd).map_err(FileError::system("read", &self.path))?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
            return Err(FileError::NotFile(self.path.to_string()));
        }
        let mut content = Vec::new();
        File::from(fd).read_to_end(&mut content).map_err(|source| FileError::System {
            act: "read",
            path: self.path.to_string(),
            source,
        })?;
        Ok(Some(content))
    }

    fn sha256(&self) -> Result<Option<String>, FileError> {
        Ok(self.read()?.map(|content| sha256(&content)))
    }

    /// Moves the finished file to its name.
    fn put(&self, temp: &str, before: Before<'_>) -> Result<(), FileError> {
        match before {
            Before::Nothing => return self.put_new(temp),
            Before::Sha256(expected) if self.sha256()?.as_deref() != Some(expected) => {
                return Err(FileError::ChangedMeanwhile(self.path.to_string()));
            }
            Before::Sha256(_) | Before::Anything => {}
        }
        rustix::fs::renameat(&self.dir, temp, &self.dir, &self.name).map_err(FileError::system("write", &self.path))
    }

    /// In one act that fails where something is.
    fn put_new(&self, temp: &str) -> Result<(), FileError> {
        let moved = rustix::fs::renameat_with(&self.dir, temp, &self.dir, &self.name, RenameFlags::NOREPLACE);
        let moved = match moved {
            // File systems without that flag: a hard link fails where something is, too.
            Err(Errno::INVAL) => rustix::fs::linkat(&self.dir, temp, &self.dir, &self.name, AtFlags::empty())
                .and_then(|()| rustix::fs::unlinkat(&self.dir, temp, AtFlags::empty())),
            other => other,
        };
        match moved {
            Err(Errno::EXIST) => Err(FileError::FoundMeanwhile(self.path.to_string())),
            other => other.map_err(FileError::system("write", &self.path)),
        }
    }

    fn sync(&self) -> Result<(), FileError> {
        rustix::fs::fsync(&self.dir).map_err(FileError::system("sync the directory of", &self.path))
    }
}

fn finish_directory(
    place: &Place, path: &HostPath, mode: u32, (user, group): (Uid, Gid), module: &str,
) -> Result<(), FileError> {
    let dir = open_part(&place.dir, &place.name).map_err(FileError::system("open", path))?;
    rustix::fs::fchown(&dir, Some(user), Some(group)).map_err(FileError::system("change the owner of", path))?;
    rustix::fs::fchmod(&dir, to_mode(mode)).map_err(FileError::system("change the mode of", path))?;
    match rustix::fs::fsetxattr(&dir, MARK, module.as_bytes(), XattrFlags::empty()) {
        // The mark is a help, not the proof: the ledger is. Not every file system, nor every container, takes it.
        Ok(()) | Err(Errno::OPNOTSUPP | Errno::PERM) => {}
        Err(errno) => return Err(FileError::system("mark", path)(errno)),
    }
    rustix::fs::fsync(&dir).map_err(FileError::system("sync", path))?;
    place.sync()
}

fn write_temp(place: &Place, temp: &str, content: &[u8], mode: u32, owner: (Uid, Gid)) -> Result<(), FileError> {
    let path = &place.path;
    let mut file = File::from(create_temp(place, temp)?);
    file.write_all(content).map_err(|source| FileError::System { act: "write", path: path.to_string(), source })?;
    let (user, group) = owner;
    rustix::fs::fchown(&file, Some(user), Some(group)).map_err(FileError::system("change the owner of", path))?;
    rustix::fs::fchmod(&file, to_mode(mode)).map_err(FileError::system("change the mode of", path))?;
    rustix::fs::fsync(&file).map_err(FileError::system("sync", path))
}

fn create_temp(place: &Place, temp: &str) -> Result<OwnedFd, FileError> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let create = || rustix::fs::openat(&place.dir, temp, flags, Mode::RUSR | Mode::WUSR);
    match create() {
        Err(Errno::EXIST) => {
            // Left by an agent that was killed: only one apply runs at a time, and nobody else uses this name.
            rustix::fs::unlinkat(&place.dir, temp, AtFlags::empty())
                .map_err(FileError::system("write", &place.path))?;
            create()
        }
        other => other,
    }
    .map_err(FileError::system("write", &place.path))
}

/// The directory at a path; none where it is missing and may not be made.
fn walk(path: &HostPath, parents: Parents) -> Result<Option<OwnedFd>, FileError> {
    let mut at = Walk::start()?;
    // The parts still to go, the next one last.
    let mut rest: Vec<String> = path.parts().rev().map(str::to_owned).collect();
    let mut links = 0;
    while let Some(part) = rest.pop() {
        match part.as_str() {
            "" | "." => continue,
            ".." => {
                at.up();
                continue;
            }
            _ => {}
        }
        match open_part(at.dir(), &part) {
            Ok(dir) => at.down(part, dir),
            Err(Errno::NOENT) => match parents {
                Parents::Leave => return Ok(None),
                Parents::Make => at.make(part)?,
            },
            Err(Errno::NOTDIR | Errno::LOOP) => {
                links += 1;
                if links > MAX_LINKS {
                    return Err(FileError::system("open", path)(Errno::LOOP));
                }
                let target = at.safe_link(&part)?;
                if target.starts_with('/') {
                    at = Walk::start()?;
                }
                rest.extend(target.split('/').rev().map(str::to_owned));
            }
            Err(errno) => return Err(FileError::system("open", at.path_of(&part))(errno)),
        }
    }
    Ok(Some(at.end()))
}

/// Where a walk stands: the open directories from the root down, with their names.
struct Walk {
    root: OwnedFd,
    below: Vec<(String, OwnedFd)>,
}

impl Walk {
    fn start() -> Result<Self, FileError> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let root = rustix::fs::open("/", flags, Mode::empty()).map_err(FileError::system("open", "/"))?;
        Ok(Self { root, below: Vec::new() })
    }

    fn dir(&self) -> &OwnedFd {
        self.below.last().map_or(&self.root, |(_, dir)| dir)
    }

    fn down(&mut self, part: String, dir: OwnedFd) {
        self.below.push((part, dir));
    }

    fn up(&mut self) {
        self.below.pop();
    }

    fn end(mut self) -> OwnedFd {
        self.below.pop().map_or(self.root, |(_, dir)| dir)
    }

    fn path_of(&self, part: &str) -> String {
        self.below.iter().map(|(name, _)| format!("/{name}")).chain([format!("/{part}")]).collect()
    }

    fn make(&mut self, part: String) -> Result<(), FileError> {
        let path = self.path_of(&part);
        match rustix::fs::mkdirat(self.dir(), &part, Mode::RWXU) {
            // A look and a job that begin together may both need it: whoever was first gives it its mode.
            Err(Errno::EXIST) => {
                let dir = open_part(self.dir(), &part).map_err(FileError::system("open", &path))?;
                self.down(part, dir);
                return Ok(());
            }
            made => made.map_err(FileError::system("make", &path))?,
        }
        let dir = open_part(self.dir(), &part).map_err(FileError::system("open", &path))?;
        rustix::fs::fchmod(&dir, Mode::from_raw_mode(0o755)).map_err(FileError::system("change the mode of", &path))?;
        rustix::fs::fsync(self.dir()).map_err(FileError::system("sync the directory of", &path))?;
        self.down(part, dir);
        Ok(())
    }

    /// The target of a link that only root can have made; an error for any other, and for what is no link.
    fn safe_link(&self, part: &str) -> Result<String, FileError> {
        let path = self.path_of(part);
        let stat = rustix::fs::statat(self.dir(), part, AtFlags::SYMLINK_NOFOLLOW)
            .map_err(FileError::system("look at", &path))?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::Symlink {
            return Err(FileError::NotDirectory(path));
        }
        let around = rustix::fs::fstat(self.dir()).map_err(FileError::system("look at", &path))?;
        if stat.st_uid != 0 || !only_root_writes(&around) {
            return Err(FileError::UnsafeLink(path));
        }
        let target = rustix::fs::readlinkat(self.dir(), part, Vec::new()).map_err(FileError::system("read", &path))?;
        target.into_string().map_err(|_| FileError::UnsafeLink(path))
    }
}

fn only_root_writes(stat: &Stat) -> bool {
    stat.st_uid == 0 && stat.st_mode & 0o022 == 0
}

fn open_part(dir: &OwnedFd, part: &str) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    rustix::fs::openat(dir, part, flags, Mode::empty())
}

fn to_mode(mode: u32) -> Mode {
    let raw: RawMode = mode & 0o7777;
    Mode::from_raw_mode(raw)
}

fn owner_ids((user, group): (&str, &str)) -> Result<(Uid, Gid), FileError> {
    let by_name = |name: &str| Some(nix::unistd::User::from_name(name).ok()??.uid.as_raw());
    let uid = number_or(user, by_name).ok_or(FileError::NoSuchOwner { what: "user", name: user.to_owned() })?;
    let by_name = |name: &str| Some(nix::unistd::Group::from_name(name).ok()??.gid.as_raw());
    let gid = number_or(group, by_name).ok_or(FileError::NoSuchOwner { what: "group", name: group.to_owned() })?;
    Ok((Uid::from_raw(uid), Gid::from_raw(gid)))
}

/// "root" is known without asking the host's user database, which may hang on a network.
fn number_or(text: &str, by_name: impl Fn(&str) -> Option<u32>) -> Option<u32> {
    match text {
        "root" => Some(0),
        // The highest number means "leave it" to the kernel.
        _ => text.parse().ok().or_else(|| by_name(text)).filter(|id| *id != u32::MAX),
    }
}

#[cfg(test)]
#[path = "files/tests.rs"]
pub(crate) mod tests;
