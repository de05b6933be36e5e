//! Promise 5: the journal is the report. On a report of 346 resources, what is rebuilt from the journal alone is what was
//! printed, and a reader can tell when entries are missing.

use std::fs;

use holdfast_tests::{Host, MODULES, test_dir, workload};

/// What the host has of its own, in the way of two of the modules.
const BEFORE: &str = "mkdir -p /var/lib/w001/d1 && podman volume create systemd-w002-v1 >/dev/null";

#[test]
fn a_report_of_346_is_rebuilt_from_the_journal_alone() {
    let modules = test_dir().join(format!("w346-{}", std::process::id()));
    workload::write(&modules, 346).unwrap();
    let host = Host::with_holdfast("treport");
    host.push_tree(&modules, MODULES);
    fs::remove_dir_all(&modules).unwrap();
    host.write("/etc/holdfast/holdfast.toml", "[health]\nwatch = \"1s\"\n");
    host.ok(BEFORE);

    // The text.
    let printed = host.sh_for(400, "holdfast apply");
    assert_eq!(printed.status, 6, "{}{}", printed.stdout, printed.stderr);
    let sentence = printed.stdout.lines().next().unwrap();
    assert!(sentence.contains(" of 346 resource(s) ("), "{sentence}");
    assert!(sentence.contains("w001: ") && sentence.contains("w002: "), "{sentence}");
    assert_eq!(printed.stdout, host.ok("holdfast report"));

    // The same as JSON, and the numbers.
    let report = host.look("report");
    let number = |key: &str| report[key].as_u64().unwrap();
    assert_eq!(number("total"), 346);
    assert_eq!(number("total"), number("applied") + number("held") + number("failed") + number("not_attempted"));
    assert_eq!(number("failed") + number("not_attempted"), 0);
    let id = report["report"].as_str().unwrap();
    let entries = host.entries(&["_UID=0", &format!("HOLDFAST_REPORT_ID={id}")]);
    let finished = entries.iter().find(|entry| entry["HOLDFAST_RESULT"] == "held").unwrap();
    assert_eq!(finished["HOLDFAST_ENTRIES"], entries.len().to_string());
    assert_eq!(finished["HOLDFAST_TOTAL"], "346");
    assert_eq!(finished["MESSAGE"], sentence);

    // An entry that anybody else wrote with the same id is none of the report.
    host.ok_as(
        "op",
        &format!("printf 'MESSAGE=x\\nHOLDFAST_REPORT_ID={id}\\nHOLDFAST_SCHEMA=1\\n' | logger --journald"),
    );
    assert_eq!(printed.stdout, host.ok("holdfast report"));

    // Without the journal there is no report: nothing else keeps one.
    host.ok("sleep 2; journalctl -q --rotate; journalctl -q --vacuum-time=1s");
    assert_eq!(host.sh(&format!("holdfast report {id}")).status, 4);
}
