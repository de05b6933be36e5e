//! Who asks, and whether polkit lets them. Asked before anything is done or any job exists.

use std::collections::HashMap;
use std::time::Duration;

use zbus::Connection;
use zbus::fdo::DBusProxy;
use zbus::message::{Flags, Header};
use zbus_polkit::policykit1::{AuthorityProxy, AuthorizationResult, CheckAuthorizationFlags, Subject};

use super::error::BusError;
use crate::apply::Caller;
use crate::caller;

/// How long somebody may take to type a password.
const PATIENCE: Duration = Duration::from_secs(120);

/// What polkit is asked about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// Look at the host now.
    Check,
    /// Apply, hold, unhold.
    Apply,
}

impl Action {
    /// Its name in polkit.
    #[must_use]
    pub fn id(self) -> &'static str {
        match self {
            Self::Check => "io.holdfast.agent1.check",
            Self::Apply => "io.holdfast.agent1.apply",
        }
    }
}

/// What polkit says, without asking anybody.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// The caller may.
    Yes,
    /// The caller may not.
    No,
    /// The caller may after a password.
    Challenge,
}

impl Answer {
    /// The word of `CanX`.
    #[must_use]
    pub fn token(self) -> &'static str {
        match self {
            Self::Yes => "yes",
            Self::No => "no",
            Self::Challenge => "challenge",
        }
    }
}

/// Who sent a message.
///
/// # Errors
/// When the sender has gone meanwhile.
pub async fn sender(connection: &Connection, header: &Header<'_>) -> Result<Caller, BusError> {
    let gone = || BusError::standard("AccessDenied", "the caller has gone");
    let name = header.sender().ok_or_else(gone)?.to_owned();
    let bus = DBusProxy::new(connection).await?;
    let credentials = bus.get_connection_credentials(name.into()).await.map_err(|_| gone())?;
    let uid = credentials.unix_user_id().ok_or_else(gone)?;
    Ok(caller::of_process(uid, credentials.process_id()))
}

/// Whether the sender may do it; asks for a password where the sender allows that. Modules and summary stand in the
/// message that is shown then.
///
/// # Errors
/// `AccessDenied`, or `InteractiveAuthorizationRequired` where a password would do and the sender allows no question.
pub async fn authorize(
    connection: &Connection, header: &Header<'_>, action: Action, modules: &[String], summary: &str,
) -> Result<(), BusError> {
    let interactive = header.primary().flags().contains(Flags::ALLOW_INTERACTIVE_AUTH);
    let flags =
        if interactive { CheckAuthorizationFlags::ALLOW_USER_INTERACTION } else { CheckAuthorizationFlags::empty() };
    let check = check(connection, header, action, modules, summary, flags);
    let answer = match tokio::time::timeout(PATIENCE, check).await {
        Ok(answer) => answer?,
        Err(_) => return Err(denied(action)),
    };
    if answer.is_authorized {
        return Ok(());
    }
    if answer.is_challenge && !interactive {
        let message = format!("{} needs a password, and the caller allows no question", action.id());
        return Err(BusError::standard("InteractiveAuthorizationRequired", message));
    }
    Err(denied(action))
}

/// Whether the sender could do it.
///
/// # Errors
/// [`BusError`] when polkit cannot be asked.
pub async fn ask(
    connection: &Connection, header: &Header<'_>, action: Action, modules: &[String],
) -> Result<Answer, BusError> {
    if sender(connection, header).await?.uid == 0 {
        return Ok(Answer::Yes);
    }
    Ok(match check(connection, header, action, modules, "", CheckAuthorizationFlags::empty()).await {
        Ok(answer) if answer.is_authorized => Answer::Yes,
        Ok(answer) if answer.is_challenge => Answer::Challenge,
        Ok(_) | Err(_) => Answer::No,
    })
}

async fn check(
    connection: &Connection, header: &Header<'_>, action: Action, modules: &[String], summary: &str,
    flags: CheckAuthorizationFlags,
) -> Result<AuthorizationResult, BusError> {
    let absent = |error: &dyn std::error::Error| {
        BusError::standard("AccessDenied", format!("polkit does not answer, so that only root may do this: {error}"))
    };
    let subject = Subject::new_for_message_header(header).map_err(|error| absent(&error))?;
    let authority = AuthorityProxy::new(connection).await?;
    let modules = if modules.is_empty() { "all modules".to_owned() } else { modules.join(", ") };
    let details = HashMap::from([("module", modules.as_str()), ("summary", summary)]);
    authority.check_authorization(&subject, action.id(), &details, flags, "").await.map_err(|error| absent(&error))
}

fn denied(action: Action) -> BusError {
    BusError::standard("AccessDenied", format!("polkit denies {}", action.id()))
}
