//! What a file of a module is, by its path alone.

use crate::resource::Kind;

const KIB: u64 = 1024;
const MIB: u64 = 1024 * KIB;

/// The unit types that a module may bring as plain units.
const UNIT_TYPES: [&str; 6] = ["service", "timer", "socket", "path", "target", "mount"];

/// What a path stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role<'a> {
    /// `module.toml`.
    Manifest,
    /// A Quadlet file.
    Quadlet(Kind),
    /// A drop-in of a Quadlet file, or of several: `web.container.d/10.conf`, `foo-.container.d/10.conf`.
    QuadletDropin {
        /// The folder's own name.
        folder: &'a str,
    },
    /// A plain unit.
    Unit,
    /// A drop-in of a plain unit.
    UnitDropin {
        /// The unit.
        unit: &'a str,
    },
    /// A file in `container.d/`, `service.d/`: it would apply to everything of that type on the host.
    TypeFolder {
        /// The folder's own name.
        folder: &'a str,
    },
    /// A file of `files/`, with its path on the host.
    HostFile(&'a str),
    /// A file of `tmpfiles.d/`.
    Tmpfiles,
    /// README, LICENSE, version control, backups, templates: never read.
    LeftAlone,
    /// Anything else.
    Asset,
}

/// How many bytes of a file, given by its relative path, are read at most. A larger one is not read at all.
#[must_use]
pub fn size_cap(path: &str) -> u64 {
    match role(path) {
        Role::Manifest
        | Role::Quadlet(_)
        | Role::QuadletDropin { folder: _ }
        | Role::Unit
        | Role::UnitDropin { unit: _ }
        | Role::TypeFolder { folder: _ }
        | Role::Tmpfiles => MIB,
        Role::HostFile(_) | Role::LeftAlone | Role::Asset => 16 * MIB,
    }
}

/// True for what is neither read nor descended into, by its relative path: version control, backups, README.
#[must_use]
pub fn is_left_alone(path: &str) -> bool {
    role(path) == Role::LeftAlone
}

/// What a path stands for. Podman's own rules come first where a name means something to it: `.hidden.container` is a
/// unit, and a file inside of a drop-in folder is not.
pub(super) fn role(path: &str) -> Role<'_> {
    let (folders, name) = path.rsplit_once('/').unwrap_or(("", path));
    if path.split('/').any(is_version_control) || is_editor_debris(name) {
        return Role::LeftAlone;
    }
    if path.starts_with("files/") {
        return Role::HostFile(&path["files".len()..]);
    }
    if path == "module.toml" {
        return Role::Manifest;
    }
    if is_parked(name) {
        return Role::LeftAlone;
    }
    if let Some(rest) = path.strip_prefix("tmpfiles.d/") {
        return if rest.ends_with(".conf") && !rest.contains('/') { Role::Tmpfiles } else { Role::LeftAlone };
    }
    in_dropin_folder(folders, name).unwrap_or_else(|| by_name(name))
}

fn by_name(name: &str) -> Role<'_> {
    if let Some(kind) = Kind::of_quadlet(name) {
        return Role::Quadlet(kind);
    }
    if is_unit(name) {
        return Role::Unit;
    }
    let documents = ["README", "LICENSE", "LICENCE", "COPYING", "CHANGELOG"];
    if documents.iter().any(|word| name.starts_with(word)) { Role::LeftAlone } else { Role::Asset }
}

/// The role of a file below a drop-in folder; none elsewhere. Only `*.conf` directly in the folder counts.
fn in_dropin_folder<'a>(folders: &'a str, name: &str) -> Option<Role<'a>> {
    let (at, folder) = folders.split('/').enumerate().find(|(_, folder)| is_dropin_folder(folder))?;
    let direct = at + 1 == folders.split('/').count();
    if !direct || !name.ends_with(".conf") {
        return Some(Role::LeftAlone);
    }
    let unit = folder.strip_suffix(".d").unwrap_or(folder);
    Some(match unit.contains('.') {
        false => Role::TypeFolder { folder },
        true if Kind::of_quadlet(unit).is_some() => Role::QuadletDropin { folder },
        true => Role::UnitDropin { unit },
    })
}

