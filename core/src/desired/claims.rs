//! Two claims on one thing: unit, name, file, path or port. Who has it in the ledger keeps it, else both are held.

use std::collections::{BTreeMap, BTreeSet};

use crate::hold::Reason;
use crate::ledger::Entry;
use crate::name::{HostPath, above};
use crate::ports::PortClaim;
use crate::resource::{Kind, ResourceKey};

use super::directories::Directories;
use super::draft::Draft;
use super::{Body, Desired, Inputs, Resource, Trouble, real};

/// Adds a [`Reason::ClaimedTwice`] to everything whose claim meets another one.
pub(super) fn settle(input: &Inputs, drafts: &[Draft], directories: &[Directories], desired: &mut Desired) {
    let claims = collect(input, drafts, directories, desired);
    let mut troubles: BTreeMap<(String, ResourceKey), Vec<Trouble>> = BTreeMap::new();
    let pairs = rivals(&claims).into_iter().filter_map(|(mine, other)| Some((claims.get(mine)?, claims.get(other)?)));
    for (mine, other) in pairs.filter(|(mine, other)| mine.loses_to(other)) {
        let id = (mine.module.to_owned(), mine.key.clone());
        let trouble = Trouble { reason: Reason::ClaimedTwice, clause: mine.clause(other), hint: None };
        let told = troubles.entry(id).or_default();
        if !told.contains(&trouble) {
            told.push(trouble);
        }
    }
    for ((module, key), found) in troubles {
        let part = desired.modules.get_mut(&module);
        if let Some(resource) = part.and_then(|part| part.resources.get_mut(&key)) {
            resource.troubles.extend(found);
        }
    }
}

/// What can be claimed once only.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Thing {
    Unit(String),
    /// Containers and pods share their names.
    Container(String),
    Volume(String),
    Network(String),
    /// A Quadlet file's name: Podman reads one file of a name, wherever it lies.
    File(String),
    /// A path that is made, as it was asked for and as it is located.
    Path {
        written: HostPath,
        place: HostPath,
    },
    Port(PortClaim),
}

/// Where claims that may meet are found together: to compare each with each takes seconds for thousands of resources.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Slot<'a> {
    Unit(&'a str),
    Container(&'a str),
    Volume(&'a str),
    Network(&'a str),
    File(&'a str),
    Path(&'a str),
    Port(u16),
}

impl Thing {
    fn slot(&self) -> Slot<'_> {
        match self {
            Self::Unit(name) => Slot::Unit(name),
            Self::Container(name) => Slot::Container(name),
            Self::Volume(name) => Slot::Volume(name),
            Self::Network(name) => Slot::Network(name),
            Self::File(name) => Slot::File(name),
            Self::Path { written: _, place } => Slot::Path(place.as_str()),
            Self::Port(claim) => Slot::Port(claim.port),
        }
    }
}

/// All pairs of claims that may meet, by index, each in both orders: those of one slot, and paths with the paths above.
fn rivals(claims: &[Claim]) -> BTreeSet<(usize, usize)> {
    let mut slots: BTreeMap<Slot<'_>, Vec<usize>> = BTreeMap::new();
    for (index, claim) in claims.iter().enumerate() {
        slots.entry(claim.thing.slot()).or_default().push(index);
    }
    let mut pairs = BTreeSet::new();
    for (slot, here) in &slots {
        let mut found = here.clone();
        if let Slot::Path(place) = slot {
            found.extend(above(place).filter_map(|above| slots.get(&Slot::Path(above))).flatten());
        }
        for mine in here {
            for other in found.iter().filter(|other| *other != mine) {
                pairs.extend([(*mine, *other), (*other, *mine)]);
            }
        }
    }
    pairs
}

struct Claim<'a> {
    module: &'a str,
    key: &'a ResourceKey,
    /// The file of the module, or the resource where there is none.
    source: &'a str,
    thing: Thing,
    /// True when the ledger says that it is already so.
    kept: bool,
    /// True when the module says that the path lies in what is the host's, so that it may lie in another one's directory.
    guest: bool,
    /// True when nothing of it is applied for another reason: it takes nothing from others.
    idle: bool,
}

impl Claim<'_> {
    fn loses_to(&self, other: &Self) -> bool {
        let same_resource = self.module == other.module && self.key == other.key;
        let beaten = !other.idle || other.kept;
        !same_resource && beaten && (!self.kept || other.kept) && self.meets(other)
    }

    fn meets(&self, other: &Self) -> bool {
        match (&self.thing, &other.thing) {
            (Thing::Port(mine), Thing::Port(other)) => mine.meets(other),
            (Thing::Path { place: mine, .. }, Thing::Path { place: theirs, .. }) => {
                // Within a module directories nest; a directory and a file that are equal never go together.
                if self.module == other.module { mine == theirs } else { self.nests(mine, other, theirs) }
            }
            (mine, other) => mine == other,
        }
    }

    fn nests(&self, mine: &HostPath, other: &Self, theirs: &HostPath) -> bool {
        let directory = |claim: &Self| claim.key.kind == Kind::Directory;
        let in_mine = directory(self) && mine.contains(theirs) && !other.guest;
        let in_theirs = directory(other) && theirs.contains(mine) && !self.guest;
        mine == theirs || in_mine || in_theirs
    }

    fn clause(&self, other: &Self) -> String {
        let mut files = [self.file(), other.file()];
        files.sort();
        let [first, second] = files;
        let what = match (&self.thing, &other.thing) {
            (Thing::Unit(name), _) => format!("make the unit {name}"),
            (Thing::Container(name), _) => format!("make a container or pod named {name}"),
            (Thing::Volume(name), _) => format!("make the volume {name}"),
            (Thing::Network(name), _) => format!("make the network {name}"),
            (Thing::File(name), _) => format!("are named {name}, and Podman reads only one file of a name"),
            (Thing::Port(mine), Thing::Port(theirs)) if mine != theirs => {
                return format!(
                    "{} publishes {mine} and {} publishes {theirs}, which is one port",
                    self.file(),
                    other.file()
                );
            }
            (Thing::Port(claim), _) => format!("publish {claim}"),
            (Thing::Path { written: mine, .. }, Thing::Path { written: theirs, .. }) if mine != theirs => {
                let (mine_of, theirs_of) = (self.file(), other.file());
                return format!("{mine_of} has {mine} as its own, and {theirs_of} has {theirs}: one lies in the other");
            }
            (Thing::Path { written, .. }, _) => format!("have {written} as their own"),
        };
        format!("both {first} and {second} {what}")
    }

    fn file(&self) -> String {
        if self.source.is_empty() {
            format!("{} {}", self.module, self.key)
        } else {
            format!("{}/{}", self.module, self.source)
        }
    }
}

fn collect<'a>(input: &Inputs, drafts: &[Draft], directories: &[Directories], desired: &'a Desired) -> Vec<Claim<'a>> {
    let known = drafts.iter().zip(directories).map(|known| (known.0.module.name.as_str(), known));
    let known: BTreeMap<&str, (&Draft, &Directories)> = known.collect();
    let mut claims = Vec::new();
    for (module, part) in &desired.modules {
        let known = known.get(module.as_str());
        let idle = known.is_none_or(|(draft, _)| draft.is_held_whole());
        for (key, resource) in &part.resources {
            let entry = part.name.as_ref().and_then(|name| input.ledger.entry(name, key));
            let kube = known.and_then(|(draft, _)| kube_names(draft, key)).into_iter().flatten();
            for thing in things(input, key, resource).into_iter().chain(kube) {
                let kept = entry.is_some_and(|entry| keeps(entry, resource, &thing));
                let guest = match &thing {
                    Thing::Path { written, .. } => known.is_some_and(|(_, part)| part.ground.yields(written)),
                    _ => false,
                };
                claims.push(Claim { module, key, source: &resource.source, thing, kept, guest, idle });
            }
        }
    }
    claims
}

