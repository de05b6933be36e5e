use std::collections::BTreeMap;

use super::{MountType, QuadletFacts, problems, read, unit_name, unsupported_keys};
use crate::expand::{EnvFiles, HostFacts};
use crate::name::HostPath;
use crate::problem::Severity;
use crate::resource::Kind;
use crate::unitfile::UnitFile;

/// Quadlet files by name, and environment files by path.
#[derive(Default)]
struct Tree {
    files: BTreeMap<&'static str, &'static str>,
    env: EnvFiles,
}

fn tree(files: &[(&'static str, &'static str)]) -> Tree {
    Tree { files: files.iter().copied().collect(), env: EnvFiles::new() }
}

impl Tree {
    fn unit(&self, name: &str) -> Option<UnitFile> {
        self.files.get(name).map(|text| UnitFile::parse(text).unwrap())
    }

    fn read(&self, name: &str) -> QuadletFacts {
        let host = HostFacts { hostname: "box".to_owned(), boot_id: "1f".repeat(16), ..HostFacts::default() };
        let dir = HostPath::new("/etc/containers/systemd/holdfast/m").unwrap();
        let (kind, unit) = (Kind::of_quadlet(name).unwrap(), self.unit(name).unwrap());
        let others: BTreeMap<&str, UnitFile> =
            self.files.iter().map(|(name, text)| (*name, UnitFile::parse(text).unwrap())).collect();
        read(kind, name, &dir, &unit, &host, &self.env, &|file| others.get(file))
    }
}

fn one(text: &'static str) -> QuadletFacts {
    tree(&[("web.container", text)]).read("web.container")
}

fn mounts(facts: &QuadletFacts) -> Vec<(MountType, &str, &str, bool)> {
    facts.mounts.iter().map(|m| (m.kind, m.source.as_str(), m.target.as_str(), m.read_only)).collect()
}

fn claims(facts: &QuadletFacts) -> Vec<String> {
    facts.ports.iter().map(ToString::to_string).collect()
}

fn open(facts: &QuadletFacts) -> Vec<(&str, &str)> {
    facts.unresolved.iter().map(|finding| (finding.key.as_str(), finding.what.as_str())).collect()
}

#[test]
fn units_are_named_as_the_generator_names_them() {
    let cases = [
        ("web.container", "[Container]\n", "web.service"),
        ("data.volume", "[Volume]\n", "data-volume.service"),
        ("int.network", "[Network]\n", "int-network.service"),
        ("site.pod", "[Pod]\n", "site-pod.service"),
        ("base.image", "[Image]\n", "base-image.service"),
        ("own.build", "[Build]\n", "own-build.service"),
        ("job.kube", "[Kube]\n", "job.service"),
        ("site.pod", "[Pod]\nServiceName=site\n", "site.service"),
        ("t@.container", "[Container]\n", "t@.service"),
        (".hidden.container", "[Container]\n", ".hidden.service"),
        ("a.b.container", "[Container]\n", "a.b.service"),
    ];
    for (file, text, unit) in cases {
        let kind = Kind::of_quadlet(file).unwrap();
        assert_eq!(unit_name(kind, file, &UnitFile::parse(text).unwrap()), unit);
    }
}

