//! What systemd itself shows of a hold: a placeholder that fails to start and says why, and a target for each module that
//! waits on a take. Any other unit of the name comes first, and nothing foreign behaves otherwise because of either.

use std::collections::BTreeSet;

use holdfast_tests::{Host, assert_same, foreign_snapshot};

const HELD: &str = "/var/lib/holdfast/held";
const LATE: &str = "/run/systemd/generator.late";

/// A container that mounts what was found.
const WEB: &str = "[Container]\nImage=localhost/idle:1\nContainerName=web\nNetwork=none\nVolume=/var/lib/found:/data\n\n\
    [Install]\nWantedBy=multi-user.target\n";

/// One held unit of each type that a module may bring.
const TYPES: [(&str, &str); 7] = [
    ("rest.service", "[Service]\nExecStart=/usr/bin/true\n"),
    ("rest.timer", "[Timer]\nOnCalendar=daily\n"),
    ("rest.socket", "[Socket]\nListenStream=19999\n"),
    ("rest.path", "[Path]\nPathExists=/never\n"),
    ("rest.target", "[Unit]\nDescription=rest\n"),
    ("rest@.service", "[Service]\nExecStart=/usr/bin/true\n"),
    ("srv-rest.mount", "[Mount]\nWhat=tmpfs\nType=tmpfs\nWhere=/srv/rest\n"),
];

#[test]
fn a_held_unit_fails_to_start_and_says_why() {
    let host = Host::with_holdfast("g-see");
    host.ok("mkdir /var/lib/found");
    host.write(
        "/etc/systemd/system/needer.service",
        "[Unit]\nRequires=web.service\nAfter=web.service\n\n[Service]\nExecStart=/usr/bin/sleep infinity\n",
    );
    host.write(
        "/etc/systemd/system/below.service",
        "[Unit]\nRequiresMountsFor=/srv/rest/x\n\n[Service]\nExecStart=/usr/bin/sleep infinity\n",
    );
    // Found, and in the middle of a long start: whoever waits for it waits long.
    host.write(
        "/etc/systemd/system/slow.service",
        "[Service]\nType=oneshot\nTimeoutStartSec=infinity\nExecStart=/usr/bin/sleep infinity\n",
    );
    host.ok("systemctl daemon-reload && systemctl start --no-block slow.service");
    host.module("web-shop/web.container", WEB);
    host.module("web-shop/slow.container", &WEB.replace("ContainerName=web", "ContainerName=slow"));
    for (name, text) in TYPES {
        host.module(&format!("rest/{name}"), text);
    }
    host.holdfast("hold rest --note 'until the audit is over'", 0);
    let reloads = reloads(&host);
    let report = host.apply(6);
    assert_eq!((report.count("total"), report.count("held"), report.count("changed")), (10, 10, 0), "{report}");
    assert_eq!(host.property("slow", "ActiveState"), "activating");
    assert_eq!(self::reloads(&host), reloads + 1, "one reload for all markers");

    for unit in
        ["web.service", "rest.service", "rest.timer", "rest.socket", "rest.path", "rest.target", "rest@1.service"]
    {
        let done = host.sh(&format!("systemctl start {unit}"));
        assert_eq!(done.status, 1, "{unit}: {done:?}");
        assert_eq!(host.property(unit, "LoadState"), "loaded", "{unit}");
        assert_eq!(host.property(unit, "ActiveState"), "inactive", "{unit}");
    }
    let description = |unit: &str| host.property(unit, "Description");
    assert_eq!(description("web"), "web.service (held for module web-shop: needs-held, waiting on take)");
    assert_eq!(description("rest.timer"), "rest.timer (held for module rest: operator)");
    let dependant = host.sh("systemctl start needer");
    assert_eq!(dependant.status, 1, "{dependant:?}");
    assert!(dependant.stderr.contains("dependency"), "{dependant:?}");
    host.nothing_failed();

    // The hold's own line stands beside it.
    let status = host.sh("systemctl status web.service").stdout;
    assert!(status.contains("held for module web-shop"), "{status}");
    assert!(status.contains("it would mount /var/lib/found, found on this host"), "{status}");
    assert!(status.contains("/var/lib/holdfast/held/web.service; generated"), "{status}");

    // A mount has none: what lies below it would require it from now on.
    assert_eq!(host.property("srv-rest.mount", "LoadState"), "not-found");
    host.ok("systemctl start below.service");

    // The operator is told, or gets what was asked for.
    let enable = host.fails("systemctl enable web.service");
    assert!(enable.stderr.contains("generated"), "{enable:?}");
    assert_eq!(host.property("web", "UnitFileState"), "generated");
    host.ok("systemctl mask web.service");
    assert_eq!(host.property("web", "LoadState"), "masked");
    host.ok("systemctl unmask web.service");
    assert_eq!(host.property("web", "LoadState"), "loaded");

    assert_eq!(waiting(&host), ["holdfast-held@web-shop.target Module web-shop is waiting on take"]);
    let after = host.property("holdfast-held@web-shop.target", "After");
    assert_eq!(BTreeSet::from_iter(after.split(' ')), BTreeSet::from(["slow.service", "web.service"]));
    assert_eq!(host.property("holdfast-held@web-shop.target", "Wants"), "");

    // The unit that applies is failed while anything is held: that is the alarm.
    let reloads = self::reloads(&host);
    let alarm = host.sh("systemctl start holdfast-apply && echo stop the old one");
    assert_eq!((alarm.status, alarm.stdout.as_str()), (1, ""), "{alarm:?}");
    assert_eq!(host.property("holdfast-apply", "ActiveState"), "failed");
    assert_eq!(host.property("holdfast-apply", "ExecMainStatus"), "6");
    assert_eq!(self::reloads(&host), reloads, "nothing changed");
}

