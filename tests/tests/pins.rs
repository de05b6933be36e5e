//! Promise 13: what was deployed is what starts again; a moved tag deploys nothing.

use holdfast_tests::{Host, INSTALLED};

const IMAGES: [&str; 2] = ["remote", "local"];

fn image_ids(host: &Host) -> Vec<String> {
    IMAGES.map(|container| host.inspect(container, "{{.Image}}")).to_vec()
}

#[test]
fn a_moved_tag_deploys_nothing() {
    let host = Host::with_holdfast("tpins");
    host.start_registry();
    // Pulled, it is pinned by its digest; what is local only, by its ID.
    host.ok("podman rmi localhost:5000/svc:latest");
    host.assign("pins");
    let report = host.apply(0);
    assert_eq!(report.notes(), ["floating container/updated second-updater"]);
    assert_eq!(host.ok("curl -fsS localhost:18080/version"), "1.0\n");
    let before = image_ids(&host);

    // The installed files say which image, the module's do not.
    let installed = host.read(&format!("{INSTALLED}/floating/remote.container"));
    let image = installed.lines().rfind(|line| line.starts_with("Image=")).unwrap();
    assert!(image.starts_with("Image=localhost:5000/svc@sha256:"), "{installed}");

    // Somebody pushes another image under the tag, pulls it, builds another one of the local name, and prunes.
    host.retag("svc:2.0", "svc:latest");
    host.ok("podman pull -q localhost:5000/svc:latest && podman tag localhost/plain:2 localhost/plain:1 && podman image prune -f");
    host.ok("systemctl restart remote local");
    assert_eq!(before, image_ids(&host), "after a restart");
    host.wait_for(10, "curl -fsS localhost:18080/version | grep -x 1.0");

    let report = host.apply(0);
    assert_eq!(report.count("changed"), 0, "{report}");
    assert_eq!(before, image_ids(&host), "after an apply");

    // Without a registry to ask.
    host.ok("systemctl stop docker-registry");
    host.reboot();
    host.wait_for(20, "podman container exists remote && podman container exists local");
    assert_eq!(before, image_ids(&host), "after a reboot");
    host.wait_for(10, "curl -fsS localhost:18080/version | grep -x 1.0");
    host.nothing_failed();
}
