//! The `holdfast` command on a test host, and its reports.

use std::fmt;
use std::ops::Deref;

use serde_json::Value;

use crate::{Done, Host, workspace};

/// Where assigned modules are on a host.
pub const MODULES: &str = "/etc/holdfast/modules";
/// Where their Quadlet files are installed.
pub const INSTALLED: &str = "/etc/containers/systemd/holdfast";

impl Host {
    /// Assigns every module in `tests/modules/CASE/`. What a module of the same name had on the host is gone, as after
    /// `rsync --delete`; modules of other names stay. What a module starts is watched for one second, not ten, unless it
    /// has a module.toml of its own.
    #[track_caller]
    pub fn assign(&self, case: &str) {
        let case = workspace().join("tests/modules").join(case);
        let modules = std::fs::read_dir(&case).unwrap_or_else(|error| panic!("{}: {error}", case.display()));
        for module in modules {
            let module = module.expect("read tests/modules").path();
            let name = module.file_name().expect("it has a name").to_string_lossy().into_owned();
            self.ok(&format!("rm -rf {MODULES}/{name}"));
            self.push_tree(&module, &format!("{MODULES}/{name}"));
            if !module.join("module.toml").exists() {
                self.module(&format!("{name}/module.toml"), "[health]\nwatch = \"1s\"\n");
            }
        }
    }

    /// Writes one file of an assigned module: `module("web/web.container", "[Container]…")`.
    #[track_caller]
    pub fn module(&self, path: &str, text: &str) {
        self.write(&format!("{MODULES}/{path}"), text);
    }

    /// `holdfast apply --json`, which must end with this status and whose numbers must add up.
    #[track_caller]
    pub fn apply(&self, status: i32) -> Report {
        self.apply_with("", status)
    }

    /// The same with more words: modules, `--wait`.
    #[track_caller]
    pub fn apply_with(&self, words: &str, status: i32) -> Report {
        let done = self.sh_for(300, &format!("holdfast apply --json {words}"));
        if done.status != status {
            let text = self.sh("holdfast report").stdout;
            panic!("{}: holdfast apply {words} ended with {}\n{}{text}", self.name(), done.status, done.stderr);
        }
        let report = Report(done.json());
        report.adds_up();
        report
    }

    /// A verb that looks, as JSON, whatever its status: `look("status")`, `look("holds web")`.
    #[track_caller]
    pub fn look(&self, words: &str) -> Value {
        self.sh(&format!("holdfast {words} --json")).json()
    }

    /// What is held now, as [`Report::held`] lists it.
    #[track_caller]
    pub fn held(&self) -> Vec<String> {
        holds(&self.look("holds")["holds"])
    }

    /// Runs `holdfast WORDS`, which must end with this status.
    #[track_caller]
    pub fn holdfast(&self, words: &str, status: i32) -> Done {
        let done = self.sh(&format!("holdfast {words}"));
        assert_eq!(done.status, status, "{}: holdfast {words}\n{}{}", self.name(), done.stdout, done.stderr);
        done
    }

    /// One property of a unit.
    #[track_caller]
    pub fn property(&self, unit: &str, name: &str) -> String {
        self.ok(&format!("systemctl show --value --property={name} {unit}")).trim_end().to_owned()
    }

    /// One value of a container: `inspect("web", "{{.Id}}")`.
    #[track_caller]
    pub fn inspect(&self, container: &str, format: &str) -> String {
        self.ok(&format!("podman container inspect --format '{format}' {container}")).trim_end().to_owned()
    }

    /// Fails unless no unit is failed.
    #[track_caller]
    pub fn nothing_failed(&self) {
        assert_eq!(self.ok("systemctl --failed --plain --no-legend"), "");
    }
}

/// A report as JSON.
pub struct Report(Value);

impl Report {
    /// Its id.
    #[must_use]
    pub fn id(&self) -> &str {
        self.0["report"].as_str().expect("a report has an id")
    }

