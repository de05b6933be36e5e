//! What is plainly wrong in a Quadlet file: what no generator run is needed to see, and what the generator lets through.

use std::collections::BTreeMap;

use crate::problem::Problem;
use crate::quadlet::mounts::Written;
use crate::quadlet::read::is_url;
use crate::quadlet::{MountType, args, image, mounts, ports, section};
use crate::resource::Kind;
use crate::unitfile::{Entry, UnitFile, relaxed_words};

/// All problems of one merged Quadlet file, with lines; the file's name is left empty for the caller to fill in.
#[must_use]
pub fn problems(kind: Kind, unit: &UnitFile) -> Vec<Problem> {
    let mut check = Check { section: section(kind), unit, found: Vec::new() };
    check.images(kind);
    check.ports();
    check.mounts();
    check.paths();
    check.words();
    check.labels();
    check.dependencies();
    match kind {
        Kind::Container => check.container(),
        Kind::Volume => check.volume(),
        Kind::Network => check.network(),
        Kind::Build => check.build(),
        Kind::Kube => check.kube(),
        Kind::Pod | Kind::Image | Kind::Directory | Kind::File | Kind::Link | Kind::Unit => {}
    }
    check.users(kind);
    check.found.sort_by_key(|problem| problem.line);
    check.found
}

struct Check<'a> {
    section: &'static str,
    unit: &'a UnitFile,
    found: Vec<Problem>,
}

impl<'a> Check<'a> {
    fn images(&mut self, kind: Kind) {
        let image = self.unit.last_entry(self.section, "Image");
        match kind {
            Kind::Container => match (image, self.last("Rootfs")) {
                (None, None) => self.missing("no Image= or Rootfs= is set"),
                (Some(entry), Some(_)) => self.error(entry, "Image= and Rootfs= exclude each other"),
                _ => {}
            },
            Kind::Image if image.is_none() => self.missing("no Image= is set"),
            Kind::Volume if self.last("Driver") == Some("image") && image.is_none() => {
                self.missing("Driver=image is set, and no Image=");
            }
            _ => {}
        }
        if let Some(entry) = image {
            let refers = matches!(Kind::of_quadlet(entry.unquoted()), Some(Kind::Image | Kind::Build));
            if let Err(clause) =
                image::check(entry.unquoted()).map_err(|clause| format!("{}: {clause}", written(entry)))
                && !refers
            {
                self.error(entry, clause);
            }
        }
        let takes_updates = matches!(kind, Kind::Container | Kind::Kube);
        for entry in self.unit.all(self.section, "AutoUpdate").into_iter().filter(|_| takes_updates) {
            let message =
                format!("{} makes podman-auto-update.timer a second updater of this container", written(entry));
            self.warning(entry, message);
        }
        for entry in self.unit.all(self.section, "Pull") {
            if matches!(entry.unquoted(), "newer" | "always") && kind == Kind::Container {
                self.warning(entry, format!("{} makes every start a possible update", written(entry)));
            }
        }
    }

    fn ports(&mut self) {
        let mut claimed = BTreeMap::new();
        let mut values: Vec<(&Entry, String)> = Vec::new();
        for entry in self.unit.all(self.section, "PublishPort") {
            values.push((entry, entry.value.trim_end().to_owned()));
        }
        for (entry, argument) in self.arguments() {
            if let args::Argument::Publish(value) = argument {
                values.push((entry, value));
            }
        }
        for (entry, value) in values.into_iter().filter(|(_, value)| !value.contains(['$', '%'])) {
            match ports::claims(&ports::split(&value)) {
                Err(clause) => self.error(entry, format!("{}: {clause}", written(entry))),
                Ok(claims) => {
                    let twice = claims.iter().find_map(|claim| {
                        claimed.iter().find(|(other, _)| claim.meets(other)).map(|(_, line)| (claim.port, *line))
                    });
                    if let Some((port, line)) = twice {
                        self.error(
                            entry,
                            format!("{}: host port {port} is published on line {line}, too", written(entry)),
                        );
                    }
                    claimed.extend(claims.into_iter().map(|claim| (claim, entry.line)));
                }
            }
        }
    }

    fn mounts(&mut self) {
        let mut found: Vec<(&Entry, Written)> = Vec::new();
        for entry in self.unit.all(self.section, "Volume") {
            found.push((entry, mounts::volume(entry.value.trim_end())));
        }
        for entry in self.unit.all(self.section, "Mount") {
            let words = relaxed_words(&entry.value).unwrap_or_default();
            found.extend(words.iter().map(|word| (entry, mounts::mount(word))));
        }
        for (entry, written) in found {
            self.mount(entry, &written);
        }
    }

