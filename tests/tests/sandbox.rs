//! The agent's sandbox: tight, and yet it sees the host as it is.

use holdfast_tests::Host;

/// A path that is there and one that is not, below each place that a sandbox likes to hide.
const PLACES: [&str; 5] = ["/tmp", "/home/op", "/root", "/run/user", "/dev/shm"];

#[test]
fn it_is_tight_and_sees_what_it_must() {
    let host = Host::with_holdfast("sandbox");
    let exposure = host.ok("systemd-analyze security --no-pager holdfastd.service | tail -1");
    let number = exposure.split_whitespace().find_map(|word| word.parse::<f64>().ok());
    assert!(number.is_some_and(|number| number <= 3.0), "{exposure}");

    for (number, place) in PLACES.iter().enumerate() {
        host.ok(&format!("mkdir -p {place}/there && touch {place}/there/file"));
        for (name, path) in [("there", format!("{place}/there/file")), ("missing", format!("{place}/gone"))] {
            host.module(
                &format!("{name}{number}/{name}{number}.container"),
                &format!(
                    "[Container]\nImage=localhost/idle:1\nNetwork=none\nVolume={path}:/x:ro\n[Install]\n\
                     WantedBy=multi-user.target\n"
                ),
            );
            host.module(&format!("{name}{number}/module.toml"), "[health]\nwatch = \"1s\"\n");
        }
    }
    // Whose port it is, down to the process of another user.
    host.ok("systemd-run -q --uid=op --unit=elsewhere python3 -c 'import socket, time; s = socket.socket(); \
         s.bind((\"\", 18083)); s.listen(); time.sleep(600)'");
    host.wait_for(10, "ss -Htln sport = 18083 | grep -q .");
    host.module(
        "port/port.container",
        "[Container]\nImage=localhost/idle:1\nPublishPort=18083:80\n[Install]\nWantedBy=multi-user.target\n",
    );
    // Files of others, for others, and where a package of systemd's would not let it write.
    host.module("own/tmpfiles.d/own.conf", "d /srv/own 2750 op op -\nd /opt/own 0755 root root -\n");
    let report = host.apply(6);
    let mut held: Vec<String> =
        (0..PLACES.len()).map(|n| format!("missing{n} container/missing{n} missing-path")).collect();
    held.push("port container/port port-in-use".to_owned());
    assert_eq!(report.held(), held, "{report}");
    assert_eq!(report.count("failed"), 0, "{report}");
    assert!(report.sentence("port", "container/port").contains("elsewhere.service"), "{report}");
    assert_eq!(host.ok("stat -c '%U %a' /srv/own").trim(), "op 2750");
    for n in 0..PLACES.len() {
        assert_eq!(host.inspect(&format!("systemd-there{n}"), "{{.State.Status}}"), "running");
    }
    host.nothing_failed();
}
