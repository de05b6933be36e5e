//! Modules that are held as a whole, and what of them is counted all the same.

use super::{World, clause, get, keys, module, reasons};
use crate::desired::{Body, staged};
use crate::generated::GeneratorMessage;
use crate::hold::Reason;
use crate::ledger::Entry;
use crate::module::{ModuleFiles, read};
use crate::problem::Problem;

const IMAGE: &str = "Image=localhost/app:1.27.3\n";

fn container(lines: &str) -> String {
    format!("[Container]\n{IMAGE}{lines}")
}

#[test]
fn one_broken_file_holds_its_module_and_no_other() {
    let bad = "[Container]\nImage=x\n{{#if x}}\n";
    let desired = World::of(&[
        ("bad", &[("tpl.container", bad), ("web.container", &container("")), ("cache.volume", "[Volume]\n")]),
        ("good", &[("web2.container", &container(""))]),
    ])
    .desired();
    assert_eq!(keys(&desired, "bad"), ["volume/cache", "container/tpl", "container/web"]);
    assert!(clause(&desired, "bad", "container/tpl", Reason::Unreadable).starts_with("tpl.container:3"));
    let told = clause(&desired, "bad", "volume/cache", Reason::Unreadable);
    assert!(told.contains("tpl.container:3"), "{told}");
    assert_eq!(reasons(&desired, "good", "container/web2"), []);
}

#[test]
fn a_broken_module_does_not_stop_what_mounts_from_above() {
    let desired = World::of(&[
        ("bad", &[("x.container", "{{\n"), ("y.container", &container("Volume=/srv/y:/y\n"))]),
        ("exporter", &[("e.container", &container("Volume=/:/host:ro,rslave\nVolume=/srv/y:/y:ro\n"))]),
        ("good", &[("z.container", &container("Volume=/srv/z:/z\n"))]),
    ])
    .desired();
    assert_eq!(keys(&desired, "bad"), ["directory//srv/y", "container/x", "container/y"]);
    let needed = super::needs(&desired, "exporter", "container/e");
    assert_eq!(needed, ["bad directory//srv/y", "good directory//srv/z"], "the first one by its own mount only");
    let desired = World::of(&[
        ("bad", &[("x.container", "{{\n"), ("y.container", &container("Volume=/srv/y:/y\n"))]),
        ("exporter", &[("e.container", &container("Volume=/:/host:ro,rslave\n"))]),
    ])
    .desired();
    assert!(super::needs(&desired, "exporter", "container/e").is_empty());
}

#[test]
fn what_a_broken_module_has_here_is_counted_and_not_taken_for_removed() {
    let world = World::of(&[("bad", &[("x.container", "{{\n")])]).own("bad", "directory//srv/x", Entry::default());
    let desired = world.desired();
    assert_eq!(keys(&desired, "bad"), ["directory//srv/x", "container/x"]);
    assert_eq!(get(&desired, "bad", "directory//srv/x").body, Body::Opaque);
    assert_eq!(reasons(&desired, "bad", "directory//srv/x"), [Reason::Unreadable]);
}

#[test]
fn a_module_of_which_nothing_can_be_told_counts_as_one() {
    let mut world = World::default();
    let problems = vec![Problem::error("", None, "the directory cannot be read: Permission denied")];
    world.modules.push(read(ModuleFiles { name: "odd".to_owned(), problems, ..ModuleFiles::default() }));
    world.modules.push(module("Bad_Name", &[]));
    world.modules.push(module("empty", &[]));
    let desired = world.desired();
    assert_eq!(keys(&desired, "odd"), ["file/odd"]);
    let told = clause(&desired, "odd", "file/odd", Reason::Unreadable);
    assert_eq!(told, "the directory cannot be read: Permission denied");
    assert_eq!(keys(&desired, "Bad_Name"), ["file/Bad_Name"]);
    assert!(clause(&desired, "Bad_Name", "file/Bad_Name", Reason::Unreadable).contains("is no module name"));
    assert_eq!(desired.modules["Bad_Name"].name, None);
    assert!(desired.modules["empty"].resources.is_empty());
}

#[test]
fn somebody_elses_hands_hold_all_of_a_module() {
    let mut world = World::of(&[("web", &[("web.container", &container("Volume=/srv/web:/d\n"))])]);
    world.modules[0].unsafe_owner.push("web.container is writable by others".to_owned());
    let desired = world.desired();
    for key in keys(&desired, "web") {
        let told = clause(&desired, "web", &key, Reason::UnsafeOwner);
        assert!(told.contains("web.container is writable by others"), "{told}");
    }
}

