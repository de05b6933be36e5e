use std::collections::BTreeMap;

use super::{LintReport, lint};
use crate::expand::HostFacts;
use crate::module::{Content, FileEntry, ModuleFiles, read};
use crate::problem::Severity;

fn report(name: &str, files: &[(&str, &str)]) -> LintReport {
    let entry =
        |text: &str| FileEntry { content: Content::Bytes(text.as_bytes().to_vec()), mode: 0o644, link_to: None };
    let files: BTreeMap<String, FileEntry> =
        files.iter().map(|(path, text)| ((*path).to_owned(), entry(text))).collect();
    lint(&read(ModuleFiles { name: name.to_owned(), files, ..ModuleFiles::default() }), &HostFacts::default())
}

fn told(report: &LintReport, severity: Severity, part: &str) -> bool {
    report.problems.iter().any(|problem| problem.severity == severity && problem.to_string().contains(part))
}

#[test]
fn the_published_shape() {
    let report = report(
        "site",
        &[
            ("site.network", "[Network]\n"),
            (
                "web.container",
                "[Container]\nImage=localhost/app:1\nContainerName=web\nVolume=/srv/site:/data\nVolume=/etc/site:/etc/site:ro\n\
                 Volume=cache:/cache\nPublishPort=127.0.0.1:80:8080\nNetwork=site.network\nSecret=key\nEnvironmentFile=/etc/web.env\n\
                 [Unit]\nRequires=db.service\n[Install]\nWantedBy=multi-user.target\n",
            ),
        ],
    );
    let json = serde_json::to_value(&report).unwrap();
    let wanted = serde_json::json!({
        "resource": "container/web", "unit": "web.service", "file": "web.container", "name": "web",
        "image": "localhost/app:1",
        "mounts": [
            {"type": "bind", "source": "/srv/site", "target": "/data", "read_only": false, "owner": "own"},
            {"type": "bind", "source": "/etc/site", "target": "/etc/site", "read_only": true, "owner": "host"},
            {"type": "volume", "source": "cache", "target": "/cache", "read_only": false, "owner": "volume"},
        ],
        "ports": [{"host_ip": "127.0.0.1", "host": "80", "container": "8080", "protocol": "tcp"}],
        "networks": ["systemd-site"], "volumes": ["cache"], "secrets": ["key"], "env_files": ["/etc/web.env"],
        "requires": ["db.service", "site-network.service"],
    });
    let resources = json["resources"].as_array().unwrap();
    assert_eq!(resources.iter().find(|resource| resource["resource"] == "container/web"), Some(&wanted));
    let names: Vec<&str> = resources.iter().map(|resource| resource["resource"].as_str().unwrap()).collect();
    assert_eq!(names, ["directory//srv/site", "volume/cache", "network/site", "container/web"]);
    assert_eq!((json["schema"].as_u64(), json["module"].as_str()), (Some(1), Some("site")));
    assert_eq!(report.worst(), None, "{report}");
    assert_eq!(report.to_string(), "site: 4 resource(s), 0 error(s), 0 warning(s)");
}

#[test]
fn two_files_of_one_name_or_unit() {
    let text = "[Container]\nImage=localhost/app:1\nContainerName=notes\nVolume=a:/a\n";
    let twice = report("m", &[("new/notes.container", text), ("old/notes.container", text)]);
    assert!(told(&twice, Severity::Error, "has the same name"), "{twice}");
    let clash = report(
        "m",
        &[
            ("box.pod", "[Pod]\nPublishPort=80:80\n"),
            ("box-pod.container", text),
            (
                "other.container",
                "[Container]\nImage=localhost/app:1\nContainerName=notes\nVolume=a:/a\nPublishPort=80:1\n",
            ),
        ],
    );
    assert!(told(&clash, Severity::Error, "makes the unit box-pod.service, too"), "{clash}");
    assert!(told(&clash, Severity::Error, "makes the container notes, too"), "{clash}");
    assert!(told(&clash, Severity::Error, "publishes the host port 0.0.0.0:80/tcp, too"), "{clash}");
}

#[test]
fn what_is_missing_beside_a_file() {
    let report = report(
        "api",
        &[
            (
                "sub/api.container",
                "[Container]\nImage=localhost/app:1\nVolume=a:/a\nEnvironmentFile=./api.env\nNetwork=feed\nPod=gone.pod\n",
            ),
            ("sub/api.env.example", "A=1\n"),
            ("feed.network", "[Network]\n"),
            ("a.volume", "[Volume]\n"),
            ("old.container.bak", "[Container]\n"),
        ],
    );
    assert!(told(&report, Severity::Warning, "sub/api.env is not in the module; sub/api.env.example is"), "{report}");
    assert!(told(&report, Severity::Warning, "gone.pod is not in the module"), "{report}");
    assert!(told(&report, Severity::Warning, "the network feed is made by no file"), "{report}");
    assert!(told(&report, Severity::Warning, "the volume a is another one than that of a.volume"), "{report}");
    assert!(told(&report, Severity::Warning, "old.container.bak: it is left alone"), "{report}");
    assert!(!report.problems.iter().any(|problem| problem.severity == Severity::Error), "{report}");
    assert_eq!(report.worst(), Some(Severity::Warning));
}

#[test]
fn kube_yaml_counts() {
    let pod = "kind: Pod\nmetadata: {name: job}\nspec:\n  containers:\n  - name: main\n    image: a\n    volumeMounts: [{name: d, mountPath: /data}]\n  volumes: [{name: d, hostPath: {path: /srv/job}}]\n";
    let good = report("m", &[("job.kube", "[Kube]\nYaml=job.yaml\n"), ("job.yaml", pod)]);
    assert!(
        good.resources.iter().any(|resource| resource.mounts.iter().any(|mount| mount.source == "/srv/job")),
        "{good}"
    );
    let bad =
        report("m", &[("job.kube", "[Kube]\nYaml=job.yaml\n"), ("job.yaml", "kind: Pod\nspec:\n  containers: 5\n")]);
    assert!(told(&bad, Severity::Error, "job.yaml:3:"), "{bad}");
}

#[test]
fn variables_and_user_modules() {
    let report = report(
        "m",
        &[
            ("a.container", "[Container]\nImage=localhost/app:${V}\nHostName=%H\nVolume=a:/a\nContainerName=%H\n"),
            (
                "b.container",
                "[Container]\nImage=localhost/app:${V}\nVolume=b:/a\n[Service]\nEnvironmentFile=/etc/b.env\n",
            ),
            (
                "c.container",
                "[Container]\nImage=localhost/app:${V}\nVolume=c:/a\n[Service]\nEnvironmentFile=/etc/c.env\n",
            ),
            ("d.container", "[Container]\nImage=localhost/app:1\nVolume=%h/d:/a\nMemory=4G\n"),
            ("files/etc/c.env", "V=1\n"),
        ],
    );
    assert!(told(&report, Severity::Error, "a.container:2: Image=localhost/app:${V}: ${V} is not set"), "{report}");
    assert!(
        told(&report, Severity::Warning, "b.container:2: Image=localhost/app:${V}: ${V} is known only on the host"),
        "{report}"
    );
    assert!(!report.problems.iter().any(|problem| problem.file == "c.container"), "{report}");
    assert!(
        told(&report, Severity::Error, "d.container:3: Volume=%h/d:/a is made for a user's own manager"),
        "{report}"
    );
    assert!(told(&report, Severity::Warning, "d.container:4: Podman 5.4 does not know Memory="), "{report}");
    assert_eq!(report.worst(), Some(Severity::Error));
    assert!(!told(&report, Severity::Error, "%H"), "{report}");
}
