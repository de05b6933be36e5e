//! `io.holdfast.Agent1.Manager`.

use std::io::Write as _;
use std::os::fd::OwnedFd as StdFd;
use std::sync::Arc;

use holdfast_core::hold::Reason;
use holdfast_core::record::Summary;
use holdfast_core::status::ModuleStatus;
use holdfast_core::status::view::{ModuleView, View};
use serde::Serialize;
use serde_json::{Value, json};
use zbus::message::Header;
use zbus::object_server::SignalEmitter;
use zbus::{Connection, OwnedFd, OwnedObjectPath, interface};

use super::authorize::{Action, ask};
use super::dict::{Dict, dict};
use super::error::BusError;
use super::{guarded, options, path};
use crate::apply::Busy;
use crate::desk::Desk;
use crate::desk::job::{Job, Work};
use crate::latest::Latest;
use crate::reports;

/// The most reports that one call lists.
const MANY: u32 = 10_000;

/// name, state, reasons, source, held, path, more
type ModuleEntry = (String, String, String, String, u32, OwnedObjectPath, Dict);
/// module, resource, reason, cause, unit, sentence, way out, since, path, more
type HoldEntry = (String, String, String, String, String, String, String, u64, OwnedObjectPath, Dict);
/// id, kind, module, state, percent, path, more
type JobEntry = (u32, String, String, String, u32, OwnedObjectPath, Dict);
/// id, result, started, finished, counts
type ReportEntry = (String, String, u64, u64, Dict);

/// What the properties tell.
pub struct Now {
    /// The last look.
    pub view: Arc<View>,
    /// The job that runs.
    pub active: OwnedObjectPath,
}

/// The agent's own object.
pub struct Manager {
    pub(super) desk: Arc<Desk>,
    /// What its properties tell.
    pub(super) now: Latest<Now>,
}

#[interface(name = "io.holdfast.Agent1.Manager", introspection_docs = false)]
impl Manager {
    #[zbus(out_args("modules"))]
    async fn list_modules(&self) -> Result<Vec<ModuleEntry>, BusError> {
        let _call = self.desk.activity.call();
        let view = self.desk.view();
        view.modules.values().map(|module| module_entry(&self.desk, module)).collect()
    }

    #[zbus(out_args("holds"))]
    async fn list_holds(&self, module: &str, filter: Dict) -> Result<Vec<HoldEntry>, BusError> {
        let _call = self.desk.activity.call();
        let mut filter = options::Options::of(filter, &["reason"])?;
        let reason = filter.text("reason")?;
        let reason = reason.map(|text| text.parse::<Reason>().map_err(|error| BusError::invalid(error.to_string())));
        let reason = reason.transpose()?;
        let module = named(module);
        let view = self.desk.view_with(module)?;
        view.held(module, reason)
            .map(|held| {
                let (hold, more) = (&held.hold, dict(&row(held)?));
                Ok((
                    hold.module.clone(),
                    hold.resource.to_string(),
                    hold.reason.to_string(),
                    hold.cause.resource.to_string(),
                    hold.unit.clone().unwrap_or_default(),
                    hold.sentence.clone(),
                    hold.hint.clone().unwrap_or_default(),
                    held.since_usec,
                    path::hold(hold),
                    more,
                ))
            })
            .collect()
    }

    #[zbus(out_args("jobs"))]
    async fn list_jobs(&self) -> Vec<JobEntry> {
        let _call = self.desk.activity.call();
        self.desk.jobs().iter().map(|job| job_entry(job)).collect()
    }

    #[zbus(out_args("holds"))]
    async fn get_holds_by_unit(&self, unit: &str) -> Vec<OwnedObjectPath> {
        let _call = self.desk.activity.call();
        let unit = if unit.contains('.') { unit.to_owned() } else { format!("{unit}.service") };
        let view = self.desk.view();
        let holds = view.holds.iter().filter(|held| held.hold.unit.as_deref() == Some(unit.as_str()));
        holds.map(|held| path::hold(&held.hold)).collect()
    }

    #[zbus(out_args("reports"))]
    async fn list_reports(&self, since_usec: u64, max: u32) -> Result<Vec<ReportEntry>, BusError> {
        let _call = self.desk.activity.call();
        let max = usize::try_from(max.min(MANY)).unwrap_or_default();
        let since = Some(since_usec).filter(|since| *since != 0);
        Ok(reports::list(since, max).await?.iter().map(report_entry).collect())
    }

