//! Where things are and how long they may take: defaults, then /usr/lib/holdfast, /run/holdfast, /etc/holdfast.
//!
//! As for systemd's own daemons: of `holdfast.toml` the one in /etc hides the one in /usr/lib, and the drop-ins of
//! `holdfast.toml.d/` come after it, ordered by name; of two with one name the one in /etc hides that in /run, and that
//! the one in /usr/lib. A link to /dev/null hides and says nothing.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::ErrorKind;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::Duration;

use holdfast_core::manifest::parse_duration;
use serde::Deserialize;
use thiserror::Error;
use toml::Spanned;

use crate::error::AgentError;

/// Where settings are looked for, the weakest first.
const DIRECTORIES: [&str; 3] = ["/usr/lib/holdfast", "/run/holdfast", "/etc/holdfast"];

/// The agent's settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// Where files with settings are looked for, the weakest first.
    pub directories: Vec<PathBuf>,
    /// Assigned modules: /etc/holdfast/modules.
    pub modules_dir: PathBuf,
    /// Ledger and checkpoints: /var/lib/holdfast, 0700.
    pub state_dir: PathBuf,
    /// The last look and caches: /run/holdfast.
    pub run_dir: PathBuf,
    /// Installed Quadlet files: /etc/containers/systemd/holdfast.
    pub quadlet_dir: PathBuf,
    /// Installed plain units: /etc/systemd/system.
    pub unit_dir: PathBuf,
    /// Installed tmpfiles.d lines: /etc/tmpfiles.d.
    pub tmpfiles_dir: PathBuf,
    /// Podman's API socket: /run/podman/podman.sock.
    pub podman_socket: PathBuf,
    /// How long nobody may need the agent before it leaves.
    pub idle: Duration,
    /// How long a start may take to become healthy, unless the module says otherwise.
    pub health_timeout: Duration,
    /// How long a started container must then stay so, unless the module says otherwise.
    pub health_watch: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            directories: DIRECTORIES.map(PathBuf::from).to_vec(),
            modules_dir: "/etc/holdfast/modules".into(),
            state_dir: "/var/lib/holdfast".into(),
            run_dir: "/run/holdfast".into(),
            quadlet_dir: "/etc/containers/systemd/holdfast".into(),
            unit_dir: "/etc/systemd/system".into(),
            tmpfiles_dir: "/etc/tmpfiles.d".into(),
            podman_socket: "/run/podman/podman.sock".into(),
            idle: Duration::from_secs(60),
            health_timeout: Duration::from_secs(60),
            health_watch: Duration::from_secs(10),
        }
    }
}

/// Why the settings cannot be used.
#[derive(Debug, Error)]
pub enum SettingsError {
    /// A file or directory could not be read.
    #[error("cannot read {path}")]
    Read {
        /// Its path.
        path: PathBuf,
        /// The system's error.
        #[source]
        source: std::io::Error,
    },
    /// A file says what holdfast does not understand.
    #[error("{path}, line {line}, column {column}: {message}")]
    Content {
        /// Its path.
        path: PathBuf,
        /// From 1.
        line: usize,
        /// From 1.
        column: usize,
        /// What is wrong.
        message: String,
    },
}

impl From<SettingsError> for AgentError {
    fn from(error: SettingsError) -> Self {
        Self::Settings(Box::new(error))
    }
}

impl Settings {
    /// These, with what the files say now.
    ///
    /// # Errors
    /// [`SettingsError`], with the place for a word that is not understood.
    pub fn read(&self) -> Result<Self, SettingsError> {
        let mut settings = self.clone();
        for path in fragments(&self.directories)? {
            let text =
                std::fs::read_to_string(&path).map_err(|source| SettingsError::Read { path: path.clone(), source })?;
            settings.apply(&path, &text)?;
        }
        Ok(settings)
    }

    fn apply(&mut self, path: &Path, text: &str) -> Result<(), SettingsError> {
        let refused = |span: Range<usize>, message: String| content_error(path, text, &span, message);
        let fragment: Fragment = toml::from_str(text)
            .map_err(|error| refused(error.span().unwrap_or_default(), error.message().to_owned()))?;
        let Fragment { agent: Agent { idle }, health: Health { timeout, watch } } = fragment;
        let fields = [(idle, &mut self.idle), (timeout, &mut self.health_timeout), (watch, &mut self.health_watch)];
        for (value, field) in fields {
            if let Some(value) = value {
                *field = parse_duration(value.get_ref()).map_err(|message| refused(value.span(), message))?;
            }
        }
        Ok(())
    }
}

