//! The copy of the host's Quadlet directories on which the generator runs, removed whatever happens.

use std::ffi::OsString;
use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::{DirBuilderExt, symlink};
use std::path::{Component, Path, PathBuf};

use super::GeneratorError;
use super::snapshot::{Node, Snapshot};

/// A staged tree. Dropping it removes it.
pub(super) struct Stage {
    path: PathBuf,
}

impl Stage {
    /// Writes a snapshot below the run directory, 0700.
    pub fn write(run_dir: &Path, snapshot: &Snapshot) -> Result<Self, GeneratorError> {
        let stage = Self::make(run_dir).map_err(|source| GeneratorError::Stage { path: run_dir.to_owned(), source })?;
        for (root, nodes) in &snapshot.trees {
            let failed = |path: &Path, source| GeneratorError::Stage { path: path.to_owned(), source };
            let base = stage.at(root);
            fs::create_dir_all(&base).map_err(|source| failed(&base, source))?;
            for (relative, node) in nodes {
                let path = base.join(relative);
                stage.put(&path, &root.join(relative), node, snapshot).map_err(|source| failed(&path, source))?;
            }
        }
        Ok(stage)
    }

    /// Its root, without links in it, as the generator will print it.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// `QUADLET_UNIT_DIRS` for the trees.
    pub fn unit_dirs(&self, snapshot: &Snapshot) -> OsString {
        let dirs: Vec<OsString> = snapshot.trees.iter().map(|(root, _)| self.at(root).into_os_string()).collect();
        dirs.join(":".as_ref())
    }

    /// Removes it and says so if that fails.
    pub fn remove(self) -> Result<(), GeneratorError> {
        fs::remove_dir_all(&self.path).map_err(|source| GeneratorError::Stage { path: self.path.clone(), source })
    }

    fn make(run_dir: &Path) -> io::Result<Self> {
        DirBuilder::new().recursive(true).mode(0o755).create(run_dir)?;
        let run_dir = run_dir.canonicalize()?;
        remove_stale(&run_dir)?;
        let pid = std::process::id();
        let mut number = 0;
        loop {
            let path = run_dir.join(format!("stage-{pid}-{number}"));
            match DirBuilder::new().mode(0o700).create(&path) {
                Ok(()) => return Ok(Self { path }),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => number += 1,
                Err(error) => return Err(error),
            }
        }
    }

    fn put(&self, path: &Path, real: &Path, node: &Node, snapshot: &Snapshot) -> io::Result<()> {
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent)?;
        }
        match node {
            Node::Directory => fs::create_dir_all(path),
            Node::File(bytes) => fs::write(path, bytes),
            Node::Elsewhere { stamp: _ } => symlink(real, path),
            Node::Link { target, stamp: _ } => symlink(self.target(real, target, snapshot), path),
            Node::Blocks => Ok(()),
        }
    }

    /// Where a link of the copy points: into the copy if the real one points into a tree, else to the real thing.
    fn target(&self, link: &Path, target: &Path, snapshot: &Snapshot) -> PathBuf {
        let absolute = link.parent().unwrap_or(link).join(target);
        let plain = lexical(&absolute);
        let staged = snapshot.trees.iter().any(|(root, _)| plain.starts_with(root));
        if staged { self.at(&plain) } else { absolute }
    }

    fn at(&self, host: &Path) -> PathBuf {
        self.path.join(host.strip_prefix("/").unwrap_or(host))
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        // Removed already on the good road; on any other the first error is the one to tell.
        fs::remove_dir_all(&self.path).ok();
    }
}

/// Removes what killed processes left behind.
fn remove_stale(run_dir: &Path) -> io::Result<()> {
    for entry in fs::read_dir(run_dir)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let pid = name.strip_prefix("stage-").and_then(|rest| rest.split_once('-')).map(|(pid, _)| pid.to_owned());
        if let Some(pid) = pid
            && pid.parse::<u32>().is_ok()
            && !Path::new("/proc").join(pid).exists()
        {
            fs::remove_dir_all(entry.path())?;
        }
    }
    Ok(())
}

fn lexical(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => {
                plain.pop();
            }
            Component::CurDir => {}
            other => plain.push(other),
        }
    }
    plain
}
