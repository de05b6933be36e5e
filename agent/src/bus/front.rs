//! What happens, as objects and signals: one task, so that everything is told in its order.

use std::collections::BTreeMap;
use std::sync::Arc;

use holdfast_core::name::ModuleName;
use holdfast_core::report::Report;
use holdfast_core::resource::ResourceKey;
use holdfast_core::status::holds::HoldSince;
use holdfast_core::status::view::View;
use serde_json::json;
use tokio::sync::mpsc::UnboundedReceiver;
use zbus::fdo::{ObjectManager, Properties};
use zbus::object_server::{Interface, SignalEmitter};
use zbus::{Connection, ObjectServer, OwnedObjectPath, Variant};

use super::dict::{Dict, dict};
use super::hold::HoldObject;
use super::job::JobObject;
use super::log_control::LogControl;
use super::manager::{self, Manager, Now};
use super::module::{self, ModuleNow, ModuleObject};
use super::path;
use crate::desk::job::{End, Job, StepEnd};
use crate::desk::{Desk, Event};
use crate::error::chain;
use crate::latest::Latest;

/// The objects of one connection.
pub struct Front {
    connection: Connection,
    desk: Arc<Desk>,
    modules: BTreeMap<String, OwnedObjectPath>,
    holds: BTreeMap<(String, ResourceKey), HoldSince>,
}

impl Front {
    /// Serves what is known now. The object manager comes last: nobody listens yet to what it would tell.
    pub async fn open(connection: &Connection, desk: &Arc<Desk>) -> zbus::Result<Self> {
        let view = desk.view();
        let mut front = Self {
            connection: connection.clone(),
            desk: Arc::clone(desk),
            modules: BTreeMap::new(),
            holds: BTreeMap::new(),
        };
        let manager =
            Manager { desk: Arc::clone(desk), now: Latest::new(Now { view: Arc::clone(&view), active: path::none() }) };
        front.server().at(path::ROOT, manager).await?;
        front.server().at(path::LOG_CONTROL, LogControl).await?;
        front.show(&view).await?;
        front.server().at(path::ROOT, ObjectManager).await?;
        Ok(front)
    }

    /// Tells everything that happens. What cannot be told, since the bus has gone, changes nothing of what is done.
    pub async fn run(mut self, mut events: UnboundedReceiver<Event>) {
        while let Some(event) = events.recv().await {
            if let Err(error) = self.tell(event).await {
                log::warn!("the bus was not told: {}", chain(&error));
                if self.connection.is_closed() {
                    return;
                }
            }
        }
    }

    async fn tell(&mut self, event: Event) -> zbus::Result<()> {
        match event {
            Event::Looked(view) => self.show(&view).await,
            Event::JobNew(job) => self.job_new(&job).await,
            Event::JobMoved(job) => self.job_moved(&job).await,
            Event::Step(job, step) => self.step(&job, step).await,
            Event::JobEnded(job, end) => self.job_ended(&job, &end).await,
            Event::JobGone(job) => self.server().remove::<JobObject, _>(path::job(job.id)).await.map(drop),
            Event::Fence(_) => Ok(()),
        }
    }

    /// Brings modules, holds and the manager's properties to what a look says.
    async fn show(&mut self, view: &Arc<View>) -> zbus::Result<()> {
        self.show_holds(view).await?;
        self.show_modules(view).await?;
        self.manager(Arc::clone(view)).await
    }

    async fn show_holds(&mut self, view: &View) -> zbus::Result<()> {
        let key = |held: &HoldSince| (held.hold.module.clone(), held.hold.resource.clone());
        let now: BTreeMap<_, HoldSince> = view.holds.iter().map(|held| (key(held), held.clone())).collect();
        let before = std::mem::take(&mut self.holds);
        for (_, gone) in before.iter().filter(|(key, _)| !now.contains_key(*key)) {
            self.server().remove::<HoldObject, _>(path::hold(&gone.hold)).await?;
        }
        for (key, held) in &now {
            let (path, new) = (path::hold(&held.hold), held.clone());
            match before.get(key) {
                Some(old) if old == held => {}
                Some(_) => self.change(path, |object: &HoldObject| drop(object.held.set(new))).await?,
                None => {
                    self.server().at(path, HoldObject { desk: Arc::clone(&self.desk), held: Latest::new(new) }).await?;
                }
            }
        }
        self.holds = now;
        Ok(())
    }

