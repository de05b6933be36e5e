//! Is what was started healthy, and does it stay so: container health, restarts, deadline.

use std::collections::BTreeMap;
use std::time::Duration;

use thiserror::Error;
use tokio::time::Instant;

use crate::execute::podman::{Podman, Seen};
use crate::execute::systemd::{Systemd, UnitState};

/// How often Podman is asked.
const POLL: Duration = Duration::from_millis(250);

/// How long a start may take, and how long it must then stay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// From the end of the start job until the container is healthy.
    pub timeout: Duration,
    /// From then on it must stay so.
    pub stay: Duration,
}

/// One container to watch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Watched {
    /// Its unit.
    pub unit: String,
    /// Its name.
    pub container: String,
    /// Its times.
    pub limits: Limits,
}

/// What was seen of a container that is not well.
#[derive(Debug, Error)]
pub enum WatchError {
    /// Its health check says so.
    #[error("{container} is unhealthy{line}; see journalctl -u {unit}")]
    Unhealthy {
        /// The container.
        container: String,
        /// Its unit.
        unit: String,
        /// The health check's last line, as a part of the sentence.
        line: String,
    },
    /// Its health check never said yes.
    #[error("{container} was not healthy within {seconds} s{line}; see journalctl -u {unit}")]
    NotInTime {
        /// The container.
        container: String,
        /// Its unit.
        unit: String,
        /// The time it had.
        seconds: u64,
        /// The health check's last line, as a part of the sentence.
        line: String,
    },
    /// It does not run.
    #[error("{container} does not stay up: it {how}{state}; see journalctl -u {unit}")]
    Down {
        /// The container.
        container: String,
        /// Its unit.
        unit: String,
        /// exited with 1, restarted, is gone.
        how: String,
        /// Its unit's state.
        state: Box<UnitState>,
    },
    /// Podman did not tell.
    #[error("{container} could not be watched: {answer}")]
    Unseen {
        /// The container.
        container: String,
        /// What Podman said; one answer is about all containers.
        answer: String,
    },
}

impl WatchError {
    /// The exit status of the container's process, where it is why.
    #[must_use]
    pub fn exit_status(&self) -> Option<i32> {
        match self {
            Self::Down { container: _, unit: _, how: _, state } => Some(state.exit_status).filter(|code| *code != 0),
            _ => None,
        }
    }
}

/// Watches containers together until each is well for its time, or is not. One answer each.
pub async fn watch(podman: &Podman, systemd: &Systemd, watched: &[Watched]) -> Vec<Result<(), WatchError>> {
    let began = Instant::now();
    let mut watches = Vec::new();
    for one in watched {
        let restarts = systemd.state(&one.unit).await.unwrap_or_default().restarts;
        watches.push(Watch { run: None, well_since: None, restarts, limits: one.limits });
    }
    let mut answers: BTreeMap<usize, Result<(), WatchError>> = BTreeMap::new();
    while answers.len() < watched.len() {
        let open: Vec<usize> = (0..watched.len()).filter(|index| !answers.contains_key(index)).collect();
        let names: Vec<String> =
            open.iter().filter_map(|index| watched.get(*index)).map(|one| one.container.clone()).collect();
        let seen = podman.containers(&names).await;
        let elapsed = began.elapsed();
        for index in open {
            let (Some(one), Some(watch)) = (watched.get(index), watches.get_mut(index)) else { continue };
            let verdict = match &seen {
                Ok(seen) => look(watch, one, seen.get(&one.container), elapsed, systemd).await,
                Err(_) if elapsed < one.limits.timeout + one.limits.stay => None,
                Err(error) => Some(Err(Trouble::Unseen(error.to_string()))),
            };
            match verdict {
                None => {}
                Some(Ok(())) => drop(answers.insert(index, Ok(()))),
                Some(Err(trouble)) => drop(answers.insert(index, Err(explain(trouble, one, podman).await))),
            }
        }
        if answers.len() < watched.len() {
            tokio::time::sleep(POLL).await;
        }
    }
    answers.into_values().collect()
}

/// None while it has to be watched on.
async fn look(
    watch: &mut Watch, one: &Watched, seen: Option<&Seen>, elapsed: Duration, systemd: &Systemd,
) -> Option<Result<(), Trouble>> {
    match watch.see(seen, elapsed) {
        Next::Wait => None,
        Next::Bad(trouble) => Some(Err(trouble)),
        // The list of containers does not tell why; the unit does. A unit that cannot be read is asked again.
        Next::AskUnit(asked) => {
            let state = systemd.state(&one.unit).await.ok()?;
            watch.judge(asked, state, elapsed)
        }
    }
}

