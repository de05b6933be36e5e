//! Specifiers (`%n`) and variables (`${VAR}`) as systemd expands them, as far as they can be known before a start.

mod envfile;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::unitfile::{UnitFile, split_words};

/// What specifiers need to know of the host. Values that could not be read are empty and make their specifier unknown.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostFacts {
    /// `%H`, `%l` is its first label.
    pub hostname: String,
    /// `%m`, 32 hex digits.
    pub machine_id: String,
    /// `%b`, 32 hex digits.
    pub boot_id: String,
    /// `%v`.
    pub kernel: String,
    /// `%a`, as systemd names it.
    pub architecture: String,
}

/// The files that `[Service] EnvironmentFile=` names, by path: their text, or none where they are not there.
pub type EnvFiles = BTreeMap<String, Option<String>>;

/// A text after expansion.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Expanded {
    /// The text; what stays open is in it as written.
    pub text: String,
    /// What stays open, as written: `${DATA}`, `%q`.
    pub open: Vec<String>,
}

/// Expands the words of one unit's command line.
#[derive(Debug, Clone)]
pub struct Expander<'a> {
    host: &'a HostFacts,
    unit: String,
    env: BTreeMap<String, String>,
    changing: Changing,
}

/// What is done with specifiers whose value is another one after the next boot or update of the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Changing {
    Expand,
    Keep,
}

impl<'a> Expander<'a> {
    /// For a unit (`web.service`) with the variables of its environment.
    #[must_use]
    pub fn new(host: &'a HostFacts, unit_name: &str, env: BTreeMap<String, String>) -> Self {
        Self { host, unit: unit_name.to_owned(), env, changing: Changing::Expand }
    }

    /// The same, for a text that must be equal after a reboot: boot ID and kernel version stay as written.
    #[must_use]
    pub fn lasting(&self) -> Self {
        Self { changing: Changing::Keep, ..self.clone() }
    }

    /// Expands a word of a command line: specifiers, then `${VAR}` anywhere, `$VAR` as the whole word, `$$` = `$`.
    #[must_use]
    pub fn word(&self, word: &str) -> Expanded {
        let Expanded { text, mut open } = self.specifiers(word);
        let text = self.variables(&text, &mut open);
        Expanded { text, open }
    }

    /// Expands specifiers only, as in paths and dependencies of a unit.
    #[must_use]
    pub fn specifiers(&self, text: &str) -> Expanded {
        let mut out = Expanded::default();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once('%') {
            out.text.push_str(before);
            let Some(letter) = after.chars().next() else {
                out.text.push('%');
                return out;
            };
            rest = &after[letter.len_utf8()..];
            match self.specifier(letter) {
                Some(value) => out.text.push_str(&value),
                None => {
                    let written = format!("%{letter}");
                    out.text.push_str(&written);
                    if !self.stays(letter) {
                        out.open.push(written);
                    }
                }
            }
        }
        out.text.push_str(rest);
        out
    }

    fn variables(&self, word: &str, open: &mut Vec<String>) -> String {
        if let Some(name) = word.strip_prefix('$').filter(|name| !name.starts_with(['{', '$']) && !name.is_empty()) {
            // As a whole word it would become as many words as it has; a value of ours is always meant as one.
            return match self.env.get(name).filter(|value| !value.is_empty() && !value.contains(char::is_whitespace)) {
                Some(value) => value.clone(),
                None => {
                    open.push(word.to_owned());
                    word.to_owned()
                }
            };
        }
        let mut out = String::new();
        let mut rest = word;
        while let Some((before, after)) = rest.split_once('$') {
            out.push_str(before);
            if let Some(after) = after.strip_prefix('$') {
                out.push('$');
                rest = after;
            } else if let Some((name, after)) = after.strip_prefix('{').and_then(|inner| inner.split_once('}')) {
                match self.env.get(name) {
                    Some(value) => out.push_str(value),
                    None => {
                        let written = format!("${{{name}}}");
                        out.push_str(&written);
                        open.push(written);
                    }
                }
                rest = after;
            } else {
                out.push('$');
                rest = after;
            }
        }
        out.push_str(rest);
        out
    }

    fn stays(&self, letter: char) -> bool {
        self.changing == Changing::Keep && matches!(letter, 'b' | 'v')
    }

