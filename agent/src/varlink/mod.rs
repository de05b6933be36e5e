//! The agent on its socket, for root: a view of the desk, as varlink/io.holdfast.Agent.varlink has it.

pub mod client;
mod follow;
mod methods;
mod parameters;
mod session;
#[cfg(test)]
mod tests;
mod wire;

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::net::UnixListener;
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::desk::Desk;
use crate::error::{AgentError, chain};
use session::Session;
use wire::Reply;

/// Our interface.
pub const INTERFACE: &str = "io.holdfast.Agent";

/// The interface of every Varlink service.
const SERVICE: &str = "org.varlink.service";

/// The interfaces, and their descriptions: what does not stand there is not answered.
const INTERFACES: [(&str, &str); 2] = [
    (INTERFACE, include_str!("../../../varlink/io.holdfast.Agent.varlink")),
    (SERVICE, include_str!("../../../varlink/org.varlink.service.varlink")),
];

/// The most connections at a time; others wait in the socket.
const MANY: usize = 256;

/// How long to wait when no connection can be taken: the agent may be out of file descriptors until others have gone.
const PAUSE: Duration = Duration::from_millis(100);

/// Answers on a socket until `stop` ends; then takes no further connection, and returns once every call that was made on
/// those that it has is answered. Who connects meanwhile waits in the socket for the next agent.
pub async fn serve(listener: UnixListener, desk: Arc<Desk>, stop: impl Future<Output = ()>) {
    let stopping = watch::Sender::new(false);
    let mut sessions = JoinSet::new();
    tokio::pin!(stop);
    loop {
        tokio::select! {
            () = &mut stop => break,
            accepted = listener.accept(), if sessions.len() < MANY => match accepted {
                Ok((stream, _)) => {
                    sessions.spawn(Session::serve(stream, Arc::clone(&desk), stopping.subscribe()));
                }
                Err(error) => {
                    log::warn!("cannot take a connection on the socket: {error}");
                    tokio::time::sleep(PAUSE).await;
                }
            },
            Some(ended) = sessions.join_next() => told(ended),
        }
    }
    drop(listener);
    stopping.send_replace(true);
    while let Some(ended) = sessions.join_next().await {
        told(ended);
    }
}

fn told(ended: Result<std::io::Result<()>, tokio::task::JoinError>) {
    match ended {
        Ok(Ok(())) => {}
        Ok(Err(error)) => log::info!("a caller on the socket was given up: {error}"),
        Err(error) => log::error!("a caller on the socket got no answer: {error}"),
    }
}

/// An answer that is an error.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Refusal {
    error: String,
    parameters: Value,
}

impl Refusal {
    /// One of Varlink's own.
    fn standard(name: &str, parameters: Value) -> Self {
        Self { error: format!("{SERVICE}.{name}"), parameters }
    }

    /// A parameter that cannot be.
    fn parameter(name: &str) -> Self {
        Self::standard("InvalidParameter", json!({ "parameter": name }))
    }

    /// One of ours.
    fn own(token: &str, message: &str) -> Self {
        Self { error: format!("{INTERFACE}.{token}"), parameters: json!({ "message": message }) }
    }
}

impl From<&AgentError> for Refusal {
    fn from(error: &AgentError) -> Self {
        Self::own(error.token(), &chain(error))
    }
}

impl From<Refusal> for Reply {
    fn from(Refusal { error, parameters }: Refusal) -> Self {
        Self { error: Some(error), parameters, continues: false }
    }
}

/// Why a call has no answer of its kind.
#[derive(Debug)]
enum Fault {
    /// It has an error.
    Refused(Refusal),
    /// Its caller does not take it.
    Gone(std::io::Error),
}

impl From<Refusal> for Fault {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

impl From<AgentError> for Fault {
    fn from(error: AgentError) -> Self {
        Self::Refused((&error).into())
    }
}

impl From<std::io::Error> for Fault {
    fn from(error: std::io::Error) -> Self {
        Self::Gone(error)
    }
}

impl From<serde_json::Error> for Fault {
    fn from(error: serde_json::Error) -> Self {
        Self::Refused(Refusal::own("Failed", &error.to_string()))
    }
}
