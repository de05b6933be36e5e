//! Shapes of real trees that went wrong.

use super::{World, clause, get, hash, key, keys, needs, path, reasons};
use crate::desired::{Body, Need, environment_files};
use crate::expand::HostFacts;
use crate::hold::Reason;
use crate::ledger::Entry;

const YAML: &str = r#"
apiVersion: v1
kind: Pod
metadata: {name: job}
spec:
  containers:
  - {name: main, image: "localhost/app:1.27.3", volumeMounts: [{name: d, mountPath: /data}]}
  volumes:
  - {name: d, hostPath: {path: /srv/job, type: Directory}}
"#;
const IMAGE: &str = "Image=localhost/app:1.27.3\n";

#[test]
fn two_files_of_one_name_are_one_resource_and_one_hold_that_names_both() {
    let notes = format!("[Container]\n{IMAGE}ContainerName=notes\nVolume=/srv/notes:/data\n");
    let world = World::of(&[(
        "notes",
        &[("archived/notes-old/notes.container", &notes.replace("27.3", "22.6")), ("notes/notes.container", &notes)],
    )]);
    let desired = world.desired();
    assert_eq!(keys(&desired, "notes"), ["directory//srv/notes", "container/notes"]);
    assert_eq!(reasons(&desired, "notes", "container/notes"), [Reason::ClaimedTwice]);
    let told = clause(&desired, "notes", "container/notes", Reason::ClaimedTwice);
    assert!(told.contains("archived/notes-old/notes.container") && told.contains("notes/notes.container"), "{told}");
}

#[test]
fn keys_of_a_newer_podman_hold_the_module_and_name_file_key_and_version() {
    let app = format!("[Unit]\nBindsTo=db.container\n[Container]\n{IMAGE}Network=int.network\n");
    let db = format!("[Container]\n{IMAGE}ContainerName=db\nMemory=4G\nVolume=/srv/db:/data\n");
    let world = World::of(&[
        (
            "app",
            &[("app.container", &app), ("db.container", &db), ("int.network", "[Network]\nNetworkDeleteOnStop=true\n")],
        ),
        ("web", &[("web.container", &format!("[Container]\n{IMAGE}"))]),
    ])
    .drop("app/db.container", "unsupported key 'Memory' in group 'Container'")
    .drop("app/int.network", "unsupported key 'NetworkDeleteOnStop' in group 'Network'")
    .drop("app/app.container", "cannot get the resource name of int.network");
    let desired = world.desired();
    assert_eq!(keys(&desired, "app"), ["directory//srv/db", "network/int", "container/app", "container/db"]);
    let told = |key: &str| clause(&desired, "app", key, Reason::Unreadable);
    assert_eq!(told("container/db"), "db.container:4: unsupported key 'Memory' in group 'Container' (Podman 5.4.2)");
    assert_eq!(
        told("network/int"),
        "int.network:2: unsupported key 'NetworkDeleteOnStop' in group 'Network' (Podman 5.4.2)"
    );
    assert_eq!(told("container/app"), "app.container: cannot get the resource name of int.network (Podman 5.4.2)");
    assert_eq!(told("directory//srv/db"), told("container/db"), "its own file's problem before the module's first");
    assert!(needs(&desired, "app", "container/app").contains(&"app container/db".to_owned()));
    assert_eq!(reasons(&desired, "web", "container/web"), []);
}

