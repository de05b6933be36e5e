//! One connection: its calls are answered one after the other.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use rustix::net::{Shutdown, shutdown};
use serde_json::{Value, json};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf, UCred};
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until, timeout};

use super::wire::{self, Call, Messages, Reply};
use super::{Fault, Refusal};
use crate::apply::Caller;
use crate::caller;
use crate::desk::Desk;

/// The longest call that is read: the names of all modules of a host are far less.
const LONGEST: usize = 1024 * 1024;

/// How long a caller may take to take an answer.
const PATIENCE: Duration = Duration::from_secs(30);

/// How long somebody who just connected may take to call when the agent stops.
const GRACE: Duration = Duration::from_millis(500);

/// A caller.
pub struct Session {
    pub(super) desk: Arc<Desk>,
    peer: UCred,
    writer: OwnedWriteHalf,
    /// The call that is answered takes no reply.
    oneway: bool,
}

impl Session {
    /// Answers all calls of a connection until its other end hangs up, or the agent stops.
    ///
    /// # Errors
    /// When no sense can be made of what comes, or the answer is not taken.
    pub async fn serve(stream: UnixStream, desk: Arc<Desk>, mut stopping: watch::Receiver<bool>) -> io::Result<()> {
        let (peer, grace) = (stream.peer_cred()?, Instant::now() + GRACE);
        let (reader, writer) = stream.into_split();
        let mut messages = Messages::new(reader, LONGEST);
        let mut session = Self { desk: Arc::clone(&desk), peer, writer, oneway: false };
        let mut last_words = false;
        loop {
            let message = tokio::select! {
                message = messages.next() => message?,
                () = stop(&mut stopping, grace), if !last_words => {
                    hear_no_more(&messages)?;
                    last_words = true;
                    continue;
                }
            };
            let Some(message) = message else { return Ok(()) };
            let _call = desk.activity.call();
            session.answer(serde_json::from_slice(&message)?).await?;
        }
    }

    /// Who calls.
    pub(super) fn caller(&self) -> Caller {
        caller::of_process(self.peer.uid(), self.peer.pid().and_then(|pid| u32::try_from(pid).ok()))
    }

    /// Whether nobody waits for the answer.
    pub(super) fn is_oneway(&self) -> bool {
        self.oneway
    }

    /// A reply that is not the last.
    ///
    /// # Errors
    /// When it is not taken.
    pub(super) async fn tell(&mut self, parameters: Value) -> io::Result<()> {
        self.send(&Reply { error: None, parameters, continues: true }).await
    }

    async fn answer(&mut self, call: Call) -> io::Result<()> {
        self.oneway = call.oneway;
        let answer = if is_trusted(self.peer.uid()) {
            self.call(call).await
        } else {
            Err(Refusal::standard("PermissionDenied", json!({})).into())
        };
        match answer {
            Ok(parameters) => self.send(&Reply { error: None, parameters, continues: false }).await,
            Err(Fault::Refused(refusal)) => self.send(&refusal.into()).await,
            Err(Fault::Gone(error)) => Err(error),
        }
    }

    async fn send(&mut self, reply: &Reply) -> io::Result<()> {
        if self.oneway {
            return Ok(());
        }
        timeout(PATIENCE, wire::write(&mut self.writer, reply)).await?
    }
}

/// The socket is root's alone. Should it not be, whoever is neither root nor the agent's own user gets nothing.
fn is_trusted(uid: u32) -> bool {
    uid == 0 || uid == rustix::process::geteuid().as_raw()
}

/// Waits until the agent stops and this caller had time to say why it came.
async fn stop(stopping: &mut watch::Receiver<bool>, grace: Instant) {
    // Without its sender, nobody answers any more.
    if stopping.wait_for(|stopping| *stopping).await.is_ok() {
        sleep_until(grace).await;
    }
}

/// From now on the caller can say no more, and learns so when it tries (EPIPE): no call is taken and not answered. What it
/// said before is still there to be read, and then the end.
fn hear_no_more(messages: &Messages<OwnedReadHalf>) -> io::Result<()> {
    let stream: &UnixStream = messages.stream().as_ref();
    match shutdown(stream, Shutdown::Read) {
        // It has hung up, and may have called before it did.
        Err(rustix::io::Errno::NOTCONN) => Ok(()),
        other => Ok(other?),
    }
}
