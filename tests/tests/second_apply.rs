//! Promise 10: two applies in a row with no change of the input do nothing.

use std::collections::BTreeSet;

use holdfast_tests::{Host, INSTALLED, MODULES, assert_same, foreign_snapshot};

/// Everything that an apply may write.
const WRITTEN: [&str; 6] = [
    INSTALLED,
    "/etc/systemd/system",
    "/etc/tmpfiles.d",
    "/etc/shop",
    "/var/lib/shop",
    "/var/lib/holdfast/ledger.json",
];

const CONTAINERS: [&str; 5] = ["shop", "cache", "left", "right", "held"];

/// Which run of which unit this is, and how many jobs systemd ever had. Podman's service stays up on its own account.
const RUNS: &str = "systemctl show --property=NInstalledJobs
    systemctl show --property=Id,InvocationID,StateChangeTimestampMonotonic,NRestarts '*.service' '*.timer' '*.target' |
    grep -v '^$'";

#[test]
fn a_second_apply_does_nothing() {
    let host = Host::with_holdfast("tsecond");
    // Podman's API would stop when idle, and start again as a job of its own.
    host.write("/etc/containers/containers.conf.d/30-stay.conf", "[engine]\nservice_timeout = 0\n");
    host.ok("mkdir /var/lib/held && systemctl restart podman.socket && podman --remote version");
    host.assign("second-apply");

    let first = host.apply(6);
    assert_eq!(first.held(), ["held container/held needs-held", "held directory//var/lib/held found"]);
    assert_eq!(first.count("failed"), 0, "{first}");
    assert_eq!(host.ok("stat -c '%a %U' /var/lib/shop /var/lib/holdfast"), "750 daemon\n700 root\n");
    for container in ["shop", "cache", "left", "right"] {
        assert_eq!(host.inspect(container, "{{.State.Status}}"), "running", "{container}");
    }
    assert_eq!(host.inspect("shop", "{{index .Config.Labels \"tier\"}}"), "front");

    let files = || foreign_snapshot(&host, &CONTAINERS, &WRITTEN);
    let (files_before, runs_before) = (files(), host.ok(RUNS));

    let traced = host.sh("strace -f -qq -e trace=execve -e signal=none -o /run/exec holdfast apply --json");
    assert_eq!(traced.status, 6, "{traced:?}");
    let second = traced.json();
    assert_eq!(second["changed"], 0, "{second:#}");
    assert_eq!(second["unchanged"], first["applied"], "{second:#}");
    assert_eq!(second["notes"].as_array().map(Vec::len), Some(0), "{second:#}");

    assert_same(&files_before, &files(), "a file was written or a container replaced");
    assert_same(&runs_before, &host.ok(RUNS), "a unit job was made");
    let podman = host.sh("grep -E '\"(/usr)?/s?bin/podman\"' /run/exec");
    assert_eq!(podman.stdout, "", "a podman process was started");

    // Its whole account is: it began, it was allowed to, what is held, it ended.
    let id = format!("HOLDFAST_REPORT_ID={}", second["report"].as_str().unwrap());
    let entries = host.entries(&[&id]);
    let kinds: BTreeSet<&str> = entries.iter().map(|entry| entry["MESSAGE_ID"].as_str().unwrap()).collect();
    let known = [
        "c263dbbb53764e129b6bb2eef432a747", // started
        "2feaa77eb1c44b6591d6c181724833ab", // authorised
        "2e9b567e4714411c802508c02bcd4f7e", // held
        "ace3c2be6e334a8d9c0f4bf7e299f94d", // finished
    ];
    assert!(kinds.is_subset(&BTreeSet::from(known)), "{entries:#?}");
    // All of it as quiet as it can be: nothing is new.
    let loud = entries
        .iter()
        .filter(|entry| entry["PRIORITY"] != "6" && entry["MESSAGE_ID"] != "2feaa77eb1c44b6591d6c181724833ab");
    assert_eq!(loud.count(), 0, "{entries:#?}");

    // Input that is only newer, not other, and a reload of systemd change nothing either.
    host.ok(&format!("find {MODULES} -exec touch {{}} + && systemctl daemon-reload"));
    let runs_before = host.ok("podman ps --format '{{.ID}} {{.StartedAt}}'");
    assert_eq!(host.apply(6).count("changed"), 0);
    assert_eq!(runs_before, host.ok("podman ps --format '{{.ID}} {{.StartedAt}}'"));
    assert_same(&files_before, &files(), "a file was written or a container replaced");
}
