use std::collections::BTreeMap;
use std::path::Path;

use holdfast_core::observed::Container;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::{Engine, ListedContainer};
use crate::observe::ObserveError;

fn read(json: &str) -> BTreeMap<String, Container> {
    let listed: Vec<ListedContainer> = serde_json::from_str(json).unwrap();
    listed.into_iter().map(ListedContainer::into_observed).collect()
}

fn claims(container: &Container) -> Vec<String> {
    container.ports.iter().map(ToString::to_string).collect()
}

#[test]
fn a_list_is_read() {
    let seen = read(
        r#"[{"Id":"aa11","Names":["web"],"Image":"localhost/web:2","ImageID":"sha256:beef","Labels":{"PODMAN_SYSTEMD_UNIT":"web.service","io.holdfast.module":"proxy"},
            "State":"running","Status":"healthy","StartedAt":1700000001,"ExitCode":0,"Pid":0,"Pod":"","PodName":"","IsInfra":false,"AutoRemove":true,"Restarts":3,
            "Networks":["front"],"Namespaces":{},"Size":null,"Command":null,"Unheard":1,
            "Ports":[{"host_ip":"","container_port":80,"host_port":8080,"range":3,"protocol":"tcp"},{"host_ip":"::","container_port":53,"host_port":53,"range":1,"protocol":"udp"},
                     {"host_ip":"127.0.0.1","container_port":9,"host_port":9,"range":0,"protocol":"tcp,udp"},{"container_port":7,"host_port":0,"range":1,"protocol":"tcp"}]},
            {"Id":"bb22","Names":["old"],"Labels":null,"Networks":null,"Ports":[{"host_ip":"","host_port":80,"range":1,"protocol":"tcp"}],"State":"exited","Status":"unhealthy","ExitCode":137,"StartedAt":-62135596800},
            {"Id":"cc33","Names":["p-infra"],"State":"running","Pod":"p1","PodName":"p","IsInfra":true,"Ports":[{"host_ip":"","host_port":443,"range":1,"protocol":"tcp"}]},
            {"Id":"dd44","Names":["member"],"State":"running","Pod":"p1","PodName":"p","Ports":[{"host_ip":"","host_port":443,"range":1,"protocol":"tcp"}]},
            {"Id":"ee55","Names":["paused"],"State":"paused","Status":"Up 3 hours","Ports":[{"host_ip":"","host_port":65535,"range":9,"protocol":"tcp"}]}]"#,
    );
    let web = &seen["web"];
    assert_eq!(
        claims(web),
        [
            "0.0.0.0:8080/tcp",
            "0.0.0.0:8081/tcp",
            "0.0.0.0:8082/tcp",
            "[::]:53/udp",
            "127.0.0.1:9/tcp",
            "127.0.0.1:9/udp",
        ]
    );
    assert_eq!((web.id.as_str(), web.image_id.as_str(), web.restarts), ("aa11", "beef", 3));
    assert_eq!((web.health.as_deref(), web.unit.as_deref()), (Some("healthy"), Some("web.service")));
    assert_eq!((web.auto_remove, web.infra, web.pod.as_deref(), web.started_at), (true, false, None, 1_700_000_001));
    let old = &seen["old"];
    assert_eq!((old.health.as_deref(), old.exit_code, claims(old).len(), old.unit.as_deref()), (None, 137, 0, None));
    assert_eq!(claims(&seen["p-infra"]), ["0.0.0.0:443/tcp"]);
    assert_eq!((claims(&seen["member"]).len(), seen["member"].pod.as_deref()), (0, Some("p")));
    assert_eq!((claims(&seen["paused"]), seen["paused"].health.clone()), (vec!["0.0.0.0:65535/tcp".to_owned()], None));
}

#[test]
fn a_foreign_label_is_not_believed_while_the_container_runs() {
    // The parent of this very process is no conmon of that unit.
    let listed = |state: &str, pid: u32| {
        read(&format!(
            r#"[{{"Id":"a","Names":["x"],"State":"{state}","Pid":{pid},"Labels":{{"PODMAN_SYSTEMD_UNIT":"lie.service"}}}}]"#
        ))
    };
    assert_ne!(listed("running", std::process::id())["x"].unit.as_deref(), Some("lie.service"));
    assert_eq!(listed("exited", 0)["x"].unit.as_deref(), Some("lie.service"));
}

#[tokio::test]
async fn a_missing_socket_is_named() {
    let engine = Engine::new(Path::new("/nowhere/podman.sock"));
    for error in [
        engine.containers().await.unwrap_err(),
        engine.volumes().await.unwrap_err(),
        engine.image("x").await.unwrap_err(),
    ] {
        assert_eq!(error.to_string(), "Podman's API socket /nowhere/podman.sock does not answer");
        assert!(std::error::Error::source(&error).is_some());
    }
}

/// Answers every connection with the same bytes.
fn serve(socket: &Path, answer: &'static str) {
    let listener = tokio::net::UnixListener::bind(socket).unwrap();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut request = [0_u8; 4096];
            assert!(stream.read(&mut request).await.unwrap() > 0);
            stream.write_all(answer.as_bytes()).await.unwrap();
        }
    });
}

#[tokio::test]
async fn answers_are_told_from_silence() {
    let folder = tempfile::tempdir().unwrap();
    let good = folder.path().join("good");
    serve(
        &good,
        "HTTP/1.1 200 OK\r\nLibpod-API-Version: 5.4.2\r\nContent-Type: application/json\r\nContent-Length: 26\r\n\r\n[{\"Id\":\"1\",\"Names\":[\"a\"]}]\n",
    );
    let listed = Engine::new(&good).containers().await.unwrap();
    assert_eq!((listed.podman_version.as_str(), listed.containers.len()), ("5.4.2", 1));

    let gone = folder.path().join("gone");
    serve(
        &gone,
        "HTTP/1.1 404 Not Found\r\nContent-Type: application/json\r\nContent-Length: 46\r\n\r\n{\"cause\":\"c\",\"message\":\"no\",\"response\":404   }",
    );
    let engine = Engine::new(&gone);
    assert_eq!(engine.image("localhost/x:1").await.unwrap(), None);
    assert!(matches!(engine.containers().await, Err(ObserveError::Answer { .. })));

    let broken = folder.path().join("broken");
    serve(
        &broken,
        "HTTP/1.1 500 Oh\r\nContent-Type: application/json\r\nContent-Length: 46\r\n\r\n{\"cause\":\"c\",\"message\":\"no\",\"response\":500   }",
    );
    let engine = Engine::new(&broken);
    assert!(matches!(engine.image("localhost/x:1").await, Err(ObserveError::Answer { .. })));
    assert!(matches!(engine.pods().await, Err(ObserveError::Answer { .. })));
}
