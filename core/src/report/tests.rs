//! Sentences, exit status, JSON and text of reports that are written by hand.

use std::collections::BTreeSet;

use super::{Counts, CountsError, Deployed, EntryOutcome, HeldEntry, HoldEnded, Report, ReportEntry, ReportResult};
use crate::hold::{Cause, Reason};
use crate::plan::Note;
use crate::resource::{Kind, ResourceKey};

fn entry(module: &str, resource: &str, outcome: EntryOutcome) -> ReportEntry {
    let resource: ResourceKey = resource.parse().unwrap();
    let unit = (resource.kind == Kind::Container).then(|| format!("{}.service", resource.name));
    ReportEntry { module: module.to_owned(), resource, unit, outcome }
}

fn held(reason: Reason, cause: (&str, &str), sentence: &str, waiting_on_take: bool) -> HeldEntry {
    HeldEntry {
        reason,
        also: BTreeSet::new(),
        cause: Cause { module: cause.0.to_owned(), resource: cause.1.parse().unwrap() },
        sentence: sentence.to_owned(),
        hint: None,
        since_usec: 1,
        waiting_on_take,
        known: true,
    }
}

fn report(resources: Vec<ReportEntry>, unchanged: u32) -> Report {
    let counts = Counts::of(&resources, unchanged);
    let newly = resources.iter().filter(|e| matches!(&e.outcome, EntryOutcome::Held(held) if !held.known)).count();
    Report {
        report: "9f3c".repeat(8),
        action: "apply".to_owned(),
        result: counts.result(),
        counts,
        started_usec: 1_700_000_000_000_000,
        duration_usec: 2_500_000,
        resources,
        notes: vec![],
        newly_held: u32::try_from(newly).unwrap(),
        ended: vec![],
    }
}

/// The outage that must not happen again: 346 asked, 16 held.
fn outage() -> Report {
    let mut resources: Vec<ReportEntry> = (0..12)
        .map(|number| entry("web", &format!("container/w{number}"), EntryOutcome::Created(Deployed::default())))
        .collect();
    let ca = ("route-proxy", "directory//var/lib/route-proxy/ca");
    let found = format!("{} is held: it was found on this host", ca.1);
    resources.push(entry(ca.0, ca.1, EntryOutcome::Held(held(Reason::Found, ca, &found, true))));
    for number in 0..12 {
        let sentence = format!("container/route-proxy-{number} is held: it would mount /var/lib/route-proxy/ca");
        let hold = held(Reason::NeedsHeld, ca, &sentence, true);
        resources.push(entry(ca.0, &format!("container/route-proxy-{number}"), EntryOutcome::Held(hold)));
    }
    let photos = ("photos", "directory//srv/photos");
    for resource in [photos.1, "container/photos", "container/photos-db"] {
        let sentence = format!("{resource} is held: /srv/photos was found on this host");
        let mut hold = held(Reason::Found, photos, &sentence, true);
        hold.hint = Some("holdfast take photos --dry-run".to_owned());
        resources.push(entry(photos.0, resource, EntryOutcome::Held(hold)));
    }
    report(resources, 318)
}

#[test]
fn the_sentence_counts_what_was_asked() {
    let mut outage = outage();
    assert_eq!(outage.check(), Ok(()));
    let line = "applied 330 of 346 resource(s) (12 changed), 16 held for untaken modules (route-proxy: 13, photos: 3)";
    assert_eq!(outage.sentence(), line);

    for (module, resource, reason) in
        [("forge", "container/forge", Reason::Downgrade), ("mail", "container/mail", Reason::MissingSecret)]
    {
        let sentence = format!("{resource} is held: …");
        let mut hold = held(reason, (module, resource), &sentence, false);
        hold.known = false;
        outage.resources.push(entry(module, resource, EntryOutcome::Held(hold)));
    }
    let failed = EntryOutcome::Failed { step: "start x".into(), error: "no".into(), errno: None, exit_status: None };
    outage.resources.push(entry("x", "container/x", failed));
    for name in ["a", "b", "c"] {
        let after = EntryOutcome::NotAttempted { after: "x container/x".into() };
        outage.resources.push(entry("x", &format!("container/{name}"), after));
    }
    for name in ["d", "e"] {
        outage.resources.push(entry("x", &format!("container/{name}"), EntryOutcome::Removed(Deployed::default())));
    }
    let all = report(outage.resources, 318);
    assert_eq!(all.check(), Ok(()));
    assert_eq!(
        all.sentence(),
        "applied 330 of 352 resource(s) (12 changed), 16 held for untaken modules (route-proxy: 13, photos: 3), \
         2 held otherwise (forge: downgrade 1, mail: missing-secret 1), 1 failed, 3 not attempted; 2 removed; \
         2 newly held"
    );
    assert_eq!(report(vec![], 5).sentence(), "applied 5 of 5 resource(s) (0 changed)");
    let unhold = Report { action: "unhold".to_owned(), ..report(vec![], 0) };
    assert_eq!(unhold.sentence(), "the operator's hold has ended");
}

