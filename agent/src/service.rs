//! The agent as systemd sees it: ready, what it does in words, and that it leaves when nobody needs it.

use std::os::unix::net::UnixListener as StdListener;
use std::sync::Arc;
use std::time::Duration;

use sd_notify::NotifyState;
use thiserror::Error;
use tokio::net::UnixListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{mpsc, oneshot};
use zbus::Connection;

use crate::desk::{Desk, Event};
use crate::error::chain;
use crate::journal::Journal;
use crate::{bus, varlink};

/// How long nothing may come in before what was sent to the agent counts as answered.
const QUIET: Duration = Duration::from_millis(20);

/// How long what is not asked for waits after the start.
const SLOW: Duration = Duration::from_secs(1);

/// How long an agent that found no bus waits for the next call.
const WITHOUT_BUS: Duration = Duration::from_secs(1);

/// Why the agent cannot run.
#[derive(Debug, Error)]
pub enum ServiceError {
    /// It was not started by systemd.
    #[error("holdfastd.socket gave no socket: holdfastd is started by it, not by hand")]
    NoSocket,
    /// The socket is none.
    #[error("cannot use the socket of holdfastd.socket")]
    Socket(#[source] std::io::Error),
    /// systemd does not listen.
    #[error("cannot tell systemd that holdfastd is ready")]
    Notify(#[source] std::io::Error),
    /// There are no signals.
    #[error("cannot wait for signals")]
    Signal(#[source] std::io::Error),
}

/// Why it leaves.
enum Leave {
    /// Nobody needs it.
    Idle,
    /// systemd says so.
    Told,
    /// The bus has gone; the next call starts an agent that finds the new one.
    NoBus,
    /// Another version was installed; the next call starts that.
    Replaced,
}

/// Serves both doors until nobody needs the agent, or systemd says stop. A job always ends first.
///
/// # Errors
/// [`ServiceError`]
pub async fn run(listener: StdListener, desk: Arc<Desk>) -> Result<(), ServiceError> {
    listener.set_nonblocking(true).map_err(ServiceError::Socket)?;
    let listener = UnixListener::from_std(listener).map_err(ServiceError::Socket)?;
    let mut terminate = signal(SignalKind::terminate()).map_err(ServiceError::Signal)?;
    let mut events = desk.listen();
    let (accepting, stopped) = oneshot::channel::<()>();
    let stopped = async move {
        // Nothing is sent: it ends when the other end is dropped.
        stopped.await.unwrap_or_default();
    };
    let socket = tokio::spawn(varlink::serve(listener, Arc::clone(&desk), stopped));
    let connection = match bus::serve(&desk).await {
        Ok(connection) => Some(connection),
        Err(error) => {
            log::warn!("cannot answer on the bus, only on the socket: {}", chain(&error));
            None
        }
    };
    notify(&[NotifyState::Ready, NotifyState::Status(&desk.view().words())])?;
    if desk.view().observed_usec == 0 {
        tokio::spawn(first_look(Arc::clone(&desk)));
    }

    let leave = tokio::select! {
        _ = terminate.recv() => Leave::Told,
        () = idle(&desk, connection.as_ref()) => Leave::Idle,
        () = gone(connection.as_ref()) => Leave::NoBus,
        () = status(&desk, &mut events) => Leave::Replaced,
    };
    match leave {
        Leave::Told => desk.terminate(),
        Leave::Idle => {}
        Leave::NoBus => log::warn!("the bus has gone; leaving once nothing runs"),
        Leave::Replaced => log::info!("another version of holdfastd was installed; leaving"),
    }
    notify(&[NotifyState::Stopping])?;
    // From here on a new call starts the next agent; what came before is still answered.
    drop(accepting);
    if let Some(connection) = &connection
        && let Err(error) = connection.release_name(bus::NAME).await
    {
        log::debug!("the name was not released: {}", chain(&error));
    }
    drain(&desk, connection.as_ref(), &mut events).await;
    desk.keep();
    if let Err(error) = socket.await {
        log::warn!("the socket's door did not end well: {error}");
    }
    match Journal::open() {
        Ok(journal) => {
            if let Err(error) = journal.synchronize().await {
                log::warn!("the last words may not be on disk: {}", chain(&error));
            }
        }
        Err(error) => log::debug!("no journal to synchronise: {}", chain(&error)),
    }
    Ok(())
}

/// After a boot nobody has looked yet, and lists would be empty. Whoever started the agent may have asked for a look, or
/// for an apply, which ends with one: then there is nothing to do.
async fn first_look(desk: Arc<Desk>) {
    loop {
        tokio::time::sleep(SLOW).await;
        if desk.activity.idle().is_some() && desk.active_job().is_none() {
            break;
        }
    }
    if desk.view().observed_usec != 0 {
        return;
    }
    let _call = desk.activity.call();
    if let Err(error) = desk.look(&[]).await {
        log::warn!("cannot look at the host: {}", chain(&error));
    }
}

/// Returns when nobody has needed the agent for as long as the settings say. What goes over the bus and is no call of
/// ours (a property, introspection) counts as well.
async fn idle(desk: &Desk, connection: Option<&Connection>) {
    loop {
        let limit = desk.now().map_or(desk.settings().idle, |settings| settings.idle);
        // Without a bus it must not stand in the way of the agent that a bus will want.
        let limit = if connection.is_none() { limit.min(WITHOUT_BUS) } else { limit };
        let busy = desk.active_job().is_some();
        let rest = match desk.activity.idle().filter(|_| !busy) {
            Some(since) if since >= limit => return,
            Some(since) => limit.saturating_sub(since),
            None => limit,
        };
        let rest = tokio::time::sleep(rest);
        tokio::pin!(rest);
        // Hundreds of messages may come and go meanwhile: none of them is worth a look at the settings' files.
        loop {
            tokio::select! {
                () = &mut rest => break,
                () = activity(connection) => desk.activity.touch(),
            }
        }
    }
}

/// Answers what has come in already, and lets every job end.
async fn drain(desk: &Desk, connection: Option<&Connection>, events: &mut mpsc::UnboundedReceiver<Event>) {
    loop {
        let quiet = tokio::select! {
            () = tokio::time::sleep(QUIET) => true,
            () = activity(connection) => false,
            () = status(desk, events) => false,
        };
        if quiet && desk.activity.idle().is_some() && desk.active_job().is_none() {
            return;
        }
    }
}

/// Returns when something goes over the bus.
async fn activity(connection: Option<&Connection>) {
    match connection {
        Some(connection) => connection.monitor_activity().await,
        None => std::future::pending().await,
    }
}

/// Returns when the bus has gone.
async fn gone(connection: Option<&Connection>) {
    match connection {
        Some(connection) => connection.closed().await,
        None => std::future::pending().await,
    }
}

/// Tells systemd in words what is so and what is done; returns after a job when the agent's own file is another one by now.
async fn status(desk: &Desk, events: &mut mpsc::UnboundedReceiver<Event>) {
    while let Some(event) = events.recv().await {
        let words = match event {
            // What is done now is told until it has ended.
            Event::Looked(_) if desk.active_job().is_some() => continue,
            Event::Looked(view) => view.words(),
            Event::JobMoved(job) if job.end().is_none() => {
                let now = job.now();
                if now.step.is_empty() {
                    format!("{} begins", job.work.token())
                } else {
                    format!("{}: {}", job.work.token(), now.step)
                }
            }
            Event::JobEnded(_, _) if is_replaced() => return,
            Event::JobEnded(_, _) => desk.view().words(),
            Event::Fence(heard) => {
                drop(heard);
                continue;
            }
            Event::JobNew(_) | Event::JobMoved(_) | Event::Step(_, _) | Event::JobGone(_) => continue,
        };
        if let Err(error) = notify(&[NotifyState::Status(&words)]) {
            log::debug!("systemd was not told: {}", chain(&error));
        }
    }
    std::future::pending().await
}

/// Whether the file that this process runs was replaced or removed.
fn is_replaced() -> bool {
    let path = std::fs::read_link("/proc/self/exe");
    path.is_ok_and(|path| path.to_string_lossy().ends_with(" (deleted)"))
}

fn notify(state: &[NotifyState<'_>]) -> Result<(), ServiceError> {
    sd_notify::notify(state).map_err(ServiceError::Notify)
}
