//! The smallest thing that a module asks for, and its name in every report: `kind/name`.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// The kinds of resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// A directory of the module's own.
    Directory,
    /// A file from the module's `files/`, or an empty one that tmpfiles.d declares.
    File,
    /// A symbolic link that tmpfiles.d declares.
    Link,
    /// A `.volume` file, or a plain volume name.
    Volume,
    /// A `.network` file.
    Network,
    /// An `.image` file.
    Image,
    /// A `.build` file.
    Build,
    /// A `.pod` file.
    Pod,
    /// A `.container` file.
    Container,
    /// A `.kube` file.
    Kube,
    /// A plain systemd unit.
    Unit,
}

impl Kind {
    /// All kinds, in the order in which they are made.
    pub const ALL: [Self; 11] = [
        Self::Directory,
        Self::File,
        Self::Link,
        Self::Volume,
        Self::Network,
        Self::Image,
        Self::Build,
        Self::Pod,
        Self::Container,
        Self::Kube,
        Self::Unit,
    ];

    /// The word in front of the slash.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Directory => "directory",
            Self::File => "file",
            Self::Link => "link",
            Self::Volume => "volume",
            Self::Network => "network",
            Self::Image => "image",
            Self::Build => "build",
            Self::Pod => "pod",
            Self::Container => "container",
            Self::Kube => "kube",
            Self::Unit => "unit",
        }
    }

    /// The Quadlet kind of a file name, by its extension; none for what is no Quadlet file.
    #[must_use]
    pub fn of_quadlet(file_name: &str) -> Option<Self> {
        let (_, extension) = file_name.rsplit_once('.')?;
        match extension {
            "container" => Some(Self::Container),
            "volume" => Some(Self::Volume),
            "network" => Some(Self::Network),
            "pod" => Some(Self::Pod),
            "image" => Some(Self::Image),
            "build" => Some(Self::Build),
            "kube" => Some(Self::Kube),
            _ => None,
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

/// A text that is no `kind/name`.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("\"{0}\" is no resource: it is written kind/name, as in container/web")]
pub struct ResourceKeyError(String);

/// `kind/name`, unique within a module: `container/web`, `directory//var/lib/web`, `unit/web.timer`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ResourceKey {
    /// What it is.
    pub kind: Kind,
    /// The file's stem, the unit's name, or the path.
    pub name: String,
}

impl ResourceKey {
    /// Puts kind and name together.
    pub fn new(kind: Kind, name: impl Into<String>) -> Self {
        Self { kind, name: name.into() }
    }
}

impl fmt::Display for ResourceKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.kind, self.name)
    }
}

impl FromStr for ResourceKey {
    type Err = ResourceKeyError;
    fn from_str(text: &str) -> Result<Self, ResourceKeyError> {
        let (word, name) = text.split_once('/').ok_or_else(|| ResourceKeyError(text.to_owned()))?;
        let kind = Kind::ALL.into_iter().find(|kind| kind.word() == word && !name.is_empty());
        kind.map(|kind| Self::new(kind, name)).ok_or_else(|| ResourceKeyError(text.to_owned()))
    }
}

impl TryFrom<String> for ResourceKey {
    type Error = ResourceKeyError;
    fn try_from(text: String) -> Result<Self, ResourceKeyError> {
        text.parse()
    }
}

impl From<ResourceKey> for String {
    fn from(key: ResourceKey) -> Self {
        key.to_string()
    }
}
