//! Nothing that is put into a module, and nothing that the host lacks, makes an apply do half a thing or harm another.

use std::time::{Duration, Instant};

use holdfast_tests::{Host, INSTALLED, MODULES, foreign_snapshot};

/// A module for each thing that is no readable Quadlet file.
const ODD: &str = r#"
    cd /etc/holdfast/modules; unit='[Container]\nImage=localhost/idle:1\nNetwork=none\n\n[Install]\nWantedBy=multi-user.target\n'
    mkdir bom dangling fifo outside socket many big latin BAD_NAME unsafe nothing
    printf '\xef\xbb\xbf'"$unit" >bom/x.container
    ln -s /nowhere dangling/x.container
    mkfifo fifo/x.container
    python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind("socket/x.container")'
    ln -s /etc/hostname outside/x.container
    (cd many && printf "$unit" >x.container && seq -f 'note-%05.0f.txt' 10000 | xargs touch)
    printf "$unit" | cat - <(head -c 50M /dev/zero) >big/x.container
    printf "[Unit]\nDescription=caf\xe9\n$unit" >latin/x.container
    printf "$unit" | tee BAD_NAME/x.container unsafe/x.container >/dev/null; chown op unsafe/x.container
"#;

#[test]
fn odd_files_hold_their_own_module_and_no_other() {
    let host = Host::with_holdfast("todd");
    host.assign("good");
    host.ok(ODD);
    let start = Instant::now();
    let report = host.apply(6);
    assert!(start.elapsed() < Duration::from_secs(20), "{:?}", start.elapsed());
    assert_eq!(report.count("failed"), 0, "{report}");
    assert!(report.done().contains(&"good container/good created".to_owned()), "{report}");
    let expected = [
        ("BAD_NAME", "unreadable", "BAD_NAME"),
        ("big", "unreadable", "x.container"),
        ("bom", "unreadable", "byte order mark"),
        ("dangling", "unreadable", "/nowhere"),
        ("fifo", "unreadable", "x.container"),
        ("latin", "unreadable", "UTF-8"),
        ("outside", "unreadable", "/etc/hostname"),
        ("socket", "unreadable", "x.container"),
        ("unsafe", "unsafe-owner", "x.container"),
    ];
    let held = report.held();
    for (module, reason, word) in expected {
        let line = format!("{module} container/x {reason}");
        assert!(held.contains(&line), "{line}: {held:#?}");
        let sentence = report.sentence(module, "container/x");
        assert!(sentence.contains(word), "{word}: {sentence}");
    }
    let of_many = held.iter().find(|line| line.starts_with("many "));
    assert!(of_many.is_some_and(|line| line.ends_with(" unreadable")), "{held:#?}");
    // Nothing of them is where systemd would find it.
    let installed = host.ok(&format!("ls {INSTALLED}"));
    assert!(expected.iter().all(|(module, ..)| !installed.lines().any(|line| line == *module)), "{installed}");

    // With the whole folder open to others, nothing in it is trusted; what runs goes on.
    let before = foreign_snapshot(&host, &["good"], &[]);
    host.ok(&format!("chmod 777 {MODULES}"));
    assert!(host.apply(6).held().contains(&"good container/good unsafe-owner".to_owned()));
    host.ok(&format!("chmod 755 {MODULES}"));
    assert_eq!(before, foreign_snapshot(&host, &["good"], &[]));
    host.nothing_failed();
}

