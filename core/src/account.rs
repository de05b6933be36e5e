//! Plan and outcomes -> Report: what became of every resource.

use crate::confirm::is_for;
use crate::hold::Hold;
use crate::ledger::{Ledger, Pin};
use crate::name::ModuleName;
use crate::plan::{Change, Plan, Planned, Scope};
use crate::report::{Counts, Deployed, EntryOutcome, HeldEntry, HoldEnded, Report, ReportEntry, ReportResult};
use crate::resource::ResourceKey;
use crate::step::{Outcome, StepId, Stop};

/// What a report is made from.
#[derive(Debug, Clone, Copy)]
pub struct Account<'a> {
    /// 32 hex digits.
    pub report: &'a str,
    /// When it began: microseconds since 1970.
    pub started_usec: u64,
    /// How long it took, in microseconds.
    pub duration_usec: u64,
    /// The plan that was executed.
    pub plan: &'a Plan,
    /// How each of its steps ended.
    pub outcomes: &'a [Outcome],
    /// The plan that the look afterwards gives: whatever it would still do was not done. None when nothing was done.
    pub verified: Option<&'a Plan>,
    /// The ledger before, with the holds of the report before.
    pub before: &'a Ledger,
    /// The ledger after.
    pub after: &'a Ledger,
    /// Which modules were asked for.
    pub scope: &'a Scope,
}

/// The report.
#[must_use]
pub fn report(account: Account<'_>) -> Report {
    let Account { report, started_usec, duration_usec, plan, before, scope, .. } = account;
    let mut counts = Counts::default();
    let mut resources = Vec::new();
    for hold in &plan.holds {
        counts.held += 1;
        resources.push(held(account, hold));
    }
    for (module, planned) in &plan.resources {
        for (key, planned) in planned {
            let outcome = outcome(account, module, key, planned);
            match &outcome {
                None => counts.unchanged += 1,
                Some(EntryOutcome::Created(_) | EntryOutcome::Changed(_) | EntryOutcome::Recreated(_)) => {
                    counts.changed += 1
                }
                Some(EntryOutcome::Removed(_)) => counts.removed += 1,
                Some(EntryOutcome::Failed { .. }) => counts.failed += 1,
                Some(EntryOutcome::NotAttempted { .. }) => counts.not_attempted += 1,
                Some(EntryOutcome::Held(_)) => counts.held += 1,
            }
            resources.extend(outcome.map(|outcome| ReportEntry {
                module: module.clone(),
                resource: key.clone(),
                unit: planned.unit.clone(),
                outcome,
            }));
        }
    }
    counts.applied = counts.changed + counts.unchanged;
    counts.total = counts.applied + counts.held + counts.failed + counts.not_attempted;
    resources.sort_by(|a, b| (&a.module, &a.resource).cmp(&(&b.module, &b.resource)));
    let newly_held =
        resources.iter().filter(|entry| matches!(&entry.outcome, EntryOutcome::Held(held) if !held.known)).count();
    Report {
        report: report.to_owned(),
        action: "apply".to_owned(),
        result: result(&counts, account.outcomes),
        counts,
        started_usec,
        duration_usec,
        resources,
        notes: plan.notes.clone(),
        newly_held: u32::try_from(newly_held).unwrap_or(u32::MAX),
        ended: ended(before, plan, scope),
    }
}

fn result(counts: &Counts, outcomes: &[Outcome]) -> ReportResult {
    let stopped = outcomes.iter().find_map(|outcome| match outcome {
        Outcome::Stopped(stop) => Some(*stop),
        Outcome::Done | Outcome::Pinned(_) | Outcome::Failed(_) | Outcome::NotAttempted { after: _ } => None,
    });
    match stopped {
        Some(Stop::Canceled) => return ReportResult::Canceled,
        Some(Stop::Terminated) => return ReportResult::Interrupted,
        None => {}
    }
    let failed = counts.failed + counts.not_attempted > 0;
    match (failed, counts.applied + counts.removed > 0, counts.held > 0) {
        (true, true, _) => ReportResult::Partial,
        (true, false, _) => ReportResult::Failed,
        (false, _, true) => ReportResult::Held,
        (false, _, false) => ReportResult::Done,
    }
}