    /// A number: `count("held")`.
    #[track_caller]
    #[must_use]
    pub fn count(&self, what: &str) -> u64 {
        self.0[what].as_u64().unwrap_or_else(|| panic!("no number {what} in {self}"))
    }

    /// What is held, one `MODULE kind/name REASON` each, sorted.
    #[must_use]
    pub fn held(&self) -> Vec<String> {
        holds(&self.0["resources"])
    }

    /// What was done, one `MODULE kind/name OUTCOME` each, sorted; without what is held.
    #[must_use]
    pub fn done(&self) -> Vec<String> {
        let mut lines = self.lines("resources", "outcome");
        lines.retain(|line| !line.ends_with(" held"));
        lines
    }

    /// The notes, one `MODULE kind/name NOTE` each, sorted.
    #[must_use]
    pub fn notes(&self) -> Vec<String> {
        self.lines("notes", "note")
    }

    /// The sentence of a resource; of its note if it has no other.
    #[track_caller]
    #[must_use]
    pub fn sentence(&self, module: &str, resource: &str) -> &str {
        let of = |list: &str| {
            let mut all = self.0[list].as_array().into_iter().flatten();
            all.find(|one| one["module"] == module && one["resource"] == resource)
        };
        let one = of("resources").or_else(|| of("notes"));
        one.and_then(|one| one["sentence"].as_str())
            .unwrap_or_else(|| panic!("nothing on {module} {resource} in {self}"))
    }

    /// One held, changed, or failed resource.
    #[track_caller]
    #[must_use]
    pub fn resource(&self, module: &str, resource: &str) -> &Value {
        let mut all = self.0["resources"].as_array().into_iter().flatten();
        all.find(|one| one["module"] == module && one["resource"] == resource)
            .unwrap_or_else(|| panic!("nothing on {module} {resource} in {self}"))
    }

    /// Every resource that was asked for is in exactly one state.
    #[track_caller]
    fn adds_up(&self) {
        let sum = ["applied", "held", "failed", "not_attempted"].map(|what| self.count(what)).iter().sum::<u64>();
        assert_eq!(self.count("total"), sum, "{self}");
        assert_eq!(self.count("applied"), self.count("changed") + self.count("unchanged"), "{self}");
        let listed = self.count("total") - self.count("unchanged") + self.count("removed");
        assert_eq!(self.0["resources"].as_array().map(Vec::len), usize::try_from(listed).ok(), "{self}");
    }

    fn lines(&self, list: &str, last: &str) -> Vec<String> {
        lines(&self.0[list], last)
    }
}

impl Deref for Report {
    type Target = Value;
    fn deref(&self) -> &Value {
        &self.0
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#}", self.0)
    }
}

impl fmt::Debug for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Fails unless two accounts, such as [`crate::foreign_snapshot`]'s, are the same, and shows only the lines that differ.
#[track_caller]
pub fn assert_same(before: &str, after: &str, what: &str) {
    let only = |this: &str, other: &str, sign: &str| -> String {
        let lines = this.lines().filter(|line| !other.lines().any(|other| other == *line));
        lines.map(|line| format!("{sign} {line}\n")).collect()
    };
    assert!(before == after, "{what}\n{}{}", only(before, after, "-"), only(after, before, "+"));
}

/// The entries with a reason.
fn holds(list: &Value) -> Vec<String> {
    let mut lines = lines(list, "reason");
    lines.retain(|line| !line.ends_with(" -"));
    lines
}

fn lines(list: &Value, last: &str) -> Vec<String> {
    let word = |one: &Value, key: &str| one[key].as_str().unwrap_or("-").to_owned();
    let all = list.as_array().into_iter().flatten();
    let mut lines: Vec<String> =
        all.map(|one| ["module", "resource", last].map(|key| word(one, key)).join(" ")).collect();
    lines.sort();
    lines
}