#[test]
fn any_other_unit_of_the_name_comes_first() {
    let host = Host::with_holdfast("g-win");
    host.ok("mkdir /var/lib/found");
    let sleep = "[Service]\nExecStart=/usr/bin/sleep infinity\n";
    host.write("/etc/systemd/system/file.service", sleep);
    host.write("/etc/systemd/system/inst@.service", sleep);
    host.write("/usr/lib/systemd/system/vendor.service", sleep);
    let quadlet = "[Container]\nImage=localhost/idle:1\nContainerName=another\nNetwork=none\n";
    host.write("/etc/containers/systemd/quad.container", quadlet);
    let script = "#!/bin/sh\n### BEGIN INIT INFO\n# Provides: script\n# Default-Start: 3\n# Default-Stop: 6\n### END INIT INFO\n";
    host.write_mode("/etc/init.d/script", script, 0o755);
    // One that a package left behind, and that systemd passes over.
    host.write_mode("/etc/init.d/left", script, 0o644);
    let units = "file inst@1 vendor quad script trans";
    host.ok(&format!("systemctl daemon-reload && systemd-run --unit=trans sleep infinity && systemctl start {units}"));
    let look = format!(
        "systemctl show --property=Id,LoadState,ActiveState,SubState,FragmentPath,DropInPaths,InvocationID,MainPID,Asserts,\
         Requires,Wants,BindsTo,Conflicts,TriggeredBy {units}"
    );
    let files =
        ["/etc/systemd/system", "/usr/lib/systemd/system/vendor.service", "/etc/containers", "/etc/init.d/script"];
    let everything = || foreign_snapshot(&host, &["another"], &files) + &sorted(&host.ok(&look));
    let before = everything();

    for name in ["file", "inst@1", "vendor", "quad", "script", "trans", "left"] {
        host.module(
            &format!("all/{name}.container"),
            &WEB.replace("ContainerName=web", &format!("ContainerName=our-{}", name.replace('@', "-"))),
        );
    }
    host.module("all/free.container", WEB);
    let report = host.apply(6);
    assert_eq!(report.count("held"), report.count("total"), "{report}");
    let markers = "file.service free.service holdfast-held@all.target inst@1.service left.service quad.service script.service \
        trans.service vendor.service";
    assert_eq!(host.ok(&format!("ls {HELD} | xargs echo")).trim(), markers);
    assert_eq!(host.property("free", "FragmentPath"), format!("{LATE}/free.service"));
    assert_same(&before, &everything(), "a placeholder took the place of something");
    let reloads = reloads(&host);
    host.apply(6);
    assert_eq!(self::reloads(&host), reloads, "nothing is missing");
    host.ok(&format!("systemctl restart {}", units.replace("trans", "")));

    // Not even across a reboot; what was transient is gone by itself.
    host.ok("systemctl enable file.service 2>/dev/null; true");
    host.reboot();
    host.ok(&format!("systemctl start {}", units.replace("trans", "")));
    assert_eq!(host.property("trans", "FragmentPath"), format!("{LATE}/trans.service"));
    assert_eq!(host.sh("systemctl start trans").status, 1);
    host.nothing_failed();
}

