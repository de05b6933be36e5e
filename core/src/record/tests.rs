//! Generated reports go to records and come back equal; whatever is lost on the way is noticed.

use std::collections::BTreeSet;

use super::{
    Answer, COMMON, Caller, Fields, Message, Priority, RebuiltState, Record, Run, authorised, interrupted, rebuild,
    records, refused, started, summaries,
};
use crate::hold::{Cause, Reason};
use crate::plan::Note;
use crate::report::{Counts, Deployed, EntryOutcome, HeldEntry, HoldEnded, Report, ReportEntry, ReportResult};
use crate::resource::{Kind, ResourceKey};

/// Numbers that look random and are the same in every run (splitmix64).
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % sides
    }

    fn pick<T: Clone>(&mut self, from: &[T]) -> T {
        from[usize::try_from(self.roll(from.len() as u64)).unwrap()].clone()
    }

    fn maybe<T>(&mut self, make: impl FnOnce(&mut Self) -> T) -> Option<T> {
        (self.roll(2) == 0).then(|| make(self))
    }

    /// Words as files and errors have them: empty, foreign, hostile, long.
    fn text(&mut self) -> String {
        let parts = [
            "",
            "web",
            " ",
            "/srv/shop",
            "äöü",
            "日本",
            "\n",
            "\t",
            "\u{1b}[2J",
            "\u{202e}gpj",
            "=",
            "\\x2d",
            "\"",
            "\0",
            "container/web is held",
            "\u{85}",
            "x".repeat(300).as_str(),
        ]
        .map(str::to_owned);
        (0..self.roll(5)).map(|_| self.pick(&parts)).collect()
    }

    fn key(&mut self) -> ResourceKey {
        let kind = self.pick(&Kind::ALL);
        ResourceKey::new(kind, format!("{}{}", self.text(), self.roll(1000)))
    }

    fn module(&mut self) -> String {
        self.pick(&["shop", "forge", "route-proxy", "no module name!\n"]).to_owned()
    }

    fn reason(&mut self) -> Reason {
        self.pick(Reason::ALL)
    }

    fn deployed(&mut self) -> Deployed {
        Deployed { image: self.maybe(Self::text), digest: self.maybe(Self::text) }
    }

    fn outcome(&mut self) -> EntryOutcome {
        match self.roll(7) {
            0 => EntryOutcome::Created(self.deployed()),
            1 => EntryOutcome::Changed(self.deployed()),
            2 => EntryOutcome::Recreated(self.deployed()),
            3 => EntryOutcome::Removed(self.deployed()),
            4 => EntryOutcome::Failed {
                step: self.text(),
                error: self.text(),
                errno: self.maybe(|dice| i32::try_from(dice.roll(200)).unwrap() - 10),
                exit_status: self.maybe(|dice| i32::try_from(dice.roll(256)).unwrap()),
            },
            5 => EntryOutcome::NotAttempted { after: self.text() },
            _ => EntryOutcome::Held(HeldEntry {
                reason: self.reason(),
                also: (0..self.roll(4)).map(|_| self.reason()).collect(),
                cause: Cause { module: self.module(), resource: self.key() },
                sentence: self.text(),
                hint: self.maybe(Self::text),
                since_usec: self.roll(u64::MAX),
                waiting_on_take: self.roll(2) == 0,
                known: self.roll(2) == 0,
            }),
        }
    }

    fn report(&mut self, resources: usize) -> Report {
        let resources: Vec<ReportEntry> = (0..resources)
            .map(|_| ReportEntry {
                module: self.module(),
                resource: self.key(),
                unit: self.maybe(Self::text),
                outcome: self.outcome(),
            })
            .collect();
        let newly = resources.iter().filter(|e| matches!(&e.outcome, EntryOutcome::Held(held) if !held.known)).count();
        let counts = Counts::of(&resources, u32::try_from(self.roll(400)).unwrap());
        Report {
            report: format!("{:016x}{:016x}", self.roll(u64::MAX), self.roll(u64::MAX)),
            action: self.pick(&["apply", "hold", "unhold"]).to_owned(),
            result: self.pick(&ReportResult::ALL),
            counts,
            started_usec: self.roll(u64::MAX / 2),
            duration_usec: self.roll(u64::MAX / 2),
            resources,
            notes: (0..self.roll(5))
                .map(|_| Note {
                    module: self.module(),
                    resource: self.key(),
                    note: "tag-moved".to_owned(),
                    sentence: self.text(),
                    unit: self.maybe(Self::text),
                })
                .collect(),
            newly_held: u32::try_from(newly).unwrap(),
            ended: (0..self.roll(5))
                .map(|_| HoldEnded {
                    module: self.module(),
                    resource: self.key(),
                    unit: self.maybe(Self::text),
                    reason: self.reason(),
                    ended_by: self.pick(&["applied", "removed", "unassigned", "reason-changed"]).to_owned(),
                })
                .collect(),
        }
    }
}

