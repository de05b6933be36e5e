use super::{Asked, Ground, Owner, Owners, Seen};
use crate::manifest::Manifest;
use crate::module::Declared;
use crate::name::HostPath;
use crate::quadlet::{Mount, MountType};
use crate::resource::Kind;

fn path(text: &str) -> HostPath {
    HostPath::new(text).unwrap()
}

fn ground(own: &[&str], host: &[&str], declared: &[&str], others: &[&str]) -> Ground {
    let paths = |list: &[&str]| list.iter().map(|text| path(text)).collect::<Vec<_>>();
    let manifest = Manifest { own_paths: paths(own), host_paths: paths(host), ..Manifest::default() };
    let line = |text: &&str| Declared {
        kind: Kind::Directory,
        path: path(text),
        mode: None,
        user: None,
        group: None,
        target: None,
        file: "tmpfiles.d/a.conf".to_owned(),
        line: 1,
    };
    let declared: Vec<Declared> = declared.iter().map(line).collect();
    let mut owners = Owners::default();
    paths(others).into_iter().for_each(|path| owners.add(path, 1));
    paths(own).into_iter().for_each(|path| owners.add(path, 0));
    Ground::new(&manifest, &declared).among(owners.into(), 0)
}

fn ask(ground: &Ground, source: &str, target: &str, read_only: bool, seen: Seen) -> Owner {
    ground.owner(&Asked { path: &path(source), real: None, target, read_only, seen })
}

#[test]
fn whose_a_read_write_mount_is_without_a_word_of_the_module() {
    let plain = ground(&[], &[], &[], &[]);
    let table = [
        // own: data where data lies
        ("/var/lib/web", Owner::Own),
        ("/srv/web", Owner::Own),
        ("/opt/web/data", Owner::Own),
        ("/data/web", Owner::Own),
        ("/srv//books/../books/meta/", Owner::Own),
        ("/etcetera/web", Owner::Own),
        // host: the root, every top-level directory, and those of /var and /opt
        ("/", Owner::Host),
        ("/srv", Owner::Host),
        ("/data", Owner::Host),
        ("/var", Owner::Host),
        ("/var/lib", Owner::Host),
        ("/var/log", Owner::Host),
        ("/opt/web", Owner::Host),
        // host: below the reference roots
        ("/etc/web", Owner::Host),
        ("/usr/share/web", Owner::Host),
        ("/run/web", Owner::Host),
        ("/var/run/web/x", Owner::Host),
        ("/dev/dri", Owner::Host),
        ("/proc/sys", Owner::Host),
        ("/sys/fs/cgroup", Owner::Host),
        ("/boot/x", Owner::Host),
        ("/tmp/x", Owner::Host),
        ("/home/ada/data", Owner::Host),
        ("/root/.config/user/data", Owner::Host),
        ("/mnt/data/photos", Owner::Host),
        ("/media/usb/x", Owner::Host),
    ];
    for (source, expected) in table {
        assert_eq!(ask(&plain, source, "/x", false, Seen::Unknown), expected, "{source}");
        assert_eq!(ask(&plain, source, "/x", true, Seen::Unknown), Owner::Host, "{source} read-only");
    }
}

#[test]
fn what_is_there_decides_and_a_file_is_never_made_a_directory() {
    let plain = ground(&[], &[], &[], &[]);
    let table = [
        // source, target, unknown, missing, directory, other
        ("/srv/app", "/data", Owner::Own, Owner::Own, Owner::Own, Owner::Host),
        ("/srv/app/.cache", "/cache", Owner::Own, Owner::Own, Owner::Own, Owner::Host),
        ("/srv/app-1.27", "/data", Owner::Own, Owner::Own, Owner::Own, Owner::Host),
        ("/srv/app/c.yml", "/c", Owner::OwnUnlessFileLike, Owner::Host, Owner::Own, Owner::Host),
        ("/srv/app/conf", "/etc/app.conf", Owner::OwnUnlessFileLike, Owner::Host, Owner::Own, Owner::Host),
        ("/srv/app/.app.env", "/x", Owner::OwnUnlessFileLike, Owner::Host, Owner::Own, Owner::Host),
    ];
    for (source, target, unknown, missing, directory, other) in table {
        let got = [Seen::Unknown, Seen::Missing, Seen::Directory, Seen::Other]
            .map(|seen| ask(&plain, source, target, false, seen));
        assert_eq!(got, [unknown, missing, directory, other], "{source}:{target}");
    }
}

