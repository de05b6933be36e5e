//! What the assigned modules ask for: resources with needs and claims. Two claims on one thing are decided here.

use std::collections::{BTreeMap, BTreeSet};

use crate::hold::Reason;
use crate::manifest::Manifest;
use crate::name::{HostPath, ModuleName};
use crate::quadlet::QuadletFacts;
use crate::resource::ResourceKey;

/// Everything that is asked for on this host.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Desired {
    /// Modules by directory name.
    pub modules: BTreeMap<String, DesiredModule>,
}

/// One module's part.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DesiredModule {
    /// Its name; none when the directory's name is no module name.
    pub name: Option<ModuleName>,
    /// Its manifest.
    pub manifest: Manifest,
    /// Its resources.
    pub resources: BTreeMap<ResourceKey, Resource>,
}

/// One resource as desired.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resource {
    /// The file of the module that asks for it, for sentences.
    pub source: String,
    /// Its unit.
    pub unit: Option<String>,
    /// What Podman calls what it makes.
    pub object: Option<String>,
    /// What is to be on the host.
    pub body: Body,
    /// What it cannot do without.
    pub needs: BTreeSet<Need>,
    /// What the Quadlet file says, for Quadlet kinds.
    pub facts: QuadletFacts,
    /// What is known to be wrong before the host is looked at.
    pub troubles: Vec<Trouble>,
}

/// Something that a resource cannot do without.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Need {
    /// A resource of a module (maybe another one).
    Resource {
        /// Its module.
        module: String,
        /// The resource.
        key: ResourceKey,
    },
    /// A path of the host that must exist, never made by us.
    Path(HostPath),
    /// A file that Podman reads as an environment file.
    EnvFile(HostPath),
    /// A Podman secret.
    Secret(String),
    /// A network that no module makes.
    Network(String),
    /// A container that no module makes.
    Container(String),
    /// An image.
    Image(String),
}

/// A reason to hold that needs no look at the host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trouble {
    /// The reason.
    pub reason: Reason,
    /// The clause after "NAME is held: ".
    pub clause: String,
    /// What to do.
    pub hint: Option<String>,
}

/// What a resource is on the host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Body {
    /// A Quadlet file.
    Quadlet {
        /// Where it is installed.
        path: HostPath,
        /// The file as written with its drop-ins, without the trailer.
        text: String,
        /// Files that travel beside it, by installed path.
        assets: BTreeMap<HostPath, Asset>,
        /// The hash of its definition.
        hash: String,
    },
    /// A volume that a container names and no `.volume` file makes: Podman makes it at the first start.
    PlainVolume,
    /// A plain unit.
    Unit {
        /// Where it is installed, and its drop-ins: path to text.
        files: BTreeMap<HostPath, String>,
        /// True when it has an [Install] section.
        install: bool,
    },
    /// A file.
    File {
        /// Its path.
        path: HostPath,
        /// Its bytes.
        content: Vec<u8>,
        /// `mode & 0o777`.
        mode: u32,
        /// Owner and group, by name or number.
        owner: (String, String),
    },
    /// A directory.
    Directory {
        /// Its path.
        path: HostPath,
        /// `mode & 0o7777`.
        mode: u32,
        /// Owner and group, by name or number.
        owner: (String, String),
    },
    /// A symbolic link.
    Link {
        /// Its path.
        path: HostPath,
        /// Its target.
        target: String,
    },
    /// Nothing can be said of it: its file could not be read, or its module's directory vanished.
    Opaque,
}

/// A file that travels beside a Quadlet file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asset {
    /// Its bytes.
    pub content: Vec<u8>,
    /// `mode & 0o777`, as in the module.
    pub mode: u32,
}