#[test]
fn mounts_in_every_form() {
    let files = tree(&[
        ("data.volume", "[Volume]\n"),
        ("named.volume", "[Volume]\nVolumeName=files\nServiceName=files\n"),
        ("base.image", "[Image]\nImage=localhost/base:1\n"),
        (
            "web.container",
            "[Container]\nImage=localhost/app:1\nVolume=/srv/gone:/x\nVolume=\nVolume=/srv//a/../b/:/b:Z\n\
             Volume=./conf:/c:ro\nVolume=plain:/p\nVolume=data.volume:/d\nVolume=named.volume:/n:ro\nVolume=/anon\n\
             Volume=data.volume\nMount=type=bind,src=/srv/m,dst=/m,readonly\nMount=type=volume,source=data.volume,target=/v\n\
             Mount=type=image,source=base.image,destination=/i\nMount=type=glob,src=/srv/*.d,destination=/g\n\
             Tmpfs=/t:size=1M\nPodmanArgs=-v /srv/arg:/arg:ro --mount=type=bind,src=/srv/arg2,dst=/arg2 --volumes-from other:ro\n",
        ),
    ]);
    let facts = files.read("web.container");
    assert_eq!(
        mounts(&facts),
        [
            (MountType::Bind, "/srv/b", "/b", false),
            (MountType::Bind, "/etc/containers/systemd/holdfast/m/conf", "/c", true),
            (MountType::Volume, "plain", "/p", false),
            (MountType::Volume, "systemd-data", "/d", false),
            (MountType::Volume, "files", "/n", true),
            (MountType::Anonymous, "", "/anon", false),
            (MountType::Anonymous, "", "data.volume", false),
            (MountType::Bind, "/srv/m", "/m", true),
            (MountType::Volume, "systemd-data", "/v", false),
            (MountType::Image, "localhost/base:1", "/i", true),
            (MountType::Other, "/srv/*.d", "/g", false),
            (MountType::Tmpfs, "", "/t", false),
            (MountType::Bind, "/srv/arg", "/arg", true),
            (MountType::Bind, "/srv/arg2", "/arg2", false),
        ]
    );
    assert_eq!(facts.files, ["data.volume", "named.volume", "base.image"]);
    assert_eq!(facts.requires, ["data-volume.service", "files.service", "base-image.service"]);
    assert_eq!(facts.containers, ["other"]);
    assert_eq!(facts.assets, ["conf"]);
    assert_eq!(facts.relabels.iter().map(ToString::to_string).collect::<Vec<_>>(), ["/srv/b"]);
    assert_eq!((facts.mounts[0].line, facts.mounts[1].relative), (Some(5), true));
    assert_eq!(facts.mounts[3].file.as_deref(), Some("data.volume"));
}

#[test]
fn variables_come_from_the_service_and_what_is_unset_is_open() {
    let text = "[Container]\nImage=localhost/app:${APP_VERSION}\nContainerName=app-${APP_VERSION}\nVolume=${DATA}:/data\n\
                EnvironmentFile=app.env\nPublishPort=${PORT}:8080\nHealthCmd=test -n \"$$HOME\"\nLabel=route=${DOMAIN}\n\
                [Service]\nEnvironmentFile=/etc/app.env\n";
    let mut files = tree(&[("app.container", text)]);
    let facts = files.read("app.container");
    assert_eq!(
        open(&facts),
        [
            ("ContainerName=", "${APP_VERSION}"),
            ("Image=", "${APP_VERSION}"),
            ("Volume=", "${DATA}"),
            ("PublishPort=", "${PORT}")
        ]
    );
    assert_eq!(mounts(&facts), [(MountType::Other, "${DATA}", "/data", false)], "never as no mount");
    assert!(facts.ports.is_empty());
    assert_eq!(facts.published[0].host, "${PORT}");
    assert_eq!(facts.unresolved[1].line, Some(2));

    let values = "APP_VERSION=1.27.3\nDATA=/srv/app\nPORT=18080\nDOMAIN=example.test\n";
    files.env.insert("/etc/app.env".to_owned(), Some(values.to_owned()));
    let known = files.read("app.container");
    assert!(known.unresolved.is_empty(), "{:?}", known.unresolved);
    assert_eq!(known.image.as_deref(), Some("localhost/app:1.27.3"));
    assert_eq!(known.podman_name.as_deref(), Some("app-1.27.3"));
    assert_eq!(mounts(&known), [(MountType::Bind, "/srv/app", "/data", false)]);
    assert_eq!(claims(&known), ["0.0.0.0:18080/tcp"]);
    assert_ne!(known.canonical, facts.canonical, "a changed value is a changed definition");
    assert!(known.canonical.contains("Label=route=example.test\n"), "{}", known.canonical);
}

