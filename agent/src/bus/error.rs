//! Refusals as D-Bus says them: one name for each.

use std::borrow::Cow;

use zbus::DBusError;
use zbus::message::{Header, Message};
use zbus::names::ErrorName;

use crate::error::{AgentError, chain};

/// In front of the names of our own.
pub const PREFIX: &str = "io.holdfast.Agent1.Error.";

/// An answer that is an error.
#[derive(Debug)]
pub struct BusError {
    name: Cow<'static, str>,
    message: String,
}

impl BusError {
    /// One of D-Bus's own: `InvalidArgs`, `AccessDenied`, `UnknownObject`, …
    pub fn standard(name: &'static str, message: impl Into<String>) -> Self {
        Self { name: format!("org.freedesktop.DBus.Error.{name}").into(), message: message.into() }
    }

    /// An option, module or note that cannot be.
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::standard("InvalidArgs", message)
    }

    /// One of ours, by its last word.
    pub fn own(token: &str, message: impl Into<String>) -> Self {
        Self { name: format!("{PREFIX}{token}").into(), message: message.into() }
    }
}

impl From<AgentError> for BusError {
    fn from(error: AgentError) -> Self {
        Self::own(error.token(), chain(&error))
    }
}

impl From<zbus::Error> for BusError {
    fn from(error: zbus::Error) -> Self {
        Self::standard("Failed", error.to_string())
    }
}

impl DBusError for BusError {
    fn create_reply(&self, call: &Header<'_>) -> zbus::Result<Message> {
        Message::error(call, self.name()).build(&self.message)
    }

    fn name(&self) -> ErrorName<'_> {
        ErrorName::from_str_unchecked(&self.name)
    }

    fn description(&self) -> Option<&str> {
        Some(&self.message)
    }
}
