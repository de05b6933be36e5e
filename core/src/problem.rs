//! What is wrong with an input, and where: file, line, what to do.

use std::fmt;

use serde::{Deserialize, Serialize};

/// How bad a problem is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// The module cannot be used as it is.
    Error,
    /// It can be used; the author should know.
    Warning,
}

/// One finding in a module's files.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Problem {
    /// The file, relative to the module; empty for the module directory itself.
    pub file: String,
    /// The line, from 1; none where the whole file is meant.
    pub line: Option<u32>,
    /// How bad it is.
    pub severity: Severity,
    /// What is wrong, as a sentence without a full stop.
    pub message: String,
    /// What to do about it.
    pub hint: Option<String>,
}

impl Problem {
    /// An error in a file, at a line or as a whole.
    pub fn error(file: impl Into<String>, line: Option<u32>, message: impl Into<String>) -> Self {
        Self { file: file.into(), line, severity: Severity::Error, message: message.into(), hint: None }
    }

    /// A warning in a file, at a line or as a whole.
    pub fn warning(file: impl Into<String>, line: Option<u32>, message: impl Into<String>) -> Self {
        Self { severity: Severity::Warning, ..Self::error(file, line, message) }
    }

    /// The same problem with what to do about it.
    #[must_use]
    pub fn hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { file, line, severity: _, message, hint: _ } = self;
        match line {
            Some(line) => write!(f, "{file}:{line}: {message}"),
            None if file.is_empty() => f.write_str(message),
            None => write!(f, "{file}: {message}"),
        }
    }
}
