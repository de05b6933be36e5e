//! Specifiers (`%n`) and variables (`${VAR}`) as systemd expands them, as far as they can be known before a start.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// What specifiers need to know of the host. Values that could not be read are empty and make their specifier unknown.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostFacts {
    /// `%H`, `%l` is its first label.
    pub hostname: String,
    /// `%m`, 32 hex digits.
    pub machine_id: String,
    /// `%b`, 32 hex digits.
    pub boot_id: String,
    /// `%v`.
    pub kernel: String,
    /// `%a`, as systemd names it.
    pub architecture: String,
}

/// The files that `[Service] EnvironmentFile=` names, by path: their text, or none where they are not there.
pub type EnvFiles = BTreeMap<String, Option<String>>;