#[test]
fn a_pod_and_its_members() {
    let files = tree(&[
        ("site.network", "[Network]\nNetworkName=site-net\n"),
        (
            "site.pod",
            "[Pod]\nPodName=site\nServiceName=site\nPublishPort=127.0.0.1:18081:8080\nVolume=/srv/site:/shared:z\n\
             Network=site.network\n[Install]\nWantedBy=multi-user.target\n",
        ),
        (
            "site-db.container",
            "[Container]\nImage=localhost/app:1\nPod=site.pod\nVolume=site-db:/data\nStartWithPod=false\n",
        ),
    ]);
    let pod = files.read("site.pod");
    assert_eq!(pod.podman_name.as_deref(), Some("site"));
    assert_eq!(claims(&pod), ["127.0.0.1:18081/tcp"]);
    assert_eq!(
        (pod.files.as_slice(), pod.requires.as_slice()),
        (["site.network".to_owned()].as_slice(), ["site-network.service".to_owned()].as_slice())
    );
    assert!(pod.wanted_at_boot && pod.networks.is_empty());
    let member = files.read("site-db.container");
    assert_eq!(
        (member.files.as_slice(), member.requires.as_slice()),
        (["site.pod".to_owned()].as_slice(), ["site.service".to_owned()].as_slice())
    );
    assert_eq!(mounts(&member), [(MountType::Volume, "site-db", "/data", false)]);
    assert_eq!(member.podman_name.as_deref(), Some("systemd-site-db"));
    assert!(!member.wanted_at_boot);
}

#[test]
fn networks_by_name_file_and_container() {
    let files = tree(&[
        ("feed.network", "[Network]\n"),
        (
            "hub.container",
            "[Container]\nImage=localhost/a:1\nContainerName=hub\nNetwork=feed\nPublishPort=[::]:18084:8080\n",
        ),
        ("side.container", "[Container]\nImage=localhost/a:1\nNetwork=container:hub\nPublishPort=1:1\n"),
        ("side2.container", "[Container]\nImage=localhost/a:1\nNetwork=hub.container\n"),
        ("opt.container", "[Container]\nImage=localhost/a:1\nNetwork=feed.network:mtu=1400\nNetwork=lan:alias=x\n"),
        ("host.container", "[Container]\nImage=localhost/a:1\nNetwork=host\nPublishPort=80:80\n"),
        (
            "modes.container",
            "[Container]\nImage=localhost/a:1\nNetwork=none\nNetwork=pasta:-t,80\nNetwork=a,b\nPodmanArgs=--network c --ipc container:d\n",
        ),
    ]);
    let hub = files.read("hub.container");
    assert_eq!(
        (hub.networks.as_slice(), hub.files.len()),
        (["feed".to_owned()].as_slice(), 0),
        "nothing ties it to feed.network"
    );
    assert_eq!(claims(&hub), ["[::]:18084/tcp"]);
    let side = files.read("side.container");
    assert_eq!((side.containers.as_slice(), side.ports.len()), (["hub".to_owned()].as_slice(), 0));
    let side2 = files.read("side2.container");
    assert_eq!(
        (side2.files.as_slice(), side2.requires.as_slice()),
        (["hub.container".to_owned()].as_slice(), ["hub.service".to_owned()].as_slice())
    );
    let opt = files.read("opt.container");
    assert_eq!(
        (opt.files.as_slice(), opt.networks.as_slice()),
        (["feed.network".to_owned()].as_slice(), ["lan".to_owned()].as_slice())
    );
    let host = files.read("host.container");
    assert!(host.networks.is_empty() && host.ports.is_empty() && host.published.len() == 1);
    let modes = files.read("modes.container");
    assert_eq!(
        (modes.networks, modes.containers),
        (vec!["a".to_owned(), "b".to_owned(), "c".to_owned()], vec!["d".to_owned()])
    );
}

#[test]
fn secrets_and_environment_files() {
    let facts = one(
        "[Container]\nImage=localhost/app:1\nSecret=api-password,type=env,target=P\nSecret=source=cert,type=mount\n\
         EnvironmentFile=./api.env\nEnvironmentFile=/etc/env/%N.env\nEnvironmentFile=-/etc/gone.env\nPodmanArgs=--secret more\n",
    );
    assert_eq!(facts.secrets, ["api-password", "cert", "more"]);
    let files: Vec<&str> = facts.env_files.iter().map(HostPath::as_str).collect();
    let dir = "/etc/containers/systemd/holdfast/m";
    assert_eq!(files, [format!("{dir}/api.env"), "/etc/env/web.env".to_owned(), format!("{dir}/-/etc/gone.env")]);
    assert_eq!(facts.assets, ["api.env"]);
}

