//! `Volume=`, `Mount=` and `Tmpfs=` values taken apart, before anything in them is expanded.

use crate::quadlet::MountType;

/// A mount as written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Written {
    /// The type that it says, or that its form implies; a bind and a named volume look alike here.
    pub kind: MountType,
    /// The source as written; empty where there is none.
    pub source: String,
    /// The target as written.
    pub target: String,
    /// True for `ro`, and for what writes nothing to its source: an overlay, an image.
    pub read_only: bool,
    /// True for `z`, `Z`, `U` and their long forms: labels or owners of the source are changed.
    pub relabels: bool,
}

/// `[source:]target[:options]`. Whether the source is a path is seen only once it is expanded.
#[must_use]
pub fn volume(text: &str) -> Written {
    let mut parts = text.splitn(3, ':');
    let first = parts.next().unwrap_or_default();
    let (source, target) = parts.next().map_or(("", first), |target| (first, target));
    let mut options = parts.next().unwrap_or_default().split(',');
    let mut written = Written {
        kind: if source.is_empty() { MountType::Anonymous } else { MountType::Volume },
        source: source.to_owned(),
        target: target.to_owned(),
        read_only: false,
        relabels: false,
    };
    for option in options.by_ref() {
        match option {
            // An overlay keeps what is written to it apart from the source.
            "ro" | "O" => written.read_only = true,
            "rw" => written.read_only = false,
            "z" | "Z" | "U" => written.relabels = true,
            _ => {}
        }
    }
    written
}

/// One word of `Mount=`, as `type=bind,source=/a,destination=/b,ro=true`: comma-separated values with CSV's quotes.
#[must_use]
pub fn mount(word: &str) -> Written {
    let fields = csv(word);
    let mut kind_word = None;
    let mut written = Written {
        kind: MountType::Volume,
        source: String::new(),
        target: String::new(),
        read_only: false,
        relabels: false,
    };
    for field in &fields {
        let (key, value) = field.split_once('=').unwrap_or((field, ""));
        match key {
            "type" if kind_word.is_none() => kind_word = Some(value),
            "source" | "src" => value.clone_into(&mut written.source),
            "destination" | "dst" | "target" => value.clone_into(&mut written.target),
            "ro" | "readonly" => written.read_only = is_yes(value),
            "rw" | "readwrite" => written.read_only = !is_yes(value),
            "relabel" => written.relabels = true,
            "U" | "chown" => written.relabels |= is_yes(value),
            "z" | "Z" => written.relabels = true,
            _ => {}
        }
    }
    written.kind = match kind_word.unwrap_or("volume") {
        "bind" => MountType::Bind,
        "volume" if written.source.is_empty() => MountType::Anonymous,
        "volume" => MountType::Volume,
        "tmpfs" | "ramfs" => MountType::Tmpfs,
        "image" => MountType::Image,
        _ => MountType::Other,
    };
    if written.kind == MountType::Image && !fields.iter().any(|field| field.starts_with("rw")) {
        written.read_only = true;
    }
    written
}

/// `path[:options]`.
#[must_use]
pub fn tmpfs(text: &str) -> Written {
    let target = text.split(':').next().unwrap_or_default();
    Written {
        kind: MountType::Tmpfs,
        source: String::new(),
        target: target.to_owned(),
        read_only: false,
        relabels: false,
    }
}

/// A flag without a value is a yes.
fn is_yes(value: &str) -> bool {
    matches!(value, "" | "true" | "1" | "t" | "T" | "TRUE" | "True")
}

/// The fields of one line of CSV: a field that begins with a double quote runs to the next single one.
fn csv(line: &str) -> Vec<String> {
    let mut fields = vec![String::new()];
    let mut quoted = false;
    let mut chars = line.chars().peekable();
    while let Some(c) = chars.next() {
        let Some(field) = fields.last_mut() else { break };
        match c {
            '"' if quoted && chars.peek() == Some(&'"') => {
                field.push('"');
                chars.next();
            }
            '"' if quoted => quoted = false,
            '"' if field.is_empty() => quoted = true,
            ',' if !quoted => fields.push(String::new()),
            c => field.push(c),
        }
    }
    fields
}

#[cfg(test)]
mod tests {
    use super::{MountType, Written, mount, tmpfs, volume};

    fn written(kind: MountType, source: &str, target: &str, flags: &str) -> Written {
        Written {
            kind,
            source: source.to_owned(),
            target: target.to_owned(),
            read_only: flags.contains("ro"),
            relabels: flags.contains('Z'),
        }
    }

    #[test]
    fn values_are_taken_apart() {
        let cases = [
            (volume("/a:/b"), written(MountType::Volume, "/a", "/b", "")),
            (volume("/a:/b:ro,z"), written(MountType::Volume, "/a", "/b", "ro,Z")),
            (volume("x.volume:/b:U"), written(MountType::Volume, "x.volume", "/b", "Z")),
            (volume("/b"), written(MountType::Anonymous, "", "/b", "")),
            (volume(":/b"), written(MountType::Anonymous, "", "/b", "")),
            (volume("/a:/b:O"), written(MountType::Volume, "/a", "/b", "ro")),
            (mount("type=bind,source=/a,destination=/b"), written(MountType::Bind, "/a", "/b", "")),
            (mount("type=bind,src=/a,dst=/b,relabel=shared,readonly"), written(MountType::Bind, "/a", "/b", "ro,Z")),
            (mount("type=bind,src=/a,target=/b,ro=false,U=true"), written(MountType::Bind, "/a", "/b", "Z")),
            (mount("source=v,target=/b,ro=true"), written(MountType::Volume, "v", "/b", "ro")),
            (mount("type=volume,target=/b"), written(MountType::Anonymous, "", "/b", "")),
            (mount("type=tmpfs,tmpfs-size=1M,destination=/b"), written(MountType::Tmpfs, "", "/b", "")),
            (mount("type=image,source=i,destination=/b"), written(MountType::Image, "i", "/b", "ro")),
            (mount("type=image,source=i,destination=/b,rw=true"), written(MountType::Image, "i", "/b", "")),
            (mount("type=devpts,destination=/dev/pts"), written(MountType::Other, "", "/dev/pts", "")),
            (mount("type=bind,src=/tmp,\"dst=/a,\"\"1\"\"\""), written(MountType::Bind, "/tmp", "/a,\"1\"", "")),
            (tmpfs("/run:size=1M"), written(MountType::Tmpfs, "", "/run", "")),
        ];
        for (found, wanted) in cases {
            assert_eq!(found, wanted);
        }
    }
}
