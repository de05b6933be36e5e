//! Promise 13: what was deployed is what starts again, without the agent.

use holdfast_tests::Host;

/// Which containers run, of which image.
const RUNNING: &str = "podman ps --format '{{.Names}} {{.ImageID}}' | sort";

#[test]
fn after_a_reboot_the_same_runs_and_the_same_is_held() {
    let host = Host::with_holdfast("treboot");
    host.start_registry();
    host.ok("mkdir /var/lib/held");
    host.assign("reboot");
    let report = host.apply(6);
    assert_eq!(
        report.held(),
        [
            "held container/beside needs-held",
            "held container/held needs-held",
            "held directory//var/lib/held found",
            "held directory//var/lib/held/deeper needs-held",
        ]
    );
    assert_eq!(report.count("failed"), 0, "{report}");
    assert_eq!(report.notes(), ["store container/spare not-started"]);
    host.wait_for(10, "curl -fsS localhost:18080/version");
    let running = host.ok(RUNNING);
    for name in ["web", "store", "left", "right"] {
        assert!(running.contains(name), "{name}: {running}");
    }

    // The agent is out of the way, and so is the registry.
    host.ok("systemctl mask holdfast-apply.service holdfast-apply.timer holdfastd.service holdfastd.socket");
    host.reboot();

    host.wait_for(20, "curl -fsS localhost:18080/version");
    assert_eq!(running, host.ok(RUNNING));
    assert_eq!(host.property("rounds.timer", "ActiveState"), "active");
    assert_eq!(host.property("spare", "ActiveState"), "inactive");
    host.wait_for(10, "test -e /run/rounds");

    host.ok("systemctl unmask holdfast-apply.service holdfast-apply.timer holdfastd.service holdfastd.socket && systemctl start holdfastd.socket");
    assert_eq!(report.held(), host.held());
    let counts = &host.look("status")["counts"];
    assert_eq!(counts["applied"], report["applied"], "{counts}");
    host.nothing_failed();

    // The first apply after it has nothing to do.
    assert_eq!(host.apply(6).count("changed"), 0);
    assert_eq!(running, host.ok(RUNNING));
}
