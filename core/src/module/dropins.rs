//! Drop-ins of Quadlet files, in the order in which Podman finds and merges them.

use std::collections::BTreeMap;

/// A `*.conf` of a drop-in folder.
#[derive(Debug)]
pub(super) struct Dropin {
    /// Its relative path in the module.
    pub path: String,
    /// The folder's own name, `web.container.d`.
    pub folder: String,
    /// Its text.
    pub text: String,
}

/// The names of the drop-in folders that apply to a Quadlet file, the most specific first; without the folder of the
/// whole type (`container.d`), which is refused in a module.
///
/// A prefix ends in a dash (`foo-.container.d`), an instance also has its template's folder.
#[must_use]
pub fn dropin_folders(file_name: &str) -> Vec<String> {
    let (stem, extension) = file_name.rsplit_once('.').unwrap_or((file_name, ""));
    let (unit, instance) = match stem.split_once('@') {
        Some((unit, instance)) => (unit, Some(instance)),
        None => (stem, None),
    };
    let mut folders = Vec::new();
    for (at, _) in unit.match_indices('-') {
        let prefix = &unit[..=at];
        folders.push(format!("{prefix}.{extension}.d"));
        if instance.is_some() {
            folders.push(format!("{prefix}@.{extension}.d"));
        }
    }
    if instance.is_some_and(|instance| !instance.is_empty()) {
        folders.push(format!("{unit}@.{extension}.d"));
    }
    folders.push(format!("{file_name}.d"));
    folders.reverse();
    folders
}

/// The drop-ins of a Quadlet file in the order in which they are merged: by file name; of one name only the first that
/// Podman meets, which walks the directories in their order and in each from the most specific folder on.
pub(super) fn of_file<'a>(file_name: &str, all: &'a [Dropin]) -> Vec<&'a Dropin> {
    let folders = dropin_folders(file_name);
    let mut candidates: Vec<(Vec<&str>, usize, &str, &Dropin)> = all
        .iter()
        .filter_map(|dropin| {
            let rank = folders.iter().position(|folder| *folder == dropin.folder)?;
            let mut parts: Vec<&str> = dropin.path.split('/').collect();
            let name = parts.pop()?;
            parts.pop();
            Some((parts, rank, name, dropin))
        })
        .collect();
    candidates.sort_by(|left, right| (&left.0, left.1, left.2).cmp(&(&right.0, right.1, right.2)));
    let mut chosen: BTreeMap<&str, &Dropin> = BTreeMap::new();
    for (_, _, name, dropin) in candidates {
        chosen.entry(name).or_insert(dropin);
    }
    chosen.into_values().collect()
}

/// A text to which more lines can be added without being swallowed by a last line that ends in a backslash. It ends in a
/// newline and means to Podman what it meant before.
///
/// # Errors
/// The line, from 1, of a continuation that only comments or blank lines follow: Podman loses such an assignment.
pub(super) fn closed(text: &str) -> Result<String, u32> {
    let mut body = text.strip_suffix('\n').unwrap_or(text);
    loop {
        let last = body.split('\n').count() - 1;
        match open_line(body) {
            None => return Ok(if body.is_empty() { String::new() } else { format!("{body}\n") }),
            Some(line) if line < last => return Err(u32::try_from(line + 1).unwrap_or(u32::MAX)),
            Some(_) => {
                let without = body.trim_end().strip_suffix('\\').unwrap_or(body);
                let (before, rest) = without.rsplit_once('\n').unwrap_or(("", without));
                // A backslash alone on the last line: the line before it is now the last one, and open as well.
                if !rest.trim().is_empty() {
                    return Ok(format!("{without}\n"));
                }
                body = before;
            }
        }
    }
}

/// The line, from 0, whose continuation is still open at the end.
fn open_line(body: &str) -> Option<usize> {
    let mut open = None;
    for (at, line) in body.split('\n').enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with(['#', ';']) {
            continue;
        }
        open = line.ends_with('\\').then_some(at);
    }
    open
}

#[cfg(test)]
mod tests {
    use super::{Dropin, closed, dropin_folders, of_file};

    #[test]
    fn folders_from_specific_to_broad() {
        let cases = [
            ("web.container", vec!["web.container.d"]),
            ("a-b-c.container", vec!["a-b-c.container.d", "a-b-.container.d", "a-.container.d"]),
            ("x@.container", vec!["x@.container.d"]),
            ("x@1.container", vec!["x@1.container.d", "x@.container.d"]),
            ("a-x@1-2.volume", vec!["a-x@1-2.volume.d", "a-x@.volume.d", "a-@.volume.d", "a-.volume.d"]),
        ];
        for (name, expected) in cases {
            assert_eq!(dropin_folders(name), expected, "{name}");
        }
    }

    #[test]
    fn one_name_counts_once_and_names_give_the_order() {
        let dropin = |path: &str| {
            let folder = path.rsplit('/').nth(1).unwrap_or_default().to_owned();
            Dropin { path: path.to_owned(), folder, text: String::new() }
        };
        let all = [
            dropin("a-.container.d/20.conf"),
            dropin("a-.container.d/30.conf"),
            dropin("a-b.container.d/10.conf"),
            dropin("a-b.container.d/20.conf"),
            dropin("sub/a-b.container.d/30.conf"),
            dropin("other.container.d/40.conf"),
        ];
        let chosen: Vec<&str> = of_file("a-b.container", &all).into_iter().map(|found| found.path.as_str()).collect();
        assert_eq!(chosen, ["a-b.container.d/10.conf", "a-b.container.d/20.conf", "a-.container.d/30.conf"]);
    }

    #[test]
    fn nothing_swallows_what_is_appended() {
        let cases = [
            ("", Ok("")),
            ("[A]\nB=c", Ok("[A]\nB=c\n")),
            ("[A]\nB=c\n", Ok("[A]\nB=c\n")),
            ("[A]\nB=c \\\n", Ok("[A]\nB=c \n")),
            ("[A]\nB=c \\  ", Ok("[A]\nB=c \n")),
            ("[A]\nB=c \\\n d \\\n", Ok("[A]\nB=c \\\n d \n")),
            ("[A]\nB=c \\\n \\\n", Ok("[A]\nB=c \n")),
            ("[A]\r\nB=c \\\r\n", Ok("[A]\r\nB=c \n")),
            ("[A]\nB=c \\\n# note\n", Err(2)),
            ("[A]\nB=c \\\n\n", Err(2)),
            ("[A]\nB=c\n# note \\\n", Ok("[A]\nB=c\n# note \\\n")),
        ];
        for (text, expected) in cases {
            assert_eq!(closed(text), expected.map(str::to_owned), "{text:?}");
        }
    }
}
