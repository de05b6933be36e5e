//! What is at a path: walked part by part from the root, through no link that somebody other than root could have made.

use std::cell::OnceCell;
use std::collections::{BTreeMap, VecDeque};
use std::io::Read;
use std::os::fd::OwnedFd;

use holdfast_core::name::HostPath;
use holdfast_core::observed::{PathFacts, PathState};
use rustix::fs::{Access, AtFlags, CWD, Dir, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;
use sha2::{Digest, Sha256};

use super::mounts::Mounts;

/// In which extended attribute a directory of ours names its module. Containers neither see nor set it.
const MARK: &str = "trusted.holdfast.module";
/// Files beyond this are not read: nothing that a module installs comes near it.
const HASHED_BYTES: u64 = 64 * 1024 * 1024;
/// As many links as the kernel itself follows.
const LINKS: u32 = 40;

/// Looks at paths; those with `true` are read for their SHA-256 where they are regular files.
///
/// The look triggers no automount, follows no unsafe link and opens no device.
#[must_use]
pub fn look(paths: &BTreeMap<HostPath, bool>, mounts: &Mounts) -> BTreeMap<HostPath, PathFacts> {
    let mut walker = match Walker::new(mounts) {
        Ok(walker) => walker,
        Err(error) => return paths.keys().map(|path| (path.clone(), unseen(path, error))).collect(),
    };
    paths.iter().map(|(path, hash)| (path.clone(), walker.facts(path, *hash))).collect()
}

fn unseen(path: &HostPath, error: Errno) -> PathFacts {
    let state = PathState::Unknown { error: error.to_string() };
    PathFacts { state, real: path.clone(), unsafe_link: None, unmounted: None, writable: false }
}

/// Keeps the directories on the way to the last path open: paths come sorted, so the next one shares most of them, and
/// no more files are open than a path has parts.
struct Walker<'a> {
    mounts: &'a Mounts,
    root: Folder,
    trail: Vec<(String, Folder)>,
}

struct Folder {
    fd: OwnedFd,
    /// True when only root can make or replace an entry. (Where an ACL lets others write, the group bits show it.)
    root_only: bool,
    writable: OnceCell<bool>,
}

/// Where a walk ended.
struct End {
    what: Met,
    /// How many parts of the trail lead to the nearest existing directory around it.
    depth: usize,
    /// The path without links.
    real: HostPath,
    /// The target of the last part, if that is a link.
    link: Option<String>,
}

enum Met {
    /// An entry of the directory that the trail leads to.
    Entry {
        name: String,
        stat: Box<Stat>,
    },
    /// The directory itself that the trail leads to.
    Folder,
    Nothing,
    UnsafeLink,
    Error(String),
}

impl<'a> Walker<'a> {
    fn new(mounts: &'a Mounts) -> Result<Self, Errno> {
        let root = Folder::open(rustix::fs::openat(CWD, "/", as_path() | OFlags::DIRECTORY, Mode::empty())?)?;
        Ok(Self { mounts, root, trail: Vec::new() })
    }

    fn facts(&mut self, path: &HostPath, hash: bool) -> PathFacts {
        let End { what, depth, real, link } = self.walk(path);
        let folder = self.folder(depth);
        let writable = folder.writable();
        let unmounted = self.mounts.absent_on_the_way(&real).map(str::to_owned);
        let unsafe_link = matches!(what, Met::UnsafeLink).then(|| real.as_str().to_owned());
        let state = match link {
            Some(target) => {
                let to_directory = match &what {
                    Met::Entry { name: _, stat } => FileType::from_raw_mode(stat.st_mode).is_dir(),
                    Met::Folder => true,
                    Met::Nothing | Met::UnsafeLink | Met::Error(_) => false,
                };
                PathState::Link { target, dangling: matches!(what, Met::Nothing), to_directory }
            }
            None => match what {
                Met::Entry { name, stat } => state_of(folder, &name, &stat, hash),
                Met::Folder => directory(folder, "."),
                Met::Nothing => PathState::Missing,
                Met::UnsafeLink => {
                    PathState::Unknown { error: format!("{real} is a link that not only root could have made") }
                }
                Met::Error(error) => PathState::Unknown { error },
            },
        };
        // Below an unsafe link nothing is known, and the path is told as it was asked for.
        let real = if unsafe_link.is_some() { path.clone() } else { real };
        PathFacts { state, real, unsafe_link, unmounted, writable }
    }

