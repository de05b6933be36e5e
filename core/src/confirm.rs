//! Plan and outcomes -> ledger: intents before the first act, confirmations after the last.

use std::collections::BTreeMap;

use crate::desired::{Body, Desired, Resource};
use crate::hold::Hold;
use crate::ledger::{Entry, HoldRecord, Ledger, Pin};
use crate::name::{HostPath, ModuleName};
use crate::observed::{Observed, PathState};
use crate::plan::{Change, Plan, Scope, content_sha256, files_as_wanted};
use crate::quadlet::MountType;
use crate::resource::ResourceKey;
use crate::step::{Act, FileContent, Outcome, PinSource, Step};

/// The ledger as it must be on disk before the first act: everything that will be made is ours from now on, so that a
/// crash in the middle never makes our own thing foreign.
#[must_use]
pub fn intents(mut ledger: Ledger, plan: &Plan) -> Ledger {
    for (module, resources) in &plan.resources {
        let Ok(name) = ModuleName::new(module.as_str()) else { continue };
        for (key, planned) in resources.iter().filter(|(_, planned)| planned.change != Change::Unchanged) {
            let entry = ledger.module_mut(&name).resources.entry(key.clone()).or_default();
            entry.intent = true;
            entry.unit.clone_from(&planned.unit);
            entry.object.clone_from(&planned.object);
            for step in plan.steps.iter().filter(|step| is_for(step, module, key)) {
                match &step.act {
                    Act::WriteFile { path, .. } | Act::MakeDirectory { path, .. } => {
                        entry.paths.entry(path.clone()).or_default();
                    }
                    Act::MakeLink { path, target } => {
                        entry.paths.insert(path.clone(), target.clone());
                    }
                    Act::Pull { .. }
                    | Act::Pin { .. }
                    | Act::RemoveFile { .. }
                    | Act::Stop { .. }
                    | Act::Reload
                    | Act::ResetFailed { .. }
                    | Act::Assert { .. }
                    | Act::Disable { .. }
                    | Act::Enable { .. }
                    | Act::Start { .. }
                    | Act::Restart { .. } => {}
                }
            }
        }
    }
    ledger
}

/// The ledger after the acts. What went well is confirmed with what is there now; what did not keeps its intent, and the
/// files that were written for it are known all the same.
#[must_use]
pub fn confirmed(mut ledger: Ledger, plan: &Plan, outcomes: &[Outcome], desired: &Desired, after: &Observed) -> Ledger {
    let pins = pins(plan, outcomes);
    for (module, resources) in &plan.resources {
        let Ok(name) = ModuleName::new(module.as_str()) else { continue };
        for (key, planned) in resources {
            let steps: Vec<(&Step, &Outcome)> =
                plan.steps.iter().zip(outcomes).filter(|(step, _)| is_for(step, module, key)).collect();
            let well = steps.iter().all(|(_, outcome)| matches!(outcome, Outcome::Done | Outcome::Pinned(_)));
            if planned.change == Change::Remove {
                if well {
                    ledger.module_mut(&name).resources.remove(key);
                }
                continue;
            }
            let Some(resource) = desired.modules.get(module).and_then(|desired| desired.resources.get(key)) else {
                continue;
            };
            let Some(known) = ledger.entry(&name, key) else { continue };
            let as_wanted = files_as_wanted(after, known, module, key, resource);
            let mut entry = known.clone();
            for (step, _) in steps.iter().filter(|(_, outcome)| matches!(outcome, Outcome::Done)) {
                written(&mut entry, step, &pins, module, after);
            }
            if well {
                // What a run wrote that was cut off is not written again, and is as much ours.
                entry.paths.extend(as_wanted);
                entry.intent = false;
                confirm(&mut entry, resource, after);
            }
            if entry != *known {
                ledger.module_mut(&name).resources.insert(key.clone(), entry);
            }
        }
        if ledger.modules.get(&name).is_some_and(|entry| entry.resources.is_empty() && entry.operator_hold.is_none()) {
            ledger.modules.remove(&name);
        }
    }
    ledger
}

