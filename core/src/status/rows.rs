//! The rows of status and holds as they cross a door: the published JSON, and back.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use thiserror::Error;

use super::holds::HoldSince;
use super::judge::held_state;
use super::{Counts, ModuleStatus, State};
use crate::hold::{Cause, Hold, Reason};
use crate::resource::{Kind, ResourceKey};

/// A row that another version of holdfast wrote.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("\"{0}\" is no state of a module")]
pub struct RowError(String);

/// [`ModuleStatus`] as it stands in `status --json`.
#[derive(Serialize, Deserialize)]
pub struct ModuleRow {
    name: String,
    state: String,
    #[serde(flatten)]
    counts: Counts,
    wanted: u32,
    running: u32,
    waiting_on_take: bool,
    reasons: BTreeMap<Reason, u32>,
    cause: Option<String>,
    more_causes: u32,
    hint: Option<String>,
}

impl From<ModuleStatus> for ModuleRow {
    fn from(status: ModuleStatus) -> Self {
        let ModuleStatus { name, state, counts, wanted, running, reasons, waiting_on_take, cause, more, hint } = status;
        let state = state.token().to_owned();
        Self { name, state, counts, wanted, running, waiting_on_take, reasons, cause, more_causes: more, hint }
    }
}

impl TryFrom<ModuleRow> for ModuleStatus {
    type Error = RowError;
    fn try_from(row: ModuleRow) -> Result<Self, RowError> {
        let ModuleRow { name, state, counts, wanted, running, waiting_on_take, reasons, cause, more_causes, hint } =
            row;
        let state = match state.as_str() {
            "failed" => State::Failed,
            "unreadable" => State::Unreadable,
            "held" => held_state(&reasons, waiting_on_take).ok_or(RowError(state))?,
            "stopped" => State::Stopped,
            "pending" => State::Pending,
            "applied" => State::Applied,
            _ => return Err(RowError(state)),
        };
        Ok(Self { name, state, counts, wanted, running, reasons, waiting_on_take, cause, more: more_causes, hint })
    }
}

/// [`HoldSince`] as it stands in `holds --json`. Images are compared by no verb yet: the last three are null.
#[derive(Serialize, Deserialize)]
pub struct HoldRow {
    module: String,
    resource: ResourceKey,
    kind: Kind,
    unit: Option<String>,
    reason: Reason,
    also: BTreeSet<Reason>,
    cause: ResourceKey,
    cause_module: String,
    sentence: String,
    hint: Option<String>,
    waiting_on_take: bool,
    since_usec: u64,
    #[serde(default)]
    running: Value,
    #[serde(default)]
    pinned: Value,
    #[serde(default)]
    direction: Value,
}

impl From<HoldSince> for HoldRow {
    fn from(held: HoldSince) -> Self {
        let HoldSince { hold, since_usec } = held;
        let Hold { module, resource, unit, reason, also, cause, sentence, hint, waiting_on_take } = hold;
        Self {
            module,
            kind: resource.kind,
            resource,
            unit,
            reason,
            also,
            cause: cause.resource,
            cause_module: cause.module,
            sentence,
            hint,
            waiting_on_take,
            since_usec,
            running: Value::Null,
            pinned: Value::Null,
            direction: Value::Null,
        }
    }
}

impl From<HoldRow> for HoldSince {
    fn from(row: HoldRow) -> Self {
        let HoldRow { module, resource, unit, reason, also, cause, cause_module, sentence, hint, .. } = row;
        let cause = Cause { module: cause_module, resource: cause };
        let waiting_on_take = row.waiting_on_take;
        let hold = Hold { module, resource, unit, reason, also, cause, sentence, hint, waiting_on_take };
        Self { hold, since_usec: row.since_usec }
    }
}
