//! systemd unit syntax as Podman's Quadlet reads it, with line numbers.

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// A text that is no unit file, with the line where it stops being one.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("line {line}: {message}")]
pub struct UnitFileError {
    /// The line, from 1.
    pub line: u32,
    /// What is wrong there.
    pub message: String,
}

/// A unit file: its assignments in order. Sections may repeat, and so may keys.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnitFile {
    /// All assignments, in the order of the file.
    pub entries: Vec<Entry>,
}

/// One `Key=value` of a section.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// The section's name, without brackets.
    pub section: String,
    /// The key.
    pub key: String,
    /// The value, continuation lines joined, trimmed.
    pub value: String,
    /// The line on which the key stands, from 1.
    pub line: u32,
}
