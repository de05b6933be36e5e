//! `io.holdfast.Agent1.Hold`.

use holdfast_core::status::holds::HoldSince;
use zbus::{OwnedObjectPath, interface};

use super::module;

/// Something that is held.
pub struct HoldObject {
    pub(super) held: HoldSince,
    /// The report that told of it last.
    pub(super) report: String,
}

#[interface(name = "io.holdfast.Agent1.Hold", introspection_docs = false)]
impl HoldObject {
    #[zbus(property(emits_changed_signal = "const"))]
    async fn module(&self) -> &str {
        &self.held.hold.module
    }

    #[zbus(property(emits_changed_signal = "const"))]
    async fn module_path(&self) -> OwnedObjectPath {
        module::path_of(&self.held.hold.module)
    }

    #[zbus(property(emits_changed_signal = "const"))]
    async fn resource(&self) -> String {
        self.held.hold.resource.to_string()
    }

    #[zbus(property(emits_changed_signal = "const"))]
    async fn kind(&self) -> &str {
        self.held.hold.resource.kind.word()
    }

    #[zbus(property)]
    async fn unit(&self) -> &str {
        self.held.hold.unit.as_deref().unwrap_or_default()
    }

    #[zbus(property)]
    async fn reason(&self) -> &str {
        self.held.hold.reason.token()
    }

    #[zbus(property)]
    async fn also(&self) -> Vec<&str> {
        self.held.hold.also.iter().map(|reason| reason.token()).collect()
    }

    #[zbus(property)]
    async fn cause(&self) -> String {
        self.held.hold.cause.resource.to_string()
    }

    #[zbus(property)]
    async fn cause_module(&self) -> &str {
        &self.held.hold.cause.module
    }

    #[zbus(property)]
    async fn sentence(&self) -> &str {
        &self.held.hold.sentence
    }

    #[zbus(property)]
    async fn way_out(&self) -> &str {
        self.held.hold.hint.as_deref().unwrap_or_default()
    }

    #[zbus(property)]
    async fn waiting_on_take(&self) -> bool {
        self.held.hold.waiting_on_take
    }

    #[zbus(property, name = "SinceUSec")]
    async fn since_usec(&self) -> u64 {
        self.held.since_usec
    }

    #[zbus(property)]
    async fn report_id(&self) -> &str {
        &self.report
    }
}
