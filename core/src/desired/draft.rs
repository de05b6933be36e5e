//! One module with what the generator says of it: facts per Quadlet file, and what makes the module unreadable.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use sha2::{Digest, Sha256};

use crate::expand::{self, HostFacts};
use crate::generated::{GeneratorMessage, Printed};
use crate::kube::{self, KubeFacts};
use crate::module::{Module, QuadletSource, dropin_folders};
use crate::name::{HostPath, ModuleName};
use crate::problem::{Problem, Severity};
use crate::quadlet::{self, Finding, QuadletFacts};
use crate::resource::Kind;
use crate::unitfile::UnitFile;

use super::assets::{self, Assets, own_line};
use super::reading::{self, Siblings};
use super::{Inputs, Need, below};

/// How much of the SHA-256 is the hash of a definition: it stands in a label that people read.
const HASH_DIGITS: usize = 32;

/// One module, on the way to its resources.
pub(super) struct Draft<'a> {
    pub module: &'a Module,
    pub name: Option<ModuleName>,
    pub files: BTreeMap<&'a str, FileDraft<'a>>,
    /// Errors only: the module's own, or the generator's where it has none. One is enough to hold all of it.
    pub problems: Vec<Problem>,
    by_generator: bool,
    /// Signs of a user's own manager, with the file.
    pub user_signs: Vec<(&'a QuadletSource, Finding)>,
}

/// One Quadlet file of a module.
pub(super) struct FileDraft<'a> {
    pub source: &'a QuadletSource,
    /// Relative paths of all files of this name, where there are several.
    pub twins: Vec<&'a str>,
    pub path: HostPath,
    pub unit: String,
    pub facts: Arc<QuadletFacts>,
    /// The hash of its definition.
    pub hash: String,
    /// The YAML of a `.kube` file that is named by an absolute path.
    pub yaml: Option<HostPath>,
    /// Environment files that Podman or systemd cannot start it without, but those that travel with it.
    pub env_files: Vec<HostPath>,
    /// What references to Quadlet files come down to where no module has the file.
    pub foreign: BTreeMap<String, Need>,
    pub assets: Assets<'a>,
    /// What the YAML of a `.kube` file makes beside its facts.
    pub kube: KubeFacts,
}

impl FileDraft<'_> {
    /// The files of the host that must be there for it, beside its mounts.
    pub fn reads(&self) -> impl Iterator<Item = &HostPath> {
        self.yaml.iter().chain(&self.env_files)
    }

    /// The images from which it runs. An image file pulls and a build file makes what it names: they need none.
    pub fn images(&self) -> impl Iterator<Item = &str> {
        let runs = !matches!(self.source.kind, Kind::Image | Kind::Build);
        let image = self.facts.image.iter().filter(move |image| runs && !image.contains("${"));
        image.chain(&self.kube.images).map(String::as_str)
    }
}

impl Draft<'_> {
    /// What the generator complains of is told with Podman's version, which only a look knows.
    pub fn tell_version(&mut self, version: &str) {
        for problem in self.problems.iter_mut().filter(|_| self.by_generator) {
            problem.message.push_str(&format!(" (Podman {version})"));
        }
    }

    /// True when nothing of the module is applied, whatever the host says.
    pub fn is_held_whole(&self) -> bool {
        !self.problems.is_empty() || !self.module.unsafe_owner.is_empty() || !self.user_signs.is_empty()
    }
}

/// Reads every module against the generator's output.
pub(super) fn all<'a>(input: &Inputs<'a>, printed: &Printed) -> Vec<Draft<'a>> {
    let siblings = Siblings::of(input.modules, printed);
    input.modules.iter().map(|module| draft(input, module, printed, &siblings)).collect()
}

/// The files that `[Service] EnvironmentFile=` names, as paths on the host: to be read before [`super::Drafts::read`].
#[must_use]
pub fn environment_files(modules: &[Module], printed: &Printed, host: &HostFacts) -> BTreeSet<String> {
    let mut files = BTreeSet::new();
    let mut add = |unit: &UnitFile, name: &str| {
        files.extend(expand::environment_files(unit, host, name).into_iter().map(|(path, _)| path));
    };
    for (file_name, source) in modules.iter().flat_map(|module| &module.quadlets) {
        for printed in printed.of_name(file_name) {
            if let Some(unit) = &printed.merged {
                add(unit, &printed.name);
            }
        }
        // A file that the generator dropped is held, but its sentence shall not blame a variable that is set.
        for source in source {
            add(&source.parsed, &reading::unit_name(file_name, source));
        }
    }
    files
}

