//! The agent on its socket, asked with systemd's own tool, by root alone.

use holdfast_tests::{Host, workspace};
use serde_json::{Value, json};

const SOCKET: &str = "/run/holdfast/io.holdfast.Agent";
const INTERFACE: &str = "io.holdfast.Agent";
/// The first entry of a report.
const STARTED: &str = "MESSAGE_ID=c263dbbb53764e129b6bb2eef432a747";

/// A container that runs, and a directory that is held.
const WEB: &str = "\
[Container]
Image=localhost:5000/svc:1.0
ContainerName=web
Volume=/var/lib/web:/data

[Install]
WantedBy=multi-user.target
";

const OTHER: &str = "\
[Container]
Image=localhost:5000/svc:1.0
ContainerName=other

[Install]
WantedBy=multi-user.target
";

fn prepared(name: &str) -> Host {
    let host = Host::with_holdfast(name);
    host.ok("systemctl start holdfastd.socket");
    host.module("web/web.container", WEB);
    host.module("web/tmpfiles.d/web.conf", "d /var/lib/web 0750 root root -\n");
    host.module("other/other.container", OTHER);
    for module in ["web", "other"] {
        host.module(&format!("{module}/module.toml"), "[health]\nwatch = \"1s\"\n");
    }
    host
}

/// All replies of a call, in their order.
#[track_caller]
fn replies(host: &Host, method: &str, parameters: &Value) -> Vec<Value> {
    let done = host.sh_for(
        300,
        &format!("varlinkctl --more --json=short call {SOCKET} {INTERFACE}.{method} '{parameters}' | cat"),
    );
    let replies: Vec<Value> =
        done.stdout.lines().map(|line| serde_json::from_str(line.trim_start_matches('\u{1e}')).unwrap()).collect();
    assert!(!replies.is_empty(), "{method}: {done:?}");
    replies
}

#[track_caller]
fn call(host: &Host, method: &str, parameters: &Value) -> Value {
    let text = host.ok(&format!("varlinkctl --json=short call {SOCKET} {INTERFACE}.{method} '{parameters}'"));
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{method}: {error}\n{text}"))
}

/// A call that must be refused with this error.
#[track_caller]
fn refused(host: &Host, method: &str, parameters: &Value, error: &str) {
    let done = host.fails(&format!("varlinkctl --json=short call {SOCKET} {INTERFACE}.{method} '{parameters}'"));
    let said = format!("{}{}", done.stdout, done.stderr);
    assert!(said.contains(error), "{method} {parameters}: {said}");
}

#[test]
fn systemds_own_tool_reads_the_interface() {
    let host = prepared("vlinfo");
    let info: Value = serde_json::from_str(&host.ok(&format!("varlinkctl --json=short info {SOCKET}"))).unwrap();
    assert_eq!(info["product"], "holdfastd");
    assert_eq!(info["interfaces"], json!([INTERFACE, "org.varlink.service"]));
    let file = std::fs::read_to_string(workspace().join("varlink/io.holdfast.Agent.varlink")).unwrap();
    let known = host.ok(&format!("varlinkctl introspect {SOCKET} {INTERFACE}"));
    for line in file.lines().filter(|line| line.starts_with("method ") || line.starts_with("error ")) {
        let (word, _) = line.split_once(['(']).unwrap();
        assert!(known.contains(&format!("{}(", word.trim_end())), "{word}\n{known}");
    }
    for interface in [INTERFACE, "org.varlink.service"] {
        let text = std::fs::read(workspace().join(format!("varlink/{interface}.varlink"))).unwrap();
        host.write("/run/interface.varlink", text);
        host.ok("varlinkctl validate-idl /run/interface.varlink");
        host.ok(&format!("varlinkctl introspect {SOCKET} {interface}"));
    }
}

