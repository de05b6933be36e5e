//! Holds as systemd shows them: markers on disk, and what the generator makes of them.
//!
//! A marker is a file named after a held unit, or after the target of a module that waits on a take. The generator
//! writes a placeholder for each of the first, and pulls in each of the second.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::hold::{Hold, Reason};
use crate::name::ModuleName;
use crate::plan::Scope;
use crate::resource::ResourceKey;

/// Where the markers are on a host.
pub const DIRECTORY: &str = "/var/lib/holdfast/held";

/// The version of a marker.
pub const SCHEMA: u32 = 1;

/// The template of the targets that list the modules which wait on a take.
const TEMPLATE: &str = "holdfast-held@.target";
const TARGET: (&str, &str) = ("holdfast-held@", ".target");

/// The longest name that systemd takes.
const LONGEST_NAME: usize = 255;

/// Why a marker says nothing.
#[derive(Debug, Error)]
pub enum MarkerError {
    /// It is of another version of holdfast.
    #[error("it has schema {0}; this holdfast knows {SCHEMA} only")]
    Schema(u64),
    /// It is no marker.
    #[error("it is no marker")]
    Content(#[from] serde_json::Error),
}

/// What one marker says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Marker {
    schema: u32,
    /// One for each held resource that has the unit: two modules may claim one.
    pub holds: BTreeSet<Mark>,
}

/// One hold in a marker. Ordered so that a module's first reason comes first.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mark {
    /// The module, by directory name.
    pub module: String,
    /// Why.
    pub reason: Reason,
    /// The held resource.
    pub resource: ResourceKey,
    /// True when a take would end it.
    pub waiting_on_take: bool,
}

impl Marker {
    /// Reads a marker.
    ///
    /// # Errors
    /// [`MarkerError`]: nothing is guessed.
    pub fn parse(content: &[u8]) -> Result<Self, MarkerError> {
        #[derive(Deserialize)]
        struct Version {
            schema: u64,
        }
        // The version first: another one may have other fields.
        let Version { schema } = serde_json::from_slice(content)?;
        if schema != u64::from(SCHEMA) {
            return Err(MarkerError::Schema(schema));
        }
        Ok(serde_json::from_slice(content)?)
    }

    fn text(holds: BTreeSet<Mark>) -> Vec<u8> {
        // Strings and a number: they always serialise.
        let mut text = serde_json::to_vec(&Self { schema: SCHEMA, holds }).unwrap_or_default();
        text.push(b'\n');
        text
    }
}

/// The markers that ought to be there, file name to content, given those that are. What modules outside of the scope have
/// stays as it is.
#[must_use]
pub fn markers(there: &BTreeMap<String, Vec<u8>>, holds: &[Hold], scope: &Scope) -> BTreeMap<String, Vec<u8>> {
    let mut kept = BTreeMap::new();
    let mut marks: BTreeMap<String, BTreeSet<Mark>> = BTreeMap::new();
    for (name, content) in there {
        match Marker::parse(content) {
            Ok(marker) => {
                let others: BTreeSet<Mark> = marker.holds.into_iter().filter(|mark| !scope.has(&mark.module)).collect();
                if !others.is_empty() {
                    marks.entry(name.clone()).or_default().extend(others);
                }
            }
            // Whose it is cannot be told, so only an apply of all modules clears it away.
            Err(_) if *scope != Scope::All => drop(kept.insert(name.clone(), content.clone())),
            Err(_) => {}
        }
    }
    for hold in holds.iter().filter(|hold| scope.has(&hold.module)) {
        let unit = hold.unit.clone().filter(|unit| is_unit_name(unit) && waiting_module(unit).is_none());
        let target = target(&hold.module).filter(|_| hold.waiting_on_take);
        for name in unit.into_iter().chain(target) {
            marks.entry(name).or_default().insert(Mark {
                module: hold.module.clone(),
                reason: hold.reason,
                resource: hold.resource.clone(),
                waiting_on_take: hold.waiting_on_take,
            });
        }
    }
    kept.extend(marks.into_iter().map(|(name, holds)| (name, Marker::text(holds))));
    kept
}

/// The target that is active while a module waits on a take; none for a directory that is no module name.
///
/// The name stands in it as it is: `-` needs no escape in an instance that nobody reads as a path.
#[must_use]
pub fn target(module: &str) -> Option<String> {
    let name = ModuleName::new(module).ok()?;
    Some(format!("{}{name}{}", TARGET.0, TARGET.1))
}

/// A pattern of all such targets.
#[must_use]
pub fn targets() -> String {
    format!("{}*{}", TARGET.0, TARGET.1)
}

/// The module of such a target.
#[must_use]
pub fn waiting_module(unit: &str) -> Option<&str> {
    unit.strip_prefix(TARGET.0)?.strip_suffix(TARGET.1)
}

