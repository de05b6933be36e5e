//! The trailer of an installed Quadlet file: our mark, the pinned image, and what we want to find again.

use std::fmt::Write;

use crate::ledger::Pin;
use crate::step::Trailer;

/// The section that Quadlet passes through unread and that no file but ours has.
const SECTION: &str = "[X-Holdfast]";

/// The label that carries the hash of the definition.
const DESIRED: &str = "io.holdfast.desired";

/// The file as written with our trailer at its end. `pin` is the image to deploy instead of the written one.
///
/// The Quadlet section is opened once more: Podman takes the last value of a key that occurs twice.
#[must_use]
pub fn render(text: &str, trailer: &Trailer, pin: Option<&Pin>) -> String {
    let Trailer { module, section, hash, pin: _ } = trailer;
    let mut out = closed(text);
    if !out.is_empty() && !out.ends_with('\n') {
        out.push('\n');
    }
    out.push_str("\n# What follows is holdfast's; it is written anew with the module.\n");
    let pin_lines = pin.map(|pin| image_lines(pin) + no_updater(text)).unwrap_or_default();
    let label_lines = label_lines(section, module, hash);
    if !(pin_lines.is_empty() && label_lines.is_empty()) {
        write_all(&mut out, format_args!("[{section}]\n{label_lines}{pin_lines}\n"));
    }
    write_all(&mut out, format_args!("{SECTION}\nModule={module}\nHash={hash}\n"));
    if let Some(pin) = pin {
        write_all(&mut out, format_args!("ImageWritten={}\n", pin.written));
    }
    out
}

/// The word that the loaded unit's command line must hold; empty where Podman takes no label.
#[must_use]
pub fn mark(section: &str, hash: &str) -> String {
    match LabelKey::of(section) {
        Some(_) => format!("{DESIRED}={hash}"),
        None => String::new(),
    }
}

/// True when a Quadlet file has our trailer. It says who wrote the file once, never whose it is: that is the ledger's.
#[must_use]
pub fn is_ours(text: &str) -> bool {
    text.lines().any(|line| line.trim() == SECTION)
}

/// The text without a backslash that would continue its last assignment into what comes after. Podman joins lines over
/// empty ones and comments, and over blanks behind the backslash: nothing that could be added ends it.
fn closed(text: &str) -> String {
    let mut end = text.len();
    for line in text.split_inclusive('\n').rev() {
        let start = end - line.len();
        let content = line.trim();
        if !content.is_empty() && !content.starts_with(['#', ';']) {
            let kept = line.trim_end();
            let open = kept.trim_end_matches('\\');
            let behind = text.get(start + kept.len()..).unwrap_or_default();
            return format!("{}{behind}", text.get(..start + open.len()).unwrap_or_default());
        }
        end = start;
    }
    text.to_owned()
}

/// How a section takes a label.
enum LabelKey {
    Label,
    /// Podman 5.4 drops a pod that has `Label=`.
    PodmanArgs,
}

impl LabelKey {
    fn of(section: &str) -> Option<Self> {
        match section {
            "Container" | "Volume" | "Network" => Some(Self::Label),
            "Pod" => Some(Self::PodmanArgs),
            _ => None,
        }
    }
}

fn label_lines(section: &str, module: &str, hash: &str) -> String {
    let Some(key) = LabelKey::of(section) else { return String::new() };
    let start = match key {
        LabelKey::Label => "Label=",
        LabelKey::PodmanArgs => "PodmanArgs=--label ",
    };
    format!("{start}io.holdfast.module={module}\n{start}{DESIRED}={hash}\n")
}

/// An image ID is only here: without `Pull=never` Podman would take it for a name to look for in registries. A digest is
/// pulled again if it was pruned, and whatever the file says not with every start.
fn image_lines(pin: &Pin) -> String {
    let pull = if pin.deployed == pin.image_id { "never" } else { "missing" };
    format!("Image={}\nPull={pull}\n", pin.deployed)
}

/// A pinned image has nothing to be updated to, and Podman starts no container with an updater of an image ID.
fn no_updater(text: &str) -> &'static str {
    match (text.contains("AutoUpdate"), text.contains("io.containers.autoupdate")) {
        (false, false) => "",
        (true, false) => "AutoUpdate=\n",
        (_, true) => "AutoUpdate=\nLabel=io.containers.autoupdate=\n",
    }
}

/// Writing to a `String` cannot fail.
fn write_all(out: &mut String, what: std::fmt::Arguments<'_>) {
    out.write_fmt(what).unwrap_or_default();
}

#[cfg(test)]
mod tests {
    use super::{is_ours, mark, render};
    use crate::ledger::Pin;
    use crate::step::{PinSource, Trailer};