#[test]
fn root_plans_applies_and_reads_reports() {
    let host = prepared("vlapply");
    // Somebody else's.
    host.ok("mkdir /var/lib/web");

    let plan = call(&host, "Plan", &json!({ "modules": [] }));
    let changes: Vec<&str> =
        plan["changes"].as_array().unwrap().iter().map(|row| row["resource"].as_str().unwrap()).collect();
    assert!(changes.contains(&"container/other"), "{plan:#}");
    assert_eq!(plan["last_report"], Value::Null);
    let holds = call(&host, "ListHolds", &json!({}));
    assert_eq!((&holds["holds"], &holds["observed_usec"]), (&plan["holds"], &plan["observed_usec"]));
    assert_eq!(call(&host, "ListModules", &json!({}))["modules"], plan["modules"]);
    let found = call(&host, "ListHolds", &json!({ "module": "web", "reason": "found" }));
    assert_eq!(found["holds"][0]["resource"], "directory//var/lib/web", "{holds:#}");
    let other = call(&host, "Plan", &json!({ "modules": ["other"] }));
    assert_eq!(other["holds"], json!([]));

    let told = replies(&host, "Apply", &json!({ "modules": [] }));
    let (last, before) = told.split_last().unwrap();
    assert_eq!((&last["job"]["state"], &last["job"]["result"]), (&json!("finished"), &json!("held")), "{last:#}");
    let steps: Vec<&Value> = before.iter().map(|reply| &reply["ended"]).filter(|ended| !ended.is_null()).collect();
    assert!(!steps.is_empty() && steps.iter().all(|step| step["result"] == "done"), "{steps:#?}");
    assert!(steps.iter().enumerate().all(|(place, step)| step["seq"] == place), "{steps:#?}");
    assert_eq!(host.inspect("other", "{{.State.Status}}"), "running");

    let id = last["report"]["report"].as_str().unwrap();
    assert_eq!(last["job"]["report_id"], id);
    let report = call(&host, "GetReport", &json!({ "report_id": &id[..8] }));
    assert_eq!((&report["report"], &report["complete"]), (&last["report"], &json!(true)));
    assert_eq!(call(&host, "GetReport", &json!({ "report_id": "" })), report);
    let reports = call(&host, "ListReports", &json!({ "max": 1 }));
    assert_eq!(
        (&reports["reports"][0]["report"], &reports["reports"][0]["held"]),
        (&json!(id), &last["report"]["held"])
    );
    let modules = call(&host, "ListModules", &json!({}));
    assert_eq!((&modules["last_report"], modules["last_apply_usec"].is_u64()), (&json!(id), true));
    // The journal knows who asked.
    let start = host.entries(&[&format!("HOLDFAST_REPORT_ID={id}"), STARTED]);
    assert!(start[0]["HOLDFAST_COMMAND_LINE"].as_str().unwrap_or_default().contains("varlinkctl"), "{:#}", start[0]);

    // Without "more": one reply, at the end. Nothing is left to do.
    let again = call(&host, "Apply", &json!({ "modules": ["other"], "wait": true }));
    assert_eq!((&again["job"]["result"], &again["report"]["changed"]), (&json!("done"), &json!(0)));

    call(&host, "Hold", &json!({ "module": "other", "note": "we look at it" }));
    let held = call(&host, "ListHolds", &json!({ "module": "other" }));
    assert_eq!(held["holds"][0]["reason"], "operator", "{held:#}");
    call(&host, "Unhold", &json!({ "module": "other" }));
    assert_eq!(call(&host, "ListHolds", &json!({ "module": "other" }))["holds"], json!([]));

    refused(&host, "Plan", &json!({ "modules": ["nope"] }), "io.holdfast.Agent.NoSuchModule");
    refused(&host, "Apply", &json!({ "modules": [], "wiat": true }), "org.varlink.service.InvalidParameter");
    refused(&host, "GetReport", &json!({ "report_id": "ffffffff" }), "io.holdfast.Agent.NoSuchReport");
    refused(&host, "CancelJob", &json!({ "id": 4711 }), "io.holdfast.Agent.NoSuchJob");
    refused(&host, "Rollback", &json!({}), "org.varlink.service.MethodNotFound");
}

#[test]
fn a_caller_that_is_gone_loses_nothing_and_others_get_no_answer() {
    let host = prepared("vlgone");
    let denied = host.sh_as("op", &format!("varlinkctl info {SOCKET}"));
    assert!(denied.stderr.contains("Permission denied"), "{denied:?}");

    // Killed as soon as the job is there.
    host.ok(&format!(
        "varlinkctl --more --json=short call {SOCKET} {INTERFACE}.Apply '{{\"modules\":[]}}' >/run/told & caller=$!
         until grep -q '\"state\"' /run/told; do sleep 0.05; done
         kill -KILL $caller"
    ));
    let told = replies(&host, "WaitJob", &json!({ "id": 1 }));
    let last = told.last().unwrap();
    assert_eq!(last["job"]["result"], "done", "{last:#}");
    for container in ["web", "other"] {
        assert_eq!(host.inspect(container, "{{.State.Status}}"), "running", "{container}");
    }
    assert_eq!(call(&host, "GetReport", &json!({ "report_id": "" }))["report"], last["report"]);
}
