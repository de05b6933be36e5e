//! Files that travel beside a Quadlet file because it refers to them, and the flat tree of a module that is staged.

use std::collections::BTreeMap;

use crate::module::{Content, Module, QuadletSource};
use crate::problem::{Problem, Severity};
use crate::quadlet::QuadletFacts;

use super::Asset;
use super::draft::{FileDraft, plain_errors};
use super::reading;

/// The module's part of the ledger, kept beside its installed files.
const NOTE: &str = ".holdfast.json";

/// What one Quadlet file brings along.
#[derive(Default)]
pub(super) struct Assets<'a> {
    /// By path below the installed directory.
    pub found: BTreeMap<String, Found<'a>>,
    /// References to nothing, as paths below the installed directory, with a neighbour that shows what is meant.
    pub missing: BTreeMap<String, Option<&'a str>>,
    /// References that cannot travel.
    pub problems: Vec<Problem>,
}

/// A file of the module that travels.
#[derive(Clone, Copy)]
pub(super) struct Found<'a> {
    /// Its relative path in the module.
    pub file: &'a str,
    pub content: &'a [u8],
    mode: u32,
}

impl Found<'_> {
    /// The same, to be installed.
    pub fn installed(&self) -> Asset {
        Asset { content: self.content.to_vec(), mode: self.mode }
    }
}

/// The files of one module as the generator shall see them and as they are installed: flat, by name.
///
/// # Errors
/// The errors that hold the module as a whole. What is installed of it is what the generator shall see then.
pub fn staged(module: &Module) -> Result<BTreeMap<String, Vec<u8>>, Vec<Problem>> {
    let mut problems: Vec<Problem> =
        module.problems.iter().filter(|problem| problem.severity == Severity::Error).cloned().collect();
    let mut files = BTreeMap::new();
    let mut origins = BTreeMap::new();
    for (name, sources) in &module.quadlets {
        let Some(source) = sources.first() else { continue };
        files.insert(name.clone(), source.text.clone().into_bytes());
        problems.extend(plain_errors(source));
        let facts = reading::offline_facts(name, source);
        let assets = of(module, source, &facts);
        problems.extend(assets.problems);
        for (installed, found) in assets.found {
            problems.extend(collision(&mut origins, &installed, found));
            files.entry(installed).or_insert_with(|| found.content.to_vec());
        }
    }
    if problems.is_empty() { Ok(files) } else { Err(problems) }
}

/// What a Quadlet file refers to by a relative path.
pub(super) fn of<'a>(module: &'a Module, source: &'a QuadletSource, facts: &QuadletFacts) -> Assets<'a> {
    let mut assets = Assets::default();
    let folder = source.file.rsplit_once('/').map_or("", |(folder, _)| folder);
    for written in &facts.assets {
        let Some(installed) = clean(written) else {
            let text = format!("{written} leads out of the directory of its file, which is all that travels with it");
            assets.problems.push(Problem::error(&source.file, None, text));
            continue;
        };
        let wanted =
            [folder, installed.as_str()].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("/");
        let mut is_there = false;
        for (file, entry) in &module.assets {
            let rest = if wanted.is_empty() { Some(file.as_str()) } else { file.strip_prefix(&wanted) };
            let Some(rest) = rest.filter(|rest| rest.is_empty() || wanted.is_empty() || rest.starts_with('/')) else {
                continue;
            };
            is_there = true;
            let name = format!("{installed}{rest}").trim_start_matches('/').to_owned();
            match &entry.content {
                Content::Bytes(bytes) => {
                    assets.found.insert(name, Found { file, content: bytes, mode: entry.mode & 0o777 });
                }
                Content::TooLarge { .. }
                | Content::Special(_)
                | Content::LinkOutside { .. }
                | Content::LinkDangling { .. }
                | Content::Unreadable { .. } => {
                    let text = format!("{} refers to it and it cannot be read", source.file);
                    assets.problems.push(Problem::error(file, None, text));
                }
            }
        }
        if !is_there {
            let example = format!("{wanted}.example");
            let example = module.assets.keys().chain(&module.left_alone).find(|file| **file == example);
            assets.missing.insert(installed, example.map(String::as_str));
        }
    }
    assets
}

impl<'a> Assets<'a> {
    /// The file that a relative path means.
    pub fn get(&self, written: &str) -> Option<Found<'a>> {
        self.found.get(&clean(written)?).copied()
    }
}

/// Two directories of a module that bring different content under one installed name.
pub(super) fn collisions(files: &BTreeMap<&str, FileDraft>) -> Vec<Problem> {
    let mut origins = BTreeMap::new();
    let all = files.values().flat_map(|file| &file.assets.found);
    all.filter_map(|(installed, found)| collision(&mut origins, installed, *found)).collect()
}

/// The line where it belongs to the file itself; a drop-in's lines are counted from elsewhere.
pub(super) fn own_line(source: &QuadletSource, line: Option<u32>) -> Option<u32> {
    line.filter(|line| *line > 0 && *line <= source.own_lines)
}

fn collision<'a>(origins: &mut BTreeMap<String, Found<'a>>, installed: &str, found: Found<'a>) -> Option<Problem> {
    if installed == NOTE {
        let text = "it would be installed under the name of holdfast's own note beside the installed files";
        return Some(Problem::error(found.file, None, text));
    }
    let first = *origins.entry(installed.to_owned()).or_insert(found);
    (first.content != found.content).then(|| {
        let text = format!("it would be installed as {installed}, and so would {}, which differs", first.file);
        Problem::error(found.file, None, text).hint("give one of the two another name")
    })
}

/// A relative path without `.` and `..`, empty for the directory itself; none where it leads out.
fn clean(written: &str) -> Option<String> {
    let mut parts: Vec<&str> = Vec::new();
    for part in written.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            other => parts.push(other),
        }
    }
    Some(parts.join("/"))
}
