//! A module's files -> Module: every file is understood, left alone, or refused with its name and what to do.

use std::collections::{BTreeMap, BTreeSet};

use super::classify::{Role, role, size_cap};
use super::dropins::{Dropin, closed, of_file};
use super::{Content, FileEntry, FileSource, Module, ModuleFiles, QuadletSource, UnitSource, refusal};
use crate::manifest::Manifest;
use crate::name::{HostPath, ModuleName};
use crate::problem::{Problem, Severity};
use crate::resource::Kind;
use crate::tmpfiles;
use crate::unitfile::UnitFile;

/// Says what each file of a module is.
///
/// Quadlet files, plain units and files that cannot be used are kept without content, so that what is held can be
/// counted; `problems` then has an error, and nothing of such a module may be installed.
#[must_use]
pub fn read(files: ModuleFiles) -> Module {
    let ModuleFiles { name, files, problems, unsafe_owner } = files;
    let name_error = ModuleName::new(name.as_str()).err();
    let mut reader =
        Reader { module: Module { name, problems, unsafe_owner, ..Module::default() }, ..Reader::default() };
    if let Some(error) = name_error {
        reader.problem(Problem::error("", None, error.to_string()));
    }
    for (path, entry) in files {
        reader.file(path, entry);
    }
    reader.finish()
}

/// What is known while the files are gone through: drop-ins find their units only at the end.
#[derive(Default)]
struct Reader {
    module: Module,
    quadlets: Vec<(String, Kind, Option<String>)>,
    units: Vec<(String, Option<String>)>,
    quadlet_dropins: Vec<Dropin>,
    unit_dropins: Vec<(String, Dropin)>,
}

impl Reader {
    fn problem(&mut self, problem: Problem) {
        self.module.problems.push(problem);
    }

    fn file(&mut self, file: String, entry: FileEntry) {
        let path = file.as_str();
        match role(path) {
            Role::LeftAlone => self.module.left_alone.push(file),
            Role::Manifest => self.manifest(path, entry),
            Role::Quadlet(kind) => {
                let text = self.quadlet_text(path, entry);
                self.quadlets.push((file, kind, text));
            }
            Role::Unit => {
                let text = self.text(path, entry).map(|text| without_mark(&text).to_owned());
                self.units.push((file, text));
            }
            Role::QuadletDropin { folder } => {
                if let Some(text) = self.quadlet_text(path, entry) {
                    self.quadlet_dropins.push(Dropin { path: path.to_owned(), folder: folder.to_owned(), text });
                }
            }
            Role::UnitDropin { unit } => {
                if let Some(text) = self.text(path, entry) {
                    let dropin = Dropin { path: path.to_owned(), folder: format!("{unit}.d"), text };
                    self.unit_dropins.push((unit.to_owned(), dropin));
                }
            }
            Role::TypeFolder { folder } => self.problem(Problem::error(
                path,
                None,
                format!("{folder}/ would change every unit of its type on this host, so it is refused"),
            )),
            Role::HostFile(host) => self.host_file(path, host, entry),
            Role::Tmpfiles => self.declared(path, entry),
            Role::Asset => self.asset(file, entry),
        }
    }

    fn manifest(&mut self, path: &str, entry: FileEntry) {
        let Some(text) = self.text(path, entry) else { return };
        match Manifest::parse(without_mark(&text)) {
            Ok(manifest) => self.module.manifest = manifest,
            Err(problem) => self.problem(problem),
        }
    }

    fn host_file(&mut self, path: &str, host: &str, entry: FileEntry) {
        let host = match HostPath::new(host) {
            Ok(host) => host,
            Err(error) => return self.problem(Problem::error(path, None, error.to_string())),
        };
        let run = HostPath::new("/run").is_ok_and(|run| run.contains(&host));
        let refused = refusal(&host).or_else(|| run.then(|| "lies in /run, which is empty after a reboot".to_owned()));
        if let Some(clause) = refused {
            return self.problem(Problem::error(path, None, format!("{host} {clause}")));
        }
        let mode = entry.mode & 0o777;
        let content = self.usable(path, entry).unwrap_or_default();
        self.module.files.insert(host, FileSource { file: path.to_owned(), content, mode });
    }

