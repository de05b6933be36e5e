//! What the operator reads: reasons, causes, sentences, for the shapes of the founding outages.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::{Change, Given, Plan, Scope, plan};
use crate::desired::{Body, Desired, DesiredModule, Need, Resource};
use crate::hold::{Hold, Reason};
use crate::ledger::{Entry, Ledger, ModuleEntry};
use crate::name::{HostPath, ModuleName};
use crate::observed::{
    Container, Listener, Observed, PathFacts, PathState, PortOwner, UnitFileHit, UnitFileRank, Volume,
};
use crate::ports::{PortClaim, Protocol, Span};
use crate::quadlet::{Mount, MountType, QuadletFacts};
use crate::resource::{Kind, ResourceKey};

const MODULE: &str = "route-proxy";

fn path(text: &str) -> HostPath {
    HostPath::new(text).unwrap()
}

fn key(text: &str) -> ResourceKey {
    text.parse().unwrap()
}

fn needs(keys: &[&str]) -> BTreeSet<Need> {
    keys.iter().map(|text| Need::Resource { module: MODULE.to_owned(), key: key(text) }).collect()
}

fn resource(body: Body) -> Resource {
    let (needs, facts) = (BTreeSet::new(), Arc::default());
    Resource { source: "x.container".to_owned(), unit: None, object: None, body, needs, facts, troubles: Vec::new() }
}

fn known(resource: &mut Resource) -> &mut QuadletFacts {
    Arc::make_mut(&mut resource.facts)
}

fn quadlet(file: &str, unit: &str, object: &str) -> Resource {
    let body = Body::Quadlet {
        path: path(&format!("/etc/containers/systemd/holdfast/{MODULE}/{file}")),
        text: String::new(),
        assets: BTreeMap::new(),
        hash: "h1".to_owned(),
    };
    Resource { unit: Some(unit.to_owned()), object: Some(object.to_owned()), ..resource(body) }
}

fn directory(at: &str) -> (ResourceKey, Resource) {
    let body = Body::Directory { path: path(at), mode: 0o755, owner: ("root".to_owned(), "root".to_owned()) };
    (ResourceKey::new(Kind::Directory, at), resource(body))
}

/// The edge proxy: a network, a container on a directory, a second one that joins the first.
fn proxy() -> BTreeMap<ResourceKey, Resource> {
    let mut resources = BTreeMap::from([directory("/var/lib/route-proxy/ca")]);
    resources.insert(key("network/edge"), quadlet("edge.network", "edge-network.service", "systemd-edge"));
    let mut ca = quadlet("ca.container", "ca.service", "ca");
    ca.needs = needs(&["directory//var/lib/route-proxy/ca", "network/edge"]);
    known(&mut ca).wanted_at_boot = true;
    resources.insert(key("container/ca"), ca);
    let mut side = quadlet("side.container", "side.service", "side");
    side.needs = needs(&["container/ca"]);
    known(&mut side).wanted_at_boot = true;
    resources.insert(key("container/side"), side);
    resources
}

fn desired(resources: BTreeMap<ResourceKey, Resource>) -> Desired {
    let name = Some(ModuleName::new(MODULE).unwrap());
    Desired {
        modules: BTreeMap::from([(MODULE.to_owned(), DesiredModule { name, resources, ..DesiredModule::default() })]),
    }
}

fn facts(at: &str, state: PathState) -> (HostPath, PathFacts) {
    (path(at), PathFacts { state, real: path(at), unsafe_link: None, unmounted: None, writable: true })
}

fn full(at: &str) -> (HostPath, PathFacts) {
    facts(at, PathState::Directory { uid: 0, gid: 0, mode: 0o755, empty: false, mark: None })
}

fn decide(desired: &Desired, observed: &Observed, ledger: &Ledger) -> Plan {
    plan(Given { desired, observed, ledger, foreign_quadlets: &BTreeMap::new(), scope: &Scope::All })
}

fn hold<'a>(plan: &'a Plan, resource: &str) -> &'a Hold {
    plan.holds.iter().find(|hold| hold.resource == key(resource)).unwrap()
}

