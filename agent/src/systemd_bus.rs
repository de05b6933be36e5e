//! The way to systemd: over the bus, or, where there is none, over systemd's own socket, which only root can use.

use std::pin::Pin;

use futures_util::{Stream, StreamExt as _};
use zbus::{Connection, MatchRule, MessageStream, OwnedObjectPath, connection, message};
use zbus_systemd::systemd1::ManagerProxy;

/// systemd's own socket: D-Bus without a bus.
const PRIVATE: &str = "unix:path=/run/systemd/private";

/// Job and result, as JobRemoved tells them.
pub type JobEnds = Pin<Box<dyn Stream<Item = (String, String)> + Send>>;

/// Connects.
///
/// # Errors
/// The bus's, where neither answers.
pub async fn connect() -> zbus::Result<Connection> {
    match Connection::system().await {
        Ok(bus) => Ok(bus),
        Err(no_bus) => connection::Builder::address(PRIVATE).p2p().build().await.map_err(|_| no_bus),
    }
}

/// The ends of systemd's jobs, from now on.
///
/// # Errors
/// [`zbus::Error`]
pub async fn jobs_removed(manager: &ManagerProxy<'static>) -> zbus::Result<JobEnds> {
    let connection = manager.inner().connection();
    if connection.is_bus() {
        let signals = manager.receive_job_removed().await?;
        return Ok(Box::pin(signals.filter_map(async |signal| {
            let args = signal.args().ok()?;
            Some((args.job.as_str().to_owned(), args.result.clone()))
        })));
    }
    // Without a bus nobody has a name, and a proxy waits for signals of a name. Here only systemd can send any.
    let rule = MatchRule::builder().msg_type(message::Type::Signal);
    let rule = rule.interface("org.freedesktop.systemd1.Manager").member("JobRemoved").build()?;
    let signals = MessageStream::for_match_rule(rule, connection, None).await?;
    Ok(Box::pin(signals.filter_map(async |message| {
        let (_, job, _, result): (u32, OwnedObjectPath, String, String) = message.ok()?.body().deserialize().ok()?;
        Some((job.as_str().to_owned(), result))
    })))
}
