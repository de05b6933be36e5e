//! A hold: what is left untouched, why, because of what, and the way out.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::name::ModuleName;
use crate::resource::ResourceKey;

macro_rules! reasons {
    ($($(#[$doc:meta])* $name:ident = $token:literal,)*) => {
        /// Why something is held. The order is that of precedence: the first that applies is the hold's reason.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "&'static str")]
        pub enum Reason { $($(#[$doc])* $name,)* }

        impl Reason {
            /// The closed list.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];

            /// The word in the journal, on the bus and on the command line.
            #[must_use]
            pub fn token(self) -> &'static str {
                match self { $(Self::$name => $token,)* }
            }
        }
    };
}

reasons! {
    /// The module or a file in it cannot be read, or the generator drops it.
    Unreadable = "unreadable",
    /// Somebody other than root may change the module.
    UnsafeOwner = "unsafe-owner",
    /// A variable or specifier that cannot be known before the start.
    Unresolved = "unresolved",
    /// Two files or modules claim one thing.
    ClaimedTwice = "claimed-twice",
    /// The unit's name is taken below /usr.
    VendorUnit = "vendor-unit",
    /// The operator masked the unit.
    Masked = "masked",
    /// It exists and is foreign.
    Found = "found",
    /// A published port is held by something foreign.
    PortInUse = "port-in-use",
    /// A path that is referred to is not there.
    MissingPath = "missing-path",
    /// A secret that is referred to is not there.
    MissingSecret = "missing-secret",
    /// An environment file that is referred to is not there.
    MissingEnvFile = "missing-env-file",
    /// A network that is referred to is made by nobody.
    MissingNetwork = "missing-network",
    /// An image is not there and cannot be pulled.
    MissingImage = "missing-image",
    /// A path lies outside of what the agent may write.
    PathNotWritable = "path-not-writable",
    /// The module was made for a user's own manager.
    UserModule = "user-module",
    /// The pinned image is older than the running one.
    Downgrade = "downgrade",
    /// Which of two images is newer cannot be told.
    DirectionUnknown = "direction-unknown",
    /// A major version step on data.
    MajorWithData = "major-with-data",
    /// The path behind a mount changed and the data did not move.
    MountMoved = "mount-moved",
    /// What would be replaced keeps data inside.
    DataInContainer = "data-in-container",
    /// A volume's or network's options differ from the live one.
    VolumeDiffers = "volume-differs",
    /// Something foreign writes the same path.
    SharedData = "shared-data",
    /// What would be replaced could not be brought back.
    NoWayBack = "no-way-back",
    /// The owner on disk is not the one the container writes as.
    OwnerDiffers = "owner-differs",
    /// A mount would relabel or re-own what is not the module's alone.
    RelabelRisk = "relabel-risk",
    /// A file was changed on the host and in the module.
    ChangedLocally = "changed-locally",
    /// The module's policy keeps a changed image waiting.
    UpgradePolicy = "upgrade-policy",
    /// This image was rolled back here before.
    RejectedImage = "rejected-image",
    /// A tag moved; never a hold, only the word that deploys it.
    TagMoved = "tag-moved",
    /// The module's directory vanished.
    MassRemoval = "mass-removal",
    /// The operator said so.
    Operator = "operator",
    /// It needs something that is held.
    NeedsHeld = "needs-held",
}

/// A word that is no reason.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("\"{0}\" is no reason")]
pub struct ReasonError(String);

impl FromStr for Reason {
    type Err = ReasonError;
    fn from_str(text: &str) -> Result<Self, ReasonError> {
        Self::ALL.iter().copied().find(|reason| reason.token() == text).ok_or_else(|| ReasonError(text.to_owned()))
    }
}

impl TryFrom<String> for Reason {
    type Error = ReasonError;
    fn try_from(text: String) -> Result<Self, ReasonError> {
        text.parse()
    }
}

impl From<Reason> for &'static str {
    fn from(reason: Reason) -> Self {
        reason.token()
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.token())
    }
}

/// One resource that is left untouched.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hold {
    /// Its module, by directory name (a directory that is no module name is held, too).
    pub module: String,
    /// The resource.
    pub resource: ResourceKey,
    /// The unit that does not run, or does not change, because of it.
    pub unit: Option<String>,
    /// The first reason in the order of [`Reason`].
    pub reason: Reason,
    /// The others.
    pub also: BTreeSet<Reason>,
    /// The held resource that this goes back to; itself for a hold of its own.
    pub cause: Cause,
    /// What the operator reads: subject first, no full stop.
    pub sentence: String,
    /// A command to run, or what to do; names only what exists.
    pub hint: Option<String>,
    /// True when a take of the cause's module would end it.
    pub waiting_on_take: bool,
}

/// Where a hold goes back to.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Cause {
    /// The module.
    pub module: String,
    /// The resource.
    pub resource: ResourceKey,
}

/// A module name or a directory's name that is none.
impl From<&ModuleName> for String {
    fn from(name: &ModuleName) -> Self {
        name.as_str().to_owned()
    }
}