fn is_dropin_folder(folder: &str) -> bool {
    folder.strip_suffix(".d").is_some_and(|unit| {
        let typed = if unit.contains('.') { unit.to_owned() } else { format!("x.{unit}") };
        Kind::of_quadlet(&typed).is_some() || is_unit(&typed)
    })
}

fn is_unit(name: &str) -> bool {
    name.rsplit_once('.').is_some_and(|(_, suffix)| UNIT_TYPES.contains(&suffix))
}

fn is_version_control(part: &str) -> bool {
    matches!(part, ".git" | ".svn" | ".hg" | ".gitignore" | ".gitattributes" | ".gitmodules" | ".gitkeep")
}

/// Backups and locks of editors. Emacs' `.#web.container` is a dangling link that would drop a whole directory.
fn is_editor_debris(name: &str) -> bool {
    name.ends_with('~')
        || name.starts_with(".#")
        || (name.starts_with('#') && name.ends_with('#'))
        || [".swp", ".swo"].iter().any(|suffix| name.ends_with(suffix))
}

/// Names by which people and packages set a file aside, and templates that something else renders.
fn is_parked(name: &str) -> bool {
    let suffixes = [
        ".bak",
        ".j2",
        ".disabled",
        ".orig",
        ".rej",
        ".tmp",
        ".dpkg-old",
        ".dpkg-new",
        ".dpkg-dist",
        ".rpmsave",
        ".rpmnew",
        ".rpmorig",
    ];
    suffixes.iter().any(|suffix| name.ends_with(suffix))
}

#[cfg(test)]
mod tests {
    use super::{MIB, Role, role, size_cap};
    use crate::resource::Kind;

    #[test]
    fn roles() {
        let cases = [
            ("web.container", Role::Quadlet(Kind::Container)),
            ("deep/down/.hidden.container", Role::Quadlet(Kind::Container)),
            ("README.volume", Role::Quadlet(Kind::Volume)),
            ("web.container.d/10.conf", Role::QuadletDropin { folder: "web.container.d" }),
            ("a/foo-.container.d/10.conf", Role::QuadletDropin { folder: "foo-.container.d" }),
            ("web.container.d/web.container", Role::LeftAlone),
            ("web.container.d/deep/10.conf", Role::LeftAlone),
            ("container.d/10.conf", Role::TypeFolder { folder: "container.d" }),
            ("a/service.d/10.conf", Role::TypeFolder { folder: "service.d" }),
            ("web.timer", Role::Unit),
            ("web.timer.d/10.conf", Role::UnitDropin { unit: "web.timer" }),
            ("module.toml", Role::Manifest),
            ("sub/module.toml", Role::Asset),
            ("files/etc/web.container", Role::HostFile("/etc/web.container")),
            ("files/srv/README.md", Role::HostFile("/srv/README.md")),
            ("files/srv/x~", Role::LeftAlone),
            ("tmpfiles.d/web.conf", Role::Tmpfiles),
            ("tmpfiles.d/web.container", Role::LeftAlone),
            ("sub/tmpfiles.d/web.conf", Role::Asset),
            (".git", Role::LeftAlone),
            (".git/x.container", Role::LeftAlone),
            (".#web.container", Role::LeftAlone),
            ("old.container.bak", Role::LeftAlone),
            ("next.container.j2", Role::LeftAlone),
            ("off.container.disabled", Role::LeftAlone),
            ("README", Role::LeftAlone),
            ("LICENSE.txt", Role::LeftAlone),
            ("web.env", Role::Asset),
            ("conf.d/web.conf", Role::Asset),
        ];
        for (path, expected) in cases {
            assert_eq!(role(path), expected, "{path}");
        }
    }

    #[test]
    fn caps() {
        for path in ["a.container", "a.container.d/x.conf", "a.service", "module.toml", "tmpfiles.d/a.conf"] {
            assert_eq!(size_cap(path), MIB, "{path}");
        }
        for path in ["a.env", "files/etc/a.conf", "kube.yaml"] {
            assert_eq!(size_cap(path), 16 * MIB, "{path}");
        }
    }
}
