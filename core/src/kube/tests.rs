use super::read;
use crate::quadlet::{MountType, QuadletFacts};

const TWO_DOCUMENTS: &str = r#"
apiVersion: v1
kind: Pod
metadata: {name: job}
spec:
  initContainers:
  - {name: first, image: "localhost/init:1"}
  containers:
  - name: main
    image: localhost/app:1.27.3
    env:
    - {name: A, value: b}
    - name: PASSWORD
      valueFrom: {secretKeyRef: {name: api, key: p}}
    - name: MAYBE
      valueFrom: {secretKeyRef: {name: maybe, key: p, optional: true}}
    envFrom:
    - configMapRef: {name: given}
    ports:
    - {containerPort: 80, hostPort: 8080, hostIP: 127.0.0.1}
    - {containerPort: 53, hostPort: 53, protocol: UDP}
    - {containerPort: 90}
    volumeMounts:
    - {name: d, mountPath: "/data:Z"}
    - {name: c, mountPath: /claim, readOnly: true}
    - {name: e, mountPath: /scratch}
  volumes:
  - {name: d, hostPath: {path: /srv//job/, type: Directory}}
  - name: c
    persistentVolumeClaim:
      claimName: job-data
  - {name: e, emptyDir: {}}
  - {name: s, secret: {secretName: made-here}}
---
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
spec:
  replicas: 1
  template:
    spec:
      hostNetwork: true
      containers:
      - {name: a, image: localhost/web:1, ports: [{containerPort: 80, hostPort: 80}]}
---
kind: ConfigMap
metadata: {name: given}
data: {x: y}
---
kind: Secret
metadata: {name: made-here}
---
kind: Service
spec: {ports: [{port: 80}]}
---
"#;

#[test]
fn needs_and_claims_of_all_documents() -> Result<(), super::KubeError> {
    let facts = read(TWO_DOCUMENTS)?;
    assert_eq!(facts.pods, ["job", "web-pod"]);
    assert_eq!(facts.containers, ["job-first", "job-main", "web-pod-a"]);
    let mounts: Vec<_> =
        facts.mounts.iter().map(|m| (m.kind, m.source.as_str(), m.target.as_str(), m.read_only, m.line)).collect();
    assert_eq!(
        mounts,
        [
            (MountType::Bind, "/srv/job", "/data", false, Some(28)),
            (MountType::Volume, "job-data", "/claim", true, Some(31)),
        ]
    );
    assert_eq!(facts.relabels.iter().map(ToString::to_string).collect::<Vec<_>>(), ["/srv/job"]);
    let ports: Vec<String> = facts.ports.iter().map(ToString::to_string).collect();
    assert_eq!(ports, ["127.0.0.1:8080/tcp", "0.0.0.0:53/udp"], "with the host's network nothing is published");
    assert_eq!(
        facts.images.iter().collect::<Vec<_>>(),
        ["localhost/app:1.27.3", "localhost/init:1", "localhost/web:1"]
    );
    assert_eq!(facts.secrets.iter().collect::<Vec<_>>(), ["api"]);
    assert!(facts.config_maps.is_empty());

    let mut quadlet = QuadletFacts::default();
    facts.add_to(&mut quadlet);
    assert_eq!((quadlet.mounts.len(), quadlet.ports.len(), quadlet.secrets.len()), (2, 2, 1));
    assert_eq!(quadlet.mounts[0].line, None);
    Ok(())
}

#[test]
fn errors_have_their_line() {
    let cases = [
        ("kind: Pod\nmetadata: {name: x\n", 2..=3),
        ("kind: Pod\nspec:\n  containers: 5\n", 3..=3),
        ("kind: Pod\nspec:\n  containers:\n  - name: a\n    ports:\n    - hostPort: 99999\n", 6..=6),
        ("kind: Pod\nspec:\n  containers:\n  - name: a\n    ports:\n    - hostPort: http\n", 6..=6),
    ];
    for (text, lines) in cases {
        let error = read(text).unwrap_err();
        assert!(lines.contains(&error.line), "{text:?}: {error}");
        assert!(!error.message.is_empty() && !error.message.contains('\n'), "{error}");
    }
    assert_eq!(read("").unwrap(), super::KubeFacts::default());
}