    #[zbus(out_args("report"))]
    async fn get_report(&self, report_id: &str) -> Result<Dict, BusError> {
        let _call = self.desk.activity.call();
        let reports::Found { report, warning } = reports::find(report_id).await?;
        let mut value = report.to_json().map_err(not_json)?;
        value["complete"] = warning.is_none().into();
        value["warning"] = warning.into();
        Ok(dict(&value))
    }

    #[zbus(out_args("fd"))]
    async fn open_report(&self, report_id: &str, options: Dict) -> Result<OwnedFd, BusError> {
        let _call = self.desk.activity.call();
        options::Options::of(options, &[])?;
        let mut lines = Vec::new();
        for fields in reports::entries(&reports::whole_id(report_id).await?).await? {
            let values = fields.into_iter().map(|(field, values)| match values.as_slice() {
                [one] => (field, Value::from(one.as_str())),
                _ => (field, Value::from(values)),
            });
            serde_json::to_writer(&mut lines, &Value::Object(values.collect())).map_err(not_json)?;
            lines.push(b'\n');
        }
        memory(&lines).map(OwnedFd::from).map_err(|error| BusError::standard("Failed", error.to_string()))
    }

    #[zbus(out_args("changes_and_holds"))]
    async fn plan(
        &self, modules: Vec<String>, options: Dict, #[zbus(header)] header: Header<'_>,
        #[zbus(connection)] connection: &Connection,
    ) -> Result<Vec<Dict>, BusError> {
        let _call = self.desk.activity.call();
        options::Options::of(options, &[])?;
        guarded(connection, &header, Action::Check, "plan", &modules).await?;
        let view = self.desk.look(&modules).await?;
        self.desk.heard().await;
        rows(&View::clone(&view).only(&modules))
    }

    #[zbus(out_args("job_id", "job"))]
    async fn apply(
        &self, modules: Vec<String>, options: Dict, #[zbus(header)] header: Header<'_>,
        #[zbus(connection)] connection: &Connection,
    ) -> Result<(u32, OwnedObjectPath), BusError> {
        let _call = self.desk.activity.call();
        let mut options = options::Options::of(options, &["dry-run", "wait"])?;
        let busy = if options.is("wait")? { Busy::Wait } else { Busy::Refuse };
        let (work, action) =
            if options.is("dry-run")? { (Work::Look, Action::Check) } else { (Work::Apply, Action::Apply) };
        let caller = guarded(connection, &header, action, "apply", &modules).await?;
        let job = self.desk.start(work, modules, busy, caller)?;
        self.desk.heard().await;
        Ok((job.id, path::job(job.id)))
    }

    #[zbus(out_args("answer"))]
    async fn can_apply(
        &self, module: &str, #[zbus(header)] header: Header<'_>, #[zbus(connection)] connection: &Connection,
    ) -> Result<String, BusError> {
        let _call = self.desk.activity.call();
        let module = named(module);
        self.desk.view_with(module)?;
        let modules: Vec<String> = module.map(str::to_owned).into_iter().collect();
        Ok(ask(connection, &header, Action::Apply, &modules).await?.token().to_owned())
    }

    #[zbus(signal)]
    pub(super) async fn job_new(
        emitter: &SignalEmitter<'_>, id: u32, job: OwnedObjectPath, kind: &str, module: &str, more: Dict,
    ) -> zbus::Result<()>;

    #[zbus(signal)]
    pub(super) async fn job_removed(
        emitter: &SignalEmitter<'_>, id: u32, job: OwnedObjectPath, result: &str, report_id: &str, more: Dict,
    ) -> zbus::Result<()>;

    #[zbus(signal)]
    pub(super) async fn report_completed(
        emitter: &SignalEmitter<'_>, report_id: &str, result: &str, applied: u32, held: u32, failed: u32, more: Dict,
    ) -> zbus::Result<()>;

    #[zbus(property(emits_changed_signal = "const"))]
    async fn version(&self) -> &str {
        env!("CARGO_PKG_VERSION")
    }

    #[zbus(property(emits_changed_signal = "const"))]
    async fn features(&self) -> Vec<&str> {
        vec!["apply", "hold", "plan", "reports"]
    }

