use std::collections::BTreeSet;
use std::future::Future;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{oneshot, watch};
use tokio::task::JoinHandle;
use zlink_idl::{CustomType, Interface};

use super::client::{CallError, Client};
use super::follow::answer;
use super::session::Session;
use super::wire::{Messages, Reply};
use super::{INTERFACE, INTERFACES, SERVICE, serve};
use crate::apply::{Busy, Caller};
use crate::desk::Desk;
use crate::desk::job::{Job, StepEnd, Work};
use crate::error::AgentError;
use crate::settings::Settings;
use crate::store::{Lock, Store};

/// An agent in a directory of its own: with a module and a hold in its last look, and nothing that it could apply.
struct Place {
    root: tempfile::TempDir,
    desk: Arc<Desk>,
    agent: Option<Agent>,
}

/// A serving agent, until it is told to stop.
struct Agent {
    stop: oneshot::Sender<()>,
    served: JoinHandle<()>,
}

impl Agent {
    fn start(listener: UnixListener, desk: &Arc<Desk>) -> Self {
        let (stop, stopped) = oneshot::channel();
        let stopped = async { drop(stopped.await) };
        Self { stop, served: tokio::spawn(serve(listener, Arc::clone(desk), stopped)) }
    }

    async fn stop(self) {
        self.stop.send(()).unwrap();
        soon(self.served).await.unwrap();
    }
}

impl Place {
    /// None without root: what the desk writes is root's.
    fn open() -> Option<Self> {
        if !rustix::process::geteuid().is_root() {
            eprintln!("not tested: the desk needs root");
            return None;
        }
        let root = tempfile::tempdir().unwrap();
        for directory in ["modules/web", "run"] {
            std::fs::create_dir_all(root.path().join(directory)).unwrap();
        }
        std::fs::write(root.path().join("run/look.json"), LOOK).unwrap();
        let at = |name: &str| root.path().join(name);
        let desk = Desk::open(Settings {
            directories: Vec::new(),
            modules_dir: at("modules"),
            state_dir: at("state"),
            run_dir: at("run"),
            quadlet_dir: at("quadlets"),
            unit_dir: at("units"),
            tmpfiles_dir: at("tmpfiles"),
            podman_socket: at("podman.sock"),
            ..Settings::default()
        });
        let listener = UnixListener::bind(at("socket")).unwrap();
        let agent = Some(Agent::start(listener, &desk));
        Some(Self { root, desk, agent })
    }

    fn socket(&self) -> PathBuf {
        self.root.path().join("socket")
    }

    async fn client(&self) -> Client {
        Client::connect(self.socket()).await.unwrap()
    }

    async fn call(&self, method: &str, parameters: Value) -> Result<Value, CallError> {
        soon(self.client().await.call(method, parameters)).await
    }

    /// Sends bytes as they are and gives all that comes back.
    async fn raw(&self, bytes: &[u8]) -> String {
        let mut stream = UnixStream::connect(self.socket()).await.unwrap();
        stream.write_all(bytes).await.unwrap();
        stream.shutdown().await.unwrap();
        let mut answer = String::new();
        soon(stream.read_to_string(&mut answer)).await.unwrap();
        answer
    }

    /// As raw, for a method by its whole name.
    async fn reply(&self, method: &str, parameters: &Value) -> Value {
        let answer = self.raw(format!("{}\0", json!({ "method": method, "parameters": parameters })).as_bytes()).await;
        serde_json::from_str(answer.strip_suffix('\0').unwrap()).unwrap()
    }

    /// Whoever has it changes the host: jobs wait.
    async fn lock(&self) -> Lock {
        let store = Store::open(&self.root.path().join("state"), &self.root.path().join("quadlets")).unwrap();
        store.lock(Busy::Refuse).await.unwrap()
    }

    /// A job that has its turn, and waits for the lock.
    async fn running(&self) -> Arc<Job> {
        let job = self.desk.start(Work::Apply, vec!["web".to_owned()], Busy::Wait, nobody()).unwrap();
        soon(async {
            while job.now().state.token() != "running" {
                tokio::task::yield_now().await;
            }
        })
        .await;
        job
    }

