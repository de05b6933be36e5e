//! What the agent knows and does for everybody who asks. The bus and the socket are two views of it: what comes in at one
//! door is told at the other.

pub mod job;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use holdfast_core::record::rebuild;
use holdfast_core::status::view::View;
use holdfast_core::status::{LastApply, SCHEMA, Sources};
use holdfast_core::step::Stop;
use tokio::sync::{Mutex as Turn, mpsc};

use crate::activity::Activity;
use crate::apply::{self, Applied, Busy, Caller, Look, Progress, Request};
use crate::error::{AgentError, chain};
use crate::journal::Journal;
use crate::latest::Latest;
use crate::settings::Settings;
use crate::{lastlook, time};
use job::{End, Job, StepEnd, Work};

/// How long a job that ended is kept for those who ask how.
const KEPT: Duration = Duration::from_secs(60);

/// How near the end of an agent that nobody needs is.
const SOON: Duration = Duration::from_secs(5);

/// How many reports are searched for the last apply: holds and other acts of the operator may have come after it.
const RECENT: usize = 100;

/// The agent.
pub struct Desk {
    /// Whether anybody needs it.
    pub activity: Activity,
    settings: Settings,
    view: Latest<View>,
    /// The last apply, once it was looked for.
    last: Turn<Option<Option<LastApply>>>,
    jobs: Mutex<BTreeMap<u32, Arc<Job>>>,
    next_job: AtomicU32,
    /// Whoever changes the host has it; the others wait in their order.
    turn: Turn<()>,
    listeners: Mutex<Vec<mpsc::UnboundedSender<Event>>>,
    /// Looks that were begun.
    looks: AtomicU64,
    /// The number of the look that was told last; whoever tells or keeps one has it.
    newest: Mutex<u64>,
}

/// What happens, for those who listen.
#[derive(Debug, Clone)]
pub enum Event {
    /// The host was looked at.
    Looked(Arc<View>),
    /// A job exists.
    JobNew(Arc<Job>),
    /// A job is further than it was.
    JobMoved(Arc<Job>),
    /// A step of a job ended.
    Step(Arc<Job>, StepEnd),
    /// A job ended.
    JobEnded(Arc<Job>, Arc<End>),
    /// A job is no longer kept.
    JobGone(Arc<Job>),
    /// Everything that was told before is heard once this is dropped: also by a listener that leaves.
    Fence(mpsc::Sender<()>),
}

impl Desk {
    /// The agent with what it knew when it was last here.
    #[must_use]
    pub fn open(settings: Settings) -> Arc<Self> {
        let view = lastlook::read(&settings.run_dir);
        Arc::new(Self {
            activity: Activity::default(),
            settings,
            view: Latest::new(view.unwrap_or_else(|| View { schema: SCHEMA, ..View::default() })),
            last: Turn::default(),
            jobs: Mutex::default(),
            next_job: AtomicU32::new(1),
            turn: Turn::default(),
            listeners: Mutex::default(),
            looks: AtomicU64::new(0),
            newest: Mutex::default(),
        })
    }

    /// Where things are.
    #[must_use]
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// The settings as they are now: an agent that cannot understand them answers that, and one that runs finds what was
    /// changed.
    ///
    /// # Errors
    /// [`AgentError::Settings`]
    pub fn now(&self) -> Result<Settings, AgentError> {
        Ok(self.settings.read()?)
    }

    /// The last look.
    #[must_use]
    pub fn view(&self) -> Arc<View> {
        self.view.get()
    }

    /// The last look, in which a module that is named must be.
    ///
    /// # Errors
    /// [`AgentError::NoSuchModule`]
    pub fn view_with(&self, module: Option<&str>) -> Result<Arc<View>, AgentError> {
        let view = self.view();
        match module.filter(|module| !view.modules.contains_key(*module)) {
            Some(unknown) => Err(apply::no_such_module(&self.settings, unknown)),
            None => Ok(view),
        }
    }

    /// Everything that happens from now on, in its order.
    pub fn listen(&self) -> mpsc::UnboundedReceiver<Event> {
        let (sender, receiver) = mpsc::unbounded_channel();
        lock(&self.listeners).push(sender);
        receiver
    }

    /// Waits until those who listen have heard everything that was told so far: so that an answer comes after the
    /// signals that belong to it.
    pub async fn heard(&self) {
        let (fence, mut heard) = mpsc::channel(1);
        self.tell(&Event::Fence(fence));
        // Nothing is sent: it ends when the last listener has dropped its fence.
        heard.recv().await;
    }

