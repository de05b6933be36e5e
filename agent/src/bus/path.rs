//! Object paths.

use std::fmt::Write as _;

use holdfast_core::hold::Hold;
use zbus::OwnedObjectPath;

/// Where everything is.
pub const ROOT: &str = "/io/holdfast/Agent1";

/// Where the level of the log is set.
pub const LOG_CONTROL: &str = "/org/freedesktop/LogControl1";

/// A module's object. A directory whose name is no module name has none: it is told as `/`.
#[must_use]
pub fn module(name: &str) -> OwnedObjectPath {
    path(format!("{ROOT}/module/{}", escape(name)))
}

/// A hold's object: the same as long as the resource is held.
#[must_use]
pub fn hold(hold: &Hold) -> OwnedObjectPath {
    path(format!("{ROOT}/hold/{}/{}", escape(&hold.module), escape(&hold.resource.to_string())))
}

/// A job's object.
#[must_use]
pub fn job(id: u32) -> OwnedObjectPath {
    path(format!("{ROOT}/job/_{id}"))
}

/// No object.
#[must_use]
pub fn none() -> OwnedObjectPath {
    OwnedObjectPath::default()
}

fn path(text: String) -> OwnedObjectPath {
    // Every part is escaped, so that this is a path.
    OwnedObjectPath::try_from(text).unwrap_or_default()
}

/// As sd_bus_path_encode(3) does: what is no ASCII letter or digit, and a digit in front, is `_` and two hex digits.
fn escape(text: &str) -> String {
    if text.is_empty() {
        return "_".to_owned();
    }
    let mut escaped = String::with_capacity(text.len());
    for (place, byte) in text.bytes().enumerate() {
        if byte.is_ascii_alphabetic() || (place > 0 && byte.is_ascii_digit()) {
            escaped.push(char::from(byte));
        } else {
            // Writing to a String cannot fail.
            write!(escaped, "_{byte:02x}").unwrap_or_default();
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::escape;

    /// By the words of sd_bus_path_encode(3).
    #[test]
    fn names_are_escaped_as_systemd_does() {
        for (text, path) in [
            ("route-proxy", "route_2dproxy"),
            ("", "_"),
            ("0day", "_30day"),
            ("a0", "a0"),
            ("container/web", "container_2fweb"),
            ("_", "_5f"),
            ("é", "_c3_a9"),
        ] {
            assert_eq!(escape(text), path, "{text}");
        }
    }
}
