//! Outage 3 and promise 9: a change of any input reaches what runs, or is held; it is never silent, and never a data loss.

use holdfast_tests::{Host, MODULES};

#[test]
fn a_change_is_deployed_or_held() {
    let host = Host::with_holdfast("tchanges");
    host.assign("changes/first");
    host.apply(0);
    let id = |name: &str| host.inspect(name, "{{.Id}}");
    let [moved, rider, same] = ["moved", "rider", "same"].map(id);
    host.ok("sed -i s/theirs/mine/ /etc/edited-here.conf /etc/edited-twice.conf");
    let network = host.ok("podman network inspect systemd-lane");

    host.assign("changes/second");
    let report = host.apply(6);
    assert_eq!(
        report.done(),
        [
            "dropin container/dropin recreated",
            "envfile container/envfile recreated",
            "hostfile container/hostfile recreated",
            "hostfile file//etc/hostfile.conf changed",
            "mounted container/mounted recreated",
            "moved directory//var/lib/moved-new created",
            "text container/text recreated",
        ]
    );
    for (container, variable) in [("text", "A=2"), ("dropin", "A=2"), ("envfile", "LEVEL=2")] {
        let env = host.inspect(container, "{{.Config.Env}}");
        assert!(env.contains(variable), "{container}: {env}");
    }
    assert_eq!(mounted(&host, "mounted", "/etc/web.conf"), "answer = 2\n");
    assert_eq!(mounted(&host, "hostfile", "/etc/hostfile.conf"), "answer = 2\n");
    assert_eq!(same, id("same"));

    // What the operator edited stays as it is; so does what the module changed as well.
    assert_eq!(host.ok("cat /etc/edited-here.conf /etc/edited-twice.conf"), "mine = 1\nmine = 1\n");

    // A new path that is empty while the old one has data, and options that Podman would ignore in silence.
    assert_eq!(
        report.held(),
        [
            "differs container/rider needs-held",
            "differs network/lane volume-differs",
            "differs volume/box volume-differs",
            "edited file//etc/edited-twice.conf changed-locally",
            "moved container/moved mount-moved",
        ]
    );
    let sentence = report.sentence("moved", "container/moved");
    assert!(sentence.contains("/var/lib/moved-old") && sentence.contains("/var/lib/moved-new"), "{sentence}");
    assert_eq!([&moved, &rider], [&id("moved"), &id("rider")]);
    assert_eq!(network, host.ok("podman network inspect systemd-lane"));

    assert_eq!(
        report.notes(),
        ["edited file//etc/edited-here.conf overridden", "moved directory//var/lib/moved-old left-behind"]
    );

    // The change can be taken back: what is in use is still ours.
    host.ok(&format!("sed -i s/moved-new/moved-old/ {MODULES}/moved/moved.container"));
    assert_eq!(host.apply_with("moved", 0).done(), ["moved directory//var/lib/moved-new removed"]);
    assert_eq!(moved, id("moved"));
    host.ok(&format!("sed -i s/moved-old/moved-new/ {MODULES}/moved/moved.container"));

    // The operator moves the data: now it may follow, with the image that it had.
    let image = host.inspect("moved", "{{.Image}}");
    host.ok("podman tag localhost/app:1.27.4 localhost/app:1.27.3; mkdir -p /var/lib/moved-new
        cp -a /var/lib/moved-old/. /var/lib/moved-new/");
    let report = host.apply_with("moved", 0);
    assert_eq!(
        report.done(),
        [
            "moved container/moved recreated",
            "moved directory//var/lib/moved-new changed",
            "moved directory//var/lib/moved-old removed",
        ]
    );
    assert_eq!(host.inspect("moved", "{{(index .Mounts 0).Source}}"), "/var/lib/moved-new");
    assert_eq!(host.inspect("moved", "{{.Image}}"), image, "the moved tag came along");
    assert_eq!(host.ok("cat /var/lib/moved-old/version"), "1.27.3\n");
    assert_eq!(host.apply_with("moved", 0).count("changed"), 0);
    host.nothing_failed();
}

/// A file as the container sees it.
fn mounted(host: &Host, container: &str, path: &str) -> String {
    host.ok(&format!("cat /proc/$(podman inspect {container} --format '{{{{.State.Pid}}}}')/root{path}"))
}
