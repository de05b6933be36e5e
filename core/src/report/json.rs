//! A report as the JSON object of `report --json`, and back. Strings in it are as they are, not escaped for a terminal.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use thiserror::Error;

use super::{Deployed, EntryOutcome, HeldEntry, Report, ReportEntry};
use crate::hold::{Cause, Reason};
use crate::resource::{Kind, ResourceKey};

/// Version of the object.
const SCHEMA: u32 = 1;

impl Report {
    /// `{schema: 1, report, action, result, …, resources: […], notes: […], ended: […]}`; `resources` lists all but the
    /// unchanged, each with the same keys (null where they do not apply), and further ones by outcome.
    ///
    /// # Errors
    /// None that a report can have.
    pub fn to_json(&self) -> Result<Value, serde_json::Error> {
        let mut object = Map::from_iter([("schema".to_owned(), SCHEMA.into())]);
        if let Value::Object(fields) = serde_json::to_value(self)? {
            object.extend(fields);
        }
        Ok(Value::Object(object))
    }
}

/// A resource of a report that does not have what its outcome always has.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("a resource that is {outcome} has no {field}")]
pub struct EntryError {
    outcome: String,
    field: &'static str,
}

/// [`ReportEntry`] as it stands in JSON.
#[derive(Default, Serialize, Deserialize)]
pub(super) struct EntryRow {
    module: String,
    resource: Option<ResourceKey>,
    kind: Option<Kind>,
    unit: Option<String>,
    outcome: String,
    reason: Option<Reason>,
    also: Option<BTreeSet<Reason>>,
    cause: Option<ResourceKey>,
    cause_module: Option<String>,
    sentence: String,
    hint: Option<String>,
    #[serde(flatten)]
    deployed: Deployed,
    #[serde(skip_serializing_if = "Option::is_none")]
    since_usec: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    waiting_on_take: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    known: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    step: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    errno: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    exit_status: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    after: Option<String>,
}

impl From<ReportEntry> for EntryRow {
    fn from(entry: ReportEntry) -> Self {
        let (outcome, sentence) = (entry.outcome.token().to_owned(), entry.sentence());
        let ReportEntry { module, resource, unit, outcome: what } = entry;
        let kind = Some(resource.kind);
        let row = Self { module, resource: Some(resource), kind, unit, outcome, sentence, ..Self::default() };
        match what {
            EntryOutcome::Created(deployed)
            | EntryOutcome::Changed(deployed)
            | EntryOutcome::Recreated(deployed)
            | EntryOutcome::Removed(deployed) => Self { deployed, ..row },
            EntryOutcome::Held(held) => {
                let HeldEntry { reason, also, cause, sentence, hint, since_usec, waiting_on_take, known } = held;
                let Cause { module, resource } = cause;
                Self {
                    reason: Some(reason),
                    also: Some(also),
                    cause: Some(resource),
                    cause_module: Some(module),
                    sentence,
                    hint,
                    since_usec: Some(since_usec),
                    waiting_on_take: Some(waiting_on_take),
                    known: Some(known),
                    ..row
                }
            }
            EntryOutcome::Failed { step, error, errno, exit_status } => {
                Self { step: Some(step), error: Some(error), errno, exit_status, ..row }
            }
            EntryOutcome::NotAttempted { after } => Self { after: Some(after), ..row },
        }
    }
}

impl TryFrom<EntryRow> for ReportEntry {
    type Error = EntryError;
    fn try_from(row: EntryRow) -> Result<Self, EntryError> {
        let EntryRow { module, resource, kind: _, unit, outcome: token, reason, also, cause, cause_module, .. } = row;
        let missing = |field| EntryError { outcome: token.clone(), field };
        let outcome = match token.as_str() {
            "created" => EntryOutcome::Created(row.deployed),
            "changed" => EntryOutcome::Changed(row.deployed),
            "recreated" => EntryOutcome::Recreated(row.deployed),
            "removed" => EntryOutcome::Removed(row.deployed),
            "held" => EntryOutcome::Held(HeldEntry {
                reason: reason.ok_or_else(|| missing("reason"))?,
                also: also.unwrap_or_default(),
                cause: Cause {
                    module: cause_module.ok_or_else(|| missing("cause_module"))?,
                    resource: cause.ok_or_else(|| missing("cause"))?,
                },
                sentence: row.sentence,
                hint: row.hint,
                since_usec: row.since_usec.unwrap_or_default(),
                waiting_on_take: row.waiting_on_take.ok_or_else(|| missing("waiting_on_take"))?,
                known: row.known.ok_or_else(|| missing("known"))?,
            }),
            "failed" => EntryOutcome::Failed {
                step: row.step.ok_or_else(|| missing("step"))?,
                error: row.error.ok_or_else(|| missing("error"))?,
                errno: row.errno,
                exit_status: row.exit_status,
            },
            "not-attempted" => EntryOutcome::NotAttempted { after: row.after.ok_or_else(|| missing("after"))? },
            _ => return Err(missing("meaning in this version of holdfast")),
        };
        Ok(Self { module, resource: resource.ok_or_else(|| missing("resource"))?, unit, outcome })
    }
}
