//! Promises 1 to 5: what was found is not touched, and nobody can miss that it was not.
//!
//! A host runs its old proxy. Directories are left over from an earlier attempt at the new one. The modules are
//! applied: most of it is made, all of the new proxy is held, and every surface says so.

use std::thread::sleep;
use std::time::Duration;

use holdfast_tests::{Host, assert_same, foreign_snapshot, read_all};

/// What the host ran before holdfast came: a proxy and a mailer started by hand, and two units of its own.
const BEFORE: &str = r#"
    mkdir -p /var/lib/route-proxy/{ca,conf,state} /srv/photos /etc/oldproxy
    echo 'left over' >/var/lib/route-proxy/ca/root.pem
    echo 'half done' >/var/lib/route-proxy/state/acme.json
    chmod 600 /var/lib/route-proxy/*/*; chown -R 1000:1000 /var/lib/route-proxy
    echo one >/srv/photos/1.jpg
    podman run -d --name oldproxy --restart always -v /etc/oldproxy:/conf:ro --tmpfs /data \
        -p 18080:8080 localhost/app:1.27.3
    printf '[Service]\nExecStart=/usr/bin/sleep infinity\n' >/etc/systemd/system/mailer.service
    printf '[Container]\nImage=localhost/idle:1\nContainerName=counter\nNetwork=none\n' >/etc/containers/systemd/counter.container
    systemctl daemon-reload && systemctl start mailer counter
"#;

const FOREIGN_PATHS: [&str; 5] = [
    "/var/lib/route-proxy",
    "/srv/photos",
    "/etc/oldproxy",
    "/etc/systemd/system/mailer.service",
    "/etc/containers/systemd/counter.container",
];

/// The entries that say that a resource is held.
const HELD: &str = "MESSAGE_ID=2e9b567e4714411c802508c02bcd4f7e";

/// Asks the old proxy ten times a second until /run/enough is there, and prints a line for each time it does not answer.
const WATCH_OLD_PROXY: &str = "until test -e /run/enough; do
    curl -fsS -m 2 localhost:18080 >/dev/null || date +down:%T.%N; sleep 0.1; done; echo watched";

#[test]
fn a_hold_is_seen_everywhere_and_what_was_found_goes_on() {
    let host = Host::with_holdfast("tfound");
    host.ok(BEFORE);
    host.assign("founding-outage");
    host.wait_for(10, "curl -fsS localhost:18080");
    let mut watch = host.spawn(WATCH_OLD_PROXY);
    let foreign = || foreign_snapshot(&host, &["oldproxy", "counter"], &FOREIGN_PATHS);
    let before = foreign();
    let mailer = host.property("mailer", "InvocationID");

    // The apply does not end with 0, and says which module is not there.
    let text = host.holdfast("apply", 6).stdout;
    let sentence = text.lines().next().unwrap();
    assert_eq!(
        sentence,
        "applied 10 of 19 resource(s) (10 changed), 9 held for untaken modules (route-proxy: 6, photos: 2, mail: 1); \
         9 newly held"
    );
    assert_eq!(text, host.ok("holdfast report"), "the journal has what apply printed");

    let report = host.apply(6);
    assert_eq!(
        report.held(),
        [
            "mail container/mailer found",
            "photos container/photos needs-held",
            "photos directory//srv/photos found",
            "route-proxy container/route-proxy port-in-use",
            "route-proxy container/route-proxy-ca needs-held",
            "route-proxy container/route-proxy-log needs-held",
            "route-proxy directory//var/lib/route-proxy/ca found",
            "route-proxy directory//var/lib/route-proxy/conf found",
            "route-proxy directory//var/lib/route-proxy/state found",
        ]
    );
    assert_eq!(report["result"], "held");
    let ca = report.sentence("route-proxy", "container/route-proxy-ca");
    assert_eq!(
        ca,
        "container/route-proxy-ca is held: it would mount /var/lib/route-proxy/ca, found on this host; \
         not run until route-proxy is taken"
    );
    let proxy = report.sentence("route-proxy", "container/route-proxy");
    assert!(proxy.contains("container oldproxy"), "{proxy}");

    // The trap of the founding outage.
    let trap = host.sh("holdfast apply && echo stop-it");
    assert!(!trap.stdout.contains("stop-it"), "{trap:?}");
    let trap = host.sh("holdfast is-applied route-proxy && echo stop-it");
    assert!(!trap.stdout.contains("stop-it"), "{trap:?}");

    // The journal: every hold by module, and under the unit that it concerns.
    let id = format!("HOLDFAST_REPORT_ID={}", report.id());
    let again = host.look(&format!("report {}", report.id()));
    assert_eq!(again["complete"], true);
    for (key, value) in report.as_object().unwrap() {
        assert_eq!(&again[key], value, "{key}: rebuilt from the journal, it is the same report");
    }
    let held = |module: &str| host.entries(&[&id, &format!("HELD_MODULE={module}"), HELD]);
    assert_eq!(["route-proxy", "photos", "mail"].map(|module| held(module).len()), [6, 2, 1]);
    for entry in held("route-proxy") {
        for field in ["HELD_MODULE", "REASON", "CAUSE", "CAUSE_MODULE", "HOLDFAST_RESOURCE", "HOLDFAST_SINCE"] {
            assert!(entry[field].is_string(), "{field} is missing: {entry}");
        }
    }
    let of_unit = host.ok("journalctl -o cat -u route-proxy-ca.service");
    assert!(of_unit.contains(ca), "{of_unit}");
    let status = host.ok("systemctl status --no-pager -n 20 mailer.service");
    assert!(status.contains("active (running)"), "{status}");
    assert!(status.contains("container/mailer is held"), "{status}");

    // The command: status, holds, the gate.
    let status = host.holdfast("status", 6).stdout;
    assert!(status.starts_with("held: 10 of 19 resource(s) applied, 9 held, 0 failed"), "{status}");
    assert!(status.contains("route-proxy") && status.contains("0 of 3 containers run"), "{status}");
    assert!(host.holdfast("holds route-proxy", 0).stdout.contains("route-proxy: 6 held"));
    assert_eq!(host.held(), report.held());
    host.holdfast("is-applied route-proxy", 6);
    host.holdfast("is-applied photos", 6);
    host.holdfast("is-applied", 6);
    host.holdfast("is-applied notes", 0);
    host.holdfast("is-applied board", 0);

    // All the while the old proxy answered, and nothing foreign was touched.
    sleep(Duration::from_millis(300));
    host.ok("touch /run/enough");
    assert_eq!(read_all(watch.stdout.as_mut().unwrap()), "watched\n");
    watch.wait().unwrap();
    assert_same(&before, &foreign(), "something foreign was touched");
    assert_eq!(mailer, host.property("mailer", "InvocationID"));
    host.nothing_failed();
}