    /// Lets such a job end, without anything done: its module has gone.
    async fn fail(&self, lock: Lock) {
        std::fs::remove_dir(self.root.path().join("modules/web")).unwrap();
        drop(lock);
        soon(self.desk.jobs()[0].wait()).await;
    }

    async fn busy(&self, expected: bool) {
        soon(async {
            while self.desk.activity.idle().is_none() != expected {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        })
        .await;
    }
}

const LOOK: &str = r#"{
    "schema": 1, "observed_usec": 1700000000000000,
    "last": { "report": "0123456789abcdef0123456789abcdef", "finished_usec": 1600000000000000 },
    "modules": {}, "changes": [], "steps": [], "notes": [],
    "holds": [
        { "module": "web", "resource": "container/web", "kind": "container", "unit": "web.service", "reason": "found",
          "also": [], "cause": "container/web", "cause_module": "web", "sentence": "a container \"web\" exists",
          "hint": null, "waiting_on_take": true, "since_usec": 1500000000000000,
          "running": null, "pinned": null, "direction": null },
        { "module": "db", "resource": "volume/db", "kind": "volume", "unit": null, "reason": "masked",
          "also": [], "cause": "volume/db", "cause_module": "db", "sentence": "it is masked",
          "hint": null, "waiting_on_take": false, "since_usec": 1500000000000000,
          "running": null, "pinned": null, "direction": null }
    ]
}"#;

async fn soon<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(20), future).await.expect("it takes too long")
}

fn nobody() -> Caller {
    Caller { uid: 65534, loginuid: None, command_line: String::new() }
}

fn interface(name: &str) -> Interface<'static> {
    let (_, description) = INTERFACES.into_iter().find(|(known, _)| *known == name).unwrap();
    Interface::try_from(description).unwrap()
}

fn keys(object: &Value) -> BTreeSet<String> {
    object.as_object().unwrap().keys().cloned().collect()
}

/// The fields of a type that the interface describes.
fn fields(interface: &Interface<'_>, name: &str) -> BTreeSet<String> {
    let object = interface.custom_types().find_map(|known| match known {
        CustomType::Object(object) if object.name().as_str() == name => Some(object),
        _ => None,
    });
    object.unwrap().fields().map(|field| field.name().as_str().to_owned()).collect()
}

#[tokio::test]
async fn what_is_described_is_answered_and_nothing_else() {
    let Some(place) = Place::open() else { return };
    for (name, _) in INTERFACES {
        let interface = interface(name);
        assert_eq!(interface.name().as_str(), name);
        for method in interface.methods() {
            // What must be given, and a typo: it is refused only after all of the others were known.
            let needed = method.inputs().filter_map(|input| {
                let value = match input.ty().to_string().as_str() {
                    "string" => json!("x"),
                    "int" => json!(1),
                    "[]string" => json!([]),
                    optional => return optional.strip_prefix('?').map(|_| None).unwrap(),
                };
                Some((input.name().as_str().to_owned(), value))
            });
            let mut given: Map<String, Value> = needed.collect();
            let method = format!("{name}.{}", method.name().as_str());
            given.insert("tpyo".to_owned(), json!(1));
            let refused =
                json!({ "error": "org.varlink.service.InvalidParameter", "parameters": { "parameter": "tpyo" } });
            assert_eq!(place.reply(&method, &given.clone().into()).await, refused, "{method}");
            for missing in given.keys().filter(|key| *key != "tpyo") {
                let mut given = given.clone();
                given.remove(missing);
                let reply = place.reply(&method, &given.into()).await;
                assert_eq!(reply["parameters"], json!({ "parameter": missing }), "{method}");
            }
        }
    }
    for (method, error, parameters) in [
        ("io.holdfast.Agent.Rollback", "MethodNotFound", json!({ "method": "io.holdfast.Agent.Rollback" })),
        ("io.holdfast.Agent.GetInfo", "MethodNotFound", json!({ "method": "io.holdfast.Agent.GetInfo" })),
        ("io.holdfast.Agent.", "MethodNotFound", json!({ "method": "io.holdfast.Agent." })),
        ("io.holdfast.Other.Plan", "InterfaceNotFound", json!({ "interface": "io.holdfast.Other" })),
        ("Plan", "InterfaceNotFound", json!({ "interface": "Plan" })),
        ("", "InterfaceNotFound", json!({ "interface": "" })),
    ] {
        let refused = json!({ "error": format!("{SERVICE}.{error}"), "parameters": parameters });
        assert_eq!(place.reply(method, &json!({})).await, refused, "{method}");
    }
}

