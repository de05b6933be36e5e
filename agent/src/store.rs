//! Ledger on disk: lock, read, write-fsync-rename.

use std::fs::File;
use std::io::{Read, Seek, Write};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::{Duration, SystemTime};

use holdfast_core::ledger::{Ledger, ModuleEntry, SCHEMA};
use holdfast_core::name::{HostPath, ModuleName};
use rustix::fs::{FlockOperation, Mode, OFlags};
use rustix::io::Errno;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::apply::Busy;
use crate::error::AgentError;
use crate::execute::files::{self, Attributes, Before, FileError};

/// The module's part of the ledger, beside its installed files.
const COPY: &str = ".holdfast.json";

/// How often a lock that is held is tried again.
const RETRY: Duration = Duration::from_millis(100);

/// Why the ledger cannot be used.
#[derive(Debug, Error)]
pub enum StoreError {
    /// A file could not be read or written.
    #[error("the ledger's place cannot be used")]
    File(#[from] FileError),
    /// The state directory could not be opened, locked or listed.
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
    /// A directory of the settings is no absolute UTF-8 path.
    #[error("{0} is no absolute path")]
    Path(String),
    /// A file is of another version of holdfast.
    #[error("{path} has schema {found}; this holdfast knows {SCHEMA} only. Hint: use the holdfast that wrote it")]
    Schema {
        /// The file.
        path: String,
        /// Its version.
        found: u64,
    },
    /// A file is no ledger.
    #[error("{path}, line {line}, column {column}: {message}. Hint: {way_out}")]
    Corrupt {
        /// The file.
        path: String,
        /// From 1; 0 for an empty file.
        line: usize,
        /// From 1.
        column: usize,
        /// What is wrong.
        message: String,
        /// What to run.
        way_out: String,
    },
}

impl From<StoreError> for AgentError {
    fn from(error: StoreError) -> Self {
        Self::Store(Box::new(error))
    }
}

/// Whether a file had to be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Written {
    /// It was written.
    Yes,
    /// It was the same already.
    Same,
}

/// Where the ledger is kept.
#[derive(Debug)]
pub struct Store {
    state_dir: HostPath,
    quadlet_dir: HostPath,
    /// What had to be put right when it was opened, as sentences.
    pub repaired: Vec<String>,
}

/// While it lives, no other apply runs.
#[derive(Debug)]
pub struct Lock {
    file: File,
    path: HostPath,
    /// The run that noted its report and did not come to its end, if there is one.
    pub cut_off: Option<CutOff>,
}

/// A run that was cut off.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CutOff {
    /// Its report: 32 hex digits.
    pub report: String,
    /// apply, …
    pub action: String,
}

impl Lock {
    /// Notes whose report is being written, so that the next run can tell if this one is cut off.
    ///
    /// # Errors
    /// [`StoreError::System`]
    pub fn note(&mut self, report: &str, action: &str) -> Result<(), StoreError> {
        self.cut_off = Some(CutOff { report: report.to_owned(), action: action.to_owned() });
        self.write()
    }

    /// The run came to its end.
    ///
    /// # Errors
    /// [`StoreError::System`]
    pub fn clear(&mut self) -> Result<(), StoreError> {
        self.cut_off = None;
        self.write()
    }

    /// Who has the lock since when, and the report.
    fn write(&mut self) -> Result<(), StoreError> {
        let since = humantime::format_rfc3339_seconds(SystemTime::now());
        let mut text = format!("{}\n{since}\n", std::process::id());
        if let Some(CutOff { report, action }) = &self.cut_off {
            text += &format!("{report}\n{action}\n");
        }
        let file = &mut self.file;
        let written = file.set_len(0).and_then(|()| file.rewind()).and_then(|()| file.write_all(text.as_bytes()));
        written.map_err(|source| StoreError::System { act: "write", path: self.path.to_string(), source })
    }
}

/// A module's part of the ledger, with the version that a file must have.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ModuleCopy {
    schema: u32,
    module: ModuleName,
    entry: ModuleEntry,
}

