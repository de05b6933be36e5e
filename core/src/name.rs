//! Names and paths that cannot hold a wrong value.

use std::borrow::Borrow;
use std::collections::BTreeMap;
use std::fmt;
use std::ops::Bound;

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// A name or path that was refused.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum NameError {
    /// The text is no module name.
    #[error("\"{0}\" is no module name: use a-z, 0-9 and - (not first or last), 1 to 63 characters")]
    Module(String),
    /// The text is no absolute path without NUL.
    #[error("\"{0}\" is no absolute path")]
    Path(String),
}

/// The name of a module: `[a-z0-9]([a-z0-9-]*[a-z0-9])?`, 1 to 63 characters.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ModuleName(String);

impl ModuleName {
    /// Checks and wraps a name.
    ///
    /// # Errors
    /// [`NameError::Module`] when the text does not follow the rule.
    pub fn new(text: impl Into<String>) -> Result<Self, NameError> {
        let text = text.into();
        let inner = |c: u8| c.is_ascii_lowercase() || c.is_ascii_digit();
        let bytes = text.as_bytes();
        let ends = bytes.first().is_some_and(|c| inner(*c)) && bytes.last().is_some_and(|c| inner(*c));
        if ends && bytes.len() <= 63 && bytes.iter().all(|c| inner(*c) || *c == b'-') {
            Ok(Self(text))
        } else {
            Err(NameError::Module(text))
        }
    }

    /// The name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ModuleName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl TryFrom<String> for ModuleName {
    type Error = NameError;
    fn try_from(text: String) -> Result<Self, NameError> {
        Self::new(text)
    }
}

impl From<ModuleName> for String {
    fn from(name: ModuleName) -> Self {
        name.0
    }
}

/// An absolute path in lexical normal form: no `//`, no `.`, no `..`, no slash at its end.
///
/// Comparison is by components, so that `/srv/media-old` is not below `/srv/media`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct HostPath(String);

impl HostPath {
    /// Checks and normalises a path, as Podman does (Go's `filepath.Clean`): without asking the file system.
    ///
    /// # Errors
    /// [`NameError::Path`] when the text is not absolute or has a NUL in it.
    pub fn new(text: &str) -> Result<Self, NameError> {
        if !text.starts_with('/') || text.contains('\0') {
            return Err(NameError::Path(text.to_owned()));
        }
        let mut parts: Vec<&str> = Vec::new();
        for part in text.split('/') {
            match part {
                "" | "." => {}
                ".." => {
                    parts.pop();
                }
                other => parts.push(other),
            }
        }
        Ok(Self(format!("/{}", parts.join("/"))))
    }

    /// The root directory.
    #[must_use]
    pub fn root() -> Self {
        Self("/".to_owned())
    }

    /// The path as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Its components, without the root.
    pub fn parts(&self) -> impl DoubleEndedIterator<Item = &str> {
        self.0.split('/').filter(|part| !part.is_empty())
    }

    /// The last component; empty for the root.
    #[must_use]
    pub fn file_name(&self) -> &str {
        self.0.rsplit('/').next().unwrap_or_default()
    }

    /// The directory that holds it; none for the root.
    #[must_use]
    pub fn parent(&self) -> Option<Self> {
        match self.0.rfind('/') {
            _ if self.0 == "/" => None,
            Some(0) => Some(Self::root()),
            Some(at) => Some(Self(self.0[..at].to_owned())),
            None => None,
        }
    }

    /// The paths of the directories above it, the nearest first; none for the root.
    pub fn above(&self) -> impl Iterator<Item = &str> {
        above(&self.0)
    }

    /// The entries of a map that lie below it, without its own.
    pub fn below<'a, T>(&self, map: &'a BTreeMap<Self, T>) -> impl Iterator<Item = (&'a Self, &'a T)> {
        let start = if self.0 == "/" { self.0.clone() } else { format!("{}/", self.0) };
        // No path but the root ends in a slash.
        let from = map.range::<str, _>((Bound::Excluded(start.as_str()), Bound::Unbounded));
        from.take_while(move |(path, _)| path.0.starts_with(&start))
    }

    /// True when `other` is this path or lies below it.
    #[must_use]
    pub fn contains(&self, other: &Self) -> bool {
        self.0 == "/" || other.0 == self.0 || other.0.strip_prefix(&self.0).is_some_and(|rest| rest.starts_with('/'))
    }

    /// The path below this one.
    ///
    /// # Errors
    /// [`NameError::Path`] when the result would hold a NUL.
    pub fn join(&self, relative: &str) -> Result<Self, NameError> {
        Self::new(&format!("{}/{relative}", self.0))
    }
}

/// [`HostPath::above`] of the text of a path.
pub(crate) fn above(path: &str) -> impl Iterator<Item = &str> {
    let mut rest = path;
    std::iter::from_fn(move || {
        let at = rest.rfind('/').filter(|_| rest != "/")?;
        rest = rest.get(..at).filter(|above| !above.is_empty()).unwrap_or("/");
        Some(rest)
    })
}

impl Borrow<str> for HostPath {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for HostPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl TryFrom<String> for HostPath {
    type Error = NameError;
    fn try_from(text: String) -> Result<Self, NameError> {
        Self::new(&text)
    }
}

impl From<HostPath> for String {
    fn from(path: HostPath) -> Self {
        path.0
    }
}

#[cfg(test)]
mod tests {
    use super::{HostPath, ModuleName};

    #[test]
    fn module_names() {
        for good in ["a", "route-proxy", "0", &"a".repeat(63)] {
            assert!(ModuleName::new(good).is_ok(), "{good}");
        }
        for bad in ["", "-a", "a-", "A", "a.b", "a/b", "a b", "ä", &"a".repeat(64)] {
            assert!(ModuleName::new(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn above_and_below() -> Result<(), super::NameError> {
        let path = |text: &str| HostPath::new(text);
        let (films, root) = (path("/srv/media/films")?, HostPath::root());
        assert_eq!(films.above().collect::<Vec<_>>(), ["/srv/media", "/srv", "/"]);
        assert_eq!(root.above().next(), None);
        let mut map = std::collections::BTreeMap::new();
        for text in ["/", "/srv", "/srv/media", "/srv/media-old", "/srv/media/books", "/srv/media/films/x", "/srv/n"] {
            map.insert(path(text)?, ());
        }
        let below = |path: &HostPath| path.below(&map).map(|(path, ())| path.to_string()).collect::<Vec<_>>();
        assert_eq!(below(&path("/srv/media")?), ["/srv/media/books", "/srv/media/films/x"]);
        assert_eq!(below(&root).len(), 6);
        assert_eq!(below(&path("/srv/med")?), [""; 0]);
        Ok(())
    }

    #[test]
    fn paths_are_compared_by_parts() -> Result<(), super::NameError> {
        let media = HostPath::new("/srv//media/")?;
        assert_eq!(media.as_str(), "/srv/media");
        assert!(media.contains(&HostPath::new("/srv/books/../media/x")?));
        assert!(!media.contains(&HostPath::new("/srv/media-old")?));
        assert!(HostPath::root().contains(&media));
        assert_eq!(HostPath::new("/..")?.as_str(), "/");
        assert!(HostPath::new("srv").is_err());
        Ok(())
    }
}