/// The pods and containers that a YAML file makes.
fn kube_names(draft: &Draft, key: &ResourceKey) -> Option<Vec<Thing>> {
    let file = draft.files.get(format!("{}.kube", key.name).as_str()).filter(|_| key.kind == Kind::Kube)?;
    Some(file.kube.pods.iter().chain(&file.kube.containers).cloned().map(Thing::Container).collect())
}

fn things(input: &Inputs, key: &ResourceKey, resource: &Resource) -> Vec<Thing> {
    let mut things: Vec<Thing> = resource.unit.iter().cloned().map(Thing::Unit).collect();
    if let Some(name) = resource.object.clone() {
        match key.kind {
            Kind::Container | Kind::Pod => things.push(Thing::Container(name)),
            Kind::Volume => things.push(Thing::Volume(name)),
            Kind::Network => things.push(Thing::Network(name)),
            Kind::Directory | Kind::File | Kind::Link | Kind::Image | Kind::Build | Kind::Kube | Kind::Unit => {}
        }
    }
    if let Body::Quadlet { path, .. } = &resource.body {
        things.push(Thing::File(path.file_name().to_owned()));
    }
    if matches!(key.kind, Kind::Directory | Kind::File | Kind::Link)
        && let Ok(written) = HostPath::new(&key.name)
    {
        // A link's place is its own: what it leads to may well be a directory of the same module.
        let place = if key.kind == Kind::Link { written.clone() } else { real(input, &written).clone() };
        things.push(Thing::Path { written, place });
    }
    things.extend(resource.facts.ports.iter().cloned().map(Thing::Port));
    things
}

/// The ledger tells unit, name and paths. Ports, and what a YAML file makes, it does not know: they are kept while the
/// definition is the deployed one.
fn keeps(entry: &Entry, resource: &Resource, thing: &Thing) -> bool {
    match thing {
        Thing::Unit(name) => entry.unit.as_ref() == Some(name),
        Thing::Container(name) | Thing::Volume(name) | Thing::Network(name) if resource.object.is_some() => {
            entry.object.as_ref() == Some(name)
        }
        Thing::File(_) | Thing::Path { .. } => true,
        Thing::Container(_) | Thing::Volume(_) | Thing::Network(_) | Thing::Port(_) => match &resource.body {
            Body::Quadlet { hash, .. } => entry.hash.as_ref() == Some(hash),
            Body::Unit { .. }
            | Body::Opaque
            | Body::PlainVolume
            | Body::File { .. }
            | Body::Directory { .. }
            | Body::Link { .. } => true,
        },
    }
}
