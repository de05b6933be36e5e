//! How one module is, resource by resource. Truth comes from the running container, not from the last apply.

use std::collections::{BTreeMap, BTreeSet};

use super::{Counts, LastApply, ModuleStatus, Sources, State, is_root};
use shell_words::quote;

use crate::desired::{Body, DesiredModule, Need, Resource};
use crate::hold::{Hold, Reason};
use crate::name::ModuleName;
use crate::plan::{Change, Planned};
use crate::resource::{Kind, ResourceKey};

/// What can be said of one resource that is not held.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// It is as asked.
    Applied,
    /// It failed, and is still not so; why.
    Failed(String),
    /// The operator stopped it; the sentence.
    Stopped(String),
    /// The next apply would make or change it; why.
    Pending(String),
    /// The next apply would remove it; why.
    ToRemove(String),
}

type Global<'a> = (&'a str, &'a ResourceKey);

/// One look, with what follows from it for all modules.
pub struct Judge<'a> {
    sources: &'a Sources<'a>,
    last: Option<&'a LastApply>,
    wanted: BTreeSet<Global<'a>>,
    stopped: BTreeMap<Global<'a>, &'a str>,
}

impl<'a> Judge<'a> {
    pub fn new(sources: &'a Sources<'a>, last: Option<&'a LastApply>) -> Self {
        let stopped = sources.plan.notes.iter().filter(|note| note.note == "stopped-by-operator");
        let stopped = stopped.map(|note| ((note.module.as_str(), &note.resource), note.sentence.as_str())).collect();
        Self { sources, last, wanted: wanted(sources), stopped }
    }

    /// The whole module.
    pub fn module(&self, name: &str) -> ModuleStatus {
        let holds: Vec<&Hold> = self.sources.plan.holds.iter().filter(|hold| hold.module == name).collect();
        let held = u32::try_from(holds.len()).unwrap_or(u32::MAX);
        let mut counts = Counts { total: held, held, ..Counts::default() };
        let mut worst: Vec<(State, String, Option<String>)> = Vec::new();
        for (key, planned) in self.sources.plan.resources.get(name).into_iter().flatten() {
            let verdict = self.resource(name, key, planned);
            counts = counts.plus(Counts::one(&verdict));
            let unit = planned.unit.as_deref();
            match verdict {
                Verdict::Applied => {}
                Verdict::Failed(why) => worst.push((State::Failed, about(key, &why), unit.map(journal_of))),
                Verdict::Stopped(why) => {
                    worst.push((
                        State::Stopped,
                        clause(&why).to_owned(),
                        unit.map(|unit| format!("systemctl start {unit}")),
                    ));
                }
                Verdict::Pending(why) | Verdict::ToRemove(why) => {
                    // An apply would do nothing about what is on its way up.
                    let starting = unit.filter(|_| planned.change == Change::Unchanged);
                    let hint = starting.map_or_else(
                        || format!("holdfast apply {}", quote(name)),
                        |unit| format!("systemctl status {unit}"),
                    );
                    worst.push((State::Pending, about(key, &why), Some(hint)));
                }
            }
        }
        let mut reasons: BTreeMap<Reason, u32> = BTreeMap::new();
        for hold in &holds {
            *reasons.entry(hold.reason).or_default() += 1;
        }
        let waiting_on_take = holds.iter().any(|hold| hold.waiting_on_take);
        if let Some(state) = held_state(&reasons, waiting_on_take) {
            let hint = Some(format!("holdfast holds {}", quote(name)));
            worst.extend(self.causes(&holds).into_iter().map(|cause| (state, cause, hint.clone())));
        }
        worst.sort_by_key(|(state, _, _)| *state);
        let state = worst.first().map_or(State::Applied, |(state, _, _)| *state);
        let others = worst.iter().filter(|(other, _, _)| *other == state).count().saturating_sub(1);
        let more = u32::try_from(others).unwrap_or(u32::MAX);
        let (cause, hint) = match worst.into_iter().next() {
            Some((_, cause, hint)) => (Some(cause), hint),
            None => (None, None),
        };
        let (wanted, running) = self.containers(name);
        ModuleStatus {
            name: name.to_owned(),
            state,
            counts,
            wanted,
            running,
            reasons,
            waiting_on_take,
            cause,
            more,
            hint,
        }
    }

