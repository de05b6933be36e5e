//! The road: read -> desired -> observe -> plan -> execute -> observe -> verify -> report.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Instant;

use holdfast_core::account::{self, Account};
use holdfast_core::confirm;
use holdfast_core::desired::{self, Desired, Drafts, Inputs};
use holdfast_core::expand::{EnvFiles, HostFacts};
use holdfast_core::generated::{Printed, PrintedUnit};
use holdfast_core::ledger::{Ledger, ModuleEntry, OperatorHold};
use holdfast_core::module::{self, Module};
use holdfast_core::name::{HostPath, ModuleName};
use holdfast_core::observed::{Observed, Wanted};
use holdfast_core::plan::{self, Given, Plan, Scope};
pub use holdfast_core::record::Caller;
use holdfast_core::report::{Counts, Report, ReportResult, escape};
use holdfast_core::resource::ResourceKey;
use holdfast_core::step::{Act, Outcome, Step};

use crate::error::AgentError;
use crate::execute::Hands;
use crate::generator::{self, Staged};
use crate::held;
use crate::observe::{self, Eyes, PodmanLists};
use crate::reporting::Reporting;
use crate::settings::Settings;
use crate::source::directory;
use crate::stop::StopSign;
use crate::store::{Store, StoreError};
use crate::time::now_usec;
use crate::watch::Limits;

/// Whether to wait while another apply runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Busy {
    /// Give [`AgentError::Busy`] at once.
    Refuse,
    /// Wait for its end.
    Wait,
}

/// What is asked of an apply.
#[derive(Debug, Clone)]
pub struct Request {
    /// The modules by name; none means all.
    pub modules: Vec<String>,
    /// Who asks.
    pub caller: Caller,
    /// How it is told to end early: after the step that runs.
    pub stop: StopSign,
}

/// How an apply ended.
#[derive(Debug, Clone)]
pub struct Applied {
    /// Its report, which is in the journal.
    pub report: Report,
    /// How all modules are afterwards.
    pub look: Look,
}

/// What is told while it goes on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Progress {
    /// The report was begun.
    Began {
        /// Its id.
        report: String,
    },
    /// Something is done now: "pull localhost:5000/svc:1.0", step k of n.
    Doing {
        /// The act.
        text: String,
        /// Steps that are finished.
        done: usize,
        /// All steps.
        of: usize,
    },
    /// A step ended.
    Ended {
        /// The act.
        step: String,
        /// The module that it was for.
        module: String,
        /// The resource that it was for.
        resource: ResourceKey,
        /// done, failed, not-attempted.
        result: &'static str,
        /// Why it is not done.
        reason: String,
    },
}

/// Whom to tell.
pub type Tell<'a> = &'a mut (dyn FnMut(Progress) + Send);

/// One look without any act: what `plan`, `status`, `holds` and `is-applied` are made of.
#[derive(Debug, Clone)]
pub struct Look {
    /// What the modules ask for.
    pub desired: Desired,
    /// What the host has.
    pub observed: Observed,
    /// What is ours.
    pub ledger: Ledger,
    /// What would be done and what is held.
    pub plan: Plan,
}

/// Looks at the host and plans for all modules; no side effects but caches in /run/holdfast. Modules that are named must
/// be there.
///
/// # Errors
/// [`AgentError`] when a module is not assigned or the host cannot be looked at.
pub async fn look(settings: &Settings, modules: &[String]) -> Result<Look, AgentError> {
    let ledger = open(settings)?.read().map_err(store_error)?;
    check_assigned(settings, &Scope::of(modules), &ledger)?;
    let (eyes, lists) = Eyes::open(settings).await.map_err(observe_error)?;
    let sources = Sources::read(settings, &ledger).await?;
    let (asked, observed) = sources.look(&eyes, lists, &ledger).await?;
    let plan = asked.plan(&Scope::All, &observed, &ledger);
    Ok(Look { desired: asked.desired, observed, ledger, plan })
}

/// Applies modules; an empty list means all. Held resources are no error: the report says which.
///
/// # Errors
/// [`AgentError`] when nothing could be begun; what fails later is in the report.
pub async fn apply(settings: &Settings, request: &Request, progress: Tell<'_>) -> Result<Applied, AgentError> {
    let Request { modules, caller, stop } = request;
    let store = open(settings)?;
    // Whoever asked was refused before, or waits: another process that has it is an agent that is about to leave.
    let mut lock = store.lock(Busy::Wait).await?;
    let before = store.read().map_err(store_error)?;
    let scope = Scope::of(modules);
    check_assigned(settings, &scope, &before)?;
    let reporting = Reporting::start("apply", caller, modules).await?;
    if let Some(earlier) = &lock.cut_off {
        reporting.tell_cut_off(earlier).await?;
    }
    lock.note(reporting.id(), "apply").map_err(store_error)?;
    progress(Progress::Began { report: reporting.id().to_owned() });
    let result = match run(settings, &scope, &store, &before, &reporting, stop, progress).await {
        Ok(applied) => {
            reporting.finish(&applied.report).await?;
            Ok(applied)
        }
        Err(error) => Err(reporting.cut_off(error).await),
    };
    lock.clear().map_err(store_error)?;
    result
}

