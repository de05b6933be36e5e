//! holdfast.toml and its drop-ins -> Settings.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Duration;

use holdfast_core::manifest::parse_duration;
use serde::Deserialize;
use thiserror::Error;

use super::Settings;
use crate::error::AgentError;

/// Where files may be: what comes later wins.
const DIRECTORIES: [&str; 3] = ["/usr/lib/holdfast", "/run/holdfast", "/etc/holdfast"];

/// A settings file that cannot be used.
#[derive(Debug, Error)]
pub enum SettingsError {
    /// It cannot be read.
    #[error("cannot read {}", .0.display())]
    Read(PathBuf, #[source] std::io::Error),
    /// It is not what it must be.
    #[error("cannot understand {}", .0.display())]
    Parse(PathBuf, #[source] toml::de::Error),
    /// A duration is none.
    #[error("{}: {why}", path.display())]
    Duration {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
}

/// What a file may say.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Fragment {
    #[serde(default)]
    health: Health,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Health {
    timeout: Option<String>,
    watch: Option<String>,
}

impl Settings {
    /// The settings of this host.
    ///
    /// # Errors
    /// [`AgentError::Settings`] when a file cannot be read or has a key that is not known: a typo must not pass.
    pub fn load() -> Result<Self, AgentError> {
        Self::load_from(&DIRECTORIES.map(Path::new)).map_err(|error| AgentError::Settings(Box::new(error)))
    }

    /// The settings that files below these directories make, later ones winning: the main files, then the drop-ins in the
    /// order of their names.
    fn load_from(directories: &[&Path]) -> Result<Self, SettingsError> {
        let main = directories.iter().map(|directory| directory.join("holdfast.toml"));
        let dropins = liboverdrop::scan(directories, "holdfast.toml.d", &["toml"], true);
        let mut settings = Self::default();
        for path in main.chain(dropins.into_values()) {
            match std::fs::read_to_string(&path) {
                Ok(text) => settings.take(&path, &text)?,
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                Err(error) => return Err(SettingsError::Read(path, error)),
            }
        }
        Ok(settings)
    }

    fn take(&mut self, path: &Path, text: &str) -> Result<(), SettingsError> {
        let fragment: Fragment = toml::from_str(text).map_err(|error| SettingsError::Parse(path.to_owned(), error))?;
        let Fragment { health: Health { timeout, watch } } = fragment;
        let duration = |text: String| -> Result<Duration, SettingsError> {
            parse_duration(&text).map_err(|why| SettingsError::Duration { path: path.to_owned(), why })
        };
        if let Some(text) = timeout {
            self.health_timeout = duration(text)?;
        }
        if let Some(text) = watch {
            self.health_watch = duration(text)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;
    use std::time::Duration;

    use super::{Settings, SettingsError};

    /// A directory for one test, which goes with it.
    struct Scratch(std::path::PathBuf);

    impl Scratch {
        fn new(name: &str) -> Self {
            let path = std::env::temp_dir().join(format!("holdfast-settings-{}-{name}", std::process::id()));
            fs::create_dir_all(&path).unwrap();
            Self(path)
        }

        fn write(&self, file: &str, text: &str) {
            let path = self.0.join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }

        fn load(&self) -> Result<Settings, SettingsError> {
            let directories = ["usr", "run", "etc"].map(|name| self.0.join(name));
            let directories: Vec<&Path> = directories.iter().map(std::path::PathBuf::as_path).collect();
            Settings::load_from(&directories)
        }
    }

    impl Drop for Scratch {
        fn drop(&mut self) {
            fs::remove_dir_all(&self.0).unwrap();
        }
    }

    #[test]
    fn nothing_is_needed() {
        assert_eq!(Scratch::new("none").load().unwrap(), Settings::default());
    }

    #[test]
    fn later_files_win_key_by_key() {
        let scratch = Scratch::new("order");
        scratch.write("usr/holdfast.toml", "[health]\ntimeout = \"10s\"\nwatch = \"1s\"\n");
        scratch.write("etc/holdfast.toml", "[health]\ntimeout = \"20s\"\n");
        let settings = scratch.load().unwrap();
        assert_eq!((settings.health_timeout, settings.health_watch), (Duration::from_secs(20), Duration::from_secs(1)));
        scratch.write("usr/holdfast.toml.d/50-slow.toml", "[health]\ntimeout = \"5min\"\n");
        assert_eq!(scratch.load().unwrap().health_timeout, Duration::from_secs(300));
        // A drop-in of the same name in /etc replaces it; an empty one takes it away.
        scratch.write("etc/holdfast.toml.d/50-slow.toml", "");
        assert_eq!(scratch.load().unwrap().health_timeout, Duration::from_secs(20));
    }

    #[test]
    fn a_typo_does_not_pass() {
        for bad in ["[health]\ntimeuot = \"1s\"\n", "[helth]\n", "[health]\ntimeout = \"soon\"\n", "x"] {
            let scratch = Scratch::new("typo");
            scratch.write("etc/holdfast.toml", bad);
            assert!(scratch.load().is_err(), "{bad}");
        }
    }

    /// What is installed says what holds without it.
    #[test]
    fn the_installed_file_changes_nothing_and_is_right_without_its_comments() {
        let text = include_str!("../../../packaging/holdfast.toml");
        let scratch = Scratch::new("installed");
        scratch.write("etc/holdfast.toml", text);
        assert_eq!(scratch.load().unwrap(), Settings::default());
        let keys = text
            .lines()
            .filter_map(|line| line.strip_prefix("# "))
            .filter(|line| line.contains(" = \"") || line.starts_with('['));
        scratch.write("etc/holdfast.toml", &keys.collect::<Vec<_>>().join("\n"));
        assert_eq!(scratch.load().unwrap(), Settings::default());
    }
}
