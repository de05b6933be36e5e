//! The acts, in their order: find images, make and write, stop and remove, one reload, check, enable, start.

use std::collections::{BTreeMap, BTreeSet};

use super::change::{Decided, Disable, Run};
use super::judge::leaving;
use super::{At, Given, needed};
use crate::desired::Body;
use crate::resource::Kind;
use crate::step::{Act, FileContent, Origin, PinSource, Step, StepId};
use crate::trailer;

/// All steps of a plan.
pub(super) fn steps(given: Given<'_>, held: &BTreeSet<At>, changes: &BTreeMap<At, Decided>) -> Vec<Step> {
    let order = in_order(given, held, changes);
    let mut steps = Steps { list: Vec::new(), material: BTreeMap::new() };
    let pins = images(given, &order, changes, &mut steps);
    materials(given, &order, changes, &pins, &mut steps);
    enable(&order, changes, &mut steps);
    let stops = removals(changes, &mut steps);
    let reload = reload(&order, changes, &mut steps);
    checks(given, &order, changes, reload, &mut steps);
    runs(given, &order, changes, &stops, &mut steps);
    steps.list
}

struct Steps {
    list: Vec<Step>,
    /// What must have gone well before a resource may be used.
    material: BTreeMap<At, Vec<StepId>>,
}

impl Steps {
    fn push(&mut self, at: &At, needs: Vec<StepId>, act: Act) -> StepId {
        self.list.push(Step { module: at.0.clone(), resource: at.1.clone(), needs, act });
        self.list.len() - 1
    }

    fn material(&mut self, at: &At, needs: Vec<StepId>, act: Act) -> StepId {
        let id = self.push(at, needs, act);
        self.material.entry(at.clone()).or_default().push(id);
        id
    }

    fn of(&self, at: &At) -> Vec<StepId> {
        self.material.get(at).cloned().unwrap_or_default()
    }
}

/// The changed resources, what is needed before what needs it.
fn in_order(given: Given<'_>, held: &BTreeSet<At>, changes: &BTreeMap<At, Decided>) -> Vec<At> {
    let mut order = Vec::new();
    let mut seen = BTreeSet::new();
    for at in changes.keys() {
        visit(given, held, at, &mut seen, &mut order);
    }
    order.retain(|at| changes.contains_key(at));
    order
}

fn visit(given: Given<'_>, held: &BTreeSet<At>, at: &At, seen: &mut BTreeSet<At>, order: &mut Vec<At>) {
    if held.contains(at) || !seen.insert(at.clone()) {
        return;
    }
    for needed in needed(given, at) {
        visit(given, held, &needed, seen, order);
    }
    order.push(at.clone());
}

/// Pulls come first, so that nothing has been touched when one fails; each image is asked for once.
fn images(
    given: Given<'_>, order: &[At], changes: &BTreeMap<At, Decided>, steps: &mut Steps,
) -> BTreeMap<String, StepId> {
    let wanted: BTreeMap<&String, &At> =
        order.iter().rev().filter_map(|at| Some((changes.get(at)?.image.as_ref()?, at))).collect();
    let mut pulls = BTreeMap::new();
    for (image, at) in &wanted {
        if !matches!(given.observed.images.get(*image), Some(Some(_))) {
            pulls.insert((*image).clone(), steps.push(at, Vec::new(), Act::Pull { image: (*image).clone() }));
        }
    }
    let mut pins = BTreeMap::new();
    for (image, at) in &wanted {
        let pulled = pulls.get(*image).copied();
        let fresh = pulled.is_some() || given.observed.pulled.contains(*image);
        let origin = if fresh { Origin::Pulled } else { Origin::Local };
        let needs = pulled.into_iter().collect();
        pins.insert((*image).clone(), steps.push(at, needs, Act::Pin { image: (*image).clone(), origin }));
    }
    pins
}

/// Directories, links and files. What a resource needs stands before its own file is written.
fn materials(
    given: Given<'_>, order: &[At], changes: &BTreeMap<At, Decided>, pins: &BTreeMap<String, StepId>, steps: &mut Steps,
) {
    for at in order {
        let Some(decided) = changes.get(at) else { continue };
        let needs: Vec<StepId> = needed(given, at).iter().flat_map(|needed| steps.of(needed)).collect();
        if let Some(make) = &decided.make {
            steps.material(at, needs.clone(), make.clone());
        }
        for (file, replaces) in &decided.writes {
            let mut content = file.content.clone();
            let mut needs = needs.clone();
            if let FileContent::Quadlet { trailer, .. } = &mut content {
                let pin = decided.image.as_ref().and_then(|image| pins.get(image));
                if let (PinSource::Step(step), Some(pin)) = (&mut trailer.pin, pin) {
                    *step = *pin;
                    needs.push(*pin);
                }
            }
            steps.material(
                at,
                needs,
                Act::WriteFile {
                    path: file.path.clone(),
                    content,
                    mode: file.mode,
                    owner: file.owner.clone(),
                    replaces: replaces.clone(),
                },
            );
        }
    }
}