    fn mount(&mut self, entry: &Entry, mount: &Written) {
        let source = mount.source.as_str();
        if source.starts_with('~') {
            self.error(entry, format!("{}: ~ is not expanded, it would be the name of a volume", written(entry)));
        } else if source.starts_with('.') && leads_out(source) {
            self.error(entry, format!("{}: {source} leads out of the module", written(entry)));
        } else if source.starts_with('.') && !mount.read_only {
            let message =
                format!("{}: a relative path that may be written to would be written below /etc", written(entry));
            self.found.push(
                Problem::error("", Some(entry.line), message)
                    .hint(format!("mount {source} read-only, or name an absolute path")),
            );
        } else if mount.kind == MountType::Bind && !source.starts_with(['/', '.', '%', '$']) {
            self.error(entry, format!("{}: a bind mount needs a path, \"{source}\" is none", written(entry)));
        }
        let target = mount.target.as_str();
        let message = || format!("{}: the target \"{target}\" is no absolute path", written(entry));
        match mount.kind {
            _ if target.starts_with(['/', '$', '%']) => {}
            MountType::Other => {}
            // A lone name reads like a volume's; Podman takes it for a target and refuses it only at the start.
            MountType::Anonymous => self.warning(entry, message()),
            MountType::Bind | MountType::Volume | MountType::Tmpfs | MountType::Image => self.error(entry, message()),
        }
    }

    fn paths(&mut self) {
        for entry in self.unit.all(self.section, "EnvironmentFile") {
            for path in relaxed_words(&entry.value).unwrap_or_default() {
                let value = written(entry);
                match path.as_str() {
                    path if path.starts_with("-/") || path.starts_with("-%") || path.starts_with("-$") => {
                        let message =
                            format!("{value}: Podman takes the - for a part of the path, and the file is never found");
                        let hint = "set it in [Service], where - means optional, or ship an empty file";
                        self.found.push(Problem::error("", Some(entry.line), message).hint(hint));
                    }
                    path if path.starts_with('~') => self.error(entry, format!("{value}: ~ is not expanded")),
                    path if leads_out(path) => self.error(entry, format!("{value} leads out of the module")),
                    _ => {}
                }
            }
        }
        for key in ["Yaml", "ConfigMap", "File", "SetWorkingDirectory"] {
            for entry in self.unit.all(self.section, key) {
                let path = entry.unquoted();
                if !is_url(path) && leads_out(path) {
                    self.error(entry, format!("{} leads out of the module", written(entry)));
                } else if key == "Yaml" && path.starts_with('/') {
                    let message = format!(
                        "{} is not a file of the module: what it mounts and publishes is not seen",
                        written(entry)
                    );
                    self.warning(entry, message);
                }
            }
        }
    }

    /// Values that Podman splits into words, and drops without a word of its own where it cannot.
    fn words(&mut self) {
        let keys = ["Annotation", "Environment", "EnvironmentFile", "Label", "Mount", "PodmanArgs", "Secret"];
        for entry in keys.iter().flat_map(|key| self.unit.all(self.section, key)) {
            if let Err(error) = relaxed_words(&entry.value) {
                self.error(entry, format!("{}: {error}, so Podman drops the whole value", written(entry)));
            }
        }
        for entry in self.unit.all(self.section, "PodmanArgs") {
            for flag in args::unseen(&relaxed_words(&entry.value).unwrap_or_default()) {
                self.warning(entry, format!("PodmanArgs= has {flag}, which is not looked into"));
            }
        }
    }

    fn labels(&mut self) {
        for entry in self.unit.all(self.section, "Label") {
            for word in relaxed_words(&entry.value).unwrap_or_default() {
                if word.starts_with("io.holdfast.") {
                    self.error(entry, format!("{}: labels of io.holdfast are holdfast's own", written(entry)));
                } else if !word.contains('=') {
                    let message = format!("{}: \"{word}\" has no =, it would be a label of its own", written(entry));
                    self.found.push(
                        Problem::warning("", Some(entry.line), message)
                            .hint("put the whole label in double quotes when its value has blanks"),
                    );
                }
            }
        }
        for entry in self.unit.all(self.section, "PodmanArgs") {
            if entry.value.contains("io.holdfast.") {
                self.error(entry, format!("{}: labels of io.holdfast are holdfast's own", written(entry)));
            }
        }
    }

    fn dependencies(&mut self) {
        let keys = ["After", "Before", "BindsTo", "PartOf", "Requires", "Requisite", "Upholds", "Wants", "Conflicts"];
        for key in keys {
            for entry in self.unit.all("Unit", key) {
                let words = relaxed_words(&entry.value).unwrap_or_default();
                if let Some(name) = words.iter().find(|word| Kind::of_quadlet(word).is_some()) {
                    let message = format!("{key}={name} is translated to a unit's name only from Podman 5.5 on");
                    let stem = name.rsplit_once('.').map_or(name.as_str(), |(stem, _)| stem);
                    self.found.push(
                        Problem::warning("", Some(entry.line), message)
                            .hint(format!("write the unit's name, as in {key}={stem}.service")),
                    );
                }
            }
        }
    }

