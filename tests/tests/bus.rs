//! The agent on the bus: the contract, its signals in their order, activation, and leaving.

use std::collections::{BTreeMap, BTreeSet};

use holdfast_tests::{Host, MODULES};
use serde_json::Value;
use zbus_xml::{Interface, Node};

const MANAGER: &str = "io.holdfast.Agent1 /io/holdfast/Agent1 io.holdfast.Agent1.Manager";

#[test]
fn what_is_served_is_the_contract() {
    let host = Host::with_holdfast("buswords");
    host.ok("mkdir /var/lib/web");
    host.module(
        "web/web.container",
        "[Container]\nImage=localhost:5000/svc:1.0\nNetwork=none\nVolume=/var/lib/web:/data\n[Install]\nWantedBy=multi-user.target\n",
    );
    host.apply(6);
    let contract = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../dbus/io.holdfast.Agent1.xml"));
    let contract = contract.unwrap();
    let contract = Node::try_from(contract.as_str()).unwrap();
    let paths = [
        ("io.holdfast.Agent1.Manager", "/io/holdfast/Agent1"),
        ("io.holdfast.Agent1.Module", "/io/holdfast/Agent1/module/web"),
        ("io.holdfast.Agent1.Hold", "/io/holdfast/Agent1/hold/web/directory_2f_2fvar_2flib_2fweb"),
        ("io.holdfast.Agent1.Job", "/io/holdfast/Agent1/job/_1"),
    ];
    assert_eq!(contract.interfaces().len(), paths.len());
    for (name, path) in paths {
        let served = host.ok(&format!("busctl introspect --xml-interface io.holdfast.Agent1 {path}"));
        let served = Node::try_from(served.as_str()).unwrap();
        let of =
            |node: &Node<'_>| members(node.interfaces().iter().find(|interface| interface.name() == name).unwrap());
        assert_eq!(of(&served), of(&contract), "{name}");
    }

    // What is listed is what the command prints.
    let objects = host.ok("busctl call --json=short io.holdfast.Agent1 /io/holdfast/Agent1 org.freedesktop.DBus.ObjectManager GetManagedObjects");
    let objects: Value = serde_json::from_str(&objects).unwrap();
    let objects: BTreeSet<&str> = objects["data"][0].as_object().unwrap().keys().map(String::as_str).collect();
    for (_, path) in &paths[1..] {
        assert!(objects.contains(path), "{path}: {objects:?}");
    }
    let listed = host.ok(&format!("busctl call --json=short {MANAGER} ListHolds 'sa{{sv}}' '' 0"));
    let listed: Value = serde_json::from_str(&listed).unwrap();
    let listed = listed["data"][0]
        .as_array()
        .unwrap()
        .iter()
        .map(|hold| format!("{} {} {}", word(&hold[0]), word(&hold[1]), word(&hold[2])));
    let mut listed: Vec<String> = listed.collect();
    listed.sort();
    assert_eq!(listed, host.held());
    let holds = host.ok(&format!("busctl call {MANAGER} GetHoldsByUnit s web"));
    assert!(holds.contains("hold/web/container_2fweb"), "{holds}");

    // A typo must not pass, and what is not there is said so by name.
    for (call, error) in [
        ("Apply 'asa{sv}' 0 1 wiat b true", "wiat"),
        ("Apply 'asa{sv}' 0 1 wait s yes", "boolean"),
        ("Plan 'asa{sv}' 1 nowhere 0", "nowhere"),
        ("ListHolds 'sa{sv}' '' 1 reason s fuond", "fuond"),
        ("GetReport s 0123456789abcdef0123456789abcdef", "no report"),
    ] {
        let done = host.sh(&format!("busctl call {MANAGER} {call}"));
        assert!(!done.success() && done.stderr.contains(error), "{call}: {done:?}");
    }

    // The level of the agent's own log is set as for any other service.
    assert_eq!(host.ok("systemctl service-log-level holdfastd.service").trim(), "notice");
    host.ok("systemctl service-log-level holdfastd.service debug");
    assert_eq!(host.ok("systemctl service-log-level holdfastd.service").trim(), "debug");

    // A report as a file is the journal's entries.
    let hammer = hammer(&host);
    let report = host.look("report")["report"].as_str().unwrap().to_owned();
    let lines = host.ok(&format!("{hammer} open {report}"));
    let entries = host.entries(&[&format!("HOLDFAST_REPORT_ID={report}")]).len();
    assert_eq!(lines.lines().count(), entries);
    assert!(lines.lines().all(|line| serde_json::from_str::<Value>(line).unwrap()["HOLDFAST_REPORT_ID"] == report));
}