#[tokio::test]
async fn replies_are_as_described() {
    let Some(place) = Place::open() else { return };
    for (name, method, parameters) in [
        (SERVICE, "GetInfo", json!(null)),
        (SERVICE, "GetInterfaceDescription", json!({ "interface": INTERFACE })),
        (INTERFACE, "ListModules", json!({})),
        (INTERFACE, "ListHolds", json!({})),
        (INTERFACE, "ListJobs", json!({})),
    ] {
        let interface = interface(name);
        let described = interface.methods().find(|known| known.name().as_str() == method).unwrap();
        let described = described.outputs().map(|output| output.name().as_str().to_owned()).collect();
        let reply = place.reply(&format!("{name}.{method}"), &parameters).await;
        assert_eq!(keys(&reply), BTreeSet::from(["parameters".to_owned()]), "{reply}");
        assert_eq!(keys(&reply["parameters"]), described, "{method}");
    }

    let agent = interface(INTERFACE);
    let step = StepEnd {
        seq: 0,
        step: String::new(),
        module: String::new(),
        resource: String::new(),
        result: "done",
        reason: String::new(),
    };
    let told = answer(&Job::new(1, Work::Apply, vec![], nobody(), 0), Some(step), Value::Null);
    assert_eq!(keys(&told["job"]), fields(&agent, "Job"));
    assert_eq!(keys(&told["ended"]), fields(&agent, "Step"));
    for method in ["Apply", "WaitJob"] {
        let described = agent.methods().find(|known| known.name().as_str() == method).unwrap();
        assert_eq!(keys(&told), described.outputs().map(|output| output.name().as_str().to_owned()).collect());
    }
}

#[test]
fn every_error_is_described() {
    let source = || Box::new(std::io::Error::other(""));
    let agent = interface(INTERFACE);
    let described: BTreeSet<&str> = agent.errors().map(|error| error.name().as_str()).collect();
    for error in [
        AgentError::NoSuchModule { name: String::new(), assigned: Vec::new() },
        AgentError::NoSuchReport(String::new()),
        AgentError::Busy { pid: 1, since: String::new() },
        AgentError::JobInProgress { id: 1, kind: "apply" },
        AgentError::Settings(source()),
        AgentError::Store(source()),
        AgentError::Observe(source()),
        AgentError::ReportNotDurable(source()),
        AgentError::Journal(source()),
    ] {
        assert!(described.contains(error.token()), "{}", error.token());
    }
}

#[tokio::test]
async fn the_last_look_is_told_at_once() {
    let Some(place) = Place::open() else { return };
    let modules = place.call("ListModules", json!({})).await.unwrap();
    let expected = json!({
        "observed_usec": 1_700_000_000_000_000_u64, "last_report": "0123456789abcdef0123456789abcdef",
        "last_apply_usec": 1_600_000_000_000_000_u64, "modules": [],
    });
    assert_eq!(modules, expected);

    let holds = place.call("ListHolds", json!({})).await.unwrap();
    let look: Value = serde_json::from_str(LOOK).unwrap();
    assert_eq!(holds, json!({ "observed_usec": look["observed_usec"], "holds": look["holds"] }));
    let found = place.call("ListHolds", json!({ "reason": "found" })).await.unwrap();
    assert_eq!(found["holds"], json!([look["holds"][0]]));
    let refused = place.call("ListHolds", json!({ "reason": "lost" })).await.unwrap_err();
    assert_eq!(refused.token, "InvalidParameter");
}