#[test]
fn the_generators_word_counts() {
    let web = |message: GeneratorMessage| {
        let world = World::of(&[("web", &[("web.container", &container(""))])]);
        let mut generated = world.generated();
        generated.messages.push(message);
        (world, generated)
    };
    let message =
        |file: Option<&str>, text: &str| GeneratorMessage { file: file.map(str::to_owned), text: text.to_owned() };
    let table = [
        (
            "its drop-in",
            message(Some("/etc/containers/systemd/web.container.d/10.conf"), "error loading \"10.conf\""),
            true,
        ),
        (
            "of its type",
            message(Some("/etc/containers/systemd/container.d/10.conf"), "error loading \"10.conf\""),
            true,
        ),
        (
            "another's",
            message(Some("/etc/containers/systemd/web2.container.d/10.conf"), "error loading \"10.conf\""),
            false,
        ),
        ("a foreign file", message(Some("/etc/containers/systemd/web.container"), "unsupported key"), false),
        (
            "a warning",
            message(Some("/etc/containers/systemd/holdfast/web/web.container"), "Warning: not fully qualified"),
            false,
        ),
    ];
    for (what, message, held) in table {
        let (world, generated) = web(message);
        let desired = world.desired_of(generated);
        let expected: &[Reason] = if held { &[Reason::Unreadable] } else { &[] };
        assert_eq!(reasons(&desired, "web", "container/web"), expected, "{what}");
    }
}

#[test]
fn a_file_without_a_unit_and_without_a_word_is_held() {
    let world = World::of(&[("web", &[("web.container", &container(""))])]);
    let desired = world.desired_of(crate::generated::Generated::default());
    assert!(clause(&desired, "web", "container/web", Reason::Unreadable).contains("makes no unit of it"));
}

#[test]
fn assets_that_cannot_travel_make_a_module_unreadable() {
    type Files<'a> = &'a [(&'a str, &'a str)];
    let table: &[(&str, Files, &str)] = &[
        ("read-write", &[("a.container", "[Container]\nImage=i\nVolume=./data:/d\n"), ("data/x", "1")], "below /etc"),
        ("out of the module", &[("a.container", "[Container]\nImage=i\nVolume=../x:/d:ro\n")], "leads out"),
        (
            "out of its directory",
            &[("s/a.container", "[Container]\nImage=i\nVolume=../x:/d:ro\n"), ("x", "1")],
            "leads out",
        ),
        (
            "two of one name",
            &[
                ("one/a.container", "[Container]\nImage=i\nEnvironmentFile=app.env\n"),
                ("one/app.env", "A=1\n"),
                ("two/b.container", "[Container]\nImage=i\nEnvironmentFile=app.env\n"),
                ("two/app.env", "A=2\n"),
            ],
            "which differs",
        ),
    ];
    for (what, files, told) in table {
        let found = World::of(&[("m", files)]).desired();
        let own = clause(&found, "m", "container/a", Reason::Unreadable);
        assert!(own.contains(told), "{what}: {own}");
        assert!(staged(&module("m", files)).is_err(), "{what}");
    }
}

#[test]
fn a_yaml_that_is_none_is_told_with_its_line() {
    let files = [("a.kube", "[Kube]\nYaml=a.yaml\n"), ("a.yaml", "kind: Pod\nspec: [\n")];
    let told = clause(&World::of(&[("m", &files)]).desired(), "m", "kube/a", Reason::Unreadable);
    assert!(told.contains("a.yaml:"), "{told}");
}

#[test]
fn the_generators_silence_about_a_module_that_was_not_staged_says_nothing() {
    let world = World::of(&[("m", &[("a.container", "{{\n"), ("b.container", &container(""))])]);
    let told = clause(&world.desired(), "m", "container/b", Reason::Unreadable);
    assert!(told.contains("a.container:1"), "{told}");
}

#[test]
fn a_missing_asset_that_is_no_env_file_is_a_missing_path() {
    let world = World::of(&[("m", &[("a.container", "[Container]\nImage=i\nVolume=./a.conf:/a.conf:ro\n")])]);
    let desired = world.desired();
    assert_eq!(reasons(&desired, "m", "container/a"), [Reason::MissingPath]);
    assert!(clause(&desired, "m", "container/a", Reason::MissingPath).contains("a.conf, which is not in its module"));
}