impl Store {
    /// Opens the ledger's place; makes it (0700, root) where it is missing.
    ///
    /// # Errors
    /// [`StoreError`]
    pub fn open(state_dir: &Path, quadlet_dir: &Path) -> Result<Self, StoreError> {
        let mut store =
            Self { state_dir: host_path(state_dir)?, quadlet_dir: host_path(quadlet_dir)?, repaired: Vec::new() };
        let is_new = files::read_directory(&store.state_dir)?.is_none();
        let dir = files::open_directory(&store.state_dir)?;
        store.secure(&dir, is_new)?;
        Ok(store)
    }

    /// Takes the lock, or tells who has it.
    ///
    /// # Errors
    /// [`AgentError::Busy`] with [`Busy::Refuse`] while another one has it; [`AgentError::Store`]
    pub async fn lock(&self, busy: Busy) -> Result<Lock, AgentError> {
        let path = self.place("lock")?;
        let system = |act| {
            let path = path.to_string();
            move |errno: Errno| StoreError::System { act, path, source: errno.into() }
        };
        let dir = files::open_directory(&self.state_dir).map_err(StoreError::from)?;
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let fd = rustix::fs::openat(&dir, "lock", flags, Mode::RUSR | Mode::WUSR).map_err(system("open"))?;
        let mut file = File::from(fd);
        loop {
            match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => break,
                Err(Errno::WOULDBLOCK) => match busy {
                    Busy::Refuse => return Err(holder(&mut file)),
                    // Not a blocking flock: that could not be given up.
                    Busy::Wait => tokio::time::sleep(RETRY).await,
                },
                Err(Errno::INTR) => {}
                Err(errno) => return Err(system("lock")(errno).into()),
            }
        }
        let mut text = String::new();
        let read = file.read_to_string(&mut text);
        read.map_err(|source| StoreError::System { act: "read", path: path.to_string(), source })?;
        let mut lines = text.lines().skip(2).map(str::to_owned);
        let cut_off = lines.next().zip(lines.next()).map(|(report, action)| CutOff { report, action });
        let mut lock = Lock { file, path, cut_off };
        lock.write()?;
        Ok(lock)
    }

    /// The ledger. Where there is none, it is gathered from the copies beside the modules' installed files.
    ///
    /// # Errors
    /// [`StoreError`]: a ledger that cannot be read is never guessed.
    pub fn read(&self) -> Result<Ledger, StoreError> {
        let path = self.place("ledger.json")?;
        match files::read_file(&path)? {
            Some(content) => parse(&path, &content, || {
                let copies = format!("{}/*/{COPY}", self.quadlet_dir);
                format!("mv {path} {path}.broken; it is then made anew from {copies}")
            }),
            None => self.gather(),
        }
    }

    /// True when there is a ledger, and not only the copies of its parts.
    ///
    /// # Errors
    /// [`StoreError`]
    pub fn is_there(&self) -> Result<bool, StoreError> {
        let path = self.place("ledger.json")?;
        std::fs::exists(path.as_str()).map_err(|source| StoreError::System {
            act: "look at",
            path: path.to_string(),
            source,
        })
    }

    /// Writes the ledger; the old one is whole until the new one is.
    ///
    /// # Errors
    /// [`StoreError`]
    pub fn write(&self, ledger: &Ledger) -> Result<Written, StoreError> {
        put(&self.place("ledger.json")?, ledger)
    }

    /// Writes a module's part beside its installed files; removes it, and the module's folder if that is empty then,
    /// when the module has nothing here any more.
    ///
    /// # Errors
    /// [`StoreError`]
    pub fn write_module_copy(&self, module: &ModuleName, entry: &ModuleEntry) -> Result<Written, StoreError> {
        let folder = join(&self.quadlet_dir, module.as_str())?;
        let path = join(&folder, COPY)?;
        if *entry != ModuleEntry::default() {
            return put(&path, &ModuleCopy { schema: SCHEMA, module: module.clone(), entry: entry.clone() });
        }
        let Some(old) = files::read_file(&path)? else { return Ok(Written::Same) };
        files::remove_file(&path, &files::sha256(&old))?;
        files::remove_empty_directory(&folder)?;
        Ok(Written::Yes)
    }

    fn place(&self, name: &str) -> Result<HostPath, StoreError> {
        join(&self.state_dir, name)
    }

    /// The ledger tells what a host runs and lets its writer say what is holdfast's: root only.
    fn secure(&mut self, dir: &OwnedFd, is_new: bool) -> Result<(), StoreError> {
        let path = self.state_dir.to_string();
        let system = |act| {
            let path = path.clone();
            move |errno: Errno| StoreError::System { act, path, source: errno.into() }
        };
        let stat = rustix::fs::fstat(dir).map_err(system("look at"))?;
        let (mode, owner) = (stat.st_mode & 0o7777, (stat.st_uid, stat.st_gid));
        if owner != (0, 0) {
            let (user, group) = (rustix::fs::Uid::ROOT, rustix::fs::Gid::ROOT);
            rustix::fs::fchown(dir, Some(user), Some(group)).map_err(system("change the owner of"))?;
            self.repaired.push(format!("{path} belonged to {}:{}; it is root's now", owner.0, owner.1));
        }
        if mode != 0o700 {
            rustix::fs::fchmod(dir, Mode::RWXU).map_err(system("change the mode of"))?;
            if !is_new {
                self.repaired.push(format!("{path} had mode {mode:04o}; it is 0700 now"));
            }
        }
        Ok(())
    }

    fn gather(&self) -> Result<Ledger, StoreError> {
        let mut ledger = Ledger::default();
        for name in files::read_directory(&self.quadlet_dir)?.unwrap_or_default() {
            let Ok(module) = ModuleName::new(name) else { continue };
            let path = join(&join(&self.quadlet_dir, module.as_str())?, COPY)?;
            let Some(content) = files::read_file(&path)? else { continue };
            let way_out = || format!("mv {path} {path}.broken; what {module} runs is then found, not ours");
            let ModuleCopy { schema: _, module: named, entry } = parse(&path, &content, way_out)?;
            if named != module {
                let message = format!("it is the copy of {named}, not of {module}");
                let way_out = way_out();
                return Err(StoreError::Corrupt { path: path.to_string(), line: 1, column: 1, message, way_out });
            }
            ledger.modules.insert(module, entry.into());
        }
        Ok(ledger)
    }
}

