//! Module sources: a directory below /etc/holdfast/modules.

pub mod directory;
