//! What a no-op apply costs, counted and not timed: no reload, no child, no container inspected, no file written, and in
//! the journal nothing but its beginning and end and what is held.

use std::collections::{BTreeMap, BTreeSet};

use holdfast_tests::{Host, MODULES, workload};

/// All that a program can do to files. Sockets are none of these.
const CALLS: &str = "execve,/^open.*,creat,/^rename.*,/^unlink.*,/^mkdir.*,rmdir,/^mknod.*,/^symlink.*,/^link.*,\
    truncate,/chmod.*,/chown.*,/setxattr,/removexattr,/^utime.*";

/// Ends the log of requests before the apply that is looked at: a question that holdfast never asks.
const MARK: &str = "/v5.0.0/libpod/_ping";

#[test]
fn a_no_op_apply_writes_starts_and_inspects_nothing() {
    let host = Host::with_holdfast("bcount");
    host.write("/etc/holdfast/holdfast.toml", "[health]\nwatch = \"1s\"\n");
    let modules = std::env::temp_dir().join(host.name());
    let counts = workload::write(&modules, 35).unwrap();
    host.push_tree(&modules, MODULES);
    std::fs::remove_dir_all(&modules).unwrap();
    // One hold, so that a report with holds is seen to be as cheap.
    host.ok("mkdir /var/lib/found");
    host.module("held/tmpfiles.d/held.conf", "d /var/lib/found 0755 root root -\n");
    let first = host.apply(6);
    assert_eq!((first.count("changed"), first.count("held")), (35, 1), "{first}");
    assert_eq!(host.ok("podman ps -q | wc -l").trim(), counts.containers.to_string());
    host.apply(6);

    let reloads = "systemctl show --property=UnitsLoadTimestampMonotonic";
    let reloaded = host.ok(reloads);
    host.ok(&format!("curl -fsS --unix-socket /run/podman/podman.sock http://podman{MARK}"));
    // What the agent does for it, in all its threads.
    let agent = host.property("holdfastd", "MainPID");
    let mut tracer =
        host.spawn(&format!("exec strace -f -qq -e signal=none -e trace={CALLS} -o /run/calls -p {agent}"));
    host.wait_for(10, &format!("! grep -q '^TracerPid:[[:space:]]0$' /proc/{agent}/task/*/status"));
    let applied = host.sh("holdfast apply --json; status=$?; pkill -INT -x strace; exit $status");
    tracer.wait().unwrap();
    assert_eq!(applied.status, 6, "{applied:?}");
    let report = applied.json();
    assert_eq!(report["changed"], 0, "{report:#}");

    assert_eq!(host.ok(reloads), reloaded, "systemd was reloaded");
    assert_eq!(requests(&host), BTreeMap::from(LISTS.map(|list| (format!("GET {list}"), 1))));

    let calls = host.read("/run/calls");
    // A call that another thread interrupts is traced in two lines; what it opens, and how, stands in the first.
    let harmless = |call: &str| ["\"lock\"", "O_RDONLY", "O_PATH", " resumed>"].iter().any(|word| call.contains(word));
    let acts: BTreeSet<&str> = calls.lines().filter(|call| !harmless(call)).collect();
    assert!(acts.is_empty(), "{acts:#?}");
    assert!(calls.contains("O_RDONLY"), "nothing was traced");

    let id = format!("HOLDFAST_REPORT_ID={}", report["report"].as_str().unwrap());
    let entries = host.entries(&[&id]);
    let messages: Vec<&str> = entries.iter().filter_map(|entry| entry["MESSAGE"].as_str()).collect();
    assert_eq!(entries.len(), 3 + 1, "beside one hold: started, authorised, finished; not {messages:#?}");
    let since = format!("--since=@{}", entries[0]["__REALTIME_TIMESTAMP"].as_str().unwrap().split_at(10).0);
    let all = host.entries(&[&since, &format!("_PID={agent}")]);
    let strangers: Vec<_> = all.iter().filter(|entry| entry.get("HOLDFAST_REPORT_ID").is_none()).collect();
    assert!(strangers.is_empty(), "{strangers:#?}");
}

/// What Podman is asked for, once each.
const LISTS: [&str; 5] = [
    "/v4.3.1/libpod/containers/json?all=true",
    "/v4.3.1/libpod/networks/json",
    "/v4.3.1/libpod/pods/json",
    "/v4.3.1/libpod/secrets/json",
    "/v4.3.1/libpod/volumes/json",
];

/// How often Podman was asked for what since [`MARK`], by the log of its service.
fn requests(host: &Host) -> BTreeMap<String, u32> {
    let log = host.journal(&["-u", "podman.service", "--output=cat"]);
    let all: Vec<&str> = log.lines().filter_map(|line| line.split('"').nth(1)?.strip_suffix(" HTTP/1.1")).collect();
    let mark = all.iter().rposition(|request| request.ends_with(MARK)).expect("the mark is in the log");
    let mut requests = BTreeMap::new();
    for request in &all[mark + 1..] {
        *requests.entry((*request).to_owned()).or_default() += 1;
    }
    requests
}
