//! The last look on disk, so that it outlives an agent that leaves when nobody asks. It is a cache: /run/holdfast/look.json.

use std::path::Path;

use holdfast_core::name::HostPath;
use holdfast_core::status::SCHEMA;
use holdfast_core::status::view::View;

use crate::error::chain;
use crate::execute::files::{self, Attributes, Before};

/// The file in the run directory.
const FILE: &str = "look.json";

/// The last look; none when there was none, or another version of holdfast wrote it.
#[must_use]
pub fn read(run_dir: &Path) -> Option<View> {
    let text = std::fs::read(run_dir.join(FILE)).ok()?;
    let view: View = serde_json::from_slice(&text).ok()?;
    (view.schema == SCHEMA).then_some(view)
}

/// Keeps a look. That it cannot be kept costs the next agent a look, and no more.
pub fn write(run_dir: &Path, view: &View) {
    if let Err(error) = try_write(run_dir, view) {
        log::warn!("cannot keep the last look: {}", chain(error.as_ref()));
    }
}

fn try_write(run_dir: &Path, view: &View) -> Result<(), Box<dyn std::error::Error>> {
    let path = HostPath::new(run_dir.join(FILE).to_str().unwrap_or_default())?;
    files::write_file(&path, &serde_json::to_vec(view)?, Attributes::root(0o600), Before::Anything)?;
    Ok(())
}
