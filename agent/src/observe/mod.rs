//! One look at the host: Podman's lists, systemd's units, the paths and ports that were asked for, as one value.

pub mod files;
pub mod mounts;
pub mod podman;
pub mod ports;
pub mod systemd;
pub mod unit_files;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use holdfast_core::expand::HostFacts;
use holdfast_core::name::HostPath;
use holdfast_core::observed::{Container, Network, Observed, PathFacts, Pod, UnitFileHit, Volume, Wanted};
use thiserror::Error;
use tokio::task::JoinHandle;

use crate::settings::Settings;
use crate::time::now_usec;
use mounts::{MountTable, Mounts};
use podman::Engine;
use ports::Sockets;
use systemd::Manager;
use unit_files::UnitFiles;

/// How long one question may take. A healthy host answers in milliseconds; a dead network file system never does.
const DEADLINE: Duration = Duration::from_secs(30);

/// What the host could not be asked.
#[derive(Debug, Error)]
pub enum ObserveError {
    /// Podman's API socket is not there, or nobody answers on it.
    #[error("Podman's API socket {socket} does not answer")]
    Engine {
        /// Its path.
        socket: String,
        /// What the connection said.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// Podman answered, and not with what was asked for.
    #[error("Podman gives no {question}")]
    Answer {
        /// What it was asked for: "list of volumes".
        question: String,
        /// What it said.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// systemd cannot be asked over the system bus.
    #[error("systemd does not answer on the system bus")]
    Systemd(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// A file that the kernel provides cannot be read.
    #[error("{path} cannot be read")]
    Kernel {
        /// The file.
        path: String,
        /// The system's error.
        #[source]
        source: std::io::Error,
    },
    /// The listening sockets cannot be listed.
    #[error("the kernel does not list its sockets")]
    Sockets(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// An answer did not come in time.
    #[error("{question} did not come within {seconds} s")]
    Late {
        /// What was asked for.
        question: String,
        /// The deadline in seconds.
        seconds: u64,
    },
    /// A part of the look broke off; a fault of this program.
    #[error("the look at {0} broke off")]
    Broken(&'static str),
}

impl ObserveError {
    /// A command that may help.
    #[must_use]
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Engine { socket: _, source: _ } => Some("systemctl start podman.socket"),
            Self::Late { .. } | Self::Answer { .. } => Some("systemctl status podman.service"),
            Self::Systemd(_) => Some("systemctl status dbus.service"),
            Self::Kernel { .. } | Self::Sockets(_) | Self::Broken(_) => None,
        }
    }
}

/// The connections through which the host is looked at.
#[derive(Debug, Clone)]
pub struct Eyes {
    engine: Engine,
    manager: Manager,
}

impl Eyes {
    /// Asks Podman for its lists, which nothing else takes as long as, and connects to systemd meanwhile.
    ///
    /// # Errors
    /// [`ObserveError::Systemd`] when the system bus or systemd does not answer.
    pub async fn open(settings: &Settings) -> Result<(Self, PodmanLists), ObserveError> {
        let engine = Engine::new(&settings.podman_socket);
        let lists = PodmanLists::ask(&engine);
        Ok((Self { engine, manager: Manager::connect().await? }, lists))
    }

    /// Podman, for questions beside the lists.
    #[must_use]
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// systemd, for questions beside the list of units.
    #[must_use]
    pub fn manager(&self) -> &Manager {
        &self.manager
    }

    /// Asks Podman for its lists again.
    #[must_use]
    pub fn ask(&self) -> PodmanLists {
        PodmanLists::ask(&self.engine)
    }

    /// Looks at everything that is wanted, all at once: the lists are served by other processes while files are read here.
    ///
    /// # Errors
    /// [`ObserveError`] when Podman, systemd or the kernel does not answer. What cannot be seen of a single path is a
    /// value in its facts, never an error.
    pub async fn observe(&self, lists: PodmanLists, wanted: &Wanted) -> Result<Observed, ObserveError> {
        let PodmanLists { taken_usec, lists } = lists;
        let lists = async { lists.await.map_err(|_| ObserveError::Broken("Podman's lists"))? };
        let (lists, images, units, disk, sockets) = tokio::try_join!(
            lists,
            self.engine.images(&wanted.images),
            self.manager.units(&wanted.units),
            look_at_disk(wanted.clone(), self.manager.unit_path().to_vec()),
            list_sockets(wanted.listeners),
        )?;
        let Lists { podman_version, containers, volumes, networks, pods, secrets } = lists;
        let listeners = sockets.map(|sockets| sockets.listeners(&containers)).unwrap_or_default();
        Ok(Observed {
            taken_usec,
            podman_version,
            containers,
            volumes,
            networks,
            pods,
            secrets,
            images,
            pulled: BTreeSet::new(),
            pull_errors: BTreeMap::new(),
            units,
            unit_files: disk.unit_files,
            paths: disk.paths,
            listeners,
        })
    }
}

/// Podman's lists that were asked for; they come while other things are read.
#[derive(Debug)]
pub struct PodmanLists {
    taken_usec: u64,
    lists: JoinHandle<Result<Lists, ObserveError>>,
}

impl PodmanLists {
    fn ask(engine: &Engine) -> Self {
        let engine = engine.clone();
        Self { taken_usec: now_usec(), lists: tokio::spawn(async move { engine.lists().await }) }
    }
}

/// What the specifiers of units need to know of this host. What cannot be read is empty.
#[must_use]
pub fn host_facts() -> HostFacts {
    let names = rustix::system::uname();
    let text = |name: &std::ffi::CStr| name.to_string_lossy().into_owned();
    let line = |path: &str| std::fs::read_to_string(path).map(|text| text.trim().to_owned()).unwrap_or_default();
    HostFacts {
        hostname: text(names.nodename()),
        machine_id: line("/etc/machine-id"),
        boot_id: line("/proc/sys/kernel/random/boot_id").replace('-', ""),
        kernel: text(names.release()),
        architecture: architecture(&text(names.machine())).to_owned(),
    }
}

/// systemd's word for what `uname -m` says, as in `ConditionArchitecture=`; empty for what it does not know.
fn architecture(machine: &str) -> &'static str {
    match machine {
        "x86_64" => "x86-64",
        "i386" | "i486" | "i586" | "i686" => "x86",
        "aarch64" => "arm64",
        "aarch64_be" => "arm64-be",
        "armv4l" | "armv5l" | "armv5tel" | "armv6l" | "armv7l" | "armv7ml" | "armv8l" => "arm",
        "ppc64" => "ppc64",
        "ppc64le" => "ppc64-le",
        "ppc" => "ppc",
        "ppcle" => "ppc-le",
        "s390x" => "s390x",
        "s390" => "s390",
        "riscv64" => "riscv64",
        "riscv32" => "riscv32",
        "loongarch64" => "loongarch64",
        "mips64" => "mips64",
        "mips" => "mips",
        _ => "",
    }
}

/// What is read from disk in one go.
struct Disk {
    unit_files: BTreeMap<String, Vec<UnitFileHit>>,
    paths: BTreeMap<HostPath, PathFacts>,
}

async fn look_at_disk(wanted: Wanted, unit_path: Vec<String>) -> Result<Disk, ObserveError> {
    blocking("the files", move || {
        let table = MountTable::read()?;
        let unit_files = UnitFiles::read(&unit_path);
        let mounts = Mounts::new(table, &unit_files.mount_units());
        let hits = wanted.units.iter().map(|unit| (unit.clone(), unit_files.hits(unit))).collect();
        Ok(Disk { unit_files: hits, paths: files::look(&wanted.paths, &mounts) })
    })
    .await
}

async fn list_sockets(wanted: bool) -> Result<Option<Sockets>, ObserveError> {
    if !wanted {
        return Ok(None);
    }
    blocking("the sockets", || Sockets::list().map(Some)).await
}

/// Runs what waits in the kernel on a thread of its own, for at most [`DEADLINE`]: a dead network file system holds that
/// thread, and not the agent.
async fn blocking<T: Send + 'static>(
    what: &'static str, work: impl FnOnce() -> Result<T, ObserveError> + Send + 'static,
) -> Result<T, ObserveError> {
    match tokio::time::timeout(DEADLINE, tokio::task::spawn_blocking(work)).await {
        Ok(Ok(result)) => result,
        Ok(Err(_)) => Err(ObserveError::Broken(what)),
        Err(_) => Err(late(format!("the look at {what}"))),
    }
}

fn late(question: impl Into<String>) -> ObserveError {
    ObserveError::Late { question: question.into(), seconds: DEADLINE.as_secs() }
}

/// All that Podman lists.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Lists {
    /// Podman's version.
    pub podman_version: String,
    /// Containers by name.
    pub containers: BTreeMap<String, Container>,
    /// Volumes by name.
    pub volumes: BTreeMap<String, Volume>,
    /// Networks by name.
    pub networks: BTreeMap<String, Network>,
    /// Pods by name.
    pub pods: BTreeMap<String, Pod>,
    /// Secrets: name to ID.
    pub secrets: BTreeMap<String, String>,
}