/// Everything between the first and the last entry of the report.
async fn run(
    settings: &Settings, scope: &Scope, store: &Store, before: &Ledger, reporting: &Reporting, stop: &StopSign,
    progress: Tell<'_>,
) -> Result<Applied, AgentError> {
    let (clock, started_usec) = (Instant::now(), now_usec());
    let (eyes, lists) = Eyes::open(settings).await.map_err(observe_error)?;
    let sources = Sources::read(settings, before).await?;
    let (asked, mut observed) = sources.look(&eyes, lists, before).await?;
    let mut plan = asked.plan(scope, &observed, before);
    let mut hands = None;
    if !plan.steps.is_empty() {
        reporting.durable().await?;
        let mut new =
            Hands::new(settings, limits(settings, &asked.desired), stop.clone()).await.map_err(observe_error)?;
        if pull(&eyes, &mut new, &plan, &mut observed, progress).await? {
            plan = asked.plan(scope, &observed, before);
        }
        hands = Some(new);
    }
    // Some of what is ours needs no act: a volume that Podman makes at the first start.
    let intended = confirm::intents(before.clone(), &plan);
    if hands.is_some() {
        store.write(&intended).map_err(store_error)?;
    }
    held::show(settings, scope, &plan, eyes.manager(), reporting).await?;
    let mut outcomes = Vec::new();
    if let Some(mut hands) = hands {
        outcomes = hands.execute(&plan.steps, progress).await;
        observed = eyes.observe(eyes.ask(), &asked.wanted).await.map_err(observe_error)?;
    }
    let ledger = confirm::confirmed(intended, &plan, &outcomes, &asked.desired, &observed);
    let verified = (!plan.steps.is_empty()).then(|| asked.plan(scope, &observed, &ledger));
    let ledger = confirm::with_holds(ledger, &plan.holds, scope, started_usec);
    if !plan.steps.is_empty() || ledger != *before || !store.is_there()? {
        save(store, before, &ledger)?;
    }

    let report = account::report(Account {
        report: reporting.id(),
        started_usec,
        duration_usec: u64::try_from(clock.elapsed().as_micros()).unwrap_or(u64::MAX),
        plan: &plan,
        outcomes: &outcomes,
        verified: verified.as_ref(),
        before,
        after: &ledger,
        scope,
    });
    let plan = match scope {
        Scope::All => verified.unwrap_or(plan),
        Scope::Only(_) => asked.plan(&Scope::All, &observed, &ledger),
    };
    Ok(Applied { report: report.bounded(), look: Look { desired: asked.desired, observed, ledger, plan } })
}

/// Records the operator's hold on a module, or ends it (`note` = none); reports it to the journal.
///
/// # Errors
/// [`AgentError`] when the module is not assigned or the ledger cannot be written.
pub async fn set_operator_hold(
    settings: &Settings, module: &str, note: Option<&str>, caller: &Caller,
) -> Result<(), AgentError> {
    let clock = Instant::now();
    let store = open(settings)?;
    let _lock = store.lock(Busy::Refuse).await?;
    let mut ledger = store.read().map_err(store_error)?;
    let before = ledger.clone();
    check_assigned(settings, &Scope::of(&[module.to_owned()]), &ledger)?;
    let name = ModuleName::new(module).map_err(|_| no_such_module(settings, module))?;
    let action = if note.is_some() { "hold" } else { "unhold" };
    let reporting = Reporting::start(action, caller, &[module.to_owned()]).await?;
    let started_usec = now_usec();

    let entry = ledger.module_mut(&name);
    entry.operator_hold =
        note.map(|note| OperatorHold { note: note.to_owned(), since_usec: started_usec, uid: caller.uid });
    if entry.resources.is_empty() && entry.operator_hold.is_none() {
        ledger.modules.remove(&name);
    }
    if let Err(error) = save(&store, &before, &ledger) {
        return Err(reporting.cut_off(error).await);
    }
    let report = Report {
        report: reporting.id().to_owned(),
        action: action.to_owned(),
        result: ReportResult::Done,
        counts: Counts::default(),
        started_usec,
        duration_usec: u64::try_from(clock.elapsed().as_micros()).unwrap_or(u64::MAX),
        resources: Vec::new(),
        notes: Vec::new(),
        newly_held: 0,
        ended: Vec::new(),
    };
    reporting.finish(&report).await
}

