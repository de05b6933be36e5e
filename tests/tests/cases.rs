//! Module trees as they are published all over the world, each with the outcome that is right for it.

use holdfast_tests::{Host, INSTALLED};

/// Module, resource, reason, and a word that the sentence must have.
const HELD: [(&str, &str, &str, &str); 33] = [
    // books lies below what films found, and so does toolbox; beside films-old does not.
    ("books", "container/reader", "needs-held", "/srv/films"),
    ("checkout", "container/kept", "unreadable", "lost.container"),
    ("checkout", "container/lost", "unreadable", "/opt/checkout/units/lost.container"),
    ("clash", "container/box-pod", "claimed-twice", "box.pod"),
    ("clash", "container/job", "claimed-twice", "job.kube"),
    ("clash", "kube/job", "claimed-twice", "job.container"),
    ("clash", "pod/box", "claimed-twice", "box-pod.container"),
    ("diary", "container/diary", "claimed-twice", "attic/2024/diary.container and current/diary.container"),
    ("distro", "container/podman-auto-update", "vendor-unit", "/usr/lib/systemd/system/podman-auto-update.service"),
    ("feeds", "container/guest", "needs-held", "container/hub"),
    ("feeds", "container/hub", "missing-network", "feed"),
    ("feeds", "container/rider", "needs-held", "container/hub"),
    ("films", "container/player", "relabel-risk", "/srv/films"),
    ("films", "directory//srv/films", "found", "/srv/films"),
    ("films", "directory//srv/films/.cache", "needs-held", "/srv/films"),
    ("inline", "container/inline", "unreadable", "inline.container"),
    ("keys", "container/api", "missing-secret", "api-cert"),
    ("newer", "container/back", "unreadable", "Memory"),
    ("newer", "container/front", "unreadable", "inner.network"),
    ("newer", "directory//srv/back", "unreadable", "back.container"),
    ("newer", "image/base", "unreadable", "Retry"),
    ("newer", "network/inner", "unreadable", "NetworkDeleteOnStop"),
    ("person", "container/person", "missing-path", "/root/.config/person/data"),
    ("shelf", "container/lower", "needs-held", "/srv/shelf"),
    ("shelf", "container/upper", "needs-held", "/srv/shelf"),
    ("shelf", "directory//srv/shelf", "found", "/srv/shelf"),
    ("shelf", "pod/shelf", "needs-held", "/srv/shelf"),
    ("stage", "container/stage-web", "needs-held", "comes up without it"),
    ("stage", "directory//srv/stage/web", "found", "/srv/stage/web"),
    ("template", "container/page", "unreadable", "wide.container"),
    ("template", "container/wide", "unreadable", "3"),
    ("template", "volume/store", "unreadable", "wide.container"),
    ("toolbox", "container/toolbox", "needs-held", "/srv/films"),
];

/// Containers that run, although everything around them is held.
const RUNNING: [&str; 8] =
    ["beside", "crlf", "lane-east", "narrow", "stage-infra", "systemd-nonl", "systemd-odd", "systemd-stage-db"];

#[test]
fn trees_as_people_publish_them() {
    let host = Host::with_holdfast("tcases");
    host.ok("mkdir -p /srv/{films/scripts,shelf,stage/web}; echo 1 | tee /srv/{films,shelf,stage/web}/file");
    host.assign("cases");
    let report = host.apply(6);

    let held: Vec<String> =
        HELD.iter().map(|(module, resource, reason, _)| format!("{module} {resource} {reason}")).collect();
    assert_eq!(report.held(), held, "{report}");
    for (module, resource, _, word) in HELD {
        let sentence = report.sentence(module, resource);
        assert!(sentence.contains(word), "{word}: {sentence}");
    }
    assert_eq!(report.count("failed"), 0, "{report}");
    assert_eq!(report.resource("films", "container/player")["also"][0], "needs-held");
    let person = report.resource("person", "container/person");
    assert!(person["also"].to_string().contains("user-module"), "{person}");
    let example = report.resource("keys", "container/api");
    assert!(example.to_string().contains("missing-env-file"), "{example}");

    let running = host.ok("podman ps --format '{{.Names}}' | sort");
    assert_eq!(running.lines().collect::<Vec<_>>(), RUNNING);
    assert_eq!(host.inspect("systemd-odd", "{{range .Mounts}}{{.Source}}{{end}}"), "/srv/right");
    assert_eq!(host.inspect("systemd-odd", "{{index .Config.Labels \"indented\"}}"), "1");
    let installed = host.ok(&format!("ls -A {INSTALLED}/syntax"));
    for left_alone in ["next.container.j2", "old.container.bak", "off.container.disabled"] {
        assert!(!installed.contains(left_alone), "{installed}");
    }
    host.fails("ls -d /root/.config/person");
    host.nothing_failed();

    // All of it again: nothing to do, and nothing more to say.
    let again = host.apply(6);
    assert_eq!(again.count("changed"), 0, "{again}");
    assert_eq!(again.held(), held);
}
