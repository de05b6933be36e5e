use std::fs;
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::os::unix::net::UnixListener;
use std::path::Path;

use holdfast_core::module::{Content, ModuleFiles};
use rustix::fs::{CWD, FileType, Mode, mknodat};
use tempfile::TempDir;

use super::{MAX_ENTRIES, Ownership, read_all, read_one};

const WEB: &str = "[Container]\nImage=localhost/app:1\n";

/// A modules directory with the module `web`.
fn modules() -> TempDir {
    let dir = TempDir::new().unwrap();
    fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755)).unwrap();
    write(dir.path(), "web/web.container", WEB);
    dir
}

fn write(root: &Path, path: &str, content: impl AsRef<[u8]>) {
    let path = root.join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, content).unwrap();
}

fn only(dir: &Path) -> ModuleFiles {
    let mut modules = read_all(dir).unwrap();
    assert_eq!(modules.len(), 1, "{:?}", modules.iter().map(|module| &module.name).collect::<Vec<_>>());
    modules.remove(0)
}

fn text(module: &ModuleFiles, path: &str) -> String {
    match &module.files[path].content {
        Content::Bytes(bytes) => String::from_utf8(bytes.clone()).unwrap(),
        other => panic!("{path}: {other:?}"),
    }
}

#[test]
fn no_directory_has_no_modules() {
    let dir = TempDir::new().unwrap();
    assert_eq!(read_all(&dir.path().join("modules")).unwrap(), []);
    assert!(read_one(&dir.path().join("modules"), Ownership::Any).is_err());
}

#[test]
fn directories_are_modules_and_files_are_not() {
    let dir = modules();
    write(dir.path(), "README", "text");
    write(dir.path(), "Not A Name/x.container", WEB);
    write(dir.path(), ".git/config", "");
    fs::create_dir(dir.path().join("empty")).unwrap();
    symlink(dir.path().join("README"), dir.path().join("readme")).unwrap();
    symlink(dir.path().join("web"), dir.path().join("linked")).unwrap();
    symlink("/nothing/there", dir.path().join("gone")).unwrap();
    let modules = read_all(dir.path()).unwrap();
    let seen: Vec<_> = modules.iter().map(|one| (one.name.as_str(), one.files.len(), one.problems.len())).collect();
    assert_eq!(seen, [("Not A Name", 1, 0), ("empty", 0, 0), ("gone", 0, 1), ("linked", 0, 1), ("web", 1, 0)]);
    assert!(modules[3].problems[0].message.contains("is a link"));
}

#[test]
fn files_are_read_with_their_modes() {
    let dir = modules();
    write(dir.path(), "web/files/etc/web/run.sh", "#!/bin/sh\n");
    let path = dir.path().join("web/files/etc/web/run.sh");
    fs::set_permissions(path, fs::Permissions::from_mode(0o4755)).unwrap();
    write(dir.path(), "web/.git/x.container", "never read");
    write(dir.path(), "web/old.bak/x.container", "never read");
    let module = only(dir.path());
    assert_eq!(text(&module, "web.container"), WEB);
    assert_eq!(module.files["files/etc/web/run.sh"].mode, 0o755);
    assert_eq!(module.files[".git"].content, Content::Special("directory"));
    assert_eq!(module.files.keys().collect::<Vec<_>>(), [".git", "files/etc/web/run.sh", "old.bak", "web.container"]);
    assert_eq!((module.problems, module.unsafe_owner), (vec![], vec![]));
}

#[test]
fn what_is_no_file_does_not_block() {
    let dir = modules();
    let web = dir.path().join("web");
    mknodat(CWD, web.join("pipe.container"), FileType::Fifo, Mode::from(0o644), 0).unwrap();
    let _socket = UnixListener::bind(web.join("socket.container")).unwrap();
    let module = only(dir.path());
    assert_eq!(module.files["pipe.container"].content, Content::Special("FIFO"));
    assert_eq!(module.files["socket.container"].content, Content::Special("socket"));
    assert_eq!(text(&module, "web.container"), WEB);
}

#[test]
fn links() {
    let dir = modules();
    let web = dir.path().join("web");
    write(dir.path(), "web/job@.container", "template");
    fs::create_dir(web.join("sub")).unwrap();
    symlink("job@.container", web.join("job@a.container")).unwrap();
    symlink("../job@.container", web.join("sub/job@b.container")).unwrap();
    symlink(web.join("job@.container"), web.join("job@c.container")).unwrap();
    symlink("gone", web.join("gone.container")).unwrap();
    symlink("/etc/passwd", web.join("out.container")).unwrap();
    symlink("sub", web.join("folder")).unwrap();
    symlink("ring", web.join("ring")).unwrap();
    let module = only(dir.path());
    for link in ["job@a.container", "sub/job@b.container", "job@c.container"] {
        assert_eq!(text(&module, link), "template", "{link}");
        assert_eq!(module.files[link].link_to.as_deref(), Some("job@.container"), "{link}");
        assert_eq!(module.files[link].mode, 0o644, "{link}");
    }
    assert_eq!(module.files["gone.container"].content, Content::LinkDangling { target: "gone".to_owned() });
    assert_eq!(module.files["out.container"].content, Content::LinkOutside { target: "/etc/passwd".to_owned() });
    for link in ["folder", "ring"] {
        assert!(matches!(module.files[link].content, Content::Unreadable { error: _ }), "{link}");
    }
}

