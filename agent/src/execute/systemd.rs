//! systemd's manager on the bus: jobs with deadlines, reload, and whether a unit is ours as loaded.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream;
use holdfast_core::name::HostPath;
use thiserror::Error;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::Instant;
use zbus::proxy::CacheProperties;
use zbus_systemd::systemd1::{ManagerProxy, ServiceProxy, UnitProxy};

/// How long a reload of the manager may take.
const RELOAD: Duration = Duration::from_secs(120);
/// For a unit whose own time is unlimited, and for a job that waits for others.
const LONGEST: Duration = Duration::from_secs(600);
/// For a unit that has no time of its own.
const USUAL: Duration = Duration::from_secs(90);
/// What systemd gets beyond the unit's own time, so that its own verdict comes first.
const GRACE: Duration = Duration::from_secs(10);
/// Calls on the way at once; dbus-daemon allows 128.
const CALLS: usize = 32;

/// What systemd refused, or what did not end well.
#[derive(Debug, Error)]
pub enum SystemdError {
    /// The system bus or systemd does not answer.
    #[error("cannot reach systemd on the system bus")]
    Connect(#[source] zbus::Error),
    /// A call failed.
    #[error("systemd refuses to {what}")]
    Call {
        /// What was asked for.
        what: String,
        /// Its answer.
        #[source]
        source: zbus::Error,
    },
    /// A job ended badly.
    #[error("{unit} did not {verb}: the job ended as \"{result}\"{state}; see journalctl -u {unit}")]
    Job {
        /// The unit.
        unit: String,
        /// What was asked for.
        verb: Verb,
        /// The job's result.
        result: String,
        /// The unit after it.
        state: Box<UnitState>,
    },
    /// A job did not end.
    #[error("{unit} did not {verb} within {seconds} s and its job was cancelled{state}; see journalctl -u {unit}")]
    Deadline {
        /// The unit.
        unit: String,
        /// What was asked for.
        verb: Verb,
        /// The deadline in seconds.
        seconds: u64,
        /// The unit after it.
        state: Box<UnitState>,
    },
    /// The reload did not end.
    #[error("systemd did not reload within {} s", RELOAD.as_secs())]
    ReloadDeadline,
    /// The connection to the bus ended.
    #[error("the connection to the system bus ended")]
    Gone,
    /// A unit is not loaded.
    #[error("{unit} is {load_state} after the reload; see systemctl status {unit}")]
    NotLoaded {
        /// The unit.
        unit: String,
        /// Its load state.
        load_state: String,
    },
    /// A unit is loaded from another file.
    #[error("{unit} is loaded from {found}, not from {expected}")]
    OtherSource {
        /// The unit.
        unit: String,
        /// The file it is loaded from.
        found: String,
        /// The file of ours.
        expected: String,
    },
    /// A unit lost our mark.
    #[error("{unit} is loaded from our file, but its command line lacks \"{mark}\"; see systemctl cat {unit}")]
    NoMark {
        /// The unit.
        unit: String,
        /// The word.
        mark: String,
    },
}

impl SystemdError {
    /// The exit status of the unit's main process, where it is why.
    #[must_use]
    pub fn exit_status(&self) -> Option<i32> {
        match self {
            Self::Job { unit: _, verb: _, result: _, state } => Some(state.exit_status).filter(|status| *status != 0),
            _ => None,
        }
    }

    /// True when systemd did not try, since what the unit requires failed.
    #[must_use]
    pub fn is_dependency(&self) -> bool {
        matches!(self, Self::Job { unit: _, verb: _, result, state: _ } if result == "dependency")
    }

    fn call(what: impl Into<String>) -> impl FnOnce(zbus::Error) -> Self {
        let what = what.into();
        move |source| Self::Call { what, source }
    }
}

/// What a job does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verb {
    /// Start.
    Start,
    /// Restart, in one job.
    Restart,
    /// Stop.
    Stop,
}

impl fmt::Display for Verb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Start => "start",
            Self::Restart => "restart",
            Self::Stop => "stop",
        })
    }
}

/// A job to run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Job {
    /// The unit.
    pub unit: String,
    /// What to do with it.
    pub verb: Verb,
    /// Whether it waits for other jobs.
    pub order: Order,
}

/// Whether a job waits for those that its unit is ordered after.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// As its unit says.
    Kept,
    /// It runs at once, and pulls nothing in.
    Ignored,
}

/// How a unit stands.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UnitState {
    /// active, inactive, failed, activating, …
    pub active: String,
    /// running, dead, auto-restart, …
    pub sub: String,
    /// success, exit-code, timeout, start-limit-hit, …; empty for what is no service.
    pub result: String,
    /// The exit status of its main process.
    pub exit_status: i32,
    /// How often systemd restarted it by itself since it was started.
    pub restarts: u32,
}

