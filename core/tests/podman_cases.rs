//! Our reading of a Quadlet file against what Podman's own end-to-end cases say of the unit that its generator makes.
//!
//! The cases are data of another project and no part of this tree: without them this test says so and compares nothing.

#![allow(
    clippy::unwrap_used,
    clippy::disallowed_macros,
    clippy::disallowed_methods,
    reason = "a test reads its cases, says what it compared, and fails by a panic"
)]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use holdfast_core::expand::{EnvFiles, HostFacts};
use holdfast_core::name::HostPath;
use holdfast_core::problem::Severity;
use holdfast_core::quadlet::{
    self, Mount, MountType, Published, QuadletFacts, mounts, object_name, problems, unit_name, unsupported_keys,
};
use holdfast_core::resource::Kind;
use holdfast_core::unitfile::UnitFile;
use serde_json::Value;

/// Fewer facts than this mean that the comparison has lost its hold on the cases.
const LEAST_FACTS: usize = 850;

/// Where the files are taken to be installed.
const DIR: &str = "/etc/containers/systemd/podman-e2e-x/subtest-y/quadlet";

#[test]
fn our_reading_agrees_with_podmans_own_cases() {
    let Some(cases) = Cases::find() else {
        println!(
            "Podman's own cases are not there: nothing was compared. HOLDFAST_PODMAN_CASES names their directory."
        );
        return;
    };
    assert_eq!(cases.expected.len(), 166, "the number of cases");
    let mut tally = Tally::default();
    for (name, case) in &cases.expected {
        cases.compare(name, case, &mut tally);
    }
    println!("{} cases and {} facts were compared: {:?}", cases.expected.len(), tally.total(), tally.facts);
    assert!(tally.wrong.is_empty(), "{} facts differ:\n{}", tally.wrong.len(), tally.wrong.join("\n"));
    assert!(tally.total() >= LEAST_FACTS, "only {} facts were compared", tally.total());
}

#[derive(Default)]
struct Tally {
    facts: BTreeMap<&'static str, usize>,
    wrong: Vec<String>,
}

impl Tally {
    fn total(&self) -> usize {
        self.facts.values().sum()
    }

    fn check(&mut self, what: &'static str, holds: Agreement, case: &str, detail: impl FnOnce() -> String) {
        *self.facts.entry(what).or_default() += 1;
        if holds == Agreement::No {
            self.wrong.push(format!("{case}: {what}: {}", detail()));
        }
    }
}

#[derive(PartialEq, Eq)]
enum Agreement {
    Yes,
    No,
}

impl From<bool> for Agreement {
    fn from(holds: bool) -> Self {
        if holds { Self::Yes } else { Self::No }
    }
}

struct Cases {
    root: PathBuf,
    expected: BTreeMap<String, Value>,
}

/// One case as we read it.
struct Read {
    kind: Kind,
    facts: QuadletFacts,
    /// References and plain names alike, as they stand on Podman's command line.
    networks: Vec<String>,
    unit: UnitFile,
}

impl Cases {
    fn find() -> Option<Self> {
        let root = match std::env::var_os("HOLDFAST_PODMAN_CASES") {
            Some(root) => PathBuf::from(root),
            None => Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/podman-cases"),
        };
        let text = std::fs::read_to_string(root.join("expected.json")).ok()?;
        Some(Self { root, expected: serde_json::from_str(&text).unwrap() })
    }

    /// A file with its drop-ins, by file name; of two of one name the one in the more specific folder counts.
    fn unit(&self, name: &str) -> Option<UnitFile> {
        let folder = self.root.join("quadlet");
        let mut text = std::fs::read_to_string(folder.join(name)).ok()?;
        let mut dropins: BTreeMap<String, PathBuf> = BTreeMap::new();
        let template = name.split_once('@').map(|(prefix, rest)| {
            let (_, extension) = rest.rsplit_once('.').unwrap();
            format!("{prefix}@.{extension}.d")
        });
        for dropin_folder in template.into_iter().chain([format!("{name}.d")]) {
            for entry in std::fs::read_dir(folder.join(dropin_folder)).into_iter().flatten() {
                let path = entry.unwrap().path();
                dropins.insert(path.file_name().unwrap().to_str().unwrap().to_owned(), path);
            }
        }
        for path in dropins.values() {
            text.push('\n');
            text.push_str(&std::fs::read_to_string(path).unwrap());
        }
        Some(UnitFile::parse(&text).unwrap())
    }

    fn read(&self, name: &str, needs: &[String]) -> Read {
        let kind = Kind::of_quadlet(name).unwrap();
        let unit = self.unit(name).unwrap();
        let needed: BTreeMap<&String, UnitFile> =
            needs.iter().filter_map(|file| Some((file, self.unit(file)?))).collect();
        let siblings = |file: &str| needed.get(&file.to_owned());
        let host = HostFacts::default();
        let facts = quadlet::read(kind, name, &HostPath::new(DIR).unwrap(), &unit, &host, &EnvFiles::new(), &siblings);
        let mut networks = facts.networks.clone();
        networks.extend(facts.containers.iter().map(|container| format!("container:{container}")));
        for file in &facts.files {
            let referred = Kind::of_quadlet(file).unwrap();
            let Some(of) = siblings(file) else { continue };
            let object = object_name(referred, file, of).unwrap_or_default();
            let service = unit_name(referred, file, of).replace(".service", "");
            match referred {
                Kind::Network => networks.push(object),
                Kind::Container => networks.push(format!("container:{}", object.replace("%N", &service))),
                _ => {}
            }
        }
        Read { kind, facts, networks, unit }
    }

