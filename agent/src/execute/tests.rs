use std::collections::BTreeMap;

use holdfast_core::ledger::Pin;
use holdfast_core::name::HostPath;
use holdfast_core::resource::{Kind as ResourceKind, ResourceKey};
use holdfast_core::step::{Act, Failure, FileContent, Origin, Outcome, PinSource, Step, StepId, Trailer};

use super::{batch, blocked, bytes, chain, settle};

fn step(act: Act, needs: &[StepId]) -> Step {
    let resource = ResourceKey::new(ResourceKind::Container, "web");
    Step { module: "web".into(), resource, needs: needs.to_vec(), act }
}

fn pull(needs: &[StepId]) -> Step {
    step(Act::Pull { image: "svc".into() }, needs)
}

fn pin(needs: &[StepId]) -> Step {
    step(Act::Pin { image: "svc".into(), origin: Origin::Pulled }, needs)
}

fn start(needs: &[StepId]) -> Step {
    step(Act::Start { unit: "web.service".into(), container: None }, needs)
}

fn restart(needs: &[StepId]) -> Step {
    step(Act::Restart { unit: "web.service".into(), container: None }, needs)
}

fn stop(needs: &[StepId]) -> Step {
    step(Act::Stop { unit: "web.service".into() }, needs)
}

fn failed() -> Outcome {
    Outcome::Failed(Failure { error: "no".into(), errno: None, exit_status: None })
}

fn a_pin() -> Pin {
    Pin { written: "svc".into(), deployed: "localhost/svc@sha256:ab".into(), image_id: "cd".into() }
}

/// All batches of a plan.
fn batches(steps: &[Step]) -> Vec<usize> {
    let mut sizes = Vec::new();
    let mut at = 0;
    while at < steps.len() {
        let next = batch(steps, at);
        assert_eq!(next.start, at);
        sizes.push(next.len());
        at = next.end;
    }
    sizes
}

#[test]
fn adjacent_steps_of_one_kind_go_together() {
    let reload = || step(Act::Reload, &[]);
    let source = HostPath::root();
    let look = || step(Act::Assert { unit: "web.service".into(), source: source.clone(), mark: String::new() }, &[]);
    for (what, steps, expected) in [
        (
            "pulls, pins, starts",
            vec![pull(&[]), pull(&[]), pin(&[0]), pin(&[1]), start(&[]), restart(&[])],
            vec![2, 2, 2],
        ),
        ("starts that need each other", vec![start(&[]), start(&[0]), start(&[1])], vec![3]),
        ("stops that need each other", vec![stop(&[]), stop(&[0]), stop(&[0])], vec![1, 2]),
        ("single ones", vec![reload(), reload(), pull(&[]), reload(), pull(&[])], vec![1, 1, 1, 1, 1]),
        ("looks", vec![look(), look(), reload(), look()], vec![2, 1, 1]),
        ("a stop is no start", vec![stop(&[]), start(&[])], vec![1, 1]),
        ("nothing", vec![], vec![]),
    ] {
        assert_eq!(batches(&steps), expected, "{what}");
    }
}

#[test]
fn what_needs_a_failed_step_is_not_tried_and_names_the_first_failure() {
    let steps = [pull(&[]), pull(&[]), pin(&[0]), pin(&[1]), start(&[2, 3]), start(&[3]), start(&[4])];
    let outcomes = [failed(), Outcome::Done, Outcome::NotAttempted { after: 0 }, Outcome::Pinned(a_pin())];
    assert_eq!(
        blocked(&steps, 2..4, outcomes.get(..2).unwrap()),
        BTreeMap::from([(2, Outcome::NotAttempted { after: 0 })])
    );
    let after = Outcome::NotAttempted { after: 0 };
    assert_eq!(
        blocked(&steps, 4..7, &outcomes),
        BTreeMap::from([(4, after.clone()), (6, after)]),
        "also within a batch"
    );
}

#[test]
fn what_systemd_did_not_try_was_not_attempted() {
    let steps = [start(&[]), start(&[0]), start(&[1]), start(&[]), start(&[4])];
    let mut done: BTreeMap<StepId, Outcome> = (0..5).map(|id| (id, failed())).collect();
    done.insert(4, failed());
    settle(&steps, &[1, 2, 3], &mut done);
    let after = Outcome::NotAttempted { after: 0 };
    assert_eq!(done.get(&1), Some(&after));
    assert_eq!(done.get(&2), Some(&after), "its need goes back to the first failure");
    assert_eq!(done.get(&3), Some(&failed()), "what it requires is no step: the failure is its own");
    assert_eq!(done.get(&4), Some(&failed()), "it was tried");
}

#[test]
fn a_quadlet_gets_the_image_that_its_step_found() {
    let quadlet = |pin| FileContent::Quadlet {
        text: "[Container]\nImage=svc\n".into(),
        trailer: Trailer { module: "web".into(), section: "Container".into(), hash: "ef".into(), pin },
    };
    let image = "\nImage=localhost/svc@sha256:ab\n";
    let outcomes = [Outcome::Done, Outcome::Pinned(a_pin())];
    let text = |content: &FileContent| String::from_utf8(bytes(content, &outcomes).unwrap()).unwrap();
    assert!(text(&quadlet(PinSource::Step(1))).contains(image));
    assert!(text(&quadlet(PinSource::Known(a_pin()))).contains(image));
    assert!(!text(&quadlet(PinSource::AsWritten)).contains(image));
    assert!(bytes(&quadlet(PinSource::Step(0)), &outcomes).is_err(), "no pin, no file");
    assert!(bytes(&quadlet(PinSource::Step(7)), &outcomes).is_err());
}

#[test]
fn an_error_is_told_in_one_line_with_its_reason() {
    let path = HostPath::new("/proc/none/x").unwrap();
    let error = super::files::make_link(&path, "x").unwrap_err();
    assert_eq!(chain(&error), "cannot make /proc/none: No such file or directory (os error 2)");
}