/// What one file may say.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Fragment {
    agent: Agent,
    health: Health,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Agent {
    idle: Option<Spanned<String>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Health {
    timeout: Option<Spanned<String>>,
    watch: Option<Spanned<String>>,
}

/// The files to read, in their order. (liboverdrop would pass over links and over what cannot be read in silence.)
fn fragments(directories: &[PathBuf]) -> Result<Vec<PathBuf>, SettingsError> {
    let mut main = None;
    let mut drop_ins: BTreeMap<OsString, PathBuf> = BTreeMap::new();
    for directory in directories {
        let path = directory.join("holdfast.toml");
        if path.symlink_metadata().is_ok() {
            main = Some(path);
        }
        for path in toml_files(&directory.join("holdfast.toml.d"))? {
            drop_ins.insert(path.file_name().unwrap_or_default().to_owned(), path);
        }
    }
    Ok(main.into_iter().chain(drop_ins.into_values()).collect())
}

fn toml_files(directory: &Path) -> Result<Vec<PathBuf>, SettingsError> {
    let unreadable = |source| SettingsError::Read { path: directory.to_owned(), source };
    let entries = match std::fs::read_dir(directory) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        other => other.map_err(unreadable)?,
    };
    let mut files = Vec::new();
    for entry in entries {
        let entry = entry.map_err(unreadable)?;
        let hidden = entry.file_name().as_encoded_bytes().starts_with(b".");
        if !hidden && entry.path().extension().is_some_and(|extension| extension == "toml") {
            files.push(entry.path());
        }
    }
    Ok(files)
}

fn content_error(path: &Path, text: &str, span: &Range<usize>, message: String) -> SettingsError {
    let before = text.get(..span.start).unwrap_or(text);
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
    SettingsError::Content { path: path.to_owned(), line, column, message }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;
    use std::path::{Path, PathBuf};
    use std::time::Duration;

    use super::{Settings, SettingsError};

    const S: fn(u64) -> Duration = Duration::from_secs;

    fn tree(files: &[(&str, &str)]) -> (tempfile::TempDir, Vec<PathBuf>) {
        let root = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = root.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap_or(Path::new("/"))).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let directories = ["usr", "run", "etc"].map(|name| root.path().join(name)).to_vec();
        (root, directories)
    }

    fn of(directories: &[PathBuf]) -> Result<Settings, SettingsError> {
        Settings { directories: directories.to_vec(), ..Settings::default() }.read()
    }

    fn times(directories: &[PathBuf]) -> (Duration, Duration) {
        let settings = of(directories).unwrap();
        (settings.health_timeout, settings.health_watch)
    }

    #[test]
    fn without_files_the_defaults_hold() {
        let (_root, directories) = tree(&[]);
        let directories_only = Settings { directories: directories.clone(), ..Settings::default() };
        assert_eq!(of(&directories).unwrap(), directories_only);
        assert_eq!(times(&directories), (S(60), S(10)));
    }

    #[test]
    fn the_main_file_in_etc_hides_that_in_usr() {
        let (_root, directories) = tree(&[
            ("usr/holdfast.toml", "[health]\ntimeout = \"5min\"\nwatch = \"1s\"\n"),
            ("etc/holdfast.toml", "[health]\ntimeout = \"90s\"\n"),
        ]);
        assert_eq!(times(&directories), (S(90), S(10)));
    }

    #[test]
    fn drop_ins_come_by_name_and_the_strongest_of_a_name_counts() {
        let (_root, directories) = tree(&[
            ("etc/holdfast.toml", "[health]\ntimeout = \"1s\"\n"),
            ("etc/holdfast.toml.d/10-a.toml", "[health]\ntimeout = \"2s\"\nwatch = \"2s\"\n"),
            ("run/holdfast.toml.d/20-b.toml", "[health]\ntimeout = \"3s\"\n"),
            ("usr/holdfast.toml.d/20-b.toml", "[health]\ntimeout = \"4s\"\nwatch = \"4s\"\n"),
            ("etc/holdfast.toml.d/30-c.conf", "no toml"),
            ("etc/holdfast.toml.d/.40-d.toml", "no toml"),
        ]);
        assert_eq!(times(&directories), (S(3), S(2)));
    }

    #[test]
    fn links_are_followed_and_one_to_dev_null_hides() {
        let (root, directories) = tree(&[
            ("usr/holdfast.toml.d/20-b.toml", "[health]\ntimeout = \"4s\"\n"),
            ("elsewhere.toml", "[health]\nwatch = \"5s\"\n"),
            ("etc/holdfast.toml.d/50-z.toml", ""),
        ]);
        symlink("/dev/null", root.path().join("etc/holdfast.toml.d/20-b.toml")).unwrap();
        symlink(root.path().join("elsewhere.toml"), root.path().join("etc/holdfast.toml.d/30-c.toml")).unwrap();
        assert_eq!(times(&directories), (S(60), S(5)));
        symlink("/nowhere", root.path().join("etc/holdfast.toml.d/60-y.toml")).unwrap();
        let error = of(&directories).unwrap_err();
        assert!(matches!(error, SettingsError::Read { ref path, source: _ } if path.ends_with("60-y.toml")), "{error}");
    }

    #[test]
    fn what_is_not_understood_is_refused_with_its_place() {
        for (text, line, column, word) in [
            ("[health]\ntimeut = \"1s\"\n", 2, 1, "timeut"),
            ("\n[helth]\n", 2, 2, "helth"),
            ("[health]\n  watch = \"10\"\n", 2, 11, "\"10\" is no duration"),
            ("[health]\nwatch = 10\n", 2, 9, "string"),
            ("[health\n", 1, 8, ""),
        ] {
            let (root, directories) = tree(&[("etc/holdfast.toml", text)]);
            let error = of(&directories).unwrap_err().to_string();
            let start = format!("{}/etc/holdfast.toml, line {line}, column {column}: ", root.path().display());
            assert!(error.starts_with(&start) && error.contains(word) && !error.contains('\n'), "{text:?}: {error}");
        }
    }
}
