//! The other end of the socket: calls the agent. For the command where there is no bus, and for tests.

use std::path::{Path, PathBuf};

use serde_json::Value;
use thiserror::Error;
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};

use super::INTERFACE;
pub use super::wire::Reply;
use super::wire::{self, Call, Messages};

/// The longest reply that is read: the report of the largest host is far less.
const LONGEST: usize = 64 * 1024 * 1024;

/// A call without an answer of its kind.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{message}")]
pub struct CallError {
    /// The last word of the error's name: `NoSuchModule`, `InvalidParameter`; [`CallError::NO_AGENT`] when nobody answers.
    pub token: String,
    /// A sentence.
    pub message: String,
}

/// A connection to the agent.
#[derive(Debug)]
pub struct Client {
    path: PathBuf,
    messages: Messages<OwnedReadHalf>,
    writer: OwnedWriteHalf,
}

/// The replies of one call, to be read to their end before the next call.
#[derive(Debug)]
pub struct Replies<'a> {
    client: &'a mut Client,
    ended: bool,
}

impl CallError {
    /// The token when the agent cannot be reached, or goes away.
    pub const NO_AGENT: &'static str = "NoAgent";

    fn no_agent(error: impl std::fmt::Display) -> Self {
        Self { token: Self::NO_AGENT.to_owned(), message: format!("the agent does not answer on its socket: {error}") }
    }

    fn of(error: &str, parameters: &Value) -> Self {
        let token = error.rsplit('.').next().unwrap_or_default().to_owned();
        let message = parameters["message"].as_str().map(str::to_owned);
        Self { token, message: message.unwrap_or_else(|| format!("the agent answers {error} {parameters}")) }
    }
}

impl Client {
    /// Connects to the socket at a path.
    ///
    /// # Errors
    /// [`CallError::NO_AGENT`]
    pub async fn connect(path: impl AsRef<Path>) -> Result<Self, CallError> {
        let path = path.as_ref();
        let stream = UnixStream::connect(path).await.map_err(CallError::no_agent)?;
        let (reader, writer) = stream.into_split();
        Ok(Self { path: path.to_owned(), messages: Messages::new(reader, LONGEST), writer })
    }

    /// Calls a method of io.holdfast.Agent; gives the parameters of its reply.
    ///
    /// # Errors
    /// [`CallError`]
    pub async fn call(&mut self, method: &str, parameters: Value) -> Result<Value, CallError> {
        self.send(method, parameters, false).await?;
        Ok(self.receive().await?.parameters)
    }

    /// Calls a method that may reply more than once.
    ///
    /// # Errors
    /// [`CallError`]
    pub async fn more(&mut self, method: &str, parameters: Value) -> Result<Replies<'_>, CallError> {
        self.send(method, parameters, true).await?;
        Ok(Replies { client: self, ended: false })
    }

    /// An agent that stops hears no more on the connections that it has. Nothing that it did not hear whole was heard, so
    /// that the next agent is told instead.
    async fn send(&mut self, method: &str, parameters: Value, more: bool) -> Result<(), CallError> {
        let call = Call { method: format!("{INTERFACE}.{method}"), parameters, more, oneway: false };
        let mut sent = wire::write(&mut self.writer, &call).await;
        if sent.as_ref().is_err_and(|error| error.kind() == std::io::ErrorKind::BrokenPipe) {
            *self = Self::connect(&self.path).await?;
            sent = wire::write(&mut self.writer, &call).await;
        }
        sent.map_err(CallError::no_agent)
    }

    async fn receive(&mut self) -> Result<Reply, CallError> {
        let message = self.messages.next().await.map_err(CallError::no_agent)?;
        let message = message.ok_or_else(|| CallError::no_agent("it has hung up"))?;
        let reply: Reply = serde_json::from_slice(&message).map_err(CallError::no_agent)?;
        match &reply.error {
            Some(error) => Err(CallError::of(error, &reply.parameters)),
            None => Ok(reply),
        }
    }
}

impl Replies<'_> {
    /// The next reply; it says whether another one follows. None after the last.
    ///
    /// # Errors
    /// [`CallError`], which is the last.
    pub async fn next(&mut self) -> Result<Option<Reply>, CallError> {
        if self.ended {
            return Ok(None);
        }
        let reply = self.client.receive().await;
        self.ended = !reply.as_ref().is_ok_and(|reply| reply.continues);
        reply.map(Some)
    }
}
