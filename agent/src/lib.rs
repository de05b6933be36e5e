//! The doing of holdfast: reads modules, looks at the host, executes the plan, looks again, and reports.

pub mod apply;
pub mod error;
pub mod execute;
pub mod generator;
pub mod journal;
pub mod observe;
pub mod reporting;
pub mod settings;
pub mod source;
pub mod store;
pub mod watch;