#[test]
fn a_found_directory_holds_what_mounts_it_and_what_needs_that() {
    let mut observed = Observed::default();
    observed.paths.extend([full("/var/lib/route-proxy/ca")]);
    let plan = decide(&desired(proxy()), &observed, &Ledger::default());
    assert_eq!(plan.holds.len(), 3);
    let (root, ca, side) =
        (hold(&plan, "directory//var/lib/route-proxy/ca"), hold(&plan, "container/ca"), hold(&plan, "container/side"));
    assert_eq!((root.reason, ca.reason, side.reason), (Reason::Found, Reason::NeedsHeld, Reason::NeedsHeld));
    assert_eq!(
        root.sentence,
        "directory//var/lib/route-proxy/ca is held: directory /var/lib/route-proxy/ca was found on this host \
         (not empty), not made by holdfast; left as it is until route-proxy is taken"
    );
    assert_eq!(
        ca.sentence,
        "container/ca is held: it would mount /var/lib/route-proxy/ca, found on this host; \
         not run until route-proxy is taken"
    );
    assert_eq!(ca.cause, root.cause);
    assert_eq!(side.cause, root.cause);
    assert!(plan.holds.iter().all(|hold| hold.waiting_on_take));
    // What the held ones need and nobody else holds is made.
    assert_eq!(plan.resources[MODULE][&key("network/edge")].change, Change::Create);
    assert!(plan.steps.iter().all(|step| step.resource == key("network/edge")));
}

#[test]
fn what_a_take_would_not_end_is_not_waiting_on_take() {
    let mut resources = proxy();
    resources.get_mut(&key("container/ca")).unwrap().needs.insert(Need::Secret("token".to_owned()));
    let mut observed = Observed::default();
    observed.paths.extend([full("/var/lib/route-proxy/ca")]);
    let plan = decide(&desired(resources), &observed, &Ledger::default());
    let ca = hold(&plan, "container/ca");
    assert_eq!((ca.reason, ca.waiting_on_take), (Reason::MissingSecret, false));
    assert_eq!(ca.also, BTreeSet::from([Reason::NeedsHeld]));
    assert!(!hold(&plan, "container/side").waiting_on_take);
    assert!(hold(&plan, "directory//var/lib/route-proxy/ca").waiting_on_take);
}

#[test]
fn a_label_that_anybody_can_copy_is_not_ours() {
    let mut container =
        Container { state: "running".to_owned(), image: "localhost/app:1".to_owned(), ..Container::default() };
    container.labels.insert("io.holdfast.module".to_owned(), MODULE.to_owned());
    let mut observed = Observed::default();
    observed.containers.insert("ca".to_owned(), container);
    let plan = decide(&desired(proxy()), &observed, &Ledger::default());
    assert_eq!(
        hold(&plan, "container/ca").sentence,
        "container/ca is held: container ca was found on this host (running localhost/app:1), not made by holdfast; \
         not run until route-proxy is taken"
    );
}

#[test]
fn a_held_port_names_its_holder() {
    let claim = PortClaim { span: Span::AnyV4, port: 443, protocol: Protocol::Tcp };
    let mut resources = proxy();
    known(resources.get_mut(&key("container/ca")).unwrap()).ports.push(claim.clone());
    for (owner, clause, take) in [
        (PortOwner::Container { name: "oldproxy".to_owned() }, "container oldproxy, not made by holdfast", true),
        (PortOwner::Unit { unit: "nginx.service".to_owned() }, "unit nginx.service, not made by holdfast", true),
        (PortOwner::UserUnit { unit: "web.service".to_owned(), uid: 1000 }, "unit web.service of user 1000", false),
        (
            PortOwner::Process { uid: 33, process: Some((7, "httpd".to_owned())) },
            "process httpd (pid 7) of user 33",
            false,
        ),
    ] {
        let listeners = vec![Listener { claim: claim.clone(), owner }];
        let plan =
            decide(&desired(resources.clone()), &Observed { listeners, ..Observed::default() }, &Ledger::default());
        let ca = hold(&plan, "container/ca");
        let expected = format!("container/ca is held: port 0.0.0.0:443/tcp is held by {clause}");
        assert!(ca.sentence.starts_with(&expected), "{}", ca.sentence);
        assert_eq!((ca.reason, ca.waiting_on_take), (Reason::PortInUse, take));
    }
}

