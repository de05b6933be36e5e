//! The doing of holdfast: reads modules, looks at the host, executes the plan, looks again, and reports.

pub mod activity;
pub mod apply;
pub mod bus;
pub mod caller;
pub mod desk;
pub mod error;
pub mod execute;
pub mod generator;
pub mod held;
pub mod journal;
pub mod lastlook;
pub mod latest;
pub mod observe;
pub mod reporting;
pub mod reports;
pub mod service;
pub mod settings;
pub mod source;
pub mod stop;
pub mod store;
pub mod time;
pub mod varlink;
pub mod watch;