    const ID: &str = "5f70bf18a086007016e948b04aed3b82103a36bea41755b6cddfaf10ace3c6ef";

    fn trailer(section: &str) -> Trailer {
        Trailer { module: "web".into(), section: section.into(), hash: "abc".into(), pin: PinSource::AsWritten }
    }

    fn pin(deployed: &str) -> Pin {
        Pin { written: "svc:1".into(), deployed: deployed.into(), image_id: ID.into() }
    }

    #[test]
    fn a_container_gets_labels_and_the_image_that_was_deployed() {
        let text =
            render("[Container]\nImage=svc:1\n", &trailer("Container"), Some(&pin("localhost:5000/svc@sha256:ab")));
        assert_eq!(
            text,
            "[Container]\nImage=svc:1\n\n# What follows is holdfast's; it is written anew with the module.\n\
             [Container]\nLabel=io.holdfast.module=web\nLabel=io.holdfast.desired=abc\n\
             Image=localhost:5000/svc@sha256:ab\nPull=missing\n\n\
             [X-Holdfast]\nModule=web\nHash=abc\nImageWritten=svc:1\n"
        );
    }

    #[test]
    fn what_is_pinned_has_no_updater() {
        let text = render("[Container]\nAutoUpdate=registry\n", &trailer("Container"), Some(&pin(ID)));
        assert!(text.contains("\nPull=never\nAutoUpdate=\n\n"), "{text}");
        let text = "[Container]\nLabel=io.containers.autoupdate=registry\n";
        assert!(render(text, &trailer("Container"), Some(&pin(ID))).contains("\nLabel=io.containers.autoupdate=\n"));
        assert!(!render(text, &trailer("Container"), None).contains("AutoUpdate"), "what is not pinned");
    }

    #[test]
    fn an_image_id_is_never_pulled() {
        let text = render("[Container]\n", &trailer("Container"), Some(&pin(ID)));
        assert!(text.contains(&format!("\nImage={ID}\nPull=never\n")), "{text}");
        let text = render("[Container]\n", &trailer("Container"), Some(&pin("svc@sha256:ab")));
        assert!(text.contains("\nImage=svc@sha256:ab\nPull=missing\n"), "{text}");
    }

    #[test]
    fn each_section_takes_what_podman_lets_it() {
        for (section, line) in [
            ("Container", "Label=io.holdfast.desired=abc"),
            ("Volume", "Label=io.holdfast.desired=abc"),
            ("Network", "Label=io.holdfast.desired=abc"),
            ("Pod", "PodmanArgs=--label io.holdfast.desired=abc"),
        ] {
            let text = render("", &trailer(section), None);
            assert!(text.contains(&format!("\n[{section}]\n")), "{section}: {text}");
            assert!(text.lines().any(|l| l == line), "{section}: {text}");
            assert_eq!(mark(section, "abc"), "io.holdfast.desired=abc");
        }
        for section in ["Kube", "Image", "Build"] {
            let text = render("", &trailer(section), None);
            assert!(!text.contains("abel") && !text.contains(&format!("[{section}]")), "{section}: {text}");
            assert!(text.contains("[X-Holdfast]\nModule=web\nHash=abc\n"), "{section}: {text}");
            assert_eq!(mark(section, "abc"), "");
        }
    }

    #[test]
    fn an_open_continuation_does_not_swallow_the_trailer() {
        for (text, before) in [
            ("[Container]\nExec=a \\", "[Container]\nExec=a \n\n"),
            ("[Container]\nExec=a \\\n", "[Container]\nExec=a \n\n"),
            ("[Container]\r\nExec=a \\\r\n", "[Container]\r\nExec=a \r\n\n"),
            ("[Container]\nExec=a \\  \n\n", "[Container]\nExec=a   \n\n\n"),
            ("[Container]\nExec=a \\\\\n", "[Container]\nExec=a \n\n"),
            ("[Container]\nExec=a \\\n# b\n ; c \\\n", "[Container]\nExec=a \n# b\n ; c \\\n\n"),
            ("[Container]\nExec=a \\\nb\n# c \\\n", "[Container]\nExec=a \\\nb\n# c \\\n\n"),
            ("# c \\", "# c \\\n\n"),
            ("[Container]\nExec=a", "[Container]\nExec=a\n\n"),
            ("", "\n"),
        ] {
            let out = render(text, &trailer("Container"), None);
            let (found, _) = out.split_once("# What follows").unwrap();
            assert_eq!(found, before, "{text:?}");
        }
    }

    #[test]
    fn only_a_file_with_our_section_is_ours() {
        assert!(is_ours(&render("[Pod]\n", &trailer("Pod"), None)));
        assert!(!is_ours("[Container]\nImage=x\n# [X-Holdfast]\n"));
    }
}