/// Containers and the version of the Podman that listed them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Listed {
    /// Podman's version.
    pub podman_version: String,
    /// Containers by name.
    pub containers: BTreeMap<String, Container>,
}

#[cfg(test)]
mod tests {
    use super::{ObserveError, architecture, host_facts};
    use crate::time::now_usec;

    #[test]
    fn the_host_is_known() {
        let facts = host_facts();
        assert_eq!(facts.boot_id.len(), 32);
        assert!(facts.boot_id.bytes().all(|byte| byte.is_ascii_hexdigit()));
        let shown = std::process::Command::new("uname").args(["-nr"]).output().unwrap();
        assert_eq!(format!("{} {}\n", facts.hostname, facts.kernel), String::from_utf8(shown.stdout).unwrap());
        assert!(!facts.architecture.is_empty());
        assert_eq!(architecture("aarch64"), "arm64");
        assert_eq!(architecture("pdp11"), "");
        assert!(now_usec() > 1_700_000_000_000_000);
    }

    #[test]
    fn a_silent_engine_says_what_to_start() {
        let error = ObserveError::Engine {
            socket: "/run/podman/podman.sock".to_owned(),
            source: Box::new(std::io::Error::from(std::io::ErrorKind::NotFound)),
        };
        assert_eq!(error.to_string(), "Podman's API socket /run/podman/podman.sock does not answer");
        assert_eq!(error.hint(), Some("systemctl start podman.socket"));
    }
}