#[tokio::test]
async fn errors_say_what_the_desk_says() {
    let Some(place) = Place::open() else { return };
    for (method, parameters) in [
        ("Plan", json!({ "modules": ["nope"] })),
        ("Apply", json!({ "modules": ["nope"] })),
        ("ListHolds", json!({ "module": "nope" })),
        ("Hold", json!({ "module": "nope", "note": "why" })),
        ("Unhold", json!({ "module": "nope" })),
    ] {
        let error = place.call(method, parameters).await.unwrap_err();
        let expected = CallError {
            token: "NoSuchModule".to_owned(),
            message: "no module \"nope\" is assigned to this host; assigned are web".to_owned(),
        };
        assert_eq!(error, expected, "{method}");
    }
    let error = place.call("Hold", json!({ "module": "web", "note": " " })).await.unwrap_err();
    assert_eq!(error.token, "InvalidParameter");
    for method in ["WaitJob", "CancelJob"] {
        assert_eq!(place.call(method, json!({ "id": 7 })).await.unwrap_err().token, "NoSuchJob");
    }
}

#[tokio::test]
async fn nonsense_is_hung_up_on() {
    let Some(place) = Place::open() else { return };
    let deep = format!("{{\"method\":\"a.b\",\"parameters\":{}", "[".repeat(100_000));
    for bytes in [
        &b"\0"[..],
        b"{\0",
        b"[]\0",
        b"5\0",
        b"\xff\xfe\0",
        b"{\"method\":5}\0",
        b"{\"parameters\":{}}\0",
        b"{\"method\":\"a.b\",\"more\":1}\0",
        b"{} {}\0",
        // A whole call, but its end was never said.
        b"{\"method\":\"io.holdfast.Agent.ListModules\"}",
        format!("{deep}\0").as_bytes(),
    ] {
        assert_eq!(place.raw(bytes).await, "", "{}", String::from_utf8_lossy(bytes));
    }
    place.call("ListModules", json!({})).await.unwrap();
}

#[tokio::test]
async fn a_message_of_ten_megabytes_is_not_read() {
    let Some(place) = Place::open() else { return };
    let mut stream = UnixStream::connect(place.socket()).await.unwrap();
    let mut sent = 0;
    let error = soon(async {
        loop {
            match stream.write(&[b' '; 64 * 1024]).await {
                Ok(length) => sent += length,
                Err(error) => break error,
            }
        }
    })
    .await;
    assert_eq!(error.kind(), std::io::ErrorKind::BrokenPipe);
    assert!(sent < 2 * 1024 * 1024, "{sent} bytes were taken");
    place.call("ListModules", json!({})).await.unwrap();
}

#[tokio::test]
async fn calls_are_answered_in_their_order_and_one_way_calls_are_not() {
    let Some(place) = Place::open() else { return };
    let answer = place
        .raw(
            b"{\"method\":\"org.varlink.service.GetInfo\",\"oneway\":true}\0\
              {\"method\":\"org.varlink.service.Nope\",\"oneway\":true}\0\
              {\"method\":\"io.holdfast.Agent.ListJobs\"}\0\
              {\"method\":\"org.varlink.service.Nope\",\"more\":true}\0",
        )
        .await;
    let expected = "{\"parameters\":{\"jobs\":[]}}\0\
        {\"error\":\"org.varlink.service.MethodNotFound\",\"parameters\":{\"method\":\"org.varlink.service.Nope\"}}\0";
    assert_eq!(answer, expected);
}

#[tokio::test]
async fn nobody_waits_for_anybody() {
    let Some(place) = Place::open() else { return };
    let lock = place.lock().await;
    place.running().await;
    let mut others = Vec::new();
    for _ in 0..50 {
        let (mut waits, mut says_nothing) = (place.client().await, place.client().await);
        others.push(tokio::spawn(async move { waits.call("WaitJob", json!({ "id": 1 })).await.map(drop) }));
        others.push(tokio::spawn(async move { says_nothing.call("ListJobs", json!({})).await.map(drop) }));
    }
    let calls = (0..200).map(|_| {
        let socket = place.socket();
        tokio::spawn(async move {
            let mut client = Client::connect(socket).await?;
            client.call("ListJobs", json!({})).await?;
            client.call("ListHolds", json!({ "module": null })).await
        })
    });
    for call in calls.collect::<Vec<_>>() {
        soon(call).await.unwrap().unwrap();
    }
    place.fail(lock).await;
    for (place, other) in others.into_iter().enumerate() {
        let waited = place % 2 == 0;
        assert_eq!(soon(other).await.unwrap().is_err_and(|error| error.token == "NoSuchModule"), waited);
    }
}

