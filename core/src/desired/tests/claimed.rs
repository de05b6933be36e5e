//! Two claims on one thing, over modules and the ledger.

use super::{World, clause, key, keys, path, reasons};
use crate::hold::Reason;
use crate::ledger::Entry;
use crate::observed::PathState;

const IMAGE: &str = "Image=localhost/app:1.27.3\n";

fn container(lines: &str) -> String {
    format!("[Container]\n{IMAGE}{lines}")
}

#[test]
fn what_can_be_claimed_once() {
    let table: &[(&str, &str, &str, &str, &str)] = &[
        (
            "name",
            "a.container",
            "[Container]\nImage=i\nContainerName=x\n",
            "b.container",
            "[Container]\nImage=i\nContainerName=x\n",
        ),
        ("pod name", "a.pod", "[Pod]\nPodName=x\n", "b.container", "[Container]\nImage=i\nContainerName=x\n"),
        (
            "unit",
            "a.service",
            "[Service]\nExecStart=/bin/true\n",
            "a.container",
            "[Container]\nImage=i\nContainerName=x\n",
        ),
        (
            "service name",
            "a.container",
            "[Container]\nImage=i\nServiceName=s\n",
            "b.container",
            "[Container]\nImage=i\nServiceName=s\n",
        ),
        ("volume", "a.volume", "[Volume]\nVolumeName=v\n", "b.volume", "[Volume]\nVolumeName=v\n"),
        (
            "plain volume",
            "a.container",
            "[Container]\nImage=i\nVolume=v:/v\n",
            "b.container",
            "[Container]\nImage=i\nVolume=v:/v\n",
        ),
        ("network", "a.network", "[Network]\nNetworkName=n\n", "b.network", "[Network]\nNetworkName=n\n"),
        (
            "port",
            "a.container",
            "[Container]\nImage=i\nPublishPort=127.0.0.1:80:80\n",
            "b.pod",
            "[Pod]\nPublishPort=80:80\n",
        ),
        (
            "socket",
            "a.container",
            "[Container]\nImage=i\nPublishPort=80:80\n",
            "b.socket",
            "[Socket]\nListenStream=80\n",
        ),
        (
            "file name",
            "a.container",
            "[Container]\nImage=i\nContainerName=1\n",
            "a.container",
            "[Container]\nImage=i\nContainerName=2\n",
        ),
        (
            "equal path",
            "a.container",
            "[Container]\nImage=i\nVolume=/srv/x:/x\n",
            "b.container",
            "[Container]\nImage=i\nVolume=/srv/x:/x\n",
        ),
        ("file", "files/etc/x", "1", "files/etc/x", "2"),
    ];
    for (what, first, first_text, second, second_text) in table {
        let desired = World::of(&[("one", &[(first, first_text)]), ("two", &[(second, second_text)])]).desired();
        for module in ["one", "two"] {
            let held: Vec<String> = keys(&desired, module)
                .into_iter()
                .filter(|key| reasons(&desired, module, key).contains(&Reason::ClaimedTwice))
                .collect();
            assert_eq!(held.len(), 1, "{what}: {module} {:?}", desired.modules[module]);
            let told = clause(&desired, module, &held[0], Reason::ClaimedTwice);
            assert!(
                told.contains(&format!("one/{first}")) && told.contains(&format!("two/{second}")),
                "{what}: {told}"
            );
        }
    }
}

#[test]
fn what_does_not_meet() {
    let table: &[(&str, &str, &str)] = &[
        (
            "addresses",
            "[Container]\nImage=i\nPublishPort=127.0.0.1:80:80\n",
            "[Container]\nImage=i\nPublishPort=127.0.0.2:80:80\n",
        ),
        ("families", "[Container]\nImage=i\nPublishPort=80:80\n", "[Container]\nImage=i\nPublishPort=[::]:80:80\n"),
        (
            "prefix of a name",
            "[Container]\nImage=i\nVolume=/srv/x:/x\n",
            "[Container]\nImage=i\nVolume=/srv/x-old:/x\n",
        ),
        ("references", "[Container]\nImage=i\nVolume=/srv/x:/x:ro\n", "[Container]\nImage=i\nVolume=/srv/x:/x:ro\n"),
        ("parent", "[Container]\nImage=i\nVolume=/srv/x:/x\n", "[Container]\nImage=i\nVolume=/srv/x/y:/x\n"),
    ];
    for (what, first, second) in table {
        let desired = World::of(&[("one", &[("a.container", first)]), ("two", &[("b.container", second)])]).desired();
        assert_eq!(reasons(&desired, "one", "container/a"), [], "{what}");
        assert_eq!(reasons(&desired, "two", "container/b"), [], "{what}");
    }
}

