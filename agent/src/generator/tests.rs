use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use holdfast_core::generated::{Generated, GeneratorMessage};
use rustix::fs::{CWD, FileType, Mode, mknodat};
use tempfile::TempDir;

use super::{BINARIES, GeneratorError, Host, Staged, messages_for};

const WEB: &str = "[Container]\nImage=localhost/app:1\n";

/// A stand-in: prints each `.container` that it finds as a unit, and writes down that it ran.
const FAKE: &str = r#"#!/bin/sh
[ "$1" = --dryrun ] || exit 9
echo "$QUADLET_UNIT_DIRS" >> ROOT/runs
[ -z "$HOME$USER" ] || exit 9
stat -c %a "${QUADLET_UNIT_DIRS%%/stage-*}"/stage-* >> ROOT/modes
IFS=:
for dir in $QUADLET_UNIT_DIRS; do
    find -L "$dir" -name '*.container' -type f | LC_ALL=C sort | while read -r file; do
        name=${file##*/}
        echo "quadlet-generator[$$]: Loading source unit file $file" >&2
        printf -- '---%s.service---\n' "${name%.container}"
        cat "$file"
        printf '\n[Unit]\nSourcePath=%s\n\n' "$file"
    done
done
"#;

/// A host with two trees, `run` and `etc`, and our folder in the second.
struct Fake {
    dir: TempDir,
}

impl Fake {
    fn new() -> Self {
        let fake = Self { dir: TempDir::new().unwrap() };
        fake.generator(FAKE);
        fake.write("etc/foreign.container", WEB);
        fake
    }

    fn path(&self, path: &str) -> PathBuf {
        self.dir.path().join(path)
    }

    fn write(&self, path: &str, content: &str) {
        let path = self.path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    fn generator(&self, script: &str) {
        let path = self.path("generator");
        // A new file each time: one that just ran may still be busy.
        fs::write(self.path("generator.new"), script.replace("ROOT", &self.dir.path().display().to_string())).unwrap();
        fs::set_permissions(self.path("generator.new"), fs::Permissions::from_mode(0o755)).unwrap();
        fs::rename(self.path("generator.new"), path).unwrap();
    }

    fn runs(&self) -> usize {
        fs::read_to_string(self.path("runs")).unwrap_or_default().lines().count()
    }

    async fn run_with(
        &self, binary: PathBuf, staged: &[Staged], deadline: Duration,
    ) -> Result<Generated, GeneratorError> {
        let host = Host {
            roots: vec![self.path("run"), self.path("etc"), self.path("absent")],
            binaries: vec![self.path("nothing"), binary],
            quadlet_dir: &self.path("etc/holdfast"),
            run_dir: &self.path("hf/run"),
            deadline,
        };
        host.generate(staged).await
    }

    async fn run(&self, staged: &[Staged]) -> Generated {
        self.run_with(self.path("generator"), staged, Duration::from_secs(30)).await.unwrap()
    }

    /// The sources of the units, below the host's root.
    async fn sources(&self, staged: &[Staged]) -> Vec<String> {
        let root = format!("{}/", self.dir.path().display());
        let source = |source: &str| source.strip_prefix(&root).unwrap_or(source).to_owned();
        self.run(staged).await.units.iter().map(|unit| source(&unit.source)).collect()
    }

    fn left(&self) -> Vec<String> {
        let entries = fs::read_dir(self.path("hf/run")).unwrap();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }
}

fn staged(module: &str, files: &[(&str, &str)]) -> Staged {
    let installed = ["web.container", "dropped.container"].map(str::to_owned).into();
    let files = files.iter().map(|(path, text)| ((*path).to_owned(), text.as_bytes().to_vec())).collect();
    Staged { module: module.to_owned(), files, installed }
}

#[tokio::test]
async fn wanted_files_stand_where_installed_ones_were() {
    let fake = Fake::new();
    fake.write("run/early.container", WEB);
    fake.write("etc/users/1000/theirs.container", WEB);
    fake.write("etc/holdfast/web/web.container", "[Container]\nImage=old\n");
    fake.write("etc/holdfast/web/dropped.container", WEB);
    fake.write("etc/holdfast/web/by-hand.container", WEB);
    fake.write("etc/holdfast/vanished/kept.container", WEB);
    let wanted = staged("web", &[("web.container", "[Container]\nImage=new\n"), ("conf/web.env", "A=1\n")]);
    let generated = fake.run(std::slice::from_ref(&wanted)).await;
    let texts: BTreeMap<&str, &str> =
        generated.units.iter().map(|unit| (unit.name.as_str(), unit.text.as_str())).collect();
    assert_eq!(
        texts.keys().copied().collect::<Vec<_>>(),
        ["by-hand.service", "early.service", "foreign.service", "kept.service", "web.service"]
    );
    assert!(texts["web.service"].starts_with("[Container]\nImage=new\n"), "{}", texts["web.service"]);
    let sources = fake.sources(&[wanted]).await;
    assert_eq!(
        sources,
        [
            "run/early.container",
            "etc/foreign.container",
            "etc/holdfast/vanished/kept.container",
            "etc/holdfast/web/by-hand.container",
            "etc/holdfast/web/web.container"
        ]
    );
    assert_eq!(fake.left(), ["generator.json"]);
    assert_eq!(fs::read_to_string(fake.path("modes")).unwrap(), "700\n");
    assert_eq!(fs::metadata(fake.path("hf/run/generator.json")).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(fs::read_to_string(fake.path("etc/holdfast/web/web.container")).unwrap(), "[Container]\nImage=old\n");
}

#[tokio::test]
async fn a_fresh_host_has_no_quadlet_directory() {
    let fake = Fake::new();
    fs::remove_dir_all(fake.path("etc")).unwrap();
    assert_eq!(fake.sources(&[staged("web", &[("web.container", WEB)])]).await, ["etc/holdfast/web/web.container"]);
    assert!(!fake.path("etc").exists());
    assert_eq!(fake.sources(&[]).await, [] as [&str; 0]);
}

#[tokio::test]
async fn nothing_is_staged_through_a_link() {
    let fake = Fake::new();
    fake.write("elsewhere/web/web.container", "[Container]\nImage=old\n");
    symlink(fake.path("elsewhere"), fake.path("etc/holdfast")).unwrap();
    let wanted = [staged("web", &[("web.container", "[Container]\nImage=new\n")])];
    assert_eq!(fake.sources(&wanted).await, ["etc/foreign.container", "etc/holdfast/web/web.container"]);
    let real = fs::read_to_string(fake.path("elsewhere/web/web.container")).unwrap();
    assert_eq!(real, "[Container]\nImage=old\n");
}

#[tokio::test]
async fn links_lead_where_they_led() {
    let fake = Fake::new();
    fake.write("outside/x.container", WEB);
    fake.write("outside/deep/z.container", WEB);
    symlink("../outside/x.container", fake.path("etc/x.container")).unwrap();
    symlink("foreign.container", fake.path("etc/y.container")).unwrap();
    symlink(fake.path("outside/deep"), fake.path("etc/deep")).unwrap();
    symlink("/nowhere", fake.path("etc/gone.container")).unwrap();
    let names = ["etc/deep/z.container", "etc/foreign.container", "etc/x.container", "etc/y.container"];
    assert_eq!(fake.sources(&[]).await, names);
    assert_eq!(fake.runs(), 1);
    for (path, content) in [("outside/x.container", "[Container]\n"), ("outside/deep/z.container", "[Container]\n")] {
        let before = fake.runs();
        fake.write(path, content);
        fake.run(&[]).await;
        assert_eq!(fake.runs(), before + 1, "{path}");
    }
}

#[tokio::test]
async fn it_runs_only_when_something_changed() {
    let fake = Fake::new();
    fake.write("etc/large.bin", "");
    let large = fs::File::options().write(true).open(fake.path("etc/large.bin")).unwrap();
    large.set_len(2 << 20).unwrap();
    let web = |image: &str| [staged("web", &[("web.container", format!("[Container]\nImage={image}\n").as_str())])];
    let first = fake.run(&web("a")).await;
    assert_eq!(fake.run(&web("a")).await, first);
    assert_eq!(fake.runs(), 1);
    // What does not change the answer: the ledger's part beside the files of a module, and replaced files.
    fake.write("etc/holdfast/other/.holdfast.json", "{}");
    fake.run(&web("a")).await;
    let before = fake.runs();
    fake.write("etc/holdfast/other/.holdfast.json", "{\"a\": 1}");
    fake.write("etc/holdfast/web/web.container", "[Container]\n");
    fake.run(&web("a")).await;
    assert_eq!(fake.runs(), before);

    let cache = fake.path("hf/run/generator.json");
    let changes: [(&str, &dyn Fn()); 8] = [
        ("a foreign file", &|| fake.write("etc/foreign.container", "[Container]\nImage=other\n")),
        ("a new file", &|| fake.write("etc/sub/new.volume", "[Volume]\n")),
        ("a removed file", &|| fs::remove_file(fake.path("etc/sub/new.volume")).unwrap()),
        ("a renamed directory", &|| fs::rename(fake.path("etc/sub"), fake.path("etc/bus")).unwrap()),
        ("a large file", &|| large.set_len(3 << 20).unwrap()),
        ("a corrupt cache", &|| fs::write(&cache, "{\"version\":").unwrap()),
        ("an older cache", &|| {
            let text = fs::read_to_string(&cache).unwrap();
            fs::write(&cache, text.replacen("\"version\":1", "\"version\":0", 1)).unwrap();
        }),
        ("another generator", &|| fake.generator(&format!("{FAKE}# newer\n"))),
    ];
    for (what, change) in changes {
        let before = fake.runs();
        change();
        fake.run(&web("a")).await;
        assert_eq!(fake.runs(), before + 1, "{what}");
        fake.run(&web("a")).await;
        assert_eq!(fake.runs(), before + 1, "{what}, again");
    }
    let before = fake.runs();
    fake.run(&web("b")).await;
    assert_eq!(fake.runs(), before + 1);
}

#[tokio::test]
async fn a_fifo_blocks_nobody() {
    let fake = Fake::new();
    mknodat(CWD, fake.path("etc/pipe.container"), FileType::Fifo, Mode::from(0o644), 0).unwrap();
    symlink("pipe.container", fake.path("etc/link.container")).unwrap();
    let generated = fake.run(&[]).await;
    assert_eq!(generated.units.len(), 1);
    let files: Vec<_> = generated.messages.iter().filter_map(|message| message.file.clone()).collect();
    let path = |name: &str| fake.path(name).display().to_string();
    assert_eq!(files, [path("etc/link.container"), path("etc/pipe.container")]);
}

#[tokio::test]
async fn a_generator_that_does_not_end_is_killed() {
    let fake = Fake::new();
    fake.generator("#!/bin/sh\necho $$ > ROOT/pid\nexec sleep 600\n");
    let error = fake.run_with(fake.path("generator"), &[], Duration::from_millis(500)).await.unwrap_err();
    assert!(matches!(error, GeneratorError::Deadline { path: _, seconds: _ }), "{error}");
    assert_eq!(fake.left(), [] as [&str; 0]);
    let pid = fs::read_to_string(fake.path("pid")).unwrap();
    let process = Path::new("/proc").join(pid.trim());
    let start = Instant::now();
    let ended = || match fs::read_to_string(process.join("stat")) {
        Ok(stat) => stat.contains(") Z "),
        Err(_) => true,
    };
    while !ended() {
        assert!(start.elapsed() < Duration::from_secs(10), "{} still runs", process.display());
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn what_is_no_answer_is_an_error() {
    let fake = Fake::new();
    let absent = fake.run_with(fake.path("none"), &[], Duration::from_secs(30)).await.unwrap_err();
    assert!(matches!(absent, GeneratorError::Absent));
    assert_eq!(absent.to_string(), "Podman's generator is not installed");
    for script in ["#!/bin/sh\necho broken >&2\nexit 3\n", "#!/bin/sh\nexit 1\n", "#!/bin/sh\nkill -9 $$\n"] {
        fake.generator(script);
        let error = fake.run_with(fake.path("generator"), &[], Duration::from_secs(30)).await.unwrap_err();
        assert!(matches!(error, GeneratorError::Failed { path: _, status: _, output: _ }), "{script}: {error}");
        assert_eq!(fake.left(), [] as [&str; 0], "{script}");
    }
    fake.generator("#!/bin/sh\necho 'quadlet-generator[1]: converting \"a.container\": no Image' >&2\nexit 1\n");
    assert_eq!(fake.run(&[]).await.messages.len(), 1);
    for (module, file) in [("web", "../x.container"), ("..", "x"), ("a/b", "x"), ("web", "/etc/x"), ("web", "")] {
        let wanted = [staged(module, &[(file, "")])];
        let answer = fake.run_with(fake.path("generator"), &wanted, Duration::from_secs(30)).await;
        assert!(matches!(answer, Err(GeneratorError::Name(_))), "{module} {file}");
    }
}

#[tokio::test]
async fn what_a_killed_process_left_is_removed() {
    let fake = Fake::new();
    fake.write("hf/run/stage-4999999-0/etc/x", "");
    fake.write("hf/run/stage-notes/x", "");
    fake.write(&format!("hf/run/stage-{}-0/x", std::process::id()), "");
    fake.run(&[]).await;
    let mut left = fake.left();
    left.sort();
    assert_eq!(left, ["generator.json", &format!("stage-{}-0", std::process::id()), "stage-notes"]);
}

#[test]
fn messages_for_a_file() {
    let message = |file: &str, text: &str| GeneratorMessage { file: Some(file.to_owned()), text: text.to_owned() };
    let generated = Generated {
        units: vec![],
        messages: vec![
            message("/e/h/web/a-b.container", "Warning: short name"),
            message("/e/h/web/bad.container", "error loading it"),
            message("/e/h/web/other.container", "converting it"),
            message("/e/a-.container.d/10.conf", "error loading it"),
            message("/e/x.container.d/10.conf", "error loading it"),
            message("/e/container.d/10.conf", "error loading it"),
            message("/e/h/bad.container", "error loading it"),
        ],
    };
    let files: Vec<_> = messages_for(&generated, "/e/h/web/a-b.container")
        .into_iter()
        .filter_map(|message| message.file.as_deref())
        .collect();
    assert_eq!(
        files,
        ["/e/h/web/a-b.container", "/e/h/web/bad.container", "/e/a-.container.d/10.conf", "/e/container.d/10.conf"]
    );
}

/// Podman's own generator, where it is installed or `HOLDFAST_TEST_GENERATOR` names one; else nothing is tested.
fn podmans_own() -> Option<PathBuf> {
    let named = std::env::var_os("HOLDFAST_TEST_GENERATOR").map(PathBuf::from);
    let found = named.into_iter().chain(BINARIES.map(PathBuf::from)).find(|path| path.exists());
    if found.is_none() {
        eprintln!("skipped: Podman's generator is not installed");
    }
    found
}

#[tokio::test]
async fn podmans_own_generator_is_understood() {
    let Some(binary) = podmans_own() else { return };
    let fake = Fake::new();
    fake.write("etc/broken/x.container", "[Container]\nImage=a\nnonsense\n");
    fake.write("etc/broken/y.container", WEB);
    fake.write("etc/web.container.d/10.conf", "nonsense\n");
    let wanted = [staged(
        "web",
        &[
            ("web.container", "[Container]\nImage=localhost/app:1\nVolume=./conf:/conf:ro\n[Unit]\nSourcePath=/no\n"),
            ("bad.container", "[Container]\nImage=localhost/a\nBogus=1\n"),
            ("net.container", "[Container]\nImage=localhost/a\nNetwork=int.network\n"),
        ],
    )];
    let generated = fake.run_with(binary, &wanted, Duration::from_secs(30)).await.unwrap();
    let at = |path: &str| fake.path(path).display().to_string();
    let seen: Vec<_> = generated.units.iter().map(|unit| (unit.name.as_str(), unit.source.clone())).collect();
    let web = at("etc/holdfast/web/web.container");
    let expected = [("foreign.service", at("etc/foreign.container")), ("web.service", web.clone())];
    assert_eq!(seen, expected);
    let text = &generated.of_source(&web).next().unwrap().text;
    assert!(text.contains(&format!("-v {}:/conf:ro", at("etc/holdfast/web/conf"))), "{text}");
    let about = |path: &str| -> String {
        messages_for(&generated, &at(path)).iter().map(|message| message.text.as_str()).collect()
    };
    assert!(about("etc/holdfast/web/bad.container").contains("'Bogus'"));
    assert!(about("etc/holdfast/web/net.container").contains("int.network"));
    assert!(about("etc/holdfast/web/web.container").contains("10.conf"));
    assert!(about("etc/broken/y.container").contains("line 3"));
    assert!(about("etc/foreign.container").is_empty());
    assert!(!format!("{generated:?}").contains("stage-"), "{generated:?}");
}

/// The merged text of a module's file is to Podman what the file and its drop-in folders were.
#[tokio::test]
async fn dropins_are_merged_as_podman_merges_them() {
    let Some(binary) = podmans_own() else { return };
    let fake = Fake::new();
    let dropins = [
        "a-b.container.d/20.conf",
        "a-.container.d/20.conf",
        "a-.container.d/10.conf",
        "a-.container.d/15.conf",
        "sub/a-b.container.d/10.conf",
        "sub/a-b.container.d/05.conf",
        "a-@.container.d/15.conf",
        "a-x@.container.d/10.conf",
        "a-x@.container.d/16.conf",
        "aa/a-x@.container.d/16.conf",
        "a-x@1-2.container.d/10.conf",
    ];
    for dropin in dropins {
        fake.write(&format!("web/{dropin}"), &format!("[Container]\nLabel=from={dropin}\nEnvironment=A={dropin} \\\n"));
    }
    for file in ["a-b.container", "a-x@.container", "sub/deep/a-c-d.container"] {
        fake.write(&format!("web/{file}"), "[Container]\nImage=localhost/a\nExec=sh -c \\\n  true \\");
    }
    symlink("a-x@.container", fake.path("web/a-x@1-2.container")).unwrap();
    let files = crate::source::read_one(&fake.path("web"), crate::source::Ownership::Any).unwrap();
    for (name, sources) in holdfast_core::module::read(files).quadlets {
        fake.write(&format!("merged/{name}"), &sources[0].text);
    }
    let mut merged = Vec::new();
    for root in ["web", "merged"] {
        let host = Host {
            roots: vec![fake.path(root)],
            binaries: vec![binary.clone()],
            quadlet_dir: &fake.path("etc/holdfast"),
            run_dir: &fake.path("hf/run"),
            deadline: Duration::from_secs(30),
        };
        let units = host.generate(&[]).await.unwrap().units.into_iter();
        // `[X-Container]` is what the generator read; blanks at the end of a value mean nothing.
        let section = |text: &str| -> Vec<String> {
            let lines = text.lines().skip_while(|line| *line != "[X-Container]").take_while(|line| !line.is_empty());
            lines.map(|line| line.trim_end().to_owned()).collect()
        };
        let sections: BTreeMap<_, _> = units.map(|unit| (unit.name, section(&unit.text))).collect();
        merged.push(sections);
    }
    assert_eq!(merged[0].keys().filter(|name| name.starts_with("a-")).count(), 4);
    assert_eq!(merged[0], merged[1]);
}
