//! `holdfast lint`: what is wrong in a module directory, without a host.

use std::path::Path;

use anyhow::Result;
use holdfast_agent::source::directory::{Ownership, read_one};
use holdfast_core::expand::HostFacts;
use holdfast_core::lint::lint as check;
use holdfast_core::module;
use holdfast_core::problem::Severity;

use crate::output::Output;

/// The exit status for a module that cannot be used as it is.
const ERRORS: u8 = 1;

/// Checks a directory. Who owns it and what this host is called say nothing about the host that it is made for.
pub fn lint(dir: &Path, output: &Output) -> Result<u8> {
    let files = read_one(dir, Ownership::Any)?;
    let report = check(&module::read(files), &HostFacts::default());
    output.answer(&report, &serde_json::to_value(&report)?)?;
    Ok(match report.worst() {
        Some(Severity::Error) => ERRORS,
        Some(Severity::Warning) | None => 0,
    })
}