    /// Looks at the host; no other side effect than that everybody sees it. Modules that are named must be there.
    ///
    /// # Errors
    /// [`AgentError`]
    pub async fn look(&self, modules: &[String]) -> Result<Arc<View>, AgentError> {
        let number = self.next_look();
        let look = apply::look(&self.now()?, modules).await?;
        let mut last = self.last.lock().await;
        if last.is_none() {
            *last = last_apply().await;
        }
        let view = View::of(&sources(&look), last.as_ref().and_then(Option::as_ref));
        Ok(self.seen(number, view))
    }

    /// Starts an apply or its dry run, or queues it. What is held is no error: the report says so.
    ///
    /// # Errors
    /// [`AgentError::NoSuchModule`]; [`AgentError::JobInProgress`] while another one runs and nobody wants to wait.
    pub fn start(
        self: &Arc<Self>, work: Work, modules: Vec<String>, busy: Busy, caller: Caller,
    ) -> Result<Arc<Job>, AgentError> {
        apply::check_names(&self.now()?, &modules)?;
        let job = {
            let mut jobs = lock(&self.jobs);
            if let Some(other) = jobs.values().find(|job| job.end().is_none()).filter(|_| busy == Busy::Refuse) {
                return Err(AgentError::JobInProgress { id: other.id, kind: other.work.token() });
            }
            let id = self.next_job.fetch_add(1, Ordering::Relaxed);
            let job = Arc::new(Job::new(id, work, modules, caller, time::now_usec()));
            jobs.insert(id, Arc::clone(&job));
            job
        };
        self.tell(&Event::JobNew(Arc::clone(&job)));
        tokio::spawn(Arc::clone(self).run(Arc::clone(&job)));
        Ok(job)
    }

    /// Sets the operator's hold on a module, or ends it (`note` = none).
    ///
    /// # Errors
    /// [`AgentError`]
    pub async fn set_operator_hold(&self, module: &str, note: Option<&str>, caller: &Caller) -> Result<(), AgentError> {
        let turn = self.turn.try_lock().map_err(|_| self.in_progress())?;
        apply::set_operator_hold(&self.now()?, module, note, caller).await?;
        drop(turn);
        // It is set and reported, whatever the look says.
        if let Err(error) = self.look(&[]).await {
            log::warn!("cannot look at the host after the operator's hold: {}", chain(&error));
        }
        Ok(())
    }

    /// All jobs that are kept, by their number.
    #[must_use]
    pub fn jobs(&self) -> Vec<Arc<Job>> {
        lock(&self.jobs).values().cloned().collect()
    }

    /// The job that runs or is next.
    #[must_use]
    pub fn active_job(&self) -> Option<Arc<Job>> {
        self.jobs().into_iter().find(|job| job.end().is_none())
    }

    /// Tells all jobs to end early: the agent must.
    pub fn terminate(&self) {
        for job in self.jobs() {
            job.stop.set(Stop::Terminated);
        }
    }

    /// A job's whole life.
    async fn run(self: Arc<Self>, job: Arc<Job>) {
        let end = tokio::select! {
            turn = self.turn.lock() => {
                job.begin();
                self.tell(&Event::JobMoved(Arc::clone(&job)));
                let end = match job.work {
                    Work::Apply => self.apply(&job).await,
                    Work::Look => match self.look(&job.modules).await {
                        Ok(view) => End::Looked(Box::new(View::clone(&view).only(&job.modules))),
                        Err(error) => End::Failed(error),
                    },
                };
                drop(turn);
                end
            }
            _ = job.stop.wait() => End::Canceled,
        };
        job.finish(end);
        let Some(end) = job.end() else { return };
        self.tell(&Event::JobMoved(Arc::clone(&job)));
        self.tell(&Event::JobEnded(Arc::clone(&job), end));
        tokio::time::sleep(KEPT).await;
        // To tell it is to use the bus, and that must not keep an agent that nobody needs.
        while self.activity.idle().is_some_and(|idle| idle > KEPT - SOON) {
            tokio::time::sleep(SOON).await;
        }
        lock(&self.jobs).remove(&job.id);
        self.tell(&Event::JobGone(job));
    }

