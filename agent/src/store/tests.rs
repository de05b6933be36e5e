use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::PathBuf;

use holdfast_core::ledger::{Entry, Ledger, ModuleEntry};
use holdfast_core::name::ModuleName;
use holdfast_core::resource::{Kind, ResourceKey};

use super::{CutOff, Store, StoreError, Written};
use crate::apply::Busy;
use crate::error::AgentError;
use crate::execute::files::tests::Mounted;

struct Place {
    root: tempfile::TempDir,
}

impl Place {
    fn new() -> Self {
        Self { root: tempfile::tempdir().unwrap() }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    fn open(&self) -> Store {
        Store::open(&self.path("state"), &self.path("quadlets")).unwrap()
    }

    fn text(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }
}

fn name(text: &str) -> ModuleName {
    ModuleName::new(text).unwrap()
}

fn entry(unit: &str) -> ModuleEntry {
    let entry = Entry { unit: Some(unit.to_owned()), ..Entry::default() };
    ModuleEntry { operator_hold: None, resources: BTreeMap::from([(ResourceKey::new(Kind::Container, "web"), entry)]) }
}

fn ledger() -> Ledger {
    Ledger { modules: BTreeMap::from([(name("web"), entry("web.service").into())]), ..Ledger::default() }
}

/// All of it needs root: the files are root's.
fn is_root() -> bool {
    let root = rustix::process::geteuid().is_root();
    if !root {
        eprintln!("not tested: the store needs root");
    }
    root
}

#[test]
fn a_new_place_is_made_for_root_only() {
    if !is_root() {
        return;
    }
    let place = Place::new();
    let store = place.open();
    assert_eq!(fs::metadata(place.path("state")).unwrap().mode() & 0o7777, 0o700);
    assert_eq!(store.repaired, Vec::<String>::new());
    assert_eq!(store.read().unwrap(), Ledger::default());

    fs::set_permissions(place.path("state"), fs::Permissions::from_mode(0o755)).unwrap();
    let repaired = place.open().repaired;
    assert!(repaired.len() == 1 && repaired.iter().all(|said| said.contains("0755")), "{repaired:?}");
    assert_eq!(fs::metadata(place.path("state")).unwrap().mode() & 0o7777, 0o700);
}

#[test]
fn what_is_written_is_read_and_not_written_twice() {
    if !is_root() {
        return;
    }
    let place = Place::new();
    let store = place.open();
    assert_eq!(store.write(&ledger()).unwrap(), Written::Yes);
    let before = fs::metadata(place.path("state/ledger.json")).unwrap();
    assert_eq!(before.mode() & 0o7777, 0o600);
    assert_eq!(store.write(&ledger()).unwrap(), Written::Same);
    assert_eq!(fs::metadata(place.path("state/ledger.json")).unwrap().ino(), before.ino(), "the same file");
    assert_eq!(store.read().unwrap(), ledger());
    assert_eq!(store.write(&Ledger::default()).unwrap(), Written::Yes);
    assert_eq!(store.read().unwrap(), Ledger::default());
}

#[test]
fn a_lost_ledger_is_gathered_from_the_copies() {
    if !is_root() {
        return;
    }
    let place = Place::new();
    let store = place.open();
    store.write(&ledger()).unwrap();
    assert_eq!(store.write_module_copy(&name("web"), &entry("web.service")).unwrap(), Written::Yes);
    assert_eq!(store.write_module_copy(&name("web"), &entry("web.service")).unwrap(), Written::Same);
    fs::create_dir_all(place.path("quadlets/without-a-copy")).unwrap();
    fs::create_dir_all(place.path("quadlets/No Module")).unwrap();
    fs::write(place.path("quadlets/No Module/.holdfast.json"), "{").unwrap();
    fs::remove_dir_all(place.path("state")).unwrap();
    assert_eq!(place.open().read().unwrap(), ledger());
}

#[test]
fn the_copy_goes_with_the_folder_when_nothing_is_left() {
    if !is_root() {
        return;
    }
    let place = Place::new();
    let store = place.open();
    store.write_module_copy(&name("web"), &entry("web.service")).unwrap();
    fs::write(place.path("quadlets/web/theirs.container"), "").unwrap();
    assert_eq!(store.write_module_copy(&name("web"), &ModuleEntry::default()).unwrap(), Written::Yes);
    assert!(!place.path("quadlets/web/.holdfast.json").exists());
    assert!(place.path("quadlets/web/theirs.container").exists(), "a folder that holds something stays");

    store.write_module_copy(&name("web"), &entry("web.service")).unwrap();
    fs::remove_file(place.path("quadlets/web/theirs.container")).unwrap();
    store.write_module_copy(&name("web"), &ModuleEntry::default()).unwrap();
    assert!(!place.path("quadlets/web").exists());
    assert!(place.path("quadlets").exists());
    assert_eq!(store.write_module_copy(&name("web"), &ModuleEntry::default()).unwrap(), Written::Same);
}

#[test]
fn what_cannot_be_understood_is_refused_with_a_way_out() {
    if !is_root() {
        return;
    }
    let place = Place::new();
    let store = place.open();
    let file = place.path("state/ledger.json");
    let shown = file.display();
    for (text, start) in [
        ("", format!("{shown}, line 1, column 0: EOF")),
        ("{\n  \"schema\": 1,\n", format!("{shown}, line 3, column 0: EOF")),
        (
            "{\"schema\": 1, \"modules\": {}, \"holds\": {}, \"more\": 1}",
            format!("{shown}, line 1, column 48: unknown field"),
        ),
        (
            "{\"schema\": 1, \"modules\": {\"No Name\": {}}, \"holds\": {}}",
            format!("{shown}, line 1, column 35: \"No Name\" is no module name"),
        ),
        ("{\"schema\": 2, \"news\": []}", format!("{shown} has schema 2; this holdfast knows 1 only")),
    ] {
        fs::write(&file, text).unwrap();
        let error = store.read().unwrap_err();
        assert!(error.to_string().starts_with(&start), "{text}: {error}");
        assert!(error.to_string().contains("Hint: "), "{error}");
        assert_eq!(fs::read_to_string(&file).unwrap(), text, "it is left as it is");
    }
}

#[test]
fn a_broken_copy_is_not_guessed_either() {
    if !is_root() {
        return;
    }
    let place = Place::new();
    let store = place.open();
    store.write_module_copy(&name("web"), &entry("web.service")).unwrap();
    fs::create_dir(place.path("quadlets/other")).unwrap();
    fs::copy(place.path("quadlets/web/.holdfast.json"), place.path("quadlets/other/.holdfast.json")).unwrap();
    let error = store.read().unwrap_err().to_string();
    assert!(error.contains("quadlets/other/.holdfast.json") && error.contains("the copy of web"), "{error}");
    fs::write(place.path("quadlets/other/.holdfast.json"), "{").unwrap();
    let error = store.read().unwrap_err();
    assert!(matches!(&error, StoreError::Corrupt { path, .. } if path.ends_with("other/.holdfast.json")), "{error}");
}

#[tokio::test]
async fn one_lock_at_a_time() {
    if !is_root() {
        return;
    }
    let place = Place::new();
    let (one, other) = (place.open(), place.open());
    let lock = one.lock(Busy::Refuse).await.unwrap();
    match other.lock(Busy::Refuse).await {
        Err(AgentError::Busy { pid, since }) => {
            assert_eq!(pid, std::process::id());
            assert!(since.starts_with("20") && since.ends_with('Z'), "{since}");
        }
        other => panic!("{other:?}"),
    }
    let waiter = tokio::spawn(async move { other.lock(Busy::Wait).await.map(drop) });
    tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    assert!(!waiter.is_finished());
    drop(lock);
    waiter.await.unwrap().unwrap();
    one.lock(Busy::Refuse).await.unwrap();
    assert!(place.text("state/lock").starts_with(&format!("{}\n", std::process::id())));
}

#[tokio::test]
async fn a_run_that_was_cut_off_is_known_to_the_next() {
    if !is_root() {
        return;
    }
    let place = Place::new();
    let mut lock = place.open().lock(Busy::Refuse).await.unwrap();
    assert_eq!(lock.cut_off, None);
    lock.note("0123", "apply").unwrap();
    drop(lock);
    // It stays known until the next one has told it, which is when that one notes its own.
    drop(place.open().lock(Busy::Refuse).await.unwrap());
    let mut lock = place.open().lock(Busy::Refuse).await.unwrap();
    assert_eq!(lock.cut_off, Some(CutOff { report: "0123".to_owned(), action: "apply".to_owned() }));
    lock.note("4567", "apply").unwrap();
    lock.clear().unwrap();
    drop(lock);
    assert_eq!(place.open().lock(Busy::Refuse).await.unwrap().cut_off, None);
}

#[test]
fn a_full_disk_leaves_the_old_ledger_whole() {
    if !is_root() {
        return;
    }
    let place = Place::new();
    fs::create_dir(place.path("state")).unwrap();
    let Some(disk) = Mounted::tmpfs(&place.path("state"), "16k") else { return };
    let store = place.open();
    store.write(&ledger()).unwrap();
    let mut big = ledger();
    for number in 0..200 {
        big.modules.insert(name(&format!("m{number}")), entry(&"u".repeat(200)).into());
    }
    let error = store.write(&big).unwrap_err();
    assert!(matches!(&error, StoreError::File(file) if file.errno() == Some(28)), "{error}");
    assert_eq!(store.read().unwrap(), ledger());
    let names: Vec<_> = fs::read_dir(place.path("state")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names, ["ledger.json"]);

    disk.read_only();
    let error = store.write(&Ledger::default()).unwrap_err();
    assert!(matches!(&error, StoreError::File(file) if file.errno() == Some(30)), "{error}");
    assert_eq!(store.write(&ledger()).unwrap(), Written::Same, "what is the same needs no writing");
    assert_eq!(store.read().unwrap(), ledger());
}
