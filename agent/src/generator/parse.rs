//! What the generator prints -> Generated, in the host's paths.

use std::collections::BTreeMap;

use holdfast_core::generated::{Generated, GeneratedUnit, GeneratorMessage};

/// Reads the generator's standard output and standard error of a run on a staged tree, `stage` being its root.
pub(super) fn parse(stdout: &str, stderr: &str, stage: &str) -> Generated {
    let staged = format!("{stage}/");
    Generated { units: units(&stdout.replace(&staged, "/")), messages: messages(&stderr.replace(&staged, "/")) }
}

/// Units come after a line `---NAME---` each.
fn units(stdout: &str) -> Vec<GeneratedUnit> {
    let mut units: Vec<GeneratedUnit> = Vec::new();
    for line in stdout.lines() {
        match (header(line), units.last_mut()) {
            (Some(name), _) => {
                units.push(GeneratedUnit { name: name.to_owned(), source: String::new(), text: String::new() });
            }
            (None, Some(unit)) => {
                unit.text.push_str(line);
                unit.text.push('\n');
            }
            (None, None) => {}
        }
    }
    for unit in &mut units {
        unit.text.truncate(unit.text.trim_end().len());
        unit.text.push('\n');
        unit.source = source(&unit.text);
    }
    units
}

/// No line inside of a unit looks like this: there are only groups, comments and assignments, and a name has no `=`. It
/// is taken as it is, since a unit whose name was not understood would be read as a part of the one before it.
fn header(line: &str) -> Option<&str> {
    let name = line.strip_prefix("---")?.strip_suffix("---")?;
    (name.ends_with(".service") && !name.contains(['=', '/'])).then_some(name)
}

/// The generator appends `SourcePath=` to what the file itself may say in `[Unit]`.
fn source(text: &str) -> String {
    let mut section = "";
    let mut found = "";
    for line in text.lines() {
        if line.starts_with('[') {
            section = line.trim_end();
        } else if let Some(path) = line.strip_prefix("SourcePath=").filter(|_| section == "[Unit]") {
            found = path;
        }
    }
    found.to_owned()
}

/// All complaints. Those after the first come on lines of their own, without the prefix of the process.
fn messages(stderr: &str) -> Vec<GeneratorMessage> {
    let mut loaded: BTreeMap<&str, &str> = BTreeMap::new();
    let mut messages: Vec<GeneratorMessage> = Vec::new();
    for line in stderr.lines() {
        let (text, prefixed) = match without_prefix(line) {
            Some(text) => (text, true),
            None => (line, false),
        };
        if let Some(path) = text.strip_prefix("Loading source unit file ") {
            // A file that could not be read lets the next one of its name be loaded: the last one is the one in use.
            loaded.insert(path.rsplit('/').next().unwrap_or(path), path);
            continue;
        }
        if ["Loading source ", "No files parsed from "].iter().any(|start| text.starts_with(start)) {
            continue;
        }
        match messages.last_mut() {
            Some(last) if !prefixed && !starts_message(text) => {
                last.text.push('\n');
                last.text.push_str(text);
            }
            _ if text.trim().is_empty() => {}
            _ => messages.push(GeneratorMessage { file: file(text, &loaded), text: text.to_owned() }),
        }
    }
    messages
}

/// `quadlet-generator[123]: text`.
fn without_prefix(line: &str) -> Option<&str> {
    let (pid, text) = line.strip_prefix("quadlet-generator[")?.split_once("]: ")?;
    pid.bytes().all(|byte| byte.is_ascii_digit()).then_some(text)
}

fn starts_message(text: &str) -> bool {
    ["error loading ", "error reading ", "converting ", "Warning: "].iter().any(|start| text.starts_with(start))
}

/// The file that a message is about: by its path where it is given, else by its name among the loaded ones.
fn file(text: &str, loaded: &BTreeMap<&str, &str>) -> Option<String> {
    let quoted = |start: &str| text.strip_prefix(start).and_then(|rest| rest.split_once('"')).map(|(name, _)| name);
    if let Some(path) = quoted("error loading \"").or_else(|| quoted("error reading directory \"")) {
        return Some(path.to_owned());
    }
    let name = quoted("converting \"").or_else(|| {
        let rest = text.strip_prefix("Warning: ")?;
        rest.split(' ').next()
    })?;
    let at_end = text.rsplit_once(" in /").map(|(_, path)| format!("/{path}"));
    let at_end = at_end.filter(|path| path.rsplit('/').next() == Some(name));
    at_end.or_else(|| loaded.get(name).map(|path| (*path).to_owned()))
}