fn parse<T: DeserializeOwned>(path: &HostPath, content: &[u8], way_out: impl Fn() -> String) -> Result<T, StoreError> {
    #[derive(Deserialize)]
    struct Version {
        schema: u64,
    }
    let corrupt = |error: serde_json::Error| StoreError::Corrupt {
        path: path.to_string(),
        line: error.line(),
        column: error.column(),
        message: what(&error),
        way_out: way_out(),
    };
    // The version first: another one may have other fields.
    match serde_json::from_slice(content) {
        Ok(Version { schema }) if schema != u64::from(SCHEMA) => {
            Err(StoreError::Schema { path: path.to_string(), found: schema })
        }
        Ok(Version { schema: _ }) => serde_json::from_slice(content).map_err(corrupt),
        Err(error) => Err(corrupt(error)),
    }
}

/// The error without the place, which is told in front.
fn what(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let place = format!(" at line {} column {}", error.line(), error.column());
    text.strip_suffix(&place).unwrap_or(&text).to_owned()
}

fn put<T: Serialize>(path: &HostPath, value: &T) -> Result<Written, StoreError> {
    let unwritable =
        |error: serde_json::Error| StoreError::System { act: "write", path: path.to_string(), source: error.into() };
    let mut content = serde_json::to_vec_pretty(value).map_err(unwritable)?;
    content.push(b'\n');
    if files::read_file(path)?.is_some_and(|old| old == content) {
        return Ok(Written::Same);
    }
    files::write_file(path, &content, Attributes::root(0o600), Before::Anything)?;
    Ok(Written::Yes)
}

/// Who holds the lock, by its own word.
fn holder(file: &mut File) -> AgentError {
    let mut text = String::new();
    if file.rewind().and_then(|()| file.read_to_string(&mut text)).is_err() {
        text.clear();
    }
    let mut lines = text.lines();
    let pid = lines.next().and_then(|pid| pid.parse().ok()).unwrap_or_default();
    AgentError::Busy { pid, since: lines.next().unwrap_or("an unknown time").to_owned() }
}

fn host_path(path: &Path) -> Result<HostPath, StoreError> {
    let text = path.to_str().unwrap_or_default();
    HostPath::new(text).map_err(|_| StoreError::Path(path.display().to_string()))
}

fn join(path: &HostPath, name: &str) -> Result<HostPath, StoreError> {
    path.join(name).map_err(|error| StoreError::Path(error.to_string()))
}

#[cfg(test)]
#[path = "store/tests.rs"]
mod tests;
