//! What happens to each resource that is not held: nothing, made, changed, recreated, removed.

use std::collections::{BTreeMap, BTreeSet};

use super::files::{FileState, WantedFile, file_state, known_pin, wanted_files};
use super::judge::{HASH_LABEL, entry, moves_to};
use super::{At, Change, Given, Note, Planned};
use crate::desired::{Body, Need, Resource};
use crate::ledger::Entry;
use crate::name::HostPath;
use crate::observed::PathState;
use crate::resource::{Kind, ResourceKey};
use crate::step::Act;

/// What is decided for one resource.
#[derive(Default)]
pub(super) struct Decided {
    pub planned: Planned,
    pub notes: Vec<Note>,
    /// A directory or link to make.
    pub make: Option<Act>,
    /// Files to write, each with what it replaces.
    pub writes: Vec<(WantedFile, Option<String>)>,
    /// The image to find, and to pull if local storage does not have it.
    pub image: Option<String>,
    pub enable: bool,
    pub run: Run,
    /// What goes, for a resource that is gone from its module.
    pub removal: Option<Removal>,
    /// True for one that is gone from its module and stays for now: nobody asks for it, and nothing is done.
    pub stays: bool,
}

/// What its unit needs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Run {
    #[default]
    Nothing,
    Start,
    Restart,
}

/// Whether a unit was enabled by us.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Disable {
    #[default]
    No,
    Yes,
}

/// What goes with a resource that is gone from its module.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Removal {
    pub unit: Option<String>,
    pub disable: Disable,
    pub files: Vec<(HostPath, String)>,
}

/// Decides for every resource that is not held, of modules in scope, and for those that are gone from their module.
pub(super) fn changes(given: Given<'_>, held: &BTreeSet<At>) -> BTreeMap<At, Decided> {
    let mut all = BTreeMap::new();
    let running = wanted_running(given, held);
    for (module, desired) in given.desired.modules.iter().filter(|(module, _)| given.scope.has(module)) {
        for (key, resource) in &desired.resources {
            let at = (module.clone(), key.clone());
            if !held.contains(&at) {
                let one = One { given, module, key, resource, entry: entry(given.ledger, module, key) };
                let wanted = if running.contains(&at) { AtBoot::Runs } else { AtBoot::Rests };
                all.insert(at, one.decide(wanted));
            }
        }
    }
    restart_users(given, &mut all);
    removals(given, held, &mut all);
    all
}

/// Whether systemd would start a unit at boot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AtBoot {
    Runs,
    Rests,
}

/// What systemd would start at boot: units with an [Install] section and what they pull in.
fn wanted_running(given: Given<'_>, held: &BTreeSet<At>) -> BTreeSet<At> {
    let mut running = BTreeSet::new();
    let mut open: Vec<At> = Vec::new();
    for (module, desired) in &given.desired.modules {
        for (key, resource) in &desired.resources {
            let install = match &resource.body {
                Body::Quadlet { .. } => resource.facts.wanted_at_boot,
                Body::Unit { install, .. } => *install,
                Body::PlainVolume | Body::File { .. } | Body::Directory { .. } | Body::Link { .. } | Body::Opaque => {
                    false
                }
            };
            if install {
                open.push((module.clone(), key.clone()));
            }
        }
    }
    while let Some(at) = open.pop() {
        if held.contains(&at) || !running.insert(at.clone()) {
            continue;
        }
        let Some(desired) = given.desired.modules.get(&at.0) else { continue };
        let Some(resource) = desired.resources.get(&at.1) else { continue };
        for need in &resource.needs {
            // A timer's or socket's service is started by it, not with it.
            if let (Need::Resource { module, key }, false) = (need, at.1.kind == Kind::Unit) {
                open.push((module.clone(), key.clone()));
            }
        }
        if at.1.kind == Kind::Pod {
            let members = desired.resources.iter().filter(|(_, member)| {
                member.needs.contains(&Need::Resource { module: at.0.clone(), key: at.1.clone() })
                    && member.facts.starts_with_pod
            });
            open.extend(members.map(|(key, _)| (at.0.clone(), key.clone())));
        }
    }
    running
}

