//! `module.toml` -> Manifest, errors with line and column.

use std::time::Duration;

use serde::Deserialize;
use toml::Spanned;

use crate::name::HostPath;
use crate::problem::Problem;
use crate::resource::Kind;

/// What a module may say of itself beside its files.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Manifest {
    /// The author's version, for people.
    pub version: Option<String>,
    /// One line for people.
    pub description: Option<String>,
    /// Predecessors that share neither name nor port: `container:NAME`, `unit:NAME`, `pod:NAME`, `quadlet:FILE`.
    pub replaces: Vec<String>,
    /// What a changed image does.
    pub upgrade_policy: UpgradePolicy,
    /// How long a start may take to become healthy; none = the agent's setting.
    pub health_timeout: Option<Duration>,
    /// How long it must then stay so; none = the agent's setting.
    pub health_watch: Option<Duration>,
    /// The module's own data although below a reference root.
    pub own_paths: Vec<HostPath>,
    /// The host's paths, although mounted read-write.
    pub host_paths: Vec<HostPath>,
    /// Units that must succeed before the first stop of a take.
    pub take_before: Vec<String>,
}

/// `[upgrade] policy`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum UpgradePolicy {
    /// A changed image is deployed by apply.
    #[default]
    Rollout,
    /// A changed image waits for `apply NAME --allow upgrade-policy`.
    Hold,
}

impl Manifest {
    /// Reads the text of `module.toml`.
    ///
    /// # Errors
    /// A [`Problem`] of `module.toml` with line and column: no TOML, an unknown key, or a value that cannot be meant.
    pub fn parse(text: &str) -> Result<Self, Problem> {
        let raw: Raw = toml::from_str(text).map_err(|error| {
            let message = error.message().trim_end().replace("unknown field", "unknown key").replace('`', "\"");
            at(text, error.span().unwrap_or_default(), &message)
        })?;
        let Raw { version, description, replaces, upgrade, health, paths, take } = raw;
        let refused = |span: std::ops::Range<usize>, message: String| at(text, span, &message);
        let duration = |value: Option<Spanned<String>>| {
            value.map(|value| parse_duration(value.get_ref()).map_err(|why| refused(value.span(), why))).transpose()
        };
        let host_paths = |values: Vec<Spanned<String>>| -> Result<Vec<HostPath>, Problem> {
            values
                .into_iter()
                .map(|value| parse_path(value.get_ref()).map_err(|why| refused(value.span(), why)))
                .collect()
        };
        let words = |values: Vec<Spanned<String>>, check: fn(&str) -> Result<(), String>| {
            values
                .into_iter()
                .map(|value| {
                    check(value.get_ref()).map_err(|why| refused(value.span(), why)).map(|()| value.into_inner())
                })
                .collect::<Result<Vec<String>, Problem>>()
        };
        let health_timeout = health.timeout.as_ref().map(Spanned::span);
        let manifest = Self {
            version,
            description,
            replaces: words(replaces, check_predecessor)?,
            upgrade_policy: match upgrade.policy {
                Policy::Rollout => UpgradePolicy::Rollout,
                Policy::Hold => UpgradePolicy::Hold,
            },
            health_timeout: duration(health.timeout)?,
            health_watch: duration(health.watch)?,
            own_paths: host_paths(paths.own)?,
            host_paths: host_paths(paths.host)?,
            take_before: words(take.before, check_unit)?,
        };
        match (manifest.health_timeout, health_timeout) {
            (Some(Duration::ZERO), Some(span)) => Err(refused(span, "no start can be healthy within 0 s".to_owned())),
            _ => Ok(manifest),
        }
    }
}

