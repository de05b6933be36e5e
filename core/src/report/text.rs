//! A report as the operator reads it: the sentence first, then what is held by cause, failed, changed, and what to do.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use super::{EntryOutcome, HeldEntry, Report, ReportEntry, ReportResult, escape};
use crate::hold::Cause;
use crate::resource::ResourceKey;

/// Lines are at most this long, but for single words (paths, image references) that are longer: those stay whole, so
/// that they can be copied.
const WIDTH: usize = 96;

/// The verbs of the command that a hint may name.
pub const VERBS: [&str; 11] =
    ["status", "holds", "plan", "apply", "report", "lint", "is-applied", "hold", "unhold", "jobs", "cancel"];

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // One line, however long: it is the one that scripts look for.
        writeln!(f, "{}", escape(&self.sentence()))?;
        match self.result {
            ReportResult::Interrupted if self.counts.not_attempted == 0 => {
                wrapped(f, "", "  ", "It was cut off: what is listed was done, and what is not listed is not known.")?;
            }
            ReportResult::Interrupted => wrapped(f, "", "  ", "The agent had to end: the next apply does the rest.")?,
            ReportResult::Canceled => wrapped(f, "", "  ", "It was canceled: the next apply does the rest.")?,
            ReportResult::Done | ReportResult::Held | ReportResult::Partial | ReportResult::Failed => {}
        }
        self.write_held(f)?;
        self.write_failed(f)?;
        self.write_changed(f)?;
        section(f, "No longer held:", self.ended.iter().map(super::HoldEnded::sentence))?;
        let notes = self.notes.iter().map(|note| format!("{} {}: {}", note.module, note.note, note.sentence));
        section(f, "Notes:", notes)?;
        self.write_hints(f)
    }
}

impl Report {
    /// One paragraph per cause: its sentence, and everything that it holds back.
    fn write_held(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut causes: BTreeMap<&Cause, Vec<(&ReportEntry, &HeldEntry)>> = BTreeMap::new();
        for (entry, held) in self.held() {
            causes.entry(&held.cause).or_default().push((entry, held));
        }
        let mut causes: Vec<_> = causes.into_iter().collect();
        causes.sort_by_key(|(_, holds)| std::cmp::Reverse(holds.len()));
        section(f, "Held, left untouched:", causes.iter().map(|(cause, holds)| of_cause(cause, holds)))?;

        let waiting = self.held().filter(|(_, held)| held.waiting_on_take);
        let untaken: BTreeSet<&str> = waiting.map(|(_, held)| held.cause.module.as_str()).collect();
        if untaken.is_empty() {
            return Ok(());
        }
        let names = untaken.into_iter().collect::<Vec<_>>().join(", ");
        let text = format!("Waiting on take: {names}. What was found there goes on as it is until then.");
        wrapped(f, "  ", "    ", &text)
    }

    fn write_failed(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let of = |token: &'static str| self.resources.iter().filter(move |entry| entry.outcome.token() == token);
        section(f, "Failed:", of("failed").map(ReportEntry::sentence))?;
        section(f, "Not attempted:", of("not-attempted").map(ReportEntry::sentence))
    }

    /// One paragraph per module and outcome: a first apply changes hundreds.
    fn write_changed(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut groups: BTreeMap<(&str, &str), Vec<String>> = BTreeMap::new();
        for entry in &self.resources {
            let ReportEntry { module, resource, unit: _, outcome } = entry;
            match outcome {
                EntryOutcome::Created(what)
                | EntryOutcome::Changed(what)
                | EntryOutcome::Recreated(what)
                | EntryOutcome::Removed(what) => {
                    let image = what.image.as_ref().map(|image| format!(" ({image})")).unwrap_or_default();
                    groups.entry((module, outcome.token())).or_default().push(format!("{resource}{image}"));
                }
                EntryOutcome::Held(_)
                | EntryOutcome::Failed { step: _, error: _, errno: _, exit_status: _ }
                | EntryOutcome::NotAttempted { after: _ } => {}
            }
        }
        let lines = groups.iter().map(|((module, outcome), what)| format!("{module}: {outcome} {}", what.join(", ")));
        section(f, "Changed:", lines)
    }