    fn folder(&self, depth: usize) -> &Folder {
        depth.checked_sub(1).and_then(|last| self.trail.get(last)).map_or(&self.root, |(_, folder)| folder)
    }

    fn walk(&mut self, path: &HostPath) -> End {
        let mut rest: VecDeque<String> = path.parts().map(str::to_owned).collect();
        let mut depth = 0_usize;
        let mut links = 0;
        let mut link = None;
        while let Some(part) = rest.pop_front() {
            if part == ".." {
                // Only link targets have these, and the trail has no links in it.
                depth = depth.saturating_sub(1);
                continue;
            }
            let known = self.trail.get(depth).is_some_and(|(name, _)| *name == part);
            if known && !rest.is_empty() {
                depth += 1;
                continue;
            }
            let here = self.real(depth, Some(&part), &VecDeque::new());
            let stat = match rustix::fs::statat(&self.folder(depth).fd, part.as_str(), AtFlags::SYMLINK_NOFOLLOW) {
                Ok(stat) => stat,
                Err(Errno::NOENT) => {
                    let real = self.real(depth, Some(&part), &rest);
                    return End { what: Met::Nothing, depth, real, link };
                }
                Err(error) => return End { what: Met::Error(error.to_string()), depth, real: here, link },
            };
            match FileType::from_raw_mode(stat.st_mode) {
                FileType::Symlink => {
                    let target = match self.target(depth, &part) {
                        Ok(target) => target,
                        Err(error) => return End { what: Met::Error(error), depth, real: here, link },
                    };
                    if rest.is_empty() && link.is_none() {
                        link = Some(target.clone());
                    }
                    if stat.st_uid != 0 || !self.folder(depth).root_only {
                        return End { what: Met::UnsafeLink, depth, real: here, link };
                    }
                    links += 1;
                    if links > LINKS {
                        return End { what: Met::Error(Errno::LOOP.to_string()), depth, real: here, link };
                    }
                    if target.starts_with('/') {
                        depth = 0;
                    }
                    for part in target.rsplit('/').filter(|part| !part.is_empty() && *part != ".") {
                        rest.push_front(part.to_owned());
                    }
                }
                FileType::Directory if self.mounts.would_trigger(&here) => {
                    let what = Met::Error(format!("{here} is mounted when it is used, and is not in use"));
                    return End { what, depth, real: here, link };
                }
                FileType::Directory if !rest.is_empty() => match self.enter(depth, &part) {
                    Ok(()) => depth += 1,
                    Err(error) => return End { what: Met::Error(error.to_string()), depth, real: here, link },
                },
                _ if rest.is_empty() => {
                    let what = Met::Entry { name: part, stat: Box::new(stat) };
                    return End { what, depth, real: here, link };
                }
                _ => return End { what: Met::Error(Errno::NOTDIR.to_string()), depth, real: here, link },
            }
        }
        End { what: Met::Folder, depth, real: self.real(depth, None, &VecDeque::new()), link }
    }

    fn enter(&mut self, depth: usize, name: &str) -> Result<(), Errno> {
        let fd = rustix::fs::openat(&self.folder(depth).fd, name, as_path() | OFlags::DIRECTORY, Mode::empty())?;
        let folder = Folder::open(fd)?;
        self.trail.truncate(depth);
        self.trail.push((name.to_owned(), folder));
        Ok(())
    }

    fn target(&self, depth: usize, name: &str) -> Result<String, String> {
        let target = rustix::fs::readlinkat(&self.folder(depth).fd, name, Vec::new()).map_err(|e| e.to_string())?;
        target.into_string().map_err(|_| "its target is no UTF-8 text".to_owned())
    }

