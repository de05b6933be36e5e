//! The canonical text of a definition: what alters the command line that Podman is given, and nothing else.

use crate::expand::Expander;
use crate::quadlet::read::Siblings;
use crate::quadlet::{mounts, object_name, section};
use crate::resource::Kind;
use crate::unitfile::{Entry, UnitFile, relaxed_words};

/// The labels of our own trailer, which is no part of a definition.
const OWN_LABELS: &str = "io.holdfast.";

/// All assignments of the Quadlet section in force, in their order, expanded, references by the name they stand for.
///
/// Made from the module's file and never from generated text: that differs from one Podman to the next.
pub(super) fn text(kind: Kind, unit: &UnitFile, expander: &Expander<'_>, siblings: Siblings<'_>) -> String {
    let expander = expander.lasting();
    let section = section(kind);
    let mut text = format!("[{section}]\n");
    for (at, entry) in unit.entries.iter().enumerate().filter(|(_, entry)| entry.section == section) {
        // An empty assignment clears itself and those before it.
        let clears = |later: &Entry| later.value.is_empty() && later.section == section && later.key == entry.key;
        if unit.entries.iter().skip(at).any(clears) {
            continue;
        }
        if let Some(value) = without_own_labels(entry) {
            let value = resolved(&entry.key, &value, siblings);
            text.push_str(&format!("{}={}\n", entry.key, expander.word(value.trim_end()).text));
        }
    }
    text
}

/// What Podman calls the object of another Quadlet file, unexpanded: Podman pastes it as it is into the file that
/// refers to it. None where the file is not known.
pub(super) fn resolve(kind: Kind, file_name: &str, siblings: Siblings<'_>) -> Option<String> {
    let unit = siblings(file_name)?;
    let name = object_name(kind, file_name, unit)?;
    if kind != Kind::Container {
        return Some(name);
    }
    // A container is the one reference in which Podman replaces %N, by the service's name.
    let service = super::unit_name(kind, file_name, unit);
    Some(name.replace("%N", service.strip_suffix(".service").unwrap_or(&service)))
}

/// The value without labels of ours; none where nothing is left.
fn without_own_labels(entry: &Entry) -> Option<String> {
    if !entry.value.contains(OWN_LABELS) || !matches!(entry.key.as_str(), "Label" | "PodmanArgs") {
        return Some(entry.value.clone());
    }
    let words = relaxed_words(&entry.value).unwrap_or_default();
    let mut kept: Vec<String> = Vec::new();
    for word in words {
        let label = word.strip_prefix("--label=").unwrap_or(&word);
        if !label.starts_with(OWN_LABELS) {
            kept.push(word);
        } else if kept.last().is_some_and(|flag| matches!(flag.as_str(), "--label" | "-l")) {
            kept.pop();
        }
    }
    (!kept.is_empty()).then(|| kept.join(" "))
}

fn resolved(key: &str, value: &str, siblings: Siblings<'_>) -> String {
    let written = match key {
        "Volume" => mounts::volume(value).source,
        "Network" => value.split(':').next().unwrap_or_default().to_owned(),
        "Image" | "Pod" => value.trim_end().trim_matches('"').to_owned(),
        "Mount" => {
            let mut sources =
                relaxed_words(value).unwrap_or_default().into_iter().map(|word| mounts::mount(&word).source);
            sources.find(|source| Kind::of_quadlet(source).is_some()).unwrap_or_default()
        }
        _ => return value.to_owned(),
    };
    let kind = Kind::of_quadlet(&written).filter(|_| !written.contains('/'));
    match kind.and_then(|kind| resolve(kind, &written, siblings)) {
        Some(name) => value.replacen(&written, &name, 1),
        None => value.to_owned(),
    }
}