    fn container(&mut self) {
        if let Some(entry) = self.unit.last_entry(self.section, "Pod")
            && !entry.unquoted().ends_with(".pod")
        {
            self.error(entry, format!("{}: it names no .pod file", written(entry)));
        }
        let user = self.last("User");
        if let Some(entry) = self.unit.last_entry(self.section, "Group").filter(|_| user.is_none()) {
            self.error(entry, "Group= is set without User=");
        }
        self.service_type();
        let keeps = ["Volume", "Mount", "Rootfs", "Pod"].iter().any(|key| self.last(key).is_some());
        let read_only = self.unit.boolean(self.section, "ReadOnly") == Some(true);
        let oneshot = self.unit.last("Service", "Type") == Some("oneshot");
        if let Some(entry) = self.unit.last_entry(self.section, "Image").filter(|_| !keeps && !read_only && !oneshot) {
            let message =
                "nothing is mounted: data below a VOLUME of the image, which is not seen here, is gone at each restart";
            self.warning(entry, message);
        }
    }

    fn service_type(&mut self) {
        if let Some(entry) = self.unit.last_entry("Service", "Type")
            && !matches!(entry.unquoted(), "notify" | "oneshot")
        {
            self.error(entry, format!("{}: it is notify or oneshot in a Quadlet file", written(entry)));
        }
        if let Some(entry) = self.unit.last_entry("Service", "KillMode")
            && !matches!(entry.unquoted(), "mixed" | "control-group")
        {
            self.error(entry, format!("{}: it is mixed or control-group in a Quadlet file", written(entry)));
        }
    }

    fn volume(&mut self) {
        let device = self.last("Device").is_some() || self.last("Driver") == Some("image");
        for key in ["Type", "Options"] {
            if let Some(entry) = self.unit.last_entry(self.section, key).filter(|_| !device) {
                self.error(entry, format!("{key}= is set without Device="));
            }
        }
    }

    fn network(&mut self) {
        let subnets = self.unit.all(self.section, "Subnet").len();
        for key in ["Gateway", "IPRange"] {
            let entries = self.unit.all(self.section, key);
            if let Some(entry) = entries.get(subnets) {
                self.error(entry, format!("there are more {key}= than Subnet="));
            }
        }
    }

    fn build(&mut self) {
        if self.last("ImageTag").is_none() {
            self.missing("no ImageTag= is set");
        }
        let context = self.last("SetWorkingDirectory").or_else(|| self.unit.last("Service", "WorkingDirectory"));
        match (self.unit.last_entry(self.section, "File"), context) {
            (None, None) => self.missing("neither SetWorkingDirectory= nor File= is set"),
            (Some(entry), None) if !entry.unquoted().starts_with('/') && !is_url(entry.unquoted()) => {
                self.error(entry, format!("{}: a relative path needs SetWorkingDirectory=", written(entry)));
            }
            _ => {}
        }
    }

    fn kube(&mut self) {
        if self.last("Yaml").is_none() {
            self.missing("no Yaml= is set");
        }
        self.service_type();
    }

    fn users(&mut self, kind: Kind) {
        let explicit = ["UserNS", "UIDMap", "GIDMap", "SubUIDMap", "SubGIDMap"];
        let mapped = explicit.iter().any(|key| !self.unit.all(self.section, key).is_empty());
        let remaps = ["RemapUsers", "RemapUid", "RemapGid"];
        let remap = remaps.iter().find_map(|key| self.unit.all(self.section, key).pop());
        match remap {
            Some(entry) if mapped => {
                self.error(entry, format!("{}= excludes UserNS= and the other mapping keys", entry.key));
            }
            Some(entry) if kind == Kind::Kube && entry.unquoted() == "manual" => {
                self.error(entry, "RemapUsers=manual is not for .kube files");
            }
            Some(entry) if entry.key != "RemapUsers" => {
                self.error(entry, format!("{}= is set without RemapUsers=", entry.key))
            }
            _ => {}
        }
    }

    fn arguments(&self) -> Vec<(&'a Entry, args::Argument)> {
        let entries = self.unit.all(self.section, "PodmanArgs").into_iter();
        entries
            .flat_map(|entry| {
                let arguments = args::read(&relaxed_words(&entry.value).unwrap_or_default());
                arguments.into_iter().map(move |argument| (entry, argument))
            })
            .collect()
    }

    fn last(&self, key: &str) -> Option<&'a str> {
        self.unit.last(self.section, key)
    }

    fn error(&mut self, entry: &Entry, message: impl Into<String>) {
        self.found.push(Problem::error("", Some(entry.line), message));
    }

    fn warning(&mut self, entry: &Entry, message: impl Into<String>) {
        self.found.push(Problem::warning("", Some(entry.line), message));
    }

    fn missing(&mut self, message: &str) {
        self.found.push(Problem::error("", None, message));
    }
}

fn written(entry: &Entry) -> String {
    format!("{}={}", entry.key, entry.value)
}

/// True when a relative path passes its own beginning.
fn leads_out(path: &str) -> bool {
    if path.starts_with(['/', '%', '$']) {
        return false;
    }
    let mut depth = 0_i32;
    path.split('/').any(|part| {
        match part {
            "" | "." => {}
            ".." => depth -= 1,
            _ => depth += 1,
        }
        depth < 0
    })
}
