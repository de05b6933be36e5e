//! Proxies of the agent's interfaces, made from dbus/io.holdfast.Agent1.xml by ctl/tests/proxies.rs.

#![allow(missing_docs, reason = "the contract has the words")]
#![allow(dead_code, clippy::type_complexity, reason = "generated")]

use zbus::proxy;

#[proxy(interface = "io.holdfast.Agent1.Manager", assume_defaults = true)]
pub trait Manager {
    /// ListModules method
    #[allow(clippy::type_complexity)]
    fn list_modules(
        &self,
    ) -> zbus::Result<
        Vec<(
            String,
            String,
            String,
            String,
            u32,
            zbus::OwnedObjectPath,
            std::collections::HashMap<String, zbus::OwnedVariant>,
        )>,
    >;

    /// ListHolds method
    #[allow(clippy::type_complexity)]
    fn list_holds(
        &self,
        module: &str,
        filter: std::collections::HashMap<&str, &zbus::Variant<'_>>,
    ) -> zbus::Result<
        Vec<(
            String,
            String,
            String,
            String,
            String,
            String,
            String,
            u64,
            zbus::OwnedObjectPath,
            std::collections::HashMap<String, zbus::OwnedVariant>,
        )>,
    >;

    /// ListJobs method
    #[allow(clippy::type_complexity)]
    fn list_jobs(
        &self,
    ) -> zbus::Result<
        Vec<(
            u32,
            String,
            String,
            String,
            u32,
            zbus::OwnedObjectPath,
            std::collections::HashMap<String, zbus::OwnedVariant>,
        )>,
    >;

    /// GetHoldsByUnit method
    fn get_holds_by_unit(&self, unit: &str) -> zbus::Result<Vec<zbus::OwnedObjectPath>>;

    /// ListReports method
    #[allow(clippy::type_complexity)]
    fn list_reports(
        &self,
        since_usec: u64,
        max: u32,
    ) -> zbus::Result<
        Vec<(
            String,
            String,
            u64,
            u64,
            std::collections::HashMap<String, zbus::OwnedVariant>,
        )>,
    >;

    /// GetReport method
    fn get_report(
        &self,
        report_id: &str,
    ) -> zbus::Result<std::collections::HashMap<String, zbus::OwnedVariant>>;

    /// OpenReport method
    fn open_report(
        &self,
        report_id: &str,
        options: std::collections::HashMap<&str, &zbus::Variant<'_>>,
    ) -> zbus::Result<zbus::OwnedFd>;

    /// Plan method
    fn plan(
        &self,
        modules: &[&str],
        options: std::collections::HashMap<&str, &zbus::Variant<'_>>,
    ) -> zbus::Result<Vec<std::collections::HashMap<String, zbus::OwnedVariant>>>;

    /// Apply method
    fn apply(
        &self,
        modules: &[&str],
        options: std::collections::HashMap<&str, &zbus::Variant<'_>>,
    ) -> zbus::Result<(u32, zbus::OwnedObjectPath)>;

    /// CanApply method
    fn can_apply(&self, module: &str) -> zbus::Result<String>;

    /// JobNew signal
    #[zbus(signal)]
    fn job_new(
        &self,
        id: u32,
        job: zbus::ObjectPath<'_>,
        kind: &str,
        module: &str,
        more: std::collections::HashMap<&str, zbus::Variant<'_>>,
    ) -> zbus::Result<()>;

    /// JobRemoved signal
    #[zbus(signal)]
    fn job_removed(
        &self,
        id: u32,
        job: zbus::ObjectPath<'_>,
        result: &str,
        report_id: &str,
        more: std::collections::HashMap<&str, zbus::Variant<'_>>,
    ) -> zbus::Result<()>;

    /// ReportCompleted signal
    #[zbus(signal)]
    fn report_completed(
        &self,
        report_id: &str,
        result: &str,
        applied: u32,
        held: u32,
        failed: u32,
        more: std::collections::HashMap<&str, zbus::Variant<'_>>,
    ) -> zbus::Result<()>;

    /// Version property
    #[zbus(property)]
    fn version(&self) -> zbus::Result<String>;

    /// Features property
    #[zbus(property)]
    fn features(&self) -> zbus::Result<Vec<String>>;

    /// ModuleCount property
    #[zbus(property)]
    fn module_count(&self) -> zbus::Result<u32>;

    /// HeldCount property
    #[zbus(property)]
    fn held_count(&self) -> zbus::Result<u32>;

    /// HeldModules property
    #[zbus(property)]
    fn held_modules(&self) -> zbus::Result<Vec<(String, u32)>>;

    /// LastReport property
    #[zbus(property)]
    fn last_report(&self) -> zbus::Result<String>;

    /// LastApplyUSec property
    #[zbus(property, name = "LastApplyUSec")]
    fn last_apply_usec(&self) -> zbus::Result<u64>;

    /// ObservedUSec property
    #[zbus(property, name = "ObservedUSec")]
    fn observed_usec(&self) -> zbus::Result<u64>;

    /// ActiveJob property
    #[zbus(property)]
    fn active_job(&self) -> zbus::Result<zbus::OwnedObjectPath>;
}

#[proxy(interface = "io.holdfast.Agent1.Module", assume_defaults = true)]
pub trait Module {
    /// Hold method
    fn hold(
        &self,
        note: &str,
        options: std::collections::HashMap<&str, &zbus::Variant<'_>>,
    ) -> zbus::Result<()>;