#[tokio::test]
async fn a_job_is_told_until_its_end() {
    let Some(place) = Place::open() else { return };
    let lock = place.lock().await;
    let mut client = place.client().await;
    let mut replies = client.more("Apply", json!({ "modules": ["web"] })).await.unwrap();
    let mut states = Vec::new();
    while states.last().is_none_or(|state| state != "running") {
        let Reply { error, parameters, continues } = soon(replies.next()).await.unwrap().unwrap();
        assert!(continues && error.is_none());
        assert_eq!((&parameters["job"]["id"], &parameters["report"]), (&json!(1), &Value::Null));
        assert_eq!(parameters["job"]["modules"], json!(["web"]));
        states.push(parameters["job"]["state"].as_str().unwrap().to_owned());
    }
    states.dedup();
    assert_eq!(states, ["queued", "running"]);

    let refused = place.call("Apply", json!({ "modules": [] })).await.unwrap_err();
    assert_eq!((refused.token.as_str(), refused.message.as_str()), ("JobInProgress", "job 1 (apply) runs"));
    assert_eq!(place.call("ListJobs", json!({})).await.unwrap()["jobs"][0]["state"], "running");

    // One that waits for its turn can be canceled before anything is done.
    let mut queued = place.client().await;
    let mut second = queued.more("Apply", json!({ "modules": [], "wait": true })).await.unwrap();
    assert_eq!(soon(second.next()).await.unwrap().unwrap().parameters["job"]["state"], "queued");
    assert_eq!(place.call("CancelJob", json!({ "id": 2 })).await.unwrap(), json!({}));
    let last = loop {
        let reply = soon(second.next()).await.unwrap().unwrap();
        if !reply.continues {
            break reply.parameters;
        }
    };
    assert_eq!((&last["job"]["result"], &last["report"]), (&json!("canceled"), &Value::Null));
    assert_eq!(soon(second.next()).await, Ok(None));
    assert_eq!(place.call("CancelJob", json!({ "id": 2 })).await.unwrap_err().token, "NotCancelable");

    place.fail(lock).await;
    let error = loop {
        match soon(replies.next()).await {
            Ok(reply) => assert!(reply.unwrap().continues),
            Err(error) => break error,
        }
    };
    assert_eq!(error.token, "NoSuchModule");
    assert_eq!(soon(replies.next()).await, Ok(None));
    // The connection is good for further calls, and the job is still known.
    assert_eq!(client.call("WaitJob", json!({ "id": 1 })).await.unwrap_err(), error);
    assert_eq!(client.call("ListJobs", json!({})).await.unwrap()["jobs"][0]["result"], "failed");
}

#[tokio::test]
async fn a_one_way_apply_is_done() {
    let Some(place) = Place::open() else { return };
    let lock = place.lock().await;
    let call = json!({ "method": "io.holdfast.Agent.Apply", "parameters": { "modules": ["web"] }, "oneway": true });
    assert_eq!(place.raw(format!("{call}\0").as_bytes()).await, "");
    assert_eq!(place.desk.active_job().map(|job| job.id), Some(1));
    place.fail(lock).await;
}

#[tokio::test]
async fn who_hangs_up_or_does_not_read_changes_nothing_and_keeps_nobody_waiting() {
    let Some(place) = Place::open() else { return };
    let lock = place.lock().await;
    let mut gone = place.client().await;
    let mut replies = gone.more("Apply", json!({ "modules": ["web"] })).await.unwrap();
    soon(replies.next()).await.unwrap();
    drop(gone);
    let mut deaf = place.client().await;
    deaf.more("WaitJob", json!({ "id": 1 })).await.unwrap();
    place.busy(true).await;
    soon(place.desk.heard()).await;
    assert_eq!(place.desk.active_job().map(|job| job.id), Some(1));
    place.fail(lock).await;
    soon(place.desk.heard()).await;
    place.busy(false).await;
    place.call("ListModules", json!({})).await.unwrap();
}

#[tokio::test]
async fn only_a_call_keeps_the_agent() {
    let Some(place) = Place::open() else { return };
    let mut idle = place.client().await;
    idle.call("ListJobs", json!({})).await.unwrap();
    place.busy(false).await;
    let lock = place.lock().await;
    place.running().await;
    let waits = tokio::spawn(async move { idle.call("WaitJob", json!({ "id": 1 })).await });
    place.busy(true).await;
    place.fail(lock).await;
    soon(waits).await.unwrap().unwrap_err();
    place.busy(false).await;
}

