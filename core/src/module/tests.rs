use std::collections::BTreeMap;

use super::{Content, FileEntry, Module, ModuleFiles, read};
use crate::problem::Severity;
use crate::resource::Kind;

const WEB: &str = "[Container]\nImage=localhost/app:1\n";

fn bytes(content: impl Into<Vec<u8>>) -> FileEntry {
    entry(Content::Bytes(content.into()))
}

fn entry(content: Content) -> FileEntry {
    FileEntry { content, mode: 0o644, link_to: None }
}

fn module(name: &str, files: Vec<(&str, FileEntry)>) -> Module {
    let files = files.into_iter().map(|(path, entry)| (path.to_owned(), entry)).collect();
    read(ModuleFiles { name: name.to_owned(), files, ..ModuleFiles::default() })
}

fn texts(name: &str, files: &[(&str, &str)]) -> Module {
    module(name, files.iter().map(|(path, text)| (*path, bytes(*text))).collect())
}

#[test]
fn every_file_finds_its_place() {
    let instance = FileEntry { link_to: Some("job@.container".to_owned()), ..bytes(WEB) };
    let module = module(
        "route-proxy",
        vec![
            ("web.container", bytes(WEB)),
            ("deep/.hidden.container", bytes(WEB)),
            ("deep/data.volume", bytes("[Volume]\n")),
            ("job@.container", bytes(WEB)),
            ("job@a.container", instance),
            ("web.env", bytes("A=1\n")),
            ("sweep.timer", bytes("\u{feff}[Timer]\nOnCalendar=daily\n")),
            ("sweep.timer.d/10.conf", bytes("[Timer]\nPersistent=yes\n")),
            ("files/etc/web/web.conf", FileEntry { mode: 0o4755, ..bytes("x") }),
            ("tmpfiles.d/web.conf", bytes("d /srv/web 0750 - - -\nd /run/web\n")),
            ("module.toml", bytes("version = \"1\"\n")),
            ("README.md", bytes("text")),
            (".git", entry(Content::Special("directory"))),
            ("next.container.j2", bytes("{{")),
        ],
    );
    assert_eq!(module.problems, []);
    let quadlets: Vec<&str> = module.quadlets.keys().map(String::as_str).collect();
    assert_eq!(quadlets, [".hidden.container", "data.volume", "job@.container", "job@a.container", "web.container"]);
    assert_eq!(module.quadlets["data.volume"][0].kind, Kind::Volume);
    assert_eq!(module.quadlets["data.volume"][0].file, "deep/data.volume");
    assert_eq!(module.quadlets["job@a.container"][0].text, WEB);
    assert_eq!(module.units["sweep.timer"].text, "[Timer]\nOnCalendar=daily\n");
    assert_eq!(module.units["sweep.timer"].dropins["10.conf"], "[Timer]\nPersistent=yes\n");
    let (path, file) = module.files.first_key_value().unwrap();
    assert_eq!((path.as_str(), file.mode, file.content.as_slice()), ("/etc/web/web.conf", 0o755, b"x".as_slice()));
    assert_eq!(module.declared.len(), 2);
    assert_eq!(module.runtime_lines, "d /run/web\n");
    assert_eq!(module.manifest.version.as_deref(), Some("1"));
    assert_eq!(module.assets.keys().collect::<Vec<_>>(), ["web.env"]);
    assert_eq!(module.left_alone, [".git", "README.md", "next.container.j2"]);
}

