//! The reasons that a resource has of its own, without regard to what it needs.

mod paths;

use std::collections::BTreeMap;

use super::{At, Given};
use shell_words::quote;

use crate::desired::{Body, Need, Resource};
use crate::hold::Reason;
use crate::ledger::{Entry, Ledger};
use crate::name::{HostPath, ModuleName};
use crate::observed::{Container, Observed, PathState, PortOwner, UnitFileHit, UnitFileRank};
use crate::quadlet::MountType;
use crate::resource::{Kind, ResourceKey};

/// One reason to hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct OwnReason {
    pub reason: Reason,
    /// The clause after "NAME is held: ".
    pub clause: String,
    pub hint: Option<String>,
    pub way_out: WayOut,
}

/// Whether a take of the module would end a hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WayOut {
    Take,
    Other,
}

/// The label that names the module on every container, pod, volume and network of ours.
pub(super) const MODULE_LABEL: &str = "io.holdfast.module";
/// The label that carries the hash of the definition.
pub(super) const HASH_LABEL: &str = "io.holdfast.desired";

/// All own reasons, of all modules. Resources without one are absent.
pub(super) fn own_reasons(given: Given<'_>) -> BTreeMap<At, Vec<OwnReason>> {
    let mut all = BTreeMap::new();
    for (module, desired) in &given.desired.modules {
        for (key, resource) in &desired.resources {
            let judge = Judge { given, module, name: desired.name.as_ref(), key, resource };
            let mut reasons = judge.reasons();
            reasons.sort_by_key(|own| own.reason);
            if !reasons.is_empty() {
                all.insert((module.clone(), key.clone()), reasons);
            }
        }
    }
    all
}

/// True when a mount of ours moves to this path: whether the data moved with it is judged for the mount, and a directory
/// that the operator filled for it is what was asked for.
pub(super) fn moves_to(given: Given<'_>, module: &str, path: &HostPath) -> bool {
    let resources = given.desired.modules.get(module).into_iter().flat_map(|module| &module.resources);
    resources.into_iter().any(|(key, resource)| {
        let entry = entry(given.ledger, module, key);
        let binds = resource.facts.mounts.iter().filter(|mount| mount.kind == MountType::Bind);
        let mut here = binds.filter(|mount| HostPath::new(&mount.source).is_ok_and(|source| source == *path));
        entry.is_some_and(|entry| here.any(|mount| entry.mounts.get(&mount.target).is_some_and(|old| old != path)))
    })
}

/// The ledger's entry of a resource.
pub(super) fn entry<'a>(ledger: &'a Ledger, module: &str, key: &ResourceKey) -> Option<&'a Entry> {
    ledger.entry(&ModuleName::new(module).ok()?, key)
}

/// True for a container of ours: in the ledger, marked, and run by a unit of its module. A label alone, which anybody can
/// copy, is nothing.
pub(super) fn is_our_container(given: Given<'_>, module: &str, key: &ResourceKey, container: &Container) -> bool {
    let marked = container.labels.get(MODULE_LABEL).is_some_and(|label| label == module);
    let entries = ModuleName::new(module).ok().and_then(|name| given.ledger.modules.get(&name));
    let units =
        entries.into_iter().flat_map(|module| module.resources.values()).filter_map(|entry| entry.unit.as_ref());
    let run_by_us = container.unit.as_ref().is_some_and(|unit| units.into_iter().any(|ours| ours == unit));
    let known = entry(given.ledger, module, key).is_some() || leaving(given, module, key.kind, container).is_some();
    marked && run_by_us && known
}

/// The resource of the same module that has this container in the ledger and is gone from the module: a renamed file.
pub(super) fn leaving(given: Given<'_>, module: &str, kind: Kind, container: &Container) -> Option<ResourceKey> {
    let entries = given.ledger.modules.get(&ModuleName::new(module).ok()?)?;
    let desired = given.desired.modules.get(module)?;
    entries.resources.iter().find_map(|(other, entry)| {
        let same = other.kind == kind && entry.unit.is_some() && entry.unit == container.unit;
        (same && !desired.resources.contains_key(other)).then(|| other.clone())
    })
}