    fn resource(&self, module: &str, key: &ResourceKey, planned: &Planned) -> Verdict {
        let Planned { change, unit, image: _, because, object: _ } = planned;
        if *change == Change::Remove {
            return Verdict::ToRemove(because.clone());
        }
        if let Some(sentence) = self.stopped.get(&(module, key)) {
            return Verdict::Stopped((*sentence).to_owned());
        }
        if *change != Change::Unchanged {
            let at = (module.to_owned(), key.clone());
            if let Some(why) = self.last.and_then(|last| last.failed.get(&at)) {
                return Verdict::Failed(why.clone());
            }
            return match self.unit_failed(module, key, unit.as_deref()) {
                Some(why) => Verdict::Failed(why),
                None => Verdict::Pending(because.clone()),
            };
        }
        if let Some(why) = self.unit_failed(module, key, unit.as_deref()) {
            return Verdict::Failed(why);
        }
        match self.resource_of(module, key) {
            Some(resource)
                if matches!(key.kind, Kind::Container | Kind::Kube) && self.wanted.contains(&(module, key)) =>
            {
                self.runs(module, key, resource)
            }
            _ => Verdict::Applied,
        }
    }

    /// A unit of ours that systemd calls failed.
    fn unit_failed(&self, module: &str, key: &ResourceKey, unit: Option<&str>) -> Option<String> {
        let unit = unit?;
        let seen = self.sources.observed.units.get(unit)?;
        (seen.active_state == "failed" && self.is_ours(module, key)).then(|| format!("{unit} failed"))
    }

    /// Whether a wanted container of ours runs and is healthy.
    fn runs(&self, module: &str, key: &ResourceKey, resource: &Resource) -> Verdict {
        let object = resource.object.as_deref().unwrap_or(&key.name);
        let activating = resource.unit.as_deref().and_then(|unit| self.sources.observed.units.get(unit));
        let activating = activating.filter(|unit| unit.active_state == "activating");
        if key.kind == Kind::Kube {
            return match activating {
                Some(_) => Verdict::Pending("it is starting".to_owned()),
                None if self.is_running(module, key, resource) => Verdict::Applied,
                None => Verdict::Failed(format!("{} does not run", resource.unit.as_deref().unwrap_or(object))),
            };
        }
        match self.sources.observed.containers.get(object) {
            Some(container) if container.state == "running" => match container.health.as_deref() {
                None | Some("healthy" | "") => Verdict::Applied,
                Some("starting") => Verdict::Pending(format!("the health check of {object} has no answer yet")),
                Some(_) => Verdict::Failed(format!("container {object} runs and is unhealthy")),
            },
            found => match (activating, found) {
                (Some(unit), _) if unit.sub_state != "auto-restart" => Verdict::Pending("it is starting".to_owned()),
                (Some(_), _) => Verdict::Failed(format!("container {object} ends and is started again and again")),
                (None, Some(container)) => Verdict::Failed(format!(
                    "container {object} is {}, exit code {}",
                    container.state, container.exit_code
                )),
                (None, None) => Verdict::Failed(format!("no container {object} exists")),
            },
        }
    }

    /// How many containers a module wants to run, and how many of them run as ours.
    fn containers(&self, name: &str) -> (u32, u32) {
        let Some(module) = self.sources.desired.modules.get(name) else { return (0, 0) };
        let mut count = (0, 0);
        for (key, resource) in &module.resources {
            if counts_as_container(key) && self.wanted.contains(&(name, key)) {
                count.0 += 1;
                count.1 += u32::from(self.is_running(name, key, resource));
            }
        }
        count
    }

    fn is_running(&self, module: &str, key: &ResourceKey, resource: &Resource) -> bool {
        if !self.is_ours(module, key) {
            return false;
        }
        if key.kind == Kind::Kube {
            let unit = resource.unit.as_deref().and_then(|unit| self.sources.observed.units.get(unit));
            return unit.is_some_and(|unit| unit.active_state == "active");
        }
        let object = resource.object.as_deref().unwrap_or(&key.name);
        self.sources.observed.containers.get(object).is_some_and(|container| container.state == "running")
    }

    fn is_ours(&self, module: &str, key: &ResourceKey) -> bool {
        let name = ModuleName::new(module).ok();
        name.is_some_and(|name| self.sources.ledger.entry(&name, key).is_some())
    }

    fn resource_of(&self, module: &str, key: &ResourceKey) -> Option<&'a Resource> {
        self.sources.desired.modules.get(module)?.resources.get(key)
    }

    /// What the module's holds go back to, each once, in the order of the reasons.
    fn causes(&self, holds: &[&Hold]) -> Vec<String> {
        let mut sorted: Vec<&&Hold> = holds.iter().collect();
        sorted.sort_by_key(|hold| (!hold.waiting_on_take, !is_root(hold), hold.reason, &hold.resource));
        let (mut causes, mut clauses) = (BTreeSet::new(), BTreeSet::new());
        let firsts = sorted.into_iter().filter(|hold| {
            let new_cause = causes.insert((&hold.cause.module, &hold.cause.resource));
            // What holds the whole module says the same of each resource.
            let new_clause = clauses.insert(clause(&hold.sentence));
            new_cause && (new_clause || !is_of_module(hold.reason))
        });
        firsts.map(|hold| cause(hold)).collect()
    }
}