    fn real(&self, depth: usize, part: Option<&str>, rest: &VecDeque<String>) -> HostPath {
        let mut real = String::new();
        let folders = self.trail.iter().take(depth).map(|(name, _)| name.as_str());
        for name in folders.chain(part).chain(rest.iter().map(String::as_str)) {
            real.push('/');
            real.push_str(name);
        }
        HostPath::new(&real).unwrap_or_else(|_| HostPath::root())
    }
}

impl Folder {
    fn open(fd: OwnedFd) -> Result<Self, Errno> {
        let stat = rustix::fs::fstat(&fd)?;
        let root_only = stat.st_uid == 0 && stat.st_mode & 0o022 == 0;
        Ok(Self { fd, root_only, writable: OnceCell::new() })
    }

    /// Asked of the kernel, which knows of read-only mounts and of the agent's own restrictions.
    fn writable(&self) -> bool {
        let access = Access::WRITE_OK | Access::EXEC_OK;
        *self.writable.get_or_init(|| rustix::fs::accessat(&self.fd, ".", access, AtFlags::EACCESS).is_ok())
    }
}

fn as_path() -> OFlags {
    OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC
}

fn to_read() -> OFlags {
    // NONBLOCK: what became a FIFO since it was looked at must not stop us.
    OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY
}

fn state_of(folder: &Folder, name: &str, stat: &Stat, hash: bool) -> PathState {
    let what = match FileType::from_raw_mode(stat.st_mode) {
        FileType::Directory => return directory(folder, name),
        FileType::RegularFile => return file(folder, name, stat, hash),
        FileType::Socket => "socket",
        FileType::Fifo => "FIFO",
        FileType::CharacterDevice => "character device",
        FileType::BlockDevice => "block device",
        FileType::Symlink | FileType::Unknown => "thing of no known type",
    };
    PathState::Other { what: what.to_owned() }
}

fn directory(folder: &Folder, name: &str) -> PathState {
    let seen = rustix::fs::openat(&folder.fd, name, to_read() | OFlags::DIRECTORY, Mode::empty()).and_then(|fd| {
        let stat = rustix::fs::fstat(&fd)?;
        let mark = mark_of(&fd);
        Ok((stat, mark, is_empty(fd)?))
    });
    match seen {
        Ok((stat, mark, empty)) => {
            PathState::Directory { uid: stat.st_uid, gid: stat.st_gid, mode: stat.st_mode & 0o7777, empty, mark }
        }
        Err(error) => PathState::Unknown { error: error.to_string() },
    }
}

fn is_empty(fd: OwnedFd) -> Result<bool, Errno> {
    for entry in Dir::new(fd)? {
        if !matches!(entry?.file_name().to_bytes(), b"." | b"..") {
            return Ok(false);
        }
    }
    Ok(true)
}

/// None where there is no mark, where the file system keeps none, and where only a stronger process may see it.
fn mark_of(fd: &OwnedFd) -> Option<String> {
    let mut mark = [0_u8; 255];
    let length = rustix::fs::fgetxattr(fd, MARK, &mut mark[..]).ok()?;
    String::from_utf8(mark.get(..length)?.to_vec()).ok()
}

fn file(folder: &Folder, name: &str, stat: &Stat, hash: bool) -> PathState {
    let sha256 = if hash { hash_of(folder, name) } else { None };
    PathState::File {
        uid: stat.st_uid,
        gid: stat.st_gid,
        mode: stat.st_mode & 0o7777,
        size: u64::try_from(stat.st_size).unwrap_or_default(),
        sha256,
    }
}

fn hash_of(folder: &Folder, name: &str) -> Option<String> {
    let fd = rustix::fs::openat(&folder.fd, name, to_read(), Mode::empty()).ok()?;
    let stat = rustix::fs::fstat(&fd).ok()?;
    if !FileType::from_raw_mode(stat.st_mode).is_file() {
        return None;
    }
    let mut content = std::fs::File::from(fd).take(HASHED_BYTES + 1);
    let mut hasher = Sha256::new();
    let bytes = std::io::copy(&mut content, &mut hasher).ok()?;
    (bytes <= HASHED_BYTES).then(|| format!("{:x}", hasher.finalize()))
}

#[cfg(test)]
mod tests;