struct Judge<'a> {
    given: Given<'a>,
    module: &'a str,
    name: Option<&'a ModuleName>,
    key: &'a ResourceKey,
    resource: &'a Resource,
}

impl Judge<'_> {
    fn reasons(&self) -> Vec<OwnReason> {
        let mut reasons: Vec<OwnReason> = self
            .resource
            .troubles
            .iter()
            .map(|trouble| OwnReason {
                reason: trouble.reason,
                clause: trouble.clause.clone(),
                hint: trouble.hint.clone(),
                way_out: WayOut::Other,
            })
            .collect();
        self.operator(&mut reasons);
        if matches!(self.resource.body, Body::Opaque) {
            return reasons;
        }
        self.unit(&mut reasons);
        self.object(&mut reasons);
        self.paths(&mut reasons);
        self.edited(&mut reasons);
        self.ports(&mut reasons);
        self.needs(&mut reasons);
        self.owners(&mut reasons);
        self.relabels(&mut reasons);
        self.moved_mounts(&mut reasons);
        reasons
    }

    fn observed(&self) -> &Observed {
        self.given.observed
    }

    fn entry(&self) -> Option<&Entry> {
        entry(self.given.ledger, self.module, self.key)
    }

    fn found(&self, clause: String) -> OwnReason {
        OwnReason {
            reason: Reason::Found,
            clause,
            hint: Some(format!("holdfast holds {}", quote(self.module))),
            way_out: WayOut::Take,
        }
    }

    fn other(reason: Reason, clause: String, hint: Option<String>) -> OwnReason {
        OwnReason { reason, clause, hint, way_out: WayOut::Other }
    }

    fn operator(&self, reasons: &mut Vec<OwnReason>) {
        let hold = self.name.and_then(|name| self.given.ledger.modules.get(name)?.operator_hold.as_ref());
        if let Some(hold) = hold {
            let clause = format!("the operator holds {}: {}", self.module, hold.note);
            reasons.push(Self::other(
                Reason::Operator,
                clause,
                Some(format!("holdfast unhold {}", quote(self.module))),
            ));
        }
    }

    /// Files that would hide our unit or that ours would hide.
    fn unit(&self, reasons: &mut Vec<OwnReason>) {
        let Some(unit) = self.resource.unit.as_deref() else { return };
        let empty = Vec::new();
        let hits = self.observed().unit_files.get(unit).unwrap_or(&empty);
        for UnitFileHit { path, rank, masked } in hits {
            let ours = HostPath::new(path).is_ok_and(|path| self.entry().is_some_and(|e| e.paths.contains_key(&path)));
            match rank {
                UnitFileRank::Stronger if *masked => reasons.push(Self::other(
                    Reason::Masked,
                    format!("the operator masked {unit} ({path})"),
                    Some(format!("systemctl unmask {unit}")),
                )),
                UnitFileRank::Stronger if ours => {}
                UnitFileRank::Stronger => {
                    reasons.push(self.found(format!("unit file {path} was found on this host, not made by holdfast")));
                }
                UnitFileRank::Vendor => reasons.push(Self::other(
                    Reason::VendorUnit,
                    format!("{unit} is a unit of the distribution or a package ({path})"),
                    Some(format!("rename {} in the module", self.resource.source)),
                )),
            }
        }
        for file in self.given.foreign_quadlets.get(unit).unwrap_or(&empty_files()) {
            reasons.push(self.found(format!("{file} was found on this host and makes {unit}, too")));
        }
    }

    /// What Podman already has under the name.
    fn object(&self, reasons: &mut Vec<OwnReason>) {
        let Some(name) = self.resource.object.as_deref() else { return };
        let observed = self.observed();
        let ours = self.entry().is_some();
        match self.key.kind {
            Kind::Container => {
                let live = observed.containers.get(name);
                if let Some(container) = live.filter(|live| !is_our_container(self.given, self.module, self.key, live))
                {
                    reasons.push(self.found(format!(
                        "container {name} was found on this host ({} {}{}), not made by holdfast",
                        container.state,
                        container.image,
                        container.unit.as_ref().map(|unit| format!(", unit {unit}")).unwrap_or_default()
                    )));
                }
            }
            Kind::Volume if !ours && observed.volumes.contains_key(name) => {
                reasons.push(self.found(format!("volume {name} was found on this host, not made by holdfast")));
            }
            Kind::Network if !ours && observed.networks.contains_key(name) => {
                reasons.push(self.found(format!("network {name} was found on this host, not made by holdfast")));
            }
            Kind::Pod if !ours && observed.pods.contains_key(name) => {
                reasons.push(self.found(format!("pod {name} was found on this host, not made by holdfast")));
            }
            Kind::Volume => self.differs(observed.volumes.get(name).map(|volume| &volume.labels), name, reasons),
            Kind::Network => self.differs(observed.networks.get(name).map(|network| &network.labels), name, reasons),
            Kind::Directory
            | Kind::File
            | Kind::Link
            | Kind::Image
            | Kind::Build
            | Kind::Pod
            | Kind::Kube
            | Kind::Unit => {}
        }
    }

    /// Podman never changes a volume or network that exists: `create --ignore` keeps the old options in silence.
    fn differs(&self, labels: Option<&BTreeMap<String, String>>, name: &str, reasons: &mut Vec<OwnReason>) {
        let Body::Quadlet { hash, .. } = &self.resource.body else { return };
        let Some(live) = labels.and_then(|labels| labels.get(HASH_LABEL)) else { return };
        if live != hash {
            let kind = self.key.kind;
            reasons.push(Self::other(
                Reason::VolumeDiffers,
                format!("its options changed, and {kind} {name} exists with the old ones, which Podman never changes"),
                Some(format!("podman {kind} inspect {name}")),
            ));
        }
    }

    /// Published ports that something foreign holds.
    fn ports(&self, reasons: &mut Vec<OwnReason>) {
        let mut told: Vec<&PortOwner> = Vec::new();
        for claim in &self.resource.facts.ports {
            for listener in self.observed().listeners.iter().filter(|listener| listener.claim.meets(claim)) {
                if told.contains(&&listener.owner) || self.is_ours(&listener.owner) {
                    continue;
                }
                told.push(&listener.owner);
                let clause = |owner: String| format!("port {claim} is held by {owner}");
                reasons.push(match &listener.owner {
                    PortOwner::Container { name } => OwnReason {
                        reason: Reason::PortInUse,
                        clause: clause(format!("container {name}, not made by holdfast")),
                        hint: Some(format!("holdfast holds {}", quote(self.module))),
                        way_out: WayOut::Take,
                    },
                    PortOwner::Unit { unit } => OwnReason {
                        reason: Reason::PortInUse,
                        clause: clause(format!("unit {unit}, not made by holdfast")),
                        hint: Some(format!("systemctl status {unit}")),
                        way_out: WayOut::Take,
                    },
                    PortOwner::UserUnit { unit, uid } => Self::other(
                        Reason::PortInUse,
                        clause(format!("unit {unit} of user {uid}")),
                        Some(format!("systemctl --user --machine={uid}@.host status {unit}")),
                    ),
                    PortOwner::Process { uid, process: Some((pid, name)) } => Self::other(
                        Reason::PortInUse,
                        clause(format!("process {name} (pid {pid}) of user {uid}")),
                        Some(format!("ps -f -p {pid}")),
                    ),
                    PortOwner::Process { uid, process: None } => Self::other(
                        Reason::PortInUse,
                        clause(format!("a process of user {uid}")),
                        Some("ss -lntup".to_owned()),
                    ),
                });
            }
        }
    }

    /// A port that a thing of ours holds is a claim of a module, and decided there.
    fn is_ours(&self, owner: &PortOwner) -> bool {
        let ours = |unit: &str| {
            let entries = self.given.ledger.modules.values().flat_map(|module| module.resources.values());
            entries.into_iter().any(|entry| entry.unit.as_deref() == Some(unit))
        };
        match owner {
            PortOwner::Container { name } => self.observed().containers.get(name).is_some_and(|container| {
                container.labels.contains_key(MODULE_LABEL) && container.unit.as_deref().is_some_and(ours)
            }),
            PortOwner::Unit { unit } => ours(unit),
            PortOwner::UserUnit { .. } | PortOwner::Process { .. } => false,
        }
    }

    /// Things it refers to that no module makes.
    fn needs(&self, reasons: &mut Vec<OwnReason>) {
        let observed = self.observed();
        for need in &self.resource.needs {
            match need {
                Need::Resource { module, key } => self.elsewhere(module, key, reasons),
                Need::Path(path) => self.reference(path, Reason::MissingPath, reasons),
                Need::EnvFile(path) => self.reference(path, Reason::MissingEnvFile, reasons),
                Need::Secret(name) if !observed.secrets.contains_key(name) => reasons.push(Self::other(
                    Reason::MissingSecret,
                    format!("secret {name} is not there"),
                    Some(format!("podman secret create {name} FILE")),
                )),
                Need::Network(name) if !observed.networks.contains_key(name) => reasons.push(Self::other(
                    Reason::MissingNetwork,
                    format!("network {name} is made by no module and is not there"),
                    Some(format!("podman network create {name}")),
                )),
                Need::Container(name) if !observed.containers.contains_key(name) => reasons.push(Self::other(
                    Reason::MissingNetwork,
                    format!("container {name}, whose namespace it would join, is made by no module and is not there"),
                    None,
                )),
                Need::Image(image) => {
                    if let Some(error) = observed.pull_errors.get(image) {
                        reasons.push(Self::other(
                            Reason::MissingImage,
                            format!("image {image} is not there and cannot be pulled: {error}"),
                            Some(format!("podman pull {image}")),
                        ));
                    }
                }
                Need::Secret(_) | Need::Network(_) | Need::Container(_) => {}
            }
        }
    }

    /// A resource of a module that this apply leaves out must be there already.
    fn elsewhere(&self, module: &str, key: &ResourceKey, reasons: &mut Vec<OwnReason>) {
        let scope = self.given.scope;
        if scope.has(self.module) && !scope.has(module) && entry(self.given.ledger, module, key).is_none() {
            reasons.push(Self::other(
                Reason::NeedsHeld,
                format!("it needs {key} of module {module}, which is not applied"),
                Some(format!("holdfast apply {}", quote(module))),
            ));
        }
    }

    fn reference(&self, path: &HostPath, reason: Reason, reasons: &mut Vec<OwnReason>) {
        let Some(facts) = self.observed().paths.get(path) else { return };
        if let Some(link) = &facts.unsafe_link {
            let clause = format!("{path} leads through {link}, a link that somebody other than root could have made");
            reasons.push(Self::other(reason, clause, None));
        } else if let Some(mount) = &facts.unmounted {
            let clause = format!("{path} is on a file system that is not mounted ({mount})");
            reasons.push(Self::other(reason, clause, Some(format!("systemctl start {mount}"))));
        } else {
            match &facts.state {
                PathState::Missing => {
                    reasons.push(Self::other(reason, format!("{path} is not there"), None));
                }
                PathState::Link { target, dangling: true, .. } => {
                    reasons.push(Self::other(
                        reason,
                        format!("{path} is a link to {target}, which is not there"),
                        None,
                    ));
                }
                PathState::Unknown { error } => {
                    reasons.push(Self::other(reason, format!("{path} cannot be looked at: {error}"), None));
                }
                PathState::Directory { .. }
                | PathState::File { .. }
                | PathState::Link { .. }
                | PathState::Other { .. } => {}
            }
        }
    }
}

fn empty_files() -> Vec<String> {
    Vec::new()
}