#[test]
fn signs_of_a_users_own_manager() {
    let signs =
        |text: &'static str| -> Vec<String> { one(text).user_signs.into_iter().map(|sign| sign.what).collect() };
    let rootless = "[Container]\nImage=localhost/app:1\nUserNS=keep-id:uid=1000\nVolume=%h/x:/data\nVolume=%t/podman.sock:/s\n\
                    Environment=PUID=%U\n[Service]\nExecStartPre=mkdir -p %h/x\n[Install]\nWantedBy=default.target\n";
    assert_eq!(signs(rootless), ["keep-id", "%h", "%t", "%U", "%h", "default.target"]);
    let root = "[Container]\nImage=localhost/app:1\nExec=echo 100%%h\nVolume=%S/x:/d\n[Service]\nExecStartPre=rm -f %t/x\n\
                [Install]\nWantedBy=multi-user.target default.target\n";
    assert!(signs(root).is_empty());
    assert!(signs("[Container]\nImage=a\n[Install]\nWantedBy=default.target\nWantedBy=multi-user.target\n").is_empty());
    assert!(signs("[Container]\nImage=a\n[Install]\nWantedBy=default.target\nWantedBy=\n").is_empty());
}

#[test]
fn dependencies_boot_and_updates() {
    let facts = one(
        "[Unit]\nRequires=a.service b.service\nBindsTo=db.container\nWants=w.service\nAfter=x.service\nAfter=\nAfter=y.service\n\
         [Container]\nImage=localhost/app:1\nAutoUpdate=registry\nPull=newer\nUser=1000:100\nHealthCmd=none\n\
         [Service]\nType=oneshot\n[Install]\nWantedBy=a.target\nWantedBy=\n",
    );
    assert_eq!(facts.requires, ["a.service", "b.service", "db.service"]);
    assert_eq!(facts.after, ["y.service"]);
    assert_eq!(facts.second_updater.as_deref(), Some("AutoUpdate=registry, Pull=newer"));
    assert_eq!((facts.uid, facts.oneshot, facts.wanted_at_boot, facts.health_check), (Some(1000), true, false, false));
    let mapped = one("[Container]\nImage=a\nUser=1000\nUserNS=auto\nHealthCmd=true\n");
    assert_eq!((mapped.uid, mapped.health_check), (None, true));
}

#[test]
fn the_canonical_text_is_the_definition_and_nothing_else() {
    let files = |trailer: &'static str| {
        tree(&[("data.volume", "[Volume]\nVolumeName=d\n"), ("int.network", "[Network]\n"), ("web.container", trailer)])
            .read("web.container")
            .canonical
    };
    let plain = files(
        "[Unit]\nDescription=x\n[Container]\nImage=localhost/app:1\nVolume=/gone:/x\nVolume=\nVolume=data.volume:/d\n\
         Mount=type=volume,source=data.volume,target=/m\nNetwork=int.network:mtu=1\nLabel=a=b\nEnvironment=H=%H B=%b N=%N\n\
         [Service]\nRestart=always\n",
    );
    assert_eq!(
        plain,
        "[Container]\nImage=localhost/app:1\nVolume=d:/d\nMount=type=volume,source=d,target=/m\nNetwork=systemd-int:mtu=1\n\
         Label=a=b\nEnvironment=H=box B=%b N=web\n"
    );
    let marked = files(
        "[Container]\nImage=localhost/app:1\nVolume=d:/d\nMount=type=volume,source=d,target=/m\nNetwork=systemd-int:mtu=1\n\
         Label=a=b io.holdfast.module=m\nEnvironment=H=box B=%b N=web\nLabel=io.holdfast.desired=1f\n\
         PodmanArgs=--label io.holdfast.x=y\n[Install]\nWantedBy=multi-user.target\n",
    );
    assert_eq!(marked, plain, "neither our labels nor other sections alter a definition");
}

