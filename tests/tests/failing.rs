//! Promise 2: what failed is called so, with what came after it, and hides nothing that went well.

use holdfast_tests::{Host, MODULES};

#[test]
fn what_fails_is_told_and_what_is_mended_is_applied() {
    let host = Host::with_holdfast("tfailing");
    host.assign("failing");
    let report = host.apply(3);
    assert_eq!(report["result"], "partial");
    assert_eq!(
        report.done(),
        [
            "dies container/dies failed",
            "good container/good created",
            "sick container/after not-attempted",
            "sick container/sick failed",
        ]
    );
    let sick = report.sentence("sick", "container/sick");
    assert!(sick.contains("timeout") && sick.contains("journalctl -u sick"), "{sick}");
    assert_eq!(report.resource("sick", "container/after")["after"], "sick container/sick");

    host.holdfast("status", 3);
    host.holdfast("status good", 0);
    host.holdfast("is-applied sick", 1);
    host.holdfast("is-applied good", 0);
    let good = host.inspect("good", "{{.Id}}");

    // It stays failed until something changes, and is tried again by each apply.
    let again = host.apply(3);
    assert_eq!(again.count("failed"), 2, "{again}");
    assert_eq!(again.count("changed"), 0, "{again}");

    host.ok(&format!(
        "sed -i s/svc:2.1/svc:1.1/ {MODULES}/sick/sick.container && sed -i /^Exec/d {MODULES}/dies/dies.container"
    ));
    assert_eq!(host.apply(0).count("changed"), 3);
    assert_eq!(host.ok("curl -fsS localhost:18080/version"), "1.1\n");
    assert_eq!(good, host.inspect("good", "{{.Id}}"));
    host.holdfast("status", 0);
    assert_eq!(host.apply(0).count("changed"), 0);
    host.nothing_failed();
}
