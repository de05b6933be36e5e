//! Throw-away hosts for integration tests.
//!
//! A [`Host`] is a Debian with a systemd, a journal, a D-Bus and a Podman of its
//! own, in a container on this machine. It boots in about a second, starts with
//! the images that `tests/host/images.sh` describes, and is gone when the value
//! is dropped. When the test panics, its journal is kept, and where is printed.
//!
//! ```no_run
//! let host = holdfast_tests::Host::boot("web");
//! host.ok("podman run -d --name web -p 8080:8080 localhost:5000/svc:1.0");
//! host.wait_for(10, "curl -fsS localhost:8080/healthz");
//! assert_eq!(host.ok("curl -fsS localhost:8080/version"), "1.0\n");
//! ```
//!
//! [`Host::with_holdfast`] has the `holdfast` command as well. Modules are in
//! `tests/modules/CASE/MODULE/`, a folder of modules for each case:
//!
//! ```no_run
//! let host = holdfast_tests::Host::with_holdfast("web");
//! host.assign("founding-outage");
//! let report = host.apply(6); // the exit status that it must end with
//! assert_eq!(report.held(), ["mail container/mailer found"]);
//! ```
//!
//! Tests need root. What they need besides, `tests/host/setup` installs and
//! makes, once per machine; the first host of each test process runs it.
//!
//! Environment:
//! - `HOLDFAST_TEST_DIR`: where hosts and their base are kept
//!   (`/var/tmp/holdfast-tests`); one directory is one separate set of hosts.
//! - `HOLDFAST_KEEP=1`: hosts of tests that panic stay up, to look at.
//! - `HOLDFAST_INSTALL_TREE`: a tree to lay over each host for
//!   [`Host::with_holdfast`], instead of running `make install`.

mod holdfast;
pub mod workload;

pub use holdfast::{INSTALLED, MODULES, Report, assert_same};

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// Seconds that [`Host::sh`] and its relatives let a script run.
pub const SCRIPT_SECONDS: u32 = 120;

/// How a script ended, and what it printed.
#[derive(Debug, Clone)]
pub struct Done {
    /// The exit status; 124 when it was stopped for taking too long, and
    /// 128 plus the signal when a signal ended it.
    pub status: i32,
    pub stdout: String,
    pub stderr: String,
}

impl Done {
    pub fn success(&self) -> bool {
        self.status == 0
    }

    /// Standard output as JSON.
    #[track_caller]
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("not JSON: {error}\n{}", self.describe()))
    }

    fn describe(&self) -> String {
        let Done { status, stdout, stderr } = self;
        format!("exit status {status}\n--- stdout\n{stdout}\n--- stderr\n{stderr}\n---")
    }
}

impl From<Output> for Done {
    fn from(output: Output) -> Done {
        use std::os::unix::process::ExitStatusExt;
        let status = output.status;
        Done {
            status: status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0)),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }
}

/// A running test host, destroyed on drop.
#[derive(Debug)]
pub struct Host {
    name: String,
}

impl Host {
    /// Boots a fresh host. `name` says what it is for and need not be unique;
    /// at most 10 characters, `[a-z][a-z0-9-]*`.
    #[track_caller]
    pub fn boot(name: &str) -> Host {
        Host::boot_with(name, &[])
    }

    /// As [`Host::boot`], with more options for `systemd-nspawn`, such as
    /// `--bind=/some/dir:/var/lib/holdfast`. They hold for this boot, and its
    /// reboots, only: see [`Host::boot_again_with`].
    #[track_caller]
    pub fn boot_with(name: &str, nspawn: &[&str]) -> Host {
        static COUNT: AtomicU32 = AtomicU32::new(1);
        let valid = name.starts_with(|c: char| c.is_ascii_lowercase())
            && name.len() <= 10
            && name.bytes().all(|b| matches!(b, b'a'..=b'z' | b'0'..=b'9' | b'-'));
        assert!(valid, "bad host name {name:?}");
        set_up();
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        // Made before the boot, so that a boot that fails is cleaned up too.
        let host = Host { name: format!("{name}-{}-{count}", std::process::id()) };
        host.up(nspawn);
        host
    }

    /// Boots a fresh host and installs holdfast in it, as `make install` lays
    /// it out, with Podman's socket, which it needs; enables and starts nothing else.
    #[track_caller]
    pub fn with_holdfast(name: &str) -> Host {
        let host = Host::boot(name);
        host.install_holdfast();
        host
    }