#[tokio::test]
async fn a_stop_ends_connections_after_their_calls() {
    let Some(mut place) = Place::open() else { return };
    let lock = place.lock().await;
    place.running().await;
    let (mut idle, mut waits) = (UnixStream::connect(place.socket()).await.unwrap(), place.client().await);
    let waits = tokio::spawn(async move { waits.call("WaitJob", json!({ "id": 1 })).await });
    place.busy(true).await;
    // Who has only just connected has not yet had the time to call. It was taken before the one after it was answered.
    let mut late = place.client().await;
    place.call("ListModules", json!({})).await.unwrap();
    let stop = tokio::spawn(place.agent.take().unwrap().stop());
    tokio::time::sleep(Duration::from_millis(50)).await;
    std::fs::remove_file(place.socket()).unwrap();
    soon(late.call("ListModules", json!({}))).await.unwrap();
    // Who says nothing is hung up on, while the call is still answered.
    assert_eq!(soon(idle.read(&mut [0])).await.unwrap(), 0);
    assert_eq!(idle.write(b"{").await.unwrap_err().kind(), std::io::ErrorKind::BrokenPipe);
    assert!(!stop.is_finished());
    place.fail(lock).await;
    assert_eq!(soon(waits).await.unwrap().unwrap_err().token, "NoSuchModule");
    soon(stop).await.unwrap();
}

/// As systemd does: the socket outlives the agents.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn no_call_is_lost_between_two_agents() {
    let Some(mut place) = Place::open() else { return };
    place.agent.take().unwrap().stop().await;
    let path = place.root.path().join("socket of systemd");
    let socket = std::os::unix::net::UnixListener::bind(&path).unwrap();
    socket.set_nonblocking(true).unwrap();
    let (over, calls) = (watch::Sender::new(false), 8);
    let callers: Vec<_> = (0..calls)
        .map(|number| {
            let (path, over) = (path.clone(), over.subscribe());
            tokio::spawn(async move {
                let mut client = Client::connect(&path).await.unwrap();
                let mut answered = 0;
                while !*over.borrow() {
                    // Half of them keep their connection.
                    if number % 2 == 0 {
                        client = Client::connect(&path).await.unwrap();
                    }
                    soon(client.call("ListModules", json!({}))).await.unwrap();
                    answered += 1;
                }
                answered
            })
        })
        .collect();
    for _ in 0..8 {
        let listener = UnixListener::from_std(socket.try_clone().unwrap()).unwrap();
        let agent = Agent::start(listener, &place.desk);
        tokio::time::sleep(Duration::from_millis(20)).await;
        agent.stop().await;
    }
    over.send_replace(true);
    let agent = Agent::start(UnixListener::from_std(socket).unwrap(), &place.desk);
    for caller in callers {
        assert!(soon(caller).await.unwrap() > 20);
    }
    agent.stop().await;
}

#[tokio::test]
async fn nobody_but_root_is_answered() {
    let Some(place) = Place::open() else { return };
    // Of this thread only: its sockets are somebody else's.
    let pair = std::thread::spawn(|| {
        let nobody = rustix::process::Uid::from_raw(65534);
        rustix::thread::set_thread_res_uid(nobody, nobody, nobody).unwrap();
        std::os::unix::net::UnixStream::pair().unwrap()
    });
    let (ours, theirs) = pair.join().unwrap();
    let ends = [ours, theirs].map(|end| {
        end.set_nonblocking(true).unwrap();
        UnixStream::from_std(end).unwrap()
    });
    let [ours, mut theirs] = ends;
    let (_stopping, stop) = watch::channel(false);
    let session = tokio::spawn(Session::serve(ours, Arc::clone(&place.desk), stop));
    theirs.write_all(b"{\"method\":\"org.varlink.service.GetInfo\"}\0").await.unwrap();
    let reply = soon(Messages::new(&mut theirs, 1024).next()).await.unwrap().unwrap();
    assert_eq!(reply, b"{\"error\":\"org.varlink.service.PermissionDenied\",\"parameters\":{}}");
    drop(theirs);
    soon(session).await.unwrap().unwrap();
}
