//! Needs beyond Quadlet files: files, links, plain units, paths as a look found them.

use super::{World, clause, get, keys, needs, path, reasons};
use crate::desired::{Body, Need, staged};
use crate::hold::Reason;
use crate::observed::PathState;

const IMAGE: &str = "Image=localhost/app:1.27.3\n";

fn container(lines: &str) -> String {
    format!("[Container]\n{IMAGE}{lines}")
}

fn directory() -> PathState {
    PathState::Directory { uid: 0, gid: 0, mode: 0o755, empty: true, mark: None }
}

#[test]
fn files_links_and_declared_directories_are_resources_that_are_needed() {
    let web = container(
        "Volume=/etc/web/web.conf:/etc/web.conf:ro\nVolume=/var/lib/web:/data\nVolume=/run/web:/run/web\n\
         Volume=/srv/current/htdocs:/htdocs:ro\nEnvironmentFile=/etc/web/web.env\n",
    );
    let lines =
        "d /var/lib/web 0750 www www -\nf /var/lib/web/seed 0600 www - -\nL /srv/current - - - - /srv/v1\nd /run/web\n";
    let desired = World::of(&[(
        "web",
        &[
            ("web.container", &web),
            ("files/etc/web/web.conf", "x"),
            ("files/etc/web/web.env", "A=1\n"),
            ("tmpfiles.d/web.conf", lines),
        ],
    )])
    .desired();
    assert_eq!(
        keys(&desired, "web"),
        [
            "directory//run/web",
            "directory//var/lib/web",
            "file//etc/tmpfiles.d/holdfast-web.conf",
            "file//etc/web/web.conf",
            "file//etc/web/web.env",
            "file//var/lib/web/seed",
            "link//srv/current",
            "container/web",
        ]
    );
    assert_eq!(
        needs(&desired, "web", "container/web"),
        [
            "web directory//run/web",
            "web directory//var/lib/web",
            "web file//etc/web/web.conf",
            "web file//etc/web/web.env",
            "web file//var/lib/web/seed",
            "web link//srv/current",
            "path /srv/current/htdocs",
        ]
    );
    assert_eq!(needs(&desired, "web", "file//var/lib/web/seed"), ["web directory//var/lib/web"]);
    let Body::Directory { mode, owner, .. } = &get(&desired, "web", "directory//var/lib/web").body else { panic!() };
    assert_eq!((*mode, owner.0.as_str(), owner.1.as_str()), (0o750, "www", "www"));
    let Body::File { mode, owner, .. } = &get(&desired, "web", "file//var/lib/web/seed").body else { panic!() };
    assert_eq!((*mode, owner.0.as_str(), owner.1.as_str()), (0o600, "www", "root"));
}

#[test]
fn plain_units_need_what_they_require_and_what_they_would_start() {
    let desired = World::of(&[
        (
            "jobs",
            &[
                ("job.container", &container("")),
                ("job.timer", "[Timer]\nOnCalendar=daily\n[Install]\nWantedBy=timers.target\n"),
                ("other.timer", "[Timer]\nUnit=web.service\n"),
                ("in.socket", "[Socket]\nListenStream=127.0.0.1:99\nAccept=yes\n"),
                ("in@.service", "[Service]\nExecStart=/bin/cat\n"),
                ("after.service", "[Unit]\nRequires=job.service network.target\n[Service]\nExecStart=/bin/true\n"),
                ("after.service.d/10.conf", "[Unit]\nBindsTo=web.service\n"),
            ],
        ),
        ("web", &[("web.container", &container(""))]),
    ])
    .desired();
    assert_eq!(needs(&desired, "jobs", "unit/job.timer"), ["jobs container/job"]);
    assert_eq!(needs(&desired, "jobs", "unit/other.timer"), ["web container/web"]);
    assert_eq!(needs(&desired, "jobs", "unit/in.socket"), ["jobs unit/in@.service"]);
    assert_eq!(needs(&desired, "jobs", "unit/after.service"), ["jobs container/job", "web container/web"]);
    assert_eq!(get(&desired, "jobs", "unit/in.socket").facts.ports[0].to_string(), "127.0.0.1:99/tcp");
    let Body::Unit { files, install } = &get(&desired, "jobs", "unit/after.service").body else { panic!() };
    let installed: Vec<&str> = files.keys().map(crate::name::HostPath::as_str).collect();
    assert_eq!(installed, ["/etc/systemd/system/after.service", "/etc/systemd/system/after.service.d/10.conf"]);
    assert!(!install);
    assert!(matches!(get(&desired, "jobs", "unit/job.timer").body, Body::Unit { install: true, .. }));
}

