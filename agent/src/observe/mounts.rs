//! What is mounted now, and which mount units of systemd are not.

use std::collections::{BTreeMap, BTreeSet};

use holdfast_core::name::HostPath;

use super::ObserveError;

/// Mount points of the host's first process: the agent's own may differ where its unit restricts it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MountTable {
    /// Mount point to the type of the file system on top.
    points: BTreeMap<String, String>,
}

impl MountTable {
    /// Reads /proc/1/mountinfo, or the agent's own where that is closed.
    ///
    /// # Errors
    /// [`ObserveError::Kernel`] when neither can be read.
    pub fn read() -> Result<Self, ObserveError> {
        let own = "/proc/self/mountinfo";
        std::fs::read("/proc/1/mountinfo")
            .or_else(|_| std::fs::read(own))
            .map(|bytes| Self::parse(&String::from_utf8_lossy(&bytes)))
            .map_err(|source| ObserveError::Kernel { path: own.to_owned(), source })
    }

    pub(super) fn parse(text: &str) -> Self {
        // A later line of the same mount point lies on top of the earlier one.
        Self { points: text.lines().filter_map(mount_point).collect() }
    }

    /// The mount point of the first file system of a type.
    #[must_use]
    pub fn first_of_type(&self, kind: &str) -> Option<&str> {
        self.points.iter().find(|(_, found)| *found == kind).map(|(point, _)| point.as_str())
    }
}

/// Mount units of systemd that are not mounted, by mount point.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Mounts {
    absent: BTreeMap<HostPath, String>,
    waiting: BTreeSet<HostPath>,
}

impl Mounts {
    /// Puts the mount table beside the mount and automount units that systemd knows files of.
    #[must_use]
    pub fn new(table: MountTable, units: &BTreeSet<String>) -> Self {
        let mut mounts = Self::default();
        for (point, kind) in &table.points {
            if kind == "autofs"
                && let Ok(path) = HostPath::new(point)
            {
                mounts.waiting.insert(path);
            }
        }
        for unit in units {
            let Some(path) =
                unit.strip_suffix(".mount").or_else(|| unit.strip_suffix(".automount")).and_then(mount_path)
            else {
                continue;
            };
            let mounted = table.points.get(path.as_str()).is_some_and(|kind| kind != "autofs");
            if !mounted && !is_api_mount(&path) {
                mounts.absent.insert(path, unit.clone());
            }
        }
        mounts
    }

    /// The unit of the first mount point on the way to a real path, itself included, that is not mounted.
    #[must_use]
    pub fn absent_on_the_way(&self, real: &HostPath) -> Option<&str> {
        let found = self.absent.iter().find(|(point, _)| point.contains(real));
        found.map(|(_, unit)| unit.as_str())
    }

    /// True for an automount point that nobody has triggered yet: stepping into it would mount it.
    #[must_use]
    pub fn would_trigger(&self, real: &HostPath) -> bool {
        self.waiting.contains(real)
    }
}

/// Mount units that come with systemd for the kernel's own file systems and for /tmp say nothing about a module's data:
/// where such a one is not mounted, a plain directory does as well.
fn is_api_mount(path: &HostPath) -> bool {
    ["/", "/tmp", "/dev", "/proc", "/run", "/sys"].contains(&path.as_str())
        || ["/dev/", "/proc/", "/run/", "/sys/"].iter().any(|below| path.as_str().starts_with(below))
}

/// Mount point and type of one line of mountinfo.
fn mount_point(line: &str) -> Option<(String, String)> {
    let (mount, filesystem) = line.split_once(" - ")?;
    let point = mount.split(' ').nth(4)?;
    let kind = filesystem.split(' ').next()?;
    Some((unescape(point, "\\", 8), kind.to_owned()))
}

/// The mount point of `data-deep` in `data-deep.mount`.
fn mount_path(name: &str) -> Option<HostPath> {
    HostPath::new(&format!("/{}", unescape(&name.replace('-', "/"), "\\x", 16))).ok()
}

/// Undoes `\040` (octal, mountinfo) and `\x20` (hexadecimal, systemd).
fn unescape(text: &str, sign: &str, radix: u32) -> String {
    let digits = if radix == 8 { 3 } else { 2 };
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(sign) {
        bytes.extend_from_slice(&rest.as_bytes()[..at]);
        let code = rest.get(at + sign.len()..at + sign.len() + digits);
        match code.and_then(|code| u8::from_str_radix(code, radix).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = &rest[at + sign.len() + digits..];
            }
            None => {
                bytes.extend_from_slice(sign.as_bytes());
                rest = &rest[at + sign.len()..];
            }
        }
    }
    bytes.extend_from_slice(rest.as_bytes());
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use holdfast_core::name::HostPath;

    use super::{MountTable, Mounts, mount_path};

    const TABLE: &str = "\
22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/root rw
30 22 0:25 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw
40 22 0:30 / /media/my\\040disk rw,relatime - ext4 /dev/sdb1 rw
41 22 0:31 / /srv/auto rw shared:3 - autofs systemd-1 rw
42 22 0:32 / /srv/woken rw shared:4 - autofs systemd-1 rw
43 42 0:33 / /srv/woken rw shared:5 - nfs4 nas:/x rw
not a line
";

    fn path(text: &str) -> HostPath {
        HostPath::new(text).unwrap()
    }

    fn mounts(units: &[&str]) -> Mounts {
        let units: BTreeSet<String> = units.iter().map(|unit| (*unit).to_owned()).collect();
        Mounts::new(MountTable::parse(TABLE), &units)
    }

    #[test]
    fn absent_mounts_are_named() {
        let mounts = mounts(&[
            "-.mount",
            "tmp.mount",
            "run-x.mount",
            "data-deep.mount",
            "media-my\\x20disk.mount",
            "srv-auto.automount",
            "srv-auto.mount",
            "srv-woken.mount",
            "srv-my\\x2ddata.mount",
        ]);
        for (real, unit) in [
            ("/data", None),
            ("/data/deep", Some("data-deep.mount")),
            ("/data/deep/er/file", Some("data-deep.mount")),
            ("/data/deeper", None),
            ("/media/my disk/x", None),
            ("/tmp/x", None),
            ("/run/x/y", None),
            ("/srv/auto/x", Some("srv-auto.mount")),
            ("/srv/woken/x", None),
            ("/srv/my-data", Some("srv-my\\x2ddata.mount")),
            ("/", None),
        ] {
            assert_eq!(mounts.absent_on_the_way(&path(real)), unit, "{real}");
        }
        assert!(mounts.would_trigger(&path("/srv/auto")));
        assert!(!mounts.would_trigger(&path("/srv/woken")));
    }

    #[test]
    fn names_become_paths() {
        for (name, expected) in [("-", "/"), ("var-lib-a_b.c", "/var/lib/a_b.c"), ("x\\x2dy\\xzz", "/x-y\\xzz")] {
            assert_eq!(mount_path(name), Some(path(expected)), "{name}");
        }
    }

    #[test]
    fn file_systems_are_found_by_type() {
        assert_eq!(MountTable::parse(TABLE).first_of_type("cgroup2"), Some("/sys/fs/cgroup"));
        assert_eq!(MountTable::parse(TABLE).first_of_type("xfs"), None);
        assert!(MountTable::read().is_ok_and(|table| table.points.contains_key("/")));
    }
}