#[test]
fn after_a_reboot_without_the_agent_the_list_is_right_until_the_hold_ends() {
    let host = Host::with_holdfast("g-boot");
    host.ok("mkdir /var/lib/found && podman volume create f-vol");
    // Found, and ordered after all that the boot is about.
    host.write(
        "/etc/systemd/system/late.service",
        "[Unit]\nAfter=multi-user.target\n\n[Service]\nExecStart=/usr/bin/sleep infinity\n\n[Install]\nWantedBy=multi-user.target\n",
    );
    host.ok("systemctl enable -q --now late.service");
    host.module("web-shop/web.container", WEB);
    host.module("web-shop/late.container", &WEB.replace("ContainerName=web", "ContainerName=late"));
    host.module("web-shop/module.toml", "[health]\nwatch = \"1s\"\n");
    // One that waits without any unit, one that waits on something else, one that runs.
    host.module("disk/tmpfiles.d/disk.conf", "d /srv/disk 0755 root root -\n");
    host.ok("mkdir /srv/disk");
    host.module(
        "mail/mail.container",
        &WEB.replace("web", "mail").replace("Volume=/var/lib/found:/data\n", "Secret=none\n"),
    );
    host.module("fine/fine.volume", "[Volume]\n");
    host.apply(6);
    let expected = [
        "holdfast-held@disk.target Module disk is waiting on take",
        "holdfast-held@web-shop.target Module web-shop is waiting on take",
    ];
    assert_eq!(waiting(&host), expected);

    host.ok("systemctl mask holdfast-apply.service holdfast-apply.timer holdfastd.service holdfastd.socket");
    host.reboot();
    assert_eq!(waiting(&host), expected);
    assert_eq!(host.property("late", "ActiveState"), "active");
    let cycles = host.sh("journalctl -b -o cat _PID=1 | grep -i cycle");
    assert_eq!(cycles.stdout, "");
    assert_eq!(host.ok("systemctl is-system-running"), "running\n");
    assert_eq!(host.sh("systemctl start web").status, 1);
    host.nothing_failed();
    // systemd has read the markers at boot, so that nothing is to be done.
    host.ok("systemctl unmask holdfastd.service holdfastd.socket && systemctl start holdfastd.socket");
    let reloads = reloads(&host);
    host.apply(6);
    assert_eq!(self::reloads(&host), reloads);

    // An apply of another module leaves it alone.
    host.ok("rmdir /var/lib/found /srv/disk");
    assert_eq!(host.apply_with("disk", 0).count("changed"), 1);
    assert_eq!(waiting(&host), expected[1..]);
    assert_eq!(host.property("web", "FragmentPath"), format!("{LATE}/web.service"));

    // The hold ends: the real unit comes in its place, by the one reload that it needs anyway.
    host.ok("systemctl disable -q --now late && rm /etc/systemd/system/late.service && systemctl daemon-reload");
    let reloads = self::reloads(&host);
    let report = host.apply(6);
    assert_eq!(report.held(), ["mail container/mail missing-secret"]);
    assert_eq!(self::reloads(&host), reloads + 1);
    assert_eq!(host.property("web", "FragmentPath"), "/run/systemd/generator/web.service");
    assert_eq!(host.inspect("web", "{{.State.Status}}"), "running");
    assert_eq!(waiting(&host), [""; 0]);
    assert_eq!(host.ok(&format!("ls {HELD}")), "mail.service\n");
    host.nothing_failed();
}

