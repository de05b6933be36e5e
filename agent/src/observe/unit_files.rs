//! Files of systemd's unit path: which of them have the name of a wanted unit.

use std::collections::BTreeSet;
use std::os::unix::fs::FileTypeExt;
use std::path::Path;

use holdfast_core::observed::{UnitFileHit, UnitFileRank};

/// The names in each directory of systemd's unit path, strongest directory first.
///
/// Each directory is read once: a `stat` of every wanted name in each of a dozen directories costs several times as much.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UnitFiles {
    directories: Vec<Directory>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Directory {
    path: String,
    /// None for the generators' directories, which come after a decision and not before it.
    rank: Option<UnitFileRank>,
    names: BTreeSet<String>,
}

impl UnitFiles {
    /// Reads the directories of systemd's UnitPath; what is not there has no names.
    #[must_use]
    pub fn read(unit_path: &[String]) -> Self {
        Self { directories: unit_path.iter().map(|path| Directory::read(path)).collect() }
    }

    /// The files of a unit's name, strongest first; for an instance those of its template come after its own.
    #[must_use]
    pub fn hits(&self, unit: &str) -> Vec<UnitFileHit> {
        let names = std::iter::once(unit.to_owned()).chain(template_of(unit));
        names.flat_map(|name| self.files_named(&name)).collect()
    }

    /// Names of the mount and automount units that have a file which is not masked.
    #[must_use]
    pub fn mount_units(&self) -> BTreeSet<String> {
        let is_mount = |name: &&String| name.ends_with(".mount") || name.ends_with(".automount");
        let mut decided = BTreeSet::new();
        let mut units = BTreeSet::new();
        for directory in &self.directories {
            for name in directory.names.iter().filter(is_mount) {
                // The strongest file decides, as it does for systemd.
                if decided.insert(name.clone()) && !is_masked(&directory.file(name)) {
                    units.insert(name.clone());
                }
            }
        }
        units
    }

    fn files_named(&self, name: &str) -> Vec<UnitFileHit> {
        let hit = |directory: &Directory| {
            let rank = directory.rank.filter(|_| directory.names.contains(name))?;
            let path = directory.file(name);
            let masked = is_masked(&path);
            Some(UnitFileHit { path, rank, masked })
        };
        self.directories.iter().filter_map(hit).collect()
    }
}

impl Directory {
    fn read(path: &str) -> Self {
        let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
        let names = entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
        Self { path: path.to_owned(), rank: rank_of(path), names }
    }

    fn file(&self, name: &str) -> String {
        format!("{}/{name}", self.path)
    }
}

fn rank_of(directory: &str) -> Option<UnitFileRank> {
    match Path::new(directory).file_name().and_then(|name| name.to_str()) {
        Some("generator" | "generator.late") => None,
        _ if directory.starts_with("/usr/") || directory.starts_with("/lib/") => Some(UnitFileRank::Vendor),
        _ => Some(UnitFileRank::Stronger),
    }
}

/// `x@.service` for `x@i.service`.
fn template_of(unit: &str) -> Option<String> {
    let (prefix, instance) = unit.split_once('@')?;
    let (instance, suffix) = instance.rsplit_once('.')?;
    (!instance.is_empty()).then(|| format!("{prefix}@.{suffix}"))
}

/// As systemd sees it: an empty file, or a device, which is what a link to /dev/null leads to.
fn is_masked(path: &str) -> bool {
    std::fs::metadata(path).is_ok_and(|found| {
        let kind = found.file_type();
        (kind.is_file() && found.len() == 0) || kind.is_char_device() || kind.is_block_device()
    })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use holdfast_core::observed::UnitFileRank;

    use super::{UnitFiles, rank_of, template_of};

    #[test]
    fn directories_have_ranks() {
        for (path, rank) in [
            ("/etc/systemd/system.control", Some(UnitFileRank::Stronger)),
            ("/run/systemd/transient", Some(UnitFileRank::Stronger)),
            ("/run/systemd/generator.early", Some(UnitFileRank::Stronger)),
            ("/etc/systemd/system", Some(UnitFileRank::Stronger)),
            ("/run/systemd/generator", None),
            ("/usr/local/lib/systemd/system", Some(UnitFileRank::Vendor)),
            ("/usr/lib/systemd/system", Some(UnitFileRank::Vendor)),
            ("/lib/systemd/system", Some(UnitFileRank::Vendor)),
            ("/run/systemd/generator.late", None),
        ] {
            assert_eq!(rank_of(path), rank, "{path}");
        }
    }

    #[test]
    fn templates_of_instances() {
        for (unit, template) in [
            ("x@i.service", Some("x@.service")),
            ("x@a.b.service", Some("x@.service")),
            ("x@.service", None),
            ("x.service", None),
        ] {
            assert_eq!(template_of(unit).as_deref(), template, "{unit}");
        }
    }

    #[test]
    fn hits_are_ordered_and_masks_seen() {
        let root = tempfile::tempdir().unwrap();
        let directory = |name: &str| {
            let path = root.path().join(name);
            std::fs::create_dir(&path).unwrap();
            path
        };
        let (early, strong, generator) = (directory("control"), directory("etc"), directory("generator"));
        std::fs::write(early.join("web@.service"), "[Unit]\n").unwrap();
        symlink("/dev/null", strong.join("gone.service")).unwrap();
        symlink("/dev/null", strong.join("srv-off.mount")).unwrap();
        std::fs::write(strong.join("empty.service"), "").unwrap();
        symlink("nowhere.service", strong.join("alias.service")).unwrap();
        std::fs::write(strong.join("web@one.service"), "[Unit]\n").unwrap();
        std::fs::write(generator.join("made.service"), "[Unit]\n").unwrap();
        std::fs::write(generator.join("srv-off.mount"), "[Mount]\n").unwrap();
        std::fs::write(generator.join("data.mount"), "[Mount]\n").unwrap();
        let text = |path: &std::path::Path| path.to_str().unwrap().to_owned();
        let files = UnitFiles::read(&[text(&early), text(&strong), text(&generator), "/nowhere/at/all".to_owned()]);

        let seen = |unit: &str| {
            let short = |path: String| path.strip_prefix(&format!("{}/", text(root.path()))).unwrap().to_owned();
            files.hits(unit).into_iter().map(|hit| (short(hit.path), hit.masked)).collect::<Vec<_>>()
        };
        let hit = |path: &str, masked: bool| (path.to_owned(), masked);
        assert_eq!(seen("gone.service"), [hit("etc/gone.service", true)]);
        assert_eq!(seen("empty.service"), [hit("etc/empty.service", true)]);
        assert_eq!(seen("alias.service"), [hit("etc/alias.service", false)]);
        assert_eq!(seen("web@one.service"), [hit("etc/web@one.service", false), hit("control/web@.service", false)]);
        assert_eq!(seen("made.service"), []);
        assert_eq!(files.mount_units().into_iter().collect::<Vec<_>>(), ["data.mount"]);
    }
}
