//! `io.holdfast.Agent1.Job`.

use std::sync::Arc;

use holdfast_core::step::Stop;
use serde_json::json;
use zbus::message::Header;
use zbus::object_server::SignalEmitter;
use zbus::{Connection, interface};

use super::authorize::{Action, authorize, sender};
use super::dict::{Dict, dict};
use super::error::BusError;
use super::options;
use crate::desk::Desk;
use crate::desk::job::{End, Job, Now, State};
use crate::error::chain;

/// A job.
pub struct JobObject {
    pub(super) desk: Arc<Desk>,
    pub(super) job: Arc<Job>,
    /// What its properties tell.
    pub(super) now: Now,
    /// How it ended, once that is told.
    pub(super) end: Option<Arc<End>>,
}

#[interface(name = "io.holdfast.Agent1.Job", introspection_docs = false)]
impl JobObject {
    async fn cancel(
        &self, options: Dict, #[zbus(header)] header: Header<'_>, #[zbus(connection)] connection: &Connection,
    ) -> Result<(), BusError> {
        let _call = self.desk.activity.call();
        options::Options::of(options, &[])?;
        let caller = sender(connection, &header).await?;
        if caller.uid != 0 && caller.uid != self.job.caller.uid {
            authorize(connection, &header, Action::Apply, &self.job.modules, "cancel").await?;
        }
        if self.job.end().is_some() {
            return Err(BusError::own("NotCancelable", format!("job {} has ended", self.job.id)));
        }
        self.job.stop.show(Stop::Canceled);
        Ok(())
    }

    #[zbus(out_args("result", "details"))]
    async fn wait(&self, options: Dict) -> Result<(String, Dict), BusError> {
        let _call = self.desk.activity.call();
        options::Options::of(options, &[])?;
        let end = self.job.wait().await;
        self.desk.heard().await;
        let details = match &*end {
            End::Reported(report) => {
                let report = report.to_json().map_err(|error| BusError::standard("Failed", error.to_string()))?;
                json!({ "report": report })
            }
            End::Failed(error) => json!({ "error-name": error.token(), "error-message": chain(error) }),
            End::Canceled => json!({}),
        };
        Ok((end.result().to_owned(), dict(&details)))
    }

    #[zbus(signal)]
    pub(super) async fn step_completed(
        emitter: &SignalEmitter<'_>, seq: u32, step: &str, resource: &str, result: &str, reason: &str, more: Dict,
    ) -> zbus::Result<()>;

    #[zbus(property(emits_changed_signal = "const"))]
    async fn id(&self) -> u32 {
        self.job.id
    }

    #[zbus(property(emits_changed_signal = "const"))]
    async fn kind(&self) -> &str {
        self.job.kind
    }

    #[zbus(property(emits_changed_signal = "const"))]
    async fn modules(&self) -> Vec<String> {
        self.job.modules.clone()
    }

    #[zbus(property)]
    async fn report_id(&self) -> &str {
        &self.now.report
    }

    #[zbus(property(emits_changed_signal = "const"), name = "StartedByUID")]
    async fn started_by_uid(&self) -> u32 {
        self.job.caller.uid
    }

    #[zbus(property(emits_changed_signal = "const"), name = "StartedUSec")]
    async fn started_usec(&self) -> u64 {
        self.job.started_usec
    }

    #[zbus(property)]
    async fn state(&self) -> &str {
        self.now.state.token()
    }

    #[zbus(property)]
    async fn percent(&self) -> u32 {
        self.now.percent()
    }

    #[zbus(property)]
    async fn percent_valid(&self) -> bool {
        self.now.of > 0 || self.now.state == State::Finished
    }

    #[zbus(property)]
    async fn step(&self) -> &str {
        &self.now.step
    }

    #[zbus(property)]
    async fn resource(&self) -> &str {
        &self.now.resource
    }

    #[zbus(property)]
    async fn cancelable(&self) -> bool {
        self.now.state != State::Finished
    }

    #[zbus(property)]
    async fn result(&self) -> &str {
        self.end.as_ref().map_or("", |end| end.result())
    }

    #[zbus(property)]
    async fn error_name(&self) -> String {
        match self.end.as_deref() {
            Some(End::Failed(error)) => format!("{}{}", super::error::PREFIX, error.token()),
            Some(End::Reported(_) | End::Canceled) | None => String::new(),
        }
    }

    #[zbus(property)]
    async fn error_message(&self) -> String {
        match self.end.as_deref() {
            Some(End::Failed(error)) => chain(error),
            Some(End::Reported(_) | End::Canceled) | None => String::new(),
        }
    }
}