#[test]
fn nothing_in_the_directory_makes_a_reload_fail_and_what_is_lost_comes_back() {
    let host = Host::with_holdfast("g-odd");
    host.ok("mkdir /var/lib/found");
    host.module("web-shop/web.container", WEB);
    host.apply(6);
    let good = host.ok(&format!("find {HELD} | sort; cat {HELD}/*"));

    host.ok(&format!(
        r#"cd {HELD}; mkfifo pipe.service; mkdir dir.service; ln -s /etc/passwd link.service; mknod null.service c 1 3 || true
        echo '{{' >bad.service; echo '{{"schema":2}}' >new.service; : >empty.service; head -c 3000000 /dev/zero >big.service
        touch $'new\nline.service' 'sp ace.service' %n.service $'\xff\xfe.service' .holdfast-0123.tmp
        for name in noext @.service .service x@y.service 'a b.service' ok.slice dev-x.device srv-x.mount; do cp web.service "$name"; done
        cp web.service holdfast-held@Bad.target; cp web.service holdfast-held@.target"#
    ));
    let generator = host.sh("/usr/lib/systemd/system-generators/holdfast-generator /run/1 /run/1 /run/late
        echo ended with $?; find /run/late -type f -o -type l | sort");
    let files = [
        "holdfast-held@web-shop.target.d/50-held.conf",
        "multi-user.target.wants/holdfast-held@web-shop.target",
        "web.service",
    ];
    let made = files.map(|file| format!("/run/late/{file}\n")).concat();
    assert_eq!(generator.stdout, format!("ended with 0\n{made}"));
    for name in ["pipe", "dir", "link", "bad", "new", "empty", "big", "new?line", "sp ace", "%n"] {
        assert!(generator.stderr.contains(&format!("{HELD}/{name}.service is passed over: ")), "{name}: {generator:?}");
    }
    assert!(generator.stderr.contains("schema 2"), "{generator:?}");
    host.ok("systemctl daemon-reload && test $(systemctl is-system-running) = running");
    assert_eq!(host.sh("systemctl start web").status, 1);
    // An apply clears it away, as far as it is files.
    host.apply(6);
    host.ok(&format!(
        "cd {HELD} && rm -r pipe.service dir.service link.service *$'\\xfe'.service && rm -f null.service"
    ));
    assert_eq!(host.ok(&format!("find {HELD} | sort; cat {HELD}/*")), good);

    // No directory at all, or one that is none: no placeholder, and no harm.
    host.ok(&format!("rm -r {HELD} && echo >{HELD} && systemctl daemon-reload"));
    assert_eq!(host.property("web", "LoadState"), "not-found");
    assert_eq!(host.apply(6).count("failed"), 0);
    host.ok(&format!("rm {HELD}"));
    host.apply(6);
    assert_eq!(host.ok(&format!("find {HELD} | sort; cat {HELD}/*")), good);
    assert_eq!(host.sh("systemctl start web").status, 1);
    assert_eq!(waiting(&host).len(), 1);

    // The generator did not see the markers, as where /var comes late at boot; once it is masked, that is meant.
    host.ok(&format!("mv {HELD} {HELD}.away && systemctl daemon-reload && mv {HELD}.away {HELD}"));
    host.ok("systemctl stop 'holdfast-held@*.target'");
    host.apply(6);
    assert_eq!(host.property("web", "LoadState"), "loaded");
    assert_eq!(waiting(&host).len(), 1);
    host.ok(
        "mkdir -p /etc/systemd/system-generators && ln -s /dev/null /etc/systemd/system-generators/holdfast-generator",
    );
    host.ok("systemctl daemon-reload");
    let reloads = reloads(&host);
    host.apply(6);
    assert_eq!(self::reloads(&host), reloads);
    assert_eq!(host.property("web", "LoadState"), "not-found");
    host.nothing_failed();
}

/// What `systemctl show` says; systemd does not keep the order of a list over a reload.
fn sorted(shown: &str) -> String {
    let lines = shown.lines().map(|line| {
        let (name, value) = line.split_once('=').unwrap_or((line, ""));
        let mut words: Vec<&str> = value.split(' ').collect();
        words.sort_unstable();
        format!("{name}={}\n", words.join(" "))
    });
    lines.collect()
}

/// The modules that wait on a take, as systemd lists them.
#[track_caller]
fn waiting(host: &Host) -> Vec<String> {
    let list = host.ok("systemctl list-units --plain --no-legend 'holdfast-held@*'");
    let units = list.lines().map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        assert_eq!(words[1..4], ["loaded", "active", "active"], "{line}");
        format!("{} {}", words[0], words[4..].join(" "))
    });
    units.collect()
}

/// How often systemd was reloaded since it started.
#[track_caller]
fn reloads(host: &Host) -> usize {
    host.ok("journalctl --sync; journalctl -b -o cat _PID=1")
        .lines()
        .filter(|line| line.starts_with("Reloading finished"))
        .count()
}
