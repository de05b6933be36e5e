//! The walk over one merged Quadlet file that fills its facts.

use crate::expand::{EnvFiles, Expanded, Expander, HostFacts, read_environment};
use crate::name::HostPath;
use crate::quadlet::args::{self, Argument};
use crate::quadlet::mounts::{self, Written};
use crate::quadlet::{
    Finding, Mount, MountType, QuadletFacts, canonical, default_unit_name, object_name, ports, section, signs,
    unit_name,
};
use crate::resource::Kind;
use crate::unitfile::{Entry, UnitFile, relaxed_words};

/// Other Quadlet files of the host by name, as far as they are known.
pub(super) type Siblings<'a> = &'a dyn Fn(&str) -> Option<&'a UnitFile>;

/// Reads a merged Quadlet file: needs, claims, and what of them cannot be known before the start.
///
/// `file_name` is its name (`web.container`), `dir` the directory where it is installed, against which `./x` is taken,
/// and `siblings` gives other Quadlet files, so that a reference is known by the name that its own file gives it.
#[must_use]
pub fn read(
    kind: Kind, file_name: &str, dir: &HostPath, unit: &UnitFile, host: &HostFacts, env: &EnvFiles,
    siblings: Siblings<'_>,
) -> QuadletFacts {
    let name = unit_name(kind, file_name, unit);
    let expander = Expander::new(host, &name, read_environment(unit, env, host, &name));
    let mut reader = Reader { section: section(kind), dir, unit, expander, siblings, facts: QuadletFacts::default() };
    reader.dependencies();
    reader.name(kind, file_name);
    match kind {
        Kind::Container => reader.container(),
        Kind::Pod => reader.pod(),
        Kind::Kube => reader.kube(),
        Kind::Volume => reader.volume(),
        Kind::Image => reader.image("Image"),
        Kind::Build => reader.build(),
        Kind::Network | Kind::Directory | Kind::File | Kind::Link | Kind::Unit => {}
    }
    reader.service(kind);
    let Reader { expander, mut facts, .. } = reader;
    facts.user_signs = signs::user_signs(kind, unit);
    facts.canonical = canonical::text(kind, unit, &expander, siblings);
    facts
}

struct Reader<'a, 's> {
    section: &'static str,
    dir: &'a HostPath,
    unit: &'a UnitFile,
    expander: Expander<'a>,
    siblings: Siblings<'s>,
    facts: QuadletFacts,
}

/// An expanded text, and whether all of it is known.
struct Known {
    text: String,
    whole: bool,
}