fn run(report: &Report) -> Run<'_> {
    Run { report: &report.report, action: &report.action }
}

fn caller() -> Caller {
    Caller { uid: 0, loginuid: Some(1000), command_line: "holdfast apply".to_owned() }
}

/// All entries of a report, as an apply writes them.
fn written(report: &Report) -> Vec<Record> {
    let mut all = vec![started(run(report), &caller(), &["shop".to_owned()])];
    all.push(authorised(run(report), 1, 1000, "io.holdfast.agent1.apply", Answer::Allowed));
    all.extend(records(report, 2));
    all
}

fn fields(records: &[Record]) -> Vec<Fields> {
    records.iter().map(Record::to_fields).collect()
}

/// The bytes of an entry, as journald counts them.
fn size(fields: &Fields) -> usize {
    fields.iter().flat_map(|(field, values)| values.iter().map(|value| field.len() + 1 + value.len())).sum()
}

/// The published JSON of a report says all of it.
#[test]
fn a_report_comes_back_from_json() {
    for seed in 0..40 {
        let report = Dice(seed).report(12);
        let back: Report = serde_json::from_value(report.to_json().unwrap()).unwrap();
        assert_eq!(back, report, "seed {seed}");
    }
}

#[test]
fn a_report_comes_back_from_its_fields_alone() {
    for seed in 0..300 {
        let mut dice = Dice(seed);
        let size = if seed % 30 == 0 { 346 } else { usize::try_from(dice.roll(12)).unwrap() };
        let report = dice.report(size).bounded();
        assert_eq!(report.check(), Ok(()));
        let mut entries = fields(&written(&report));
        // The journal may give entries of one moment in any order.
        let turn = usize::try_from(dice.roll(entries.len() as u64)).unwrap();
        entries.rotate_left(turn);
        let rebuilt = rebuild(&entries);
        assert_eq!(rebuilt.report.as_ref(), Some(&report), "seed {seed}");
        assert_eq!(rebuilt.state, RebuiltState::Complete);
        assert_eq!(rebuilt.warning(), None);
        assert_eq!(rebuilt.entries as usize, entries.len());
    }
}

#[test]
fn each_entry_that_is_lost_is_noticed() {
    for seed in 0..40 {
        let mut dice = Dice(seed);
        let report = dice.report(9).bounded();
        let entries = fields(&written(&report));
        let of = u32::try_from(entries.len()).unwrap();
        for lost in 0..entries.len() {
            let mut left = entries.clone();
            left.remove(lost);
            let rebuilt = rebuild(&left);
            assert!(!rebuilt.is_complete(), "seed {seed}, entry {lost}");
            assert_eq!(rebuilt.entries, of - 1);
            if lost + 1 == entries.len() {
                assert_eq!(rebuilt.state, RebuiltState::Open);
                let report = rebuilt.report.unwrap();
                assert_eq!(report.result, ReportResult::Interrupted);
                assert_eq!(report.check(), Ok(()));
            } else {
                assert_eq!(rebuilt.state, RebuiltState::Incomplete { of });
                let warning = rebuilt.warning().unwrap();
                assert!(warning.contains(&format!("{} of {of} entries", of - 1)), "{warning}");
            }
        }
    }
}

#[test]
fn entries_that_are_damaged_or_too_many_are_noticed() {
    let report = Dice(7).report(30).bounded();
    let entries = fields(&written(&report));
    for (index, entry) in entries.iter().enumerate() {
        let message = Message::of_id(&entry["MESSAGE_ID"][0]).unwrap();
        // What a report is not rebuilt from: for people, and for other programs.
        let for_people = [
            "PRIORITY",
            "MESSAGE",
            "SYSLOG_IDENTIFIER",
            "HOLDFAST_KIND",
            "HELD_MODULE",
            "HOLDFAST_CALLER_UID",
            "HOLDFAST_COMMAND_LINE",
            "HOLDFAST_POLKIT_ACTION",
            "HOLDFAST_ANSWER",
        ];
        for field in COMMON.iter().chain(message.always()).filter(|field| !for_people.contains(field)) {
            let mut damaged = entries.clone();
            damaged[index].remove(*field);
            assert!(!rebuild(&damaged).is_complete(), "{message:?} without {field}");
        }
    }
    let mut twice = entries.clone();
    twice.push(entries[3].clone());
    assert!(!rebuild(&twice).is_complete());
    let mut foreign = entries.clone();
    foreign.push(Fields::from([("MESSAGE".to_owned(), vec!["of somebody else".to_owned()])]));
    assert!(rebuild(&foreign).is_complete());
    let nothing = rebuild(&[]);
    assert_eq!((nothing.report, nothing.state, nothing.entries), (None, RebuiltState::Open, 0));
}