#[test]
fn a_hold_for_another_module_counts_for_the_one_to_take() {
    let cause = ("db", "container/db");
    let report = report(
        vec![
            entry("db", "container/db", EntryOutcome::Held(held(Reason::Found, cause, "s", true))),
            entry("blog", "container/blog", EntryOutcome::Held(held(Reason::NeedsHeld, cause, "s", true))),
        ],
        0,
    );
    assert_eq!(report.sentence(), "applied 0 of 2 resource(s) (0 changed), 2 held for untaken modules (db: 2)");
}

#[test]
fn numbers_that_do_not_add_up_are_an_error() {
    let good = outage();
    let counts = good.counts;
    for wrong in [
        Counts { total: 345, ..counts },
        Counts { applied: 329, ..counts },
        Counts { held: 15, ..counts },
        Counts { failed: 1, ..counts },
        Counts { not_attempted: 1, ..counts },
    ] {
        assert!(matches!(wrong.check(), Err(CountsError::Total { .. })), "{wrong:?}");
    }
    let wrong = Counts { unchanged: 317, ..counts };
    let text = "330 resource(s) are applied, but 12 changed and 317 unchanged make 329";
    assert_eq!(wrong.check().unwrap_err().to_string(), text);
    // It adds up, but one hold is nowhere to be read.
    let mut unseen = good.clone();
    unseen.resources.pop();
    assert_eq!(unseen.check(), Err(CountsError::Listed { what: "held", counted: 16, listed: 15 }));
    let unseen = Report { newly_held: 1, ..good.clone() };
    assert_eq!(unseen.check(), Err(CountsError::Listed { what: "newly held", counted: 1, listed: 0 }));
    let unseen = Report { counts: Counts { removed: 1, ..counts }, ..good };
    assert_eq!(unseen.check(), Err(CountsError::Listed { what: "removed", counted: 1, listed: 0 }));
}

#[test]
fn exit_status_says_held_and_failed_beats_it() {
    let of = |applied, held, failed, not_attempted| {
        let counts = Counts { total: 9, applied, held, failed, not_attempted, ..Counts::default() };
        Report { counts, result: counts.result(), ..report(vec![], 0) }
    };
    for (applied, held, failed, not_attempted, result, status) in [
        (9, 0, 0, 0, ReportResult::Done, 0),
        (0, 0, 0, 0, ReportResult::Done, 0),
        (8, 1, 0, 0, ReportResult::Held, 6),
        (0, 9, 0, 0, ReportResult::Held, 6),
        (7, 1, 1, 0, ReportResult::Partial, 3),
        (8, 0, 1, 0, ReportResult::Partial, 3),
        (0, 8, 1, 0, ReportResult::Failed, 1),
        (0, 0, 1, 8, ReportResult::Failed, 1),
    ] {
        let report = of(applied, held, failed, not_attempted);
        assert_eq!((report.result, report.exit_status()), (result, status), "{applied} {held} {failed}");
    }
    let cut_off = Report { result: ReportResult::Interrupted, ..of(1, 0, 0, 0) };
    assert_eq!(cut_off.exit_status(), 3);

    let mut waiting = of(9, 0, 0, 0);
    let note = |note: &str| Note {
        module: "shop".to_owned(),
        resource: ResourceKey::new(Kind::Container, "web"),
        note: note.to_owned(),
        sentence: String::new(),
        unit: None,
    };
    waiting.notes = vec![note("tag-moved"), note("not-started"), note("overridden"), note("second-updater")];
    assert_eq!(waiting.exit_status(), 0);
    waiting.notes.push(note("stopped-by-operator"));
    assert_eq!(waiting.exit_status(), 6);
}

#[test]
fn json_has_the_same_keys_for_every_resource() {
    let mut hold = held(Reason::Downgrade, ("forge", "container/forge"), "container/forge is held: …", false);
    hold.also.insert(Reason::MissingSecret);
    hold.hint = Some("holdfast status forge".to_owned());
    let mut report = report(
        vec![
            entry("forge", "container/forge", EntryOutcome::Held(hold)),
            entry("shop", "volume/data", EntryOutcome::Created(Deployed::default())),
        ],
        3,
    );
    report.notes.push(Note {
        module: "shop".to_owned(),
        resource: ResourceKey::new(Kind::Container, "web"),
        note: "tag-moved".to_owned(),
        sentence: "a tag moved".to_owned(),
        unit: None,
    });
    let json = report.to_json().unwrap();
    for (pointer, value) in [
        ("/schema", serde_json::json!(1)),
        ("/report", serde_json::json!("9f3c".repeat(8))),
        ("/result", serde_json::json!("held")),
        ("/total", serde_json::json!(5)),
        ("/applied", serde_json::json!(4)),
        ("/unchanged", serde_json::json!(3)),
        ("/held", serde_json::json!(1)),
        ("/not_attempted", serde_json::json!(0)),
        ("/resources/0/module", serde_json::json!("forge")),
        ("/resources/0/resource", serde_json::json!("container/forge")),
        ("/resources/0/kind", serde_json::json!("container")),
        ("/resources/0/unit", serde_json::json!("forge.service")),
        ("/resources/0/outcome", serde_json::json!("held")),
        ("/resources/0/reason", serde_json::json!("downgrade")),
        ("/resources/0/also", serde_json::json!(["missing-secret"])),
        ("/resources/0/cause", serde_json::json!("container/forge")),
        ("/resources/0/cause_module", serde_json::json!("forge")),
        ("/resources/0/sentence", serde_json::json!("container/forge is held: …")),
        ("/resources/0/hint", serde_json::json!("holdfast status forge")),
        ("/resources/1/outcome", serde_json::json!("created")),
        ("/resources/1/reason", serde_json::Value::Null),
        ("/resources/1/sentence", serde_json::json!("volume/data of shop was created")),
        ("/notes/0/note", serde_json::json!("tag-moved")),
    ] {
        assert_eq!(json.pointer(pointer), Some(&value), "{pointer}");
    }
}

