//! Walks the repository: what operators read has an entry for everything that the code can say.

#![allow(clippy::unwrap_used, clippy::panic, clippy::disallowed_methods, reason = "it reads the repository")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use holdfast_core::hold::Reason;
use holdfast_core::record::{COMMON, Message};
use holdfast_core::report::VERBS;

fn file(path: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(path);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The entries of the journal catalog: id to headers and text.
fn catalog() -> BTreeMap<String, String> {
    let text = file("units/holdfast.catalog");
    let mut entries: BTreeMap<String, String> = BTreeMap::new();
    let mut id = None;
    for line in text.lines() {
        if let Some(next) = line.strip_prefix("-- ") {
            assert!(entries.insert(next.to_owned(), String::new()).is_none(), "{next} is there twice");
            id = Some(next.to_owned());
        } else if let Some(id) = &id {
            let entry = entries.get_mut(id).unwrap();
            entry.push_str(line);
            entry.push('\n');
        }
    }
    entries
}

/// The verb of a command, if it is one of ours.
fn verb(command: &str) -> Option<&str> {
    command.strip_prefix("holdfast ")?.split(' ').next()
}

#[test]
fn every_reason_has_a_section_in_the_documentation() {
    let text = file("docs/reasons.md");
    let mut sections: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    let mut order = Vec::new();
    for section in text.split("\n## ").skip(1) {
        let (heading, body) = section.split_once('\n').unwrap();
        let lines = body.lines().filter(|line| !line.is_empty()).collect();
        assert!(sections.insert(heading, lines).is_none(), "{heading} is there twice");
        order.push(heading);
    }
    let tokens: Vec<&str> = Reason::ALL.iter().map(|reason| reason.token()).collect();
    assert_eq!(order, tokens, "one section for each reason, in the order of precedence");
    for (reason, lines) in &sections {
        assert!((3..=7).contains(&lines.len()), "{reason} has {} lines", lines.len());
        assert!(lines.iter().any(|line| line.starts_with("Way out: ")), "{reason} has no way out");
    }
}

#[test]
fn every_message_id_is_one_and_has_a_catalog_entry() {
    let catalog = catalog();
    let ids: BTreeSet<&str> = Message::ALL.iter().map(|message| message.id()).collect();
    assert_eq!(ids.len(), Message::ALL.len(), "an id is there twice");
    for id in &ids {
        let hex = id.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
        assert!(id.len() == 32 && hex, "{id}");
    }
    let catalogued: BTreeSet<&str> = catalog.keys().map(String::as_str).collect();
    assert_eq!(catalogued, ids);
}

#[test]
fn the_catalog_uses_only_fields_that_the_entry_always_has() {
    let catalog = catalog();
    for message in Message::ALL {
        let text = &catalog[message.id()];
        assert!(text.starts_with("Subject: "), "{message:?}");
        assert!(text.contains("\nDefined-By: holdfast\n"), "{message:?}");
        let used: Vec<&str> = text.split('@').skip(1).step_by(2).collect();
        assert!(!used.is_empty() && text.matches('@').count().is_multiple_of(2), "{message:?}");
        for field in used {
            let known = COMMON.contains(&field) || message.always().contains(&field);
            assert!(known, "the catalog entry of {message:?} uses {field}");
        }
        // It ends with what to do.
        assert!(text.contains("    holdfast ") || text.contains("    pkaction "), "{message:?} names no command");
    }
}

#[test]
fn only_verbs_that_exist_are_named() {
    for path in ["units/holdfast.catalog", "docs/reasons.md"] {
        let text = file(path);
        let commands = text.lines().flat_map(|line| match line.strip_prefix("    ") {
            Some(command) => vec![command],
            None => line.split('`').skip(1).step_by(2).collect(),
        });
        let verbs: Vec<&str> = commands.filter_map(verb).collect();
        assert!(verbs.len() > 2, "{path} names {verbs:?}");
        for verb in verbs {
            assert!(VERBS.contains(&verb), "{path} names holdfast {verb}");
        }
    }
}