#[test]
fn every_record_has_the_fields_of_its_kind_and_journald_takes_them() {
    let mut seen = BTreeSet::new();
    for seed in 0..100 {
        let report = Dice(seed).report(20).bounded();
        let mut all = written(&report);
        all.push(interrupted(run(&report), 3, "the agent was killed"));
        all.push(refused(run(&report), 3, "it is busy", Some(Reason::Found), Some("holdfast status")));
        for record in all {
            let message = record.message;
            seen.insert(message);
            let fields = record.to_fields();
            for field in COMMON.iter().chain(message.always()) {
                assert!(fields.contains_key(*field), "{message:?} has no {field}");
            }
            for (field, values) in &fields {
                let name = field.as_str();
                let mut known = COMMON.iter().chain(message.always()).chain(message.sometimes());
                assert!(known.any(|known| *known == name), "{message:?} has a {field}");
                assert!(name.len() <= 64 && name.starts_with(|c: char| c.is_ascii_uppercase()), "{field}");
                assert!(name.bytes().all(|b| b.is_ascii_uppercase() || b.is_ascii_digit() || b == b'_'), "{field}");
                assert!(!values.is_empty());
            }
            assert!(!record.text.chars().any(char::is_control), "{:?}", record.text);
            assert!(!record.text.contains('\u{202e}'), "{:?}", record.text);
        }
    }
    assert_eq!(seen.into_iter().collect::<Vec<_>>(), Message::ALL);
}

#[test]
fn the_longest_entries_stay_below_16_kb_and_are_cut_alike_on_both_sides() {
    let long = || "\u{202e}".repeat(20_000);
    let key = || ResourceKey::new(Kind::Directory, long());
    let deployed = || Deployed { image: Some(long()), digest: Some(long()) };
    let outcomes = [
        EntryOutcome::Created(deployed()),
        EntryOutcome::Held(HeldEntry {
            reason: Reason::PathNotWritable,
            also: Reason::ALL.iter().copied().collect(),
            cause: Cause { module: long(), resource: key() },
            sentence: long(),
            hint: Some(long()),
            since_usec: u64::MAX,
            waiting_on_take: false,
            known: true,
        }),
        EntryOutcome::Failed { step: long(), error: long(), errno: Some(1), exit_status: Some(1) },
        EntryOutcome::NotAttempted { after: long() },
    ];
    let mut report = Dice(1).report(0);
    report.resources = outcomes
        .into_iter()
        .map(|outcome| ReportEntry { module: long(), resource: key(), unit: Some(long()), outcome })
        .collect();
    // So many modules that their names alone would not fit.
    for number in 0..400 {
        let mut entry = report.resources[1].clone();
        entry.module = format!("{number:0>250}");
        report.resources.push(entry);
    }
    report.notes.push(Note { module: long(), resource: key(), note: long(), sentence: long(), unit: Some(long()) });
    report.ended.push(HoldEnded {
        module: long(),
        resource: key(),
        unit: Some(long()),
        reason: Reason::Found,
        ended_by: long(),
    });
    let many: Vec<String> = (0..500).map(|number| format!("{number:0>250}")).collect();
    let caller = Caller { uid: 0, loginuid: None, command_line: long() };
    let bounded = report.clone().bounded();
    assert_eq!(bounded.clone().bounded(), bounded);
    assert_ne!(bounded, report);
    let mut all = vec![started(run(&bounded), &caller, &many)];
    all.extend(records(&report, 1));
    all.push(refused(run(&bounded), 3, &long(), None, Some(&long())));
    all.push(interrupted(run(&bounded), 3, &long()));
    for record in &all {
        let size = size(&record.to_fields());
        assert!(size < 16_000, "{:?}: {size} bytes", record.message);
    }
    all.truncate(all.len() - 2);
    assert_eq!(rebuild(&fields(&all)).report, Some(bounded));
}