/// The holds of this report, with the time since when each of them has been there for the same reason.
#[must_use]
pub fn with_holds(mut ledger: Ledger, holds: &[Hold], scope: &Scope, now_usec: u64) -> Ledger {
    let all_before = ledger.holds.clone();
    ledger.holds.retain(|module, _| !scope.has(module));
    for hold in holds {
        let before = all_before.get(&hold.module).and_then(|holds| holds.get(&hold.resource));
        let since_usec =
            before.filter(|before| before.reason == hold.reason).map_or(now_usec, |before| before.since_usec);
        let record = HoldRecord { reason: hold.reason, since_usec };
        ledger.holds.entry(hold.module.clone()).or_default().insert(hold.resource.clone(), record);
    }
    ledger
}

/// True for a step of a resource.
pub(crate) fn is_for(step: &Step, module: &str, key: &ResourceKey) -> bool {
    step.module == module && step.resource == *key
}

/// What each Pin step found.
fn pins<'a>(plan: &Plan, outcomes: &'a [Outcome]) -> BTreeMap<usize, &'a Pin> {
    let pinned = |(id, (_, outcome)): (usize, (&Step, &'a Outcome))| match outcome {
        Outcome::Pinned(pin) => Some((id, pin)),
        Outcome::Done | Outcome::Failed(_) | Outcome::NotAttempted { after: _ } | Outcome::Stopped(_) => None,
    };
    plan.steps.iter().zip(outcomes).enumerate().filter_map(pinned).collect()
}

/// One act that was done.
fn written(entry: &mut Entry, step: &Step, pins: &BTreeMap<usize, &Pin>, module: &str, after: &Observed) {
    match &step.act {
        Act::WriteFile { path, content, .. } => {
            let pin = match content {
                FileContent::Quadlet { trailer, .. } => match &trailer.pin {
                    PinSource::Known(pin) => Some(pin),
                    PinSource::Step(step) => pins.get(step).copied(),
                    PinSource::AsWritten => None,
                },
                FileContent::Bytes(_) => None,
            };
            entry.paths.insert(path.clone(), content_sha256(content, pin));
            if pin.is_some() {
                entry.pin = pin.cloned();
            }
        }
        Act::MakeDirectory { path, .. } => {
            entry.paths.insert(path.clone(), mark(path, module, after));
        }
        Act::Enable { .. } => entry.enabled = true,
        Act::Pull { .. }
        | Act::Pin { .. }
        | Act::MakeLink { .. }
        | Act::RemoveFile { .. }
        | Act::Stop { .. }
        | Act::Reload
        | Act::ResetFailed { .. }
        | Act::Disable { .. }
        | Act::Assert { .. }
        | Act::Start { .. }
        | Act::Restart { .. } => {}
    }
}

/// `marked` where the directory carries our mark and keeps it over a reboot.
fn mark(path: &HostPath, module: &str, after: &Observed) -> String {
    let lasting = !path.as_str().starts_with("/run/");
    match after.paths.get(path).map(|facts| &facts.state) {
        Some(PathState::Directory { mark: Some(mark), .. }) if lasting && mark == module => "marked".to_owned(),
        _ => String::new(),
    }
}

fn confirm(entry: &mut Entry, resource: &Resource, after: &Observed) {
    entry.unit.clone_from(&resource.unit);
    entry.object.clone_from(&resource.object);
    if let Body::Quadlet { hash, .. } = &resource.body {
        entry.hash = Some(hash.clone());
        entry.mounts = binds(resource);
    }
    if let Body::Directory { path, .. } = &resource.body {
        entry.paths.entry(path.clone()).or_default();
    }
    let unit = resource.unit.as_ref().and_then(|unit| after.units.get(unit));
    let up = unit.is_some_and(|unit| matches!(unit.active_state.as_str(), "active" | "activating" | "reloading"));
    // A one-shot job that ended well has run, although it is inactive.
    let ended_well = resource.facts.oneshot && unit.is_none_or(|unit| unit.active_state == "inactive");
    entry.ran = up || (entry.ran && unit.is_none_or(|unit| unit.active_state == "inactive")) || ended_well;
}

fn binds(resource: &Resource) -> BTreeMap<String, HostPath> {
    let binds = resource.facts.mounts.iter().filter(|mount| mount.kind == MountType::Bind);
    binds.filter_map(|mount| Some((mount.target.clone(), HostPath::new(&mount.source).ok()?))).collect()
}
