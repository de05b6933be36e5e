//! `io.holdfast.Agent1.Hold`.

use std::sync::Arc;

use holdfast_core::status::holds::HoldSince;
use zbus::{OwnedObjectPath, interface};

use super::module;
use crate::desk::Desk;
use crate::latest::Latest;

/// Something that is held.
pub struct HoldObject {
    pub(super) desk: Arc<Desk>,
    pub(super) held: Latest<HoldSince>,
}

#[interface(name = "io.holdfast.Agent1.Hold", introspection_docs = false)]
impl HoldObject {
    #[zbus(property(emits_changed_signal = "const"))]
    async fn module(&self) -> String {
        self.held.get().hold.module.clone()
    }

    #[zbus(property(emits_changed_signal = "const"))]
    async fn module_path(&self) -> OwnedObjectPath {
        module::path_of(&self.held.get().hold.module)
    }

    #[zbus(property(emits_changed_signal = "const"))]
    async fn resource(&self) -> String {
        self.held.get().hold.resource.to_string()
    }

    #[zbus(property(emits_changed_signal = "const"))]
    async fn kind(&self) -> &str {
        self.held.get().hold.resource.kind.word()
    }

    #[zbus(property)]
    async fn unit(&self) -> String {
        self.held.get().hold.unit.clone().unwrap_or_default()
    }

    #[zbus(property)]
    async fn reason(&self) -> &str {
        self.held.get().hold.reason.token()
    }

    #[zbus(property)]
    async fn also(&self) -> Vec<&str> {
        self.held.get().hold.also.iter().map(|reason| reason.token()).collect()
    }

    #[zbus(property)]
    async fn cause(&self) -> String {
        self.held.get().hold.cause.resource.to_string()
    }

    #[zbus(property)]
    async fn cause_module(&self) -> String {
        self.held.get().hold.cause.module.clone()
    }

    #[zbus(property)]
    async fn sentence(&self) -> String {
        self.held.get().hold.sentence.clone()
    }

    #[zbus(property)]
    async fn way_out(&self) -> String {
        self.held.get().hold.hint.clone().unwrap_or_default()
    }

    #[zbus(property)]
    async fn waiting_on_take(&self) -> bool {
        self.held.get().hold.waiting_on_take
    }

    #[zbus(property, name = "SinceUSec")]
    async fn since_usec(&self) -> u64 {
        self.held.get().since_usec
    }

    /// The last apply's: it lists every hold. It is another one after each, and nobody waits for that.
    #[zbus(property(emits_changed_signal = "false"))]
    async fn report_id(&self) -> String {
        self.desk.view().last.as_ref().map(|last| last.report.clone()).unwrap_or_default()
    }
}