fn held(account: Account<'_>, hold: &Hold) -> ReportEntry {
    let record = |ledger: &Ledger| ledger.holds.get(&hold.module).and_then(|holds| holds.get(&hold.resource)).cloned();
    let known = record(account.before).is_some_and(|record| record.reason == hold.reason);
    let since_usec = record(account.after).map_or(account.started_usec, |record| record.since_usec);
    let Hold { module, resource, unit, reason, also, cause, sentence, hint, waiting_on_take } = hold.clone();
    let entry = HeldEntry { reason, also, cause, sentence, hint, since_usec, waiting_on_take, known };
    ReportEntry { module, resource, unit, outcome: EntryOutcome::Held(entry) }
}

/// None for what is unchanged.
fn outcome(account: Account<'_>, module: &str, key: &ResourceKey, planned: &Planned) -> Option<EntryOutcome> {
    let steps =
        account.plan.steps.iter().zip(account.outcomes).enumerate().filter(|(_, (step, _))| is_for(step, module, key));
    let mut not_attempted = None;
    for (_, (step, outcome)) in steps {
        match outcome {
            Outcome::Done | Outcome::Pinned(_) => {}
            Outcome::Failed(failure) => {
                return Some(EntryOutcome::Failed {
                    step: step.act.to_string(),
                    error: failure.error.clone(),
                    errno: failure.errno,
                    exit_status: failure.exit_status,
                });
            }
            Outcome::NotAttempted { after } => {
                not_attempted = not_attempted.or_else(|| Some(name_of(account.plan, *after)));
            }
            Outcome::Stopped(stop) => not_attempted = not_attempted.or_else(|| Some(stop.token().to_owned())),
        }
    }
    if let Some(after) = not_attempted {
        return Some(EntryOutcome::NotAttempted { after });
    }
    if let Some(error) = account.verified.and_then(|verified| unverified(verified, module, key)) {
        return Some(EntryOutcome::Failed { step: "verify".to_owned(), error, errno: None, exit_status: None });
    }
    let deployed = || Deployed {
        image: planned.image.clone(),
        digest: pin(account.after, module, key).map(|pin| pin.deployed.clone()),
    };
    match planned.change {
        Change::Unchanged => None,
        Change::Create => Some(EntryOutcome::Created(deployed())),
        Change::Change => Some(EntryOutcome::Changed(deployed())),
        Change::Recreate => Some(EntryOutcome::Recreated(deployed())),
        Change::Remove => Some(EntryOutcome::Removed(deployed())),
    }
}

/// What the look afterwards still finds to do.
fn unverified(verified: &Plan, module: &str, key: &ResourceKey) -> Option<String> {
    let planned = verified.resources.get(module).and_then(|resources| resources.get(key));
    if let Some(planned) = planned.filter(|planned| planned.change != Change::Unchanged) {
        return Some(format!("looked at again, it is not so: {}", planned.because));
    }
    let hold = verified.holds.iter().find(|hold| hold.module == module && hold.resource == *key)?;
    Some(format!("looked at again, {}", hold.sentence))
}

fn pin<'a>(ledger: &'a Ledger, module: &str, key: &ResourceKey) -> Option<&'a Pin> {
    ledger.entry(&ModuleName::new(module).ok()?, key)?.pin.as_ref()
}

fn name_of(plan: &Plan, id: StepId) -> String {
    plan.steps.get(id).map_or_else(String::new, |step| format!("{} {}", step.module, step.resource))
}

/// Holds of the report before, in scope, that are no more.
fn ended(before: &Ledger, plan: &Plan, scope: &Scope) -> Vec<HoldEnded> {
    let mut ended = Vec::new();
    for (module, holds) in before.holds.iter().filter(|(module, _)| scope.has(module)) {
        for (resource, record) in holds {
            if plan.holds.iter().any(|hold| hold.module == *module && hold.resource == *resource) {
                continue;
            }
            let planned = plan.resources.get(module).and_then(|resources| resources.get(resource));
            ended.push(HoldEnded {
                module: module.clone(),
                resource: resource.clone(),
                unit: planned.and_then(|planned| planned.unit.clone()),
                reason: record.reason,
                ended_by: if planned.is_some() { "applied" } else { "removed" }.to_owned(),
            });
        }
    }
    ended
}
