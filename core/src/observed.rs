//! What the host has at one moment, as data, and what a look must cover.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::name::HostPath;
use crate::ports::PortClaim;

/// What a look must cover beside Podman's own lists.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Wanted {
    /// Paths to look at; those with `true` are read for their SHA-256 if they are regular files.
    pub paths: BTreeMap<HostPath, bool>,
    /// Unit names: are they loaded, and which files of that name are there?
    pub units: BTreeSet<String>,
    /// Image references: does local storage have them?
    pub images: BTreeSet<String>,
    /// True when some resource publishes a port and is not yet known to hold it: list the listening sockets.
    pub listeners: bool,
}

/// One look at the host.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Observed {
    /// When it was taken: CLOCK_REALTIME, microseconds since 1970.
    pub taken_usec: u64,
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
    /// Podman secrets: name to ID.
    pub secrets: BTreeMap<String, String>,
    /// For each image reference asked for: what local storage has under it.
    pub images: BTreeMap<String, Option<Image>>,
    /// Images that were pulled in this apply.
    #[serde(default)]
    pub pulled: BTreeSet<String>,
    /// Images that could not be pulled in this apply: reference to what the registry said.
    #[serde(default)]
    pub pull_errors: BTreeMap<String, String>,
    /// Loaded units among those asked for.
    pub units: BTreeMap<String, Unit>,
    /// For each unit name asked for: the files of that name in systemd's unit path, strongest first, without the generator's.
    pub unit_files: BTreeMap<String, Vec<UnitFileHit>>,
    /// For each path asked for: what is there.
    pub paths: BTreeMap<HostPath, PathFacts>,
    /// Sockets that hold a port, if asked for.
    pub listeners: Vec<Listener>,
}

/// A container as Podman lists it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Container {
    /// Its ID.
    pub id: String,
    /// Its image's ID: the config digest.
    pub image_id: String,
    /// The name under which its image was asked for.
    pub image: String,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// created, running, paused, exited, …
    pub state: String,
    /// starting, healthy, unhealthy; none without a health check.
    pub health: Option<String>,
    /// Seconds since 1970.
    pub started_at: i64,
    /// Exit code of the last run.
    pub exit_code: i32,
    /// PID of its first process, 0 when it does not run.
    pub pid: i64,
    /// The name of its pod.
    pub pod: Option<String>,
    /// True for a pod's infra container.
    pub infra: bool,
    /// True for `--rm`.
    pub auto_remove: bool,
    /// How often Podman restarted it.
    pub restarts: u64,
    /// Names of its networks.
    pub networks: Vec<String>,
    /// Host ports it claims while it runs; a pod's ports are on its infra container only.
    pub ports: Vec<PortClaim>,
    /// The systemd unit that owns it: from its conmon's cgroup while it runs, else from the label PODMAN_SYSTEMD_UNIT.
    pub unit: Option<String>,
}

/// A volume.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Volume {
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// When it was made, as Podman writes it.
    pub created: String,
    /// Its driver.
    pub driver: String,
}

/// A network.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Network {
    /// Its ID.
    pub id: String,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
}

/// A pod.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pod {
    /// Its ID.
    pub id: String,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// Running, Stopped, Degraded, …
    pub state: String,
}

/// An image in local storage.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Image {
    /// Its ID: the config digest, without `sha256:`.
    pub id: String,
    /// `name@sha256:…` pairs; Podman shows every name with every digest, so a pair here may never have existed.
    pub repo_digests: Vec<String>,
}

/// A loaded unit.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unit {
    /// loaded, not-found, masked, error, bad-setting.
    pub load_state: String,
    /// active, inactive, failed, activating, deactivating.
    pub active_state: String,
    /// running, dead, exited, auto-restart, …
    pub sub_state: String,
    /// Where its definition comes from; none when it was not asked for (the list of units does not tell).
    pub fragment_path: Option<String>,
    /// The file that the generator made it from.
    pub source_path: Option<String>,
}

/// A unit file of a wanted name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnitFileHit {
    /// Its path.
    pub path: String,
    /// Where in the order of systemd's unit path it stands.
    pub rank: UnitFileRank,
    /// True for a link to /dev/null or an empty file: masked.
    pub masked: bool,
}

/// Whether a unit file beats a generated one of its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum UnitFileRank {
    /// In /etc/systemd or /run/systemd: it hides the generated unit.
    Stronger,
    /// In /usr/lib or /usr/local/lib: the generated unit would hide it.
    Vendor,
}

/// What is at a path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PathFacts {
    /// What is there, after links that only root could have made were followed in its parents (not the last part).
    pub state: PathState,
    /// The real path: links in parents resolved, and in the last part if it is a safe link to a directory or file.
    pub real: HostPath,
    /// A link on the way that somebody other than root could have made, as a path.
    pub unsafe_link: Option<String>,
    /// The mount unit whose mount point lies on the way and is not mounted.
    pub unmounted: Option<String>,
    /// True when the agent can write in the nearest existing parent.
    pub writable: bool,
}

/// The thing at a path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PathState {
    /// Nothing.
    Missing,
    /// A directory.
    Directory {
        /// Owner.
        uid: u32,
        /// Group.
        gid: u32,
        /// `mode & 0o7777`.
        mode: u32,
        /// True when nothing is in it.
        empty: bool,
        /// The module that marked it (xattr `trusted.holdfast.module`), where it can be read.
        mark: Option<String>,
    },
    /// A regular file.
    File {
        /// Owner.
        uid: u32,
        /// Group.
        gid: u32,
        /// `mode & 0o7777`.
        mode: u32,
        /// Size in bytes.
        size: u64,
        /// Lower-case hex, if it was asked for and could be read.
        sha256: Option<String>,
    },
    /// A symbolic link as the last part.
    Link {
        /// Its target as written.
        target: String,
        /// True when nothing is at its end.
        dangling: bool,
        /// True when its end is a directory.
        to_directory: bool,
    },
    /// A device, FIFO or socket.
    Other {
        /// The word for it.
        what: String,
    },
    /// It could not be looked at.
    Unknown {
        /// The system's error.
        error: String,
    },
}

/// A socket that holds a port, and who it belongs to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Listener {
    /// The port.
    pub claim: PortClaim,
    /// Its owner, as far as it can be told.
    pub owner: PortOwner,
}

/// Who holds a port.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PortOwner {
    /// A container of root's Podman, by name; its port sockets are held by its conmon.
    Container {
        /// Its name.
        name: String,
    },
    /// A unit of the system manager.
    Unit {
        /// Its name.
        unit: String,
    },
    /// A unit of a user's manager.
    UserUnit {
        /// Its name.
        unit: String,
        /// The user.
        uid: u32,
    },
    /// Anything else.
    Process {
        /// The socket's user.
        uid: u32,
        /// PID and command name, where they could be read.
        process: Option<(u32, String)>,
    },
}