    async fn show_modules(&mut self, view: &View) -> zbus::Result<()> {
        let has_object = |name: &&String| ModuleName::new(name.as_str()).is_ok();
        let now: BTreeMap<String, OwnedObjectPath> =
            view.modules.keys().filter(has_object).map(|name| (name.clone(), module::path_of(name))).collect();
        let before = std::mem::take(&mut self.modules);
        for (_, path) in before.iter().filter(|(name, _)| !now.contains_key(*name)) {
            self.server().remove::<ModuleObject, _>(path).await?;
        }
        for (name, path) in &now {
            let Some(module) = view.modules.get(name) else { continue };
            let holds = view.holds.iter().filter(|held| held.hold.module == *name);
            let last = view.last.as_ref();
            let now = ModuleNow {
                module: module.clone(),
                holds: holds.map(|held| path::hold(&held.hold)).collect(),
                last_report: last.map(|last| last.report.clone()).unwrap_or_default(),
                last_applied_usec: last.map_or(0, |last| last.finished_usec),
            };
            if before.contains_key(name) {
                self.change(path, |object: &ModuleObject| drop(object.now.set(now))).await?;
            } else {
                self.server().at(path, ModuleObject { desk: Arc::clone(&self.desk), now: Latest::new(now) }).await?;
            }
        }
        self.modules = now;
        Ok(())
    }

    async fn job_new(&self, job: &Arc<Job>) -> zbus::Result<()> {
        let path = path::job(job.id);
        let object =
            JobObject { desk: Arc::clone(&self.desk), job: Arc::clone(job), now: Latest::new((job.now(), None)) };
        self.server().at(&path, object).await?;
        let more = json!({ "modules": job.modules, "uid": job.caller.uid });
        Manager::job_new(&self.root()?, job.id, path, job.work.token(), &manager::one(&job.modules), dict(&more))
            .await?;
        self.manager(self.desk.view()).await
    }

    async fn job_moved(&self, job: &Arc<Job>) -> zbus::Result<()> {
        let (now, end) = (job.now(), job.end());
        self.change(path::job(job.id), |object: &JobObject| drop(object.now.set((now, end)))).await
    }

    async fn step(&self, job: &Job, step: StepEnd) -> zbus::Result<()> {
        let StepEnd { seq, step, module, resource, result, reason } = step;
        let emitter = SignalEmitter::new(&self.connection, path::job(job.id))?;
        let more = dict(&json!({ "module": module }));
        JobObject::step_completed(&emitter, seq, &step, &resource, result, &reason, more).await
    }

    async fn job_ended(&self, job: &Arc<Job>, end: &End) -> zbus::Result<()> {
        self.manager(self.desk.view()).await?;
        let root = self.root()?;
        let report_id = job.now().report;
        if let End::Reported(report) = end {
            let Report { counts, result, .. } = &**report;
            let more = dict(&json!({ "action": report.action, "total": counts.total, "sentence": report.sentence() }));
            Manager::report_completed(
                &root,
                &report_id,
                result.token(),
                counts.applied,
                counts.held,
                counts.failed,
                more,
            )
            .await?;
        }
        Manager::job_removed(&root, job.id, path::job(job.id), end.result(), &report_id, Dict::new()).await
    }

    /// Tells the last look's numbers, and which job runs now.
    async fn manager(&self, view: Arc<View>) -> zbus::Result<()> {
        let active = self.desk.active_job().map_or_else(path::none, |job| path::job(job.id));
        self.change(path::ROOT, |manager: &Manager| drop(manager.now.set(Now { view, active }))).await
    }

    /// Changes an object and tells the properties that are others now, with their values.
    async fn change<'p, P, I>(&self, path: P, change: impl FnOnce(&I)) -> zbus::Result<()>
    where
        P: TryInto<zbus::ObjectPath<'p>>,
        P::Error: Into<zbus::Error>,
        I: Interface,
    {
        let object = self.server().interface::<_, I>(path).await?;
        let (server, emitter) = (self.server(), object.signal_emitter().clone());
        let object = object.get().await;
        let before = object.get_all(server, &self.connection, None, &emitter).await?;
        change(&object);
        let after = object.get_all(server, &self.connection, None, &emitter).await?;
        let changed = after.iter().filter(|(name, value)| before.get(*name) != Some(*value));
        let changed: std::collections::HashMap<&str, Variant<'_>> =
            changed.map(|(name, value)| Ok((name.as_str(), value.try_into()?))).collect::<zbus::Result<_>>()?;
        if changed.is_empty() {
            return Ok(());
        }
        Properties::properties_changed(&emitter, I::name(), changed, (&[]).into()).await
    }

    fn server(&self) -> &ObjectServer {
        self.connection.object_server()
    }

    fn root(&self) -> zbus::Result<SignalEmitter<'static>> {
        SignalEmitter::new(&self.connection, path::ROOT)
    }
}