#[test]
fn the_module_has_the_first_word() {
    let said =
        ground(&["/mnt/data/photos"], &["/srv/media", "/mnt/data/photos/shared"], &["/run/web", "/srv/x.d"], &[]);
    let table = [
        ("/mnt/data/photos", false, Owner::Own),
        ("/mnt/data/photos", true, Owner::Own),
        ("/mnt/data/photos/raw", false, Owner::Own),
        ("/mnt/data/photos/raw", true, Owner::Host),
        ("/mnt/data/photos/shared/a", false, Owner::Host),
        ("/mnt/data/photos-old", false, Owner::Host),
        ("/srv/media", false, Owner::Host),
        ("/srv/media/films", false, Owner::Host),
        ("/srv/media-old", false, Owner::Own),
        ("/run/web", false, Owner::Own),
        ("/run/web/sub", false, Owner::Host),
        ("/srv/x.d", false, Owner::Own),
    ];
    for (source, read_only, expected) in table {
        assert_eq!(ask(&said, source, "/x", read_only, Seen::Missing), expected, "{source} read-only {read_only}");
    }
    assert!(said.yields(&path("/srv/media/films")));
    assert!(!said.yields(&path("/srv/other")));
}

#[test]
fn a_parent_of_what_another_module_owns_is_the_hosts() {
    let desk = ground(&[], &[], &[], &["/srv/media/films", "/srv/app/data"]);
    assert_eq!(ask(&desk, "/srv/media", "/m", false, Seen::Directory), Owner::Host);
    assert_eq!(ask(&desk, "/srv/media/films", "/m", false, Seen::Directory), Owner::Own, "equal: two claims meet");
    assert_eq!(ask(&desk, "/srv/app/data/x", "/m", false, Seen::Directory), Owner::Own, "below: two claims meet");
    assert_eq!(ask(&desk, "/srv/app/dat", "/m", false, Seen::Directory), Owner::Own);
    let kept = desk.keeping([path("/srv/media"), path("/srv/old.d")].into());
    assert_eq!(ask(&kept, "/srv/media", "/m", false, Seen::Directory), Owner::Own, "the ledger has it");
    assert_eq!(ask(&kept, "/srv/old.d", "/m", false, Seen::Missing), Owner::Own, "it was one, so it is meant as one");
    assert_eq!(ask(&kept, "/srv/media", "/m", true, Seen::Directory), Owner::Host);
}

#[test]
fn a_link_into_a_reference_root_is_a_reference() {
    let (plain, modules) = (ground(&[], &[], &[], &[]), path("/lib/modules"));
    let asked = |real| Asked { path: &modules, real, target: "/m", read_only: false, seen: Seen::Directory };
    assert_eq!(plain.owner(&asked(None)), Owner::Own);
    assert_eq!(plain.owner(&asked(Some(&path("/usr/lib/modules")))), Owner::Host);
}

#[test]
fn shared_paths_and_home_paths_of_real_trees() {
    // A tree of three modules: media says that /srv/media is its own; the other two have no manifest.
    let media = ground(&["/srv/media"], &[], &[], &[]);
    let others = ground(&[], &[], &[], &["/srv/media", "/srv/media/.cache"]);
    let table = [
        (&media, "/srv/media", "/media", true, Owner::Own),
        (&media, "/srv/media/.cache", "/cache", false, Owner::Own),
        (&media, "/dev/dri", "/dev/dri", false, Owner::Host),
        (&others, "/srv/media/books", "/books", true, Owner::Host),
        (&others, "/run/podman/podman.sock", "/run/podman/podman.sock", true, Owner::Host),
        (&others, "/", "/run/host", false, Owner::Host),
        (&others, "/srv/media", "/m", false, Owner::Host),
        (&others, "/root/.config/user/data", "/data", false, Owner::Host),
    ];
    for (ground, source, target, read_only, expected) in table {
        assert_eq!(ask(ground, source, target, read_only, Seen::Unknown), expected, "{source}");
    }
}

#[test]
fn words_of_lint() {
    let plain = ground(&[], &[], &[], &[]);
    let mount = |kind, source: &str, read_only| Mount {
        kind,
        source: source.to_owned(),
        file: None,
        target: "/x".to_owned(),
        read_only,
        relative: false,
        line: None,
    };
    let table = [
        (mount(MountType::Bind, "/srv/app", false), "own"),
        (mount(MountType::Bind, "/srv/app", true), "host"),
        (mount(MountType::Bind, "/srv/app/c.yml", false), "host"),
        (mount(MountType::Bind, "${DATA}", false), "host"),
        (mount(MountType::Volume, "data", false), "volume"),
        (mount(MountType::Anonymous, "", false), "volume"),
        (Mount { relative: true, ..mount(MountType::Bind, "/srv/m/conf", false) }, "host"),
    ];
    for (mount, expected) in table {
        assert_eq!(plain.word(&mount), expected, "{}", mount.source);
    }
}