struct One<'a> {
    given: Given<'a>,
    module: &'a str,
    key: &'a ResourceKey,
    resource: &'a Resource,
    entry: Option<&'a Entry>,
}

impl One<'_> {
    fn decide(&self, at_boot: AtBoot) -> Decided {
        let mut decided = Decided {
            planned: Planned {
                change: Change::Unchanged,
                unit: self.resource.unit.clone(),
                image: self.resource.facts.image.clone(),
                because: String::new(),
                object: self.resource.object.clone(),
            },
            ..Decided::default()
        };
        match &self.resource.body {
            Body::Directory { path, mode, owner } => {
                if self.is_missing(path) {
                    decided.change(Change::Create, format!("{path} is not there"));
                    decided.make = Some(Act::MakeDirectory { path: path.clone(), mode: *mode, owner: owner.clone() });
                } else if self.entry.is_none() && moves_to(self.given, self.module, path) {
                    decided.change(Change::Change, format!("{path} was made for a mount that moves there"));
                }
            }
            Body::Link { path, target } => {
                if self.is_missing(path) {
                    decided.change(Change::Create, format!("{path} is not there"));
                    decided.make = Some(Act::MakeLink { path: path.clone(), target: target.clone() });
                }
            }
            Body::PlainVolume if self.entry.is_none() => {
                decided.change(Change::Create, "Podman makes it at the first start".to_owned());
            }
            Body::File { .. } => self.files(&mut decided),
            Body::Quadlet { .. } | Body::Unit { .. } => {
                self.files(&mut decided);
                self.unit(at_boot, &mut decided);
                self.second_updater(&mut decided);
            }
            Body::PlainVolume | Body::Opaque => {}
        }
        decided
    }

    fn is_missing(&self, path: &HostPath) -> bool {
        self.given.observed.paths.get(path).is_some_and(|facts| matches!(facts.state, PathState::Missing))
    }

    fn note(&self, note: &str, sentence: String) -> Note {
        Note {
            module: self.module.to_owned(),
            resource: self.key.clone(),
            note: note.to_owned(),
            sentence,
            unit: self.resource.unit.clone(),
        }
    }

    fn files(&self, decided: &mut Decided) {
        for file in wanted_files(self.entry, self.module, self.key, self.resource) {
            match file_state(self.given, self.entry, &file) {
                FileState::Same => {}
                FileState::Write { replaces } => {
                    let change = if self.entry.is_some() { Change::Change } else { Change::Create };
                    let verb = if replaces.is_some() { "is to be changed" } else { "is to be written" };
                    decided.change(change, format!("{} {verb}", file.path));
                    decided.writes.push((file, replaces));
                }
                FileState::Edited | FileState::EditedTwice => {
                    let sentence = format!("{} was edited on this host and is left as it is", file.path);
                    decided.notes.push(self.note("overridden", sentence));
                }
            }
        }
        let pinned = known_pin(self.entry, self.resource).is_some();
        if self.key.kind == Kind::Container && !pinned {
            decided.image.clone_from(&self.resource.facts.image);
        }
    }

    /// The trailer switches it off where it pins the image; said once, when it is deployed.
    fn second_updater(&self, decided: &mut Decided) {
        let said = decided.planned.change != Change::Unchanged;
        if let Some(updater) = self.resource.facts.second_updater.as_ref().filter(|_| said) {
            let sentence = format!(
                "{} has {updater}, a second updater: it is without effect, since the image is pinned",
                self.key
            );
            decided.notes.push(self.note("second-updater", sentence));
        }
    }

    /// Starts, restarts, enables: from what runs, not from what was done last time.
    fn unit(&self, at_boot: AtBoot, decided: &mut Decided) {
        let Some(unit) = self.resource.unit.as_deref() else { return };
        if let Body::Unit { install: true, .. } = &self.resource.body {
            decided.enable = !self.entry.is_some_and(|entry| entry.enabled);
        }
        let state = self.given.observed.units.get(unit).map_or("inactive", |unit| unit.active_state.as_str());
        let up = matches!(state, "active" | "reloading" | "refreshing");
        if (up || state == "activating") && self.differs(decided) {
            decided.run = Run::Restart;
            decided.change(Change::Recreate, format!("{unit} runs another definition"));
        }
        if up {
            decided.notes.extend(self.unhealthy());
        }
        // A unit that is still starting, or is started again and again, is not up: a start joins its job and is watched.
        if up || decided.run == Run::Restart || unit.contains("@.") {
            return;
        }
        let oneshot_done =
            self.resource.facts.oneshot && state == "inactive" && self.entry.is_some_and(|e| e.ran && !e.intent);
        match at_boot {
            AtBoot::Rests => {
                if decided.planned.change != Change::Unchanged && !self.is_triggered() {
                    let sentence = format!("{unit} is loaded and not started: nothing that starts at boot pulls it in");
                    decided.notes.push(self.note("not-started", sentence));
                }
            }
            AtBoot::Runs if oneshot_done && decided.writes.is_empty() => {}
            AtBoot::Runs if state == "inactive" && self.entry.is_some_and(|entry| entry.ran && !entry.intent) => {
                let sentence = format!(
                    "{unit} was stopped by the operator and stays stopped; start it with: systemctl start {unit}"
                );
                decided.notes.push(self.note("stopped-by-operator", sentence));
            }
            AtBoot::Runs => {
                decided.run = Run::Start;
                decided.change(Change::Change, format!("{unit} is {state}"));
            }
        }
    }

    /// A container of ours that runs and is not well: it is as deployed, and not as asked for.
    fn unhealthy(&self) -> Option<Note> {
        let name = self.resource.object.as_deref().filter(|_| self.key.kind == Kind::Container)?;
        let container = self.given.observed.containers.get(name)?;
        let sentence = format!(
            "container {name} runs and is unhealthy; see: podman inspect {name} --format '{{{{.State.Health}}}}'"
        );
        (container.health.as_deref() == Some("unhealthy")).then(|| self.note("unhealthy", sentence))
    }

    /// True for the unit of a timer, socket or path: its start is up to that one.
    fn is_triggered(&self) -> bool {
        let need = Need::Resource { module: self.module.to_owned(), key: self.key.clone() };
        let units = self.given.desired.modules.get(self.module).into_iter().flat_map(|module| &module.resources);
        units.into_iter().any(|(key, unit)| key.kind == Kind::Unit && unit.needs.contains(&need))
    }

    /// True when what runs is not what is asked for: by the label that the running thing carries, or, where Podman takes
    /// no label, by the hash in the ledger.
    fn differs(&self, decided: &Decided) -> bool {
        match (&self.resource.body, self.key.kind) {
            (Body::Quadlet { hash, .. }, Kind::Container) => {
                let name = self.resource.object.as_deref().unwrap_or_default();
                let asset =
                    decided.writes.iter().any(|(file, _)| matches!(file.content, crate::step::FileContent::Bytes(_)));
                let repinned = decided.image.is_some() && self.entry.is_some_and(|entry| entry.pin.is_some());
                let label = self.given.observed.containers.get(name).and_then(|c| c.labels.get(HASH_LABEL));
                asset || repinned || label.is_some_and(|label| label != hash)
            }
            (Body::Quadlet { hash, .. }, Kind::Pod | Kind::Kube | Kind::Image | Kind::Build) => {
                self.entry.is_some_and(|entry| entry.hash.as_ref().is_some_and(|known| known != hash))
            }
            // Restarting a volume's or network's unit restarts every container that requires it: they are only started.
            (Body::Quadlet { .. }, _) => false,
            (Body::Unit { .. }, _) => !decided.writes.is_empty() && self.entry.is_some(),
            _ => false,
        }
    }
}

