//! The verbs: each asks the agent's library and answers with text or JSON and an exit status.

pub mod apply;
pub mod generate;
pub mod hold;
pub mod lint;
pub mod look;
pub mod report;

use holdfast_agent::error::AgentError;
use holdfast_agent::settings::Settings;
use holdfast_core::report::escape;

/// The host's settings.
///
/// # Errors
/// [`AgentError::Settings`] when a settings file cannot be used.
pub fn settings() -> Result<Settings, AgentError> {
    Ok(Settings::load()?)
}

/// What can be run about an error, if anything.
pub fn hint(error: &AgentError) -> Option<String> {
    match error {
        AgentError::NoSuchModule(_) => Some("holdfast status".to_owned()),
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

/// What would have been right, for an error about a name.
pub fn choice(error: &AgentError) -> Option<String> {
    let AgentError::NoSuchModule(_) = error else { return None };
    let names = assigned();
    Some(if names.is_empty() {
        "no module is assigned".to_owned()
    } else {
        format!("assigned are {}", names.join(", "))
    })
}

/// What was typed, with the command's own name in front.
fn command_line() -> String {
    let words: Vec<String> = std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned()).collect();
    format!("holdfast {}", words.join(" "))
}

/// The modules that could have been meant.
fn assigned() -> Vec<String> {
    let directory = Settings::load().unwrap_or_default().modules_dir;
    let entries = std::fs::read_dir(&directory).into_iter().flatten().flatten();
    let mut names: Vec<String> = entries
        .filter(|entry| entry.path().is_dir())
        .map(|entry| escape(&entry.file_name().to_string_lossy()).into_owned())
        .collect();
    names.sort();
    names
}
