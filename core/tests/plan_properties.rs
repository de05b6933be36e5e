//! Promises about every plan, on random modules and hosts: it is complete and disjoint, names nothing foreign in a step,
//! and applying its result again is empty.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use std::collections::{BTreeMap, BTreeSet};

use holdfast_core::confirm;
use holdfast_core::desired::{Body, Desired, DesiredModule, Need, Resource};
use holdfast_core::ledger::{Ledger, Pin};
use holdfast_core::name::{HostPath, ModuleName};
use holdfast_core::observed::{
    Container, Image, Listener, Network, Observed, PathFacts, PathState, PortOwner, Unit, Volume,
};
use holdfast_core::plan::{Change, Given, Plan, Scope, content_sha256, plan};
use holdfast_core::ports::{PortClaim, Protocol, Span};
use holdfast_core::quadlet::{Mount, MountType, QuadletFacts};
use holdfast_core::resource::{Kind, ResourceKey};
use holdfast_core::step::{Act, FileContent, Outcome, PinSource};
use proptest::prelude::*;

/// One random container with what belongs to it.
#[derive(Debug, Clone)]
struct Piece {
    directory: bool,
    volume: bool,
    network: bool,
    file: bool,
    port: Option<u16>,
    boots: bool,
    uses_previous: bool,
    version: u8,
}

/// What a host has of its own: indices into the names that modules may ask for.
#[derive(Debug, Clone)]
struct Foreign {
    containers: BTreeSet<(usize, usize)>,
    directories: BTreeSet<(usize, usize)>,
    volumes: BTreeSet<(usize, usize)>,
    files: BTreeSet<(usize, usize)>,
    ports: BTreeSet<u16>,
}

fn piece() -> impl Strategy<Value = Piece> {
    (any::<[bool; 6]>(), proptest::option::of(8000_u16..8004), 0_u8..3).prop_map(|(flags, port, version)| Piece {
        directory: flags[0],
        volume: flags[1],
        network: flags[2],
        file: flags[3],
        port,
        boots: flags[4],
        uses_previous: flags[5],
        version,
    })
}

fn modules() -> impl Strategy<Value = Vec<Vec<Piece>>> {
    proptest::collection::vec(proptest::collection::vec(piece(), 1..4), 1..4)
}

fn foreign() -> impl Strategy<Value = Foreign> {
    let some = || proptest::collection::btree_set((0_usize..3, 0_usize..3), 0..3);
    (some(), some(), some(), some(), proptest::collection::btree_set(8000_u16..8004, 0..2)).prop_map(
        |(containers, directories, volumes, files, ports)| Foreign { containers, directories, volumes, files, ports },
    )
}

fn path(text: &str) -> HostPath {
    HostPath::new(text).unwrap()
}

fn claim(port: u16) -> PortClaim {
    PortClaim { span: Span::AnyV4, port, protocol: Protocol::Tcp }
}

fn resource(body: Body) -> Resource {
    Resource {
        source: "x".to_owned(),
        unit: None,
        object: None,
        body,
        needs: BTreeSet::new(),
        facts: std::sync::Arc::default(),
        troubles: Vec::new(),
    }
}

fn desired(modules: &[Vec<Piece>]) -> Desired {
    let mut desired = Desired::default();
    let mut ports = BTreeSet::new();
    for (m, pieces) in modules.iter().enumerate() {
        let name = format!("m{m}");
        let mut resources = BTreeMap::new();
        for (p, piece) in pieces.iter().enumerate() {
            let stem = format!("c{m}{p}");
            let mut container = quadlet(&name, &stem, Kind::Container, &format!("v{}", piece.version));
            container.object = Some(stem.clone());
            let image = Some(format!("localhost/app:{}", piece.version));
            let mut facts = QuadletFacts { image, wanted_at_boot: piece.boots, ..QuadletFacts::default() };
            // Two claims on one port are decided before the plan.
            if let Some(port) = piece.port.filter(|port| ports.insert(*port)) {
                facts.ports.push(claim(port));
            }
            let mut need = |key: &ResourceKey| {
                container.needs.insert(Need::Resource { module: name.clone(), key: key.clone() });
            };
            if piece.directory {
                let dir = path(&format!("/var/lib/{stem}"));
                let key = ResourceKey::new(Kind::Directory, dir.as_str());
                need(&key);
                facts.mounts.push(bind(dir.as_str()));
                resources.insert(key, resource(Body::Directory { path: dir, mode: 0o755, owner: root() }));
            }
            if piece.file {
                let file = path(&format!("/etc/{stem}.conf"));
                let key = ResourceKey::new(Kind::File, file.as_str());
                need(&key);
                let body = Body::File { path: file, content: vec![piece.version], mode: 0o644, owner: root() };
                resources.insert(key, resource(body));
            }
            if piece.volume {
                let key = ResourceKey::new(Kind::Volume, format!("{stem}-data"));
                need(&key);
                let mut volume = quadlet(&name, &format!("{stem}-data"), Kind::Volume, "v");
                volume.object = Some(format!("systemd-{stem}-data"));
                resources.insert(key, volume);
            }
            if piece.network {
                let key = ResourceKey::new(Kind::Network, format!("{stem}-net"));
                need(&key);
                let mut network = quadlet(&name, &format!("{stem}-net"), Kind::Network, "n");
                network.object = Some(format!("systemd-{stem}-net"));
                resources.insert(key, network);
            }
            if piece.uses_previous && p > 0 {
                need(&ResourceKey::new(Kind::Container, format!("c{m}{}", p - 1)));
            }
            container.facts = facts.into();
            resources.insert(ResourceKey::new(Kind::Container, stem), container);
        }
        let module = DesiredModule {
            name: Some(ModuleName::new(name.as_str()).unwrap()),
            resources,
            ..DesiredModule::default()
        };
        desired.modules.insert(name, module);
    }
    desired
}