#[test]
fn dropins_are_appended_in_podmans_order() {
    let module = texts(
        "web",
        &[
            ("a-b.container", "[Container]\nImage=x\nExec=run \\"),
            ("a-b.container.d/20.conf", "[Container]\nLabel=two\nUser=1 \\\n"),
            ("a-b.container.d/note.txt", "no unit file"),
            ("a-.container.d/10.conf", "[Service]\nRestart=always"),
            ("a-.container.d/20.conf", "[Container]\nLabel=hidden\n"),
        ],
    );
    let source = &module.quadlets["a-b.container"][0];
    assert_eq!(
        source.text,
        "[Container]\nImage=x\nExec=run \n[Service]\nRestart=always\n[Container]\nLabel=two\nUser=1 \n"
    );
    assert_eq!(source.own_lines, 3);
    assert_eq!(source.dropins, ["a-.container.d/10.conf", "a-b.container.d/20.conf"]);
    let seen: Vec<_> =
        source.parsed.entries.iter().map(|entry| (entry.key.as_str(), entry.value.as_str(), entry.line)).collect();
    assert_eq!(
        seen,
        [("Image", "x", 2), ("Exec", "run", 3), ("Restart", "always", 5), ("Label", "two", 7), ("User", "1", 8)]
    );
    assert_eq!(module.left_alone, ["a-b.container.d/note.txt"]);
    let shown: Vec<_> = module.problems.iter().map(|one| (one.severity, one.file.as_str())).collect();
    assert_eq!(shown, [(Severity::Warning, "a-.container.d/20.conf")]);
}

#[test]
fn an_instance_has_its_own_and_its_templates_dropins() {
    let module = texts(
        "web",
        &[
            ("x@.container", WEB),
            ("x@1.container", WEB),
            ("x@.container.d/10.conf", "[Container]\nUser=1\n"),
            ("x@1.container.d/20.conf", "[Container]\nUser=2\n"),
        ],
    );
    assert_eq!(module.quadlets["x@.container"][0].dropins, ["x@.container.d/10.conf"]);
    assert_eq!(module.quadlets["x@1.container"][0].dropins, ["x@.container.d/10.conf", "x@1.container.d/20.conf"]);
    assert_eq!(module.problems, []);
}

#[test]
fn two_files_of_one_name_are_both_kept() {
    let module = texts("web", &[("archived/web.container", WEB), ("web.container", "[Container]\nImage=new\n")]);
    let files: Vec<&str> = module.quadlets["web.container"].iter().map(|source| source.file.as_str()).collect();
    assert_eq!(files, ["archived/web.container", "web.container"]);
}

/// One bad input each: the file, its line, words of the sentence, and the severity.
#[test]
fn bad_inputs() {
    let large = Content::TooLarge { size: 50_000_000 };
    let outside = Content::LinkOutside { target: "/etc/passwd".to_owned() };
    let dangling = Content::LinkDangling { target: "gone".to_owned() };
    type Case<'a> = (&'a str, FileEntry, Option<u32>, &'a [&'a str], Severity);
    let cases: Vec<Case> = vec![
        ("x.container", bytes(format!("\u{feff}{WEB}")), Some(1), &["byte order mark"], Severity::Error),
        ("x.container", entry(dangling.clone()), None, &["link to gone", "not there"], Severity::Error),
        ("x.container", entry(outside.clone()), None, &["/etc/passwd", "outside"], Severity::Error),
        ("x.container", entry(Content::Special("FIFO")), None, &["this is a FIFO"], Severity::Error),
        ("x.container", entry(large.clone()), None, &["50000000", "1048576"], Severity::Error),
        ("x.container", bytes(*b"[Container]\nImage=\xff\n"), Some(2), &["UTF-8", "byte 19"], Severity::Error),
        ("x.container", bytes("[Container]\n{{#if wsl}}\n"), Some(2), &["{{#if wsl}}"], Severity::Error),
        ("x.container", bytes("[Container]\nExec=a \\\n# b\n"), Some(2), &["backslash"], Severity::Error),
        (".container", bytes(WEB), None, &["no name"], Severity::Error),
        ("y.container.d/1.conf", bytes("[Container]\nUser=1\n"), None, &["no y.container"], Severity::Error),
        ("container.d/1.conf", bytes("[Container]\nUser=1\n"), None, &["every unit"], Severity::Error),
        ("sub/service.d/1.conf", bytes("[Service]\n"), None, &["every unit"], Severity::Error),
        ("web.service.d/1.conf", bytes("[Service]\n"), None, &["no web.service"], Severity::Error),
        ("x.timer", bytes("nonsense\n"), Some(1), &["nonsense"], Severity::Error),
        ("files/usr/lib/x", bytes("x"), None, &["/usr/lib/x lies in /usr"], Severity::Error),
        ("files/run/x", bytes("x"), None, &["/run"], Severity::Error),
        ("files/etc/holdfast/x", bytes("x"), None, &["holdfast's own"], Severity::Error),
        ("files/etc/x", entry(outside), None, &["outside"], Severity::Error),
        ("tmpfiles.d/a.conf", bytes("\nR /srv/x\n"), Some(2), &["\"R\""], Severity::Error),
        ("module.toml", bytes("\ncolour = 1\n"), Some(2), &["colour"], Severity::Error),
        ("module.toml", entry(Content::Unreadable { error: "EIO".to_owned() }), None, &["EIO"], Severity::Error),
        ("photo.raw", entry(large), None, &["50000000", "16777216"], Severity::Warning),
        ("pipe", entry(Content::Special("FIFO")), None, &["FIFO"], Severity::Warning),
        ("current", entry(dangling), None, &["not there"], Severity::Error),
    ];
    for (path, entry, line, words, severity) in cases {
        let module = module("web", vec![(path, entry)]);
        let problem = module.problems.first().unwrap_or_else(|| panic!("{path} has no problem"));
        assert_eq!(module.problems.len(), 1, "{path}: {:?}", module.problems);
        assert_eq!((problem.file.as_str(), problem.line, problem.severity), (path, line, severity), "{problem}");
        for word in words {
            assert!(problem.message.contains(word), "{problem} lacks {word}");
        }
    }
}

