//! The verbs: each asks the agent and answers with text or JSON and an exit status.

pub mod apply;
pub mod generate;
pub mod jobs;
pub mod lint;
pub mod look;
pub mod operator_hold;
pub mod report;
