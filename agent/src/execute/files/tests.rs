use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::path::Path;

use holdfast_core::name::HostPath;
use rustix::mount::{MountFlags, UnmountFlags, mount, mount_remount, unmount};

use super::{Attributes, Before, Emptied, FileError};

/// A directory below one that only root can write: /tmp itself is everybody's.
struct Tree(tempfile::TempDir);

impl Tree {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> HostPath {
        HostPath::new(self.0.path().join(name).to_str().unwrap()).unwrap()
    }

    fn names(&self, name: &str) -> Vec<String> {
        super::read_directory(&self.path(name)).unwrap().unwrap()
    }
}

/// A look and a job may both be the first to need a place.
#[test]
fn several_may_make_the_same_parents_at_once() {
    let tree = Tree::new();
    for round in 0..200 {
        let path = tree.path(&format!("{round}/state/deeper"));
        std::thread::scope(|scope| {
            let makers: Vec<_> = (0..4).map(|_| scope.spawn(|| super::open_directory(&path).map(drop))).collect();
            for maker in makers {
                maker.join().unwrap().unwrap();
            }
        });
    }
}

/// A file system in memory; none where this machine lets nobody mount.
pub struct Mounted(String);

impl Mounted {
    pub fn tmpfs(at: &Path, size: &str) -> Option<Self> {
        let options = std::ffi::CString::new(format!("size={size}")).unwrap();
        match mount("tmpfs", at, "tmpfs", MountFlags::empty(), Some(options.as_c_str())) {
            Ok(()) => Some(Self(at.to_str().unwrap().to_owned())),
            Err(rustix::io::Errno::PERM) => {
                eprintln!("not tested: mounting needs root");
                None
            }
            Err(errno) => panic!("{errno}"),
        }
    }

    pub fn read_only(&self) {
        mount_remount(self.0.as_str(), MountFlags::RDONLY, c"").unwrap();
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        unmount(self.0.as_str(), UnmountFlags::DETACH).unwrap();
    }
}

fn at(path: &HostPath) -> &Path {
    Path::new(path.as_str())
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// The tester's own number: another owner needs root.
fn like(mode: u32) -> Attributes<'static> {
    if is_root() {
        return Attributes::root(mode);
    }
    let number = |id: u32| -> &'static str { Box::leak(id.to_string().into_boxed_str()) };
    let (user, group) = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
    Attributes { mode, owner: (number(user), number(group)) }
}

#[test]
fn a_directory_is_made_with_its_parents_and_mark() {
    let tree = Tree::new();
    let path = tree.path("a/b/data");
    super::make_directory(&path, like(0o2750), "web").unwrap();
    assert_eq!(fs::metadata(at(&path)).unwrap().mode() & 0o7777, 0o2750);
    for parent in ["a", "a/b"] {
        assert_eq!(fs::metadata(at(&tree.path(parent))).unwrap().mode() & 0o7777, 0o755, "{parent}");
    }
    if is_root() {
        let dir = fs::File::open(at(&path)).unwrap();
        let mut mark = [0; 16];
        let length = rustix::fs::fgetxattr(&dir, super::MARK, &mut mark[..]).unwrap();
        assert_eq!(mark.get(..length), Some(&b"web"[..]));
        let parent = fs::File::open(at(&tree.path("a/b"))).unwrap();
        assert!(rustix::fs::fgetxattr(&parent, super::MARK, &mut mark[..]).is_err(), "parents carry no mark");
    }
}

#[test]
fn a_directory_that_is_there_is_left_as_it_is() {
    let tree = Tree::new();
    let path = tree.path("data");
    fs::create_dir(at(&path)).unwrap();
    fs::set_permissions(at(&path), fs::Permissions::from_mode(0o700)).unwrap();
    let error = super::make_directory(&path, like(0o755), "web").unwrap_err();
    assert!(matches!(error, FileError::FoundMeanwhile(_)), "{error}");
    assert_eq!(fs::metadata(at(&path)).unwrap().mode() & 0o7777, 0o700);
}

#[test]
fn an_unknown_owner_leaves_nothing() {
    let tree = Tree::new();
    for owner in [("no-such-user", "root"), ("root", "no-such-group"), ("4294967295", "root")] {
        let error = super::make_directory(&tree.path("a/b"), Attributes { mode: 0o755, owner }, "web").unwrap_err();
        assert!(matches!(error, FileError::NoSuchOwner { .. }), "{error}");
        let written = super::write_file(&tree.path("f"), b"x", Attributes { mode: 0o644, owner }, Before::Nothing);
        assert!(written.is_err());
    }
    assert_eq!(tree.names(""), Vec::<String>::new());
}