#[test]
fn a_look_decides_whether_a_mounted_path_is_a_directory() {
    let world = || {
        World::of(&[(
            "app",
            &[("app.container", &container("Volume=/srv/app/conf.yml:/etc/app.yml\nVolume=/srv/app/Rules:/r\n"))],
        )])
    };
    let before = world().desired();
    assert_eq!(keys(&before, "app"), ["directory//srv/app/Rules", "container/app"], "no directory by mistake");
    assert!(needs(&before, "app", "container/app").contains(&"path /srv/app/conf.yml".to_owned()));
    let file = || PathState::File { uid: 0, gid: 0, mode: 0o644, size: 1, sha256: None };
    let files = world().see("/srv/app/conf.yml", file()).see("/srv/app/Rules", file()).desired();
    assert_eq!(keys(&files, "app"), ["container/app"]);
    assert_eq!(needs(&files, "app", "container/app"), ["path /srv/app/Rules", "path /srv/app/conf.yml"]);
    let directories = world().see("/srv/app/conf.yml", directory()).see("/srv/app/Rules", PathState::Missing).desired();
    assert_eq!(keys(&directories, "app"), ["directory//srv/app/Rules", "directory//srv/app/conf.yml", "container/app"]);
}

#[test]
fn paths_are_compared_where_they_are_located() {
    let mut world = World::of(&[
        ("one", &[("a.container", &container("Volume=/data/x:/x\n"))]),
        ("two", &[("b.container", &container("Volume=/srv/x:/x\n"))]),
    ]);
    assert_eq!(reasons(&world.desired(), "one", "directory//data/x"), []);
    world = world.see("/srv/x", directory());
    world.seen.get_mut(&path("/srv/x")).unwrap().real = path("/data/x");
    let desired = world.desired();
    assert_eq!(reasons(&desired, "one", "directory//data/x"), [Reason::ClaimedTwice]);
    let told = clause(&desired, "two", "directory//srv/x", Reason::ClaimedTwice);
    assert!(told.contains("/data/x") && told.contains("/srv/x"), "{told}");
}

#[test]
fn volumes_are_needed_by_name_and_by_file_over_modules() {
    let desired = World::of(&[
        (
            "app",
            &[
                ("data.volume", "[Volume]\n"),
                ("app.container", &container("Volume=data.volume:/d\nVolume=data:/e\nVolume=shared:/f\n")),
                ("twin.container", &container("Volume=data:/e\n")),
            ],
        ),
        ("store", &[("shared.volume", "[Volume]\nVolumeName=shared\n")]),
    ])
    .desired();
    assert_eq!(keys(&desired, "app"), ["volume/data", "volume/name:data", "container/app", "container/twin"]);
    assert_eq!(
        needs(&desired, "app", "container/app"),
        ["app volume/data", "app volume/name:data", "store volume/shared"]
    );
    assert_eq!(needs(&desired, "app", "container/twin"), ["app volume/name:data"]);
    assert_eq!(reasons(&desired, "app", "volume/name:data"), []);
}

#[test]
fn images_are_needed_by_what_runs_from_them() {
    let desired = World::of(&[(
        "app",
        &[
            ("base.image", "[Image]\nImage=localhost/base:1\n"),
            ("app.container", "[Container]\nImage=base.image\n"),
            ("web.container", "[Container]\nImage=localhost/web:1\n"),
        ],
    )])
    .desired();
    assert_eq!(needs(&desired, "app", "container/app"), ["app image/base"]);
    assert!(get(&desired, "app", "image/base").needs.is_empty());
    assert!(get(&desired, "app", "container/web").needs.contains(&Need::Image("localhost/web:1".to_owned())));
}

#[test]
fn what_is_staged_is_flat_and_brings_what_is_referred_to() {
    let module = super::module(
        "app",
        &[
            ("deep/app.container", &container("Volume=./conf:/conf:ro\nEnvironmentFile=app.env\n")),
            ("deep/conf/a.yml", "a"),
            ("deep/conf/sub/b.yml", "b"),
            ("deep/app.env", "A=1\n"),
            ("deep/unrelated", "-"),
            ("conf/c.yml", "c"),
        ],
    );
    let files = staged(&module).unwrap();
    assert_eq!(files.keys().collect::<Vec<_>>(), ["app.container", "app.env", "conf/a.yml", "conf/sub/b.yml"]);
    assert_eq!(files["conf/sub/b.yml"], b"b");
}