#[test]
fn variables_come_from_the_service_environment_and_unset_ones_hold() {
    let text = "[Container]\nImage=localhost/app:${APP_VERSION}\nContainerName=app-${APP_VERSION}\nVolume=${DATA}:/data\n\
                PublishPort=${PORT}:8080\n[Service]\nEnvironmentFile=/srv/modules/app/app.env\n";
    let mut world = World::of(&[("app", &[("app.container", text)])]);
    let files = environment_files(&world.modules, &world.generated().into(), &HostFacts::default());
    assert_eq!(files.into_iter().collect::<Vec<_>>(), ["/srv/modules/app/app.env"]);

    let desired = world.desired();
    assert_eq!(reasons(&desired, "app", "container/app"), [Reason::Unresolved; 4]);
    let told = clause(&desired, "app", "container/app", Reason::Unresolved);
    assert!(told.starts_with("app.container:") && told.contains("cannot be known before the start"), "{told}");
    assert!(needs(&desired, "app", "container/app").contains(&"env /srv/modules/app/app.env".to_owned()));

    let env = "APP_VERSION=1.27.3\nDATA=/srv/app\nPORT=18080\n";
    world.env.insert("/srv/modules/app/app.env".to_owned(), Some(env.to_owned()));
    let desired = world.desired();
    assert_eq!(reasons(&desired, "app", "container/app"), []);
    assert_eq!(keys(&desired, "app"), ["directory//srv/app", "container/app"]);
    assert_eq!(get(&desired, "app", "container/app").object.as_deref(), Some("app-1.27.3"));
    assert!(world.wanted().images.contains("localhost/app:1.27.3"));
    let before = hash(&desired, "app", "container/app");
    world.env.insert("/srv/modules/app/app.env".to_owned(), Some(env.replace("1.27.3", "1.28.0")));
    assert_ne!(hash(&world.desired(), "app", "container/app"), before, "a changed variable is a changed definition");
}

#[test]
fn members_need_their_pod_and_the_pod_not_its_members() {
    let pod = "[Pod]\nPodName=site\nServiceName=site\nPublishPort=127.0.0.1:18081:8080\n\
               Volume=/srv/site/shared:/shared:z\nNetwork=site.network\n";
    let world = World::of(&[(
        "site",
        &[
            ("site.pod", pod),
            ("site.network", "[Network]\nNetworkName=site-net\n"),
            (
                "site-db.container",
                &format!("[Container]\n{IMAGE}Pod=site.pod\nVolume=site-db:/data\nStartWithPod=false\n"),
            ),
            ("site-web.container", &format!("[Container]\n{IMAGE}Pod=site.pod\nVolume=/srv/site/web:/data\n")),
        ],
    )]);
    let desired = world.desired();
    assert_eq!(
        keys(&desired, "site"),
        [
            "directory//srv/site/shared",
            "directory//srv/site/web",
            "volume/site-db",
            "network/site",
            "pod/site",
            "container/site-db",
            "container/site-web",
        ]
    );
    assert_eq!(get(&desired, "site", "pod/site").unit.as_deref(), Some("site.service"));
    let starts = |key: &str| get(&desired, "site", key).facts.starts_with_pod;
    assert!(starts("container/site-web") && !starts("container/site-db"));
    assert_eq!(get(&desired, "site", "volume/site-db").body, Body::PlainVolume);
    assert_eq!(needs(&desired, "site", "pod/site"), ["site directory//srv/site/shared", "site network/site"]);
    assert_eq!(needs(&desired, "site", "container/site-web"), ["site directory//srv/site/web", "site pod/site"]);
    assert_eq!(needs(&desired, "site", "container/site-db"), ["site volume/site-db", "site pod/site"]);
    assert!(world.wanted().listeners);
}

#[test]
fn a_held_own_directory_is_needed_by_all_that_mount_it_or_above_it_or_below_it() {
    let container = |lines: &str| format!("[Container]\n{IMAGE}{lines}");
    let player =
        container("Volume=/srv/media:/media:ro,z\nVolume=/srv/media/.cache:/cache:Z,U\nVolume=/dev/dri:/dev/dri\n");
    let reader = container(
        "Volume=/srv/media/books:/books:ro,Z\nVolume=/srv//books/../books/meta/:/meta\n\
         Volume=/%t/podman/podman.sock:/run/podman/podman.sock:ro\nVolume=reader-anon\n",
    );
    let boxed = container(
        "Volume=/:/run/host:rslave\nVolume=%h:%h:rslave\nMount=type=bind,source=/srv/media,destination=/m\n\
         Mount=type=tmpfs,destination=/run,tmpfs-size=64M\n",
    );
    let old = container("Volume=/srv/media-old:/m\n");
    let world = World::of(&[
        ("books", &[("reader.container", &reader)]),
        ("desk", &[("box.container", &boxed)]),
        ("media", &[("player.container", &player), ("module.toml", "[paths]\nown = [\"/srv/media\"]\n")]),
        ("old", &[("old.container", &old)]),
    ]);
    let desired = world.desired();
    assert_eq!(keys(&desired, "media"), ["directory//srv/media", "directory//srv/media/.cache", "container/player"]);
    let media = "media directory//srv/media".to_owned();
    for (module, resource) in [("media", "container/player"), ("books", "container/reader"), ("desk", "container/box")]
    {
        assert!(
            needs(&desired, module, resource).contains(&media),
            "{module}: {:?}",
            needs(&desired, module, resource)
        );
    }
    assert!(
        needs(&desired, "desk", "container/box").contains(&"old directory//srv/media-old".to_owned()),
        "/ covers it"
    );
    assert_eq!(needs(&desired, "old", "container/old"), ["old directory//srv/media-old"]);
    assert_eq!(needs(&desired, "media", "directory//srv/media/.cache"), [media.as_str()]);
    assert_eq!(keys(&desired, "books"), ["directory//srv/books/meta", "container/reader"]);
    assert_eq!(keys(&desired, "desk"), ["container/box"]);
    assert_eq!(reasons(&desired, "media", "container/player"), []);
    assert_eq!(reasons(&desired, "media", "directory//srv/media"), []);
    assert!(clause(&desired, "books", "container/reader", Reason::UserModule).contains("reader.container:5"));
    assert!(clause(&desired, "desk", "container/box", Reason::UserModule).contains("%h"));
}

