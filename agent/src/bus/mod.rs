//! The agent on the system bus: a view of the desk, as dbus/io.holdfast.Agent1.xml has it.

pub mod authorize;
pub mod dict;
pub mod error;
mod front;
mod hold;
mod job;
mod log_control;
mod manager;
mod module;
mod options;
pub mod path;

use std::sync::Arc;

use zbus::message::Header;
use zbus::{Connection, connection};

use crate::apply::Caller;
use crate::desk::Desk;
use crate::error::chain;
use crate::reporting::Reporting;
use authorize::{Action, authorize, sender};
use error::BusError;
use front::Front;

/// The name on the bus.
pub const NAME: &str = "io.holdfast.Agent1";

/// Connects to the system bus, serves every object, and only then asks for the name: whoever it reaches finds them all.
///
/// # Errors
/// [`zbus::Error`] when there is no bus, or the name is taken.
pub async fn serve(desk: &Arc<Desk>) -> zbus::Result<Connection> {
    let connection = connection::Builder::system().build().await?;
    let events = desk.listen();
    let front = Front::open(&connection, desk).await?;
    tokio::spawn(front.run(events));
    connection.request_name(NAME).await?;
    Ok(connection)
}

/// Who asks, if polkit lets them; that it did not is told in the journal, but for those who only wanted to look.
async fn guarded(
    connection: &Connection, header: &Header<'_>, action: Action, verb: &'static str, modules: &[String],
) -> Result<Caller, BusError> {
    let caller = sender(connection, header).await?;
    if caller.uid == 0 {
        return Ok(caller);
    }
    let Err(error) = authorize(connection, header, action, modules, verb).await else { return Ok(caller) };
    if action != Action::Check
        && let Err(lost) = Reporting::denied(verb, caller.uid, action.id()).await
    {
        log::warn!("that {verb} was denied is not in the journal: {}", chain(&lost));
    }
    Err(error)
}
