//! Executes steps; decides nothing. Every step gets its outcome: none stops the others that do not need it.

pub mod files;
pub mod podman;
pub mod systemd;

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;

use futures_util::{StreamExt, stream};
use holdfast_core::ledger::Pin;
use holdfast_core::name::HostPath;
use holdfast_core::step::{Act, Failure, FileContent, Origin, Outcome, PinSource, Step, StepId};
use holdfast_core::trailer;
use thiserror::Error;
use tokio::sync::mpsc;

use crate::apply::{Progress, Tell};
use crate::error::chain;
use crate::settings::Settings;
use crate::stop::StopSign;
use crate::watch::{self, Limits, WatchError, Watched};
use files::{Attributes, Before, Emptied, FileError};
use podman::{Podman, PodmanError};
use systemd::{Job, Order, Systemd, SystemdError, Verb};

/// Pulls that run at once: more only fight for the same line.
const PULLS: usize = 4;
/// Calls of Podman or systemd at once.
const CALLS: usize = 16;

/// Everything that acts on the host.
#[derive(Debug, Clone)]
pub struct Hands {
    systemd: Systemd,
    podman: Podman,
    settings: Settings,
    limits: BTreeMap<String, Limits>,
    stop: StopSign,
}

/// Why a step failed.
#[derive(Debug, Error)]
enum ActError {
    #[error(transparent)]
    File(#[from] FileError),
    #[error(transparent)]
    Podman(#[from] PodmanError),
    #[error(transparent)]
    Systemd(#[from] SystemdError),
    #[error(transparent)]
    Watch(#[from] WatchError),
    #[error("the plan takes its image from step {0}, which found none")]
    NoPin(StepId),
}

impl Hands {
    /// Connects to systemd. `limits` has the times of units whose module sets its own; the settings have the others.
    ///
    /// # Errors
    /// [`SystemdError::Connect`]
    pub async fn new(
        settings: &Settings, limits: BTreeMap<String, Limits>, stop: StopSign,
    ) -> Result<Self, SystemdError> {
        let systemd = Systemd::connect().await?;
        Ok(Self { systemd, podman: Podman::new(&settings.podman_socket), settings: settings.clone(), limits, stop })
    }

    /// Executes steps in their order; what may go together goes together. One outcome per step. After a stop sign nothing
    /// is begun.
    pub async fn execute(&mut self, steps: &[Step], progress: Tell<'_>) -> Vec<Outcome> {
        let mut outcomes: Vec<Outcome> = Vec::with_capacity(steps.len());
        while outcomes.len() < steps.len() {
            let batch = batch(steps, outcomes.len());
            let mut done = blocked(steps, batch.clone(), &outcomes);
            let tried: Vec<StepId> = batch.clone().filter(|id| !done.contains_key(id)).collect();
            if let Some(stop) = self.stop.get() {
                done.extend(tried.into_iter().map(|id| (id, Outcome::Stopped(stop))));
            } else {
                let mut teller = Teller { progress, done: outcomes.len(), of: steps.len() };
                done.extend(self.run(steps, &tried, &outcomes, &mut teller).await);
            }
            for (id, outcome) in done {
                progress(ended(steps, id, &outcome));
                outcomes.push(outcome);
            }
        }
        outcomes
    }

    /// Runs the steps of one batch: all of one kind, or a single one.
    async fn run(
        &self, steps: &[Step], tried: &[StepId], outcomes: &[Outcome], teller: &mut Teller<'_>,
    ) -> BTreeMap<StepId, Outcome> {
        let acts: Vec<(StepId, &Step)> = tried.iter().filter_map(|id| Some((*id, steps.get(*id)?))).collect();
        let Some((_, first)) = acts.first() else { return BTreeMap::new() };
        match Kind::of(&first.act) {
            Kind::Pull => self.pull(&acts, teller).await,
            Kind::Pin => self.pin(&acts, teller).await,
            Kind::Stop => self.stop(&acts, teller).await,
            Kind::Start => self.start(steps, &acts, teller).await,
            Kind::Look | Kind::Single => {
                let mut tried = Vec::new();
                for (id, step) in acts {
                    teller.tell(step.act.to_string());
                    tried.push(self.single(id, step, outcomes));
                }
                stream::iter(tried).buffered(CALLS).collect().await
            }
        }
    }

    async fn pull(&self, acts: &[(StepId, &Step)], teller: &mut Teller<'_>) -> BTreeMap<StepId, Outcome> {
        let (sender, mut lines) = mpsc::unbounded_channel();
        let pulls: Vec<_> = acts.iter().map(|(id, step)| self.pull_one(*id, step, sender.clone())).collect();
        drop(sender);
        let mut pulls = stream::iter(pulls).buffer_unordered(PULLS);
        let mut done = BTreeMap::new();
        loop {
            tokio::select! {
                // An image that is half there harms nothing, and may be long in coming.
                stop = self.stop.wait() => {
                    let open = acts.iter().filter(|(id, _)| !done.contains_key(id)).map(|(id, _)| *id);
                    let stopped: Vec<StepId> = open.collect();
                    done.extend(stopped.into_iter().map(|id| (id, Outcome::Stopped(stop))));
                    return done;
                }
                Some(line) = lines.recv() => teller.tell(line),
                ended = pulls.next() => match ended {
                    Some((id, outcome)) => {
                        done.insert(id, outcome);
                        teller.done += 1;
                    }
                    None => return done,
                },
            }
        }
    }

    async fn pull_one(&self, id: StepId, step: &Step, lines: mpsc::UnboundedSender<String>) -> (StepId, Outcome) {
        let Act::Pull { image } = &step.act else { return (id, Outcome::Done) };
        lines.send(step.act.to_string()).unwrap_or_default();
        let pulled = self.podman.pull(image, lines).await;
        (id, pulled.map_or_else(|error| failed(error.into()), |()| Outcome::Done))
    }

    async fn pin(&self, acts: &[(StepId, &Step)], teller: &mut Teller<'_>) -> BTreeMap<StepId, Outcome> {
        let mut pins = Vec::new();
        for (id, step) in acts {
            let Act::Pin { image, origin } = &step.act else { continue };
            teller.tell(step.act.to_string());
            pins.push(self.pin_one(*id, image, *origin));
        }
        stream::iter(pins).buffer_unordered(CALLS).collect().await
    }

    async fn pin_one(&self, id: StepId, image: &str, origin: Origin) -> (StepId, Outcome) {
        let pin = self.podman.pin(image, origin).await;
        (id, pin.map_or_else(|error| failed(error.into()), Outcome::Pinned))
    }

    async fn stop(&self, acts: &[(StepId, &Step)], teller: &mut Teller<'_>) -> BTreeMap<StepId, Outcome> {
        self.jobs(acts, teller)
            .await
            .into_iter()
            .map(|(id, ended)| (id, ended.map_or_else(failed, |()| Outcome::Done)))
            .collect()
    }

    /// Starts and restarts all of them together, then watches their containers together.
    async fn start(
        &self, steps: &[Step], acts: &[(StepId, &Step)], teller: &mut Teller<'_>,
    ) -> BTreeMap<StepId, Outcome> {
        let mut done = BTreeMap::new();
        let (mut ids, mut watched, mut not_tried) = (Vec::new(), Vec::new(), Vec::new());
        for ((id, ended), (_, step)) in self.jobs(acts, teller).await.into_iter().zip(acts) {
            match (&ended, self.watched(&step.act)) {
                (Ok(()), Some(watch)) => {
                    ids.push(id);
                    watched.push(watch);
                }
                (Err(ActError::Systemd(error)), _) if error.is_dependency() => not_tried.push(id),
                _ => {}
            }
            done.insert(id, ended.map_or_else(failed, |()| Outcome::Done));
        }
        if let [first, rest @ ..] = watched.as_slice() {
            let more = if rest.is_empty() { String::new() } else { format!(" and {} more", rest.len()) };
            teller.tell(format!("watch {}{more}", first.container));
        }
        let answers = watch::watch(&self.podman, &self.systemd, &watched).await;
        for (id, answer) in ids.into_iter().zip(answers) {
            if let Err(error) = answer {
                done.insert(id, failed(error.into()));
            }
        }
        settle(steps, &not_tried, &mut done);
        done
    }

    async fn jobs(&self, acts: &[(StepId, &Step)], teller: &mut Teller<'_>) -> Vec<(StepId, Result<(), ActError>)> {
        let mut jobs = Vec::new();
        let mut ids = Vec::new();
        for (id, step) in acts {
            let (unit, verb) = match &step.act {
                Act::Start { unit, container: _ } => (unit, Verb::Start),
                Act::Restart { unit, container: _ } => (unit, Verb::Restart),
                Act::Stop { unit } => (unit, Verb::Stop),
                _ => continue,
            };
            teller.tell(step.act.to_string());
            jobs.push(Job { unit: unit.clone(), verb, order: Order::Kept });
            ids.push(*id);
        }
        let answers = self.systemd.run(&jobs).await;
        ids.into_iter().zip(answers).map(|(id, answer)| (id, answer.map_err(ActError::from))).collect()
    }

    fn watched(&self, act: &Act) -> Option<Watched> {
        let (Act::Start { unit, container } | Act::Restart { unit, container }) = act else { return None };
        let usual = Limits { timeout: self.settings.health_timeout, stay: self.settings.health_watch };
        let limits = self.limits.get(unit).copied().unwrap_or(usual);
        Some(Watched { unit: unit.clone(), container: container.clone()?, limits })
    }

    async fn single(&self, id: StepId, step: &Step, outcomes: &[Outcome]) -> (StepId, Outcome) {
        (id, self.act(step, outcomes).await.map_or_else(failed, |()| Outcome::Done))
    }

    /// The acts that stand for themselves.
    async fn act(&self, step: &Step, outcomes: &[Outcome]) -> Result<(), ActError> {
        match &step.act {
            Act::MakeDirectory { path, mode, owner } => {
                files::make_directory(path, attributes(*mode, owner), &step.module)?;
            }
            Act::MakeLink { path, target } => files::make_link(path, target)?,
            Act::WriteFile { path, content, mode, owner, replaces } => {
                let before = replaces.as_deref().map_or(Before::Nothing, Before::Sha256);
                let content = bytes(content, outcomes)?;
                files::write_file(path, &content, attributes(*mode, owner), before)?;
            }
            Act::RemoveFile { path, sha256 } => {
                files::remove_file(path, sha256)?;
                self.remove_own_folders(path)?;
            }
            Act::Reload => self.systemd.reload().await?,
            Act::ResetFailed { unit } => self.systemd.reset_failed(unit).await?,
            Act::Assert { unit, source, mark } => self.systemd.assert(unit, source, mark).await?,
            Act::Disable { unit } => self.systemd.disable(unit).await?,
            Act::Enable { unit } => self.systemd.enable(unit).await?,
            // These run in batches.
            Act::Pull { image: _ }
            | Act::Pin { image: _, origin: _ }
            | Act::Stop { unit: _ }
            | Act::Start { unit: _, container: _ }
            | Act::Restart { unit: _, container: _ } => {}
        }
        Ok(())
    }

    /// Removes the folders above a removed file that nobody but us makes, as far as they are empty.
    fn remove_own_folders(&self, path: &HostPath) -> Result<(), FileError> {
        let mut folder = path.parent();
        while let Some(own) = folder.filter(|folder| self.is_own_folder(folder)) {
            match files::remove_empty_directory(&own)? {
                Emptied::Gone => folder = own.parent(),
                Emptied::HoldsSomething => break,
            }
        }
        Ok(())
    }

    /// A module's folder, one below it, or the drop-in folder of a plain unit.
    fn is_own_folder(&self, folder: &HostPath) -> bool {
        let path = Path::new(folder.as_str());
        let below_quadlets = path != self.settings.quadlet_dir && path.starts_with(&self.settings.quadlet_dir);
        let drop_in = path.parent() == Some(&self.settings.unit_dir) && folder.as_str().ends_with(".d");
        below_quadlets || drop_in
    }
}

/// Tells what goes on, with the count of finished steps.
struct Teller<'a> {
    progress: Tell<'a>,
    done: usize,
    of: usize,
}

impl Teller<'_> {
    fn tell(&mut self, text: String) {
        (self.progress)(Progress::Doing { text, done: self.done, of: self.of });
    }
}

/// What may go together.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Pull,
    Pin,
    Stop,
    Start,
    /// It changes nothing.
    Look,
    /// One after the other.
    Single,
}

impl Kind {
    fn of(act: &Act) -> Self {
        match act {
            Act::Pull { image: _ } => Self::Pull,
            Act::Pin { image: _, origin: _ } => Self::Pin,
            Act::Stop { unit: _ } => Self::Stop,
            Act::Start { unit: _, container: _ } | Act::Restart { unit: _, container: _ } => Self::Start,
            Act::MakeDirectory { path: _, mode: _, owner: _ }
            | Act::MakeLink { path: _, target: _ }
            | Act::WriteFile { path: _, content: _, mode: _, owner: _, replaces: _ }
            | Act::RemoveFile { path: _, sha256: _ }
            | Act::Reload
            | Act::ResetFailed { unit: _ }
            | Act::Disable { unit: _ }
            | Act::Enable { unit: _ } => Self::Single,
            Act::Assert { unit: _, source: _, mark: _ } => Self::Look,
        }
    }
}

/// The next steps that go together. Starts may need each other: systemd knows their order and waits itself.
fn batch(steps: &[Step], first: StepId) -> Range<StepId> {
    let kind = steps.get(first).map_or(Kind::Single, |step| Kind::of(&step.act));
    let mut end = first + 1;
    while let Some(step) = steps.get(end) {
        let joins = Kind::of(&step.act) == kind
            && match kind {
                Kind::Single => false,
                Kind::Start => true,
                Kind::Pull | Kind::Pin | Kind::Stop | Kind::Look => step.needs.iter().all(|need| *need < first),
            };
        if !joins {
            break;
        }
        end += 1;
    }
    first..end
}

/// The steps of a batch that cannot be tried, since one that they need failed or was not tried itself.
fn blocked(steps: &[Step], batch: Range<StepId>, outcomes: &[Outcome]) -> BTreeMap<StepId, Outcome> {
    let mut blocked: BTreeMap<StepId, Outcome> = BTreeMap::new();
    for id in batch {
        let needs = steps.get(id).map(|step| step.needs.as_slice()).unwrap_or_default();
        let root = needs.iter().find_map(|need| root(*need, outcomes.get(*need).or_else(|| blocked.get(need))?));
        if let Some(after) = root {
            blocked.insert(id, Outcome::NotAttempted { after });
        }
    }
    blocked
}

/// What systemd did not try, since what it requires failed in the same batch, was not attempted.
fn settle(steps: &[Step], not_tried: &[StepId], done: &mut BTreeMap<StepId, Outcome>) {
    for id in not_tried {
        let needs = steps.get(*id).map(|step| step.needs.as_slice()).unwrap_or_default();
        if let Some(after) = needs.iter().find_map(|need| root(*need, done.get(need)?)) {
            done.insert(*id, Outcome::NotAttempted { after });
        }
    }
}

/// The failed step that an outcome goes back to; none for a good one.
fn root(id: StepId, outcome: &Outcome) -> Option<StepId> {
    match outcome {
        Outcome::Done | Outcome::Pinned(_) | Outcome::Stopped(_) => None,
        Outcome::Failed(_) => Some(id),
        Outcome::NotAttempted { after } => Some(*after),
    }
}

/// What is told of a step that ended.
fn ended(steps: &[Step], id: StepId, outcome: &Outcome) -> Progress {
    let (result, reason) = match outcome {
        Outcome::Done | Outcome::Pinned(_) => ("done", String::new()),
        Outcome::Failed(failure) => ("failed", failure.error.clone()),
        Outcome::NotAttempted { after } => ("not-attempted", name(steps, *after)),
        Outcome::Stopped(stop) => ("not-attempted", stop.token().to_owned()),
    };
    let step = &steps[id];
    Progress::Ended {
        step: step.act.to_string(),
        module: step.module.clone(),
        resource: step.resource.clone(),
        result,
        reason,
    }
}

/// The resource of a step, with its module.
fn name(steps: &[Step], id: StepId) -> String {
    steps.get(id).map_or_else(String::new, |step| format!("{} {}", step.module, step.resource))
}

fn attributes(mode: u32, (user, group): &(String, String)) -> Attributes<'_> {
    Attributes { mode, owner: (user, group) }
}

fn bytes(content: &FileContent, outcomes: &[Outcome]) -> Result<Vec<u8>, ActError> {
    match content {
        FileContent::Bytes(bytes) => Ok(bytes.clone()),
        FileContent::Quadlet { text, trailer } => {
            let pin: Option<&Pin> = match &trailer.pin {
                PinSource::AsWritten => None,
                PinSource::Known(pin) => Some(pin),
                PinSource::Step(id) => match outcomes.get(*id) {
                    Some(Outcome::Pinned(pin)) => Some(pin),
                    _ => return Err(ActError::NoPin(*id)),
                },
            };
            Ok(trailer::render(text, trailer, pin).into_bytes())
        }
    }
}

fn failed(error: ActError) -> Outcome {
    let (errno, exit_status) = match &error {
        ActError::File(error) => (error.errno(), None),
        ActError::Systemd(error) => (None, error.exit_status()),
        ActError::Watch(error) => (None, error.exit_status()),
        ActError::Podman(_) | ActError::NoPin(_) => (None, None),
    };
    Outcome::Failed(Failure { error: chain(&error), errno, exit_status })
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
