//! What is wrong between the files of a module, and what of one file is seen only with the others.

use std::collections::BTreeMap;

use crate::lint::{Looked, LookedFile, beside};
use crate::module::{Module, QuadletSource};
use crate::problem::Problem;
use crate::quadlet::{self, Finding, MountType};
use crate::resource::Kind;

/// Specifiers that every host knows and a lint does not.
const OF_THE_HOST: &[&str] = &["%H", "%l", "%m", "%b", "%v", "%a"];

/// All findings, in no order.
pub(super) fn all(module: &Module, looked: &Looked<'_>) -> Vec<Problem> {
    let mut found = Vec::new();
    for file in &looked.files {
        found.extend(of_file(file));
        found.extend(references(module, file));
        found.extend(names_made_by_nobody(looked, file));
        found.extend(file.yaml_problem.clone());
    }
    found.extend(claimed_twice(module, looked));
    for path in &module.left_alone {
        found.push(Problem::warning(path, None, "it is left alone: no file of its kind is read"));
    }
    found
}

fn of_file(file: &LookedFile<'_>) -> Vec<Problem> {
    let LookedFile { source, facts, .. } = file;
    let mut found = quadlet::problems(source.kind, &source.parsed);
    for entry in quadlet::unsupported_keys(source.kind, &source.parsed) {
        let message = format!("Podman 5.4 does not know {}= in [{}] and drops the file", entry.key, entry.section);
        found.push(Problem::warning("", Some(entry.line), message));
    }
    for sign in &facts.user_signs {
        let message = format!("{}{} is made for a user's own manager ({})", sign.key, sign.text, sign.what);
        found.push(Problem::error("", sign.line, message).hint("write the paths out, as for root"));
    }
    let reads_files = !source.parsed.all("Service", "EnvironmentFile").is_empty();
    for finding in facts.unresolved.iter().filter(|finding| !OF_THE_HOST.contains(&finding.what.as_str())) {
        found.push(unresolved(finding, reads_files));
    }
    found.into_iter().map(|problem| placed(source, problem)).collect()
}

fn unresolved(finding: &Finding, reads_files: bool) -> Problem {
    let Finding { key, text, what, line } = finding;
    if reads_files {
        let message = format!("{key}{text}: {what} is known only on the host, from EnvironmentFile= in [Service]");
        Problem::warning("", *line, message)
    } else {
        let message = format!("{key}{text}: {what} is not set, and systemd would put nothing in its place");
        Problem::error("", *line, message).hint("set it with Environment= in [Service]")
    }
}

/// The problem at its file; a line of a drop-in is not counted from the file's own beginning.
fn placed(source: &QuadletSource, problem: Problem) -> Problem {
    let own = problem.line.is_none_or(|line| line <= source.own_lines);
    let file = match source.dropins.as_slice() {
        [only] if !own => only.clone(),
        _ => source.file.clone(),
    };
    let line = problem.line.filter(|_| own);
    Problem { file, line, ..problem }
}

/// Files that it refers to and that are not in the module.
fn references(module: &Module, file: &LookedFile<'_>) -> Vec<Problem> {
    let mut found = Vec::new();
    for name in &file.facts.files {
        if !module.quadlets.contains_key(name) {
            let message = format!("{name} is not in the module: without it on the host, no unit is made of this file");
            found.push(Problem::warning(&file.source.file, None, message));
        }
    }
    for asset in &file.facts.assets {
        let path = beside(file.source, asset);
        let below = format!("{path}/");
        let there = path.is_empty() || module.assets.keys().any(|key| *key == path || key.starts_with(&below));
        if there || asset.starts_with("..") {
            continue;
        }
        let example = format!("{path}.example");
        let is_there = module.assets.contains_key(&example) || module.left_alone.contains(&example);
        let also = if is_there { format!("; {example} is") } else { String::new() };
        let message = format!("{path} is not in the module{also}");
        found.push(Problem::warning(&file.source.file, None, message));
    }
    found
}

fn names_made_by_nobody(looked: &Looked<'_>, file: &LookedFile<'_>) -> Vec<Problem> {
    let mut found = Vec::new();
    let (networks, volumes) = (looked.names(Kind::Network), looked.names(Kind::Volume));
    let is_file = |name: &str, kind: &str| looked.files.iter().find(|other| other.name == format!("{name}.{kind}"));
    for name in file.facts.networks.iter().filter(|name| !networks.contains_key(name.as_str()) && *name != "podman") {
        let message = format!("the network {name} is made by no file of the module");
        let problem = Problem::warning(&file.source.file, None, message);
        found.push(match is_file(name, "network") {
            Some(_) => problem.hint(format!("write Network={name}.network for the one of {name}.network")),
            None => problem,
        });
    }
    for mount in file.facts.mounts.iter().filter(|mount| mount.kind == MountType::Volume && mount.file.is_none()) {
        let name = mount.source.as_str();
        if let Some(other) = is_file(name, "volume").filter(|_| !volumes.contains_key(name)) {
            let theirs = other.facts.podman_name.as_deref().unwrap_or_default();
            let message = format!("the volume {name} is another one than that of {name}.volume, which is {theirs}");
            let hint = format!("write {name}.volume for the one of {name}.volume");
            found.push(placed(file.source, Problem::warning("", mount.line, message).hint(hint)));
        }
    }
    found
}

/// Two files that claim one name: of a file, a unit, a container, a host port.
fn claimed_twice(module: &Module, looked: &Looked<'_>) -> Vec<Problem> {
    let mut found = Vec::new();
    for sources in module.quadlets.values() {
        if let [first, rest @ ..] = sources.as_slice() {
            for other in rest {
                let message = format!("{} has the same name: Podman would take one of the two", first.file);
                found.push(Problem::error(&other.file, None, message));
            }
        }
    }
    let mut claims: BTreeMap<String, &LookedFile<'_>> = BTreeMap::new();
    let mut ports: Vec<(&crate::ports::PortClaim, &LookedFile<'_>)> = Vec::new();
    for file in &looked.files {
        let kind = file.source.kind;
        let object = file.facts.podman_name.as_ref().map(|name| format!("{kind} {name}"));
        for claim in object.into_iter().chain([format!("unit {}", file.unit)]) {
            match claims.get(&claim) {
                Some(first) => {
                    let message = format!("{} makes the {claim}, too", first.source.file);
                    found.push(Problem::error(&file.source.file, None, message));
                }
                None => {
                    claims.insert(claim, file);
                }
            }
        }
        for port in &file.facts.ports {
            let met = ports.iter().find(|(other, first)| port.meets(other) && first.name != file.name);
            if let Some((_, first)) = met {
                let message = format!("{} publishes the host port {port}, too", first.source.file);
                found.push(Problem::error(&file.source.file, None, message));
            }
            ports.push((port, file));
        }
    }
    for name in module.units.keys() {
        if let Some(first) = claims.get(&format!("unit {name}")) {
            found.push(Problem::error(name, None, format!("{} makes the unit {name}, too", first.source.file)));
        }
    }
    found
}
