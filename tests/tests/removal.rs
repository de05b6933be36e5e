//! Promise 12: what is gone from a module goes from the host, but for its data; a directory that vanished removes nothing.

use holdfast_tests::{Host, MODULES, assert_same, foreign_snapshot};

#[test]
fn removing_from_a_module_removes_from_the_host_but_no_data() {
    let host = Host::with_holdfast("tremoval");
    host.assign("removal/first");
    host.apply(0);
    assert_eq!(host.ok("podman exec one cat /data/version"), "1.27.3\n");
    let side = foreign_snapshot(&host, &["side"], &[]);
    let two = foreign_snapshot(&host, &["two"], &[]);

    files_are_removed(&host);
    assert_eq!(two, foreign_snapshot(&host, &["two"], &[]));
    a_file_is_renamed(&host);
    a_directory_vanishes(&host);
    what_is_held_keeps_what_it_uses(&host);
    assert_eq!(side, foreign_snapshot(&host, &["side"], &[]));
}

fn files_are_removed(host: &Host) {
    host.assign("removal/second");
    let report = host.apply_with("shop", 0);
    assert_eq!(
        report.done(),
        [
            "shop container/one removed",
            "shop file//etc/shop.conf removed",
            "shop unit/sweep.service removed",
            "shop unit/sweep.timer removed",
            "shop volume/one-data removed",
        ]
    );
    assert_eq!(report.count("removed"), 5);
    assert_eq!(report.count("total"), 1, "what goes is counted apart: {report}");
    for unit in ["one.service", "one-data-volume.service", "sweep.service", "sweep.timer"] {
        assert_eq!(host.property(unit, "LoadState"), "not-found", "{unit}");
    }
    assert_eq!(host.sh("podman container exists one").status, 1);
    host.fails("ls /etc/shop.conf /etc/systemd/system/sweep.timer");
    host.fails("ls /etc/systemd/system/timers.target.wants/sweep.timer");

    // The data stays, and is named.
    assert!(report.notes().contains(&"shop volume/one-data left-behind".to_owned()), "{report}");
    let note = &report["notes"][0]["sentence"];
    assert!(note.as_str().unwrap().contains("systemd-one-data"), "{note}");
    assert_eq!(host.ok("cat /var/lib/containers/storage/volumes/systemd-one-data/_data/version"), "1.27.3\n");

    let second = host.apply(0);
    assert_eq!(second.count("changed") + second.count("removed"), 0, "{second}");
    host.nothing_failed();
}

/// The new file's unit must not race the old one's stop: both have one container name.
fn a_file_is_renamed(host: &Host) {
    host.assign("removal/third");
    let report = host.apply(0);
    assert_eq!(report.done(), ["shop container/two removed", "shop container/zwei created"]);
    assert_eq!(host.property("two", "LoadState"), "not-found");
    assert_eq!(host.property("zwei", "ActiveState"), "active");
    assert_eq!(
        host.inspect("two", "{{.State.Status}} {{index .Config.Labels \"PODMAN_SYSTEMD_UNIT\"}}"),
        "running zwei.service"
    );
    assert_eq!(host.apply(0).count("changed"), 0);
    host.nothing_failed();
}

fn a_directory_vanishes(host: &Host) {
    host.ok(&format!("mv {MODULES}/side /root/side"));
    let report = host.apply(6);
    assert_eq!(report.held(), ["side container/side mass-removal"]);
    assert_eq!(report.count("removed"), 0);
    let state = ["LoadState", "ActiveState"].map(|name| host.property("side", name));
    assert_eq!(state, ["loaded", "active"]);
    host.holdfast("is-applied side", 6);

    host.ok(&format!("mv /root/side {MODULES}/side"));
    let report = host.apply(0);
    assert_eq!(report.count("changed"), 0, "{report}");
    assert_eq!(report["ended"][0]["reason"], "mass-removal", "{report}");
}

/// A stop of the volume's unit would stop the container, which requires it as it was deployed.
fn what_is_held_keeps_what_it_uses(host: &Host) {
    let before = foreign_snapshot(host, &["kept"], &[]);
    host.assign("removal/fourth");
    let report = host.apply(6);
    assert_eq!(report.held(), ["kept container/kept missing-secret"]);
    assert_eq!(report.notes(), ["kept volume/kept-data left-behind"]);
    assert_eq!(report.count("removed"), 0);
    assert_same(&before, &foreign_snapshot(host, &["kept"], &[]), "what is held goes on running");
    assert_eq!(host.property("kept-data-volume", "ActiveState"), "active");

    host.ok("printf secret | podman secret create kept-password -");
    assert_eq!(host.apply(0).done(), ["kept container/kept recreated", "kept volume/kept-data removed"]);
    assert_eq!(host.ok("cat /var/lib/containers/storage/volumes/systemd-kept-data/_data/version"), "1.27.3\n");
    host.nothing_failed();
}
