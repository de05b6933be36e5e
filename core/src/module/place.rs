//! Places of the host in which no module may put a file, a directory or a link.

use crate::name::HostPath;

const OWN: [&str; 4] = ["/etc/containers/systemd/holdfast", "/etc/holdfast", "/var/lib/holdfast", "/run/holdfast"];

/// `/bin` and its like are links below /usr on every host of today, and `/var/run` is /run.
const SYSTEM: [&str; 10] = ["/usr", "/boot", "/proc", "/sys", "/dev", "/bin", "/sbin", "/lib", "/lib64", "/var/run"];

/// Why a path is refused, as a clause after the path; none when it may be used. `/run` is refused only for files, since
/// they would be gone after a reboot.
pub(crate) fn refusal(path: &HostPath) -> Option<String> {
    let place = |root: &&str| HostPath::new(root).is_ok_and(|root| root.contains(path));
    if path == &HostPath::root() {
        return Some("is the root directory".to_owned());
    }
    if path.as_str().starts_with("/etc/tmpfiles.d/holdfast-") {
        return Some("is holdfast's own".to_owned());
    }
    if let Some(root) = OWN.iter().find(|root| place(root)) {
        return Some(format!("lies in {root}, which is holdfast's own"));
    }
    match SYSTEM.iter().find(|root| place(root)) {
        Some(&"/var/run") => Some("lies in /var/run, which is another name of /run".to_owned()),
        Some(root) => Some(format!("lies in {root}, where a module may not write")),
        None => None,
    }
}

#[cfg(test)]
mod tests {
    use super::refusal;
    use crate::name::HostPath;

    #[test]
    fn refused_places() -> Result<(), crate::name::NameError> {
        let refused = [
            "/",
            "/usr",
            "/usr/lib/x",
            "/boot/x",
            "/proc/x",
            "/sys/x",
            "/dev/x",
            "/lib/systemd/x",
            "/etc/holdfast/x",
            "/etc/containers/systemd/holdfast/web/x",
            "/var/lib/holdfast",
            "/run/holdfast/x",
            "/var/run/x",
            "/etc/tmpfiles.d/holdfast-web.conf",
            "/etc/../usr/x",
        ];
        for path in refused {
            assert!(refusal(&HostPath::new(path)?).is_some(), "{path}");
        }
        for path in ["/etc/web", "/usrlocal/x", "/etc/holdfast2/x", "/srv", "/run/web", "/etc/containers/systemd/x"] {
            assert_eq!(refusal(&HostPath::new(path)?), None, "{path}");
        }
        Ok(())
    }
}