    async fn apply(&self, job: &Arc<Job>) -> End {
        let request = Request { modules: job.modules.clone(), caller: job.caller.clone(), stop: job.stop.clone() };
        let mut progress = |progress: Progress| {
            let ended = job.note(progress);
            self.tell(&Event::JobMoved(Arc::clone(job)));
            if let Some(step) = ended {
                self.tell(&Event::Step(Arc::clone(job), step));
            }
        };
        let settings = match self.now() {
            Ok(settings) => settings,
            Err(error) => return End::Failed(error),
        };
        match apply::apply(&settings, &request, &mut progress).await {
            Ok(Applied { report, look }) => {
                let last = LastApply::from(&report);
                // It looked last after all that it did.
                self.seen(self.next_look(), View::of(&sources(&look), Some(&last)));
                *self.last.lock().await = Some(Some(last));
                End::Reported(Box::new(report))
            }
            Err(error) => End::Failed(error),
        }
    }

    /// Keeps the last look for the next agent.
    pub fn keep(&self) {
        let _nobody_else = lock(&self.newest);
        lastlook::write(&self.settings.run_dir, &self.view());
    }

    /// Tells a look, and keeps it on disk unless it says what the last one said: then [`Desk::keep`] will. Looks that
    /// overlap may end in any order: one that began before another that was told already is for who asked for it alone. By
    /// number, since clocks jump.
    fn seen(&self, number: u64, view: View) -> Arc<View> {
        let view = Arc::new(view);
        let mut newest = lock(&self.newest);
        if number > *newest {
            *newest = number;
            let before = self.view.set(Arc::clone(&view));
            if !before.says_the_same(&view) {
                lastlook::write(&self.settings.run_dir, &view);
            }
            self.tell(&Event::Looked(Arc::clone(&view)));
        }
        view
    }

    /// The number of a look that begins now, from 1.
    fn next_look(&self) -> u64 {
        self.looks.fetch_add(1, Ordering::Relaxed) + 1
    }

    fn tell(&self, event: &Event) {
        lock(&self.listeners).retain(|listener| listener.send(event.clone()).is_ok());
    }

    fn in_progress(&self) -> AgentError {
        let (id, kind) = self.active_job().map_or((0, "hold"), |job| (job.id, job.work.token()));
        AgentError::JobInProgress { id, kind }
    }
}

fn sources(look: &Look) -> Sources<'_> {
    let Look { desired, observed, ledger, plan } = look;
    Sources { desired, observed, plan, ledger }
}

/// The last finished apply, for its time and for what failed in it; none while the journal cannot tell. Truth comes from
/// the look: without a journal to read, a look still answers.
async fn last_apply() -> Option<Option<LastApply>> {
    let last = async {
        let recent = Journal::list(None, RECENT).await?;
        let last = recent.into_iter().find(|summary| summary.action == "apply" && summary.finished_usec.is_some());
        match last {
            Some(last) => Ok(rebuild(&Journal::read(&last.report).await?).report),
            None => Ok(None),
        }
    };
    match last.await {
        Ok(report) => Some(report.as_ref().map(LastApply::from)),
        Err(error) => {
            let error: crate::journal::JournalError = error;
            log::warn!("the last report cannot be read: {}", chain(&error));
            None
        }
    }
}

/// A thread that panicked leaves these lists whole: each change is one call.
fn lock<T>(list: &Mutex<T>) -> MutexGuard<'_, T> {
    list.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use holdfast_core::status::SCHEMA;
    use holdfast_core::status::view::View;

    use super::{Desk, Event};
    use crate::settings::Settings;

    #[test]
    fn a_look_that_began_earlier_does_not_hide_a_later_one() {
        let run = tempfile::tempdir().unwrap();
        let desk = Desk::open(Settings { run_dir: run.path().to_owned(), ..Settings::default() });
        let mut events = desk.listen();
        let view = |observed_usec| View { schema: SCHEMA, observed_usec, ..View::default() };
        let (first, second) = (desk.next_look(), desk.next_look());
        // The clock was set back between them.
        desk.seen(second, view(10));
        assert_eq!(desk.seen(first, view(20)).observed_usec, 20, "whoever asked for it gets it");
        assert_eq!(desk.view().observed_usec, 10);
        desk.seen(desk.next_look(), view(5));
        let told = std::iter::from_fn(|| match events.try_recv() {
            Ok(Event::Looked(view)) => Some(view.observed_usec),
            _ => None,
        });
        assert_eq!(told.collect::<Vec<_>>(), [10, 5]);
    }
}
