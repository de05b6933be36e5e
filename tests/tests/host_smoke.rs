//! The test hosts themselves: what every other test takes for granted.

use holdfast_tests::{Host, foreign_snapshot, on_network};
use std::thread;

const WEB: &str = "\
[Container]
Image=localhost:5000/svc:1.0
ContainerName=web
PublishPort=8080:8080
Notify=healthy

[Install]
WantedBy=multi-user.target
";

#[test]
fn boots_with_journal_bus_registry_and_images() {
    let host = Host::boot("smoke");
    assert_eq!(host.ok("systemctl is-system-running"), "running\n");
    assert_eq!(host.ok("hostname").trim(), host.name());

    host.ok("logger -t smoke 'a line to find' && journalctl --sync");
    assert!(host.ok("ls -d /var/log/journal/*/").contains("/var/log/journal/"));
    assert_eq!(host.entries(&["SYSLOG_IDENTIFIER=smoke"])[0]["MESSAGE"], "a line to find");

    host.ok("busctl call org.freedesktop.systemd1 /org/freedesktop/systemd1 org.freedesktop.DBus.Peer Ping");
    let refused = host.sh_as(
        "op",
        "busctl call org.freedesktop.systemd1 /org/freedesktop/systemd1 \
         org.freedesktop.systemd1.Manager StopUnit ss dbus.service replace",
    );
    assert!(refused.stderr.contains("nteractive authentication required"), "{refused:?}");

    host.start_registry();
    let digest = host.ok("skopeo inspect --tls-verify=false docker://localhost:5000/svc:1.0 | jq -r .Digest");
    let stored = host.ok("podman image inspect localhost:5000/svc:1.0 --format '{{.RepoDigests}}'");
    assert!(stored.contains(digest.trim()), "{digest} {stored}");
    host.retag("svc:2.0", "svc:latest");
    let moved = host.ok("skopeo inspect --tls-verify=false docker://localhost:5000/svc:latest | jq -r .Digest");
    assert_ne!(digest, moved);

    let images = host.ok("podman images --format '{{.Repository}}:{{.Tag}}'");
    let mut images: Vec<&str> = images.lines().collect();
    images.sort_unstable();
    assert_eq!(
        images,
        [
            "localhost/anon:1",
            "localhost/app:1.22.6",
            "localhost/app:1.22.7",
            "localhost/app:1.27.3",
            "localhost/app:1.27.4",
            "localhost/app:6.10.1",
            "localhost/app:6.10.3",
            "localhost/epoch:1",
            "localhost/epoch:2",
            "localhost/idle:1",
            "localhost/liar:3.1.0",
            "localhost/liar:3.2.0",
            "localhost/plain:1",
            "localhost/plain:2",
            "localhost/sick:1.28.0",
            "localhost/sick:health",
            "localhost:5000/svc:1.0",
            "localhost:5000/svc:1.1",
            "localhost:5000/svc:2.0",
            "localhost:5000/svc:2.1",
            "localhost:5000/svc:latest",
            "localhost:5000/svc:nolabel",
        ]
    );
    assert_eq!(host.ok("podman image inspect localhost/epoch:1 --format '{{.Created.Unix}}'"), "0\n");
    let label = "{{index .Labels \"org.opencontainers.image.version\"}}";
    let labels = host.ok(&format!(
        "podman image inspect --format '{label}' \
        localhost/app:1.22.6 localhost/liar:3.1.0 localhost/plain:1 localhost:5000/svc:nolabel"
    ));
    assert_eq!(labels, "1.22.6\n24.04\n\n\n");
}