#[test]
fn a_network_that_is_only_named_is_made_by_nobody_and_namespaces_are_needed() {
    let container = |lines: &str| format!("[Container]\n{IMAGE}{lines}");
    let world = World::of(&[(
        "feed",
        &[
            ("feed.network", "[Network]\nLabel=a=b\n"),
            ("hub.container", &container("ContainerName=hub\nNetwork=feed\nPublishPort=[::]:18084:8080\n")),
            ("opt.container", &container("Network=feed.network:mtu=1400\n")),
            ("side.container", &container("Network=container:hub\n")),
            ("side2.container", &container("Network=hub.container\n")),
            ("far.container", &container("Network=container:elsewhere\n")),
        ],
    )]);
    let desired = world.desired();
    assert_eq!(needs(&desired, "feed", "container/hub"), ["network feed"]);
    assert_eq!(needs(&desired, "feed", "container/opt"), ["feed network/feed"]);
    assert_eq!(needs(&desired, "feed", "container/side"), ["feed container/hub"]);
    assert_eq!(needs(&desired, "feed", "container/side2"), ["feed container/hub"]);
    assert_eq!(needs(&desired, "feed", "container/far"), ["container elsewhere"]);
}

#[test]
fn two_files_that_make_one_unit_are_both_held() {
    let container = |lines: &str| format!("[Container]\n{IMAGE}{lines}");
    let world = World::of(&[(
        "jobs",
        &[
            ("job.container", &container("ContainerName=job-c\n")),
            ("job.kube", "[Kube]\nYaml=job.yaml\n"),
            ("job.yaml", YAML),
            ("box.pod", "[Pod]\nPodName=box\n"),
            ("box-pod.container", &container("ContainerName=boxpod\n")),
            ("other.container", &container("")),
            ("main.container", &container("ContainerName=job-main\n")),
        ],
    )]);
    let desired = world.desired();
    let told = "both jobs/job.container and jobs/job.kube make the unit job.service";
    assert_eq!(clause(&desired, "jobs", "container/job", Reason::ClaimedTwice), told);
    assert_eq!(clause(&desired, "jobs", "kube/job", Reason::ClaimedTwice), told);
    assert!(clause(&desired, "jobs", "pod/box", Reason::ClaimedTwice).contains("box-pod.service"));
    assert!(clause(&desired, "jobs", "container/box-pod", Reason::ClaimedTwice).contains("box-pod.service"));
    assert_eq!(reasons(&desired, "jobs", "container/other"), []);
    // What the YAML mounts and runs counts as if the Quadlet file said it.
    assert_eq!(needs(&desired, "jobs", "kube/job"), ["jobs directory//srv/job"]);
    assert!(get(&desired, "jobs", "kube/job").needs.contains(&Need::Image("localhost/app:1.27.3".to_owned())));
    let told = clause(&desired, "jobs", "container/main", Reason::ClaimedTwice);
    assert_eq!(told, "both jobs/job.kube and jobs/main.container make a container or pod named job-main");
    // The YAML travels beside its file.
    let Body::Quadlet { assets, .. } = &get(&desired, "jobs", "kube/job").body else { panic!("no Quadlet file") };
    assert_eq!(assets.keys().collect::<Vec<_>>(), [&path("/etc/containers/systemd/holdfast/jobs/job.yaml")]);
}

