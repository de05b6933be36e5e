//! Where things are and how long they may take: defaults, then /usr/lib/holdfast, /run/holdfast, /etc/holdfast.

mod load;

use std::path::PathBuf;
use std::time::Duration;

/// The agent's settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// Assigned modules: /etc/holdfast/modules.
    pub modules_dir: PathBuf,
    /// Ledger and checkpoints: /var/lib/holdfast, 0700.
    pub state_dir: PathBuf,
    /// The last look and caches: /run/holdfast.
    pub run_dir: PathBuf,
    /// Installed Quadlet files: /etc/containers/systemd/holdfast.
    pub quadlet_dir: PathBuf,
    /// Installed plain units: /etc/systemd/system.
    pub unit_dir: PathBuf,
    /// Installed tmpfiles.d lines: /etc/tmpfiles.d.
    pub tmpfiles_dir: PathBuf,
    /// Podman's API socket: /run/podman/podman.sock.
    pub podman_socket: PathBuf,
    /// How long a start may take to become healthy, unless the module says otherwise.
    pub health_timeout: Duration,
    /// How long a started container must then stay so, unless the module says otherwise.
    pub health_watch: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            modules_dir: "/etc/holdfast/modules".into(),
            state_dir: "/var/lib/holdfast".into(),
            run_dir: "/run/holdfast".into(),
            quadlet_dir: "/etc/containers/systemd/holdfast".into(),
            unit_dir: "/etc/systemd/system".into(),
            tmpfiles_dir: "/etc/tmpfiles.d".into(),
            podman_socket: "/run/podman/podman.sock".into(),
            health_timeout: Duration::from_secs(60),
            health_watch: Duration::from_secs(10),
        }
    }
}