    /// Installs holdfast in this host: see [`Host::with_holdfast`].
    #[track_caller]
    pub fn install_holdfast(&self) {
        let tree = install_tree();
        // Another test process may be about to make it anew.
        let _lock = tree.lock.as_deref().map(|path| {
            let lock = File::open(path).expect("the install lock was made before");
            lock.lock_shared().expect("lock the install tree");
            lock
        });
        self.push_tree(&tree.root, "/");
        // as the package does
        self.ok("systemctl daemon-reload && systemctl enable -q --now podman.socket holdfastd.socket && systemctl reload dbus \
             && journalctl --update-catalog");
    }

    /// The host's full name, also its host name inside.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The address on the network that all hosts of this run share.
    pub fn addr(&self) -> String {
        self.tool_ok("addr", &[]).trim().to_owned()
    }

    /// Runs a bash script inside, as root.
    #[track_caller]
    pub fn sh(&self, script: &str) -> Done {
        self.sh_for(SCRIPT_SECONDS, script)
    }

    /// As [`Host::sh`], with a time limit of its own.
    #[track_caller]
    pub fn sh_for(&self, seconds: u32, script: &str) -> Done {
        self.run(&["exec", &self.name, "--"], seconds, script)
    }

    /// Runs a script that must succeed, and gives what it printed on stdout.
    #[track_caller]
    pub fn ok(&self, script: &str) -> String {
        self.must(true, script, self.sh(script)).stdout
    }

    /// Runs a script that must fail (with a status, not by the time limit).
    #[track_caller]
    pub fn fails(&self, script: &str) -> Done {
        self.must(false, script, self.sh(script))
    }

    /// As [`Host::sh`], as an unprivileged user with a bus and a systemd of its
    /// own. `op` exists (password `holdfast`, may use sudo, lingers).
    #[track_caller]
    pub fn sh_as(&self, user: &str, script: &str) -> Done {
        self.run(&["as", &self.name, user, "--"], SCRIPT_SECONDS, script)
    }

    /// As [`Host::ok`], for [`Host::sh_as`].
    #[track_caller]
    pub fn ok_as(&self, user: &str, script: &str) -> String {
        self.must(true, script, self.sh_as(user, script)).stdout
    }

    /// Starts a script inside with all its streams piped, for what must go on
    /// meanwhile. Nothing ends it but itself, its input or the host's end.
    #[track_caller]
    pub fn spawn(&self, script: &str) -> Child {
        tool(&["exec", &self.name, "--", "bash", "-c", script])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("start tests/host/host")
    }