/// The file as written. Values that need a look keep their place in the text.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Raw {
    version: Option<String>,
    description: Option<String>,
    #[serde(default)]
    replaces: Vec<Spanned<String>>,
    #[serde(default)]
    upgrade: Upgrade,
    #[serde(default)]
    health: Health,
    #[serde(default)]
    paths: Paths,
    #[serde(default)]
    take: Take,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Upgrade {
    #[serde(default)]
    policy: Policy,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Policy {
    #[default]
    Rollout,
    Hold,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Health {
    timeout: Option<Spanned<String>>,
    watch: Option<Spanned<String>>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Paths {
    #[serde(default)]
    own: Vec<Spanned<String>>,
    #[serde(default)]
    host: Vec<Spanned<String>>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Take {
    #[serde(default)]
    before: Vec<Spanned<String>>,
}

fn at(text: &str, span: std::ops::Range<usize>, message: &str) -> Problem {
    let before = text.get(..span.start).unwrap_or(text);
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
    Problem::error("module.toml", u32::try_from(line).ok(), format!("column {column}: {message}"))
}

/// A duration as written in module.toml and holdfast.toml: a whole number and ms, s, min or h.
///
/// # Errors
/// A sentence that says what to write.
pub fn parse_duration(text: &str) -> Result<Duration, String> {
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let millis = match unit.trim_start() {
        "ms" => Some(1),
        "s" => Some(1_000),
        "min" => Some(60_000),
        "h" => Some(3_600_000),
        _ => None,
    };
    let number: Option<u64> = number.parse().ok();
    let value = number.zip(millis).and_then(|(number, millis)| number.checked_mul(millis));
    value
        .map(Duration::from_millis)
        .ok_or_else(|| format!("\"{text}\" is no duration: write a whole number and ms, s, min or h, as in \"60s\""))
}

fn parse_path(text: &str) -> Result<HostPath, String> {
    let path = HostPath::new(text).map_err(|error| error.to_string())?;
    if text.split('/').any(|part| part == "..") { Err(format!("\"{text}\" has \"..\" in it")) } else { Ok(path) }
}

fn check_predecessor(text: &str) -> Result<(), String> {
    let known = "container:NAME, pod:NAME, unit:NAME.service, quadlet:NAME.container";
    let Some((kind, name)) = text.split_once(':') else {
        return Err(format!("\"{text}\" names no predecessor: write {known}"));
    };
    match kind {
        "container" | "pod" if is_podman_name(name) => Ok(()),
        "container" | "pod" => Err(format!("\"{name}\" is no name of a {kind}")),
        "unit" => check_unit(name),
        "quadlet" if Kind::of_quadlet(name).is_some() && !name.contains('/') => Ok(()),
        "quadlet" => Err(format!("\"{name}\" is no Quadlet file: write its name, as in quadlet:web.container")),
        other => Err(format!("\"{other}:\" is unknown: write {known}")),
    }
}

fn check_unit(text: &str) -> Result<(), String> {
    let types = ["service", "timer", "socket", "path", "target", "mount", "scope", "slice", "automount", "swap"];
    let valid = |c: char| c.is_ascii_alphanumeric() || ":-_.\\@".contains(c);
    match text.rsplit_once('.') {
        Some((stem, suffix)) if types.contains(&suffix) && !stem.is_empty() && stem.chars().all(valid) => Ok(()),
        _ => Err(format!("\"{text}\" is no unit: write its whole name, as in web.service")),
    }
}

fn is_podman_name(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphanumeric())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || "_.-".contains(c))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{Manifest, UpgradePolicy, parse_duration};

    #[test]
    fn a_whole_manifest() {
        let text = r#"
version = "3.1.0"
description = "edge proxy"
replaces = ["container:oldproxy", "unit:traefik.service", "pod:edge", "quadlet:proxy.container"]
[upgrade]
policy = "hold"
[health]
timeout = "2min"
watch = "500ms"
[paths]
own = ["/mnt/data/photos/"]
host = ["/srv/media"]
[take]
before = ["snapshot-forge.service"]
"#;
        let manifest = Manifest::parse(text).unwrap();
        assert_eq!(manifest.version.as_deref(), Some("3.1.0"));
        assert_eq!(manifest.replaces.len(), 4);
        assert_eq!(manifest.upgrade_policy, UpgradePolicy::Hold);
        assert_eq!(manifest.health_timeout, Some(Duration::from_secs(120)));
        assert_eq!(manifest.health_watch, Some(Duration::from_millis(500)));
        assert_eq!(manifest.own_paths[0].as_str(), "/mnt/data/photos");
        assert_eq!(manifest.host_paths[0].as_str(), "/srv/media");
        assert_eq!(manifest.take_before, ["snapshot-forge.service"]);
        assert_eq!(Manifest::parse("").unwrap(), Manifest::default());
    }

    #[test]
    fn what_is_refused_has_a_place_and_a_word() {
        let cases = [
            ("colour = 1", 1, 1, &["unknown key \"colour\"", "\"version\"", "\"take\""][..]),
            ("[health]\n  retries = 1", 2, 3, &["unknown key \"retries\"", "\"timeout\"", "\"watch\""]),
            ("[upgrade]\npolicy = \"never\"", 2, 10, &["never", "rollout", "hold"]),
            ("[health]\ntimeout = 60", 2, 11, &["60", "string"]),
            ("[health]\ntimeout = \"60\"", 2, 11, &["\"60\" is no duration", "60s"]),
            ("[health]\ntimeout = \"0s\"", 2, 11, &["0 s"]),
            ("[paths]\nown = [\"/a\", \"srv\"]", 2, 14, &["\"srv\" is no absolute path"]),
            ("[paths]\nhost = [\"/a/../b\"]", 2, 9, &[".."]),
            ("replaces = [\"oldproxy\"]", 1, 13, &["oldproxy", "container:NAME"]),
            ("replaces = [\"image:x\"]", 1, 13, &["\"image:\" is unknown"]),
            ("replaces = [\"container:a/b\"]", 1, 13, &["a/b"]),
            ("replaces = [\"unit:traefik\"]", 1, 13, &["traefik", "web.service"]),
            ("replaces = [\"quadlet:web.service\"]", 1, 13, &["no Quadlet file"]),
            ("[take]\nbefore = [\"snap\"]", 2, 11, &["snap"]),
            ("version = \"1\"\nversion = \"2\"", 2, 1, &["duplicate key"]),
            ("version = ", 1, 11, &[]),
        ];
        for (text, line, column, words) in cases {
            let problem = Manifest::parse(text).unwrap_err();
            assert_eq!((problem.file.as_str(), problem.line), ("module.toml", Some(line)), "{text}: {problem}");
            assert!(problem.message.starts_with(&format!("column {column}: ")), "{text}: {problem}");
            for word in words {
                assert!(problem.message.contains(word), "{text}: {problem} lacks {word}");
            }
        }
    }

    #[test]
    fn durations() {
        for (text, millis) in [("60s", 60_000), ("2min", 120_000), ("500ms", 500), ("1h", 3_600_000), ("5 s", 5_000)] {
            assert_eq!(parse_duration(text), Ok(Duration::from_millis(millis)), "{text}");
        }
        for text in
            ["", "s", "1", "1.5s", "-1s", "1d", "1sec", "1s 2s", "18446744073709551615h", "99999999999999999999s"]
        {
            assert!(parse_duration(text).is_err(), "{text}");
        }
    }
}
