//! Shows in systemd what is held: markers for holdfast-generator, one reload, and a target for each module that waits on
//! a take.
//!
//! It tells and decides nothing, so what goes wrong here is a warning and no failure of the apply.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use holdfast_core::held;
use holdfast_core::name::{HostPath, NameError};
use holdfast_core::plan::{Plan, Scope};
use holdfast_core::step::Act;
use thiserror::Error;

use crate::error::{AgentError, chain};
use crate::execute::files::{self, Attributes, Before, FileError};
use crate::execute::systemd::{Job, Order, Systemd, SystemdError, Verb};
use crate::observe::ObserveError;
use crate::observe::systemd::Manager;
use crate::reporting::Reporting;
use crate::settings::Settings;

/// Where systemd looks for generators, the strongest first.
const GENERATORS: [&str; 4] = [
    "/run/systemd/system-generators",
    "/etc/systemd/system-generators",
    "/usr/local/lib/systemd/system-generators",
    "/usr/lib/systemd/system-generators",
];
const GENERATOR: &str = "holdfast-generator";

/// What could not be shown.
#[derive(Debug, Error)]
enum HeldError {
    #[error(transparent)]
    File(#[from] FileError),
    #[error(transparent)]
    Path(#[from] NameError),
    #[error(transparent)]
    Look(#[from] ObserveError),
    #[error(transparent)]
    Systemd(#[from] SystemdError),
}

/// Makes systemd show the holds of a plan; before its steps are executed, so that its one reload is theirs as well.
///
/// # Errors
/// [`AgentError::ReportNotDurable`] where something must be done and the journal does not answer.
pub async fn show(
    settings: &Settings, scope: &Scope, plan: &Plan, manager: &Manager, reporting: &Reporting,
) -> Result<(), AgentError> {
    let todo = match Todo::find(settings, scope, plan, manager).await {
        Ok(todo) => todo,
        Err(error) => {
            warn(&error);
            return Ok(());
        }
    };
    if todo != Todo::default() {
        reporting.durable().await?;
        todo.run(&settings.state_dir, plan).await;
    }
    Ok(())
}

/// What is not yet as it ought to be.
#[derive(Debug, Default, PartialEq, Eq)]
struct Todo {
    /// Markers to write, name to content.
    write: BTreeMap<String, Vec<u8>>,
    /// Markers to remove, as they are now.
    remove: BTreeMap<String, Vec<u8>>,
    /// systemd shows something else than the markers say.
    reload: bool,
    /// Targets to start and to stop.
    targets: Vec<Job>,
}

impl Todo {
    async fn find(settings: &Settings, scope: &Scope, plan: &Plan, manager: &Manager) -> Result<Self, HeldError> {
        let there = read(&place(&settings.state_dir)?)?;
        let wanted = held::markers(&there, &plan.holds, scope);
        let differs = |one: &BTreeMap<String, Vec<u8>>, other: &BTreeMap<String, Vec<u8>>| {
            let only = one.iter().filter(|(name, content)| other.get(*name) != Some(*content));
            only.map(|(name, content)| (name.clone(), content.clone())).collect::<BTreeMap<_, _>>()
        };
        let write = differs(&wanted, &there);
        let mut remove = differs(&there, &wanted);
        remove.retain(|name, _| !wanted.contains_key(name));
        let lost = is_installed() && is_lost(&wanted, manager.unit_path());
        let active = manager.active_like(&held::targets()).await?;
        Ok(Self {
            reload: lost || !write.is_empty() || !remove.is_empty(),
            write,
            remove,
            targets: jobs(&wanted, &active, scope),
        })
    }

    async fn run(self, state_dir: &Path, plan: &Plan) {
        for (name, content) in &self.write {
            let written = place(state_dir).and_then(|place| {
                Ok(files::write_file(&place.join(name)?, content, Attributes::root(0o600), Before::Anything)?)
            });
            written.unwrap_or_else(|error| warn(&error));
        }
        for (name, content) in &self.remove {
            let removed =
                place(state_dir).and_then(|place| Ok(files::remove_file(&place.join(name)?, &files::sha256(content))?));
            removed.unwrap_or_else(|error| warn(&error));
        }
        if let Err(error) = self.tell(plan).await {
            warn(&error.into());
        }
    }

    async fn tell(&self, plan: &Plan) -> Result<(), SystemdError> {
        let reloads = plan.steps.iter().any(|step| matches!(step.act, Act::Reload));
        if (!self.reload || reloads) && self.targets.is_empty() {
            return Ok(());
        }
        let systemd = Systemd::connect().await?;
        if self.reload && !reloads {
            systemd.reload().await?;
        }
        systemd.run(&self.targets).await.into_iter().collect()
    }
}

/// The targets that are not as the markers say.
fn jobs(wanted: &BTreeMap<String, Vec<u8>>, active: &BTreeSet<String>, scope: &Scope) -> Vec<Job> {
    let asked = |unit: &&String| held::waiting_module(unit).is_some_and(|module| scope.has(module));
    let job = |unit: &String, verb| Job { unit: unit.clone(), verb, order: Order::Ignored };
    let start = wanted.keys().filter(|unit| !active.contains(*unit)).filter(asked).map(|unit| job(unit, Verb::Start));
    let stop = active.iter().filter(|unit| !wanted.contains_key(*unit)).filter(asked).map(|unit| job(unit, Verb::Stop));
    start.chain(stop).collect()
}

/// True when the generator did not see the markers: /var was not mounted yet when the host booted, or an apply was cut
/// off before its reload.
fn is_lost(wanted: &BTreeMap<String, Vec<u8>>, unit_path: &[String]) -> bool {
    let Some(late) = unit_path.iter().find(|path| path.ends_with("/generator.late")) else { return false };
    let markers = wanted
        .iter()
        .filter(|(name, _)| !held::scripts(name).iter().any(|script| Path::new(script).exists()))
        .filter_map(|(name, content)| Some((name.clone(), held::Marker::parse(content).ok()?)));
    held::generated(&markers.collect()).keys().any(|path| Path::new(late).join(path).symlink_metadata().is_err())
}

/// True unless the generator is missing or masked: then no reload brings what it makes.
fn is_installed() -> bool {
    let found = GENERATORS.iter().find_map(|place| Path::new(place).join(GENERATOR).metadata().ok());
    found.is_some_and(|found| found.is_file() && found.len() > 0)
}

/// The markers that are there. What is no regular file is none.
fn read(place: &HostPath) -> Result<BTreeMap<String, Vec<u8>>, HeldError> {
    let mut markers = BTreeMap::new();
    for name in files::read_directory(place)?.unwrap_or_default() {
        match files::read_file(&place.join(&name)?) {
            Ok(Some(content)) => drop(markers.insert(name, content)),
            Ok(None) | Err(FileError::NotFile(_)) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(markers)
}

fn place(state_dir: &Path) -> Result<HostPath, HeldError> {
    Ok(HostPath::new(&state_dir.join("held").to_string_lossy())?)
}

fn warn(error: &HeldError) {
    log::warn!("systemd does not show all that is held: {}", chain(error));
}

#[cfg(test)]
mod tests;