#[test]
fn a_module_for_a_users_own_manager_is_held_and_makes_no_empty_directory() {
    let user = format!(
        "[Container]\n{IMAGE}UserNS=keep-id:uid=1000,gid=1000\nVolume=%h/.config/user/data:/data:Z,U\n\
         PublishPort=80:8080\n[Install]\nWantedBy=default.target\n"
    );
    let desired = World::of(&[
        (
            "user",
            &[("user.container", &user), ("plain.container", &format!("[Container]\n{IMAGE}PublishPort=80:80\n"))],
        ),
        ("web", &[("web.container", &format!("[Container]\n{IMAGE}PublishPort=80:8080\n"))]),
    ])
    .desired();
    assert_eq!(keys(&desired, "user"), ["container/plain", "container/user"]);
    assert!(clause(&desired, "user", "container/plain", Reason::UserModule).contains("user.container:"));
    assert_eq!(reasons(&desired, "web", "container/web"), [], "a module that is held as a whole takes no port away");
}

#[test]
fn secrets_and_env_files_that_are_not_there_are_told_before_the_start() {
    let api = format!(
        "[Container]\n{IMAGE}ContainerName=api\nSecret=api-password,type=env,target=API_PASSWORD\n\
         EnvironmentFile=./api.env\nEnvironmentFile=/etc/containers/environment/%N.env\n"
    );
    let desired = World::of(&[("api", &[("api.container", &api), ("api.env.example", "A=1\n")])]).desired();
    assert_eq!(
        needs(&desired, "api", "container/api"),
        ["env /etc/containers/environment/api.env", "secret api-password"]
    );
    let told = clause(&desired, "api", "container/api", Reason::MissingEnvFile);
    assert_eq!(told, "it refers to the environment file api.env, which is not in its module; api.env.example is there");
    let hint = get(&desired, "api", "container/api").troubles[0].hint.clone();
    let command = "cp /etc/holdfast/modules/api/api.env.example /etc/holdfast/modules/api/api.env";
    assert_eq!(hint.as_deref(), Some(command));

    let world = World::of(&[("api", &[("api.container", &api), ("api.env", "A=1\n")])]);
    let desired = world.desired();
    assert_eq!(reasons(&desired, "api", "container/api"), []);
    let wanted = world.wanted();
    assert_eq!(wanted.paths.get(&path("/etc/containers/systemd/holdfast/api/api.env")), Some(&true));
    assert_eq!(wanted.paths.get(&path("/etc/containers/environment/api.env")), Some(&false));
}

#[test]
fn a_confirmed_resource_asks_for_neither_image_nor_listeners() {
    let web = format!("[Container]\n{IMAGE}PublishPort=80:80\n");
    let world = World::of(&[("web", &[("web.container", &web)])]);
    let pin = crate::ledger::Pin {
        written: "localhost/app:1.27.3".to_owned(),
        deployed: "sha256:1".to_owned(),
        image_id: "1".to_owned(),
    };
    let hash = hash(&world.desired(), "web", "container/web");
    let digest = "0".repeat(64);
    let entry = Entry {
        hash: Some(hash),
        pin: Some(pin),
        unit: Some("old.service".to_owned()),
        paths: [(path("/srv/gone"), "marked".to_owned()), (path("/etc/x"), digest)].into(),
        mounts: [("/data".to_owned(), path("/srv/before"))].into(),
        ..Entry::default()
    };
    let world = world.own("web", "container/web", entry.clone());
    let found = world.wanted();
    assert!(found.images.is_empty() && !found.listeners);
    assert_eq!(found.units.iter().collect::<Vec<_>>(), ["old.service", "web.service"]);
    assert_eq!(found.paths.get(&path("/srv/gone")), Some(&false));
    assert_eq!(found.paths.get(&path("/etc/x")), Some(&true));
    assert_eq!(found.paths.get(&path("/srv/before")), Some(&false));
    let world = world.own("web", "container/web", Entry { intent: true, ..entry });
    assert!(world.wanted().listeners);
    assert!(world.desired().modules["web"].resources.contains_key(&key("container/web")));
}
