//! What is held, as `holdfast holds` tells it: a pure view of a plan's holds.

use std::collections::BTreeSet;
use std::fmt;

use serde_json::{Value, json};

use super::{Dress, SCHEMA, Sources, State, is_root};
use crate::hold::{Hold, Reason};
use crate::ledger::HoldRecord;
use crate::report::escape;

/// The holds of a look.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holds {
    /// When the host was looked at: microseconds since 1970.
    pub observed_usec: u64,
    /// By module, and causes before what goes back to them.
    pub holds: Vec<HoldSince>,
}

/// A hold, and since when.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HoldSince {
    /// The hold.
    pub hold: Hold,
    /// Since when it is held for this reason, as far as reports know: microseconds since 1970.
    pub since_usec: u64,
}

impl Holds {
    /// The holds of some modules (an empty list means all), maybe for one reason only.
    #[must_use]
    pub fn of(sources: &Sources<'_>, modules: &[String], reason: Option<Reason>) -> Self {
        let observed_usec = sources.observed.taken_usec;
        let asked = |hold: &&Hold| {
            (modules.is_empty() || modules.contains(&hold.module)) && reason.is_none_or(|r| hold.reason == r)
        };
        let since = |hold: &Hold| {
            let known = sources.ledger.holds.get(&hold.module).and_then(|module| module.get(&hold.resource));
            known.filter(|known| known.reason == hold.reason).map(|HoldRecord { reason: _, since_usec }| *since_usec)
        };
        let holds = sources.plan.holds.iter().filter(asked);
        let mut holds: Vec<HoldSince> = holds
            .map(|hold| HoldSince { hold: hold.clone(), since_usec: since(hold).unwrap_or(observed_usec) })
            .collect();
        holds.sort_by(|a, b| place(&a.hold).cmp(&place(&b.hold)));
        Self { observed_usec, holds }
    }

    /// `holds --json`.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let Self { observed_usec, holds } = self;
        let holds: Vec<Value> = holds.iter().map(HoldSince::to_json).collect();
        json!({ "schema": SCHEMA, "observed_usec": observed_usec, "holds": holds })
    }

    /// The text for a terminal.
    #[must_use]
    pub fn text<'a>(&'a self, dress: &'a Dress<'a>) -> impl fmt::Display + 'a {
        Text { holds: self, dress }
    }
}

impl HoldSince {
    /// One hold in JSON. Images are compared by no verb yet, so `running`, `pinned` and `direction` are null.
    fn to_json(&self) -> Value {
        let Self { hold, since_usec } = self;
        let Hold { module, resource, unit, reason, also, cause, sentence, hint, waiting_on_take } = hold;
        json!({
            "module": module,
            "resource": resource,
            "kind": resource.kind,
            "unit": unit,
            "reason": reason,
            "also": also,
            "cause": cause.resource,
            "cause_module": cause.module,
            "sentence": sentence,
            "hint": hint,
            "waiting_on_take": waiting_on_take,
            "since_usec": since_usec,
            "running": null,
            "pinned": null,
            "direction": null,
        })
    }
}

fn place(hold: &Hold) -> impl Ord + '_ {
    (&hold.module, !is_root(hold), hold.reason, &hold.resource)
}

struct Text<'a> {
    holds: &'a Holds,
    dress: &'a Dress<'a>,
}

impl fmt::Display for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Holds { observed_usec, holds } = self.holds;
        let looked = (self.dress.time)(*observed_usec);
        let modules: BTreeSet<&str> = holds.iter().map(|held| held.hold.module.as_str()).collect();
        if holds.is_empty() {
            return writeln!(f, "nothing is held   (looked at {looked})");
        }
        writeln!(f, "{} held in {} module(s)   (looked at {looked})", holds.len(), modules.len())?;
        let width = holds.iter().map(|held| held.hold.reason.token().len()).max().unwrap_or_default();
        for module in modules {
            let of_module: Vec<&HoldSince> = holds.iter().filter(|held| held.hold.module == module).collect();
            writeln!(f, "{}: {} held", escape(module), of_module.len())?;
            for held in &of_module {
                self.hold(f, held, width)?;
            }
            let hints = of_module.iter().filter_map(|held| held.hold.hint.as_deref());
            // This very list is no way out of it.
            let hints: BTreeSet<&str> = hints.filter(|hint| !hint.starts_with("holdfast holds ")).collect();
            for hint in hints {
                writeln!(f, "  Hint: {}", escape(hint))?;
            }
        }
        Ok(())
    }
}

impl Text<'_> {
    fn hold(&self, f: &mut fmt::Formatter<'_>, held: &HoldSince, width: usize) -> fmt::Result {
        let Hold { module, resource: _, unit: _, reason, also, cause, sentence, hint: _, waiting_on_take } = &held.hold;
        let state = match reason {
            Reason::Unreadable => State::Unreadable,
            _ if *waiting_on_take => State::WaitingOnTake,
            reason => State::Held(*reason),
        };
        let token = (self.dress.state)(state, &format!("{:<width$}", reason.token()));
        write!(f, "  {token}  {}   (since {}", escape(sentence), (self.dress.time)(held.since_usec))?;
        if !is_root(&held.hold) {
            let of = if &cause.module == module { String::new() } else { format!("{} ", cause.module) };
            write!(f, "; because of {}", escape(&format!("{of}{}", cause.resource)))?;
        }
        if !also.is_empty() {
            let also: Vec<&str> = also.iter().map(|reason| reason.token()).collect();
            write!(f, "; also {}", also.join(", "))?;
        }
        writeln!(f, ")")
    }
}
