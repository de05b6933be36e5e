//! The road: read -> desired -> observe -> plan -> execute -> observe -> verify -> report.

use holdfast_core::desired::Desired;
use holdfast_core::ledger::Ledger;
use holdfast_core::observed::Observed;
use holdfast_core::plan::Plan;
use holdfast_core::report::Report;

use crate::error::AgentError;
use crate::settings::Settings;

/// Who asked for it; goes into the journal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caller {
    /// The real user id.
    pub uid: u32,
    /// The audit login uid, none when unset.
    pub loginuid: Option<u32>,
    /// The command line, for people.
    pub command_line: String,
}

/// Whether to wait while another apply runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Busy {
    /// Give [`AgentError::Busy`] at once.
    Refuse,
    /// Wait for its end.
    Wait,
}

/// What is told while it goes on: "pull localhost:5000/svc:1.0", step k of n.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Progress {
    /// What is done now.
    pub text: String,
    /// Steps that are finished.
    pub done: usize,
    /// All steps; 0 while it is not known.
    pub of: usize,
}

/// One look without any act: what `plan`, `status`, `holds` and `is-applied` are made of.
#[derive(Debug, Clone)]
pub struct Look {
    /// What the modules ask for.
    pub desired: Desired,
    /// What the host has.
    pub observed: Observed,
    /// What is ours.
    pub ledger: Ledger,
    /// What would be done and what is held.
    pub plan: Plan,
}

/// Looks at the host and plans; no side effects but caches in /run/holdfast. An empty list means all modules.
///
/// # Errors
/// [`AgentError`] when a module is not assigned or the host cannot be looked at.
pub async fn look(settings: &Settings, modules: &[String]) -> Result<Look, AgentError> {
    let _ = (settings, modules);
    Err(AgentError::NotRoot)
}

/// Applies modules; an empty list means all. Held resources are no error: the report says which.
///
/// # Errors
/// [`AgentError`] when nothing could be begun; what fails later is in the report.
pub async fn apply(
    settings: &Settings, modules: &[String], busy: Busy, caller: &Caller, progress: &mut (dyn FnMut(Progress) + Send),
) -> Result<Report, AgentError> {
    let _ = (settings, modules, busy, caller, progress);
    Err(AgentError::NotRoot)
}

/// Records the operator's hold on a module, or ends it (`note` = none); reports it to the journal.
///
/// # Errors
/// [`AgentError`] when the module is not assigned or the ledger cannot be written.
pub async fn set_operator_hold(
    settings: &Settings, module: &str, note: Option<&str>, caller: &Caller,
) -> Result<(), AgentError> {
    let _ = (settings, module, note, caller);
    Err(AgentError::NotRoot)
}