/// As a part of a sentence; empty when nothing is known.
impl fmt::Display for UnitState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { active, sub, result, exit_status, restarts: _ } = self;
        if active.is_empty() {
            return Ok(());
        }
        write!(f, "; it is {active} ({sub})")?;
        if !result.is_empty() && result != "success" {
            write!(f, ", result {result}")?;
        }
        if *exit_status != 0 {
            write!(f, ", exit status {exit_status}")?;
        }
        Ok(())
    }
}

/// systemd's manager.
#[derive(Debug, Clone)]
pub struct Systemd {
    connection: zbus::Connection,
    manager: ManagerProxy<'static>,
}

impl Systemd {
    /// Connects to the system bus.
    ///
    /// # Errors
    /// [`SystemdError::Connect`]
    pub async fn connect() -> Result<Self, SystemdError> {
        let connection = zbus::Connection::system().await.map_err(SystemdError::Connect)?;
        let manager = ManagerProxy::builder(&connection).cache_properties(CacheProperties::No).build().await;
        let manager = manager.map_err(SystemdError::Connect)?;
        manager.subscribe().await.map_err(SystemdError::Connect)?;
        Ok(Self { connection, manager })
    }

    /// Enqueues all jobs at once, in their order, and waits for all of them. One answer per job.
    pub async fn run(&self, jobs: &[Job]) -> Vec<Result<(), SystemdError>> {
        match Removed::listen(&self.manager).await {
            Ok(removed) => self.run_listening(jobs, removed).await,
            Err(error) => {
                let text = error.to_string();
                jobs.iter().map(|_| Err(SystemdError::Connect(zbus::Error::Failure(text.clone())))).collect()
            }
        }
    }

    /// Lets systemd read its unit files again.
    ///
    /// # Errors
    /// [`SystemdError`]
    pub async fn reload(&self) -> Result<(), SystemdError> {
        let done = tokio::time::timeout(RELOAD, self.manager.reload()).await;
        done.map_err(|_| SystemdError::ReloadDeadline)?.map_err(SystemdError::call("reload"))
    }

    /// Forgets that a unit failed. A unit that is not loaded has not failed.
    ///
    /// # Errors
    /// [`SystemdError`]
    pub async fn reset_failed(&self, unit: &str) -> Result<(), SystemdError> {
        match self.manager.reset_failed_unit(unit.to_owned()).await {
            Err(error) if is_no_such_unit(&error) => Ok(()),
            other => other.map_err(SystemdError::call(format!("reset-failed {unit}"))),
        }
    }

    /// Enables a unit, in /etc, without replacing links of others.
    ///
    /// # Errors
    /// [`SystemdError`]
    pub async fn enable(&self, unit: &str) -> Result<(), SystemdError> {
        let enabled = self.manager.enable_unit_files(vec![unit.to_owned()], false, false).await;
        enabled.map(|_| ()).map_err(SystemdError::call(format!("enable {unit}")))
    }

    /// Disables a unit in /etc.
    ///
    /// # Errors
    /// [`SystemdError`]
    pub async fn disable(&self, unit: &str) -> Result<(), SystemdError> {
        let disabled = self.manager.disable_unit_files(vec![unit.to_owned()], false).await;
        disabled.map(|_| ()).map_err(SystemdError::call(format!("disable {unit}")))
    }

    /// Looks whether a unit is loaded from a file of ours and its command lines hold our mark (empty: none to look for).
    ///
    /// # Errors
    /// [`SystemdError`] that says what is otherwise.
    pub async fn assert(&self, unit: &str, source: &HostPath, mark: &str) -> Result<(), SystemdError> {
        let look = SystemdError::call(format!("show {unit}"));
        let loaded = self.loaded(unit).await.map_err(look)?;
        if loaded.load_state != "loaded" {
            return Err(SystemdError::NotLoaded { unit: unit.to_owned(), load_state: loaded.load_state });
        }
        // A generated unit has its Quadlet file as source; a plain unit has none and is itself the file.
        let found = if loaded.source.is_empty() { loaded.fragment } else { loaded.source };
        if found != source.as_str() {
            return Err(SystemdError::OtherSource { unit: unit.to_owned(), found, expected: source.to_string() });
        }
        if mark.is_empty()
            || loaded.words.iter().any(|word| word == mark || word.strip_prefix("--label=") == Some(mark))
        {
            Ok(())
        } else {
            Err(SystemdError::NoMark { unit: unit.to_owned(), mark: mark.to_owned() })
        }
    }

