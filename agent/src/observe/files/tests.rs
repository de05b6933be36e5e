use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::{PermissionsExt, lchown, symlink};
use std::path::Path;

use holdfast_core::name::HostPath;
use holdfast_core::observed::{PathFacts, PathState};

use super::look;
use crate::observe::mounts::{MountTable, Mounts};

/// The first 16 digits of the SHA-256 of "content\n".
const CONTENT_SHA256: &str = "434728a410a78f56";

struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Self {
        let place = Self(tempfile::tempdir().unwrap());
        std::fs::set_permissions(place.0.path(), PermissionsExt::from_mode(0o755)).unwrap();
        place
    }

    fn at(&self, name: &str) -> HostPath {
        HostPath::new(&format!("{}/{name}", self.0.path().canonicalize().unwrap().display())).unwrap()
    }

    fn dir(&self, name: &str, mode: u32) -> &Self {
        let path = self.at(name);
        std::fs::create_dir_all(path.as_str()).unwrap();
        std::fs::set_permissions(path.as_str(), PermissionsExt::from_mode(mode)).unwrap();
        self
    }

    fn file(&self, name: &str) -> &Self {
        std::fs::write(self.at(name).as_str(), "content\n").unwrap();
        self
    }

    fn link(&self, name: &str, target: &str) -> &Self {
        symlink(target, self.at(name).as_str()).unwrap();
        self
    }

    fn facts(&self, name: &str) -> PathFacts {
        look_at(&self.at(name), &Mounts::default())
    }
}