#[test]
fn the_text_says_holds_by_cause_and_hints_only_what_exists() {
    let text = outage().to_string();
    let expected = "\
applied 330 of 346 resource(s) (12 changed), 16 held for untaken modules (route-proxy: 13, photos: 3)

Held, left untouched:
  route-proxy, found: directory//var/lib/route-proxy/ca is held: it was found on this host;
    holds back 12: container/route-proxy-0, container/route-proxy-1, container/route-proxy-2,
    container/route-proxy-3, container/route-proxy-4, container/route-proxy-5,
    container/route-proxy-6, container/route-proxy-7, container/route-proxy-8,
    container/route-proxy-9, container/route-proxy-10, container/route-proxy-11
  photos, found: directory//srv/photos is held: /srv/photos was found on this host; holds back
    2: container/photos, container/photos-db
  Waiting on take: photos, route-proxy. What was found there goes on as it is until then.

Changed:
  web: created container/w0, container/w1, container/w2, container/w3, container/w4,
    container/w5, container/w6, container/w7, container/w8, container/w9, container/w10,
    container/w11
";
    assert_eq!(text, expected);
}

#[test]
fn the_text_of_everything_else() {
    let mut hold = held(Reason::UnsafeOwner, ("shop", "container/web"), "container/web is held: \u{1b}[2Jevil", false);
    hold.also.insert(Reason::MissingSecret);
    hold.known = false;
    hold.hint = Some("chown -R root: /etc/holdfast/modules/shop".to_owned());
    let mut other = held(Reason::NeedsHeld, ("gone", "container/db"), "container/api is held: …", false);
    other.hint = Some("holdfast status".to_owned());
    let mut again = other.clone();
    again.also.insert(Reason::PortInUse);
    let failed = EntryOutcome::Failed {
        step: "start x.service".to_owned(),
        error: "the job ended with \"timeout\"".to_owned(),
        errno: None,
        exit_status: None,
    };
    let image = Deployed { image: Some("localhost:5000/svc:1.0".to_owned()), digest: Some("sha256:ab".to_owned()) };
    let mut report = report(
        vec![
            entry("shop", "container/web", EntryOutcome::Held(hold)),
            entry("shop", "container/api", EntryOutcome::Held(other)),
            entry("cache", "container/redis", EntryOutcome::Held(again)),
            entry("x", "container/x", failed),
            entry("x", "container/y", EntryOutcome::NotAttempted { after: "x container/x".to_owned() }),
            entry("x", "container/z", EntryOutcome::Recreated(image)),
        ],
        0,
    );
    report.ended.push(HoldEnded {
        module: "x".to_owned(),
        resource: ResourceKey::new(Kind::Container, "z"),
        unit: None,
        reason: Reason::MissingImage,
        ended_by: "applied".to_owned(),
    });
    report.notes.push(Note {
        module: "x".to_owned(),
        resource: ResourceKey::new(Kind::Container, "z"),
        note: "second-updater".to_owned(),
        sentence: "container/z has AutoUpdate=registry".to_owned(),
        unit: None,
    });
    let expected = r#"applied 1 of 6 resource(s) (1 changed), 3 held otherwise (cache: needs-held 1, shop: needs-held 1, shop: unsafe-owner 1), 1 failed, 1 not attempted; 1 newly held

Held, left untouched:
  gone: container/db is held there; holds back 2: shop container/api, cache container/redis
    (also port-in-use)
  shop, unsafe-owner (new; also missing-secret): container/web is held: \x1b[2Jevil

Failed:
  container/x of x failed: start x.service: the job ended with "timeout"

Not attempted:
  container/y of x was not attempted, because x container/x failed

Changed:
  x: recreated container/z (localhost:5000/svc:1.0)

No longer held:
  container/z of x is no longer held (missing-image): it is applied

Notes:
  x second-updater: container/z has AutoUpdate=registry

Hint: chown -R root: /etc/holdfast/modules/shop
Hint: holdfast status
"#;
    assert_eq!(report.to_string(), expected);
}
