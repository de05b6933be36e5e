//! systemd unit syntax as Podman's Quadlet reads it, with line numbers.

mod words;

#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};
use thiserror::Error;

pub use words::{WordsError, relaxed_words, split_words};

/// A text that is no unit file, with the line where it stops being one.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("line {line}: {message}")]
pub struct UnitFileError {
    /// The line, from 1.
    pub line: u32,
    /// What is wrong there.
    pub message: String,
}

/// A unit file: its assignments in order. Sections may repeat, and so may keys.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnitFile {
    /// All assignments, in the order of the file.
    pub entries: Vec<Entry>,
    /// Every section header in the order of the file; one without assignments is seen only here.
    #[serde(default)]
    pub sections: Vec<String>,
}

/// One `Key=value` of a section.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// The section's name, without brackets.
    pub section: String,
    /// The key.
    pub key: String,
    /// The value, continuation lines joined, trimmed.
    pub value: String,
    /// The line on which the key stands, from 1.
    pub line: u32,
}

impl UnitFile {
    /// Reads a text. What Podman 5.4's generator refuses is refused, and nothing else, but for NUL bytes, which no unit
    /// file has a use for. One refused file costs its whole directory its units, so this decides before it is installed.
    ///
    /// # Errors
    /// [`UnitFileError`] with the first line that is no group, assignment, comment, or continuation of one.
    pub fn parse(text: &str) -> Result<Self, UnitFileError> {
        let mut file = Self::default();
        for (line, joined) in logical_lines(text)? {
            file.take_line(line, &joined)?;
        }
        Ok(file)
    }

    /// All values of a key that are in force: an empty assignment clears the ones before it.
    #[must_use]
    pub fn all(&self, section: &str, key: &str) -> Vec<&Entry> {
        let mut entries: Vec<&Entry> =
            self.entries_of(section, key).rev().take_while(|e| !e.value.is_empty()).collect();
        entries.reverse();
        entries
    }

    /// The last value of a key that takes one value: without blanks at its end and without double quotes around it.
    /// An empty one is as none.
    #[must_use]
    pub fn last(&self, section: &str, key: &str) -> Option<&str> {
        self.last_entry(section, key).map(|entry| entry.unquoted())
    }

    /// The entry of [`Self::last`], with its line.
    #[must_use]
    pub fn last_entry(&self, section: &str, key: &str) -> Option<&Entry> {
        self.entries_of(section, key).next_back().filter(|entry| !entry.unquoted().is_empty())
    }

    /// The last value of a key as a truth value; none where the key is not there. What is no yes is a no, as in Podman.
    #[must_use]
    pub fn boolean(&self, section: &str, key: &str) -> Option<bool> {
        let value = self.entries_of(section, key).next_back()?.unquoted();
        Some(["1", "yes", "true", "on"].iter().any(|yes| value.eq_ignore_ascii_case(yes)))
    }

    /// True when the section is there, even without an assignment.
    #[must_use]
    pub fn has_section(&self, section: &str) -> bool {
        self.sections.iter().any(|name| name == section) || self.entries.iter().any(|entry| entry.section == section)
    }

    /// The lines on which a key stands.
    #[must_use]
    pub fn lines(&self, section: &str, key: &str) -> Vec<u32> {
        self.entries_of(section, key).map(|entry| entry.line).collect()
    }

    fn entries_of<'a>(&'a self, section: &str, key: &str) -> impl DoubleEndedIterator<Item = &'a Entry> {
        self.entries.iter().filter(move |entry| entry.key == key && entry.section == section)
    }

    fn take_line(&mut self, line: u32, text: &str) -> Result<(), UnitFileError> {
        let refuse = |message: String| Err(UnitFileError { line, message });
        if let Some(section) = group_name(text) {
            if section.is_empty() || section.contains(|c: char| c == '[' || c.is_control()) {
                return refuse(format!("\"[{section}]\" is no group: its name is empty or has [ in it"));
            }
            self.sections.push(section.to_owned());
            return Ok(());
        }
        let Some((key, value)) = text.split_once('=').filter(|(key, _)| !key.is_empty()) else {
            return refuse(format!("\"{text}\" is no key=value, group or comment"));
        };
        let Some(section) = self.sections.last() else {
            return refuse(format!("\"{text}\" stands before the first group"));
        };
        let (key, value) = (key.trim_end().to_owned(), value.trim_start().to_owned());
        self.entries.push(Entry { section: section.clone(), key, value, line });
        Ok(())
    }
}

impl Entry {
    /// The value of a key that takes one value: Podman strips blanks at its end and double quotes around it.
    #[must_use]
    pub fn unquoted(&self) -> &str {
        self.value.trim_end().trim_matches('"')
    }
}

/// Lines with their continuations joined, each with the line on which it begins, comments and empty lines left out.
///
/// Podman trims each line and puts nothing in place of the backslash, unlike systemd, which puts a blank; and a
/// continuation that runs into the end of the file in a comment is lost without a word.
fn logical_lines(text: &str) -> Result<Vec<(u32, String)>, UnitFileError> {
    let text = text.strip_suffix('\n').unwrap_or(text);
    let count = text.split('\n').count();
    let mut lines = Vec::new();
    let mut open: Option<(u32, String)> = None;
    for (at, raw) in text.split('\n').enumerate() {
        let number = u32::try_from(at + 1).unwrap_or(u32::MAX);
        check_bytes(number, raw)?;
        let line = raw.trim();
        if line.is_empty() || line.starts_with(['#', ';']) {
            continue;
        }
        let (begin, mut joined) = open.take().unwrap_or((number, String::new()));
        match line.strip_suffix('\\') {
            Some(part) => {
                joined.push_str(part);
                match () {
                    () if at + 1 == count => lines.push((begin, joined)),
                    () if !joined.is_empty() => open = Some((begin, joined)),
                    () => {}
                }
            }
            None => {
                joined.push_str(line);
                lines.push((begin, joined));
            }
        }
    }
    Ok(lines)
}

fn check_bytes(line: u32, raw: &str) -> Result<(), UnitFileError> {
    if line == 1 && raw.starts_with('\u{feff}') {
        let message = "the file begins with a byte order mark, which Podman takes for text: save it without";
        return Err(UnitFileError { line, message: message.to_owned() });
    }
    if raw.contains('\0') {
        return Err(UnitFileError { line, message: "the line has a NUL byte in it".to_owned() });
    }
    Ok(())
}

/// The name between the brackets, when the line is a group header and nothing else.
fn group_name(line: &str) -> Option<&str> {
    let (name, rest) = line.strip_prefix('[')?.split_once(']')?;
    rest.chars().all(|c| c == ' ' || c == '\t').then_some(name)
}