/// The scripts of System V of which systemd makes this service, in the very directory that placeholders are in: where one
/// is there, a placeholder could take its place.
#[must_use]
pub fn scripts(unit: &str) -> Vec<String> {
    let name = unit.strip_suffix(".service").filter(|name| is_unit_name(unit) && !name.contains('@'));
    name.into_iter().flat_map(|name| [format!("/etc/init.d/{name}"), format!("/etc/init.d/{name}.sh")]).collect()
}

/// What the generator puts below its directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Generated {
    /// A file with this text.
    File(String),
    /// A link to this.
    Link(String),
}

/// All that the generator makes of some markers, by relative path.
#[must_use]
pub fn generated(markers: &BTreeMap<String, Marker>) -> BTreeMap<String, Generated> {
    let mut all = BTreeMap::new();
    for (name, marker) in markers {
        match waiting_module(name) {
            None => all.extend(placeholder(name, marker).map(|text| (name.clone(), Generated::File(text)))),
            Some(module) if target(module).is_some() => {
                all.insert(format!("multi-user.target.wants/{name}"), Generated::Link(format!("../{TEMPLATE}")));
                let after = after(module, markers);
                all.extend(after.map(|text| (format!("{name}.d/50-held.conf"), Generated::File(text))));
            }
            Some(_) => {}
        }
    }
    all
}

/// The drop-in of a module's target. Ordering only: a `Wants=` would start what is held.
fn after(module: &str, markers: &BTreeMap<String, Marker>) -> Option<String> {
    let waits = |marker: &Marker| marker.holds.iter().any(|mark| mark.waiting_on_take && mark.module == module);
    let is_held = |name: &&String| waiting_module(name).is_none() && is_unit_name(name) && !is_template(name);
    let units: Vec<&str> = markers
        .iter()
        .filter(|(_, marker)| waits(marker))
        .map(|(name, _)| name)
        .filter(is_held)
        .map(String::as_str)
        .collect();
    (!units.is_empty()).then(|| format!("[Unit]\nAfter={}\n", units.join(" ")))
}

/// A unit that fails to start, and says why; none for what must have no placeholder.
///
/// An assertion, not a condition: with a condition a start would succeed, and what requires it would run.
#[must_use]
pub fn placeholder(name: &str, marker: &Marker) -> Option<String> {
    if !is_unit_name(name) || is_instance(name) || marker.holds.is_empty() {
        return None;
    }
    // What is here is never reached, and harmless if it were: systemd loads no unit without it.
    let section = match name.rsplit_once('.')?.1 {
        "service" => "\n[Service]\nType=oneshot\nExecStart=/bin/false\n".to_owned(),
        "timer" => "\n[Timer]\nOnCalendar=1970-01-01\n".to_owned(),
        "path" => format!("\n[Path]\nPathExists={DIRECTORY}/{name}/never\n"),
        "socket" => format!("\n[Socket]\nListenStream=@holdfast-held/{name}\n"),
        "target" => String::new(),
        // A mount unit with a file is required by everything that has a path below it, foreign units too.
        _ => return None,
    };
    Some(format!(
        "# Made by holdfast-generator. Any other unit of this name comes before it.\n[Unit]\nDescription={}\n\
         Documentation=man:holdfastd(8) man:holdfast(1)\nSourcePath={DIRECTORY}/{name}\n\
         AssertPathExists=!{DIRECTORY}/{name}\n{section}",
        description(name, marker)
    ))
}

/// "web.service (held for module route-proxy: found, waiting on take)".
fn description(name: &str, marker: &Marker) -> String {
    let mut modules: BTreeMap<&str, &Mark> = BTreeMap::new();
    for mark in &marker.holds {
        modules.entry(&mark.module).or_insert(mark);
    }
    let clauses: Vec<String> = modules
        .into_values()
        .map(|Mark { module, reason, resource: _, waiting_on_take }| {
            let waiting = if *waiting_on_take { ", waiting on take" } else { "" };
            format!("held for module {}: {reason}{waiting}", in_unit_file(module))
        })
        .collect();
    format!("{name} ({})", clauses.join("; "))
}

/// A directory may have any name: no new line, no specifier.
fn in_unit_file(text: &str) -> String {
    text.chars().map(|c| if c.is_control() || c == '\\' { '?' } else { c }).collect::<String>().replace('%', "%%")
}

/// True for what systemd takes as the name of a unit or template.
fn is_unit_name(name: &str) -> bool {
    let valid = |c: u8| c.is_ascii_alphanumeric() || b":-_.\\@".contains(&c);
    let has_type = name.rsplit_once('.').is_some_and(|(stem, kind)| !stem.is_empty() && !kind.is_empty());
    has_type && !name.starts_with(['.', '@']) && name.len() <= LONGEST_NAME && name.bytes().all(valid)
}

fn is_template(name: &str) -> bool {
    name.contains("@.")
}

/// A file of an instance's name would come before every template of that name, a real one too.
fn is_instance(name: &str) -> bool {
    name.contains('@') && !is_template(name)
}

#[cfg(test)]
mod tests;
