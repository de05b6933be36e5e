use std::time::Duration;

use super::{Asked, Limits, Next, Trouble, Watch};
use crate::execute::podman::Seen;
use crate::execute::systemd::UnitState;

const S: fn(u64) -> Duration = Duration::from_secs;

fn watch() -> Watch {
    Watch { run: None, well_since: None, restarts: 0, limits: Limits { timeout: S(60), stay: S(10) } }
}

fn seen(state: &str, health: &str) -> Seen {
    Seen { id: "a".into(), started_at: 1, state: state.into(), health: health.into(), exit_code: 3 }
}

fn unit(active: &str, sub: &str, result: &str, restarts: u32) -> UnitState {
    UnitState { active: active.into(), sub: sub.into(), result: result.into(), exit_status: 0, restarts }
}

#[test]
fn without_a_health_check_it_must_only_stay_up() {
    let mut watch = watch();
    assert_eq!(watch.see(Some(&seen("running", "")), S(0)), Next::Wait);
    assert_eq!(watch.see(Some(&seen("running", "")), S(9)), Next::Wait);
    assert_eq!(watch.see(Some(&seen("running", "")), S(10)), Next::AskUnit(Asked::Finished));
    assert_eq!(watch.judge(Asked::Finished, unit("active", "running", "success", 0), S(10)), Some(Ok(())));
}

#[test]
fn the_time_to_stay_counts_from_healthy() {
    let mut watch = watch();
    assert_eq!(watch.see(Some(&seen("running", "starting")), S(50)), Next::Wait);
    assert_eq!(watch.see(Some(&seen("running", "healthy")), S(55)), Next::Wait);
    assert_eq!(watch.see(Some(&seen("running", "healthy")), S(64)), Next::Wait);
    assert_eq!(watch.see(Some(&seen("running", "healthy")), S(65)), Next::AskUnit(Asked::Finished));
}

#[test]
fn a_health_check_that_never_says_yes_ends_at_the_deadline() {
    let mut watch = watch();
    assert_eq!(watch.see(Some(&seen("running", "starting")), S(60)), Next::Wait);
    assert_eq!(watch.see(Some(&seen("running", "starting")), S(61)), Next::Bad(Trouble::NotInTime));
}

#[test]
fn unhealthy_is_bad_at_once_early_and_late() {
    let mut watch = watch();
    assert_eq!(watch.see(Some(&seen("running", "unhealthy")), S(1)), Next::Bad(Trouble::Unhealthy));
    assert_eq!(watch.see(Some(&seen("running", "healthy")), S(2)), Next::Wait);
    assert_eq!(watch.see(Some(&seen("running", "unhealthy")), S(3)), Next::Bad(Trouble::Unhealthy));
}

#[test]
fn another_run_is_a_restart() {
    for (id, started_at) in [("b", 1), ("a", 2)] {
        let mut watch = watch();
        assert_eq!(watch.see(Some(&seen("running", "")), S(0)), Next::Wait);
        let other = Seen { id: id.into(), started_at, ..seen("running", "") };
        assert!(matches!(watch.see(Some(&other), S(1)), Next::Bad(Trouble::Down(..))), "{id} {started_at}");
    }
}

#[test]
fn a_container_that_does_not_run_is_judged_by_its_unit() {
    let mut watch = watch();
    assert_eq!(watch.see(None, S(1)), Next::AskUnit(Asked::NotRunning(None)));
    assert_eq!(watch.see(Some(&seen("exited", "")), S(1)), Next::AskUnit(Asked::NotRunning(Some(3))));
    assert_eq!(watch.see(Some(&seen("created", "")), S(1)), Next::AskUnit(Asked::NotRunning(None)));

    let judge = |state| watch.judge(Asked::NotRunning(Some(3)), state, S(1));
    assert_eq!(judge(unit("inactive", "dead", "success", 0)), Some(Ok(())), "a job that is done");
    assert_eq!(judge(unit("active", "exited", "success", 0)), Some(Ok(())), "RemainAfterExit");
    assert_eq!(judge(unit("active", "running", "success", 0)), None, "it is about to go");
    for bad in [
        unit("failed", "failed", "exit-code", 0),
        unit("activating", "auto-restart", "exit-code", 0),
        unit("inactive", "dead", "exit-code", 0),
        unit("active", "running", "success", 1),
    ] {
        assert!(matches!(judge(bad.clone()), Some(Err(Trouble::Down(..)))), "{bad:?}");
    }
    let late = watch.judge(Asked::NotRunning(None), unit("activating", "start", "success", 0), S(71));
    assert!(matches!(late, Some(Err(Trouble::Down(..)))), "{late:?}");
}

#[test]
fn restarts_from_before_the_watch_do_not_count() {
    let watch = Watch { restarts: 2, ..watch() };
    assert_eq!(watch.judge(Asked::Finished, unit("active", "running", "success", 2), S(10)), Some(Ok(())));
    let bad = watch.judge(Asked::Finished, unit("active", "running", "success", 3), S(10));
    assert!(matches!(bad, Some(Err(Trouble::Down(..)))), "{bad:?}");
}