#[test]
fn names_of_templates_and_other_kinds() {
    let files = tree(&[
        ("t@.container", "[Container]\nImage=a\n"),
        ("t@one.container", "[Container]\nImage=a\n"),
        ("n.container", "[Container]\nImage=a\nServiceName=other\n"),
        ("args.container", "[Container]\nImage=a\nPodmanArgs=--name=b\n"),
        ("data.volume", "[Volume]\nDriver=image\nImage=localhost/data:1\n"),
        ("bind.volume", "[Volume]\nType=bind\nDevice=/srv/bind\n"),
        ("job.kube", "[Kube]\nYaml=./job.yaml\nConfigMap=a.yaml /etc/b.yaml\nPublishPort=80:80\n"),
        ("own.build", "[Build]\nImageTag=localhost/own\nSetWorkingDirectory=unit\nFile=Containerfile\n"),
        ("root.container", "[Container]\nRootfs=/var/lib/root:O\n"),
        ("from.container", "[Container]\nImage=own.build\n"),
    ]);
    assert_eq!(files.read("t@.container").podman_name, None);
    assert_eq!(files.read("t@one.container").podman_name.as_deref(), Some("systemd-t_one"));
    assert_eq!(files.read("n.container").podman_name.as_deref(), Some("systemd-other"));
    assert_eq!(files.read("args.container").podman_name.as_deref(), Some("b"));
    assert_eq!(files.read("data.volume").image.as_deref(), Some("localhost/data:1"));
    assert_eq!(mounts(&files.read("bind.volume")), [(MountType::Bind, "/srv/bind", "/", false)]);
    let kube = files.read("job.kube");
    assert_eq!(
        (kube.assets.as_slice(), claims(&kube)),
        (["job.yaml".to_owned(), "a.yaml".to_owned()].as_slice(), vec!["0.0.0.0:80/tcp".to_owned()])
    );
    assert_eq!(files.read("own.build").assets, ["Containerfile", "."]);
    assert_eq!(mounts(&files.read("root.container")), [(MountType::Bind, "/var/lib/root", "/", true)]);
    let from = files.read("from.container");
    assert_eq!((from.image, from.files.as_slice()), (None, ["own.build".to_owned()].as_slice()));
}

#[test]
fn what_is_plainly_wrong_is_told_with_its_line() {
    use Severity::{Error, Warning};
    let cases = [
        ("Image=localhost/app:1 # pinned\nVolume=a:/a\n", 2, Error, "no blanks"),
        ("Image=a\nVolume=a:/a\nPublishPort=99999:80\n", 4, Error, "no port"),
        ("Image=a\nVolume=a:/a\nPublishPort=80:80\nPublishPort=127.0.0.1:80:81\n", 5, Error, "published on line 4"),
        ("Image=a\nVolume=a:/a\nPodmanArgs=-p x:1\n", 4, Error, "no port"),
        ("Image=a\nVolume=a:/a\nLabel=rule=a b\n", 4, Warning, "\"b\" has no ="),
        ("Image=a\nVolume=./d:/d\n", 3, Error, "written below /etc"),
        ("Image=a\nVolume=../d:/d:ro\n", 3, Error, "leads out of the module"),
        ("Image=a\nVolume=~/d:/d\n", 3, Error, "~ is not expanded"),
        ("Image=a\nVolume=d\n", 3, Warning, "no absolute path"),
        ("Image=a\nVolume=d:e\n", 3, Error, "no absolute path"),
        ("Image=a\nVolume=a:/a\nSecret=a\\d\n", 4, Error, "drops the whole value"),
        ("Image=a\nVolume=a:/a\nPodmanArgs=--pod=x\n", 4, Warning, "not looked into"),
        ("Image=a\nVolume=a:/a\nEnvironmentFile=-/etc/x\n", 4, Error, "takes the - for a part"),
        ("Image=a\nVolume=a:/a\nLabel=io.holdfast.module=x\n", 4, Error, "holdfast's own"),
        ("Image=a\nVolume=a:/a\nAutoUpdate=registry\n", 4, Warning, "second updater"),
        ("Image=a\n", 2, Warning, "VOLUME"),
        ("Image=a\nVolume=a:/a\nPod=p\n", 4, Error, "no .pod file"),
        ("Image=a\nVolume=a:/a\nGroup=1\n", 4, Error, "without User="),
        ("Image=a\nVolume=a:/a\n[Service]\nType=simple\n", 5, Error, "notify or oneshot"),
        ("Image=a\nVolume=a:/a\n[Unit]\nAfter=db.container\n", 5, Warning, "After=db.container"),
        ("Image=a\nMount=type=bind,src=conf,dst=/c\n", 3, Error, "needs a path"),
    ];
    for (text, line, severity, part) in cases {
        let unit = UnitFile::parse(&format!("[Container]\n{text}")).unwrap();
        let found = problems(Kind::Container, &unit);
        assert_eq!(found.len(), 1, "{text}: {found:?}");
        assert_eq!((found[0].line, found[0].severity), (Some(line), severity), "{text}");
        assert!(found[0].message.contains(part), "{text}: {}", found[0].message);
    }
    let fine = "[Container]\nImage=${I}\nVolume=%h/x:/a:ro\nVolume=./c:/c:ro\nPublishPort=${P}:80\nEnvironmentFile=${E}\nEnvironmentFile=x.env\n";
    assert_eq!(problems(Kind::Container, &UnitFile::parse(fine).unwrap()), []);
}