/// What systemd would start at boot and what it pulls in: units with an [Install] section, what they need, and the
/// containers of a pod that is started.
fn wanted<'a>(sources: &Sources<'a>) -> BTreeSet<Global<'a>> {
    let all: BTreeMap<Global<'a>, &'a Resource> =
        sources.desired.modules.iter().flat_map(|(name, module)| resources(name, module)).collect();
    let mut wanted: BTreeSet<Global<'a>> = BTreeSet::new();
    let mut open: Vec<Global<'a>> = Vec::new();
    for (at, resource) in &all {
        if starts_at_boot(at, resource, sources) {
            open.push(*at);
        }
    }
    while let Some(at) = open.pop() {
        if !wanted.insert(at) {
            continue;
        }
        let Some(resource) = all.get(&at) else { continue };
        // A timer's or socket's service is started by it, not with it: the same rule as the plan's.
        if at.1.kind == Kind::Unit {
            continue;
        }
        open.extend(resource.needs.iter().filter_map(pulled));
        if at.1.kind == Kind::Pod {
            open.extend(all.iter().filter(|(_, member)| joins(member, at)).map(|(member, _)| *member));
        }
    }
    wanted.retain(|at| all.get(at).is_some_and(|resource| !resource.facts.oneshot));
    wanted
}

fn resources<'a>(name: &'a str, module: &'a DesiredModule) -> impl Iterator<Item = (Global<'a>, &'a Resource)> {
    module.resources.iter().map(move |(key, resource)| ((name, key), resource))
}

fn starts_at_boot(at: &Global<'_>, resource: &Resource, sources: &Sources<'_>) -> bool {
    if at.1.name.ends_with('@') || at.1.name.contains("@.") {
        return false;
    }
    match &resource.body {
        Body::Quadlet { .. } => resource.facts.wanted_at_boot,
        Body::Unit { files: _, install } => *install,
        // What cannot be read is wanted as far as it ran before.
        Body::Opaque => {
            let name = ModuleName::new(at.0).ok();
            name.and_then(|name| sources.ledger.entry(&name, at.1)).is_some_and(|entry| entry.ran)
        }
        Body::PlainVolume | Body::File { .. } | Body::Directory { .. } | Body::Link { .. } => false,
    }
}

fn pulled(need: &Need) -> Option<Global<'_>> {
    match need {
        Need::Resource { module, key } => Some((module.as_str(), key)),
        Need::Path(_) | Need::EnvFile(_) | Need::Secret(_) | Need::Network(_) | Need::Container(_) | Need::Image(_) => {
            None
        }
    }
}

fn joins(member: &Resource, pod: Global<'_>) -> bool {
    member.facts.starts_with_pod && member.needs.iter().filter_map(pulled).any(|needed| needed == pod)
}

fn counts_as_container(key: &ResourceKey) -> bool {
    matches!(key.kind, Kind::Container | Kind::Kube)
}

pub(super) fn held_state(reasons: &BTreeMap<Reason, u32>, waiting_on_take: bool) -> Option<State> {
    let first = *reasons.keys().next()?;
    Some(match first {
        Reason::Unreadable => State::Unreadable,
        _ if waiting_on_take => State::WaitingOnTake,
        reason => State::Held(reason),
    })
}

/// "container/web is held: CLAUSE; not run until …" -> "CLAUSE": the row says the rest already.
fn clause(sentence: &str) -> &str {
    let rest = sentence.split_once(" is held: ").map_or(sentence, |(_, rest)| rest);
    let ends = ["; not run until ", "; left as it is until ", "; pod/"].into_iter().filter_map(|end| rest.find(end));
    ends.min().map_or(rest, |end| &rest[..end])
}

/// A reason that is the module's, not that of one resource.
fn is_of_module(reason: Reason) -> bool {
    matches!(reason, Reason::Operator | Reason::UnsafeOwner | Reason::Unreadable | Reason::MassRemoval)
}

/// Why something is held, in a row that begins with the module.
fn cause(hold: &Hold) -> String {
    let clause = clause(&hold.sentence);
    if is_of_module(hold.reason) { clause.to_owned() } else { about(&hold.resource, clause) }
}

/// A clause with its subject, unless it names it already.
fn about(key: &ResourceKey, clause: &str) -> String {
    if clause.contains(&key.name) { clause.to_owned() } else { format!("{key}: {clause}") }
}

fn journal_of(unit: &str) -> String {
    format!("journalctl -u {unit}")
}