#[test]
fn images_do_as_they_say() {
    let host = Host::boot("images");
    // Each of them runs without a network and stops at once when told to.
    host.ok(r#"for image in svc:1.0 svc:2.1 app:1.22.6 sick:1.28.0 sick:health anon:1 idle:1; do
        image=${image/#svc/localhost:5000/svc}; [[ $image == *:5000/* ]] || image=localhost/$image
        podman run -d --network none --name t "$image" >/dev/null && sleep 0.2 || exit
        start=$(date +%s%N); podman stop --time 8 t >/dev/null || exit
        ms=$(( ($(date +%s%N) - start) / 1000000 )); rc=$(podman inspect t --format '{{.State.ExitCode}}')
        [ $ms -lt 5000 ] && [ $rc = 0 ] || { echo "$image: stopped in $ms ms with $rc" >&2; exit 1; }
        podman rm -v t >/dev/null
    done"#);

    host.ok("podman run -d --name app -v data:/data -p 8081:8080 localhost/app:1.27.4");
    assert_eq!(host.wait_for(10, "curl -fsS localhost:8081"), "app 1.27.4\n");
    host.ok("podman rm -f app");
    let refused = host.fails("podman run --rm -v data:/data localhost/app:1.27.3");
    assert_eq!(refused.status, 1);
    assert!(refused.stderr.contains("FATAL"), "{refused:?}");
    host.ok("podman run -d --name app -v data:/data localhost/app:6.10.1 && sleep 0.5 && podman exec app cat /data/version | grep 6.10.1");

    let health = |name: &str, state: &str| {
        host.wait_for(20, &format!("podman inspect {name} --format '{{{{.State.Health.Status}}}}' | grep -x {state}"));
    };
    host.ok("podman run -d --name well localhost:5000/svc:2.0; podman run -d --name ill localhost:5000/svc:2.1; \
        podman run -d --name sick localhost/sick:health");
    health("well", "healthy");
    health("ill", "unhealthy");
    health("sick", "unhealthy");

    let limited = "podman run -d --name limited --memory 64m --pids-limit 50 localhost/idle:1";
    host.ignore_limits();
    host.ok(limited);
    assert_eq!(host.ok("podman inspect limited --format '{{.HostConfig.Memory}}'"), "67108864\n");
}

#[test]
fn a_quadlet_unit_comes_back_after_reboot_and_power_cut() {
    let host = Host::boot("reboot");
    host.write("/etc/containers/systemd/web.container", WEB);
    host.ok("systemctl daemon-reload && systemctl start web");
    let answer = || host.wait_for(20, "curl -fsS localhost:8080/version");
    assert_eq!(answer(), "1.0\n");
    let paths = ["/etc/containers/systemd"];
    let before = foreign_snapshot(&host, &["web", "none"], &paths);
    assert!(before.contains("ImageID="), "{before}");
    assert!(before.contains("container none does not exist"), "{before}");
    assert!(before.contains("web.container inode="), "{before}");
    assert_eq!(before, foreign_snapshot(&host, &["web", "none"], &paths));

    let leader = host.leader();
    host.reboot();
    assert_ne!(host.leader(), leader);
    assert_eq!(answer(), "1.0\n");
    let after = foreign_snapshot(&host, &["web", "none"], &paths);
    assert_ne!(before, after, "another container");

    host.power_cut();
    assert!(!host.is_up());
    assert!(host.journal(&["-u", "web", "-o", "cat"]).contains("Started web.service"));
    host.boot_again_early();
    assert_eq!(answer(), "1.0\n");
    assert_eq!(host.read("/etc/containers/systemd/web.container"), WEB);
    // three boots, one journal
    assert_eq!(host.ok("journalctl --list-boots -q | wc -l"), "3\n");
}

#[test]
fn two_hosts_boot_at_once_and_reach_each_other() {
    let [one, two] = ["one", "two"].map(|name| thread::spawn(move || Host::boot(name)));
    let (one, two) = (one.join().unwrap(), two.join().unwrap());
    one.ok("podman run -d -p 8080:8080 localhost:5000/svc:1.1");
    let url = format!("http://{}:8080/version", one.addr());
    assert_eq!(two.wait_for(10, &format!("curl -fsS {url}")), "1.1\n");
    assert_eq!(on_network(&["curl", "-fsS", &url]).stdout, "1.1\n");
    assert_eq!(two.ok(&format!("ssh {} hostname", one.addr())).trim(), one.name());
    // The clock is the machine's: nobody inside may set it.
    two.fails("date -s 2001-01-01");
}

#[test]
fn what_failed_can_be_looked_at() {
    let failed = thread::spawn(|| {
        let host = Host::boot("fails");
        host.ok("logger -t smoke 'before the fall'");
        host.ok("echo out; echo err >&2; exit 3");
    });
    let message = *failed.join().unwrap_err().downcast::<String>().unwrap();
    for part in ["exit status 3", "out\n", "err\n"] {
        assert!(message.contains(part), "{message}");
    }
    let name = message.split(':').next().unwrap();
    let failed = std::fs::read_dir(holdfast_tests::test_dir().join("failed")).unwrap();
    let mut failed = failed.map(|entry| entry.unwrap().path());
    let saved = failed.find(|path| path.display().to_string().contains(name)).expect("saved");
    let journal = std::process::Command::new("journalctl")
        .arg("-D")
        .arg(saved.join("journal"))
        .args(["-q", "-o", "cat", "-t", "smoke"])
        .output()
        .unwrap();
    assert_eq!(String::from_utf8_lossy(&journal.stdout), "before the fall\n");
    std::fs::remove_dir_all(saved).unwrap();
}
