//! `org.freedesktop.LogControl1`: how much the agent says of itself in the journal. `systemctl service-log-level` sets it.

use log::LevelFilter;
use zbus::Connection;
use zbus::interface;
use zbus::message::Header;

use super::authorize::sender;
use super::error::BusError;

/// syslog's words, and what they are here.
const LEVELS: [(&str, LevelFilter); 8] = [
    ("emerg", LevelFilter::Error),
    ("alert", LevelFilter::Error),
    ("crit", LevelFilter::Error),
    ("err", LevelFilter::Error),
    ("warning", LevelFilter::Warn),
    ("notice", LevelFilter::Info),
    ("info", LevelFilter::Debug),
    ("debug", LevelFilter::Trace),
];

/// The agent's own diagnostics; reports are always written whole.
pub struct LogControl;

#[interface(name = "org.freedesktop.LogControl1", introspection_docs = false)]
impl LogControl {
    #[zbus(property(emits_changed_signal = "false"))]
    async fn log_level(&self) -> &str {
        let now = log::max_level();
        // The last that is not louder: "debug" for everything.
        LEVELS.iter().rev().find(|(_, level)| *level <= now).map_or("err", |(word, _)| word)
    }

    #[zbus(property)]
    async fn set_log_level(
        &mut self, level: String, #[zbus(header)] header: Option<Header<'_>>,
        #[zbus(connection)] connection: &Connection,
    ) -> Result<(), BusError> {
        only_root(connection, header.as_ref()).await?;
        let known = LEVELS.iter().find(|(word, _)| *word == level);
        let (_, filter) = known.ok_or_else(|| BusError::invalid(format!("\"{level}\" is no log level")))?;
        log::set_max_level(*filter);
        Ok(())
    }

    #[zbus(property(emits_changed_signal = "false"))]
    async fn log_target(&self) -> &str {
        "journal"
    }

    #[zbus(property)]
    async fn set_log_target(&mut self, target: String) -> Result<(), BusError> {
        if target == "journal" { Ok(()) } else { Err(BusError::invalid("the journal is the only log target")) }
    }

    #[zbus(property(emits_changed_signal = "const"))]
    async fn syslog_identifier(&self) -> &str {
        holdfast_core::record::IDENTIFIER
    }
}

async fn only_root(connection: &Connection, header: Option<&Header<'_>>) -> Result<(), BusError> {
    let header = header.ok_or_else(|| BusError::invalid("nobody asks"))?;
    match sender(connection, header).await?.uid {
        0 => Ok(()),
        _ => Err(BusError::standard("AccessDenied", "only root may change what is logged")),
    }
}