async fn explain(trouble: Trouble, one: &Watched, podman: &Podman) -> WatchError {
    let (container, unit) = (one.container.clone(), one.unit.clone());
    let line = match trouble {
        Trouble::Unhealthy | Trouble::NotInTime => podman.last_health_line(&container).await,
        Trouble::Down(..) | Trouble::Unseen(_) => None,
    };
    let line = line.map(|line| format!(", its health check says \"{line}\"")).unwrap_or_default();
    match trouble {
        Trouble::Unhealthy => WatchError::Unhealthy { container, unit, line },
        Trouble::NotInTime => WatchError::NotInTime { container, unit, seconds: one.limits.timeout.as_secs(), line },
        Trouble::Down(how, state) => WatchError::Down { container, unit, how, state: Box::new(state) },
        Trouble::Unseen(answer) => WatchError::Unseen { container, answer },
    }
}

/// What is remembered of one container between two looks.
struct Watch {
    /// The first run seen: ID and start.
    run: Option<(String, i64)>,
    /// When it was first seen well, from the beginning of the watch.
    well_since: Option<Duration>,
    /// How often systemd had restarted the unit when the watch began.
    restarts: u32,
    limits: Limits,
}

/// What follows from a look at the list of containers.
#[derive(Debug, PartialEq, Eq)]
enum Next {
    Wait,
    AskUnit(Asked),
    Bad(Trouble),
}

/// Why the unit is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Asked {
    /// Its time is over and it was well all the time.
    Finished,
    /// Its container does not run, with the exit code where there is one.
    NotRunning(Option<i32>),
}

#[derive(Debug, PartialEq, Eq)]
enum Trouble {
    Unhealthy,
    NotInTime,
    Down(String, UnitState),
    Unseen(String),
}

impl Watch {
    fn see(&mut self, seen: Option<&Seen>, elapsed: Duration) -> Next {
        let Some(seen) = seen else { return Next::AskUnit(Asked::NotRunning(None)) };
        let Seen { id, started_at, state, health, exit_code } = seen;
        match state.as_str() {
            "running" => {}
            "exited" | "stopped" => return Next::AskUnit(Asked::NotRunning(Some(*exit_code))),
            _ => return Next::AskUnit(Asked::NotRunning(None)),
        }
        let run = (id.clone(), *started_at);
        if self.run.get_or_insert_with(|| run.clone()) != &run {
            return Next::Bad(Trouble::Down("was started anew".to_owned(), UnitState::default()));
        }
        match (health.as_str(), self.well_since) {
            ("unhealthy", _) => Next::Bad(Trouble::Unhealthy),
            ("starting", None) if elapsed > self.limits.timeout => Next::Bad(Trouble::NotInTime),
            ("starting", _) => Next::Wait,
            (_, None) => {
                self.well_since = Some(elapsed);
                Next::Wait
            }
            (_, Some(since)) if elapsed.saturating_sub(since) >= self.limits.stay => Next::AskUnit(Asked::Finished),
            (_, Some(_)) => Next::Wait,
        }
    }

    fn judge(&self, asked: Asked, state: UnitState, elapsed: Duration) -> Option<Result<(), Trouble>> {
        let down = |how: &str| Some(Err(Trouble::Down(how.to_owned(), state.clone())));
        if state.restarts > self.restarts {
            return down("was restarted by systemd");
        }
        let code = match asked {
            Asked::Finished => None,
            Asked::NotRunning(code) => code,
        };
        let exited = code.map_or_else(|| "is gone".to_owned(), |code| format!("exited with {code}"));
        match (state.active.as_str(), state.sub.as_str()) {
            ("failed", _) | (_, "auto-restart" | "auto-restart-queued") => down(&exited),
            // A job that has done its work.
            ("inactive", _) if state.result == "success" => Some(Ok(())),
            ("inactive", _) => down(&exited),
            ("active", "exited") => Some(Ok(())),
            _ if asked == Asked::Finished => Some(Ok(())),
            // Between two states, or just being made.
            _ if elapsed > self.limits.timeout + self.limits.stay => down("does not run"),
            _ => None,
        }
    }
}

#[cfg(test)]
#[path = "watch/tests.rs"]
mod tests;
