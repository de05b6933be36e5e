//! Who may ask the agent for what: each method by each kind of caller.

use holdfast_tests::{Done, Host};

const MANAGER: &str = "io.holdfast.Agent1 /io/holdfast/Agent1 io.holdfast.Agent1.Manager";
const MODULE: &str = "io.holdfast.Agent1 /io/holdfast/Agent1/module/good io.holdfast.Agent1.Module";

/// What everybody may read, and what polkit guards.
const READS: [(&str, &str); 7] = [
    ("ListModules", "MANAGER ListModules"),
    ("ListHolds", "MANAGER ListHolds sa{sv} '' 0"),
    ("ListJobs", "MANAGER ListJobs"),
    ("GetHoldsByUnit", "MANAGER GetHoldsByUnit s good"),
    ("ListReports", "MANAGER ListReports tu 0 10"),
    ("GetReport", "MANAGER GetReport s ''"),
    ("CanApply", "MANAGER CanApply s good"),
];
const ACTS: [(&str, &str); 5] = [
    ("Plan", "MANAGER Plan asa{sv} 0 0"),
    ("Apply", "MANAGER Apply asa{sv} 0 1 wait b true"),
    ("Apply dry-run", "MANAGER Apply asa{sv} 0 2 dry-run b true wait b true"),
    ("Hold", "MODULE Hold sa{sv} because 0"),
    ("Unhold", "MODULE Unhold a{sv} 0"),
];

/// How a call ended, in a word.
fn answer(done: &Done) -> &'static str {
    let error = &done.stderr;
    match done.status {
        0 => "yes",
        _ if error.contains("Interactive authentication required") || error.contains("needs a password") => "challenge",
        _ if error.contains("denies") || error.contains("only root") || error.contains("Access denied") => "no",
        _ => panic!("{done:?}"),
    }
}

fn call(host: &Host, user: &str, words: &str) -> &'static str {
    let words = words.replace("MANAGER", MANAGER).replace("MODULE", MODULE);
    let words = words.replace("sa{sv}", "'sa{sv}'").replace("asa'{sv}'", "'asa{sv}'").replace(" a{sv}", " 'a{sv}'");
    let words = words.replace("as'sa{sv}'", "'asa{sv}'").replace("a'sa{sv}'", "'asa{sv}'");
    let script = format!("busctl --allow-interactive-authorization=no call {words}");
    answer(&if user == "root" { host.sh(&script) } else { host.sh_as(user, &script) })
}

#[test]
fn each_method_is_for_whom_it_is() {
    let host = Host::with_holdfast("polkit");
    host.assign("good");
    host.apply(0);
    host.ok("useradd --create-home guest && echo op:secret | chpasswd");
    let mut table = format!("{:<16} {:<10} {:<10} {:<10}\n", "", "guest", "op (sudo)", "root");
    for (name, words) in READS.into_iter().chain(ACTS) {
        let answers = ["guest", "op", "root"].map(|user| call(&host, user, words));
        table += &format!("{name:<16} {:<10} {:<10} {:<10}\n", answers[0], answers[1], answers[2]);
        let expected = if READS.iter().any(|(read, _)| *read == name) {
            ["yes", "yes", "yes"]
        } else {
            // A password of an administrator would do for both; nobody may be asked for one here.
            ["challenge", "challenge", "yes"]
        };
        assert_eq!(answers, expected, "{name}\n{table}");
    }
    host.wait_for(30, "! holdfast jobs | grep -qE 'running|queued'");
    let can = |user: &str| host.ok_as(user, &format!("busctl call {MANAGER} CanApply s ''"));
    assert!(can("guest").contains("challenge"), "{}", can("guest"));
    assert!(host.ok(&format!("busctl call {MANAGER} CanApply s ''")).contains("yes"));

    // A rule of the administrator decides, for one module and not for another.
    host.write(
        "/etc/polkit-1/rules.d/10-holdfast.rules",
        "polkit.addRule(function(action, subject) {\n\
           if (action.id == 'io.holdfast.agent1.apply' && subject.user == 'guest')\n\
             return action.lookup('module') == 'good' ? polkit.Result.YES : polkit.Result.NO;\n\
         });\n",
    );
    let applies = |words: &str| host.sh_as("guest", &format!("holdfast --no-ask-password apply {words}")).status;
    host.wait_for(10, "systemctl restart polkit");
    assert_eq!((applies("good"), applies("")), (0, 77));
    // Whoever was refused, and what for, stands in the journal.
    let denied = host.entries(&["HOLDFAST_ANSWER=denied", "HOLDFAST_POLKIT_ACTION=io.holdfast.agent1.apply"]);
    let guest = host.ok("id -u guest").trim().to_owned();
    assert!(denied.iter().any(|entry| entry["HOLDFAST_CALLER_UID"] == guest.as_str()), "{denied:#?}");

    // Whoever started a job may end it; another user may not.
    host.assign("slow");
    host.ok("rm /etc/polkit-1/rules.d/10-holdfast.rules && systemctl restart polkit");
    let job = host.spawn("exec holdfast apply slow");
    host.wait_for(20, "holdfast jobs | grep -q running");
    let number = host.ok("holdfast jobs | awk '/running/ { print $1 }'");
    let cancel = format!("holdfast --no-ask-password cancel {}", number.trim());
    assert_eq!(host.sh_as("guest", &cancel).status, 77);
    host.ok(&cancel);
    job.wait_with_output().unwrap();

    // An administrator types a password. The terminal is a real one.
    let typed = host
        .sh_as("op", "(sleep 3; echo secret; sleep 5) | script -qec 'holdfast apply good; echo status $?' /dev/null");
    assert!(typed.stdout.contains("Authentication is required to apply good"), "{typed:?}");
    assert!(typed.stdout.contains("status 0"), "{typed:?}");
    let wrong = host
        .sh_as("op", "(sleep 3; echo wrong; sleep 5) | script -qec 'holdfast apply good; echo status $?' /dev/null");
    assert!(wrong.stdout.contains("status 77"), "{wrong:?}");

    // Without polkit root can do everything, and nobody else more than read.
    host.ok("systemctl mask --now polkit.service");
    for (name, words) in READS.into_iter().chain(ACTS) {
        assert_eq!(call(&host, "root", words), "yes", "{name} by root without polkit");
        host.wait_for(60, "! holdfast jobs | grep -qE 'running|queued'");
    }
    assert_eq!(host.apply(0).count("failed"), 0, "what root may do, the agent can, without polkit");
    for (name, words) in READS {
        assert_eq!(call(&host, "guest", words), "yes", "{name} by guest without polkit");
    }
    for (name, words) in ACTS {
        assert_eq!(call(&host, "guest", words), "no", "{name} by guest without polkit");
    }
    println!("{table}");
    host.nothing_failed();
}