    fn write_hints(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut said: BTreeSet<&str> = BTreeSet::new();
        for hint in self.held().filter_map(|(_, held)| held.hint.as_deref()) {
            if names_known_verbs(hint) && said.insert(hint) {
                if said.len() == 1 {
                    writeln!(f)?;
                }
                // A hint is to be copied and run, so it is never wrapped.
                writeln!(f, "Hint: {}", escape(hint))?;
            }
        }
        Ok(())
    }
}

/// `shop, found: directory//srv/shop is held: …; holds back 2: container/web, cache container/redis`.
fn of_cause(cause: &Cause, holds: &[(&ReportEntry, &HeldEntry)]) -> String {
    let is_root = |entry: &ReportEntry| entry.module == cause.module && entry.resource == cause.resource;
    let root = holds.iter().find(|(entry, _)| is_root(entry));
    let mut text = match root {
        Some((_, held)) => format!("{}, {}: {}", cause.module, words(held), held.sentence),
        // An apply of some modules does not list what holds them back elsewhere.
        None => format!("{}: {} is held there", cause.module, cause.resource),
    };
    let others: Vec<String> = holds
        .iter()
        .filter(|(entry, _)| !is_root(entry))
        .map(|(entry, held)| {
            let own = if held.also.is_empty() { String::new() } else { format!(" (also {})", tokens(held)) };
            let newly = if held.known { "" } else { " (new)" };
            format!("{}{own}{newly}", name(cause, &entry.module, &entry.resource))
        })
        .collect();
    if !others.is_empty() {
        text += &format!("; holds back {}: {}", others.len(), others.join(", "));
    }
    text
}

/// `found (new; also missing-secret)`.
fn words(held: &HeldEntry) -> String {
    match (held.known, held.also.is_empty()) {
        (true, true) => held.reason.to_string(),
        (true, false) => format!("{} (also {})", held.reason, tokens(held)),
        (false, true) => format!("{} (new)", held.reason),
        (false, false) => format!("{} (new; also {})", held.reason, tokens(held)),
    }
}

fn tokens(held: &HeldEntry) -> String {
    held.also.iter().map(|reason| reason.token()).collect::<Vec<_>>().join(", ")
}

/// A resource as it is called beside its cause: with its module only where that is another one.
fn name(cause: &Cause, module: &str, resource: &ResourceKey) -> String {
    if module == cause.module { resource.to_string() } else { format!("{module} {resource}") }
}

/// True unless the hint names a verb that this version does not have.
fn names_known_verbs(hint: &str) -> bool {
    let mut words = hint.split_whitespace().map(|word| word.trim_matches(|c: char| !c.is_alphanumeric()));
    while let Some(word) = words.by_ref().next() {
        if word == "holdfast" && !words.clone().next().is_none_or(|verb| VERBS.contains(&verb)) {
            return false;
        }
    }
    true
}

fn section(f: &mut fmt::Formatter<'_>, title: &str, lines: impl Iterator<Item = String>) -> fmt::Result {
    let mut lines = lines.peekable();
    if lines.peek().is_some() {
        writeln!(f, "\n{title}")?;
    }
    lines.try_for_each(|line| wrapped(f, "  ", "    ", &line))
}

/// Writes one paragraph, escaped, its second and further lines indented by `rest`.
fn wrapped(f: &mut fmt::Formatter<'_>, first: &str, rest: &str, text: &str) -> fmt::Result {
    let text = escape(text);
    let mut line = first.to_owned();
    let mut empty = true;
    for word in text.split(' ').filter(|word| !word.is_empty()) {
        if !empty && line.chars().count() + 1 + word.chars().count() > WIDTH {
            writeln!(f, "{line}")?;
            rest.clone_into(&mut line);
            empty = true;
        }
        if !empty {
            line.push(' ');
        }
        line += word;
        empty = false;
    }
    writeln!(f, "{line}")
}