fn quadlet(module: &str, stem: &str, kind: Kind, hash: &str) -> Resource {
    let file = format!("/etc/containers/systemd/holdfast/{module}/{stem}.{kind}");
    let unit = if kind == Kind::Container { format!("{stem}.service") } else { format!("{stem}-{kind}.service") };
    let body =
        Body::Quadlet { path: path(&file), text: format!("# {hash}"), assets: BTreeMap::new(), hash: hash.to_owned() };
    Resource { unit: Some(unit), ..resource(body) }
}

fn bind(source: &str) -> Mount {
    Mount {
        kind: MountType::Bind,
        source: source.to_owned(),
        file: None,
        target: "/data".to_owned(),
        read_only: false,
        relative: false,
        line: None,
    }
}

fn root() -> (String, String) {
    ("root".to_owned(), "root".to_owned())
}

fn facts(at: &str, state: PathState) -> PathFacts {
    PathFacts { state, real: path(at), unsafe_link: None, unmounted: None, writable: true }
}

fn directory(mark: Option<&str>) -> PathState {
    PathState::Directory { uid: 0, gid: 0, mode: 0o755, empty: true, mark: mark.map(str::to_owned) }
}

fn file(sha256: String) -> PathState {
    PathState::File { uid: 0, gid: 0, mode: 0o644, size: 1, sha256: Some(sha256) }
}

/// The host before anything is applied: what is foreign, and nothing else.
fn host(foreign: &Foreign) -> Observed {
    let mut host = Observed::default();
    for version in 0..3 {
        let image = Image { id: format!("{version:064}"), repo_digests: Vec::new() };
        host.images.insert(format!("localhost/app:{version}"), Some(image));
    }
    for (m, p) in &foreign.containers {
        let container = Container { id: format!("foreign{m}{p}"), state: "running".to_owned(), ..Container::default() };
        host.containers.insert(format!("c{m}{p}"), container);
    }
    for (m, p) in &foreign.volumes {
        host.volumes.insert(format!("systemd-c{m}{p}-data"), Volume::default());
    }
    for (m, p) in &foreign.directories {
        let at = format!("/var/lib/c{m}{p}");
        host.paths.insert(path(&at), facts(&at, directory(None)));
    }
    for (m, p) in &foreign.files {
        let at = format!("/etc/c{m}{p}.conf");
        host.paths.insert(path(&at), facts(&at, file("foreign".to_owned())));
    }
    for port in &foreign.ports {
        let owner = PortOwner::Process { uid: 0, process: None };
        host.listeners.push(Listener { claim: claim(*port), owner });
    }
    host
}

/// Everything that is asked for and not there is looked at as missing.
fn look(host: &Observed, desired: &Desired, ledger: &Ledger) -> Observed {
    let mut seen = host.clone();
    let bodies = desired.modules.values().flat_map(|module| module.resources.values()).map(|resource| &resource.body);
    let mut paths: BTreeSet<HostPath> = bodies
        .filter_map(|body| match body {
            Body::Quadlet { path, .. } | Body::Directory { path, .. } | Body::File { path, .. } => Some(path.clone()),
            _ => None,
        })
        .collect();
    for entry in ledger.modules.values().flat_map(|module| module.resources.values()) {
        paths.extend(entry.paths.keys().cloned());
    }
    for at in paths {
        seen.paths.entry(at.clone()).or_insert_with(|| facts(at.as_str(), PathState::Missing));
    }
    seen
}

