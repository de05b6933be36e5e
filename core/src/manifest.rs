//! `module.toml` -> Manifest, errors with line and column.

use std::time::Duration;

use crate::name::HostPath;

/// What a module may say of itself beside its files.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Manifest {
    /// The author's version, for people.
    pub version: Option<String>,
    /// One line for people.
    pub description: Option<String>,
    /// Predecessors that share neither name nor port: `container:NAME`, `unit:NAME`, `pod:NAME`.
    pub replaces: Vec<String>,
    /// What a changed image does.
    pub upgrade_policy: UpgradePolicy,
    /// How long a start may take to become healthy; none = the agent's setting.
    pub health_timeout: Option<Duration>,
    /// How long it must then stay so; none = the agent's setting.
    pub health_watch: Option<Duration>,
    /// The module's own data although below a reference root.
    pub own_paths: Vec<HostPath>,
    /// The host's paths, although mounted read-write.
    pub host_paths: Vec<HostPath>,
    /// Units that must succeed before the first stop of a take.
    pub take_before: Vec<String>,
}

/// `[upgrade] policy`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum UpgradePolicy {
    /// A changed image is deployed by apply.
    #[default]
    Rollout,
    /// A changed image waits for `apply NAME --allow upgrade-policy`.
    Hold,
}