    /// How a unit stands now.
    ///
    /// # Errors
    /// [`SystemdError`]
    pub async fn state(&self, unit: &str) -> Result<UnitState, SystemdError> {
        self.read_state(unit).await.map_err(SystemdError::call(format!("show {unit}")))
    }

    async fn run_listening(&self, jobs: &[Job], mut removed: Removed) -> Vec<Result<(), SystemdError>> {
        let prepared: Vec<_> = jobs.iter().map(|job| self.prepare(job)).collect();
        let allowances: Vec<Duration> = stream::iter(prepared).buffered(CALLS).collect().await;
        // On the way together, so that systemd sees all of them before it runs the first.
        let calls: Vec<_> = jobs.iter().map(|job| self.enqueue(job)).collect();
        let enqueued: Vec<_> = stream::iter(calls).buffered(CALLS).collect().await;

        let mut answers: BTreeMap<usize, Result<(), SystemdError>> = BTreeMap::new();
        let mut waiting: BTreeMap<usize, Waiting> = BTreeMap::new();
        for (index, (path, allowance)) in enqueued.into_iter().zip(allowances).enumerate() {
            match path {
                Ok(Some(path)) => {
                    let began = Instant::now();
                    waiting.insert(index, Waiting { path, allowance, began, deadline: began + allowance });
                }
                Ok(None) => drop(answers.insert(index, Ok(()))),
                Err(error) => drop(answers.insert(index, Err(error))),
            }
        }
        while let Some(next) = waiting.values().map(|job| job.deadline).min() {
            tokio::select! {
                end = removed.next() => match end {
                    Some((path, result)) => {
                        let ended: Vec<usize> =
                            waiting.iter().filter(|(_, job)| job.path == path).map(|(index, _)| *index).collect();
                        for index in ended {
                            waiting.remove(&index);
                            let Some(job) = jobs.get(index) else { continue };
                            answers.insert(index, self.judge(job, result.clone()).await);
                        }
                    }
                    None => break,
                },
                () = tokio::time::sleep_until(next) => self.expire(jobs, &mut waiting, &mut answers).await,
            }
        }
        (0..jobs.len()).map(|index| answers.remove(&index).unwrap_or(Err(SystemdError::Gone))).collect()
    }

    /// Clears a failure that would refuse the job, and finds out how long it may take.
    async fn prepare(&self, job: &Job) -> Duration {
        // What cannot be read here fails again, and is told, when the job is asked for.
        let (start, stop) = self.times(job).await.unwrap_or((USUAL, USUAL));
        GRACE
            + match job.verb {
                Verb::Start => start,
                Verb::Stop => stop,
                Verb::Restart => start + stop,
            }
    }

    /// The job's path; none when there is nothing to do.
    async fn enqueue(&self, job: &Job) -> Result<Option<String>, SystemdError> {
        let mode = match job.order {
            Order::Kept => "replace",
            Order::Ignored => "ignore-dependencies",
        };
        let (unit, mode) = (job.unit.clone(), mode.to_owned());
        let path = match job.verb {
            Verb::Start => self.manager.start_unit(unit, mode).await,
            Verb::Restart => self.manager.restart_unit(unit, mode).await,
            Verb::Stop => match self.manager.stop_unit(unit, mode).await {
                Err(error) if is_no_such_unit(&error) => return Ok(None),
                other => other,
            },
        };
        let path = path.map_err(SystemdError::call(format!("{} {}", job.verb, job.unit)))?;
        Ok(Some(path.as_str().to_owned()))
    }

    async fn judge(&self, job: &Job, result: String) -> Result<(), SystemdError> {
        if result == "done" {
            return Ok(());
        }
        let state = Box::new(self.state(&job.unit).await.unwrap_or_default());
        Err(SystemdError::Job { unit: job.unit.clone(), verb: job.verb, result, state })
    }

    /// Ends what is past its deadline. A job that only waits for others has not begun its own time.
    async fn expire(
        &self, jobs: &[Job], waiting: &mut BTreeMap<usize, Waiting>,
        answers: &mut BTreeMap<usize, Result<(), SystemdError>>,
    ) {
        let now = Instant::now();
        let late: Vec<usize> = waiting.iter().filter(|(_, job)| job.deadline <= now).map(|(index, _)| *index).collect();
        for index in late {
            let (Some(job), Some(entry)) = (jobs.get(index), waiting.get_mut(&index)) else { continue };
            let ever = entry.began.elapsed();
            if ever < LONGEST.max(entry.allowance) && self.is_queued(&entry.path).await {
                entry.deadline = now + entry.allowance;
                continue;
            }
            if let Some(id) = entry.path.rsplit('/').next().and_then(|id| id.parse().ok()) {
                // It may have ended at this very moment; the state tells.
                self.manager.cancel_job(id).await.unwrap_or_default();
            }
            waiting.remove(&index);
            let state = Box::new(self.state(&job.unit).await.unwrap_or_default());
            let seconds = ever.as_secs();
            answers
                .insert(index, Err(SystemdError::Deadline { unit: job.unit.clone(), verb: job.verb, seconds, state }));
        }
    }

