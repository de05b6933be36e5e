//! What the agent answers when it does not do what was asked: a token, a sentence, an exit status, a way out.

use holdfast_agent::error::{AgentError, chain};
use thiserror::Error;

/// The exit status of what has none of its own.
pub const FAILED: u8 = 1;

/// A refusal or an error, from whichever door.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{message}")]
pub struct Refusal {
    /// The word: NoSuchModule, JobInProgress, AccessDenied, …
    pub token: String,
    /// The sentence.
    pub message: String,
}

impl Refusal {
    /// One of these.
    pub fn new(token: &str, message: impl Into<String>) -> Self {
        Self { token: token.to_owned(), message: message.into() }
    }

    /// The exit status of the command.
    pub fn exit_status(&self) -> u8 {
        match self.token.as_str() {
            "InvalidArgs" => 2,
            "NoSuchModule" | "NoSuchReport" | "UnknownObject" => 4,
            "JobInProgress" => 75,
            "AccessDenied" | "InteractiveAuthorizationRequired" => 77,
            _ => FAILED,
        }
    }

    /// What can be run about it, if anything.
    pub fn hint(&self) -> Option<String> {
        match self.token.as_str() {
            "NoSuchModule" => Some("holdfast status".to_owned()),
            "NoSuchReport" => Some("holdfast report --list".to_owned()),
            "JobInProgress" => Some("holdfast jobs".to_owned()),
            "AccessDenied" | "InteractiveAuthorizationRequired" => Some(format!("sudo {}", command_line())),
            "NoAgent" => Some("systemctl status holdfastd.service holdfastd.socket".to_owned()),
            "EngineUnavailable" => Some("systemctl status podman.socket dbus.socket".to_owned()),
            _ => None,
        }
    }

    /// True when somebody else may do it.
    pub fn is_denied(&self) -> bool {
        matches!(self.token.as_str(), "AccessDenied" | "InteractiveAuthorizationRequired")
    }
}

impl From<AgentError> for Refusal {
    fn from(error: AgentError) -> Self {
        Self::new(error.token(), chain(&error))
    }
}

/// What was typed, with the command's own name in front.
fn command_line() -> String {
    let words: Vec<String> = std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned()).collect();
    format!("holdfast {}", shell_words::join(words))
}
