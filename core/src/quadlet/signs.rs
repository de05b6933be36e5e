//! Signs that a file was made for a user's own manager: as root it would come up on empty directories.

use crate::quadlet::{Finding, section};
use crate::resource::Kind;
use crate::unitfile::{Entry, UnitFile, relaxed_words};

/// All signs, in the order of the file.
pub(crate) fn user_signs(kind: Kind, unit: &UnitFile) -> Vec<Finding> {
    let mut signs = Vec::new();
    for entry in &unit.entries {
        let letters: &[char] = match entry.section.as_str() {
            // %t in a path of a mount or file is the user's runtime directory; in [Service] it is as common for root.
            own if own == section(kind) => &['h', 't', 'u', 'U', 'D'],
            "Service" => &['h'],
            _ => &[],
        };
        signs.extend(specifiers(&entry.value, letters).into_iter().map(|what| finding(entry, what)));
        if entry.section == section(kind) && keeps_id(entry) {
            signs.push(finding(entry, "keep-id".to_owned()));
        }
    }
    signs.extend(only_default_target(unit));
    signs
}

fn finding(entry: &Entry, what: String) -> Finding {
    Finding { key: format!("{}=", entry.key), text: entry.value.clone(), what, line: Some(entry.line) }
}

/// Which of the specifiers stand in a value, each once.
fn specifiers(value: &str, letters: &[char]) -> Vec<String> {
    let mut found = Vec::new();
    let mut rest = value;
    while let Some((_, after)) = rest.split_once('%') {
        let Some(letter) = after.chars().next() else { break };
        let written = format!("%{letter}");
        if letters.contains(&letter) && !found.contains(&written) {
            found.push(written);
        }
        rest = &after[letter.len_utf8()..];
    }
    found
}

fn keeps_id(entry: &Entry) -> bool {
    match entry.key.as_str() {
        "UserNS" | "RemapUsers" => entry.value.starts_with("keep-id"),
        "PodmanArgs" => entry.value.contains("keep-id"),
        _ => false,
    }
}

/// `default.target` alone. Together with `multi-user.target` it is no sign: Podman's own manual writes both.
fn only_default_target(unit: &UnitFile) -> Option<Finding> {
    let entries: Vec<&Entry> = ["WantedBy", "RequiredBy"].iter().flat_map(|key| unit.all("Install", key)).collect();
    let alone = entries
        .iter()
        .flat_map(|entry| relaxed_words(&entry.value).unwrap_or_default())
        .all(|target| target == "default.target");
    entries.first().filter(|_| alone).map(|entry| finding(entry, "default.target".to_owned()))
}
