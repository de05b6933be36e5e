//! What is ours: the agent's own book, written before a thing is made and confirmed after.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::hold::Reason;
use crate::name::{HostPath, ModuleName};
use crate::resource::ResourceKey;

/// The version of the format. A ledger of another version is refused, not guessed.
pub const SCHEMA: u32 = 1;

/// The whole book.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ledger {
    /// [`SCHEMA`].
    pub schema: u32,
    /// Modules that have something here, by name. Copies of the ledger share those in which nothing differs.
    #[serde(serialize_with = "serialize_shared", deserialize_with = "deserialize_shared")]
    pub modules: BTreeMap<ModuleName, Arc<ModuleEntry>>,
    /// Holds of the last report, for "since" and "newly held". Key: module and resource.
    pub holds: BTreeMap<String, BTreeMap<ResourceKey, HoldRecord>>,
}

impl Default for Ledger {
    fn default() -> Self {
        Self { schema: SCHEMA, modules: BTreeMap::new(), holds: BTreeMap::new() }
    }
}

impl Ledger {
    /// The entry of a resource, if it is ours.
    #[must_use]
    pub fn entry(&self, module: &ModuleName, key: &ResourceKey) -> Option<&Entry> {
        self.modules.get(module)?.resources.get(key)
    }

    /// A module's part, to be changed; made where there is none.
    pub fn module_mut(&mut self, module: &ModuleName) -> &mut ModuleEntry {
        Arc::make_mut(self.modules.entry(module.clone()).or_default())
    }
}

/// One module's part; it is also kept beside its installed files.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModuleEntry {
    /// `holdfast hold`: nothing automatic passes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operator_hold: Option<OperatorHold>,
    /// Its resources.
    #[serde(default)]
    pub resources: BTreeMap<ResourceKey, Entry>,
}

/// The operator's own hold.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OperatorHold {
    /// Why, in the operator's words.
    pub note: String,
    /// Since when: microseconds since 1970.
    pub since_usec: u64,
    /// Who asked for it.
    pub uid: u32,
}

/// One resource of ours.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    /// True from before the first act on it until it was verified.
    pub intent: bool,
    /// Its unit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unit: Option<String>,
    /// Podman's name of what it makes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub object: Option<String>,
    /// What was written for it: path to SHA-256; for a directory `marked` where it carries our mark, else empty; for a
    /// link its target.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub paths: BTreeMap<HostPath, String>,
    /// The hash of its definition, as in the label `io.holdfast.desired`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hash: Option<String>,
    /// The image that was deployed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pin: Option<Pin>,
    /// Its bind mounts as they were deployed: target to source. A moved source is seen by them.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub mounts: BTreeMap<String, HostPath>,
    /// True once its unit was enabled, so that an operator's `disable` stays.
    #[serde(default)]
    pub enabled: bool,
    /// True when its unit ran at the end of the last report.
    #[serde(default)]
    pub ran: bool,
}

/// Which image a reference stood for when it was deployed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pin {
    /// `Image=` as the module writes it.
    pub written: String,
    /// `Image=` as it is installed: by digest, or the image's ID.
    pub deployed: String,
    /// The image's ID.
    pub image_id: String,
}

/// A hold of the last report.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HoldRecord {
    /// Its reason.
    pub reason: Reason,
    /// Since when: microseconds since 1970.
    pub since_usec: u64,
}

fn serialize_shared<S: Serializer>(
    modules: &BTreeMap<ModuleName, Arc<ModuleEntry>>, serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_map(modules.iter().map(|(name, entry)| (name, &**entry)))
}

fn deserialize_shared<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<BTreeMap<ModuleName, Arc<ModuleEntry>>, D::Error> {
    let modules: BTreeMap<ModuleName, ModuleEntry> = BTreeMap::deserialize(deserializer)?;
    Ok(modules.into_iter().map(|(name, entry)| (name, Arc::new(entry))).collect())
}
