use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::symlink;

use holdfast_core::name::HostPath;
use holdfast_core::plan::Scope;

use super::{is_lost, jobs, read};
use crate::execute::systemd::Verb;

const MARKER: &[u8] =
    b"{\"schema\":1,\"holds\":[{\"module\":\"shop\",\"reason\":\"found\",\"resource\":\"container/web\",\
    \"waiting_on_take\":true}]}\n";

fn markers(names: &[&str]) -> BTreeMap<String, Vec<u8>> {
    names.iter().map(|name| ((*name).to_owned(), MARKER.to_vec())).collect()
}

#[test]
fn targets_follow_the_markers_of_the_modules_that_are_asked_for() {
    let active: BTreeSet<String> =
        ["a", "b", "c"].iter().map(|module| format!("holdfast-held@{module}.target")).collect();
    let wanted =
        markers(&["holdfast-held@a.target", "holdfast-held@d.target", "holdfast-held@e.target", "web.service"]);
    let asked = |scope: &Scope| {
        let jobs = jobs(&wanted, &active, scope).into_iter();
        jobs.map(|job| (job.verb, job.unit.replace("holdfast-held@", ""))).collect::<Vec<_>>()
    };
    let (start, stop) = (Verb::Start, Verb::Stop);
    let job = |verb, name: &str| (verb, format!("{name}.target"));
    assert_eq!(asked(&Scope::All), [job(start, "d"), job(start, "e"), job(stop, "b"), job(stop, "c")]);
    let some = Scope::of(&["a".to_owned(), "b".to_owned(), "d".to_owned()]);
    assert_eq!(asked(&some), [job(start, "d"), job(stop, "b")]);
}

#[test]
fn what_the_generator_did_not_see_is_found_out() {
    let root = tempfile::tempdir().unwrap();
    let late = root.path().join("generator.late");
    std::fs::create_dir_all(late.join("multi-user.target.wants")).unwrap();
    std::fs::create_dir_all(late.join("holdfast-held@shop.target.d")).unwrap();
    let path = [late.to_str().unwrap().to_owned()];
    let markers = markers(&["web.service", "holdfast-held@shop.target", "srv-x.mount"]);

    std::fs::write(late.join("web.service"), "").unwrap();
    symlink("nowhere", late.join("multi-user.target.wants/holdfast-held@shop.target")).unwrap();
    assert!(is_lost(&markers, &path));
    std::fs::write(late.join("holdfast-held@shop.target.d/50-held.conf"), "").unwrap();
    assert!(!is_lost(&markers, &path));
    std::fs::remove_file(late.join("web.service")).unwrap();
    assert!(is_lost(&markers, &path));
    assert!(!is_lost(&BTreeMap::new(), &path));
}

#[test]
fn only_regular_files_are_markers() {
    let root = tempfile::tempdir().unwrap();
    let place = HostPath::new(root.path().join("held").to_str().unwrap()).unwrap();
    assert_eq!(read(&place).unwrap(), BTreeMap::new());
    std::fs::create_dir_all(root.path().join("held/folder.service")).unwrap();
    symlink("web.service", root.path().join("held/link.service")).unwrap();
    std::fs::write(root.path().join("held/web.service"), MARKER).unwrap();
    assert_eq!(read(&place).unwrap(), markers(&["web.service"]));
}