    /// Runs a script again and again until it succeeds; gives its output.
    #[track_caller]
    pub fn wait_for(&self, seconds: u32, script: &str) -> String {
        let end = Instant::now() + Duration::from_secs(seconds.into());
        loop {
            let done = self.sh_for(seconds.max(1), script);
            if done.success() {
                return done.stdout;
            }
            if Instant::now() >= end {
                panic!("{}: not so after {seconds} s: {script}\n{}", self.name, done.describe());
            }
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    /// Writes a file (mode 644), and makes the directories above it.
    #[track_caller]
    pub fn write(&self, path: &str, text: impl AsRef<[u8]>) {
        self.write_mode(path, text, 0o644);
    }

    /// Writes a file with the given mode.
    #[track_caller]
    pub fn write_mode(&self, path: &str, text: impl AsRef<[u8]>, mode: u32) {
        const SCRIPT: &str = r#"umask 077; dir=$(dirname "$2"); [ -d "$dir" ] || (umask 022; mkdir -p "$dir")
            [ ! -e "$2" ] || chmod "$1" "$2"; cat >"$2" && chmod "$1" "$2""#;
        let mode = format!("{mode:o}");
        self.feed(&["sh", "-c", SCRIPT, "-", &mode, path], |stdin| stdin.write_all(text.as_ref()));
    }

    /// A file's content.
    #[track_caller]
    pub fn read(&self, path: &str) -> String {
        let done = Done::from(output(tool(&["exec", &self.name, "--", "cat", "--", path])));
        self.must(true, path, done).stdout
    }

    /// Copies what is in a local directory into a directory of the host, which
    /// is made if need be; modes are kept, all becomes root's.
    #[track_caller]
    pub fn push_tree(&self, local: impl AsRef<Path>, dest: &str) {
        let local = local.as_ref();
        let mut tar = Command::new("tar")
            .arg("-C")
            .arg(local)
            .args(["--owner=0", "--group=0", "-c", "."])
            .stdout(Stdio::piped())
            .spawn()
            .expect("start tar");
        let mut from = tar.stdout.take().expect("tar's stdout is piped");
        // what is there already keeps its mode, and /lib stays a link; tar's end does not end what this tar sends
        const SCRIPT: &str =
            r#"mkdir -p "$1" && tar -C "$1" -xp --no-overwrite-dir --keep-directory-symlink && cat >/dev/null"#;
        self.feed(&["sh", "-c", SCRIPT, "-", dest], |stdin| std::io::copy(&mut from, stdin).map(drop));
        assert!(tar.wait().expect("wait for tar").success(), "tar {}", local.display());
    }

    /// Runs `journalctl` over the host's journal from outside; works when the
    /// host is down. Entries that its journald still holds back are flushed.
    #[track_caller]
    pub fn journal(&self, args: &[&str]) -> String {
        if self.is_up() {
            self.sh_for(20, "journalctl --sync");
        }
        self.tool_ok("journal", args)
    }

    /// The journal's entries that match, as JSON, oldest first.
    #[track_caller]
    pub fn entries(&self, args: &[&str]) -> Vec<serde_json::Value> {
        let args = [&["--output=json", "--all"], args].concat();
        self.journal(&args).lines().map(|line| serde_json::from_str(line).expect("journalctl prints JSON")).collect()
    }

    /// Whether it runs.
    pub fn is_up(&self) -> bool {
        output(tool(&["leader", &self.name])).status.success()
    }

    /// Reboots in an orderly way and waits until all is up.
    #[track_caller]
    pub fn reboot(&self) {
        self.tool_ok("reboot", &[]);
    }

    /// Shuts down in an orderly way.
    #[track_caller]
    pub fn power_off(&self) {
        self.tool_ok("poweroff", &[]);
    }

    /// Pulls the plug: all processes die at once, nothing is told. What was
    /// written stays written (the files are in memory): unsynced data is *not*
    /// lost.
    #[track_caller]
    pub fn power_cut(&self) {
        self.tool_ok("kill", &[]);
    }

    /// Boots again after [`Host::power_off`] or [`Host::power_cut`].
    #[track_caller]
    pub fn boot_again(&self) {
        self.up(&[]);
    }

    /// As [`Host::boot_again`], but only until D-Bus answers: units may still
    /// be starting.
    #[track_caller]
    pub fn boot_again_early(&self) {
        let mut command = self.boot_command(&[]);
        command.env("HOLDFAST_BOOT_UNTIL", "bus");
        self.must(true, "boot", Done::from(output(command)));
    }

    /// As [`Host::boot_again`], with options as for [`Host::boot_with`].
    #[track_caller]
    pub fn boot_again_with(&self, nspawn: &[&str]) {
        self.up(nspawn);
    }

    /// The pid, on this machine, of the host's PID 1. Another after each boot.
    #[track_caller]
    pub fn leader(&self) -> u32 {
        let pid = self.tool_ok("leader", &[]);
        pid.trim().parse().expect("a pid")
    }

    /// The host's file system as seen from this machine. Mind that absolute
    /// symbolic links in it lead out of it.
    #[track_caller]
    pub fn root(&self) -> PathBuf {
        format!("/proc/{}/root", self.leader()).into()
    }

    /// The D-Bus address of its system bus, from this machine.
    #[track_caller]
    pub fn system_bus(&self) -> String {
        format!("unix:path={}/run/dbus/system_bus_socket", self.root().display())
    }

    /// Makes Podman start containers without the limits that this machine's
    /// missing cgroup controllers cannot enforce (memory, cpu, pids). Podman
    /// keeps showing them.
    #[track_caller]
    pub fn ignore_limits(&self) {
        self.write(
            "/etc/containers/containers.conf.d/20-ignore-limits.conf",
            "[engine]\nruntime = \"crun-nolimits\"\n",
        );
    }

    /// Moves a tag in the host's registry: `host.retag("svc:2.0", "svc:latest")`.
    /// Starts the registry if need be.
    #[track_caller]
    pub fn retag(&self, from: &str, to: &str) {
        self.start_registry();
        self.ok(&format!(
            "skopeo copy -q --src-tls-verify=false --dest-tls-verify=false \
             docker://localhost:5000/{from} docker://localhost:5000/{to}"
        ));
    }

    /// Starts the registry on `localhost:5000` and waits until it answers.
    #[track_caller]
    pub fn start_registry(&self) {
        self.ok("systemctl start docker-registry");
        self.wait_for(10, "curl -fsS localhost:5000/v2/");
    }

    /// Keeps the journal and some state under `failed/` in the test directory.
    pub fn save(&self) -> PathBuf {
        self.tool_ok("save", &[]).trim().into()
    }

    #[track_caller]
    fn up(&self, nspawn: &[&str]) {
        let done = Done::from(output(self.boot_command(nspawn)));
        self.must(true, "boot", done);
    }

    fn boot_command(&self, nspawn: &[&str]) -> Command {
        let mut command = tool(&["boot", &self.name]);
        // A later run destroys hosts whose test process is gone.
        let owner = std::process::id().to_string();
        command.args(nspawn).env("HOLDFAST_TEST_OWNER", owner);
        command
    }

    #[track_caller]
    fn run(&self, how: &[&str], seconds: u32, script: &str) -> Done {
        let seconds = seconds.to_string();
        let limit = ["timeout", "--kill-after=5", &seconds, "bash", "-c", script];
        Done::from(output(tool(&[how, &limit].concat())))
    }

    /// Runs a command inside that reads what `write` gives it.
    #[track_caller]
    fn feed(&self, command: &[&str], write: impl FnOnce(&mut std::process::ChildStdin) -> std::io::Result<()>) {
        let mut child = tool(&[&["exec", self.name.as_str(), "--"], command].concat())
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("start tests/host/host");
        let written = write(&mut child.stdin.take().expect("stdin is piped"));
        let done = Done::from(child.wait_with_output().expect("wait for tests/host/host"));
        self.must(true, &command.join(" "), done);
        written.expect("write to the host");
    }

    #[track_caller]
    fn tool_ok(&self, command: &str, args: &[&str]) -> String {
        let done = Done::from(output(tool(&[&[command, self.name.as_str()], args].concat())));
        self.must(true, command, done).stdout
    }

    #[track_caller]
    fn must(&self, succeed: bool, what: &str, done: Done) -> Done {
        if done.success() != succeed || (!succeed && done.status >= 124) {
            let should = if succeed { "failed" } else { "did not fail as it should" };
            panic!("{}: this {should}: {what}\n{}", self.name, done.describe());
        }
        done
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        let name = &self.name;
        if std::thread::panicking() {
            // No helper that panics in here: it would abort the process.
            let host = host_tool();
            let saved = Done::from(output(tool(&["save", name])));
            let saved = saved.stdout.trim();
            eprintln!("{name}: its journal: journalctl -D {saved}/journal\n{name}: and {saved}/state.txt, console.log");
            if std::env::var_os("HOLDFAST_KEEP").is_some_and(|keep| keep == "1") {
                let _ = fs::remove_file(test_dir().join("hosts").join(name).join("owner"));
                eprintln!("{name}: kept: {} exec {name} -- bash -i", host.display());
                eprintln!("{name}: when done: {} destroy {name}", host.display());
                return;
            }
        }
        let done = Done::from(output(tool(&["destroy", name])));
        if !done.success() || !done.stderr.is_empty() {
            eprintln!("{name}: destroy: {}", done.describe());
        }
    }
}

/// A stable text of what must not change under things that are not ours: for
/// each container its ID, image, start and state, for each path its inode,
/// owner, mode, times and content (directories with all below them). Take one
/// before and one after, and `assert_eq!` them. What does not exist is said so.
#[track_caller]
pub fn foreign_snapshot(host: &Host, containers: &[&str], paths: &[&str]) -> String {
    const SCRIPT: &str = r#"
        while [[ $1 != -- ]]; do
            podman container inspect --format \
                'container {{.Name}} ID={{.Id}} ImageID={{.Image}} StartedAt={{.State.StartedAt.UnixNano}} Status={{.State.Status}} Restarts={{.RestartCount}}' \
                "$1" 2>/dev/null || echo "container $1 does not exist"
            shift
        done
        shift
        for path; do
            [[ -e $path || -L $path ]] || { echo "path $path does not exist"; continue; }
            find "$path" -print0 | LC_ALL=C sort -z | while IFS= read -rd '' item; do
                sum=; [[ ! -f $item || -L $item ]] || { sum=$(sha256sum <"$item"); sum=" sha256=${sum%% *}"; }
                [[ ! -L $item ]] || sum=" link=$(readlink "$item")"
                stat --printf 'path %n inode=%i type=%F owner=%u:%g mode=%a mtime=%y size=%s' "$item"
                echo "$sum"
            done
        done"#;
    let exec = ["exec", host.name(), "--", "bash", "-c", SCRIPT, "-"];
    let args = [&exec[..], containers, &["--"], paths].concat();
    let done = Done::from(output(tool(&args)));
    host.must(true, "foreign_snapshot", done).stdout
}

/// The root of the workspace that this crate is part of.
pub fn workspace() -> PathBuf {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR"));
    tests.parent().expect("tests/ is in the workspace").to_owned()
}

/// Where hosts and all that belongs to them are kept.
pub fn test_dir() -> PathBuf {
    match std::env::var_os("HOLDFAST_TEST_DIR") {
        Some(dir) if !dir.is_empty() => dir.into(),
        _ => "/var/tmp/holdfast-tests".into(),
    }
}

/// Runs a command of this machine on the hosts' network, where every host has
/// its [`Host::addr`]: `on_network(&["curl", "-fsS", &url])`. Only while at
/// least one host exists.
pub fn on_network(command: &[&str]) -> Done {
    Done::from(output(tool(&[&["net", "--"], command].concat())))
}

fn host_tool() -> PathBuf {
    workspace().join("tests/host/host")
}

fn tool(args: &[impl AsRef<OsStr>]) -> Command {
    let mut command = Command::new(host_tool());
    command.args(args);
    command
}

fn output(mut command: Command) -> Output {
    command.stdin(Stdio::null()).output().unwrap_or_else(|error| panic!("start {:?}: {error}", command.get_program()))
}

/// Once per process: the machine has what hosts need, and hosts that an earlier
/// process left are gone.
fn set_up() {
    static DONE: OnceLock<()> = OnceLock::new();
    DONE.get_or_init(|| {
        let setup = workspace().join("tests/host/setup");
        let status = Command::new(&setup).stdin(Stdio::null()).stdout(Stdio::null()).status();
        let status = status.unwrap_or_else(|error| panic!("start {}: {error}", setup.display()));
        assert!(status.success(), "{}: {status}", setup.display());
        output(tool(&["sweep"]));
    });
}

struct InstallTree {
    root: PathBuf,
    /// To be held shared while the tree is read, if it is ours.
    lock: Option<PathBuf>,
}

/// What `make install` installs, made once per process.
fn install_tree() -> &'static InstallTree {
    static TREE: OnceLock<InstallTree> = OnceLock::new();
    TREE.get_or_init(|| {
        if let Some(tree) = std::env::var_os("HOLDFAST_INSTALL_TREE").filter(|t| !t.is_empty()) {
            let root = PathBuf::from(tree);
            assert!(root.is_dir(), "HOLDFAST_INSTALL_TREE: {} is no directory", root.display());
            return InstallTree { root, lock: None };
        }
        let base = test_dir().join("install");
        fs::create_dir_all(&base).expect("make the install directory");
        // One tree per checkout.
        let key = workspace().display().to_string().replace('/', "-");
        let root = base.join(key.trim_start_matches('-'));
        let path = root.with_extension("lock");
        let lock = File::create(&path).expect("make the install lock");
        lock.lock().expect("lock the install tree");
        let _ = fs::remove_dir_all(&root);
        let mut make = Command::new("make");
        make.arg("--directory")
            .arg(workspace())
            .args(["--no-print-directory", "install", "PREFIX=/usr"])
            .arg(format!("DESTDIR={}", root.display()))
            .env_remove("MAKEFLAGS")
            .env_remove("MFLAGS")
            .env_remove("MAKELEVEL")
            .env_remove("LD_LIBRARY_PATH");
        // What cargo tells a test about this crate would have others built anew.
        for (name, _) in std::env::vars_os() {
            let name = name.to_string_lossy();
            let ours = ["CARGO_PKG_", "CARGO_MANIFEST_", "CARGO_BIN_EXE_", "CARGO_PRIMARY_", "CARGO_CRATE_"];
            if ours.iter().any(|prefix| name.starts_with(prefix)) {
                make.env_remove(&*name);
            }
        }
        let done = Done::from(output(make));
        assert!(done.success() && root.is_dir(), "make install: {}", done.describe());
        InstallTree { root, lock: Some(path) }
    })
}

/// All of a reader as text, for the streams of a [`Host::spawn`]ed child.
pub fn read_all(reader: &mut impl Read) -> String {
    let mut text = Vec::new();
    reader.read_to_end(&mut text).expect("read");
    String::from_utf8_lossy(&text).into_owned()
}