#[test]
fn signals_come_in_their_order_and_before_the_answer() {
    let host = Host::with_holdfast("bussignals");
    host.assign("good");
    host.holdfast("status", 6);
    let mut monitor = host.spawn("exec busctl monitor --json=short io.holdfast.Agent1 >/run/monitor");
    // It hears of itself once it listens.
    host.wait_for(10, &format!("busctl get-property {MANAGER} Version && test -s /run/monitor"));
    host.apply(0);
    host.wait_for(10, "grep -q JobRemoved /run/monitor");
    host.ok("pkill -INT -x busctl");
    monitor.wait().unwrap();
    let text = host.read("/run/monitor");
    let messages: Vec<Value> = text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let place = |what: &str, found: &dyn Fn(&Value) -> bool| {
        messages.iter().position(found).unwrap_or_else(|| panic!("no {what} in\n{text}"))
    };
    let member = |name: &'static str| move |message: &Value| message["member"] == name;
    let apply = place("call", &member("Apply"));
    let (cookie, caller) = (&messages[apply]["cookie"], &messages[apply]["sender"]);
    let reply = place("reply", &|message| {
        message["type"] == "method_return" && message["reply_cookie"] == *cookie && message["destination"] == *caller
    });
    let job = |message: &Value| message["payload"]["data"][0].as_str().is_some_and(|path| path.contains("/job/_"));
    let added = place("job", &|message| message["member"] == "InterfacesAdded" && job(message));
    let new = place("JobNew", &member("JobNew"));
    assert!(apply < added && added < new && new < reply, "{apply} {added} {new} {reply}\n{text}");
    let steps: Vec<u64> = messages
        .iter()
        .filter(|message| message["member"] == "StepCompleted")
        .map(|message| message["payload"]["data"][0].as_u64().unwrap())
        .collect();
    assert!(steps.len() > 3 && steps.iter().copied().eq(0..steps.len() as u64), "{steps:?}");
    let completed = place("ReportCompleted", &member("ReportCompleted"));
    let removed = place("JobRemoved", &member("JobRemoved"));
    let last_step = messages.iter().rposition(|message| message["member"] == "StepCompleted").unwrap();
    assert!(last_step < completed && completed < removed, "{text}");
    assert_eq!(messages[removed]["payload"]["data"][2], "done");
    let percents: Vec<&Value> = messages
        .iter()
        .map(|message| &message["payload"]["data"][1]["Percent"]["data"])
        .filter(|p| !p.is_null())
        .collect();
    assert_eq!(percents.last().and_then(|percent| percent.as_u64()), Some(100));
    let early = &percents[..percents.len() - 1];
    assert!(early.iter().all(|percent| percent.as_u64() < Some(100)), "{percents:?}");
}

#[test]
fn it_comes_when_called_and_leaves_when_idle() {
    let host = Host::with_holdfast("busidle");
    host.write("/etc/holdfast/holdfast.toml", "[agent]\nidle = \"50ms\"\n");
    host.module("web/tmpfiles.d/web.conf", "d /var/lib/web 0755 root root -\n");
    host.ok("mkdir /var/lib/web");
    host.apply(6);
    let gone = "test \"$(systemctl show --value --property=ActiveState holdfastd)\" = inactive";
    host.wait_for(10, gone);
    // What it saw outlives it.
    assert!(host.ok(&format!("busctl get-property {MANAGER} HeldCount")).contains("u 1"));
    host.wait_for(10, gone);
    let hammer = hammer(&host);
    for door in ["bus", "socket"] {
        let done = host.sh_for(300, &format!("{hammer} idle {door} 1000 4 50"));
        assert!(done.success() && done.stdout.starts_with("calls 1000 lost 0 "), "{door}: {done:?}");
        let agents: u32 = done.stdout.trim().rsplit(' ').next().unwrap().parse().unwrap();
        assert!(agents > 50, "{door}: the agent hardly ever left: {done:?}");
    }
    host.wait_for(10, gone);
    host.nothing_failed();
}

#[test]
fn what_happens_to_the_agent_during_an_apply_loses_nothing() {
    let host = Host::with_holdfast("busfate");
    host.assign("slow");
    let slow = || {
        let child = host.spawn("exec holdfast apply slow");
        host.wait_for(20, "holdfast jobs | grep -q ' running '");
        child
    };
    // Another version is installed: the job ends, and the next call finds the new one.
    let waiting = slow();
    let old = host.property("holdfastd", "MainPID");
    host.ok("cd /usr/libexec/holdfast && cp holdfastd new && mv new holdfastd");
    assert_eq!(waiting.wait_with_output().unwrap().status.code(), Some(0));
    host.wait_for(10, &format!("! test -d /proc/{old}"));
    host.look("status");
    assert_ne!(host.property("holdfastd", "MainPID"), old);

    // systemd says stop: the step is finished, and the report says how far it came.
    let change =
        |to: &str| host.ok(&format!("sed -i '/^Label/d; /^Network/a Label=a={to}' {MODULES}/slow/*.container"));
    change("1");
    let waiting = slow();
    host.ok("systemctl stop holdfastd.service");
    waiting.wait_with_output().unwrap();
    let report = host.look("report");
    assert!(report["complete"].as_bool().unwrap(), "{report}");
    assert_eq!(host.property("holdfastd", "Result"), "success");
    host.apply(0);

    // The bus goes away and comes back: the job ends and the report says how, and whoever calls next is answered.
    change("2");
    let waiting = slow();
    host.ok("systemctl restart dbus.service");
    waiting.wait_with_output().unwrap();
    host.wait_for(60, "holdfast jobs");
    let report = host.sh("holdfast report --json");
    let told = report.stderr.contains("was cut off") || report.json()["complete"] == true;
    assert!(told, "{report:?}");
    assert_eq!(host.apply(0).count("failed"), 0);
}