#[test]
fn caps_stop_one_file_and_no_other_module() {
    let dir = modules();
    for (path, size) in [("web/large.container", 50_000_000), ("web/disk.img", 17 << 20), ("web/fits.img", 16 << 20)] {
        write(dir.path(), path, "");
        fs::File::options().write(true).open(dir.path().join(path)).unwrap().set_len(size).unwrap();
    }
    for name in ["b", "c", "d", "e", "f"] {
        write(dir.path(), &format!("web/{name}.img"), "");
        let file = fs::File::options().write(true).open(dir.path().join(format!("web/{name}.img"))).unwrap();
        file.set_len(15 << 20).unwrap();
    }
    let deep = "d/".repeat(17);
    write(dir.path(), &format!("web/{deep}x.container"), WEB);
    for number in 0..=MAX_ENTRIES {
        write(dir.path(), &format!("many/{number:05}"), "");
    }
    let modules = read_all(dir.path()).unwrap();
    assert_eq!(modules.len(), 2);
    assert_eq!(modules[0].files.len(), MAX_ENTRIES);
    assert_eq!(modules[0].problems.len(), 1);
    assert_eq!(modules[0].problems[0].file, "05000");
    assert!(modules[0].problems[0].message.contains("5000"));
    let web = &modules[1];
    assert_eq!(web.files["large.container"].content, Content::TooLarge { size: 50_000_000 });
    assert_eq!(web.files["disk.img"].content, Content::TooLarge { size: 17 << 20 });
    assert_eq!(text(web, "web.container"), WEB);
    let said: Vec<_> = web.problems.iter().map(|one| (one.file.as_str(), one.message.as_str())).collect();
    assert_eq!(said.len(), 3, "{said:?}");
    assert_eq!(said[0].0, "d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d");
    assert!(said[0].1.contains("16 levels"), "{said:?}");
    assert_eq!((said[1].0, said[2].0), ("f.img", "fits.img"));
    assert!(said[1].1.contains("64 MiB"), "{said:?}");
}

#[test]
fn others_may_not_change_a_module() {
    if !rustix::process::getuid().is_root() {
        return;
    }
    let dir = modules();
    let web = dir.path().join("web");
    write(dir.path(), "web/a.env", "");
    write(dir.path(), "web/b/c.env", "");
    write(dir.path(), "other/x.container", WEB);
    symlink("a.env", web.join("link.env")).unwrap();
    chown(web.join("a.env"), Some(1000), None).unwrap();
    std::os::unix::fs::lchown(web.join("link.env"), Some(1001), None).unwrap();
    fs::set_permissions(web.join("b"), fs::Permissions::from_mode(0o775)).unwrap();
    let modules = read_all(dir.path()).unwrap();
    assert_eq!(modules[0].unsafe_owner, [] as [&str; 0]);
    let said = modules[1].unsafe_owner.join("\n");
    assert_eq!(modules[1].unsafe_owner.len(), 3, "{said}");
    for words in
        ["a.env belongs to uid 1000", "link.env belongs to uid 1001", "mode 0775 (chmod go-w", "chown -h root:root"]
    {
        assert!(said.contains(words), "{said}");
    }
    assert_eq!(read_one(&web, Ownership::Any).unwrap().unsafe_owner, [] as [&str; 0]);
    assert_eq!(read_one(&web, Ownership::RootOnly).unwrap().unsafe_owner.len(), 3);

    fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o777)).unwrap();
    for module in read_all(dir.path()).unwrap() {
        let first = &module.unsafe_owner[0];
        assert!(first.starts_with(&dir.path().display().to_string()) && first.contains("0777"), "{first}");
    }
}

#[test]
fn a_copied_tree_is_one_command() {
    if !rustix::process::getuid().is_root() {
        return;
    }
    let dir = modules();
    for number in 0..20 {
        write(dir.path(), &format!("web/{number}.env"), "");
        chown(dir.path().join(format!("web/{number}.env")), Some(1000), None).unwrap();
    }
    let module = only(dir.path());
    assert_eq!(module.unsafe_owner.len(), 6);
    assert!(module.unsafe_owner[5].starts_with("15 more paths"), "{}", module.unsafe_owner[5]);
    assert!(module.unsafe_owner[5].contains("chown -R root:root"), "{}", module.unsafe_owner[5]);
}

#[test]
fn one_module_is_named_after_its_directory() {
    let dir = modules();
    let module = read_one(&dir.path().join("web/../web/."), Ownership::Any).unwrap();
    assert_eq!(module.name, "web");
    assert_eq!(text(&module, "web.container"), WEB);
}