#[test]
fn what_cannot_be_read_is_still_counted() {
    let fifo = || entry(Content::Special("FIFO"));
    let module = module("web", vec![("x.container", fifo()), ("y.timer", fifo()), ("files/etc/z", fifo())]);
    assert_eq!(module.quadlets["x.container"][0].text, "");
    assert_eq!(module.units["y.timer"].text, "");
    assert_eq!(module.files.len(), 1);
    assert_eq!(module.problems.len(), 3);
}

#[test]
fn a_wrong_directory_name_is_a_problem_of_the_module() {
    for name in ["Web", "web.old", "-", ""] {
        let module = texts(name, &[("x.container", WEB)]);
        assert_eq!(module.problems.len(), 1, "{name}");
        assert_eq!((module.problems[0].file.as_str(), module.problems[0].line), ("", None));
        assert!(module.problems[0].message.contains("no module name"), "{name}");
        assert_eq!(module.quadlets.len(), 1, "{name}");
    }
}

#[test]
fn a_broken_dropin_names_itself() {
    let module = texts("web", &[("x.container", WEB), ("x.container.d/1.conf", "[Container]\nbroken\n")]);
    let shown: Vec<_> = module.problems.iter().map(|one| (one.file.as_str(), one.line)).collect();
    assert_eq!(shown, [("x.container.d/1.conf", Some(2))]);
}

#[test]
fn one_path_is_asked_for_once() {
    let module = texts(
        "web",
        &[
            ("a/web.service", "[Service]\n"),
            ("b/web.service", "[Service]\n"),
            ("files/etc/web", "x"),
            ("tmpfiles.d/a.conf", "f /etc/web\nd /srv/web\n"),
            ("tmpfiles.d/b.conf", "d /srv/web\n"),
        ],
    );
    let seen: BTreeMap<&str, &str> =
        module.problems.iter().map(|one| (one.file.as_str(), one.message.as_str())).collect();
    assert_eq!(module.problems.len(), 3, "{seen:?}");
    assert!(seen["b/web.service"].contains("a/web.service"));
    assert!(seen["tmpfiles.d/a.conf"].contains("files/etc/web"));
    assert!(seen["tmpfiles.d/b.conf"].contains("tmpfiles.d/a.conf:2"));
}

#[test]
fn what_the_source_found_goes_along() {
    let files = ModuleFiles {
        name: "web".to_owned(),
        problems: vec![crate::problem::Problem::error("", None, "too many files")],
        unsafe_owner: vec!["sentence".to_owned()],
        ..ModuleFiles::default()
    };
    let module = read(files.clone());
    assert_eq!((module.problems, module.unsafe_owner), (files.problems, files.unsafe_owner));
}
