//! holdfastd: answers on the socket that systemd holds for it, and leaves when nobody asks.
//!
//! No interface is served yet: `holdfast` does its work in its own process. A caller is told so in Varlink's own words
//! and at once, so that nobody waits for an answer that will not come.

use std::os::unix::net::UnixListener as StdListener;
use std::process::ExitCode;
use std::time::Duration;

use holdfast_agent::error::chain;
use holdfast_agent::journal::Journal;
use listenfd::ListenFd;
use sd_notify::NotifyState;
use thiserror::Error;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{UnixListener, UnixStream};
use tokio::signal::unix::{SignalKind, signal};

/// How long without a call until the agent leaves.
const IDLE: Duration = Duration::from_secs(60);

/// How long a caller may take to say what it wants, and to take the answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// The longest call that is read: none is understood, so no more of it is needed.
const CALL: u64 = 64 * 1024;

/// How many reports are looked through for the last apply.
const RECENT: usize = 100;

#[derive(Debug, Error)]
enum DaemonError {
    #[error("holdfastd.socket gave no socket: holdfastd is started by it, not by hand")]
    NoSocket,
    #[error("cannot use the socket of holdfastd.socket")]
    Socket(#[source] std::io::Error),
    #[error("cannot tell systemd that holdfastd is ready")]
    Notify(#[source] std::io::Error),
    #[error("cannot start")]
    Start(#[source] std::io::Error),
}

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{}", chain(&error));
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), DaemonError> {
    let listener = ListenFd::from_env().take_unix_listener(0).map_err(DaemonError::Socket)?;
    let listener = listener.ok_or(DaemonError::NoSocket)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(DaemonError::Start)?;
    runtime.block_on(serve(listener))
}

/// Answers until nobody has called for a while, or systemd says stop. A call that comes after the last look at the socket
/// waits in it and starts the next agent: nothing is lost.
async fn serve(listener: StdListener) -> Result<(), DaemonError> {
    listener.set_nonblocking(true).map_err(DaemonError::Socket)?;
    let listener = UnixListener::from_std(listener).map_err(DaemonError::Socket)?;
    let mut terminate = signal(SignalKind::terminate()).map_err(DaemonError::Start)?;
    notify(&[NotifyState::Ready, NotifyState::Status("looking for the last report")])?;
    let status = last_apply().await;
    notify(&[NotifyState::Status(&status)])?;
    loop {
        tokio::select! {
            _ = terminate.recv() => break,
            call = tokio::time::timeout(IDLE, listener.accept()) => match call {
                Err(_) => break,
                Ok(call) => answer(call.map_err(DaemonError::Socket)?.0).await,
            }
        }
    }
    notify(&[NotifyState::Stopping])
}

fn notify(state: &[NotifyState<'_>]) -> Result<(), DaemonError> {
    sd_notify::notify(state).map_err(DaemonError::Notify)
}

/// "applied 330 of 346 resource(s) …": what STATUS= says.
async fn last_apply() -> String {
    let recent = Journal::list(None, RECENT).await.unwrap_or_default();
    let last = recent.into_iter().find(|report| report.action == "apply" && report.finished_usec.is_some());
    last.map_or_else(|| "no apply yet".to_owned(), |report| report.sentence)
}

/// Answers one call and hangs up. A caller that does not read, or says nothing, is its own trouble.
async fn answer(mut stream: UnixStream) {
    let talk = async {
        let mut call = Vec::new();
        let mut part = [0; 4096];
        while !call.contains(&0) && (call.len() as u64) < CALL {
            match stream.read(&mut part).await {
                Ok(0) | Err(_) => return,
                Ok(length) => call.extend_from_slice(&part[..length]),
            }
        }
        if let Err(error) = stream.write_all(&refusal(&call)).await {
            eprintln!("a caller did not take its answer: {error}");
        }
    };
    if tokio::time::timeout(PATIENCE, talk).await.is_err() {
        eprintln!("a caller said nothing for {} s", PATIENCE.as_secs());
    }
}

/// Varlink's answer to a call of an interface that is not there.
fn refusal(call: &[u8]) -> Vec<u8> {
    let text = call.split(|byte| *byte == 0).next().unwrap_or_default();
    let method = serde_json::from_slice::<serde_json::Value>(text).ok();
    let method = method.as_ref().and_then(|call| call["method"].as_str()).unwrap_or_default();
    let interface = method.rsplit_once('.').map_or(method, |(interface, _)| interface);
    let answer = serde_json::json!({
        "error": "org.varlink.service.InterfaceNotFound",
        "parameters": { "interface": interface },
    });
    let mut bytes = answer.to_string().into_bytes();
    bytes.push(0);
    bytes
}

#[cfg(test)]
mod tests {
    use super::refusal;

    #[test]
    fn a_call_is_refused_in_varlinks_words() {
        let answer = refusal(b"{\"method\":\"io.holdfast.Agent.Plan\",\"parameters\":{}}\0");
        let expected =
            r#"{"error":"org.varlink.service.InterfaceNotFound","parameters":{"interface":"io.holdfast.Agent"}}"#;
        assert_eq!(answer, [expected.as_bytes(), b"\0"].concat());
    }

    #[test]
    fn nonsense_is_refused_as_well() {
        for call in [&b""[..], b"\0", b"{", b"[1]\0", b"\xff\xfe\0"] {
            assert!(refusal(call).ends_with(b"}\0"), "{call:?}");
        }
    }
}