/// Does to the host what the steps say.
fn execute(host: &mut Observed, plan: &Plan, desired: &Desired) -> Vec<Outcome> {
    let mut outcomes: Vec<Outcome> = Vec::new();
    for step in &plan.steps {
        let mut outcome = Outcome::Done;
        match &step.act {
            Act::Pull { .. } => panic!("every image is there"),
            Act::Pin { image, .. } => {
                let id = host.images[image].as_ref().unwrap().id.clone();
                outcome = Outcome::Pinned(Pin { written: image.clone(), deployed: id.clone(), image_id: id });
            }
            Act::MakeDirectory { path, .. } => {
                assert!(!host.paths.contains_key(path), "{path} would be made over something");
                host.paths.insert(path.clone(), facts(path.as_str(), directory(Some(&step.module))));
            }
            Act::WriteFile { path, content, replaces, .. } => {
                let now = host.paths.get(path).map(|facts| facts.state.clone());
                match (replaces, now) {
                    (None, None) => {}
                    (Some(sha), Some(PathState::File { sha256: Some(disk), .. })) => assert_eq!(*sha, disk),
                    other => panic!("{path}: {other:?}"),
                }
                let pin = match content {
                    FileContent::Quadlet { trailer, .. } => match &trailer.pin {
                        PinSource::Known(pin) => Some(pin),
                        PinSource::Step(id) => match &outcomes[*id] {
                            Outcome::Pinned(pin) => Some(pin),
                            other => panic!("{other:?}"),
                        },
                        PinSource::AsWritten => None,
                    },
                    FileContent::Bytes(_) => None,
                };
                host.paths.insert(path.clone(), facts(path.as_str(), file(content_sha256(content, pin))));
            }
            Act::RemoveFile { path, sha256 } => {
                let gone = host.paths.remove(path).expect("it is there");
                assert_eq!(gone.state, file(sha256.clone()));
            }
            Act::Stop { unit } => {
                host.units.remove(unit);
                host.containers.retain(|_, container| container.unit.as_ref() != Some(unit));
            }
            Act::Start { unit, .. } | Act::Restart { unit, .. } => {
                let active =
                    Unit { load_state: "loaded".to_owned(), active_state: "active".to_owned(), ..Unit::default() };
                host.units.insert(unit.clone(), active);
                make_object(host, desired, &step.module, &step.resource);
            }
            Act::MakeLink { .. }
            | Act::Reload
            | Act::ResetFailed { .. }
            | Act::Assert { .. }
            | Act::Disable { .. }
            | Act::Enable { .. } => {}
        }
        outcomes.push(outcome);
    }
    outcomes
}

fn make_object(host: &mut Observed, desired: &Desired, module: &str, key: &ResourceKey) {
    let resource = &desired.modules[module].resources[key];
    let Body::Quadlet { hash, .. } = &resource.body else { return };
    let name = resource.object.clone().unwrap();
    let labels = BTreeMap::from([
        ("io.holdfast.module".to_owned(), module.to_owned()),
        ("io.holdfast.desired".to_owned(), hash.clone()),
    ]);
    match key.kind {
        Kind::Container => {
            let container =
                Container { labels, state: "running".to_owned(), unit: resource.unit.clone(), ..Container::default() };
            host.containers.insert(name, container);
        }
        Kind::Volume => {
            host.volumes.insert(name, Volume { labels, ..Volume::default() });
        }
        Kind::Network => {
            host.networks.insert(name, Network { labels, ..Network::default() });
        }
        other => panic!("{other}"),
    }
}

/// One apply, as the agent does it.
fn apply(host: &mut Observed, desired: &Desired, ledger: &Ledger) -> (Plan, Ledger) {
    let foreign_quadlets = BTreeMap::new();
    let seen = look(host, desired, ledger);
    let given = Given { desired, observed: &seen, ledger, foreign_quadlets: &foreign_quadlets, scope: &Scope::All };
    let decided = plan(given);
    let intended = confirm::intents(ledger.clone(), &decided);
    let outcomes = execute(host, &decided, desired);
    let after = look(host, desired, &intended);
    let confirmed = confirm::confirmed(intended.clone(), &decided, &outcomes, desired, &after);
    (decided, confirmed)
}

