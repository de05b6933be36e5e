//! Clients of the agent that no sensible program is: run on a test host.
//!
//! - `hammer idle bus|socket CALLS CLIENTS IDLE_MS`: all clients call at the very moment when the agent leaves, again and
//!   again; prints the calls that were lost and how many agents answered.
//! - `hammer crowd CLIENTS`: that many clients at once, each with a connection of its own; prints how many were answered.
//! - `hammer vanish CALLS`: asks for an apply and is gone before the answer.
//! - `hammer open REPORT`: prints what OpenReport's file descriptor gives.

use std::collections::{BTreeSet, HashMap};
use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Barrier;
use zbus::{Connection, OwnedFd, OwnedVariant, Proxy};

const NAME: &str = "io.holdfast.Agent1";
const SOCKET: &str = "/run/holdfast/io.holdfast.Agent";

type Answer<T> = Result<T, Box<dyn std::error::Error + Send + Sync>>;

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() -> Answer<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let number = |place: usize| args.get(place).and_then(|word| word.parse::<u64>().ok()).unwrap_or_default();
    match args.first().map(String::as_str) {
        Some("idle") => idle(args[1] == "bus", number(2), number(3), Duration::from_millis(number(4))).await,
        Some("crowd") => crowd(number(1)).await,
        Some("vanish") => vanish(number(1)).await,
        Some("open") => open(&args[1]).await,
        _ => Err("see the source".into()),
    }
}

async fn idle(bus: bool, calls: u64, clients: u64, idle: Duration) -> Answer<()> {
    let barrier = Arc::new(Barrier::new(usize::try_from(clients)?));
    let mut tasks = Vec::new();
    for client in 0..clients {
        let barrier = Arc::clone(&barrier);
        tasks.push(tokio::spawn(async move {
            let (mut lost, mut agents) = (0, BTreeSet::new());
            let connection = Connection::system().await?;
            for round in 0..calls / clients {
                barrier.wait().await;
                // From 15 ms before the moment to 15 ms after it, the clients shortly after each other.
                let shift = Duration::from_micros((round * 7919) % 30_000 + client * 700);
                tokio::time::sleep(idle + shift - Duration::from_millis(15)).await;
                let answer = if bus { ask_bus(&connection).await } else { ask_socket().await };
                match answer {
                    Ok(()) => {
                        agents.insert(agent(&connection).await);
                    }
                    Err(error) => {
                        eprintln!("round {round}, client {client}: {error}");
                        lost += 1;
                    }
                }
            }
            Answer::Ok((lost, agents))
        }));
    }
    let (mut lost, mut agents) = (0, BTreeSet::new());
    for task in tasks {
        let (more, others) = task.await??;
        lost += more;
        agents.extend(others);
    }
    println!("calls {calls} lost {lost} agents {}", agents.len());
    Ok(())
}

async fn ask_bus(connection: &Connection) -> Answer<()> {
    let manager = Proxy::new(connection, NAME, "/io/holdfast/Agent1", "io.holdfast.Agent1.Manager").await?;
    let nothing: HashMap<&str, OwnedVariant> = HashMap::new();
    // As long as sd-bus waits.
    tokio::time::timeout(Duration::from_secs(25), manager.call_method("ListHolds", &("", nothing))).await??;
    Ok(())
}

async fn ask_socket() -> Answer<()> {
    tokio::task::spawn_blocking(|| {
        let mut stream = UnixStream::connect(SOCKET)?;
        stream.set_read_timeout(Some(Duration::from_secs(20)))?;
        stream.write_all(b"{\"method\":\"io.holdfast.Agent.ListHolds\",\"parameters\":{}}\0")?;
        let mut answer = Vec::new();
        let mut byte = [0; 4096];
        while answer.last() != Some(&0) {
            let length = stream.read(&mut byte)?;
            if length == 0 {
                return Err("hung up".into());
            }
            answer.extend_from_slice(&byte[..length]);
        }
        if String::from_utf8_lossy(&answer).contains("\"holds\"") { Ok(()) } else { Err("no holds".into()) }
    })
    .await?
}

/// Which agent has the name now; none between two.
async fn agent(connection: &Connection) -> String {
    let bus = zbus::fdo::DBusProxy::new(connection).await;
    let Ok(bus) = bus else { return String::new() };
    bus.get_name_owner(NAME.try_into().expect("a name")).await.map(|owner| owner.to_string()).unwrap_or_default()
}

async fn crowd(clients: u64) -> Answer<()> {
    let tasks: Vec<_> = (0..clients)
        .map(|client| {
            tokio::spawn(async move {
                // The bus has a limit of connections for each user; the socket has its own.
                if client % 5 == 0 { ask_socket().await } else { ask_bus(&Connection::system().await?).await }
            })
        })
        .collect();
    let mut answered = 0;
    let mut errors = BTreeSet::new();
    for task in tasks {
        match task.await? {
            Ok(()) => answered += 1,
            Err(error) => {
                errors.insert(error.to_string());
            }
        }
    }
    println!("answered {answered} of {clients} {errors:?}");
    Ok(())
}

async fn vanish(calls: u64) -> Answer<()> {
    for _ in 0..calls {
        let connection = Connection::system().await?;
        let wait: HashMap<&str, OwnedVariant> = HashMap::from([("wait", OwnedVariant::from(true))]);
        let modules: Vec<&str> = Vec::new();
        let call = zbus::Message::method_call("/io/holdfast/Agent1", "Apply")
            .destination(NAME)
            .interface("io.holdfast.Agent1.Manager")
            .build(&(modules, wait))?;
        connection.send(&call).await?;
        drop(connection);
        let mut stream = UnixStream::connect(SOCKET)?;
        stream.write_all(
            b"{\"method\":\"io.holdfast.Agent.Apply\",\"more\":true,\"parameters\":{\"modules\":[],\"wait\":true}}\0",
        )?;
    }
    Ok(())
}

async fn open(report: &str) -> Answer<()> {
    let connection = Connection::system().await?;
    let manager = Proxy::new(&connection, NAME, "/io/holdfast/Agent1", "io.holdfast.Agent1.Manager").await?;
    let nothing: HashMap<&str, OwnedVariant> = HashMap::new();
    let fd: OwnedFd = manager.call("OpenReport", &(report, nothing)).await?;
    let fd: std::os::fd::OwnedFd = fd.into();
    let mut text = String::new();
    std::fs::File::from(fd).read_to_string(&mut text)?;
    print!("{text}");
    Ok(())
}