fn draft<'a>(input: &Inputs<'a>, module: &'a Module, printed: &Printed, siblings: &Siblings) -> Draft<'a> {
    let directory = below(&input.quadlet_dir, &module.name);
    let mut problems: Vec<Problem> =
        module.problems.iter().filter(|problem| problem.severity == Severity::Error).cloned().collect();
    let name = match ModuleName::new(module.name.as_str()) {
        Ok(name) => Some(name),
        Err(error) if problems.is_empty() => {
            problems.push(Problem::error("", None, error.to_string()));
            None
        }
        Err(_) => None,
    };
    let mut files = BTreeMap::new();
    let mut user_signs = Vec::new();
    for (file_name, sources) in &module.quadlets {
        let Some(source) = sources.first() else { continue };
        let path = below(&directory, file_name);
        let made = printed.of_source(path.as_str()).next_back();
        let merged = made.and_then(|unit| unit.merged.as_ref());
        let merged = merged.map_or_else(|| source.parsed.clone(), |unit| reading::with_lines_of(unit, &source.parsed));
        let mut facts = reading::facts(input, file_name, &directory, source.kind, &merged, siblings);
        // The generator adds lines with %t and targets of its own: only what the module says is a sign.
        facts.user_signs = quadlet::user_signs(source.kind, &source.parsed);
        forget_unknown_lines(&mut facts);
        user_signs.extend(facts.user_signs.iter().map(|sign| (source, sign.clone())));
        let assets = assets::of(module, source, &facts);
        problems.extend(assets.problems.iter().cloned());
        let kube = kube_facts(source.kind, &merged, &assets).unwrap_or_else(|problem| {
            problems.push(problem);
            KubeFacts::default()
        });
        kube.add_to(&mut facts);
        let unit = made.map_or_else(|| reading::unit_name(file_name, source), |unit| unit.name.clone());
        problems.extend(plain_errors(source));
        let twins =
            if sources.len() > 1 { sources.iter().map(|twin| twin.file.as_str()).collect() } else { Vec::new() };
        let yaml = reading::kube_yaml(&merged).filter(|_| source.kind == Kind::Kube);
        let yaml = yaml.and_then(|written| HostPath::new(written).ok());
        let env_files = env_files(&merged, &facts, &directory, &unit, input.host);
        let hash = hash(&std::mem::take(&mut facts.canonical));
        let facts = Arc::new(facts);
        let foreign = siblings.foreign(&facts);
        let file = FileDraft { source, twins, path, unit, facts, hash, yaml, env_files, foreign, assets, kube };
        files.insert(file_name.as_str(), file);
    }
    problems.extend(assets::collisions(&files));
    // A module with errors of its own was not staged: the generator's silence about it says nothing.
    let by_generator = problems.is_empty();
    if by_generator {
        problems.extend(files.iter().filter_map(|(name, file)| complaint(printed, name, file)));
    }
    Draft { module, name, files, problems, by_generator, user_signs }
}

/// What travels with the file is no need; what should and does not is told as a trouble.
fn env_files(
    merged: &UnitFile, facts: &QuadletFacts, directory: &HostPath, unit: &str, host: &HostFacts,
) -> Vec<HostPath> {
    let read = facts.env_files.iter().filter(|path| !directory.contains(path)).cloned();
    read.chain(reading::required_env_files(merged, unit, host)).collect()
}

fn hash(canonical: &str) -> String {
    let mut hex = format!("{:x}", Sha256::digest(canonical.as_bytes()));
    hex.truncate(HASH_DIGITS);
    hex
}