    fn declared(&mut self, path: &str, entry: FileEntry) {
        let Some(text) = self.text(path, entry) else { return };
        let (declared, lines, problems) = tmpfiles::parse(path, without_mark(&text));
        self.module.runtime_lines.push_str(&lines);
        self.module.problems.extend(problems);
        for one in declared {
            let earlier = self.module.declared.iter().find(|other| other.path == one.path);
            let problem = earlier.map(|other| {
                let message = format!("{} is declared at {}:{} already", one.path, other.file, other.line);
                Problem::error(path, Some(one.line), message)
            });
            self.module.problems.extend(problem);
            self.module.declared.push(one);
        }
    }

    fn asset(&mut self, path: String, entry: FileEntry) {
        if let Some(problem) = unusable(&path, &entry) {
            // What nothing refers to does no harm. But a link may hide a directory with units or drop-ins in it.
            let severity = match &entry.content {
                Content::Special(_) | Content::TooLarge { size: _ } => Severity::Warning,
                _ => Severity::Error,
            };
            self.problem(Problem { severity, ..problem });
        }
        self.module.assets.insert(path, entry);
    }

    fn usable(&mut self, path: &str, entry: FileEntry) -> Option<Vec<u8>> {
        if let Some(problem) = unusable(path, &entry) {
            self.problem(problem);
        }
        match entry.content {
            Content::Bytes(bytes) => Some(bytes),
            _ => None,
        }
    }

    fn text(&mut self, path: &str, entry: FileEntry) -> Option<String> {
        let bytes = self.usable(path, entry)?;
        match String::from_utf8(bytes) {
            Ok(text) => Some(text),
            Err(error) => {
                let at = error.utf8_error().valid_up_to();
                let line = 1 + error.as_bytes().iter().take(at).filter(|byte| **byte == b'\n').count();
                let message = format!("the text is not UTF-8 at byte {}", at + 1);
                self.problem(Problem::error(path, u32::try_from(line).ok(), message));
                None
            }
        }
    }

    /// The text of a Quadlet file or drop-in, if Podman can read it, ready to have more appended.
    fn quadlet_text(&mut self, path: &str, entry: FileEntry) -> Option<String> {
        let text = self.text(path, entry)?;
        if text.starts_with('\u{feff}') {
            let message = "the file begins with a byte order mark, for which Podman drops every unit of the directory";
            let hint = format!("sed -i '1s/^\\xef\\xbb\\xbf//' {path}");
            self.problem(Problem::error(path, Some(1), message).hint(hint));
            return None;
        }
        match closed(&text) {
            Ok(text) => self.parsed(path, &text).map(|_| text),
            Err(line) => {
                let message = "the line ends in a backslash and no value follows it; Podman would lose the assignment";
                self.problem(Problem::error(path, Some(line), message));
                None
            }
        }
    }

    fn parsed(&mut self, path: &str, text: &str) -> Option<UnitFile> {
        match UnitFile::parse(text) {
            Ok(parsed) => Some(parsed),
            Err(error) => {
                self.problem(Problem::error(path, Some(error.line), error.message));
                None
            }
        }
    }

    fn finish(mut self) -> Module {
        self.place_quadlets();
        self.place_units();
        for declared in &self.module.declared {
            if let Some(file) = self.module.files.get(&declared.path) {
                let message = format!("{} is declared here and is {} too", declared.path, file.file);
                self.module.problems.push(Problem::error(&declared.file, Some(declared.line), message));
            }
        }
        self.module
    }

    fn place_quadlets(&mut self) {
        let dropins = std::mem::take(&mut self.quadlet_dropins);
        let mut used: BTreeSet<&str> = BTreeSet::new();
        for (path, kind, text) in std::mem::take(&mut self.quadlets) {
            let name = file_name(&path).to_owned();
            if !name.chars().all(is_unit_character) {
                let problem = Problem::error(&path, None, "systemd takes no unit of this name");
                self.problem(problem.hint("use only a-z, A-Z, 0-9 and : - _ . @ in the file's name"));
            }
            if name.starts_with('.') && name.matches('.').count() == 1 {
                self.problem(Problem::error(&path, None, "the file has no name before its extension"));
            }
            let own = text.unwrap_or_default();
            let mut source = QuadletSource {
                kind,
                own_lines: u32::try_from(own.lines().count()).unwrap_or(u32::MAX),
                text: own,
                parsed: UnitFile::default(),
                dropins: Vec::new(),
                file: path,
            };
            for dropin in of_file(&name, &dropins) {
                used.insert(&dropin.path);
                source.dropins.push(dropin.path.clone());
                source.text.push_str(&dropin.text);
            }
            source.parsed = self.parsed(&source.file, &source.text).unwrap_or_default();
            self.module.quadlets.entry(name).or_default().push(source);
        }
        for dropin in dropins.iter().filter(|dropin| !used.contains(dropin.path.as_str())) {
            self.idle_dropin(dropin, used.iter().any(|path| file_name(path) == file_name(&dropin.path)));
        }
    }