#[test]
fn unit_files_hide_or_are_hidden() {
    for (file, rank, masked, reason, take) in [
        ("/etc/systemd/system/ca.service", UnitFileRank::Stronger, false, Reason::Found, true),
        ("/etc/systemd/system/ca.service", UnitFileRank::Stronger, true, Reason::Masked, false),
        ("/usr/lib/systemd/system/ca.service", UnitFileRank::Vendor, false, Reason::VendorUnit, false),
    ] {
        let mut observed = Observed::default();
        let hit = UnitFileHit { path: file.to_owned(), rank, masked };
        observed.unit_files.insert("ca.service".to_owned(), vec![hit]);
        let plan = decide(&desired(proxy()), &observed, &Ledger::default());
        let ca = hold(&plan, "container/ca");
        assert_eq!((ca.reason, ca.waiting_on_take), (reason, take));
        assert!(ca.sentence.contains(file), "{}", ca.sentence);
    }
}

fn ours(entries: &[(&str, Entry)]) -> Ledger {
    let resources = entries.iter().map(|(text, entry)| (key(text), entry.clone())).collect();
    let module = ModuleEntry { operator_hold: None, resources };
    Ledger { modules: BTreeMap::from([(ModuleName::new(MODULE).unwrap(), module.into())]), ..Ledger::default() }
}

fn data_at(source: &str) -> Mount {
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

#[test]
fn a_moved_mount_whose_data_stayed_behind_is_held() {
    let mut app = quadlet("app.container", "app.service", "app");
    known(&mut app).mounts.push(data_at("/var/lib/app"));
    let desired = desired(BTreeMap::from([(key("container/app"), app)]));
    let mounts = BTreeMap::from([("/data".to_owned(), path("/var/old/app"))]);
    let ledger = ours(&[("container/app", Entry { mounts, ..Entry::default() })]);
    let mut observed = Observed::default();
    observed.paths.extend([full("/var/old/app")]);
    let held = decide(&desired, &observed, &ledger);
    assert_eq!(hold(&held, "container/app").reason, Reason::MountMoved);
    assert!(held.steps.is_empty());
    observed.paths.extend([full("/var/lib/app")]);
    assert!(decide(&desired, &observed, &ledger).holds.is_empty());
}

#[test]
fn a_changed_volume_definition_is_not_called_applied() {
    let volume = quadlet("data.volume", "data-volume.service", "systemd-data");
    let desired = desired(BTreeMap::from([(key("volume/data"), volume)]));
    let ledger = ours(&[("volume/data", Entry::default())]);
    let labels = BTreeMap::from([("io.holdfast.desired".to_owned(), "h0".to_owned())]);
    let mut observed = Observed::default();
    observed.volumes.insert("systemd-data".to_owned(), Volume { labels, ..Volume::default() });
    let plan = decide(&desired, &observed, &ledger);
    assert_eq!(hold(&plan, "volume/data").reason, Reason::VolumeDiffers);
}

#[test]
fn a_container_of_our_name_and_label_that_no_unit_of_ours_runs_is_found() {
    let entry = Entry { unit: Some("ca.service".to_owned()), ..Entry::default() };
    let ledger = ours(&[("container/ca", entry)]);
    let labels = BTreeMap::from([("io.holdfast.module".to_owned(), MODULE.to_owned())]);
    for (unit, found) in [(Some("ca.service"), false), (None, true), (Some("other.service"), true)] {
        let unit = unit.map(str::to_owned);
        let container = Container { state: "running".to_owned(), labels: labels.clone(), unit, ..Container::default() };
        let mut observed = Observed::default();
        observed.containers.insert("ca".to_owned(), container);
        let plan = decide(&desired(proxy()), &observed, &ledger);
        assert_eq!(plan.holds.iter().any(|hold| hold.resource == key("container/ca")), found);
    }
}