#[test]
fn an_apply_that_cannot_keep_its_books_does_nothing() {
    let host = Host::with_holdfast("tbooks");
    host.assign("good");
    host.apply(0);
    let everything = || foreign_snapshot(&host, &["good"], &[INSTALLED]);
    let before = everything();

    // The folder of its state is gone: nothing is lost, nothing restarted.
    host.ok("rm -rf /var/lib/holdfast");
    assert_eq!(host.apply(0).count("changed"), 0);
    assert_eq!(host.ok("stat -c '%a %U' /var/lib/holdfast"), "700 root\n");
    assert_eq!(before, everything());

    // From here on there is something to do, and it must not be done.
    host.ok(&format!("sed -i '/^Network/a Label=a=b' {MODULES}/good/good.container"));
    let refused = |what: &str, word: &str| {
        let done = host.holdfast("apply", 1);
        assert!(done.stderr.contains(word), "{what}: {done:?}");
        assert!(host.sh("holdfast apply && echo stop-it").stdout.is_empty(), "{what}");
        assert_eq!(before, everything(), "{what}");
    };
    host.ok("cp -a /var/lib/holdfast /root/state && mount -t tmpfs -o size=64k,mode=700 tmpfs /var/lib/holdfast
        cp -a /root/state/. /var/lib/holdfast/; dd if=/dev/zero of=/var/lib/holdfast/filler bs=1k 2>/dev/null; true");
    refused("a full disk", "No space left");
    host.ok("rm /var/lib/holdfast/filler && mount -o remount,ro /var/lib/holdfast");
    refused("a read-only disk", "Read-only");
    host.ok("umount /var/lib/holdfast");

    host.ok("systemctl mask --now podman.socket && systemctl stop podman.service");
    refused("no Podman", "/run/podman/podman.sock");
    host.ok("systemctl unmask podman.socket && systemctl start podman.socket");

    for socket in ["socket", "io.systemd.journal"] {
        let path = format!("/run/systemd/journal/{socket}");
        host.ok(&format!("mv {path} {path}.away"));
        refused(socket, "journal");
        host.ok(&format!("mv {path}.away {path}"));
    }

    // All of it back: it is done now.
    assert_eq!(host.apply(0).done(), ["good container/good recreated"]);
    host.nothing_failed();
}

#[test]
fn one_apply_at_a_time() {
    let host = Host::with_holdfast("tbusy");
    host.assign("slow");
    // While one apply watches what it started, another is told so, or waits.
    let first = host.spawn("holdfast apply slow --json");
    host.wait_for(20, "podman container exists slow");
    let busy = host.holdfast("apply", 75);
    assert!(busy.stderr.contains("job 1 (apply) runs"), "{busy:?}");
    assert!(host.holdfast("jobs", 0).stdout.contains("1  apply of slow  running"), "{busy:?}");
    assert_eq!(host.sh("holdfast status").status, 6, "looking is free");
    let waited = host.apply_with("--wait", 0);
    assert_eq!(waited.done(), ["after container/after created"]);
    let first = first.wait_with_output().unwrap();
    assert_eq!(first.status.code(), Some(0));
    assert!(String::from_utf8_lossy(&first.stdout).contains("\"result\": \"done\""));

    // Ctrl-C: the apply goes on to its end and reports, without its caller.
    host.ok(&format!("sed -i '/^Network/a Label=a=b' {MODULES}/slow/slow.container"));
    let id = host.inspect("slow", "{{.Id}}");
    let interrupted = host.spawn("echo $$ >/run/second; exec holdfast apply --json");
    host.wait_for(20, &format!("test -n \"$(podman ps -q --filter name=slow)\" && ! podman container exists {id}"));
    host.ok("kill -INT $(cat /run/second)");
    let interrupted = interrupted.wait_with_output().unwrap();
    assert_eq!(interrupted.status.code(), Some(130), "{interrupted:?}");
    assert!(String::from_utf8_lossy(&interrupted.stderr).contains("goes on to its end"), "{interrupted:?}");
    host.wait_for(30, "! holdfast jobs | grep -qE 'running|queued'");
    assert!(host.holdfast("report", 0).stdout.contains("applied 2 of 2 resource(s) (1 changed)"));
    assert_eq!(host.apply(0).count("changed"), 0);

    // A job that is canceled finishes its step, says what it left, and the next apply does that.
    host.ok(&format!("sed -i 's/a=b/a=c/' {MODULES}/slow/slow.container"));
    host.module(
        "more/more.container",
        "[Container]\nImage=localhost:5000/nowhere:1\nNetwork=none\n[Install]\nWantedBy=multi-user.target\n",
    );
    let waiting = host.spawn("holdfast apply slow --json");
    host.wait_for(20, "holdfast jobs | grep -q running");
    let queued = host.spawn("holdfast apply --wait --json");
    host.wait_for(20, "holdfast jobs | grep -q queued");
    let number = host.ok("holdfast jobs | awk '/queued/ { print $1 }'");
    host.holdfast(&format!("cancel {}", number.trim()), 0);
    assert_eq!(queued.wait_with_output().unwrap().status.code(), Some(1), "it had not begun");
    assert_eq!(waiting.wait_with_output().unwrap().status.code(), Some(0), "the other goes on");
    host.holdfast("cancel 4711", 1);
    host.ok(&format!("rm -r {MODULES}/more"));
    host.nothing_failed();
}

#[test]
fn every_exit_status_means_what_the_manual_says() {
    let host = Host::with_holdfast("texit");
    host.holdfast("status", 0);
    host.holdfast("is-applied", 6);
    host.assign("good");
    host.holdfast("plan", 6);
    host.holdfast("apply --dry-run", 6);
    assert_eq!(host.sh("podman container exists good").status, 1, "a plan does nothing");
    host.holdfast("apply", 0);
    for verb in ["status", "plan", "is-applied", "is-applied good", "holds", "report", "report --list"] {
        host.holdfast(verb, 0);
    }
    for verb in ["apply nowhere", "status nowhere", "is-applied nowhere", "hold nowhere --note x", "report 0123abcd"] {
        let done = host.holdfast(verb, 4);
        assert!(done.stdout.is_empty() && !done.stderr.is_empty(), "{verb}: {done:?}");
    }
    for words in ["", "frobnicate", "holds --reason fuond", "hold good", "apply --frobnicate"] {
        host.holdfast(words, 2);
    }
    // Whoever may not is refused; to whom only a look now is refused gets the last one.
    for verb in ["apply", "plan", "is-applied", "hold good --note x", "unhold good"] {
        assert_eq!(host.sh_as("op", &format!("holdfast --no-ask-password {verb}")).status, 77, "{verb}");
    }
    for verb in ["status", "holds", "report", "jobs"] {
        assert_eq!(host.sh_as("op", &format!("holdfast {verb}")).status, 0, "{verb}");
    }

    // An operator's stop is respected, and told.
    host.ok("systemctl stop good");
    let report = host.apply(6);
    assert_eq!(report.notes(), ["good container/good stopped-by-operator"]);
    assert_eq!(host.property("good", "ActiveState"), "inactive");
    host.holdfast("is-applied good", 6);
    host.ok("systemctl start good");
    host.holdfast("is-applied good", 0);

    // The unit that a timer or a script starts: it fails while anything is held.
    host.ok("systemctl start holdfast-apply.service");
    host.holdfast("hold good --note 'not now'", 0);
    let trap = host.sh("systemctl start holdfast-apply.service && echo stop-it");
    assert_eq!((trap.status, trap.stdout.as_str()), (1, ""));
    assert_eq!(host.property("holdfast-apply.service", "ExecMainStatus"), "6");
    host.holdfast("unhold good", 0);
    host.ok("systemctl start holdfast-apply.service");
    host.nothing_failed();
}
