//! A report of 346 resources goes through a real journald and comes back equal.
//!
//! Needs root and a journald that may be written to, so it is left out of a usual run: copy the test's binary to a test
//! host and run it there with `--ignored`.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::collections::BTreeSet;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use holdfast_agent::journal::{Journal, init_diagnostics};
use holdfast_core::hold::{Cause, Reason};
use holdfast_core::plan::Note;
use holdfast_core::record::{Caller, RebuiltState, Run, interrupted, rebuild, records, started};
use holdfast_core::report::{Counts, Deployed, EntryOutcome, HeldEntry, HoldEnded, Report, ReportEntry};
use holdfast_core::resource::{Kind, ResourceKey};

fn id() -> String {
    std::fs::read_to_string("/proc/sys/kernel/random/uuid").unwrap().trim().replace('-', "")
}

fn entry(number: usize) -> ReportEntry {
    let hostile = "a \u{1b}[31mred\nline = \u{202e}x\0\t ".repeat(1 + number % 3);
    let resource = ResourceKey::new(Kind::Container, format!("web-{number}"));
    let outcome = match number % 6 {
        0 => EntryOutcome::Created(Deployed { image: Some("localhost:5000/svc:1.0".to_owned()), digest: None }),
        1 => EntryOutcome::Changed(Deployed { image: Some(String::new()), digest: Some(hostile) }),
        2 => EntryOutcome::Failed { step: "start".to_owned(), error: hostile, errno: Some(-2), exit_status: Some(137) },
        3 => EntryOutcome::NotAttempted { after: "shop container/web".to_owned() },
        4 => EntryOutcome::Held(HeldEntry {
            reason: Reason::Found,
            also: Reason::ALL.iter().copied().skip(number % 20).collect(),
            cause: Cause { module: "shop".to_owned(), resource: resource.clone() },
            sentence: hostile,
            hint: Some("holdfast status shop".to_owned()),
            since_usec: 1,
            waiting_on_take: true,
            known: number % 12 == 4,
        }),
        _ => EntryOutcome::Held(HeldEntry {
            reason: Reason::NeedsHeld,
            also: BTreeSet::new(),
            cause: Cause { module: "shop".to_owned(), resource: ResourceKey::new(Kind::Directory, "/var/lib/shop") },
            sentence: format!("{resource} is held: {}", "x".repeat(5000)),
            hint: None,
            since_usec: 2,
            waiting_on_take: false,
            known: true,
        }),
    };
    ReportEntry { module: "shop".to_owned(), resource, unit: Some(format!("web-{number}.service")), outcome }
}

fn report() -> Report {
    let resources: Vec<ReportEntry> = (0..346).map(entry).collect();
    let newly = resources.iter().filter(|e| matches!(&e.outcome, EntryOutcome::Held(held) if !held.known)).count();
    let counts = Counts::of(&resources, 7);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let key = ResourceKey::new(Kind::Unit, "nosuch.timer");
    Report {
        report: id(),
        action: "apply".to_owned(),
        result: counts.result(),
        counts,
        started_usec: u64::try_from(now.as_micros()).unwrap(),
        duration_usec: 1,
        resources,
        notes: vec![Note {
            module: "shop".to_owned(),
            resource: key.clone(),
            note: "not-started".to_owned(),
            sentence: "unit/nosuch.timer has no [Install] section".to_owned(),
            unit: Some("nosuch.timer".to_owned()),
        }],
        newly_held: u32::try_from(newly).unwrap(),
        ended: vec![HoldEnded {
            module: "shop".to_owned(),
            resource: key,
            unit: None,
            reason: Reason::MissingImage,
            ended_by: "applied".to_owned(),
        }],
    }
    .bounded()
}

#[tokio::test]
#[ignore = "writes to the journal of the machine, as root"]
async fn a_report_goes_through_journald_and_comes_back() {
    init_diagnostics().unwrap();
    log::info!(KIND = "diagnostics"; "diagnostics go to the journal, too");
    let journal = Journal::open().unwrap();
    let report = report();
    assert_eq!(report.check(), Ok(()));
    let run = Run { report: &report.report, action: &report.action };
    let caller = Caller { uid: 0, loginuid: None, command_line: "holdfast apply\n--wait".to_owned() };
    let begin = started(run, &caller, &[]);
    journal.send(std::slice::from_ref(&begin)).await.unwrap();
    journal.synchronize().await.unwrap();

    // As long as it has no end, it says so.
    let rebuilt = rebuild(&Journal::read(&report.report).await.unwrap());
    assert_eq!((rebuilt.state, rebuilt.entries), (RebuiltState::Open, 1));
    let first = Journal::list(None, 1).await.unwrap();
    assert_eq!((first[0].report.as_str(), first[0].result), (report.report.as_str(), None));

    let rest = records(&report, 1);
    let clock = Instant::now();
    journal.send(&rest).await.unwrap();
    journal.synchronize().await.unwrap();
    println!("{} entries sent and synchronised in {:?}", rest.len(), clock.elapsed());
    assert!(clock.elapsed() < Duration::from_secs(5), "{:?}", clock.elapsed());

    let clock = Instant::now();
    let mut fields = Journal::read(&report.report).await.unwrap();
    assert_eq!(fields.len(), rest.len() + 1);
    for (read, record) in fields.iter().zip(std::iter::once(&begin).chain(&rest)) {
        assert_eq!(read["_UID"], ["0"]);
        for (field, mut values) in record.to_fields() {
            // journald keeps the values of one field in an order of its own.
            values.sort_unstable();
            let mut found = read[&field].clone();
            found.sort_unstable();
            assert_eq!(found, values, "{field}");
        }
    }
    let rebuilt = rebuild(&fields);
    println!("read and rebuilt in {:?}", clock.elapsed());
    assert_eq!(rebuilt.state, RebuiltState::Complete);
    assert_eq!(rebuilt.report.as_ref(), Some(&report));
    assert!(clock.elapsed() < Duration::from_secs(10), "{:?}", clock.elapsed());
    fields.remove(100);
    assert!(!rebuild(&fields).is_complete());

    // Another one that is cut off, and the list of both.
    let other = id();
    let run = Run { report: &other, action: "apply" };
    journal.send(&[started(run, &caller, &[]), interrupted(run, 1, "the test ends")]).await.unwrap();
    journal.synchronize().await.unwrap();
    assert_eq!(Journal::last_report_id().await.unwrap(), Some(other.clone()));
    let list = Journal::list(Some(report.started_usec), 2).await.unwrap();
    assert_eq!((list[0].report.as_str(), list[0].result), (other.as_str(), None));
    assert_eq!((list[1].report.as_str(), list[1].result), (report.report.as_str(), Some(report.result)));
    assert_eq!(list[1].counts, report.counts);
    assert!(Journal::read(&"0".repeat(32)).await.unwrap().is_empty());
}
