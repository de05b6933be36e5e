//! `PodmanArgs=`: the flags in it that mount, publish, name or refer to something.

/// A flag that bears on needs and claims.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Argument {
    Volume(String),
    Mount(String),
    Tmpfs(String),
    Publish(String),
    Network(String),
    Secret(String),
    EnvFile(String),
    Name(String),
    /// A container whose volumes or namespace are used.
    Container(String),
    HealthCheck(String),
}

/// All of them in their order. A flag of which a value is not seen (the next line holds it) is left out.
pub(super) fn read(words: &[String]) -> Vec<Argument> {
    let mut found = Vec::new();
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let (flag, attached) = match word.split_once('=') {
            Some((flag, value)) if flag.starts_with("--") => (flag, Some(value.to_owned())),
            _ => short(word),
        };
        if !takes_value(flag) {
            continue;
        }
        let value = attached.or_else(|| words.next().cloned());
        found.extend(value.and_then(|value| argument(flag, value)));
    }
    found
}

/// Flags that mount, publish or join something which is not seen from them.
pub(super) fn unseen(words: &[String]) -> Vec<&str> {
    let flags = ["--pod", "--pod-id-file", "--publish-all", "-P", "--rootfs", "--image-volume"];
    let names = words.iter().map(|word| word.split_once('=').map_or(word.as_str(), |(flag, _)| flag));
    names.filter(|name| flags.contains(name)).collect()
}

fn takes_value(flag: &str) -> bool {
    matches!(
        flag,
        "-v" | "-p"
            | "--volume"
            | "--mount"
            | "--tmpfs"
            | "--publish"
            | "--network"
            | "--net"
            | "--secret"
            | "--env-file"
            | "--name"
            | "--volumes-from"
            | "--requires"
            | "--ipc"
            | "--pid"
            | "--userns"
            | "--uts"
            | "--health-cmd"
    )
}

fn argument(flag: &str, value: String) -> Option<Argument> {
    let argument = match flag {
        "-v" | "--volume" => Argument::Volume(value),
        "-p" | "--publish" => Argument::Publish(value),
        "--mount" => Argument::Mount(value),
        "--tmpfs" => Argument::Tmpfs(value),
        "--network" | "--net" => Argument::Network(value),
        "--secret" => Argument::Secret(value),
        "--env-file" => Argument::EnvFile(value),
        "--name" => Argument::Name(value),
        "--volumes-from" | "--requires" => Argument::Container(value),
        "--health-cmd" => Argument::HealthCheck(value),
        _ => Argument::Container(value.strip_prefix("container:")?.to_owned()),
    };
    Some(argument)
}

/// `-v` and `-p` with their value attached, as in `-v/a:/b`.
fn short(word: &str) -> (&str, Option<String>) {
    for flag in ["-v", "-p"] {
        match word.strip_prefix(flag) {
            Some(value) if !value.is_empty() => {
                return (flag, Some(value.strip_prefix('=').unwrap_or(value).to_owned()));
            }
            _ => {}
        }
    }
    (word, None)
}