impl<'a> Reader<'a, '_> {
    fn container(&mut self) {
        self.image("Image");
        self.rootfs();
        self.networks();
        self.mounts();
        self.publish();
        for (entry, word) in self.words("EnvironmentFile") {
            self.env_file(entry, &word);
        }
        for (entry, word) in self.words("Secret") {
            self.secret(entry, &word);
        }
        if let Some(entry) = self.unit.last_entry(self.section, "Pod") {
            self.reference(entry.unquoted());
        }
        self.user();
        self.podman_args();
        self.facts.health_check |= self.last("HealthCmd").is_some_and(|command| command != "none");
        self.facts.second_updater = self.second_updater();
        self.host_network_publishes_nothing();
    }

    fn pod(&mut self) {
        self.networks();
        self.mounts();
        self.publish();
        self.podman_args();
        self.host_network_publishes_nothing();
    }

    fn kube(&mut self) {
        self.networks();
        self.publish();
        let mut files: Vec<(&Entry, String)> = Vec::new();
        files.extend(self.unit.last_entry(self.section, "Yaml").map(|entry| (entry, entry.unquoted().to_owned())));
        files.extend(self.words("ConfigMap"));
        for (entry, path) in files {
            let path = self.expand(entry, &path).text;
            self.asset(&path);
        }
        self.podman_args();
        self.facts.second_updater = self.second_updater();
        self.host_network_publishes_nothing();
    }

    fn volume(&mut self) {
        match self.last("Driver") {
            Some("image") => self.image("Image"),
            _ if self.last("Type") == Some("bind") => {
                let Some(entry) = self.unit.last_entry(self.section, "Device") else { return };
                let written = mounts::volume(&format!("{}:/", entry.unquoted()));
                self.mount(entry, Written { kind: MountType::Bind, ..written }, Sources::Podman);
            }
            _ => {}
        }
    }

    fn build(&mut self) {
        self.networks();
        self.mounts();
        let file = self.last("File").filter(|file| !is_url(file));
        let context = self.last("SetWorkingDirectory").filter(|context| !is_url(context));
        let (file, context) = (file.map(str::to_owned), context.map(str::to_owned));
        if let Some(file) = file {
            self.asset(&file);
        }
        match context.as_deref() {
            Some("file") | None => {}
            Some("unit") => self.asset("."),
            Some(path) => self.asset(path),
        }
    }

    fn name(&mut self, kind: Kind, file_name: &str) {
        if !matches!(kind, Kind::Container | Kind::Volume | Kind::Network | Kind::Pod) {
            return;
        }
        let Some(written) = object_name(kind, file_name, self.unit) else { return };
        let key = match kind {
            Kind::Container => "ContainerName",
            Kind::Volume => "VolumeName",
            Kind::Network => "NetworkName",
            _ => "PodName",
        };
        let line = self.unit.last_entry(self.section, key).map(|entry| entry.line);
        self.facts.podman_name = Some(self.expand_at(key, &written, &written, line).text);
    }

    fn dependencies(&mut self) {
        for key in ["Requires", "BindsTo", "Requisite", "PartOf", "Upholds"] {
            self.facts.requires.extend(self.units_of(key));
        }
        for key in ["After", "Before"] {
            self.facts.after.extend(self.units_of(key));
        }
    }

    fn units_of(&self, key: &str) -> Vec<String> {
        let entries = self.unit.all("Unit", key);
        let words = entries.iter().flat_map(|entry| relaxed_words(&entry.value).unwrap_or_default());
        words
            .map(|word| {
                let name = self.expander.specifiers(&word).text;
                match Kind::of_quadlet(&name) {
                    // 5.4 leaves such a name as it is and systemd drops it; what is meant is clear.
                    Some(kind) => self.unit_of(kind, &name),
                    None => name,
                }
            })
            .collect()
    }

    fn unit_of(&self, kind: Kind, file_name: &str) -> String {
        match (self.siblings)(file_name) {
            Some(unit) => unit_name(kind, file_name, unit),
            None => default_unit_name(kind, file_name),
        }
    }

    /// Takes note of another Quadlet file and says what Podman calls its object. None where that is not known.
    fn reference(&mut self, file_name: &str) -> Option<String> {
        let kind = Kind::of_quadlet(file_name)?;
        let unit = self.unit_of(kind, file_name);
        for list in [&mut self.facts.requires, &mut self.facts.after] {
            if !list.contains(&unit) {
                list.push(unit.clone());
            }
        }
        if !self.facts.files.iter().any(|known| known == file_name) {
            self.facts.files.push(file_name.to_owned());
        }
        canonical::resolve(kind, file_name, self.siblings).map(|name| self.expander.word(&name).text)
    }

    fn image(&mut self, key: &str) {
        let Some(entry) = self.unit.last_entry(self.section, key) else { return };
        let written = entry.unquoted();
        if self.section != "Image" && matches!(Kind::of_quadlet(written), Some(Kind::Image | Kind::Build)) {
            self.reference(written);
        } else {
            self.facts.image = Some(self.expand(entry, written).text);
        }
    }

    fn rootfs(&mut self) {
        let Some(entry) = self.unit.last_entry(self.section, "Rootfs") else { return };
        let path = entry.unquoted().split(':').next().unwrap_or_default();
        // Read-only in the sense that matters here: an empty directory made in its place would be no root.
        let written = Written { read_only: true, ..mounts::volume(&format!("{path}:/")) };
        self.mount(entry, Written { kind: MountType::Bind, ..written }, Sources::Podman);
    }

    fn networks(&mut self) {
        for entry in self.unit.all(self.section, "Network") {
            self.network(entry, entry.value.trim_end(), Sources::Quadlet);
        }
    }

    fn network(&mut self, entry: &Entry, written: &str, sources: Sources) {
        let file = written.split(':').next().unwrap_or_default();
        if sources == Sources::Quadlet && matches!(Kind::of_quadlet(file), Some(Kind::Network | Kind::Container)) {
            self.reference(file);
            return;
        }
        let text = self.expand(entry, written).text;
        let (mode, options) = text.split_once(':').map_or((text.as_str(), None), |(mode, rest)| (mode, Some(rest)));
        match (mode, options) {
            ("" | "host" | "none" | "private" | "bridge" | "default" | "pasta" | "slirp4netns" | "ns" | "pod", _) => {}
            ("container", Some(name)) => self.facts.containers.push(name.to_owned()),
            (names, None) => self.facts.networks.extend(names.split(',').map(str::to_owned)),
            (name, Some(_)) => self.facts.networks.push(name.to_owned()),
        }
    }

    fn mounts(&mut self) {
        for entry in self.unit.all(self.section, "Volume") {
            self.mount(entry, mounts::volume(entry.value.trim_end()), Sources::Quadlet);
        }
        for (entry, word) in self.words("Mount") {
            self.mount(entry, mounts::mount(&word), Sources::Quadlet);
        }
        for entry in self.unit.all(self.section, "Tmpfs") {
            self.mount(entry, mounts::tmpfs(&entry.value), Sources::Podman);
        }
    }

    fn mount(&mut self, entry: &Entry, written: Written, sources: Sources) {
        let target = self.expand(entry, &written.target);
        let mut mount = Mount {
            kind: written.kind,
            source: String::new(),
            file: None,
            target: clean(&target.text),
            read_only: written.read_only,
            relative: false,
            line: Some(entry.line),
        };
        let has_source =
            matches!(written.kind, MountType::Bind | MountType::Volume | MountType::Image | MountType::Other);
        if has_source && !written.source.is_empty() {
            self.source(entry, &written, sources, &mut mount);
        }
        if written.relabels && mount.kind == MountType::Bind {
            self.facts.relabels.extend(HostPath::new(&mount.source));
        }
        self.facts.mounts.push(mount);
    }

    fn source(&mut self, entry: &Entry, written: &Written, sources: Sources, mount: &mut Mount) {
        let referred = Kind::of_quadlet(&written.source).filter(|_| sources == Sources::Quadlet);
        match (referred, written.kind) {
            (Some(Kind::Volume), _) | (Some(Kind::Image), MountType::Image) => {
                let name = self.reference(&written.source);
                mount.source = name.unwrap_or_else(|| written.source.clone());
                mount.file = (referred == Some(Kind::Volume)).then(|| written.source.clone());
                return;
            }
            _ => {}
        }
        let source = self.expand(entry, &written.source);
        let starts = source.text.chars().next();
        let path = match starts {
            Some('/') => HostPath::new(&source.text).ok(),
            Some('.') if sources == Sources::Quadlet && written.source.starts_with('.') => {
                mount.relative = true;
                self.asset(&source.text);
                self.dir.join(&source.text).ok()
            }
            // What is relative only once it is expanded is taken by Podman itself, from systemd's working directory.
            Some('.') => HostPath::root().join(&source.text).ok(),
            _ => None,
        };
        (mount.kind, mount.source) = match (path, written.kind) {
            (Some(path), MountType::Volume | MountType::Bind) if source.whole => (MountType::Bind, path.to_string()),
            (None, MountType::Volume | MountType::Image) if source.whole => (written.kind, source.text),
            _ => (MountType::Other, source.text),
        };
    }

    fn publish(&mut self) {
        for entry in self.unit.all(self.section, "PublishPort") {
            self.port(entry, entry.value.trim_end());
        }
    }

    fn port(&mut self, entry: &Entry, written: &str) {
        let text = self.expand(entry, written);
        let published = ports::split(&text.text);
        if text.whole {
            // What Podman would refuse claims nothing; `problems` names it.
            self.facts.ports.extend(ports::claims(&published).unwrap_or_default());
        }
        self.facts.published.push(published);
    }

    fn env_file(&mut self, entry: &Entry, written: &str) {
        let path = if written.starts_with('%') && !written.starts_with("%%") || written.starts_with('/') {
            self.expand(entry, written)
        } else {
            if !written.starts_with("-/") {
                self.asset(written);
            }
            // Podman puts the directory in front before systemd expands anything.
            self.expand(entry, &format!("{}/{written}", self.dir))
        };
        self.facts.env_files.extend(HostPath::new(&path.text).ok().filter(|_| path.whole));
    }

    fn secret(&mut self, entry: &Entry, written: &str) {
        let text = self.expand(entry, written).text;
        let mut fields = text.split(',');
        let name = match fields.next() {
            Some(first) if !first.contains('=') => Some(first),
            _ => text.split(',').find_map(|field| field.strip_prefix("source=")),
        };
        self.facts.secrets.extend(name.map(str::to_owned));
    }

    fn user(&mut self) {
        let mapped = ["UserNS", "UIDMap", "SubUIDMap", "RemapUsers"];
        if mapped.iter().any(|key| !self.unit.all(self.section, key).is_empty()) {
            return;
        }
        if let Some(entry) = self.unit.last_entry(self.section, "User") {
            let user = self.expand(entry, entry.unquoted()).text;
            self.facts.uid = user.split(':').next().and_then(|uid| uid.parse().ok());
        }
    }

    fn podman_args(&mut self) {
        let entries = self.unit.all(self.section, "PodmanArgs");
        for entry in entries {
            for argument in args::read(&relaxed_words(&entry.value).unwrap_or_default()) {
                self.argument(entry, argument);
            }
        }
    }

    fn argument(&mut self, entry: &Entry, argument: Argument) {
        match argument {
            Argument::Volume(value) => self.mount(entry, mounts::volume(&value), Sources::Podman),
            Argument::Mount(value) => self.mount(entry, mounts::mount(&value), Sources::Podman),
            Argument::Tmpfs(value) => self.mount(entry, mounts::tmpfs(&value), Sources::Podman),
            Argument::Publish(value) => self.port(entry, &value),
            Argument::Network(value) => self.network(entry, &value, Sources::Podman),
            Argument::Secret(value) => self.secret(entry, &value),
            Argument::EnvFile(value) => {
                let path = self.expand(entry, &value);
                let known = HostPath::root().join(&path.text).ok().filter(|_| path.whole);
                self.facts.env_files.extend(known);
            }
            Argument::Name(value) => self.facts.podman_name = Some(self.expand(entry, &value).text),
            Argument::Container(value) => {
                let name = self.expand(entry, &value).text;
                self.facts.containers.push(name.split(':').next().unwrap_or_default().to_owned());
            }
            Argument::HealthCheck(command) => self.facts.health_check = command != "none",
        }
    }

    fn second_updater(&self) -> Option<String> {
        let pull =
            self.last("Pull").filter(|pull| matches!(*pull, "newer" | "always")).map(|pull| format!("Pull={pull}"));
        let update = self.last("AutoUpdate").map(|update| format!("AutoUpdate={update}"));
        let found: Vec<String> = update.into_iter().chain(pull).collect();
        (!found.is_empty()).then(|| found.join(", "))
    }

    fn service(&mut self, kind: Kind) {
        let oneshot = self.unit.last("Service", "Type") == Some("oneshot");
        let stays = self.unit.boolean("Service", "RemainAfterExit") == Some(true);
        self.facts.oneshot = match kind {
            Kind::Container | Kind::Kube => oneshot,
            // A build's unit is a oneshot that does not remain; those of volumes, networks and images remain.
            Kind::Build => !stays,
            _ => false,
        };
        let wants = ["WantedBy", "RequiredBy", "UpheldBy"];
        self.facts.wanted_at_boot = wants.iter().any(|key| !self.unit.all("Install", key).is_empty());
    }

    /// Podman discards published ports where the network is not its own.
    fn host_network_publishes_nothing(&mut self) {
        let foreign = |entry: &&Entry| {
            let value = entry.value.as_str();
            matches!(value, "host" | "none") || value.starts_with("container:") || value.ends_with(".container")
        };
        if self.unit.all(self.section, "Network").iter().any(foreign) {
            self.facts.ports.clear();
        }
    }

    /// A relative path that travels with the file, without `./`.
    fn asset(&mut self, path: &str) {
        let relative = !path.is_empty() && !path.starts_with(['/', '%', '$']);
        let cleaned = clean(path);
        if relative && !self.facts.assets.contains(&cleaned) {
            self.facts.assets.push(cleaned);
        }
    }

    fn last(&self, key: &str) -> Option<&'a str> {
        self.unit.last(self.section, key)
    }

    /// The words of a key that Podman splits, with their entries. A value that it cannot split it drops.
    fn words(&self, key: &str) -> Vec<(&'a Entry, String)> {
        let entries = self.unit.all(self.section, key).into_iter();
        entries
            .flat_map(|entry| {
                relaxed_words(&entry.value).unwrap_or_default().into_iter().map(move |word| (entry, word))
            })
            .collect()
    }

    fn expand(&mut self, entry: &Entry, word: &str) -> Known {
        self.expand_at(&entry.key, &entry.value, word, Some(entry.line))
    }

    fn expand_at(&mut self, key: &str, value: &str, word: &str, line: Option<u32>) -> Known {
        let Expanded { text, open } = self.expander.word(word);
        let whole = open.is_empty();
        for what in open {
            let finding = Finding { key: format!("{key}="), text: value.to_owned(), what, line };
            if !self.facts.unresolved.contains(&finding) {
                self.facts.unresolved.push(finding);
            }
        }
        Known { text, whole }
    }
}

/// Who takes a source apart: Quadlet knows `./x` and `x.volume`, Podman does not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sources {
    Quadlet,
    Podman,
}

/// A path in lexical normal form; a relative one stays relative and keeps `..` at its beginning.
fn clean(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." if parts.last().is_some_and(|last| *last != "..") => {
                parts.pop();
            }
            ".." if path.starts_with('/') => {}
            other => parts.push(other),
        }
    }
    match (path.starts_with('/'), parts.is_empty()) {
        (true, _) => format!("/{}", parts.join("/")),
        (false, true) if !path.is_empty() => ".".to_owned(),
        (false, _) => parts.join("/"),
    }
}

/// What Quadlet takes for an address of the network and not for a path.
pub(super) fn is_url(text: &str) -> bool {
    ["http://", "https://", "git://", "github.com/"].iter().any(|start| text.starts_with(start))
}
