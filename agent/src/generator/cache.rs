//! The last answer of the generator, with the hash of what it was asked.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

use holdfast_core::generated::Generated;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::GeneratorError;
use super::snapshot::{Snapshot, hex};

/// Changes with the form of the file and with the reading of the generator's output.
const VERSION: u32 = 1;
const NAME: &str = "generator.json";

#[derive(Serialize, Deserialize)]
struct Cached<G> {
    version: u32,
    key: String,
    generated: G,
}

/// The hash of all that the answer depends on.
pub(super) fn key(snapshot: &Snapshot, binary: &Path) -> Result<String, GeneratorError> {
    let failed = |source: io::Error| GeneratorError::Run { path: binary.to_owned(), source };
    let metadata = binary.metadata().map_err(failed)?;
    let mut hasher = Sha256::new();
    hasher.update(binary.as_os_str().as_encoded_bytes());
    for number in [metadata.mtime(), metadata.mtime_nsec(), i64::try_from(metadata.len()).unwrap_or(i64::MAX)] {
        hasher.update(number.to_le_bytes());
    }
    snapshot.hash(&mut hasher);
    Ok(hex(&hasher.finalize()))
}

/// The cached answer to this question. What cannot be read or understood is as good as none: it is asked again.
pub(super) fn read(run_dir: &Path, key: &str) -> Option<Generated> {
    let bytes = fs::read(run_dir.join(NAME)).ok()?;
    let cached: Cached<Generated> = serde_json::from_slice(&bytes).ok()?;
    (cached.version == VERSION && cached.key == key).then_some(cached.generated)
}

/// Keeps an answer, 0600, atomically; the new file is written into the stage, which is removed if anything fails.
pub(super) fn write(run_dir: &Path, stage: &Path, key: &str, generated: &Generated) -> Result<(), GeneratorError> {
    let path = run_dir.join(NAME);
    let new = stage.join(NAME);
    let write = || -> io::Result<()> {
        let bytes = serde_json::to_vec(&Cached { version: VERSION, key: key.to_owned(), generated })?;
        OpenOptions::new().write(true).create_new(true).mode(0o600).open(&new)?.write_all(&bytes)?;
        fs::rename(&new, &path)
    };
    write().map_err(|source| GeneratorError::Stage { path: path.clone(), source })
}