    /// The value of a specifier for the system manager; none where it cannot be known, or there is no such specifier.
    fn specifier(&self, letter: char) -> Option<String> {
        if self.stays(letter) {
            return None;
        }
        let stem = self.unit.rsplit_once('.').map_or(self.unit.as_str(), |(stem, _)| stem);
        let (prefix, instance) = stem.split_once('@').unwrap_or((stem, ""));
        let last = prefix.rsplit('-').next().unwrap_or(prefix);
        let known = |value: &str| (!value.is_empty()).then(|| value.to_owned());
        let value = match letter {
            '%' => "%",
            'n' => &self.unit,
            'N' => stem,
            'p' => prefix,
            'i' => instance,
            'j' => last,
            'P' => return Some(unescape(prefix)),
            'I' => return Some(unescape(instance)),
            'J' => return Some(unescape(last)),
            'f' => return Some(format!("/{}", unescape(if stem.contains('@') { instance } else { prefix }))),
            't' => "/run",
            'S' => "/var/lib",
            'C' => "/var/cache",
            'L' => "/var/log",
            'E' => "/etc",
            'T' => "/tmp",
            'V' => "/var/tmp",
            'D' => "/usr/share",
            'd' => return Some(format!("/run/credentials/{}", self.unit)),
            'h' => "/root",
            'u' | 'g' => "root",
            'U' | 'G' => "0",
            'H' => return known(&self.host.hostname),
            'l' => return known(self.host.hostname.split('.').next().unwrap_or_default()),
            'm' => return known(&self.host.machine_id),
            'b' => return known(&self.host.boot_id),
            'v' => return known(&self.host.kernel),
            'a' => return known(&self.host.architecture),
            _ => return None,
        };
        Some(value.to_owned())
    }
}

/// The variables that systemd knows when it expands a unit's command lines: `Environment=`, then `EnvironmentFile=`
/// over it, the last one wins; and the one that Podman's generator adds. Files that are not in `files` count as absent.
#[must_use]
pub fn read_environment(
    unit: &UnitFile, files: &EnvFiles, host: &HostFacts, unit_name: &str,
) -> BTreeMap<String, String> {
    let expander = Expander::new(host, unit_name, BTreeMap::new());
    let mut env = BTreeMap::from([("PODMAN_SYSTEMD_UNIT".to_owned(), unit_name.to_owned())]);
    for entry in unit.all("Service", "Environment") {
        // systemd ignores a line that it cannot split, and so do we: its variables are then unset.
        for word in split_words(&entry.value).unwrap_or_default() {
            let word = expander.specifiers(&word).text;
            if let Some((name, value)) = word.split_once('=').filter(|(name, _)| is_name(name)) {
                env.insert(name.to_owned(), value.to_owned());
            }
        }
    }
    for (path, _) in environment_files(unit, host, unit_name) {
        if let Some(Some(text)) = files.get(&path) {
            env.extend(envfile::parse(text).into_iter().filter(|(name, _)| is_name(name)));
        }
    }
    env
}

/// The files of `[Service] EnvironmentFile=` in their order, and whether systemd starts the unit without them (`-`).
/// A path that is not absolute is left out, as systemd does.
#[must_use]
pub fn environment_files(unit: &UnitFile, host: &HostFacts, unit_name: &str) -> Vec<(String, bool)> {
    let expander = Expander::new(host, unit_name, BTreeMap::new());
    let mut files = Vec::new();
    for entry in unit.all("Service", "EnvironmentFile") {
        let (path, optional) = match entry.value.strip_prefix('-') {
            Some(path) => (path, true),
            None => (entry.value.as_str(), false),
        };
        let path = expander.specifiers(path).text;
        if path.starts_with('/') {
            files.push((path, optional));
        }
    }
    files
}

fn is_name(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
    name.chars().all(plain) && name.starts_with(|c: char| !c.is_ascii_digit())
}

/// systemd's unescaping of a part of a unit's name: `-` is a slash, `\x2d` a byte.
fn unescape(part: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = part;
    while let Some(c) = rest.chars().next() {
        let escaped =
            rest.strip_prefix("\\x").and_then(|hex| hex.get(..2)).and_then(|hex| u8::from_str_radix(hex, 16).ok());
        match escaped {
            Some(byte) => {
                bytes.push(byte);
                rest = &rest[4..];
                continue;
            }
            None if c == '-' => bytes.push(b'/'),
            None => bytes.extend(c.to_string().bytes()),
        }
        rest = &rest[c.len_utf8()..];
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
