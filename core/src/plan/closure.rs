//! What needs a held thing is held, too: one root cause each.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::judge::{OwnReason, WayOut};
use super::{At, Given, needed};
use shell_words::quote;

use crate::desired::{Body, Need};
use crate::hold::{Cause, Hold, Reason};
use crate::resource::Kind;

/// All holds, of all modules, ordered by module and resource.
pub(super) fn close(given: Given<'_>, own: &BTreeMap<At, Vec<OwnReason>>) -> Vec<Hold> {
    let users = users(given);
    let causes = causes(own, &users);
    let takeable = takeable(own, &users, &causes);
    causes
        .iter()
        .map(|(at, cause)| {
            let why = own.get(cause).and_then(|reasons| reasons.first()).map_or(Reason::NeedsHeld, |own| own.reason);
            hold(
                given,
                at,
                own.get(at),
                (cause, why),
                &needed(given, at).into_iter().filter(|needed| causes.contains_key(needed)).collect(),
                takeable.contains(at),
            )
        })
        .collect()
}

/// Who needs a resource: the edges, turned round.
fn users(given: Given<'_>) -> BTreeMap<At, BTreeSet<At>> {
    let mut users: BTreeMap<At, BTreeSet<At>> = BTreeMap::new();
    for (module, desired) in &given.desired.modules {
        for key in desired.resources.keys() {
            let user = (module.clone(), key.clone());
            for at in needed(given, &user) {
                users.entry(at).or_default().insert(user.clone());
            }
        }
    }
    users
}

/// Every held resource with the held one it goes back to. Breadth first from the roots in their order, so that the
/// nearest root is the cause and the same input gives the same one.
fn causes(own: &BTreeMap<At, Vec<OwnReason>>, users: &BTreeMap<At, BTreeSet<At>>) -> BTreeMap<At, At> {
    let mut causes: BTreeMap<At, At> = own.keys().map(|at| (at.clone(), at.clone())).collect();
    let mut queue: VecDeque<At> = own.keys().cloned().collect();
    while let Some(at) = queue.pop_front() {
        let cause = causes.get(&at).cloned().unwrap_or_else(|| at.clone());
        for user in users.get(&at).into_iter().flatten() {
            if !causes.contains_key(user) {
                causes.insert(user.clone(), cause.clone());
                queue.push_back(user.clone());
            }
        }
    }
    causes
}

/// The held resources that a take would end: none of their own reasons, and none of those they go back to, is another.
fn takeable(
    own: &BTreeMap<At, Vec<OwnReason>>, users: &BTreeMap<At, BTreeSet<At>>, causes: &BTreeMap<At, At>,
) -> BTreeSet<At> {
    let lasting = |reasons: &Vec<OwnReason>| reasons.iter().any(|own| own.way_out == WayOut::Other);
    let mut stay: BTreeSet<At> = own.iter().filter(|(_, reasons)| lasting(reasons)).map(|(at, _)| at.clone()).collect();
    let mut queue: VecDeque<At> = stay.iter().cloned().collect();
    while let Some(at) = queue.pop_front() {
        for user in users.get(&at).into_iter().flatten() {
            if stay.insert(user.clone()) {
                queue.push_back(user.clone());
            }
        }
    }
    causes.keys().filter(|at| !stay.contains(*at)).cloned().collect()
}

fn hold(
    given: Given<'_>, at: &At, own: Option<&Vec<OwnReason>>, (cause, why): (&At, Reason), held_needs: &BTreeSet<At>,
    waiting_on_take: bool,
) -> Hold {
    let (module, resource) = at;
    let desired = given.desired.modules.get(module).and_then(|desired| desired.resources.get(resource));
    let mut also: BTreeSet<Reason> = own.into_iter().flatten().map(|own| own.reason).collect();
    let (reason, clause, hint) = match own.and_then(|reasons| reasons.first()) {
        Some(first) => (first.reason, first.clause.clone(), first.hint.clone()),
        None => (
            Reason::NeedsHeld,
            needs_clause(given, at, cause, why),
            Some(format!("holdfast holds {}", quote(&cause.0))),
        ),
    };
    if !held_needs.is_empty() {
        also.insert(Reason::NeedsHeld);
    }
    also.remove(&reason);
    let mut sentence = format!("{resource} is held: {clause}");
    if waiting_on_take {
        let verb = if desired.is_some_and(|desired| desired.unit.is_some()) { "not run" } else { "left as it is" };
        sentence.push_str(&format!("; {verb} until {} is taken", cause.0));
    }
    let pod = desired.and_then(|desired| {
        desired.needs.iter().find_map(|need| match need {
            Need::Resource { key, .. } if key.kind == Kind::Pod => Some(key),
            _ => None,
        })
    });
    if let Some(pod) = pod.filter(|pod| !held_needs.contains(&(module.clone(), (*pod).clone()))) {
        sentence.push_str(&format!("; {pod} comes up without it"));
    }
    Hold {
        module: module.clone(),
        resource: resource.clone(),
        unit: desired.and_then(|desired| desired.unit.clone()),
        reason,
        also,
        cause: Cause { module: cause.0.clone(), resource: cause.1.clone() },
        sentence,
        hint,
        waiting_on_take,
    }
}

/// "it would mount /var/lib/x, found on this host", or "it needs network/int, which is held".
fn needs_clause(given: Given<'_>, at: &At, cause: &At, why: Reason) -> String {
    let resource = given.desired.modules.get(&at.0).and_then(|desired| desired.resources.get(&at.1));
    let cause_body =
        given.desired.modules.get(&cause.0).and_then(|desired| desired.resources.get(&cause.1)).map(|r| &r.body);
    let direct = resource.is_some_and(|resource| {
        resource.needs.contains(&Need::Resource { module: cause.0.clone(), key: cause.1.clone() })
    });
    let state = if why == Reason::Found { "found on this host".to_owned() } else { format!("which is held ({why})") };
    let of_module = if at.0 == cause.0 { String::new() } else { format!(" of module {}", cause.0) };
    match (cause_body, direct, at.1.kind) {
        (Some(Body::Directory { path, .. } | Body::File { path, .. } | Body::Link { path, .. }), true, kind) => {
            match kind {
                Kind::Directory | Kind::File | Kind::Link => format!("it lies below {path}{of_module}, {state}"),
                _ => format!("it would mount {path}{of_module}, {state}"),
            }
        }
        _ if direct => format!("it needs {}{of_module}, which is held", cause.1),
        _ => format!("what it needs goes back to {}{of_module}, which is held", cause.1),
    }
}
