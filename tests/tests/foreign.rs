//! Promise 1: nothing foreign is touched, of whatever kind, and each hold says what was found.

use holdfast_tests::{Host, assert_same, foreign_snapshot};

/// One foreign thing of each kind, under the name that a module asks for.
const FOUND: &str = r#"
    podman run -d --name f-box --network none localhost/idle:1
    podman volume create f-vol; podman volume create f-plain
    podman network create f-net
    podman pod create --name f-pod --network none && podman pod start f-pod
    cd /etc/systemd/system
    printf '[Service]\nExecStart=/usr/bin/sleep infinity\n' | tee f-unit.service f-sleep.service >/dev/null
    printf '[Container]\nImage=localhost/idle:1\nContainerName=another\nNetwork=none\n' >/etc/containers/systemd/f-quad.container
    echo 'theirs = 1' >/etc/f-file.conf; chmod 640 /etc/f-file.conf; chown daemon:daemon /etc/f-file.conf
    mkdir -m 711 /var/lib/f-dir; chown daemon /var/lib/f-dir; ln -s /nowhere /etc/f-link
"#;

/// Somebody on each port that a module publishes, in every way there is.
const PORTS: &str = r#"
    podman run -d --name holder -p 127.0.0.1:18081:8080 -p 127.0.0.1:18085:8080 -p 18093:8080 localhost/idle:1
    listen='import socket, sys, time; s = socket.create_server(("", int(sys.argv[1]))); time.sleep(99999)'
    systemd-run --unit=porter python3 -c "$listen" 18082
    session=/sys/fs/cgroup/user.slice/user-1000.slice/session-1.scope; mkdir -p $session
    (echo $BASHPID >$session/cgroup.procs
        exec setsid setpriv --reuid=op --regid=op --init-groups python3 -c "$listen" 18083 </dev/null >/dev/null 2>&1) &
    printf '[Socket]\nListenStream=18084\nListenStream=127.0.0.1:18086\n' >/etc/systemd/system/f-sock.socket
    printf '[Service]\nExecStart=/usr/bin/sleep infinity\n' >/etc/systemd/system/f-sock.service
"#;

const NAMES: &str = "systemctl mask feed.service; systemctl daemon-reload; systemctl start f-unit f-quad f-sock.socket";

const CONTAINERS: [&str; 3] = ["f-box", "another", "holder"];

const PATHS: [&str; 10] = [
    "/etc/f-file.conf",
    "/etc/f-link",
    "/var/lib/f-dir",
    "/etc/containers/systemd/f-quad.container",
    "/etc/systemd/system/f-unit.service",
    "/etc/systemd/system/f-sleep.service",
    "/etc/systemd/system/f-sock.socket",
    "/etc/systemd/system/f-sock.service",
    "/etc/systemd/system/feed.service",
    "/usr/lib/systemd/system/podman-restart.service",
];

/// What a snapshot of containers and paths does not tell.
const OTHERS: &str = "podman volume inspect f-vol f-plain; podman network inspect f-net
    podman pod inspect f-pod --format '{{.ID}} {{.State}} {{.InfraContainerID}}'
    systemctl show --property=Id,InvocationID,ActiveState f-unit f-quad f-sleep f-sock.socket porter feed podman-restart";

#[test]
fn what_is_found_is_held_and_left_alone() {
    let host = Host::with_holdfast("tforeign");
    host.ok(&[FOUND, PORTS, NAMES].concat());
    host.wait_for(5, "ss -ltn | grep -q :18082 && ss -ltn | grep -q :18083");
    let everything = || foreign_snapshot(&host, &CONTAINERS, &PATHS) + &host.ok(OTHERS);
    let before = everything();

    host.assign("foreign");
    let report = host.apply(6);
    assert_same(&before, &everything(), "something foreign was touched");
    let expected = [
        ("found", "container/f-box", "found", "container f-box"),
        ("found", "container/f-plain", "needs-held", "volume/f-plain"),
        ("found", "container/f-quad", "found", "/etc/containers/systemd/f-quad.container"),
        ("found", "container/f-unit", "found", "/etc/systemd/system/f-unit.service"),
        ("found", "directory//var/lib/f-dir", "found", "directory /var/lib/f-dir"),
        ("found", "file//etc/f-file.conf", "found", "file /etc/f-file.conf"),
        ("found", "link//etc/f-link", "found", "link /etc/f-link"),
        ("found", "network/f-net", "found", "network f-net"),
        ("found", "pod/f-pod", "found", "pod f-pod"),
        ("found", "unit/f-sleep.service", "found", "/etc/systemd/system/f-sleep.service"),
        ("found", "volume/f-plain", "found", "volume f-plain"),
        ("found", "volume/f-vol", "found", "volume f-vol"),
        ("names", "container/feed", "masked", "feed.service"),
        ("names", "container/podman-restart", "vendor-unit", "/usr/lib/systemd/system/podman-restart.service"),
        ("ports", "container/by-container", "port-in-use", "container holder"),
        ("ports", "container/by-process", "port-in-use", "python3"),
        ("ports", "container/by-range", "port-in-use", "18093"),
        ("ports", "container/by-socket", "port-in-use", "f-sock.socket"),
        ("ports", "container/by-unit", "port-in-use", "porter.service"),
        ("ports", "unit/tap.socket", "port-in-use", "f-sock.socket"),
    ];
    let held: Vec<String> =
        expected.iter().map(|(module, resource, reason, _)| format!("{module} {resource} {reason}")).collect();
    assert_eq!(report.held(), held);
    for (module, resource, _, word) in expected {
        let sentence = report.sentence(module, resource);
        assert!(sentence.contains(word), "{word}: {sentence}");
    }
    // Another protocol or another address is another port.
    let done = ["container/fine-address", "container/fine-udp", "unit/tap.service"];
    assert_eq!(report.done(), done.map(|resource| format!("ports {resource} created")));

    // What a take cannot end is not waiting on one.
    let waiting = |module: &str, resource: &str| report.resource(module, resource)["waiting_on_take"] == true;
    assert!(waiting("found", "container/f-box") && waiting("ports", "container/by-container"), "{report}");
    assert!(!waiting("names", "container/feed") && !waiting("ports", "container/by-process"), "{report}");

    assert_eq!(host.property("feed", "LoadState"), "masked");
    assert_eq!(host.property("podman-restart", "FragmentPath"), "/usr/lib/systemd/system/podman-restart.service");
    host.nothing_failed();
}
