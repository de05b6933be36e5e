//! What the assigned modules ask for: resources with needs and claims. Two claims on one thing are decided here.

mod assets;
mod bodies;
mod claims;
mod directories;
mod draft;
mod needs;
mod reading;
mod troubles;
mod units;
mod wanted;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::expand::{EnvFiles, HostFacts};
use crate::generated::Printed;
use crate::hold::Reason;
use crate::ledger::Ledger;
use crate::manifest::Manifest;
use crate::module::Module;
use crate::name::{HostPath, ModuleName};
use crate::observed::{PathFacts, Wanted};
use crate::quadlet::QuadletFacts;
use crate::resource::ResourceKey;

pub use assets::staged;
pub use draft::environment_files;

use draft::Draft;

/// All that [`Drafts`] may know beside what the generator printed.
#[derive(Debug, Clone)]
pub struct Inputs<'a> {
    /// The assigned modules, as read.
    pub modules: &'a [Module],
    /// What specifiers need to know.
    pub host: &'a HostFacts,
    /// The files of [`environment_files`].
    pub env: &'a EnvFiles,
    /// Where Quadlet files are installed: `/etc/containers/systemd/holdfast`.
    pub quadlet_dir: HostPath,
    /// Where plain units are installed: `/etc/systemd/system`.
    pub unit_dir: HostPath,
    /// Where lines for `/run` are installed: `/etc/tmpfiles.d`.
    pub tmpfiles_dir: HostPath,
    /// Podman's version, for sentences; empty before the first look.
    pub podman_version: &'a str,
    /// What is ours: who has a claim keeps it.
    pub ledger: &'a Ledger,
    /// What a look found at the paths of [`Drafts::wanted`]; empty before the first look. Whether a mounted path is a file, and
    /// where links lead, decides whose it is: the road reads drafts, looks, and assembles them with what it saw.
    pub seen: &'a BTreeMap<HostPath, PathFacts>,
}

/// The modules read against the generator's output, which is not needed after it.
pub struct Drafts<'a> {
    drafts: Vec<Draft<'a>>,
}

impl<'a> Drafts<'a> {
    /// Reads them. `printed` is what Podman's generator makes of them in their places.
    #[must_use]
    pub fn read(input: &Inputs<'a>, printed: &Printed) -> Self {
        Self { drafts: draft::all(input, printed) }
    }

    /// What a look at the host must cover for a plan: every path, unit and image that may count.
    #[must_use]
    pub fn wanted(&self, input: &Inputs) -> Wanted {
        wanted::wanted(input, &self.drafts)
    }

    /// What they ask for on this host. The input is the one that was read, with what a look has seen.
    #[must_use]
    pub fn assemble(mut self, input: &Inputs) -> Desired {
        self.drafts.iter_mut().for_each(|draft| draft.tell_version(input.podman_version));
        let drafts = &self.drafts;
        let directories = directories::judge(input, drafts);
        let mut desired = bodies::list(input, drafts, &directories);
        needs::tie(input, drafts, &mut desired);
        claims::settle(input, drafts, &directories, &mut desired);
        troubles::tell(input, drafts, &mut desired);
        desired
    }
}

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
    pub facts: Arc<QuadletFacts>,
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
        /// True when it has an `[Install]` section.
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

/// A path below a directory; the directory itself where the name cannot be in a path.
fn below(directory: &HostPath, name: &str) -> HostPath {
    directory.join(name).unwrap_or_else(|_| directory.clone())
}

/// The path with its links resolved, where a look has told.
fn real<'a>(input: &Inputs<'a>, path: &'a HostPath) -> &'a HostPath {
    input.seen.get(path).map_or(path, |facts| &facts.real)
}

#[cfg(test)]
mod tests;