    async fn is_queued(&self, path: &str) -> bool {
        let job = zbus::Proxy::new(
            &self.connection,
            "org.freedesktop.systemd1",
            path.to_owned(),
            "org.freedesktop.systemd1.Job",
        );
        match job.await {
            Ok(job) => job.get_property::<String>("State").await.is_ok_and(|state| state == "waiting"),
            Err(_) => false,
        }
    }

    /// How long its start and its stop may take by its own word.
    async fn times(&self, job: &Job) -> zbus::Result<(Duration, Duration)> {
        let unit = self.open(&job.unit).await?;
        if job.verb != Verb::Stop && unit.unit.active_state().await? == "failed" {
            self.manager.reset_failed_unit(job.unit.clone()).await?;
        }
        match unit.service {
            Some(service) => {
                Ok((limited(service.timeout_start_u_sec().await?), limited(service.timeout_stop_u_sec().await?)))
            }
            None => Ok((USUAL, USUAL)),
        }
    }

    async fn read_state(&self, name: &str) -> zbus::Result<UnitState> {
        let Opened { unit, service } = self.open(name).await?;
        let mut state =
            UnitState { active: unit.active_state().await?, sub: unit.sub_state().await?, ..UnitState::default() };
        if let Some(service) = service {
            state.result = service.result().await?;
            state.exit_status = service.exec_main_status().await?;
            state.restarts = service.n_restarts().await?;
        }
        Ok(state)
    }

    async fn loaded(&self, name: &str) -> zbus::Result<Loaded> {
        let Opened { unit, service } = self.open(name).await?;
        let mut loaded = Loaded {
            load_state: unit.load_state().await?,
            source: unit.source_path().await?,
            fragment: unit.fragment_path().await?,
            words: Vec::new(),
        };
        if let Some(service) = service
            && loaded.load_state == "loaded"
        {
            // A pod is made by ExecStartPre=; its ExecStart= only starts it.
            for command in service.exec_start_pre().await?.into_iter().chain(service.exec_start().await?) {
                loaded.words.extend(command.1);
            }
        }
        Ok(loaded)
    }

    /// Values are asked for when they are needed: a cache would subscribe to every change of every unit.
    async fn open(&self, name: &str) -> zbus::Result<Opened> {
        let path = self.manager.load_unit(name.to_owned()).await?;
        let (bus, no) = (&self.connection, CacheProperties::No);
        let unit = UnitProxy::builder(bus).path(path.clone()).cache_properties(no).build().await?;
        let service = if name.ends_with(".service") {
            Some(ServiceProxy::builder(bus).path(path).cache_properties(no).build().await?)
        } else {
            None
        };
        Ok(Opened { unit, service })
    }
}

/// A unit on the bus.
struct Opened {
    unit: UnitProxy<'static>,
    service: Option<ServiceProxy<'static>>,
}

/// A unit as loaded.
struct Loaded {
    load_state: String,
    source: String,
    fragment: String,
    words: Vec<String>,
}

/// A job that has not ended.
struct Waiting {
    path: String,
    allowance: Duration,
    began: Instant,
    deadline: Instant,
}

/// Ends of jobs. A task of its own reads them: a stream that nobody reads stops the whole connection.
struct Removed {
    ends: mpsc::UnboundedReceiver<(String, String)>,
    /// Ends with this value.
    _reader: JoinSet<()>,
}

impl Removed {
    async fn listen(manager: &ManagerProxy<'static>) -> zbus::Result<Self> {
        let mut signals = manager.receive_job_removed().await?;
        let (sender, ends) = mpsc::unbounded_channel();
        let mut reader = JoinSet::new();
        reader.spawn(async move {
            while let Some(signal) = signals.next().await {
                let Ok(args) = signal.args() else { continue };
                if sender.send((args.job.as_str().to_owned(), args.result.clone())).is_err() {
                    break;
                }
            }
        });
        Ok(Self { ends, _reader: reader })
    }

    async fn next(&mut self) -> Option<(String, String)> {
        self.ends.recv().await
    }
}

fn limited(usec: u64) -> Duration {
    if usec == u64::MAX { LONGEST } else { Duration::from_micros(usec) }
}

fn is_no_such_unit(error: &zbus::Error) -> bool {
    matches!(error, zbus::Error::MethodError(name, _, _) if name.as_str() == "org.freedesktop.systemd1.NoSuchUnit")
}