/// Pulls what local storage does not have, before anything is touched. What cannot be pulled is a hold, not a failure,
/// so the plan is made again; true when there was anything to pull.
async fn pull(
    eyes: &Eyes, hands: &mut Hands, plan: &Plan, observed: &mut Observed, progress: Tell<'_>,
) -> Result<bool, AgentError> {
    let pulls: Vec<Step> = plan.steps.iter().filter(|step| matches!(step.act, Act::Pull { .. })).cloned().collect();
    if pulls.is_empty() {
        return Ok(false);
    }
    let outcomes = hands.execute(&pulls, progress).await;
    for (step, outcome) in pulls.iter().zip(outcomes) {
        let Act::Pull { image } = &step.act else { continue };
        match outcome {
            Outcome::Failed(failure) => {
                observed.pull_errors.insert(image.clone(), failure.error);
            }
            // It stays a step of the plan, which will not be tried either.
            Outcome::Stopped(_) => {}
            Outcome::Done | Outcome::Pinned(_) | Outcome::NotAttempted { after: _ } => {
                let local = eyes.engine().image(image).await.map_err(observe_error)?;
                observed.images.insert(image.clone(), local);
                observed.pulled.insert(image.clone());
            }
        }
    }
    Ok(true)
}

/// Everything that is read before the host is looked at.
struct Sources {
    modules: Vec<Module>,
    printed: Printed,
    host: HostFacts,
    env: EnvFiles,
    places: Places,
}

/// Where the settings put things, as paths of the host.
struct Places {
    quadlets: HostPath,
    units: HostPath,
    tmpfiles: HostPath,
}

impl Sources {
    async fn read(settings: &Settings, ledger: &Ledger) -> Result<Self, AgentError> {
        let files = directory::read_all(&settings.modules_dir).map_err(observe_error)?;
        let modules: Vec<Module> = files.into_iter().map(module::read).collect();
        // What cannot be staged is unreadable, and keeps what is installed of it.
        let staged: Vec<Staged> = modules
            .iter()
            .filter_map(|module| {
                let (name, files) = (module.name.clone(), desired::staged(module).ok()?);
                let installed = installed(ledger, &name, &settings.quadlet_dir.join(&name));
                Some(Staged { module: name, files, installed })
            })
            .collect();
        let printed: Printed = generator::run(settings, &staged).await.map_err(observe_error)?.into();
        let host = observe::host_facts();
        let env = env_files(&desired::environment_files(&modules, &printed, &host));
        let path = |path: &Path| HostPath::new(&path.to_string_lossy()).map_err(observe_error);
        let places = Places {
            quadlets: path(&settings.quadlet_dir)?,
            units: path(&settings.unit_dir)?,
            tmpfiles: path(&settings.tmpfiles_dir)?,
        };
        Ok(Self { modules, printed, host, env, places })
    }

    /// Looks at what the modules ask for. Whose a mounted path is depends on what is there, so that resources are put
    /// together from what was read and what was seen.
    async fn look(mut self, eyes: &Eyes, lists: PodmanLists, ledger: &Ledger) -> Result<(Asked, Observed), AgentError> {
        let foreign_quadlets = self.foreign_quadlets();
        // Not needed beyond the reading, and the largest of all that is read.
        let printed = std::mem::take(&mut self.printed);
        let unseen = Observed::default();
        let drafts = Drafts::read(&self.inputs(ledger, &unseen), &printed);
        drop(printed);
        let wanted = drafts.wanted(&self.inputs(ledger, &unseen));
        let observed = eyes.observe(lists, &wanted).await.map_err(observe_error)?;
        let desired = drafts.assemble(&self.inputs(ledger, &observed));
        Ok((Asked { desired, wanted, foreign_quadlets }, observed))
    }

    fn inputs<'a>(&'a self, ledger: &'a Ledger, observed: &'a Observed) -> Inputs<'a> {
        Inputs {
            modules: &self.modules,
            host: &self.host,
            env: &self.env,
            quadlet_dir: self.places.quadlets.clone(),
            unit_dir: self.places.units.clone(),
            tmpfiles_dir: self.places.tmpfiles.clone(),
            podman_version: &observed.podman_version,
            ledger,
            seen: &observed.paths,
        }
    }

    /// Units that Quadlet files outside of our folder make.
    fn foreign_quadlets(&self) -> BTreeMap<String, Vec<String>> {
        let ours =
            |unit: &PrintedUnit| HostPath::new(&unit.source).is_ok_and(|path| self.places.quadlets.contains(&path));
        let mut foreign: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for unit in self.printed.units.iter().filter(|unit| !ours(unit)) {
            foreign.entry(unit.name.clone()).or_default().push(unit.source.clone());
        }
        foreign
    }
}

