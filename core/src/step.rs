//! The closed list of everything that the agent can ever do to a host by apply: this enum is the security review.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::name::HostPath;
use crate::resource::ResourceKey;

/// Its place in the plan, from 0.
pub type StepId = usize;

/// One act.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    /// The module for which it is done.
    pub module: String,
    /// The resource for which it is done.
    pub resource: ResourceKey,
    /// Steps that must have succeeded; else this one is not attempted.
    pub needs: Vec<StepId>,
    /// The act.
    pub act: Act,
}

/// What a step does.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Act {
    /// Pull an image that local storage does not have.
    Pull {
        /// The reference as written.
        image: String,
    },
    /// Find out which image a reference stands for now, and keep that image by a tag of ours.
    Pin {
        /// The reference as written.
        image: String,
        /// Where the image came from.
        origin: Origin,
    },
    /// Make a directory, and its missing parents 0755 root. It must not exist.
    MakeDirectory {
        /// Its path.
        path: HostPath,
        /// `mode & 0o7777`.
        mode: u32,
        /// Owner and group, by name or number.
        owner: (String, String),
    },
    /// Make a symbolic link. Nothing may be there.
    MakeLink {
        /// Its path.
        path: HostPath,
        /// Its target.
        target: String,
    },
    /// Write a file as a whole, atomically.
    WriteFile {
        /// Its path.
        path: HostPath,
        /// What it shall hold.
        content: FileContent,
        /// `mode & 0o777`.
        mode: u32,
        /// Owner and group, by name or number.
        owner: (String, String),
        /// What must be there now: the SHA-256 that the ledger knows; none = nothing may be there.
        replaces: Option<String>,
    },
    /// Remove a file that we wrote, if it is still as we wrote it; then its folder of ours, if empty.
    RemoveFile {
        /// Its path.
        path: HostPath,
        /// What must be there now.
        sha256: String,
    },
    /// Stop a unit of ours.
    Stop {
        /// Its name.
        unit: String,
    },
    /// Let systemd read its unit files again. One per plan.
    Reload,
    /// Forget that a unit of ours failed.
    ResetFailed {
        /// Its name.
        unit: String,
    },
    /// Look whether a unit is loaded from our file and carries our mark.
    Assert {
        /// Its name.
        unit: String,
        /// The file of ours that it must come from.
        source: HostPath,
        /// A word that its ExecStart must hold: the label with the hash; empty where Podman takes no label.
        mark: String,
    },
    /// Disable a plain unit of ours that goes: its links would lead nowhere.
    Disable {
        /// Its name.
        unit: String,
    },
    /// Enable a plain unit of ours, once.
    Enable {
        /// Its name.
        unit: String,
    },
    /// Start a unit of ours.
    Start {
        /// Its name.
        unit: String,
        /// The container to watch, by name.
        container: Option<String>,
    },
    /// Restart a unit of ours: one systemd job.
    Restart {
        /// Its name.
        unit: String,
        /// The container to watch, by name.
        container: Option<String>,
    },
}

/// Where an image came from in this apply.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Origin {
    /// It was in local storage before.
    Local,
    /// It was pulled just now, so that the digest Podman has of it is the registry's.
    Pulled,
}

/// What a file shall hold.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FileContent {
    /// These bytes.
    Bytes(Vec<u8>),
    /// A Quadlet file with our trailer; the pin comes from a step where it is not known yet.
    Quadlet {
        /// The file as written, with its drop-ins.
        text: String,
        /// What the trailer says.
        trailer: Trailer,
    },
}

/// The lines that we add at the end of an installed Quadlet file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trailer {
    /// The module.
    pub module: String,
    /// The Quadlet section: `Container`, `Pod`, …
    pub section: String,
    /// The hash of the definition.
    pub hash: String,
    /// Which image to write, for a container.
    pub pin: PinSource,
}

/// Where the image of a trailer comes from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PinSource {
    /// The image stays as written: no image, or one made by a `.image` or `.build` file.
    AsWritten,
    /// It is known.
    Known(crate::ledger::Pin),
    /// The Pin step finds it.
    Step(StepId),
}

/// How a step ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// It was done.
    Done,
    /// It was done and found out which image is deployed.
    Pinned(crate::ledger::Pin),
    /// It failed.
    Failed(Failure),
    /// It was not tried, because another one failed.
    NotAttempted {
        /// The failed one.
        after: StepId,
    },
    /// It was not tried, because the run was told to stop before it.
    Stopped(Stop),
}

/// Why a run ends before its last step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Stop {
    /// Somebody who may do so canceled the job.
    Canceled,
    /// The agent itself must end.
    Terminated,
}

impl Stop {
    /// The word in HOLDFAST_AFTER= of what was not attempted because of it.
    #[must_use]
    pub fn token(self) -> &'static str {
        match self {
            Self::Canceled => "canceled",
            Self::Terminated => "terminated",
        }
    }
}

/// What a failed step says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// The error chain in one line.
    pub error: String,
    /// The system's error number.
    pub errno: Option<i32>,
    /// The exit status of a process.
    pub exit_status: Option<i32>,
}

impl fmt::Display for Act {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pull { image } => write!(f, "pull {image}"),
            Self::Pin { image, origin: _ } => write!(f, "pin {image}"),
            Self::MakeDirectory { path, mode: _, owner: _ } => write!(f, "make directory {path}"),
            Self::MakeLink { path, target } => write!(f, "make link {path} -> {target}"),
            Self::WriteFile { path, content: _, mode: _, owner: _, replaces: _ } => write!(f, "write {path}"),
            Self::RemoveFile { path, sha256: _ } => write!(f, "remove {path}"),
            Self::Stop { unit } => write!(f, "stop {unit}"),
            Self::Reload => f.write_str("reload systemd"),
            Self::ResetFailed { unit } => write!(f, "reset-failed {unit}"),
            Self::Assert { unit, source: _, mark: _ } => write!(f, "check that {unit} is ours"),
            Self::Disable { unit } => write!(f, "disable {unit}"),
            Self::Enable { unit } => write!(f, "enable {unit}"),
            Self::Start { unit, container: _ } => write!(f, "start {unit}"),
            Self::Restart { unit, container: _ } => write!(f, "restart {unit}"),
        }
    }
}
