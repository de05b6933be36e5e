//! `io.holdfast.Agent1.Module`.

use std::sync::Arc;

use holdfast_core::name::ModuleName;
use holdfast_core::status::view::ModuleView;
use zbus::message::Header;
use zbus::{Connection, OwnedObjectPath, interface};

use super::authorize::Action;
use super::dict::Dict;
use super::error::BusError;
use super::{guarded, options, path};
use crate::desk::Desk;
use crate::latest::Latest;

/// A module that is assigned or in the ledger.
pub struct ModuleObject {
    pub(super) desk: Arc<Desk>,
    /// What its properties tell.
    pub(super) now: Latest<ModuleNow>,
}

/// A module in the last look.
#[derive(Debug, Clone, PartialEq)]
pub struct ModuleNow {
    /// How it is.
    pub module: ModuleView,
    /// Its holds.
    pub holds: Vec<OwnedObjectPath>,
    /// The last apply.
    pub last_report: String,
    /// When that ended.
    pub last_applied_usec: u64,
}

#[interface(name = "io.holdfast.Agent1.Module", introspection_docs = false)]
impl ModuleObject {
    async fn hold(
        &self, note: &str, options: Dict, #[zbus(header)] header: Header<'_>,
        #[zbus(connection)] connection: &Connection,
    ) -> Result<(), BusError> {
        let _call = self.desk.activity.call();
        options::Options::of(options, &[])?;
        if note.trim().is_empty() {
            return Err(BusError::invalid("a hold needs a note: why, for everybody who meets it"));
        }
        self.set(connection, &header, "hold", Some(note)).await
    }

    async fn unhold(
        &self, options: Dict, #[zbus(header)] header: Header<'_>, #[zbus(connection)] connection: &Connection,
    ) -> Result<(), BusError> {
        let _call = self.desk.activity.call();
        options::Options::of(options, &[])?;
        self.set(connection, &header, "unhold", None).await
    }

    #[zbus(property(emits_changed_signal = "const"))]
    async fn name(&self) -> String {
        self.now.get().module.status.name.clone()
    }

    #[zbus(property)]
    async fn source(&self) -> String {
        source(&self.desk, &self.now.get().module.status.name)
    }

    #[zbus(property)]
    async fn state(&self) -> &str {
        self.now.get().module.status.state.token()
    }

    #[zbus(property)]
    async fn held_count(&self) -> u32 {
        self.now.get().module.status.counts.held
    }

    #[zbus(property)]
    async fn holds(&self) -> Vec<OwnedObjectPath> {
        self.now.get().holds.clone()
    }

    #[zbus(property)]
    async fn units(&self) -> Vec<String> {
        self.now.get().module.units.clone()
    }

    #[zbus(property)]
    async fn wanted(&self) -> u32 {
        self.now.get().module.status.wanted
    }

    #[zbus(property)]
    async fn running(&self) -> u32 {
        self.now.get().module.status.running
    }

    #[zbus(property)]
    async fn last_report(&self) -> String {
        self.now.get().last_report.clone()
    }

    #[zbus(property, name = "LastAppliedUSec")]
    async fn last_applied_usec(&self) -> u64 {
        self.now.get().last_applied_usec
    }
}

impl ModuleObject {
    async fn set(
        &self, connection: &Connection, header: &Header<'_>, action: &'static str, note: Option<&str>,
    ) -> Result<(), BusError> {
        let now = self.now.get();
        let name = &now.module.status.name;
        let caller = guarded(connection, header, Action::Apply, action, std::slice::from_ref(name)).await?;
        self.desk.set_operator_hold(name, note, &caller).await?;
        self.desk.heard().await;
        Ok(())
    }
}

/// A module's object; `/` for a directory whose name is no module name.
pub fn path_of(name: &str) -> OwnedObjectPath {
    if ModuleName::new(name).is_ok() { path::module(name) } else { path::none() }
}

/// Where a module comes from: its directory.
pub fn source(desk: &Desk, name: &str) -> String {
    desk.settings().modules_dir.join(name).to_string_lossy().into_owned()
}