#[test]
fn owners_go_by_name_and_number() {
    if !is_root() {
        return eprintln!("not tested: another owner needs root");
    }
    let tree = Tree::new();
    super::write_file(&tree.path("f"), b"x", Attributes { mode: 0o640, owner: ("12", "daemon") }, Before::Nothing)
        .unwrap();
    let stat = fs::metadata(at(&tree.path("f"))).unwrap();
    assert_eq!((stat.uid(), stat.gid(), stat.mode() & 0o7777), (12, 1, 0o640));
}

#[test]
fn a_new_file_takes_no_place_of_another() {
    let tree = Tree::new();
    let path = tree.path("a/web.container");
    super::write_file(&path, b"one", like(0o644), Before::Nothing).unwrap();
    assert_eq!(fs::read(at(&path)).unwrap(), b"one");
    assert_eq!(fs::metadata(at(&path)).unwrap().mode() & 0o7777, 0o644);
    let error = super::write_file(&path, b"two", like(0o644), Before::Nothing).unwrap_err();
    assert!(matches!(error, FileError::FoundMeanwhile(_)), "{error}");
    assert_eq!(fs::read(at(&path)).unwrap(), b"one");
    assert_eq!(tree.names("a"), ["web.container"]);
}

#[test]
fn a_file_is_replaced_only_while_it_is_as_we_wrote_it() {
    let tree = Tree::new();
    let path = tree.path("f");
    let one = super::sha256(b"one");
    super::write_file(&path, b"one", like(0o644), Before::Nothing).unwrap();
    super::write_file(&path, b"two", like(0o600), Before::Sha256(&one)).unwrap();
    assert_eq!(fs::read(at(&path)).unwrap(), b"two");
    assert_eq!(fs::metadata(at(&path)).unwrap().mode() & 0o7777, 0o600);

    let error = super::write_file(&path, b"three", like(0o644), Before::Sha256(&one)).unwrap_err();
    assert!(matches!(error, FileError::ChangedMeanwhile(_)), "{error}");
    let error = super::remove_file(&path, &one).unwrap_err();
    assert!(matches!(error, FileError::ChangedMeanwhile(_)), "{error}");
    assert_eq!(fs::read(at(&path)).unwrap(), b"two");

    super::remove_file(&path, &super::sha256(b"two")).unwrap();
    super::remove_file(&path, &super::sha256(b"two")).unwrap();
    super::remove_file(&tree.path("gone/too"), &one).unwrap();
    assert_eq!(tree.names(""), Vec::<String>::new());
}

#[test]
fn what_is_no_regular_file_is_not_read_and_not_replaced() {
    let tree = Tree::new();
    fs::create_dir(at(&tree.path("dir"))).unwrap();
    fs::write(at(&tree.path("file")), "x").unwrap();
    symlink(at(&tree.path("file")), at(&tree.path("link"))).unwrap();
    rustix::fs::mkfifoat(rustix::fs::CWD, at(&tree.path("fifo")), rustix::fs::Mode::RUSR).unwrap();
    let sha = super::sha256(b"x");
    for name in ["dir", "link", "fifo"] {
        let error = super::write_file(&tree.path(name), b"y", like(0o644), Before::Sha256(&sha)).unwrap_err();
        assert!(matches!(error, FileError::NotFile(_)), "{name}: {error}");
        assert!(super::remove_file(&tree.path(name), &sha).is_err(), "{name}");
        let error = super::write_file(&tree.path(name), b"y", like(0o644), Before::Nothing).unwrap_err();
        assert!(matches!(error, FileError::FoundMeanwhile(_)), "{name}: {error}");
    }
    assert_eq!(tree.names(""), ["dir", "fifo", "file", "link"]);
}

#[test]
fn only_links_of_root_are_followed() {
    if !is_root() {
        return eprintln!("not tested: links of another user need root");
    }
    let tree = Tree::new();
    fs::create_dir(at(&tree.path("real"))).unwrap();
    fs::create_dir(at(&tree.path("open"))).unwrap();
    symlink(at(&tree.path("real")), at(&tree.path("absolute"))).unwrap();
    symlink("./open/../real", at(&tree.path("relative"))).unwrap();
    for name in ["absolute", "relative"] {
        super::write_file(&tree.path(&format!("{name}/{name}")), b"x", like(0o644), Before::Nothing).unwrap();
    }
    assert_eq!(tree.names("real"), ["absolute", "relative"]);

    // Root's own link, but where everybody could have put it.
    symlink(at(&tree.path("real")), at(&tree.path("open/link"))).unwrap();
    fs::set_permissions(at(&tree.path("open")), fs::Permissions::from_mode(0o1777)).unwrap();
    // Somebody's link where only root can write.
    symlink(at(&tree.path("real")), at(&tree.path("theirs"))).unwrap();
    std::os::unix::fs::lchown(at(&tree.path("theirs")), Some(12), Some(12)).unwrap();
    // A directory of somebody.
    fs::create_dir(at(&tree.path("home"))).unwrap();
    symlink(at(&tree.path("real")), at(&tree.path("home/link"))).unwrap();
    chown(at(&tree.path("home")), Some(12), Some(12)).unwrap();
    for name in ["open/link", "theirs", "home/link"] {
        let path = tree.path(&format!("{name}/file"));
        let error = super::write_file(&path, b"x", like(0o644), Before::Nothing).unwrap_err();
        assert!(matches!(&error, FileError::UnsafeLink(link) if *link == tree.path(name).to_string()), "{error}");
        assert!(super::make_directory(&path, like(0o755), "web").is_err(), "{name}");
        assert!(super::remove_file(&path, "").is_err(), "{name}");
    }
    assert_eq!(tree.names("real"), ["absolute", "relative"]);

    symlink("loop", at(&tree.path("loop"))).unwrap();
    let error = super::write_file(&tree.path("loop/file"), b"x", like(0o644), Before::Nothing).unwrap_err();
    assert_eq!(error.errno(), Some(40), "{error}");
    symlink("nowhere", at(&tree.path("dangling"))).unwrap();
    assert!(super::read_file(&tree.path("dangling/file")).unwrap().is_none());
}

