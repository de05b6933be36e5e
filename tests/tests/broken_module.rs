//! Promise 11: one broken module never stops, stops working, or hides another.

use holdfast_tests::{Host, INSTALLED, MODULES, foreign_snapshot};

#[test]
fn a_broken_module_breaks_nothing_else() {
    let host = Host::with_holdfast("tbroken");
    host.assign("broken-module/before");
    host.apply(0);
    let containers = || foreign_snapshot(&host, &["web", "page", "cache"], &[]);
    let before = containers();

    // One file of web no longer parses, although another of its files asks for a change; future has a key that this
    // Podman does not know; fresh is new and good.
    host.assign("broken-module/after");
    let report = host.apply(6);
    assert_eq!(report.done(), ["fresh container/fresh created"]);
    assert_eq!(
        report.held(),
        [
            "future container/future unreadable",
            "future container/plain unreadable",
            "web container/page unreadable",
            "web container/tpl unreadable",
            "web container/web unreadable",
        ]
    );
    let sentence = report.sentence("web", "container/tpl");
    assert!(sentence.contains("tpl.container") && sentence.contains('3'), "file and line: {sentence}");
    let sentence = report.sentence("future", "container/future");
    assert!(sentence.contains("future.container") && sentence.contains("Memory"), "file and key: {sentence}");

    // What the broken module ran goes on running, from a unit that is still loaded.
    assert_eq!(before, containers());
    for unit in ["web", "page", "cache", "fresh"] {
        let state = ["LoadState", "ActiveState", "NeedDaemonReload"].map(|name| host.property(unit, name));
        assert_eq!(state, ["loaded", "active", "no"], "{unit}");
    }
    host.holdfast("is-applied fresh", 0);
    host.holdfast("is-applied cache", 0);
    host.holdfast("is-applied web", 6);
    let status = host.holdfast("status", 6).stdout;
    assert!(status.contains("unreadable"), "{status}");

    // Mended, it is applied again.
    host.ok(&format!("rm {MODULES}/web/tpl.container && sed -i /Memory/d {MODULES}/future/future.container"));
    let report = host.apply(0);
    assert_eq!(
        report.done(),
        ["future container/future created", "future container/plain created", "web container/web recreated"]
    );
    host.nothing_failed();
}

#[test]
fn rubbish_in_the_installed_folder_is_told() {
    let host = Host::with_holdfast("trubbish");
    host.assign("broken-module/before");
    host.apply(0);
    let before = foreign_snapshot(&host, &["web", "page", "cache"], &[]);

    // A hand edit: Podman's generator now drops every unit of the folder.
    host.write(&format!("{INSTALLED}/web/x.container"), "oops\n");
    host.ok("systemctl daemon-reload");
    assert_eq!(host.property("web", "LoadState"), "not-found");

    let status = host.holdfast("status", 6).stdout;
    assert!(status.contains(&format!("{INSTALLED}/web/x.container")), "the file is named: {status}");
    host.holdfast("is-applied web", 6);
    host.holdfast("is-applied cache", 0);

    // No restart is tried: there is no unit to stop them by.
    let report = host.apply(6);
    assert_eq!(report.held(), ["web container/page unreadable", "web container/web unreadable"]);
    assert_eq!(before, foreign_snapshot(&host, &["web", "page", "cache"], &[]));

    host.ok(&format!("rm {INSTALLED}/web/x.container && systemctl daemon-reload"));
    host.apply(0);
    assert_eq!(before, foreign_snapshot(&host, &["web", "page", "cache"], &[]));
}
