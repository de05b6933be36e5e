//! What is held, as `holdfast holds` tells it: a pure view of a plan's holds.

use std::collections::BTreeSet;
use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::rows::HoldRow;
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

/// A hold, and since when. In JSON, a row of `holds --json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "HoldRow", from = "HoldRow")]
pub struct HoldSince {
    /// The hold.
    pub hold: Hold,
    /// Since when it is held for this reason, as far as reports know: microseconds since 1970.
    pub since_usec: u64,
}

impl Holds {
    /// All holds of a look.
    #[must_use]
    pub fn of(sources: &Sources<'_>) -> Self {
        let observed_usec = sources.observed.taken_usec;
        let since = |hold: &Hold| {
            let known = sources.ledger.holds.get(&hold.module).and_then(|module| module.get(&hold.resource));
            known.filter(|known| known.reason == hold.reason).map(|HoldRecord { reason: _, since_usec }| *since_usec)
        };
        let holds = sources.plan.holds.iter();
        let mut holds: Vec<HoldSince> = holds
            .map(|hold| HoldSince { hold: hold.clone(), since_usec: since(hold).unwrap_or(observed_usec) })
            .collect();
        holds.sort_by(|a, b| place(&a.hold).cmp(&place(&b.hold)));
        Self { observed_usec, holds }
    }

    /// Only those for one reason.
    #[must_use]
    pub fn only(mut self, reason: Reason) -> Self {
        self.holds.retain(|held| held.hold.reason == reason);
        self
    }

    /// `holds --json`.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let Self { observed_usec, holds } = self;
        json!({ "schema": SCHEMA, "observed_usec": observed_usec, "holds": holds })
    }

    /// The text for a terminal.
    #[must_use]
    pub fn text<'a>(&'a self, dress: &'a Dress<'a>) -> impl fmt::Display + 'a {
        Text { holds: self, dress }
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
