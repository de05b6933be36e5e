//! Promise 9: the agent killed at any instruction converges at the next apply, and says that it was interrupted.

use std::thread::sleep;
use std::time::Duration;

use holdfast_tests::{Host, MODULES};

/// A report that was cut off.
const INTERRUPTED: &str = "MESSAGE_ID=a10520a1d14e4cb09e14bbc16c129ac2";

#[test]
fn killed_at_any_moment_the_next_apply_makes_it_whole() {
    let host = Host::with_holdfast("tkilled");
    let mut killed = 0;
    for (round, after_ms) in [50, 150, 400, 800, 1500].into_iter().enumerate() {
        // The first time all is new, later each container is another one.
        host.assign("interrupted");
        host.ok(&format!("sed -i '/^Network/a Label=round={round}' {MODULES}/crowd/*.container"));
        let apply = host.spawn("exec holdfast apply");
        sleep(Duration::from_millis(after_ms));
        killed += usize::from(host.sh("systemctl kill --signal=KILL --kill-whom=main holdfastd").success());
        let apply = apply.wait_with_output().unwrap();
        // Whoever waited is told, unless it was done before.
        if !apply.status.success() {
            let told = String::from_utf8_lossy(&apply.stderr).into_owned();
            assert!(told.contains("the agent ended before the job"), "after {after_ms} ms: {told}");
        }

        let report = host.apply(0);
        assert_eq!((report.count("held"), report.count("failed")), (0, 0), "after {after_ms} ms: {report}");
        let label = "{{index .Config.Labels \"round\"}}";
        let labels = host.ok(&format!("podman container inspect --format '{label}' one-1 one-2 one-3"));
        assert_eq!(labels, format!("{round}\n").repeat(3), "after {after_ms} ms");
        assert_eq!(host.apply(0).count("changed"), 0, "after {after_ms} ms");
        host.nothing_failed();
    }
    let told = host.entries(&[INTERRUPTED]).len();
    assert!(told > 0 && told <= killed, "{told} of {killed}");
}

#[test]
fn a_power_cut_leaves_nothing_that_is_not_ours() {
    let host = Host::with_holdfast("tcut");
    host.assign("interrupted");
    for after_ms in [200, 800] {
        host.ok(&format!("sed -i '/^Network/a Label=after={after_ms}' {MODULES}/crowd/*.container"));
        let mut apply = host.spawn("holdfast apply");
        sleep(Duration::from_millis(after_ms));
        host.power_cut();
        apply.wait().unwrap();
        host.boot_again();
        let report = host.apply(0);
        assert_eq!((report.count("held"), report.count("failed")), (0, 0), "after {after_ms} ms: {report}");
        assert_eq!(host.apply(0).count("changed"), 0, "after {after_ms} ms");
        host.nothing_failed();
    }
}
