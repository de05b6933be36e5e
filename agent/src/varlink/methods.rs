//! The methods.

use std::sync::Arc;

use holdfast_core::hold::Reason;
use holdfast_core::status::holds::HoldSince;
use holdfast_core::status::view::View;
use holdfast_core::step::Stop;
use serde_json::{Value, json};

use super::parameters::Parameters;
use super::session::Session;
use super::wire::Call;
use super::{Fault, INTERFACE, INTERFACES, Refusal, SERVICE, follow};
use crate::apply::Busy;
use crate::desk::job::{Job, Work};
use crate::reports;

/// The most reports that one call lists.
const MANY: usize = 10_000;

type Answer = Result<Value, Fault>;

impl Session {
    /// Answers a call.
    pub(super) async fn call(&mut self, call: Call) -> Answer {
        let Call { method, parameters, more, oneway: _ } = call;
        let (interface, name) = method.rsplit_once('.').unwrap_or((&method, ""));
        let Some((interface, description)) = INTERFACES.into_iter().find(|(known, _)| *known == interface) else {
            return Err(Refusal::standard("InterfaceNotFound", json!({ "interface": interface })).into());
        };
        if !description.contains(&format!("\nmethod {name}(")) {
            return Err(not_found(&method));
        }
        let parameters = Parameters::of(parameters)?;
        match (interface, name) {
            (SERVICE, "GetInfo") => info(parameters),
            (SERVICE, "GetInterfaceDescription") => describe(parameters),
            (INTERFACE, "ListModules") => self.list_modules(parameters),
            (INTERFACE, "ListHolds") => self.list_holds(parameters),
            (INTERFACE, "Plan") => self.plan(parameters).await,
            (INTERFACE, "Apply") => self.apply(parameters, more).await,
            (INTERFACE, "ListJobs") => self.list_jobs(parameters),
            (INTERFACE, "WaitJob") => self.wait_job(parameters, more).await,
            (INTERFACE, "CancelJob") => self.cancel_job(parameters),
            (INTERFACE, "GetReport") => get_report(parameters).await,
            (INTERFACE, "ListReports") => list_reports(parameters).await,
            (INTERFACE, "Hold") => self.hold(parameters).await,
            (INTERFACE, "Unhold") => self.unhold(parameters).await,
            _ => Err(not_found(&method)),
        }
    }

    fn list_modules(&self, parameters: Parameters) -> Answer {
        parameters.end()?;
        let view = self.desk.view();
        let (last_report, last_apply_usec) = last(&view);
        Ok(json!({
            "observed_usec": view.observed_usec, "last_report": last_report, "last_apply_usec": last_apply_usec,
            "modules": view.module_rows()?,
        }))
    }

    fn list_holds(&self, mut parameters: Parameters) -> Answer {
        let (module, reason): (Option<String>, Option<Reason>) =
            (parameters.take("module")?, parameters.take("reason")?);
        parameters.end()?;
        let view = self.desk.view_with(module.as_deref())?;
        let holds: Vec<&HoldSince> = view.held(module.as_deref(), reason).collect();
        Ok(json!({ "observed_usec": view.observed_usec, "holds": serde_json::to_value(holds)? }))
    }

    async fn plan(&self, mut parameters: Parameters) -> Answer {
        let modules: Vec<String> = parameters.take("modules")?;
        parameters.end()?;
        let view = View::clone(&*self.desk.look(&modules).await?).only(&modules);
        self.desk.heard().await;
        let (last_report, last_apply_usec) = last(&view);
        Ok(json!({
            "observed_usec": view.observed_usec, "last_report": last_report, "last_apply_usec": last_apply_usec,
            "modules": view.module_rows()?,
            "changes": serde_json::to_value(&view.changes)?,
            "steps": serde_json::to_value(&view.steps)?,
            "holds": serde_json::to_value(&view.holds)?,
            "notes": serde_json::to_value(&view.notes)?,
        }))
    }

