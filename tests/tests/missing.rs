//! Promise 3: what a unit needs and does not find is a hold before the start, and each has its way out.

use holdfast_tests::{Host, MODULES};

#[test]
fn what_is_missing_is_held_until_it_is_provided() {
    let host = Host::with_holdfast("tmissing");
    host.start_registry();
    host.ok("mkdir -p /srv/media /srv/inbox && touch /srv/media/film && chown daemon /srv/inbox");
    host.assign("missing");
    host.holdfast("hold parked --note 'until the audit is over'", 0);

    let report = host.apply(6);
    let expected = [
        ("envfile", "container/env", "missing-env-file", "/etc/env/env.conf"),
        ("image", "container/absent", "missing-image", "localhost:5000/absent:1"),
        ("image", "container/unreachable", "missing-image", "localhost:5999/nowhere:1"),
        ("label", "container/label", "relabel-risk", "/srv/media"),
        ("network", "container/side", "missing-network", "backbone"),
        ("owner", "container/owner", "owner-differs", "/srv/inbox"),
        ("parked", "container/parked", "operator", "until the audit is over"),
        ("path", "container/reader", "missing-path", "/etc/reader.conf"),
        ("person", "container/person", "missing-path", "/root/person"),
        ("secret", "container/api", "missing-secret", "api-password"),
        ("variable", "container/open", "unresolved", "TAG"),
    ];
    let held: Vec<String> =
        expected.iter().map(|(module, resource, reason, _)| format!("{module} {resource} {reason}")).collect();
    assert_eq!(report.held(), held);
    for (module, resource, _, word) in expected {
        let sentence = report.sentence(module, resource);
        assert!(sentence.contains(word), "{word}: {sentence}");
        assert_ne!(report.resource(module, resource)["waiting_on_take"], true, "no take would end it: {sentence}");
    }
    let person = report.resource("person", "container/person");
    assert_eq!(person["also"][0], "user-module", "{person}");
    nothing_was_tried(&host);
    assert_eq!(host.sh("ls -d /root/person").status, 2, "no empty directory in root's home");

    // Each is given what it lacks. What needs a change of the module stays held, and so does what is nowhere.
    host.ok("mkdir /etc/env && echo A=1 >/etc/env/env.conf && touch /etc/reader.conf && echo TAG=1 >/etc/open.env
        printf secret | podman secret create api-password - && podman network create backbone && chown 33 /srv/inbox
        skopeo copy -q --dest-tls-verify=false containers-storage:localhost/idle:1 docker://localhost:5000/absent:1");
    host.holdfast("unhold parked", 0);
    let report = host.apply(6);
    assert_eq!(
        report.done(),
        [
            "envfile container/env created",
            "image container/absent created",
            "network container/side created",
            "owner container/owner created",
            "parked container/parked created",
            "path container/reader created",
            "secret container/api created",
            "variable container/open created",
        ]
    );
    assert_eq!(
        report.held(),
        [
            "image container/unreachable missing-image",
            "label container/label relabel-risk",
            "person container/person missing-path",
        ]
    );
    assert_eq!(report["ended"].as_array().map(Vec::len), Some(8), "{report}");
    for name in ["env", "absent", "side", "owner", "parked", "reader", "api", "open"] {
        assert_eq!(host.inspect(name, "{{.State.Status}}"), "running", "{name}");
    }
    nothing_was_tried(&host);

    // What a variable stands for is part of the definition, although the module did not change.
    host.ok("podman tag localhost/idle:1 localhost/idle:2 && echo TAG=2 >/etc/open.env");
    assert_eq!(host.apply_with("variable", 0).done(), ["variable container/open recreated"]);
    assert_eq!(host.apply_with("variable", 0).count("changed"), 0);

    // The operator's hold on what runs: it goes on, unchanged, until unhold.
    host.holdfast("hold path --note 'not now'", 0);
    host.ok(&format!("sed -i '/^Network/a Label=a=b' {MODULES}/path/reader.container"));
    let id = host.inspect("reader", "{{.Id}}");
    let report = host.apply_with("path", 6);
    assert_eq!(report.held(), ["path container/reader operator"]);
    assert_eq!(id, host.inspect("reader", "{{.Id}}"));
    host.holdfast("unhold path", 0);
    assert_eq!(host.apply_with("path", 0).done(), ["path container/reader recreated"]);
}

/// Nothing was started in vain.
fn nothing_was_tried(host: &Host) {
    host.nothing_failed();
    let loops =
        host.sh("journalctl -o cat _PID=1 | grep -E 'repeated too quickly|Failed with result|Main process exited'");
    assert_eq!(loops.stdout, "");
}