fn look_at(path: &HostPath, mounts: &Mounts) -> PathFacts {
    look(&BTreeMap::from([(path.clone(), true)]), mounts).remove(path).unwrap()
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

#[test]
fn things_are_told_apart() {
    let place = Place::new();
    place.dir("empty", 0o2750).dir("full", 0o755).file("full/x").file("file");
    let socket = std::os::unix::net::UnixListener::bind(place.at("socket").as_str()).unwrap();
    rustix::fs::mknodat(
        rustix::fs::CWD,
        place.at("fifo").as_str(),
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RUSR,
        0,
    )
    .unwrap();
    let directory = |name: &str| match place.facts(name).state {
        PathState::Directory { uid: _, gid: _, mode, empty, mark } => (mode, empty, mark),
        other => panic!("{name}: {other:?}"),
    };
    assert_eq!(directory("empty"), (0o2750, true, None));
    assert_eq!(directory("full"), (0o755, false, None));
    match place.facts("file").state {
        PathState::File { uid, gid: _, mode: _, size, sha256 } => {
            assert_eq!((uid, size), (rustix::process::geteuid().as_raw(), 8));
            assert!(sha256.unwrap().starts_with(CONTENT_SHA256));
        }
        other => panic!("{other:?}"),
    }
    let unread = look(&BTreeMap::from([(place.at("file"), false)]), &Mounts::default());
    assert!(matches!(unread[&place.at("file")].state, PathState::File { sha256: None, .. }));
    assert_eq!(place.facts("socket").state, PathState::Other { what: "socket".to_owned() });
    assert_eq!(place.facts("fifo").state, PathState::Other { what: "FIFO".to_owned() });
    let missing = place.facts("no/such/thing");
    assert_eq!((missing.state, missing.real, missing.writable), (PathState::Missing, place.at("no/such/thing"), true));
    assert!(matches!(place.facts("file/below").state, PathState::Unknown { .. }));
    let root = look_at(&HostPath::root(), &Mounts::default());
    assert!(matches!(root.state, PathState::Directory { empty: false, .. }));
    drop(socket);
}

#[test]
fn links_in_parents_are_followed_and_told() {
    if !is_root() {
        return;
    }
    let place = Place::new();
    place.dir("data/deep", 0o755).file("data/deep/x").link("near", "data/../data/./deep").link("chain", "near");
    place.link("far", place.at("data").as_str());
    for (asked, real) in [("near/x", "data/deep/x"), ("chain/x", "data/deep/x"), ("far/deep/x", "data/deep/x")] {
        let facts = place.facts(asked);
        assert!(matches!(facts.state, PathState::File { .. }), "{asked}");
        assert_eq!((facts.real, facts.unsafe_link), (place.at(real), None), "{asked}");
    }
    let missing = place.facts("chain/not/there");
    assert_eq!((missing.state, missing.real), (PathState::Missing, place.at("data/deep/not/there")));
}

#[test]
fn a_link_as_last_part_is_a_link() {
    if !is_root() {
        return;
    }
    let place = Place::new();
    place.dir("data", 0o755).file("data/x").link("dir", "data").link("file", "dir/x").link("gone", "data/y/z");
    place.link("up", "data/..").link("loop", "loop");
    for (name, target, dangling, to_directory, real) in [
        ("dir", "data", false, true, "data"),
        ("file", "dir/x", false, false, "data/x"),
        ("gone", "data/y/z", true, false, "data/y/z"),
        ("up", "data/..", false, true, ""),
    ] {
        let facts = place.facts(name);
        assert_eq!(facts.state, PathState::Link { target: target.to_owned(), dangling, to_directory }, "{name}");
        assert_eq!((facts.real, facts.unsafe_link), (place.at(real), None), "{name}");
    }
    assert!(matches!(place.facts("loop").state, PathState::Link { dangling: false, to_directory: false, .. }));
    assert!(matches!(place.facts("loop/x").state, PathState::Unknown { .. }));
}

#[test]
fn links_of_others_are_not_followed() {
    if !is_root() {
        return;
    }
    let place = Place::new();
    place.dir("data", 0o755).file("data/x");
    place.dir("open", 0o1777).link("open/way", "../data");
    place.dir("group", 0o775).link("group/way", "../data");
    place.link("theirs", "data");
    lchown(place.at("theirs").as_str(), Some(1000), Some(1000)).unwrap();
    place.dir("home", 0o755).link("home/way", "../data");
    std::os::unix::fs::chown(place.at("home").as_str(), Some(1000), None).unwrap();
    for link in ["open/way", "group/way", "theirs", "home/way"] {
        let below = place.facts(&format!("{link}/x"));
        assert_eq!(below.unsafe_link.as_deref(), Some(place.at(link).as_str()), "{link}");
        assert!(matches!(below.state, PathState::Unknown { .. }), "{link}");
        assert_eq!(below.real, place.at(&format!("{link}/x")), "{link}");
        let itself = place.facts(link);
        assert_eq!(itself.unsafe_link.as_deref(), Some(place.at(link).as_str()), "{link}");
        assert!(matches!(itself.state, PathState::Link { .. }), "{link}");
        assert_eq!(itself.real, place.at(link), "{link}");
    }
}

#[test]
fn marks_are_read() {
    let place = Place::new();
    place.dir("ours", 0o755).dir("theirs", 0o755);
    let flags = rustix::fs::XattrFlags::empty();
    if rustix::fs::setxattr(place.at("ours").as_str(), super::MARK, b"photos", flags).is_err() {
        return; // Not root, or a file system without such attributes.
    }
    let mark = |name: &str| match place.facts(name).state {
        PathState::Directory { mark, .. } => mark,
        other => panic!("{other:?}"),
    };
    assert_eq!((mark("ours").as_deref(), mark("theirs")), (Some("photos"), None));
}

#[test]
fn a_mount_that_is_not_there_is_named() {
    let place = Place::new();
    place.dir("data", 0o755);
    let escaped = place.at("data").as_str().trim_start_matches('/').replace('-', "\\x2d").replace('/', "-");
    let unit = format!("{escaped}.mount");
    let mounts = |table: MountTable| Mounts::new(table, &BTreeSet::from([unit.clone()]));
    // Below /tmp nothing is exempt but /tmp itself.
    let facts = look_at(&place.at("data/sub"), &mounts(MountTable::read().unwrap()));
    assert_eq!((facts.unmounted, facts.state), (Some(unit.clone()), PathState::Missing));
    let line = format!("1 1 0:1 / {} rw - autofs systemd-1 rw\n", place.at("data"));
    let waiting = look_at(&place.at("data/sub"), &mounts(MountTable::parse(&line)));
    assert_eq!(waiting.unmounted, Some(unit.clone()));
    assert!(matches!(waiting.state, PathState::Unknown { .. }));
    let line = format!("1 1 0:1 / {} rw - ext4 /dev/x rw\n", place.at("data"));
    let mounted = look_at(&place.at("data/sub"), &mounts(MountTable::parse(&line)));
    assert_eq!(mounted.unmounted, None);
}

#[test]
fn what_cannot_be_written_is_told() {
    // /proc refuses new entries to everybody.
    let facts = look_at(&HostPath::new("/proc/self/holdfast-x").unwrap(), &Mounts::default());
    assert!(!facts.writable);
    assert!(Place::new().facts("x").writable);
}

#[test]
fn many_paths_cost_few_files() {
    let place = Place::new();
    let mut wanted = BTreeMap::new();
    for module in 0..50 {
        place.dir(&format!("m{module}/etc"), 0o755);
        for file in 0..10 {
            place.file(&format!("m{module}/etc/f{file}"));
            wanted.insert(place.at(&format!("m{module}/etc/f{file}")), true);
        }
    }
    let open = || std::fs::read_dir("/proc/self/fd").unwrap().count();
    let before = open();
    let facts = look(&wanted, &Mounts::default());
    assert!(open() <= before + 20);
    assert_eq!(facts.len(), 500);
    let good = |facts: &PathFacts| matches!(&facts.state, PathState::File { sha256: Some(sha256), .. } if sha256.starts_with(CONTENT_SHA256));
    assert!(facts.values().all(good));
    assert!(Path::new("/proc/self/fd").exists());
}