    fn compare(&self, name: &str, case: &Value, tally: &mut Tally) {
        let needs = strings(&case["needs"]);
        let read = self.read(name, &needs);
        let service = case["service"].as_str().unwrap();
        let ours = unit_name(read.kind, name, &read.unit);
        tally.check("unit name", (ours == service).into(), name, || format!("{ours} is not {service}"));
        let unknown: Vec<&str> =
            unsupported_keys(read.kind, &read.unit).iter().map(|entry| entry.key.as_str()).collect();
        tally.check("keys", unknown.is_empty().into(), name, || format!("{unknown:?} are called unknown"));
        let errors: Vec<String> = problems(read.kind, &read.unit)
            .into_iter()
            .filter(|problem| problem.severity == Severity::Error)
            .map(|problem| problem.to_string())
            .collect();
        let missing = read.facts.files.iter().any(|file| !needs.contains(file));
        if case["outcome"] == "error" {
            let found = !errors.is_empty() || missing;
            tally.check("makes no unit", found.into(), name, || "we see no fault in it".to_owned());
            return;
        }
        tally.check("makes a unit", (!missing).into(), name, || {
            format!("a reference is missing: {:?}", read.facts.files)
        });
        let bad = errors.iter().filter(|error| !let_through(error)).collect::<Vec<_>>();
        tally.check("no fault", bad.is_empty().into(), name, || format!("{bad:?}"));
        for assert in case["asserts"].as_array().unwrap() {
            read.compare(name, &strings(assert), tally);
        }
    }
}

/// Faults that the generator does not look for, and these cases have: what is named here Podman refuses at the start,
/// or it is refused by a rule of our own.
fn let_through(error: &str) -> bool {
    let own = ["relative path that may be written", "is published on line", "is no absolute path"];
    own.iter().any(|part| error.contains(part))
}

impl Read {
    fn compare(&self, name: &str, assert: &[String], tally: &mut Tally) {
        let negated = assert[0].starts_with('!');
        let regex = assert[0].ends_with("-regex");
        match assert[0].trim_start_matches('!') {
            "assert-podman-args"
            | "assert-podman-pre-args"
            | "assert-podman-args-regex"
            | "assert-podman-pre-args-regex" => {
                self.argument(name, &assert[1..], negated, tally);
            }
            "assert-podman-args-key-val" | "assert-podman-args-key-val-regex" => {
                self.argument(name, &[assert[1].clone(), assert[3].clone()], negated, tally);
            }
            "assert-podman-final-args" if !regex => self.last_arguments(name, &assert[1..], tally),
            "assert-key-is" | "assert-key-is-regex" | "assert-key-contains" => {
                self.key(name, &assert[1..], negated, tally)
            }
            _ => {}
        }
    }

    fn argument(&self, name: &str, arguments: &[String], negated: bool, tally: &mut Tally) {
        let [flag, value] = arguments else { return };
        let facts = &self.facts;
        let has = |list: &[String], value: &str| list.iter().any(|item| item == value);
        let (what, found): (&'static str, bool) = match flag.as_str() {
            "-v" => ("volume", facts.mounts.iter().any(|mount| is_volume(mount, value))),
            "--mount" => ("mount", facts.mounts.iter().any(|mount| is_mount(mount, value))),
            "--tmpfs" => {
                let target = value.split(':').next().unwrap();
                let volatile = self.unit.boolean("Container", "VolatileTmp") == Some(true) && target == "/tmp";
                ("tmpfs", volatile || facts.mounts.iter().any(|m| m.kind == MountType::Tmpfs && m.target == target))
            }
            "--publish" => ("port", facts.published.contains(&published(value))),
            "--network" if value == "host" => ("network", self.networks.is_empty() && facts.ports.is_empty()),
            "--network" => ("network", has(&self.networks, value)),
            "--secret" if self.kind == Kind::Container => {
                let plain = value.split(',').next().unwrap().trim_start_matches("source=").to_owned();
                ("secret", facts.secrets.contains(&plain))
            }
            "--env-file" => ("env file", facts.env_files.iter().any(|path| path.as_str() == installed(value))),
            "--name" => ("name", facts.podman_name.as_deref() == Some(expanded(value, name).as_str())),
            "--user" => ("user", facts.uid == value.split(':').next().unwrap().parse().ok()),
            "--health-cmd" => ("health check", facts.health_check),
            "--tag" => ("tag", object_name(self.kind, name, &self.unit).as_ref() == Some(value)),
            "--userns" if value.starts_with("keep-id") => {
                ("user sign", facts.user_signs.iter().any(|sign| sign.what == "keep-id"))
            }
            "--opt" if value.starts_with("image=") => {
                let referred = facts.files.iter().any(|file| file.ends_with(".image") || file.ends_with(".build"));
                ("volume's image", referred || facts.image.as_deref() == value.strip_prefix("image="))
            }
            _ => return,
        };
        tally.check(what, (found != negated).into(), name, || format!("{flag} {value}: {facts:?}"));
    }

