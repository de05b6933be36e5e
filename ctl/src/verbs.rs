//! The verbs: each asks the agent's library and answers with text or JSON and an exit status.

pub mod apply;
pub mod generate;
pub mod hold;
pub mod lint;
pub mod look;
pub mod report;

use holdfast_agent::error::AgentError;
use holdfast_agent::settings::Settings;

/// The host's settings.
///
/// # Errors
/// [`AgentError::Settings`] when a settings file cannot be used.
pub fn settings() -> Result<Settings, AgentError> {
    Settings::load()
}

/// What the operator can do about an error, if anything can be said.
pub fn hint(error: &AgentError) -> Option<String> {
    match error {
        AgentError::NoSuchModule(_) => Some(assigned()),
        AgentError::NoSuchReport(_) => Some("holdfast report --list".to_owned()),
        AgentError::Busy { pid: _, since: _ } => Some("holdfast apply --wait".to_owned()),
        AgentError::NotRoot => Some(format!("sudo {}", command_line())),
        AgentError::Settings(_)
        | AgentError::Store(_)
        | AgentError::Observe(_)
        | AgentError::ReportNotDurable(_)
        | AgentError::Journal(_) => None,
    }
}

/// What was typed, with the command's own name in front.
fn command_line() -> String {
    let words: Vec<String> = std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned()).collect();
    format!("holdfast {}", words.join(" "))
}

/// The modules that could have been meant.
fn assigned() -> String {
    let directory = Settings::default().modules_dir;
    let entries = std::fs::read_dir(&directory).into_iter().flatten().flatten();
    let mut names: Vec<String> = entries
        .filter(|entry| entry.path().is_dir())
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    match names.as_slice() {
        [] => format!("ls {} (no module is assigned)", directory.display()),
        names => format!("holdfast status ({} assigned: {})", names.len(), names.join(", ")),
    }
}