    /// Unhold method
    fn unhold(
        &self,
        options: std::collections::HashMap<&str, &zbus::Variant<'_>>,
    ) -> zbus::Result<()>;

    /// Name property
    #[zbus(property)]
    fn name(&self) -> zbus::Result<String>;

    /// Source property
    #[zbus(property)]
    fn source(&self) -> zbus::Result<String>;

    /// State property
    #[zbus(property)]
    fn state(&self) -> zbus::Result<String>;

    /// HeldCount property
    #[zbus(property)]
    fn held_count(&self) -> zbus::Result<u32>;

    /// Holds property
    #[zbus(property)]
    fn holds(&self) -> zbus::Result<Vec<zbus::OwnedObjectPath>>;

    /// Units property
    #[zbus(property)]
    fn units(&self) -> zbus::Result<Vec<String>>;

    /// Wanted property
    #[zbus(property)]
    fn wanted(&self) -> zbus::Result<u32>;

    /// Running property
    #[zbus(property)]
    fn running(&self) -> zbus::Result<u32>;

    /// LastReport property
    #[zbus(property)]
    fn last_report(&self) -> zbus::Result<String>;

    /// LastAppliedUSec property
    #[zbus(property, name = "LastAppliedUSec")]
    fn last_applied_usec(&self) -> zbus::Result<u64>;
}

#[proxy(interface = "io.holdfast.Agent1.Hold", assume_defaults = true)]
pub trait Hold {
    /// Module property
    #[zbus(property)]
    fn module(&self) -> zbus::Result<String>;

    /// ModulePath property
    #[zbus(property)]
    fn module_path(&self) -> zbus::Result<zbus::OwnedObjectPath>;

    /// Resource property
    #[zbus(property)]
    fn resource(&self) -> zbus::Result<String>;

    /// Kind property
    #[zbus(property)]
    fn kind(&self) -> zbus::Result<String>;

    /// Unit property
    #[zbus(property)]
    fn unit(&self) -> zbus::Result<String>;

    /// Reason property
    #[zbus(property)]
    fn reason(&self) -> zbus::Result<String>;

    /// Also property
    #[zbus(property)]
    fn also(&self) -> zbus::Result<Vec<String>>;

    /// Cause property
    #[zbus(property)]
    fn cause(&self) -> zbus::Result<String>;

    /// CauseModule property
    #[zbus(property)]
    fn cause_module(&self) -> zbus::Result<String>;

    /// Sentence property
    #[zbus(property)]
    fn sentence(&self) -> zbus::Result<String>;

    /// WayOut property
    #[zbus(property)]
    fn way_out(&self) -> zbus::Result<String>;

    /// WaitingOnTake property
    #[zbus(property)]
    fn waiting_on_take(&self) -> zbus::Result<bool>;

    /// SinceUSec property
    #[zbus(property, name = "SinceUSec")]
    fn since_usec(&self) -> zbus::Result<u64>;

    /// ReportId property
    #[zbus(property)]
    fn report_id(&self) -> zbus::Result<String>;
}

#[proxy(interface = "io.holdfast.Agent1.Job", assume_defaults = true)]
pub trait Job {
    /// Cancel method
    fn cancel(
        &self,
        options: std::collections::HashMap<&str, &zbus::Variant<'_>>,
    ) -> zbus::Result<()>;

    /// Wait method
    fn wait(
        &self,
        options: std::collections::HashMap<&str, &zbus::Variant<'_>>,
    ) -> zbus::Result<(
        String,
        std::collections::HashMap<String, zbus::OwnedVariant>,
    )>;

    /// StepCompleted signal
    #[zbus(signal)]
    fn step_completed(
        &self,
        seq: u32,
        step: &str,
        resource: &str,
        result: &str,
        reason: &str,
        more: std::collections::HashMap<&str, zbus::Variant<'_>>,
    ) -> zbus::Result<()>;

    /// Id property
    #[zbus(property)]
    fn id(&self) -> zbus::Result<u32>;

    /// Kind property
    #[zbus(property)]
    fn kind(&self) -> zbus::Result<String>;

    /// Modules property
    #[zbus(property)]
    fn modules(&self) -> zbus::Result<Vec<String>>;

    /// ReportId property
    #[zbus(property)]
    fn report_id(&self) -> zbus::Result<String>;

    /// StartedByUID property
    #[zbus(property, name = "StartedByUID")]
    fn started_by_uid(&self) -> zbus::Result<u32>;

    /// StartedUSec property
    #[zbus(property, name = "StartedUSec")]
    fn started_usec(&self) -> zbus::Result<u64>;

    /// State property
    #[zbus(property)]
    fn state(&self) -> zbus::Result<String>;

    /// Percent property
    #[zbus(property)]
    fn percent(&self) -> zbus::Result<u32>;

    /// PercentValid property
    #[zbus(property)]
    fn percent_valid(&self) -> zbus::Result<bool>;

    /// Step property
    #[zbus(property)]
    fn step(&self) -> zbus::Result<String>;

    /// Resource property
    #[zbus(property)]
    fn resource(&self) -> zbus::Result<String>;

    /// Cancelable property
    #[zbus(property)]
    fn cancelable(&self) -> zbus::Result<bool>;

    /// Result property
    #[zbus(property)]
    fn result(&self) -> zbus::Result<String>;

    /// ErrorName property
    #[zbus(property)]
    fn error_name(&self) -> zbus::Result<String>;

    /// ErrorMessage property
    #[zbus(property)]
    fn error_message(&self) -> zbus::Result<String>;
}
