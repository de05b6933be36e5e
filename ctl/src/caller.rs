//! Who calls: the road runs in this process, as root.

use holdfast_agent::apply::Caller;
use holdfast_agent::error::AgentError;

/// The kernel's word for "no login uid".
const UNSET: u32 = u32::MAX;

/// Ends the verb early and clearly where it could not work.
///
/// # Errors
/// [`AgentError::NotRoot`] for anybody else.
pub fn require_root() -> Result<(), AgentError> {
    if rustix::process::geteuid().is_root() { Ok(()) } else { Err(AgentError::NotRoot) }
}

/// Who is to stand in the journal.
pub fn caller() -> Caller {
    let loginuid = std::fs::read_to_string("/proc/self/loginuid").ok();
    let loginuid = loginuid.and_then(|text| text.trim().parse().ok()).filter(|uid| *uid != UNSET);
    let words: Vec<String> = std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect();
    Caller { uid: rustix::process::getuid().as_raw(), loginuid, command_line: words.join(" ") }
}