impl Decided {
    /// Raises the verb; the first clause that raised it stays.
    fn change(&mut self, change: Change, because: String) {
        let made = self.planned.change == Change::Create;
        if !made && change > self.planned.change {
            self.planned.change = change;
            self.planned.because = because;
        }
    }
}

/// A changed file restarts the running units that mount or read it: they would go on with the old one.
fn restart_users(given: Given<'_>, all: &mut BTreeMap<At, Decided>) {
    let changed: BTreeSet<At> = all
        .iter()
        .filter(|((_, key), decided)| key.kind == Kind::File && decided.planned.change == Change::Change)
        .map(|(at, _)| at.clone())
        .collect();
    for ((module, key), decided) in all.iter_mut() {
        let resource = given.desired.modules.get(module).and_then(|desired| desired.resources.get(key));
        let needs = resource.into_iter().flat_map(|resource| &resource.needs);
        let file = needs.into_iter().find_map(|need| match need {
            Need::Resource { module, key } if changed.contains(&(module.clone(), key.clone())) => Some(key),
            _ => None,
        });
        let unit = decided.planned.unit.as_ref().and_then(|unit| given.observed.units.get(unit));
        let runs = unit.is_some_and(|unit| unit.active_state == "active");
        if let (Some(file), true, Kind::Container | Kind::Kube | Kind::Pod) = (file, runs, key.kind) {
            decided.run = Run::Restart;
            decided.change(Change::Recreate, format!("{file} changed"));
        }
    }
}