#[test]
fn loudness_says_what_is_new() {
    let held = |known| ReportEntry {
        module: "shop".to_owned(),
        resource: ResourceKey::new(Kind::Container, "web"),
        unit: Some("web.service".to_owned()),
        outcome: EntryOutcome::Held(HeldEntry {
            reason: Reason::Found,
            also: BTreeSet::from([Reason::MissingSecret]),
            cause: Cause { module: "shop".to_owned(), resource: ResourceKey::new(Kind::Container, "web") },
            sentence: "container/web is held: it exists and is foreign".to_owned(),
            hint: None,
            since_usec: 1,
            waiting_on_take: true,
            known,
        }),
    };
    let report = |known: bool, changed: u32| Report {
        report: "0".repeat(32),
        action: "apply".to_owned(),
        result: ReportResult::Held,
        counts: Counts { changed, ..Counts::of(&[held(known)], 0) },
        started_usec: 0,
        duration_usec: 0,
        resources: vec![held(known)],
        notes: vec![],
        newly_held: u32::from(!known),
        ended: vec![],
    };
    let loudness = |report: &Report| -> Vec<Priority> { records(report, 1).iter().map(|r| r.priority).collect() };
    assert_eq!(loudness(&report(true, 0)), [Priority::Info, Priority::Info]);
    assert_eq!(loudness(&report(false, 0)), [Priority::Notice, Priority::Notice]);
    assert_eq!(loudness(&report(true, 1)), [Priority::Info, Priority::Notice]);
    let hold = Report { action: "hold".to_owned(), resources: vec![], ..report(true, 0) };
    assert_eq!(loudness(&hold), [Priority::Notice]);

    let hold = &records(&report(false, 0), 1)[0].to_fields();
    for (field, value) in [
        ("MESSAGE", "container/web is held: it exists and is foreign"),
        ("PRIORITY", "5"),
        ("HELD_MODULE", "shop"),
        ("REASON", "found"),
        ("CAUSE", "container/web"),
        ("CAUSE_MODULE", "shop"),
        ("HOLDFAST_ALSO", "missing-secret"),
        ("HOLDFAST_RESOURCE", "container/web"),
        ("HOLDFAST_KIND", "container"),
        ("HOLDFAST_SEQ", "1"),
        ("OBJECT_SYSTEMD_UNIT", "web.service"),
        ("SYSLOG_IDENTIFIER", "holdfast"),
    ] {
        assert_eq!(hold[field], [value], "{field}");
    }
    // A sentence that needs no escape is there once.
    assert!(!hold.contains_key("HOLDFAST_SENTENCE"));
}

#[test]
fn what_was_cut_off_or_refused_says_so() {
    let report = Dice(3).report(5).bounded();
    let mut all = written(&report);
    all.pop();
    let seq = u32::try_from(all.len()).unwrap();
    all.push(interrupted(run(&report), seq, "the agent was killed"));
    let rebuilt = rebuild(&fields(&all));
    assert!(matches!(&rebuilt.state, RebuiltState::Ended(text) if text.ends_with("cut off: the agent was killed")));
    assert_eq!(rebuilt.report.unwrap().resources, report.resources);

    let all =
        [started(run(&report), &caller(), &[]), refused(run(&report), 1, "the host cannot be looked at", None, None)];
    let rebuilt = rebuild(&fields(&all));
    assert!(rebuilt.warning().unwrap().ends_with("is refused: the host cannot be looked at"));
}

#[test]
fn reports_are_listed_newest_first_as_the_journal_gives_them() {
    let (old, new) = (Dice(1).report(2), Dice(2).report(2));
    let mut entries = fields(&written(&old));
    entries.extend(fields(&written(&new)));
    let mut cut_off = started(Run { report: "c", action: "apply" }, &caller(), &[]).to_fields();
    cut_off.insert("__REALTIME_TIMESTAMP".to_owned(), vec!["77".to_owned()]);
    entries.push(cut_off);
    let listed =
        |fields: &Fields| [Message::Started.id(), Message::Finished.id()].contains(&fields["MESSAGE_ID"][0].as_str());
    entries.retain(listed);
    entries.reverse();
    let list = summaries(&entries);
    let ids: Vec<&str> = list.iter().map(|summary| summary.report.as_str()).collect();
    assert_eq!(ids, ["c", &new.report, &old.report]);
    assert_eq!((list[0].result, list[0].started_usec, list[0].finished_usec), (None, 77, None));
    assert_eq!(list[1].result, Some(new.result));
    assert_eq!(list[1].started_usec, new.started_usec);
    assert_eq!(list[1].finished_usec, Some(new.started_usec + new.duration_usec));
    assert_eq!(list[2].counts, old.counts);
    assert_eq!(list[2].sentence, old.sentence());
}