/// Enabled before the one reload, so that systemd sees the links, too.
fn enable(order: &[At], changes: &BTreeMap<At, Decided>, steps: &mut Steps) {
    for at in order {
        if let Some((unit, true)) =
            changes.get(at).and_then(|decided| Some((decided.planned.unit.clone()?, decided.enable)))
        {
            let needs = steps.of(at);
            steps.push(at, needs, Act::Enable { unit });
        }
    }
}

/// What is gone from its module is stopped while its unit is still known, users before what they use.
fn removals(changes: &BTreeMap<At, Decided>, steps: &mut Steps) -> BTreeMap<At, StepId> {
    let mut stops = BTreeMap::new();
    let gone: Vec<(&At, &super::change::Removal)> =
        changes.iter().rev().filter_map(|(at, decided)| Some((at, decided.removal.as_ref()?))).collect();
    for (at, removal) in &gone {
        if let Some(unit) = &removal.unit {
            let stop = steps.push(at, Vec::new(), Act::Stop { unit: unit.clone() });
            stops.insert((*at).clone(), stop);
            if removal.disable == Disable::Yes {
                steps.push(at, vec![stop], Act::Disable { unit: unit.clone() });
            }
        }
    }
    for (at, removal) in &gone {
        for (path, sha256) in &removal.files {
            let needs = stops.get(*at).copied().into_iter().collect();
            steps.material(at, needs, Act::RemoveFile { path: path.clone(), sha256: sha256.clone() });
        }
    }
    stops
}

/// One reload for all, if any unit file or Quadlet file was written or removed.
fn reload(order: &[At], changes: &BTreeMap<At, Decided>, steps: &mut Steps) -> Option<StepId> {
    let concerns = |at: &At, decided: &Decided| {
        let removed = decided.removal.as_ref().is_some_and(|removal| removal.unit.is_some());
        (!decided.writes.is_empty() && at.1.kind != Kind::File) || removed
    };
    let gone = changes.keys().filter(|at| changes.get(*at).is_some_and(|decided| decided.removal.is_some()));
    let first = order.iter().chain(gone).find(|at| changes.get(*at).is_some_and(|decided| concerns(at, decided)))?;
    let reload = steps.push(first, Vec::new(), Act::Reload);
    for (at, decided) in changes {
        if let Some(unit) = decided.removal.as_ref().and_then(|removal| removal.unit.as_ref()) {
            steps.push(at, vec![reload], Act::ResetFailed { unit: unit.clone() });
        }
    }
    Some(reload)
}

/// Every unit that was written must be loaded from our file before it may start.
fn checks(given: Given<'_>, order: &[At], changes: &BTreeMap<At, Decided>, reload: Option<StepId>, steps: &mut Steps) {
    for at in order {
        let Some(decided) = changes.get(at).filter(|decided| !decided.writes.is_empty()) else { continue };
        let resource = given.desired.modules.get(&at.0).and_then(|desired| desired.resources.get(&at.1));
        let (Some(resource), Some(unit)) = (resource, &decided.planned.unit) else { continue };
        let (source, mark) = match &resource.body {
            Body::Quadlet { path, hash, .. } => {
                let section = decided.writes.iter().find_map(|(file, _)| match &file.content {
                    FileContent::Quadlet { trailer, .. } => Some(trailer.section.clone()),
                    FileContent::Bytes(_) => None,
                });
                (path.clone(), section.map(|section| trailer::mark(&section, hash)).unwrap_or_default())
            }
            Body::Unit { files, .. } => match files.keys().find(|path| path.file_name() == unit.as_str()) {
                Some(path) => (path.clone(), String::new()),
                None => continue,
            },
            _ => continue,
        };
        // A template has no unit of its own to look at.
        if !unit.contains("@.") {
            let needs: Vec<StepId> = steps.of(at).into_iter().chain(reload).collect();
            steps.material(at, needs, Act::Assert { unit: unit.clone(), source, mark });
        }
    }
}

/// Starts and restarts, all together: systemd orders them. What a unit needs must be on the host before.
fn runs(
    given: Given<'_>, order: &[At], changes: &BTreeMap<At, Decided>, stops: &BTreeMap<At, StepId>, steps: &mut Steps,
) {
    let mut runs: BTreeMap<&At, StepId> = BTreeMap::new();
    for at in order {
        let Some(decided) = changes.get(at) else { continue };
        let Some(unit) = decided.planned.unit.clone() else { continue };
        let mut needs = steps.of(at);
        for needed in &needed(given, at) {
            needs.extend(steps.of(needed));
            needs.extend(runs.get(needed));
        }
        let container = decided.planned.object.clone().filter(|_| at.1.kind == Kind::Container);
        let live = container.as_ref().and_then(|name| given.observed.containers.get(name));
        let former = live.and_then(|live| leaving(given, &at.0, at.1.kind, live));
        needs.extend(former.and_then(|key| stops.get(&(at.0.clone(), key))));
        let act = match decided.run {
            Run::Nothing => continue,
            Run::Start => Act::Start { unit, container },
            Run::Restart => Act::Restart { unit, container },
        };
        runs.insert(at, steps.push(at, needs, act));
    }
}