#[cfg(test)]
mod tests {
    use super::parse;

    const STDOUT: &str = "---web.service---
[X-Container]
Image=localhost/app:1
Volume=./conf:/conf:ro
# ---not-a.service=x---

[Unit]
SourcePath=/made/up
SourcePath=/run/h/stage-1/etc/containers/systemd/holdfast/web/web.container

[Service]
SourcePath=/no
ExecStart=/usr/bin/podman run -v /run/h/stage-1/etc/containers/systemd/holdfast/web/conf:/conf:ro localhost/app:1

---job@a.service---
[Unit]
SourcePath=/srv/linked/job@a.container

---job@a.service---
[X-Kube]
---forged=x.service---
";

    const STDERR: &str = r#"quadlet-generator[7]: Loading source unit file /run/h/stage-1/etc/containers/systemd/broken/x.container
quadlet-generator[7]: Loading source unit file /run/h/stage-1/etc/containers/systemd/t/x.container
quadlet-generator[7]: Loading source unit file /run/h/stage-1/etc/containers/systemd/t/n.container
quadlet-generator[7]: Loading source drop-in file /run/h/stage-1/etc/containers/systemd/n.container.d/10.conf
quadlet-generator[7]: No files parsed from [/run/h/stage-1/etc]
quadlet-generator[7]: Warning: x.container specifies the image "app" which not a fully qualified image name. This is not ideal
quadlet-generator[7]: error loading "/run/h/stage-1/etc/containers/systemd/broken/x.container", file contains line 3: “nonsense” which is not a key-value pair, group, or comment
error loading "/run/h/stage-1/etc/containers/systemd/n.container.d/10.conf", open x: no such file or directory
converting "n.container": requested Quadlet unit int.network was not found
and more of it
converting "x.container": unsupported key 'Bogus' in group 'Container' in /run/h/stage-1/etc/containers/systemd/t/x.container
quadlet-generator[7]: something new
"#;

    #[test]
    fn units_come_in_their_order_and_in_host_paths() {
        let generated = parse(STDOUT, "", "/run/h/stage-1");
        let seen: Vec<_> = generated.units.iter().map(|unit| (unit.name.as_str(), unit.source.as_str())).collect();
        let web = "/etc/containers/systemd/holdfast/web/web.container";
        assert_eq!(
            seen,
            [("web.service", web), ("job@a.service", "/srv/linked/job@a.container"), ("job@a.service", "")]
        );
        assert!(generated.units[0].text.starts_with("[X-Container]\nImage="), "{}", generated.units[0].text);
        assert!(
            generated.units[0]
                .text
                .ends_with("-v /etc/containers/systemd/holdfast/web/conf:/conf:ro localhost/app:1\n")
        );
        assert_eq!(generated.units[2].text, "[X-Kube]\n---forged=x.service---\n");
        assert_eq!(parse("", "", "/s"), super::Generated::default());
    }

    #[test]
    fn messages_find_their_files() {
        let messages = parse("", STDERR, "/run/h/stage-1").messages;
        let seen: Vec<_> = messages.iter().map(|one| (one.file.as_deref(), one.text.split(' ').next())).collect();
        let etc = |path: &str| format!("/etc/containers/systemd/{path}");
        let (broken, dropin, n, x) =
            (etc("broken/x.container"), etc("n.container.d/10.conf"), etc("t/n.container"), etc("t/x.container"));
        assert_eq!(
            seen,
            [
                (Some(x.as_str()), Some("Warning:")),
                (Some(broken.as_str()), Some("error")),
                (Some(dropin.as_str()), Some("error")),
                (Some(n.as_str()), Some("converting")),
                (Some(x.as_str()), Some("converting")),
                (None, Some("something")),
            ]
        );
        assert_eq!(
            messages[3].text,
            "converting \"n.container\": requested Quadlet unit int.network was not found\nand more of it"
        );
        assert!(!messages.iter().any(|message| message.text.contains("stage-1")), "{messages:?}");
    }
}