#[test]
fn clients_that_no_sensible_program_is_do_no_harm() {
    let host = Host::with_holdfast("buscrowd");
    host.assign("good");
    host.apply(0);
    let memory = || -> u64 {
        host.ok("awk '/^VmRSS/ { print $2 }' /proc/$(systemctl show --value --property=MainPID holdfastd)/status")
            .trim()
            .parse()
            .unwrap()
    };
    let hammer = hammer(&host);
    // The bus lets root have 256 connections at once; the agent answers all that come through.
    host.ok(&format!("{hammer} crowd 200"));
    let before = memory();
    for _ in 0..5 {
        assert_eq!(host.ok(&format!("{hammer} crowd 200")).split(" {").next(), Some("answered 200 of 200"));
    }
    // Looks at once, with nothing cached, do not stumble over each other.
    host.ok("rm -f /run/holdfast/*.json; for i in $(seq 12); do holdfast plan >/run/plan.$i 2>&1 & done; wait; \
             ! grep -L '^plan: 0 to create' /run/plan.* | grep .");
    host.ok(&format!("{hammer} vanish 10"));
    host.wait_for(60, "! holdfast jobs | grep -qE 'running|queued'");
    let long = "x".repeat(100_000);
    host.write("/run/long", &long);
    // Held with a note of 100 kB: told, cut in the journal, and gone again.
    host.ok("busctl call io.holdfast.Agent1 /io/holdfast/Agent1/module/good io.holdfast.Agent1.Module Hold 'sa{sv}' \"$(cat /run/long)\" 0");
    host.holdfast("unhold good", 0);
    for path in [
        "/",
        "/io/holdfast",
        "/io/holdfast/Agent1/module/_",
        "/io/holdfast/Agent1/module/good_2f_2e_2e",
        "/io/holdfast/Agent1/job/_0",
    ] {
        let done =
            host.sh(&format!("busctl call io.holdfast.Agent1 {path} io.holdfast.Agent1.Module Unhold 'a{{sv}}' 0"));
        assert!(!done.success(), "{path}");
    }
    for name in ["../good", "good/", "", "-", "a b", "$(reboot)", "ä", "a\u{1b}[2J"] {
        let done = host.sh(&format!("busctl call {MANAGER} Plan 'asa{{sv}}' 1 -- '{name}' 0"));
        assert!(!done.success() && !done.stderr.contains('\u{1b}'), "{name:?}: {done:?}");
    }
    let after = memory();
    assert!(after < before + 8 * 1024, "{before} kB, then {after} kB");
    host.apply(0);
    host.nothing_failed();
}

/// Puts the client there that no sensible program is.
fn hammer(host: &Host) -> &'static str {
    host.write_mode("/usr/local/bin/hammer", std::fs::read(env!("CARGO_BIN_EXE_hammer")).unwrap(), 0o755);
    "hammer"
}

fn word(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// Everything that an interface has, as lines.
fn members(interface: &Interface<'_>) -> BTreeMap<String, String> {
    let mut members = BTreeMap::new();
    for method in interface.methods() {
        let args = method.args().iter();
        let args: Vec<String> =
            args.map(|arg| format!("{:?} {} {:?}", arg.direction(), arg.ty().to_string(), arg.name())).collect();
        members.insert(format!("method {}", method.name()), args.join(", "));
    }
    for signal in interface.signals() {
        let args: Vec<String> =
            signal.args().iter().map(|arg| format!("{} {:?}", arg.ty().to_string(), arg.name())).collect();
        members.insert(format!("signal {}", signal.name()), args.join(", "));
    }
    for property in interface.properties() {
        let changes = property.annotations().iter().map(|a| a.value().to_owned()).collect::<Vec<_>>();
        let changes = if changes.is_empty() { vec!["true".to_owned()] } else { changes };
        members.insert(
            format!("property {}", property.name()),
            format!("{} {:?} {changes:?}", property.ty().to_string(), property.access()),
        );
    }
    members
}
