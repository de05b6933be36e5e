//! Passwords: polkit's own agent for terminals asks for them, while the command waits for its answer.

use std::io::{IsTerminal as _, Read as _};
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, geteuid, getpid, kill_process};

/// Whether somebody may be asked for a password.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ask {
    /// Where polkit wants one.
    Yes,
    /// Never.
    No,
}

/// polkit's agent for this terminal, while it is needed.
pub struct Agent(Child);

impl Agent {
    /// Starts it and waits until it is known to polkit. None where nobody sits at a terminal, where none is needed, or
    /// where it is not installed: then polkit's answer says what is missing.
    pub fn start() -> Option<Self> {
        if geteuid().is_root() || !std::io::stdin().is_terminal() || !std::io::stderr().is_terminal() {
            return None;
        }
        let process = getpid().as_raw_nonzero().to_string();
        // It closes the descriptor when it is known, and asks on the terminal itself. Not --fallback: polkit passes over
        // such an agent of a single process.
        let mut child = Command::new("pkttyagent")
            .args(["--notify-fd", "1", "--process", &process])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .ok()?;
        let mut ready = Vec::new();
        child.stdout.take()?.read_to_end(&mut ready).ok()?;
        Some(Self(child))
    }
}

impl Drop for Agent {
    /// It sets the terminal right before it ends.
    fn drop(&mut self) {
        if let Some(pid) = i32::try_from(self.0.id()).ok().and_then(Pid::from_raw) {
            kill_process(pid, Signal::TERM).unwrap_or_default();
            drop(self.0.wait());
        }
    }
}