/// Resources that the ledger has and the module, which could be read, does not ask for any more.
fn removals(given: Given<'_>, held: &BTreeSet<At>, all: &mut BTreeMap<At, Decided>) {
    for (name, entries) in &given.ledger.modules {
        let module = name.as_str();
        let Some(desired) = given.desired.modules.get(module).filter(|_| given.scope.has(module)) else { continue };
        // While the whole module is held nothing of it is removed: what it asks for is not known for sure.
        let whole = desired.resources.keys().all(|key| held.contains(&(module.to_owned(), key.clone())));
        if whole || entries.operator_hold.is_some() {
            continue;
        }
        // What is held runs as it was deployed, and may need what its new definition does not name any more: a stop of
        // that volume's unit would stop it, and its directory would no longer be ours if the change is taken back.
        let deployed =
            |key: &ResourceKey| held.contains(&(module.to_owned(), key.clone())) && entries.resources.contains_key(key);
        let waits = desired.resources.keys().any(deployed);
        for (key, entry) in entries.resources.iter().filter(|(key, _)| !desired.resources.contains_key(*key)) {
            let decided = if waits { waiting(module, key, entry) } else { removal(given, module, key, entry) };
            all.insert((module.to_owned(), key.clone()), decided);
        }
    }
}

fn waiting(module: &str, key: &ResourceKey, entry: &Entry) -> Decided {
    let note = Note {
        module: module.to_owned(),
        resource: key.clone(),
        note: "left-behind".to_owned(),
        sentence: format!(
            "{key} is no longer in the module; left until what is held there is applied, which may use it"
        ),
        unit: entry.unit.clone(),
    };
    Decided { notes: vec![note], stays: true, ..Decided::default() }
}

fn removal(given: Given<'_>, module: &str, key: &ResourceKey, entry: &Entry) -> Decided {
    let disable = if entry.enabled { Disable::Yes } else { Disable::No };
    let mut removal = Removal { unit: entry.unit.clone(), disable, files: Vec::new() };
    let mut left = Vec::new();
    for (path, sha256) in &entry.paths {
        let state = given.observed.paths.get(path).map(|facts| &facts.state);
        match (key.kind, state) {
            (_, Some(PathState::Missing)) => {}
            (Kind::Directory | Kind::Link, _) => left.push(format!("{} {path}", key.kind)),
            (_, Some(PathState::File { sha256: Some(disk), .. })) if disk == sha256 => {
                removal.files.push((path.clone(), sha256.clone()));
            }
            _ => left.push(format!("{path}, which was edited on this host")),
        }
    }
    if let (Some(object), Kind::Volume | Kind::Network) = (&entry.object, key.kind) {
        left.push(format!("{} {object}", key.kind));
    }
    let notes = left.iter().map(|what| Note {
        module: module.to_owned(),
        resource: key.clone(),
        note: "left-behind".to_owned(),
        sentence: format!("{key} is no longer in the module; left: {what}"),
        unit: entry.unit.clone(),
    });
    Decided {
        notes: notes.collect(),
        planned: Planned {
            change: Change::Remove,
            unit: entry.unit.clone(),
            image: None,
            because: "it is no longer in the module".to_owned(),
            object: entry.object.clone(),
        },
        removal: Some(removal),
        ..Decided::default()
    }
}