    async fn apply(&mut self, mut parameters: Parameters, more: bool) -> Answer {
        let (modules, wait): (_, Option<bool>) = (parameters.take("modules")?, parameters.take("wait")?);
        parameters.end()?;
        let busy = if wait.unwrap_or(false) { Busy::Wait } else { Busy::Refuse };
        let events = more.then(|| self.desk.listen());
        let job = self.desk.start(Work::Apply, modules, busy, self.caller())?;
        if self.is_oneway() {
            return Ok(Value::Null);
        }
        self.follow(&job, events).await
    }

    fn list_jobs(&self, parameters: Parameters) -> Answer {
        parameters.end()?;
        let jobs: Vec<Value> = self.desk.jobs().iter().map(|job| follow::row(job)).collect();
        Ok(json!({ "jobs": jobs }))
    }

    async fn wait_job(&mut self, mut parameters: Parameters, more: bool) -> Answer {
        let id = parameters.take("id")?;
        parameters.end()?;
        let events = more.then(|| self.desk.listen());
        let job = self.job(id)?;
        self.follow(&job, events).await
    }

    fn cancel_job(&self, mut parameters: Parameters) -> Answer {
        let id = parameters.take("id")?;
        parameters.end()?;
        let job = self.job(id)?;
        if job.end().is_some() {
            return Err(Refusal::own("NotCancelable", &format!("job {id} has ended")).into());
        }
        job.stop.set(Stop::Canceled);
        Ok(json!({}))
    }

    async fn hold(&self, mut parameters: Parameters) -> Answer {
        let (module, note): (String, String) = (parameters.take("module")?, parameters.take("note")?);
        parameters.end()?;
        if note.trim().is_empty() {
            return Err(Refusal::parameter("note").into());
        }
        self.desk.set_operator_hold(&module, Some(&note), &self.caller()).await?;
        self.desk.heard().await;
        Ok(json!({}))
    }

    async fn unhold(&self, mut parameters: Parameters) -> Answer {
        let module: String = parameters.take("module")?;
        parameters.end()?;
        self.desk.set_operator_hold(&module, None, &self.caller()).await?;
        self.desk.heard().await;
        Ok(json!({}))
    }

    fn job(&self, id: u32) -> Result<Arc<Job>, Refusal> {
        let job = self.desk.jobs().into_iter().find(|job| job.id == id);
        job.ok_or_else(|| Refusal::own("NoSuchJob", &format!("no job {id} is running, and none ended just now")))
    }
}

fn info(parameters: Parameters) -> Answer {
    parameters.end()?;
    Ok(json!({
        "vendor": "holdfast", "product": "holdfastd", "version": env!("CARGO_PKG_VERSION"), "url": "man:holdfastd(8)",
        "interfaces": INTERFACES.map(|(name, _)| name),
    }))
}

fn describe(mut parameters: Parameters) -> Answer {
    let interface: String = parameters.take("interface")?;
    parameters.end()?;
    let known = INTERFACES.into_iter().find(|(name, _)| *name == interface);
    let (_, description) =
        known.ok_or_else(|| Refusal::standard("InterfaceNotFound", json!({ "interface": interface })))?;
    Ok(json!({ "description": description }))
}

async fn get_report(mut parameters: Parameters) -> Answer {
    let id: String = parameters.take("report_id")?;
    parameters.end()?;
    let reports::Found { report, warning } = reports::find(&id).await?;
    Ok(json!({ "report": report.to_json()?, "complete": warning.is_none(), "warning": warning }))
}

async fn list_reports(mut parameters: Parameters) -> Answer {
    let (since, max): (_, Option<usize>) = (parameters.take("since_usec")?, parameters.take("max")?);
    parameters.end()?;
    let list = reports::list(since, max.unwrap_or(reports::MANY).min(MANY)).await?;
    Ok(json!({ "reports": serde_json::to_value(list)? }))
}

/// The last apply's report, and when it ended.
fn last(view: &View) -> (Option<&str>, Option<u64>) {
    let last = view.last.as_ref();
    (last.map(|last| last.report.as_str()), last.map(|last| last.finished_usec))
}

fn not_found(method: &str) -> Fault {
    Refusal::standard("MethodNotFound", json!({ "method": method })).into()
}