fn complete_and_disjoint(plan: &Plan, desired: &Desired) {
    let held: BTreeSet<_> = plan.holds.iter().map(|hold| (hold.module.clone(), hold.resource.clone())).collect();
    assert_eq!(held.len(), plan.holds.len(), "a resource is held once");
    let mut planned: BTreeSet<(String, ResourceKey)> = BTreeSet::new();
    for (module, resources) in &plan.resources {
        let kept = resources.iter().filter(|(_, planned)| planned.change != Change::Remove);
        planned.extend(kept.map(|(key, _)| (module.clone(), key.clone())));
    }
    assert!(held.is_disjoint(&planned));
    let asked: BTreeSet<(String, ResourceKey)> = desired
        .modules
        .iter()
        .flat_map(|(module, desired)| desired.resources.keys().map(|key| (module.clone(), key.clone())))
        .collect();
    assert_eq!(held.union(&planned).cloned().collect::<BTreeSet<_>>(), asked);
    for step in &plan.steps {
        assert!(
            !held.contains(&(step.module.clone(), step.resource.clone())),
            "{} is held, and {}",
            step.resource,
            step.act
        );
    }
    for hold in &plan.holds {
        assert!(
            held.contains(&(hold.cause.module.clone(), hold.cause.resource.clone())),
            "{}: its cause is held",
            hold.sentence
        );
    }
}

fn names_nothing_foreign(plan: &Plan, foreign: &Foreign) {
    for step in &plan.steps {
        let (paths, unit) = match &step.act {
            Act::MakeDirectory { path, .. }
            | Act::MakeLink { path, .. }
            | Act::WriteFile { path, .. }
            | Act::RemoveFile { path, .. } => (Some(path.as_str()), None),
            Act::Stop { unit }
            | Act::ResetFailed { unit }
            | Act::Disable { unit }
            | Act::Enable { unit }
            | Act::Assert { unit, .. }
            | Act::Start { unit, .. }
            | Act::Restart { unit, .. } => (None, Some(unit.as_str())),
            Act::Pull { .. } | Act::Pin { .. } | Act::Reload => (None, None),
        };
        for (m, p) in &foreign.directories {
            assert_ne!(paths, Some(format!("/var/lib/c{m}{p}").as_str()));
        }
        for (m, p) in &foreign.files {
            assert_ne!(paths, Some(format!("/etc/c{m}{p}.conf").as_str()));
        }
        for (m, p) in &foreign.containers {
            assert_ne!(unit, Some(format!("c{m}{p}.service").as_str()));
        }
        for (m, p) in &foreign.volumes {
            assert_ne!(unit, Some(format!("c{m}{p}-data-volume.service").as_str()));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_plan_keeps_the_promises(first in modules(), second in modules(), foreign in foreign()) {
        let mut host = host(&foreign);
        let foreign_before: Vec<Container> =
            host.containers.values().filter(|container| container.id.starts_with("foreign")).cloned().collect();
        let mut ledger = Ledger::default();
        for asked in [&first, &second] {
            let desired = desired(asked);
            let (decided, confirmed) = apply(&mut host, &desired, &ledger);
            let known: Desired = desired.clone();
            complete_and_disjoint(&decided, &known);
            names_nothing_foreign(&decided, &foreign);
            let (again, unmoved) = apply(&mut host, &desired, &confirmed);
            prop_assert_eq!(&again.steps, &Vec::new(), "applying it again does something");
            for (key, planned) in again.resources.values().flatten() {
                prop_assert_eq!(planned.change, Change::Unchanged, "{}: {}", key, planned.because);
            }
            prop_assert_eq!(&unmoved, &confirmed);
            ledger = confirmed;
        }
        let foreign_after: Vec<Container> =
            host.containers.values().filter(|container| container.id.starts_with("foreign")).cloned().collect();
        prop_assert_eq!(foreign_before, foreign_after);
    }

    #[test]
    fn the_order_of_acts_keeps_the_needs(asked in modules(), foreign in foreign()) {
        let host = host(&foreign);
        let desired = desired(&asked);
        let seen = look(&host, &desired, &Ledger::default());
        let foreign_quadlets = BTreeMap::new();
        let ledger = Ledger::default();
        let given = Given {
            desired: &desired, observed: &seen, ledger: &ledger, foreign_quadlets: &foreign_quadlets, scope: &Scope::All,
        };
        let decided = plan(given);
        for (id, step) in decided.steps.iter().enumerate() {
            prop_assert!(step.needs.iter().all(|need| *need < id), "{} needs a later step", step.act);
        }
        let reloads = decided.steps.iter().filter(|step| step.act == Act::Reload).count();
        prop_assert!(reloads <= 1);
    }
}