    /// A drop-in that changes nothing in this module. On the host it would change foreign units of that name.
    fn idle_dropin(&mut self, dropin: &Dropin, hidden: bool) {
        let Dropin { path, folder, text: _ } = dropin;
        let unit = folder.strip_suffix(".d").unwrap_or(folder);
        let named = |name: &String| super::dropin_folders(name).contains(folder);
        if hidden && self.module.quadlets.keys().any(named) {
            let message = "Podman meets another drop-in of this name first and ignores this one";
            self.problem(Problem::warning(path, None, message));
        } else {
            let message =
                format!("the module has no {unit} that this drop-in could change, and no other may be changed");
            self.problem(Problem::error(path, None, message));
        }
    }

    fn place_units(&mut self) {
        for (path, text) in std::mem::take(&mut self.units) {
            let name = file_name(&path).to_owned();
            if let Some(other) = self.module.units.get(&name) {
                let message = format!("{} is a unit of this name too, and only one can be installed", other.file);
                self.problem(Problem::error(&path, None, message));
                continue;
            }
            let text = text.unwrap_or_default();
            let parsed = self.parsed(&path, &text).unwrap_or_default();
            self.module.units.insert(name, UnitSource { file: path, text, parsed, dropins: BTreeMap::new() });
        }
        for (unit, dropin) in std::mem::take(&mut self.unit_dropins) {
            self.place_unit_dropin(&unit, dropin);
        }
    }

    fn place_unit_dropin(&mut self, unit: &str, dropin: Dropin) {
        let Dropin { path, folder: _, text } = dropin;
        let name = file_name(&path).to_owned();
        let text = without_mark(&text).to_owned();
        self.parsed(&path, &text);
        let problem = match self.module.units.get_mut(unit) {
            None => {
                Some(format!("the module has no {unit} that this drop-in could change, and no other may be changed"))
            }
            Some(source) => source.dropins.insert(name, text).map(|_| {
                format!("{unit} has another drop-in of this name in this module, and only one can be installed")
            }),
        };
        if let Some(message) = problem {
            self.problem(Problem::error(path, None, message));
        }
    }
}

/// What is wrong with an entry that is not a readable file, and what to do.
fn unusable(path: &str, entry: &FileEntry) -> Option<Problem> {
    let error = |message: String| Problem::error(path, None, message);
    match &entry.content {
        Content::Bytes(_) => None,
        Content::TooLarge { size } => {
            let cap = size_cap(path);
            Some(error(format!("the file has {size} bytes and was not read; at most {cap} bytes are")))
        }
        Content::Special(kind) => {
            Some(error(format!("this is a {kind}; only files are read")).hint(format!("rm {path}")))
        }
        Content::LinkOutside { target } => Some(
            error(format!("this is a link to {target}, which lies outside of the module"))
                .hint(format!("cp --remove-destination \"$(readlink -f {path})\" {path}")),
        ),
        Content::LinkDangling { target } => {
            Some(error(format!("this is a link to {target}, which is not there")).hint(format!("rm {path}")))
        }
        Content::Unreadable { error: system } => Some(error(format!("the file cannot be read: {system}"))),
    }
}

/// systemd skips a byte order mark; Podman does not.
fn without_mark(text: &str) -> &str {
    text.strip_prefix('\u{feff}').unwrap_or(text)
}

fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// What systemd allows in the name of a unit.
fn is_unit_character(c: char) -> bool {
    c.is_ascii_alphanumeric() || ":-_.\\@".contains(c)
}