#[test]
fn faults_that_the_generator_has_a_word_for() {
    let cases = [
        (Kind::Container, "[Container]\n", "no Image= or Rootfs="),
        (Kind::Container, "[Container]\nImage=a\nRootfs=/r\n", "exclude each other"),
        (Kind::Image, "[Image]\n", "no Image="),
        (Kind::Build, "[Build]\nSetWorkingDirectory=unit\n", "no ImageTag="),
        (Kind::Build, "[Build]\nImageTag=a\n", "neither SetWorkingDirectory="),
        (Kind::Build, "[Build]\nImageTag=a\nFile=C\n", "needs SetWorkingDirectory="),
        (Kind::Kube, "[Kube]\n", "no Yaml="),
        (Kind::Kube, "[Kube]\nYaml=a\nRemapUsers=manual\n", "not for .kube"),
        (Kind::Volume, "[Volume]\nType=tmpfs\n", "without Device="),
        (Kind::Volume, "[Volume]\nDriver=image\n", "no Image="),
        (Kind::Network, "[Network]\nGateway=192.0.2.1\n", "more Gateway="),
        (Kind::Pod, "[Pod]\nUserNS=auto\nRemapUsers=auto\n", "excludes UserNS="),
    ];
    for (kind, text, part) in cases {
        let found = problems(kind, &UnitFile::parse(text).unwrap());
        assert!(found.iter().any(|p| p.severity == Severity::Error && p.message.contains(part)), "{text}: {found:?}");
    }
}

#[test]
fn keys_of_a_newer_podman_are_named() {
    let cases = [
        (Kind::Container, "[Container]\nImage=a\nMemory=4G\nPodmanArgs=x\n", vec!["Memory"]),
        (Kind::Network, "[Network]\nNetworkDeleteOnStop=true\n", vec!["NetworkDeleteOnStop"]),
        (Kind::Image, "[Image]\nImage=a\nRetry=3\nRetryDelay=5s\n", vec!["Retry", "RetryDelay"]),
        (Kind::Pod, "[Pod]\nLabel=a=b\n[X-Other]\nAny=1\n", vec!["Label"]),
        (Kind::Container, "[Quadlet]\nDefaultDependencies=no\nOther=1\n", vec!["Other"]),
    ];
    for (kind, text, keys) in cases {
        let unit = UnitFile::parse(text).unwrap();
        let found: Vec<&str> = unsupported_keys(kind, &unit).into_iter().map(|entry| entry.key.as_str()).collect();
        assert_eq!(found, keys, "{text}");
    }
}