#[test]
fn a_link_claims_its_own_place_and_not_its_targets() {
    let lines = "d /var/lib/shop 0755 root root -\nL /etc/shop - - - - /var/lib/shop\n";
    let link = PathState::Link { target: "/var/lib/shop".to_owned(), dangling: false, to_directory: true };
    let mut world = World::of(&[("shop", &[("tmpfiles.d/shop.conf", lines)])]).see("/etc/shop", link);
    if let Some(facts) = world.seen.get_mut(&path("/etc/shop")) {
        facts.real = path("/var/lib/shop");
    }
    let desired = world.desired();
    for key in ["directory//var/lib/shop", "link//etc/shop"] {
        assert_eq!(reasons(&desired, "shop", key), [], "{key}");
    }
}

#[test]
fn ports_meet_within_a_module_too() {
    let desired = World::of(&[(
        "one",
        &[("a.container", &container("PublishPort=80:80\n")), ("b.container", &container("PublishPort=80:81\n"))],
    )])
    .desired();
    assert_eq!(reasons(&desired, "one", "container/a"), [Reason::ClaimedTwice]);
    assert_eq!(reasons(&desired, "one", "container/b"), [Reason::ClaimedTwice]);
}

#[test]
fn a_directory_is_shared_where_one_owns_it_and_the_other_says_that_it_is_the_hosts() {
    let mount = container("Volume=/srv/media/films:/films\n");
    let own = "[paths]\nown = [\"/srv/media\"]\n";
    let shared = |toml: &str| {
        World::of(&[
            ("media", &[("player.container", &container("Volume=/srv/media:/m\n")), ("module.toml", own)]),
            ("films", &[("films.container", &mount), ("module.toml", toml)]),
        ])
        .desired()
    };
    let nested = shared("");
    assert_eq!(reasons(&nested, "films", "directory//srv/media/films"), [Reason::ClaimedTwice]);
    assert_eq!(reasons(&nested, "media", "directory//srv/media"), [Reason::ClaimedTwice]);
    let told = clause(&nested, "films", "directory//srv/media/films", Reason::ClaimedTwice);
    assert!(told.contains("films/films.container") && told.contains("media/player.container"), "{told}");
    let agreed = shared("[paths]\nhost = [\"/srv/media/films\"]\n");
    assert_eq!(keys(&agreed, "films"), ["container/films"]);
    assert_eq!(reasons(&agreed, "media", "directory//srv/media"), []);
    assert_eq!(
        super::needs(&agreed, "films", "container/films"),
        ["media directory//srv/media", "path /srv/media/films"]
    );
}

#[test]
fn who_has_it_in_the_ledger_keeps_it() {
    let mount = container("Volume=/srv/x:/x\nPublishPort=80:80\nContainerName=x\n");
    let world = World::of(&[("one", &[("a.container", &mount)]), ("two", &[("b.container", &mount)])]);
    let hash = super::hash(&world.desired(), "two", "container/b");
    let entry = Entry { object: Some("x".to_owned()), hash: Some(hash), ..Entry::default() };
    let world = world.own("two", "container/b", entry).own("two", "directory//srv/x", Entry::default());
    let desired = world.desired();
    assert_eq!(reasons(&desired, "two", "container/b"), []);
    assert_eq!(reasons(&desired, "two", "directory//srv/x"), []);
    assert_eq!(reasons(&desired, "one", "container/a"), [Reason::ClaimedTwice; 2], "name and port");
    assert_eq!(reasons(&desired, "one", "directory//srv/x"), [Reason::ClaimedTwice]);
}

#[test]
fn a_later_module_turns_no_directory_of_ours_into_a_reference() {
    let world = World::of(&[
        ("one", &[("a.container", &container("Volume=/srv/x:/x\n"))]),
        ("two", &[("b.container", &container("Volume=/srv/x/y:/y\n"))]),
    ]);
    assert_eq!(keys(&world.desired(), "one"), ["container/a"], "a parent of what another module owns");
    let desired = world.own("one", "directory//srv/x", Entry::default()).desired();
    assert_eq!(keys(&desired, "one"), ["directory//srv/x", "container/a"]);
    assert_eq!(reasons(&desired, "one", "directory//srv/x"), []);
    assert_eq!(reasons(&desired, "two", "directory//srv/x/y"), [Reason::ClaimedTwice]);
}

#[test]
fn what_a_vanished_module_runs_is_still_its_own() {
    let entry =
        Entry { unit: Some("x.service".to_owned()), object: Some("x".to_owned()), ran: true, ..Entry::default() };
    let world =
        World::of(&[("one", &[("x.container", &container("ContainerName=x\n"))])]).own("gone", "container/x", entry);
    let desired = world.desired();
    assert_eq!(reasons(&desired, "gone", "container/x"), [Reason::MassRemoval]);
    assert_eq!(reasons(&desired, "one", "container/x"), [Reason::ClaimedTwice; 2], "unit and name");
    assert!(clause(&desired, "gone", "container/x", Reason::MassRemoval).contains("goes on running"));
    assert!(desired.modules["gone"].resources.contains_key(&key("container/x")));
}