    /// The last arguments: the name of a network or volume, the image of a container or of an image unit.
    fn last_arguments(&self, name: &str, arguments: &[String], tally: &mut Tally) {
        let facts = &self.facts;
        let (what, found) = match (self.kind, arguments) {
            (Kind::Container, [rootfs, path]) if rootfs == "--rootfs" => {
                ("rootfs", facts.mounts.iter().any(|mount| mount.source == *path && mount.target == "/"))
            }
            (Kind::Container, [first, .., last]) if first == "run" => ("image", facts.image.as_ref() == Some(last)),
            (Kind::Container | Kind::Image, [image, ..]) => ("image", facts.image.as_ref() == Some(image)),
            (Kind::Network | Kind::Volume, [.., last]) => ("name", facts.podman_name.as_ref() == Some(last)),
            _ => return,
        };
        tally.check(what, found.into(), name, || format!("{arguments:?}: {facts:?}"));
    }

    fn key(&self, name: &str, arguments: &[String], negated: bool, tally: &mut Tally) {
        let [section, key, values @ ..] = arguments else { return };
        let facts = &self.facts;
        let of_podman = |value: &&String| !value.starts_with("network-online.target");
        let (what, list): (&'static str, &[String]) = match (section.as_str(), key.as_str()) {
            ("Unit", "Requires" | "BindsTo") => ("requires", &facts.requires),
            ("Unit", "After") => ("after", &facts.after),
            ("Service", "Type") => {
                let oneshot = values.first().is_some_and(|value| value == "oneshot");
                // What makes volumes, networks and images is a oneshot that remains.
                let remains = matches!(self.kind, Kind::Volume | Kind::Network | Kind::Image);
                let found = remains || facts.oneshot == oneshot;
                tally.check("oneshot", (found != negated).into(), name, || format!("{values:?}"));
                return;
            }
            _ => return,
        };
        let wanted: Vec<&String> = values.iter().filter(of_podman).collect();
        let found = if negated {
            wanted.iter().all(|unit| !list.contains(unit))
        } else {
            list.iter().eq(wanted.iter().copied())
        };
        tally.check(what, found.into(), name, || format!("{wanted:?} is not {list:?}"));
    }
}

fn strings(value: &Value) -> Vec<String> {
    value.as_array().into_iter().flatten().map(|item| item.as_str().unwrap().to_owned()).collect()
}

/// What a pattern of the cases stands for here: the directory of the test run is ours.
fn installed(value: &str) -> String {
    let value =
        value.replace(".*/podman-e2e-.*/subtest-.*/quadlet", DIR).replace("/.*/podman-e2e-.*/subtest-.*/quadlet", DIR);
    let value = value.replace(&format!("/{DIR}"), DIR);
    value.replace("%h", "/root")
}

fn expanded(value: &str, file_name: &str) -> String {
    let (stem, _) = file_name.rsplit_once('.').unwrap();
    let (prefix, instance) = stem.split_once('@').unwrap_or((stem, ""));
    value.replace("%N", stem).replace("%p", prefix).replace("%i", instance)
}

fn is_volume(mount: &Mount, value: &str) -> bool {
    let value = installed(value);
    let written = mounts::volume(&value);
    written.source == mount.source
        && written.target == mount.target
        && written.read_only == mount.read_only
        && mount.kind == if written.source.starts_with('/') { MountType::Bind } else { MountType::Volume }
}

fn is_mount(mount: &Mount, value: &str) -> bool {
    let written = mounts::mount(&installed(value));
    let target = written.target.trim_end_matches('/');
    // A type of Podman's without a source of its own is told by its target.
    let source = written.source == mount.source;
    written.kind == mount.kind && source && target == mount.target && written.read_only == mount.read_only
}

/// The ports of a case in the words of the report, by an own small reading.
fn published(value: &str) -> Published {
    let (address, protocol) = value.split_once('/').unwrap_or((value, "tcp"));
    let (mut parts, mut ip) = (Vec::new(), String::new());
    let mut rest = address;
    if let Some(v6) = address.strip_prefix('[') {
        let (inside, after) = v6.split_once("]:").unwrap();
        ip = inside.to_owned();
        rest = after;
    }
    parts.extend(rest.split(':').map(str::to_owned));
    let container = parts.pop().unwrap();
    let host = parts.pop().unwrap_or_default();
    if let Some(v4) = parts.pop() {
        ip = v4;
    }
    Published { host_ip: ip, host, container, protocol: protocol.to_owned() }
}