/// What is plainly wrong in a file, with the lines of its own.
pub(super) fn plain_errors(source: &QuadletSource) -> Vec<Problem> {
    let errors = quadlet::problems(source.kind, &source.parsed).into_iter();
    let errors = errors.filter(|problem| problem.severity == Severity::Error);
    // An environment file that is never found makes one container wait for it, not the module unreadable.
    let key =
        |line: Option<u32>| source.parsed.entries.iter().find(|entry| Some(entry.line) == line).map(|e| e.key.as_str());
    let errors = errors.filter(|problem| key(problem.line) != Some("EnvironmentFile"));
    errors
        .map(|problem| Problem { file: source.file.clone(), line: own_line(source, problem.line), ..problem })
        .collect()
}

fn kube_facts(kind: Kind, merged: &UnitFile, assets: &Assets) -> Result<KubeFacts, Problem> {
    let yaml = reading::kube_yaml(merged).filter(|_| kind == Kind::Kube).and_then(|written| assets.get(written));
    let Some(yaml) = yaml else { return Ok(KubeFacts::default()) };
    let text = String::from_utf8_lossy(yaml.content);
    kube::read(&text).map_err(|error| Problem::error(yaml.file, Some(error.line), error.message))
}

fn forget_unknown_lines(facts: &mut QuadletFacts) {
    let mounts = facts.mounts.iter_mut().map(|mount| &mut mount.line);
    let unresolved = facts.unresolved.iter_mut().map(|finding| &mut finding.line);
    for line in mounts.chain(unresolved) {
        *line = line.filter(|line| *line > 0);
    }
}

/// What the generator has against a file: it dropped it, or it skipped one of its drop-ins.
fn complaint(printed: &Printed, file_name: &str, file: &FileDraft) -> Option<Problem> {
    let FileDraft { source, path, .. } = file;
    let is_made = printed.of_source(path.as_str()).next().is_some();
    let named = printed.messages.iter().filter(|message| !message.text.to_lowercase().starts_with("warning"));
    let mut about = named.filter(|message| is_about(message, file_name, path, is_made));
    if let Some(message) = about.next() {
        let text = trim_message(&message.text);
        let line = key_of(text).and_then(|key| source.parsed.entries.iter().find(|entry| entry.key == key));
        let line = line.map(|entry| entry.line).filter(|line| *line <= source.own_lines);
        return Some(Problem::error(&source.file, line, text));
    }
    // A file of the same name elsewhere hides this one: that is two claims on one name, not a fault of this file.
    if is_made || printed.of_name(file_name).next().is_some() {
        return None;
    }
    // One file that does not parse costs all units of its directory: Podman says so of that file only.
    let neighbour = printed.messages.iter().find(|message| is_neighbour(message, path));
    let text = match neighbour {
        Some(message) => format!("Podman's generator drops all of its directory: {}", message.text),
        None => "Podman's generator makes no unit of it and does not say why".to_owned(),
    };
    Some(Problem::error(&source.file, None, text))
}

fn is_neighbour(message: &GeneratorMessage, path: &HostPath) -> bool {
    let folder = |path: &str| path.rsplit_once('/').map(|(folder, _)| folder.to_owned());
    let unread = message.text.starts_with("error ");
    unread && message.file.as_deref().is_some_and(|file| folder(file) == folder(path.as_str()))
}

fn is_about(message: &GeneratorMessage, file_name: &str, path: &HostPath, printed: bool) -> bool {
    match &message.file {
        Some(file) if file == path.as_str() => true,
        Some(file) => {
            let folder = file.rsplit('/').nth(1).unwrap_or_default();
            // An operator's own drop-ins cross directories, and those of a whole type do, too.
            let of_type = file_name.rsplit_once('.').is_some_and(|(_, kind)| folder.strip_suffix(".d") == Some(kind));
            of_type || dropin_folders(file_name).iter().any(|applies| applies == folder)
        }
        None => !printed && message.text.contains(&format!("\"{file_name}\"")),
    }
}

/// `converting "a.container": unsupported key … in /etc/…/a.container` -> `unsupported key …`.
fn trim_message(text: &str) -> &str {
    let text = text.strip_prefix("converting ").and_then(|rest| rest.split_once(": ")).map_or(text, |(_, rest)| rest);
    text.rsplit_once(" in /").map_or(text, |(text, _)| text)
}

fn key_of(text: &str) -> Option<&str> {
    text.strip_prefix("unsupported key '")?.split('\'').next()
}
