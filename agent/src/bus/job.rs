//! `io.holdfast.Agent1.Job`.

use std::sync::Arc;

use holdfast_core::status::view::View;
use holdfast_core::step::Stop;
use serde_json::json;
use zbus::message::Header;
use zbus::object_server::SignalEmitter;
use zbus::{Connection, OwnedVariant, Variant, interface};

use super::authorize::{Action, authorize, sender};
use super::dict::{Dict, dict};
use super::error::BusError;
use super::{manager, options};
use crate::desk::Desk;
use crate::desk::job::{End, Job, Now, State};
use crate::error::chain;
use crate::latest::Latest;

/// A job.
pub struct JobObject {
    pub(super) desk: Arc<Desk>,
    pub(super) job: Arc<Job>,
    /// What its properties tell: how far it is, and how it ended.
    pub(super) now: Latest<(Now, Option<Arc<End>>)>,
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
        self.job.stop.set(Stop::Canceled);
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
            End::Looked(view) => return Ok((end.result().to_owned(), looked(view)?)),
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
        self.job.work.token()
    }

    #[zbus(property(emits_changed_signal = "const"))]
    async fn modules(&self) -> Vec<String> {
        self.job.modules.clone()
    }

    #[zbus(property)]
    async fn report_id(&self) -> String {
        self.now.get().0.report.clone()
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
        self.now.get().0.state.token()
    }

    #[zbus(property)]
    async fn percent(&self) -> u32 {
        self.now.get().0.percent()
    }

    #[zbus(property)]
    async fn percent_valid(&self) -> bool {
        let now = self.now.get();
        now.0.of > 0 || now.0.state == State::Finished
    }

    #[zbus(property)]
    async fn step(&self) -> String {
        self.now.get().0.step.clone()
    }

    #[zbus(property)]
    async fn resource(&self) -> String {
        self.now.get().0.resource.clone()
    }

    #[zbus(property)]
    async fn cancelable(&self) -> bool {
        self.now.get().0.state != State::Finished
    }

    #[zbus(property)]
    async fn result(&self) -> &str {
        self.now.get().1.as_ref().map_or("", |end| end.result())
    }

    #[zbus(property)]
    async fn error_name(&self) -> String {
        match self.now.get().1.as_deref() {
            Some(End::Failed(error)) => format!("{}{}", super::error::PREFIX, error.token()),
            Some(End::Reported(_) | End::Looked(_) | End::Canceled) | None => String::new(),
        }
    }

    #[zbus(property)]
    async fn error_message(&self) -> String {
        match self.now.get().1.as_deref() {
            Some(End::Failed(error)) => chain(error),
            Some(End::Reported(_) | End::Looked(_) | End::Canceled) | None => String::new(),
        }
    }
}

/// What a dry run saw, as Plan tells it.
fn looked(view: &View) -> Result<Dict, BusError> {
    let rows = Variant::from(manager::rows(view)?);
    Ok(Dict::from([("changes_and_holds".to_owned(), OwnedVariant::try_from(rows)?)]))
}
