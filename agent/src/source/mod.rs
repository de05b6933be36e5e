//! Module sources: a directory below /etc/holdfast/modules.

pub mod directory;
mod links;

pub use directory::{Ownership, SourceError, read_all, read_one};