    #[zbus(property)]
    async fn module_count(&self) -> u32 {
        u32::try_from(self.now.get().view.modules.len()).unwrap_or(u32::MAX)
    }

    #[zbus(property)]
    async fn held_count(&self) -> u32 {
        u32::try_from(self.now.get().view.holds.len()).unwrap_or(u32::MAX)
    }

    #[zbus(property)]
    async fn held_modules(&self) -> Vec<(String, u32)> {
        let now = self.now.get();
        let modules = now.view.modules.values().map(|module| &module.status);
        modules
            .filter(|status| status.counts.held > 0)
            .map(|status| (status.name.clone(), status.counts.held))
            .collect()
    }

    #[zbus(property)]
    async fn last_report(&self) -> String {
        self.now.get().view.last.as_ref().map(|last| last.report.clone()).unwrap_or_default()
    }

    #[zbus(property, name = "LastApplyUSec")]
    async fn last_apply_usec(&self) -> u64 {
        self.now.get().view.last.as_ref().map_or(0, |last| last.finished_usec)
    }

    #[zbus(property, name = "ObservedUSec")]
    async fn observed_usec(&self) -> u64 {
        self.now.get().view.observed_usec
    }

    #[zbus(property)]
    async fn active_job(&self) -> OwnedObjectPath {
        self.now.get().active.clone()
    }
}

/// A module's name; "" is all of them.
fn named(module: &str) -> Option<&str> {
    Some(module).filter(|module| !module.is_empty())
}

fn module_entry(desk: &Desk, module: &ModuleView) -> Result<ModuleEntry, BusError> {
    let ModuleStatus { name, state, counts, reasons, .. } = &module.status;
    let reasons: Vec<String> = reasons.iter().map(|(reason, number)| format!("{reason} {number}")).collect();
    Ok((
        name.clone(),
        state.token().to_owned(),
        reasons.join(", "),
        super::module::source(desk, name),
        counts.held,
        super::module::path_of(name),
        dict(&row(module)?),
    ))
}

pub(super) fn job_entry(job: &Job) -> JobEntry {
    let now = job.now();
    let more = json!({
        "report": now.report, "uid": job.caller.uid, "started_usec": job.started_usec, "step": now.step,
        "modules": job.modules, "done": now.done, "of": now.of,
    });
    let state = now.state.token().to_owned();
    (job.id, job.work.token().to_owned(), one(&job.modules), state, now.percent(), path::job(job.id), dict(&more))
}

/// The module of a job that has one; "" for several or all.
pub(super) fn one(modules: &[String]) -> String {
    if let [module] = modules { module.clone() } else { String::new() }
}

fn report_entry(summary: &Summary) -> ReportEntry {
    let Summary { report, action, result, started_usec, finished_usec, counts, sentence } = summary;
    let mut more = json!(counts);
    more["action"] = action.as_str().into();
    more["sentence"] = sentence.as_str().into();
    let result = result.map_or("", |result| result.token()).to_owned();
    (report.clone(), result, *started_usec, finished_usec.unwrap_or_default(), dict(&more))
}

/// The rows of a plan: `what` is change, step, hold, note.
pub(super) fn rows(view: &View) -> Result<Vec<Dict>, BusError> {
    let mut rows = Vec::new();
    let mut add = |what: &str, row: Result<Value, BusError>| {
        row.map(|mut row| {
            row["what"] = what.into();
            rows.push(dict(&row));
        })
    };
    view.changes.iter().try_for_each(|change| add("change", row(change)))?;
    view.steps.iter().try_for_each(|step| add("step", row(step)))?;
    view.holds.iter().try_for_each(|hold| add("hold", row(hold)))?;
    view.notes.iter().try_for_each(|note| add("note", row(note)))?;
    Ok(rows)
}

fn row(value: &impl Serialize) -> Result<Value, BusError> {
    serde_json::to_value(value).map_err(not_json)
}

fn not_json(error: serde_json::Error) -> BusError {
    BusError::standard("Failed", error.to_string())
}

/// A file in memory with this content, to be read from its start.
fn memory(content: &[u8]) -> std::io::Result<StdFd> {
    use std::io::Seek as _;
    let fd = rustix::fs::memfd_create("report", rustix::fs::MemfdFlags::CLOEXEC)?;
    let mut file = std::fs::File::from(fd);
    file.write_all(content)?;
    file.rewind()?;
    Ok(file.into())
}