/// What the modules ask for, and what must be looked at to judge it.
struct Asked {
    desired: Desired,
    wanted: Wanted,
    foreign_quadlets: BTreeMap<String, Vec<String>>,
}

impl Asked {
    fn plan(&self, scope: &Scope, observed: &Observed, ledger: &Ledger) -> Plan {
        plan::plan(Given { desired: &self.desired, observed, ledger, foreign_quadlets: &self.foreign_quadlets, scope })
    }
}

/// What the ledger has of a module in its folder of installed files, by the paths below it.
fn installed(ledger: &Ledger, module: &str, folder: &Path) -> BTreeSet<String> {
    let part = ModuleName::new(module).ok().and_then(|name| ledger.modules.get(&name));
    let paths = part.into_iter().flat_map(|part| part.resources.values()).flat_map(|entry| entry.paths.keys());
    let below = |path: &HostPath| Some(Path::new(path.as_str()).strip_prefix(folder).ok()?.to_str()?.to_owned());
    paths.filter_map(below).collect()
}

/// Modules that are named must be assigned, or in the ledger.
///
/// # Errors
/// [`AgentError::NoSuchModule`]
pub fn check_names(settings: &Settings, modules: &[String]) -> Result<(), AgentError> {
    check_assigned(settings, &Scope::of(modules), &open(settings)?.read().map_err(store_error)?)
}

/// A module that is named must be assigned, or in the ledger (its directory may have vanished).
fn check_assigned(settings: &Settings, scope: &Scope, ledger: &Ledger) -> Result<(), AgentError> {
    let Scope::Only(names) = scope else { return Ok(()) };
    for name in names {
        let in_ledger = ModuleName::new(name.as_str()).is_ok_and(|name| ledger.modules.contains_key(&name));
        let is_name = !name.contains('/') && !matches!(name.as_str(), "" | "." | "..");
        let is_assigned = is_name && settings.modules_dir.join(name).is_dir();
        if !in_ledger && !is_assigned {
            return Err(no_such_module(settings, name));
        }
    }
    Ok(())
}

/// That a module is not assigned, with those that are.
#[must_use]
pub fn no_such_module(settings: &Settings, name: &str) -> AgentError {
    let entries = std::fs::read_dir(&settings.modules_dir).into_iter().flatten().flatten();
    let directories = entries.filter(|entry| entry.path().is_dir());
    let mut assigned: Vec<String> =
        directories.map(|entry| escape(&entry.file_name().to_string_lossy()).into_owned()).collect();
    assigned.sort();
    AgentError::NoSuchModule { name: escape(name).into_owned(), assigned }
}

/// The files that `[Service] EnvironmentFile=` names. One that cannot be read is as one that is not there: what it would
/// have set stays unresolved, and that is said.
fn env_files(paths: &BTreeSet<String>) -> EnvFiles {
    paths.iter().map(|path| (path.clone(), std::fs::read_to_string(path).ok())).collect()
}

fn open(settings: &Settings) -> Result<Store, AgentError> {
    Store::open(&settings.state_dir, &settings.quadlet_dir).map_err(store_error)
}

/// Writes the ledger, and beside the installed files each module's part that changed.
fn save(store: &Store, before: &Ledger, ledger: &Ledger) -> Result<(), AgentError> {
    store.write(ledger).map_err(store_error)?;
    for (module, entry) in ledger.modules.iter().filter(|(module, entry)| before.modules.get(*module) != Some(*entry)) {
        store.write_module_copy(module, entry).map_err(store_error)?;
    }
    for module in before.modules.keys().filter(|module| !ledger.modules.contains_key(*module)) {
        store.write_module_copy(module, &ModuleEntry::default()).map_err(store_error)?;
    }
    Ok(())
}

fn store_error(error: StoreError) -> AgentError {
    AgentError::Store(Box::new(error))
}

/// How long each unit's container may take to become healthy, and must then stay so.
fn limits(settings: &Settings, desired: &Desired) -> BTreeMap<String, Limits> {
    let mut limits = BTreeMap::new();
    for module in desired.modules.values() {
        let timeout = module.manifest.health_timeout.unwrap_or(settings.health_timeout);
        let stay = module.manifest.health_watch.unwrap_or(settings.health_watch);
        for unit in module.resources.values().filter_map(|resource| resource.unit.as_ref()) {
            limits.insert(unit.clone(), Limits { timeout, stay });
        }
    }
    limits
}

fn observe_error(error: impl std::error::Error + Send + Sync + 'static) -> AgentError {
    AgentError::Observe(Box::new(error))
}
