//! Plain systemd units: what is installed, what they need, and the ports of sockets.

use std::collections::BTreeSet;
use std::net::IpAddr;

use crate::module::UnitSource;
use crate::name::HostPath;
use crate::ports::{PortClaim, Protocol, Span};
use crate::quadlet::QuadletFacts;
use crate::unitfile::{Entry, UnitFile};

use super::{Body, Resource, below, bodies};

const SUFFIXES: &[&str] = &["service", "timer", "socket", "path", "target", "mount"];

/// Keys of `[Unit]` that name what a unit cannot do without.
const REQUIRING: &[&str] = &["Requires", "BindsTo", "Requisite"];

/// True for the name of a plain unit that a module may bring.
pub(super) fn is_unit_name(file_name: &str) -> bool {
    file_name.rsplit_once('.').is_some_and(|(stem, suffix)| !stem.is_empty() && SUFFIXES.contains(&suffix))
}

/// A plain unit as a resource.
pub(super) fn resource(unit_dir: &HostPath, name: &str, unit: &UnitSource) -> Resource {
    let texts = std::iter::once(&unit.text).chain(unit.dropins.values()).cloned();
    let files = paths(unit_dir, name, unit).zip(texts).collect();
    let entries = entries(unit);
    let install = entries.iter().any(|entry| entry.section == "Install");
    let ports = entries.iter().flat_map(ports).collect();
    Resource {
        unit: Some(name.to_owned()),
        facts: QuadletFacts { ports, wanted_at_boot: install, ..QuadletFacts::default() }.into(),
        ..bodies::resource(&unit.file, Body::Unit { files, install })
    }
}

/// Where it and its drop-ins are installed.
pub(super) fn paths(unit_dir: &HostPath, name: &str, unit: &UnitSource) -> impl Iterator<Item = HostPath> {
    let folder = below(unit_dir, &format!("{name}.d"));
    std::iter::once(below(unit_dir, name)).chain(unit.dropins.keys().map(move |file| below(&folder, file)))
}

/// The units that it cannot do without, and the one that it would start: a timer must not start what is held.
pub(super) fn requires(name: &str, unit: &UnitSource) -> BTreeSet<String> {
    let entries = entries(unit);
    let required = entries.iter().filter(|entry| entry.section == "Unit" && REQUIRING.contains(&entry.key.as_str()));
    let mut names: BTreeSet<String> =
        required.flat_map(|entry| entry.value.split_whitespace()).map(str::to_owned).collect();
    let Some((stem, suffix)) = name.rsplit_once('.') else { return names };
    let (section, key) = match suffix {
        "timer" => ("Timer", "Unit"),
        "path" => ("Path", "Unit"),
        "socket" => ("Socket", "Service"),
        _ => return names,
    };
    let last = |key: &str| entries.iter().rev().find(|entry| entry.section == section && entry.key == key);
    let named = last(key).map(|entry| entry.value.trim().to_owned()).filter(|name| !name.is_empty());
    let per_connection = last("Accept").is_some_and(|entry| matches!(entry.value.trim(), "yes" | "true" | "on" | "1"));
    let default = || if per_connection { format!("{stem}@.service") } else { format!("{stem}.service") };
    names.insert(named.unwrap_or_else(default));
    names
}

fn entries(unit: &UnitSource) -> Vec<Entry> {
    let dropins = unit.dropins.values().filter_map(|text| UnitFile::parse(text).ok());
    unit.parsed.entries.iter().cloned().chain(dropins.flat_map(|dropin| dropin.entries)).collect()
}

/// `ListenStream=80`, `127.0.0.1:80`, `[::]:80`; paths, netlink and vsock claim no port.
fn ports(entry: &Entry) -> Option<PortClaim> {
    let protocol = match entry.key.as_str() {
        "ListenStream" | "ListenSequentialPacket" => Protocol::Tcp,
        "ListenDatagram" => Protocol::Udp,
        _ => return None,
    };
    if entry.section != "Socket" {
        return None;
    }
    let value = entry.value.trim();
    if let Ok(port) = value.parse() {
        // A bare port is a dual-stack socket unless BindIPv6Only= says otherwise: the wider claim is the safe one.
        return Some(PortClaim { span: Span::AnyBoth, port, protocol });
    }
    let (address, port) = value.rsplit_once(':')?;
    let address: IpAddr = address.trim_matches(['[', ']']).parse().ok()?;
    let any = address.is_unspecified() && address.is_ipv6();
    let span = if any { Span::AnyBoth } else { Span::of_publish(Some(address)) };
    Some(PortClaim { span, port: port.parse().ok()?, protocol })
}
