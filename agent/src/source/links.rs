//! Links inside of a module, resolved among what was read: nothing is opened by a name that a link gave.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::{Component, Path};

/// The kernel's own limit.
const HOPS: usize = 40;

/// Where a link leads.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Leads {
    /// To a file of the module, by its relative path.
    File(String),
    /// To a directory of the module.
    Directory,
    /// To a path of the module that is not among what was read.
    Nowhere,
    /// Out of the module.
    Outside,
    /// In a circle.
    Loop,
}

/// What is known of a module's paths.
pub(super) struct Paths<'a> {
    /// The module's directory, as absolute paths that mean it: as given and as located.
    pub roots: Vec<&'a Path>,
    /// Links by relative path, with their targets.
    pub links: &'a BTreeMap<String, String>,
    /// Relative paths of the directories that were read.
    pub directories: &'a BTreeSet<String>,
    /// True for the relative path of a file that was read.
    pub is_file: &'a dyn Fn(&str) -> bool,
}

impl Paths<'_> {
    /// Follows a link step by step, as the kernel does: `..` after a linked directory is the target's parent.
    pub fn follow(&self, link: &str) -> Leads {
        let mut at: Vec<String> = Vec::new();
        let mut ahead: VecDeque<String> = link.split('/').map(str::to_owned).collect();
        let mut hops = 0;
        while let Some(part) = ahead.pop_front() {
            match part.as_str() {
                "" | "." => continue,
                ".." => {
                    if at.pop().is_none() {
                        return Leads::Outside;
                    }
                    continue;
                }
                _ => at.push(part),
            }
            let Some(target) = self.links.get(&at.join("/")) else { continue };
            hops += 1;
            if hops > HOPS {
                return Leads::Loop;
            }
            at.pop();
            let relative = match self.inside(target) {
                Some(relative) if target.starts_with('/') => {
                    at.clear();
                    relative
                }
                Some(relative) => relative,
                None => return Leads::Outside,
            };
            for part in relative.split('/').rev() {
                ahead.push_front(part.to_owned());
            }
        }
        let path = at.join("/");
        if (self.is_file)(&path) {
            Leads::File(path)
        } else if path.is_empty() || self.directories.contains(&path) {
            Leads::Directory
        } else {
            Leads::Nowhere
        }
    }

    /// A target as a relative path; none when it is absolute and not below the module.
    fn inside(&self, target: &str) -> Option<String> {
        if !target.starts_with('/') {
            return Some(target.to_owned());
        }
        let target = Path::new(target);
        // With `..` in it the prefix proves nothing.
        if target.components().any(|part| part == Component::ParentDir) {
            return None;
        }
        let rest = self.roots.iter().find_map(|root| target.strip_prefix(root).ok())?;
        rest.to_str().map(str::to_owned)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};
    use std::path::Path;

    use super::{Leads, Paths};

    #[test]
    fn links_are_followed_among_what_was_read() {
        let links: BTreeMap<String, String> = [
            ("job@a.container", "job@.container"),
            ("sub/up", "../job@.container"),
            ("sub/absolute", "/m/web/job@.container"),
            ("chain", "sub/up"),
            ("folder", "deep/down"),
            ("through", "folder/../x"),
            ("out", "../other/x"),
            ("passwd", "/etc/passwd"),
            ("sly", "/m/web/../other"),
            ("gone", "nothing"),
            ("ring", "ring"),
        ]
        .map(|(link, target)| (link.to_owned(), target.to_owned()))
        .into();
        let directories: BTreeSet<String> = ["deep", "deep/down", "sub"].map(str::to_owned).into();
        let paths = Paths {
            roots: vec![Path::new("/m/web")],
            links: &links,
            directories: &directories,
            is_file: &|path| ["job@.container", "deep/x"].contains(&path),
        };
        let file = |path: &str| Leads::File(path.to_owned());
        let cases = [
            ("job@a.container", file("job@.container")),
            ("sub/up", file("job@.container")),
            ("sub/absolute", file("job@.container")),
            ("chain", file("job@.container")),
            ("folder", Leads::Directory),
            ("through", file("deep/x")),
            ("out", Leads::Outside),
            ("passwd", Leads::Outside),
            ("sly", Leads::Outside),
            ("gone", Leads::Nowhere),
            ("ring", Leads::Loop),
        ];
        for (link, expected) in cases {
            assert_eq!(paths.follow(link), expected, "{link}");
        }
    }
}
