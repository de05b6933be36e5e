//! Podman's own generator on a staged tree: the authority on what a unit will run.
//!
//! The host's Quadlet directories are read once; the wanted files of the modules take the places of the installed ones;
//! the generator runs on a copy, and what it prints is told in the host's paths. It runs only when something changed.

mod cache;
mod parse;
mod snapshot;
mod stage;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use holdfast_core::generated::{Generated, GeneratorMessage};
use holdfast_core::module::dropin_folders;
use holdfast_core::resource::Kind;
use thiserror::Error;
use tokio::process::Command;
use tokio::time::timeout;

use crate::settings::Settings;
use snapshot::{Ours, Snapshot};
use stage::Stage;

/// Where the generator is, on Debian and elsewhere.
const BINARIES: [&str; 2] =
    ["/usr/lib/systemd/system-generators/podman-system-generator", "/usr/libexec/podman/quadlet"];

/// Where the generator looks for the system's Quadlet files, in its order.
const ROOTS: [&str; 3] = ["/run/containers/systemd", "/etc/containers/systemd", "/usr/share/containers/systemd"];

/// How long one run may take. It takes 60 ms for 200 units.
const DEADLINE: Duration = Duration::from_secs(30);

/// The wanted files of one module. They replace what we installed for it; what somebody else put into its folder stays,
/// since the generator on the host reads it, too.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Staged {
    /// The module's name, which is its folder's.
    pub module: String,
    /// The files by their path below the module's folder: `web.container`, `conf/web.env`.
    pub files: BTreeMap<String, Vec<u8>>,
    /// What the ledger has as ours in that folder, by the same paths.
    pub installed: BTreeSet<String>,
}

/// What keeps the generator from answering. What it complains of is no error but in [`Generated::messages`].
#[derive(Debug, Error)]
pub enum GeneratorError {
    /// Podman is not there, or without Quadlet.
    #[error("Podman's generator is not installed")]
    Absent,
    /// A Quadlet directory of the host could not be read.
    #[error("cannot read {path}")]
    Read {
        /// The path.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The copy could not be written or removed.
    #[error("cannot stage {path}")]
    Stage {
        /// The path.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// A wanted file lies outside of its module's folder.
    #[error("\"{0}\" is no path below a module's folder")]
    Name(String),
    /// The generator could not be started or listened to.
    #[error("cannot run {path}")]
    Run {
        /// The program.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// It did not come to an end and was killed.
    #[error("{path} did not end within {seconds} s and was killed")]
    Deadline {
        /// The program.
        path: PathBuf,
        /// The deadline in seconds.
        seconds: u64,
    },
    /// It ended in a way that it does not document.
    #[error("{path} ended with {status}: {output}")]
    Failed {
        /// The program.
        path: PathBuf,
        /// How it ended.
        status: ExitStatus,
        /// The end of what it said.
        output: String,
    },
}

/// Runs Podman's generator over the host's Quadlet files with the wanted files of some modules in their places.
///
/// Modules with installed files that are not among the staged ones keep them. A cached answer is given when nothing
/// changed since: files, links, wanted files, and the generator itself.
///
/// # Errors
/// [`GeneratorError`] when the generator is not there, could not be run, or did not end.
pub async fn run(settings: &Settings, staged: &[Staged]) -> Result<Generated, GeneratorError> {
    let host = Host {
        roots: ROOTS.map(PathBuf::from).to_vec(),
        binaries: BINARIES.map(PathBuf::from).to_vec(),
        quadlet_dir: &settings.quadlet_dir,
        run_dir: &settings.run_dir,
        deadline: DEADLINE,
    };
    host.generate(staged).await
}

/// What concerns a Quadlet file, by its path on the host: what names it or one of its drop-ins, and, when it made no
/// unit, what kept the generator from reading its directory.
#[must_use]
pub fn messages_for<'a>(generated: &'a Generated, path: &str) -> Vec<&'a GeneratorMessage> {
    let (directory, name) = path.rsplit_once('/').unwrap_or(("", path));
    let folders = dropin_folders(name);
    let type_folder = Kind::of_quadlet(name).map(|kind| format!("{kind}.d"));
    let dropped = generated.of_source(path).next().is_none();
    let concerns = |file: &str| {
        let (above, _) = file.rsplit_once('/').unwrap_or(("", file));
        let folder = above.rsplit('/').next().unwrap_or_default();
        file == path || folders.iter().chain(&type_folder).any(|own| own == folder) || (dropped && above == directory)
    };
    let own = |message: &&GeneratorMessage| message.file.as_deref().is_some_and(|file| file == path);
    let unread = |message: &&GeneratorMessage| message.text.starts_with("error ");
    generated
        .messages
        .iter()
        .filter(|message| own(message) || (unread(message) && message.file.as_deref().is_some_and(concerns)))
        .collect()
}

/// The places of one host, so that a test can have its own.
struct Host<'a> {
    roots: Vec<PathBuf>,
    binaries: Vec<PathBuf>,
    quadlet_dir: &'a Path,
    run_dir: &'a Path,
    deadline: Duration,
}

impl Host<'_> {
    async fn generate(&self, staged: &[Staged]) -> Result<Generated, GeneratorError> {
        let binary = self.binaries.iter().find(|path| path.exists()).ok_or(GeneratorError::Absent)?;
        let snapshot = Snapshot::take(&self.roots, &Ours { quadlet_dir: self.quadlet_dir, staged })?;
        let key = cache::key(&snapshot, binary)?;
        if let Some(generated) = cache::read(self.run_dir, &key) {
            return Ok(generated);
        }
        let stage = Stage::write(self.run_dir, &snapshot)?;
        let mut generated = self.ask(binary, &stage, &snapshot).await?;
        generated.messages.extend(snapshot.messages());
        if snapshot.complete {
            cache::write(self.run_dir, stage.path(), &key, &generated)?;
        }
        stage.remove()?;
        Ok(generated)
    }

    async fn ask(&self, binary: &Path, stage: &Stage, snapshot: &Snapshot) -> Result<Generated, GeneratorError> {
        let path = || binary.to_owned();
        let mut command = Command::new(binary);
        command
            .arg("--dryrun")
            .env_clear()
            .env("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin")
            .env("QUADLET_UNIT_DIRS", stage.unit_dirs(snapshot))
            .current_dir("/")
            .stdin(Stdio::null())
            .kill_on_drop(true);
        let output = match timeout(self.deadline, command.output()).await {
            Ok(output) => output.map_err(|source| GeneratorError::Run { path: path(), source })?,
            Err(_) => return Err(GeneratorError::Deadline { path: path(), seconds: self.deadline.as_secs() }),
        };
        let (stdout, stderr) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        let generated = parse::parse(&stdout, &stderr, &stage.path().display().to_string());
        // 1 is its answer when it complains of anything; without a complaint it is something else that failed.
        let answered = match output.status.code() {
            Some(0) => true,
            Some(1) => !generated.messages.is_empty(),
            _ => false,
        };
        if !answered {
            let start = stderr.len().saturating_sub(500);
            let output_end = stderr.get(start..).unwrap_or(&stderr).trim().to_owned();
            return Err(GeneratorError::Failed { path: path(), status: output.status, output: output_end });
        }
        Ok(generated)
    }
}