#[test]
fn a_link_is_made_where_nothing_is() {
    let tree = Tree::new();
    super::make_link(&tree.path("a/link"), "../target").unwrap();
    assert_eq!(fs::read_link(at(&tree.path("a/link"))).unwrap(), Path::new("../target"));
    let error = super::make_link(&tree.path("a/link"), "other").unwrap_err();
    assert!(matches!(error, FileError::FoundMeanwhile(_)), "{error}");
}

#[test]
fn only_empty_directories_go() {
    let tree = Tree::new();
    fs::create_dir_all(at(&tree.path("a/b"))).unwrap();
    assert_eq!(super::remove_empty_directory(&tree.path("a")).unwrap(), Emptied::HoldsSomething);
    assert_eq!(super::remove_empty_directory(&tree.path("a/b")).unwrap(), Emptied::Gone);
    assert_eq!(super::remove_empty_directory(&tree.path("a/b")).unwrap(), Emptied::Gone);
    assert_eq!(super::remove_empty_directory(&tree.path("none/b")).unwrap(), Emptied::Gone);
    assert_eq!(tree.names(""), ["a"]);
}

#[test]
fn what_a_killed_agent_left_is_no_hindrance() {
    let tree = Tree::new();
    let path = tree.path("f");
    let place = super::Place::of(&path, super::Parents::Leave).unwrap();
    fs::write(at(&tree.path(&place.temp_name())), "half a fi").unwrap();
    super::write_file(&path, b"whole", like(0o644), Before::Nothing).unwrap();
    assert_eq!(fs::read(at(&path)).unwrap(), b"whole");
    assert_eq!(tree.names(""), ["f"]);
}

#[test]
fn a_long_name_can_be_written() {
    let tree = Tree::new();
    super::write_file(&tree.path(&"n".repeat(255)), b"x", like(0o644), Before::Nothing).unwrap();
    assert_eq!(tree.names("").len(), 1);
}

#[test]
fn a_full_disk_leaves_the_old_file_and_nothing_else() {
    let tree = Tree::new();
    let Some(_disk) = Mounted::tmpfs(tree.0.path(), "64k") else { return };
    let path = tree.path("f");
    super::write_file(&path, b"old", like(0o644), Before::Nothing).unwrap();
    let big = vec![b'x'; 1 << 20];
    let error = super::write_file(&path, &big, like(0o644), Before::Sha256(&super::sha256(b"old"))).unwrap_err();
    assert_eq!(error.errno(), Some(28), "{error}");
    let error = super::write_file(&tree.path("new"), &big, like(0o644), Before::Nothing).unwrap_err();
    assert_eq!(error.errno(), Some(28), "{error}");
    assert_eq!(fs::read(at(&path)).unwrap(), b"old");
    assert_eq!(tree.names(""), ["f"]);
}

#[test]
fn a_read_only_file_system_is_told_and_left() {
    let tree = Tree::new();
    let Some(disk) = Mounted::tmpfs(tree.0.path(), "64k") else { return };
    super::write_file(&tree.path("f"), b"old", like(0o644), Before::Nothing).unwrap();
    disk.read_only();
    let old = super::sha256(b"old");
    let attempts = [
        super::write_file(&tree.path("f"), b"new", like(0o644), Before::Sha256(&old)),
        super::write_file(&tree.path("a/g"), b"new", like(0o644), Before::Nothing),
        super::make_directory(&tree.path("d"), like(0o755), "web"),
        super::remove_file(&tree.path("f"), &old),
    ];
    for attempt in attempts {
        assert_eq!(attempt.unwrap_err().errno(), Some(30));
    }
    assert_eq!(tree.names(""), ["f"]);
}
