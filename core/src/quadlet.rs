//! What one merged Quadlet file needs and claims.

mod args;
mod canonical;
mod image;
mod keys;
pub mod mounts;
mod names;
pub mod ports;
mod problems;
mod read;
mod signs;

#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};

use crate::name::HostPath;
use crate::ports::PortClaim;

pub use keys::unsupported_keys;
pub use names::{default_unit_name, is_template, object_name, section, unit_name};
pub use problems::problems;
pub use read::read;
pub(crate) use signs::user_signs;

/// The facts of one Quadlet file after drop-ins are merged and specifiers and variables are expanded.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct QuadletFacts {
    /// What Podman will call it: container, volume, network or pod name. None where it makes no such thing.
    pub podman_name: Option<String>,
    /// `Image=` as expanded; a reference to a `.image` or `.build` file is in `files` instead.
    pub image: Option<String>,
    /// `Volume=`, `Mount=` and, for kube, hostPath and claims, in the order of the file.
    pub mounts: Vec<Mount>,
    /// Host ports, ranges expanded. A port that Podman picks itself (`PublishPort=8080`) claims nothing.
    pub ports: Vec<PortClaim>,
    /// The published ports in the terms of `lint --json`.
    pub published: Vec<Published>,
    /// Networks that must exist by name. `host`, `none`, `private`, `bridge`, `pasta`, `slirp4netns`, `ns:` are no names.
    pub networks: Vec<String>,
    /// Containers whose network, IPC, PID or user namespace, volumes it uses, by name: `container:hub`.
    pub containers: Vec<String>,
    /// Other Quadlet files that it refers to: `data.volume`, `int.network`, `site.pod`, `hub.container`, `base.image`.
    pub files: Vec<String>,
    /// Names of the Podman secrets it uses.
    pub secrets: Vec<String>,
    /// `EnvironmentFile=` of the Quadlet section, absolute, always required by Podman 5.4.
    pub env_files: Vec<HostPath>,
    /// Files beside it that travel with it, as written, relative to the file's directory in the module: env files, kube
    /// YAML, relative read-only mounts, build contexts.
    pub assets: Vec<String>,
    /// Units of `[Unit] Requires= BindsTo= Requisite= PartOf= Upholds=` and the like that it cannot do without.
    pub requires: Vec<String>,
    /// Units that it orders itself after or before.
    pub after: Vec<String>,
    /// `User=` (and `Group=`) as a number where it is one.
    pub uid: Option<u32>,
    /// True when a `[Install]` section makes systemd start it at boot.
    pub wanted_at_boot: bool,
    /// True unless `StartWithPod=false`: its pod starts it.
    pub starts_with_pod: bool,
    /// True for `[Service] Type=oneshot`: its good end is "inactive".
    pub oneshot: bool,
    /// True when it has a health check of its own (`HealthCmd=` other than none).
    pub health_check: bool,
    /// `AutoUpdate=`, `Pull=newer|always`, as written: a second updater.
    pub second_updater: Option<String>,
    /// What cannot be known before the start: key, the text as written, and the line in the module's file where known.
    pub unresolved: Vec<Finding>,
    /// Signs that it was made for a user's own manager.
    pub user_signs: Vec<Finding>,
    /// `:Z`, `:z` or `:U` mounts, by host path.
    pub relabels: Vec<HostPath>,
    /// The canonical text that the hash of the definition is made of.
    pub canonical: String,
}

/// A finding at a line of a Quadlet file.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Finding {
    /// The key, as `Volume=`.
    pub key: String,
    /// The value as written.
    pub text: String,
    /// What it is about: the variable, the specifier, the word.
    pub what: String,
    /// The line in the module's file, where it is known.
    pub line: Option<u32>,
}

/// The type of a mount.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MountType {
    /// A path of the host.
    Bind,
    /// A named volume.
    Volume,
    /// A volume without a name.
    Anonymous,
    /// Memory.
    Tmpfs,
    /// An image.
    Image,
    /// Anything else that Podman knows.
    Other,
}

/// One mount of a container, pod or kube unit.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Mount {
    /// Its type.
    #[serde(rename = "type")]
    pub kind: MountType,
    /// Absolute host path, volume name (as Podman will call it), or image; empty for tmpfs and anonymous volumes.
    pub source: String,
    /// The `.volume` file it refers to, if any.
    pub file: Option<String>,
    /// Where it is mounted.
    pub target: String,
    /// True for `ro`.
    pub read_only: bool,
    /// True when the source was written relative to the file.
    pub relative: bool,
    /// The line in the module's file, where it is known.
    pub line: Option<u32>,
}

/// One published port, in the terms of `lint --json`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Published {
    /// Host address, empty for all.
    pub host_ip: String,
    /// Host port or range as expanded, empty where Podman picks one.
    pub host: String,
    /// Container port or range.
    pub container: String,
    /// tcp, udp, sctp.
    pub protocol: String,
}
