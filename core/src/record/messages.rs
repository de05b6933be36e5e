//! The only list of MESSAGE_IDs, and of the fields that each kind of entry has.

macro_rules! messages {
    ($($(#[$doc:meta])* $name:ident = $id:literal { always: $always:expr, sometimes: $sometimes:expr, })*) => {
        /// The kinds of journal entry. Each has an entry in the catalog, units/holdfast.catalog.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Message { $($(#[$doc])* $name,)* }

        impl Message {
            /// The closed list.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];

            /// MESSAGE_ID=: made once by `systemd-id128 new`, never changed.
            #[must_use]
            pub fn id(self) -> &'static str {
                match self { $(Self::$name => $id,)* }
            }

            /// The fields that every entry of this kind has beside [`COMMON`]. The catalog may use these only: systemd
            /// prints the name of a field that is not there.
            #[must_use]
            pub fn always(self) -> &'static [&'static str] {
                match self { $(Self::$name => &$always,)* }
            }

            /// The fields that an entry of this kind may have.
            #[must_use]
            pub fn sometimes(self) -> &'static [&'static str] {
                match self { $(Self::$name => &$sometimes,)* }
            }
        }
    };
}

/// The fields that every entry has.
pub const COMMON: [&str; 8] = [
    "MESSAGE",
    "MESSAGE_ID",
    "PRIORITY",
    "SYSLOG_IDENTIFIER",
    "HOLDFAST_SCHEMA",
    "HOLDFAST_REPORT_ID",
    "HOLDFAST_SEQ",
    "HOLDFAST_ACTION",
];

impl Message {
    /// The kind with this MESSAGE_ID=.
    #[must_use]
    pub fn of_id(id: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|message| message.id() == id)
    }
}

messages! {
    /// A report begins; nothing was done before it.
    Started = "c263dbbb53764e129b6bb2eef432a747" {
        always: ["HOLDFAST_CALLER_UID", "HOLDFAST_COMMAND_LINE"],
        sometimes: ["HOLDFAST_LOGINUID", "HOLDFAST_MODULE"],
    }
    /// The caller was allowed or denied to do it.
    Authorised = "2feaa77eb1c44b6591d6c181724833ab" {
        always: ["HOLDFAST_CALLER_UID", "HOLDFAST_POLKIT_ACTION", "HOLDFAST_ANSWER"],
        sometimes: [],
    }
    /// A resource was created, changed, recreated, or removed.
    Changed = "b1b15be0fb0b48229b7ee4beb0cf775d" {
        always: ["HOLDFAST_MODULE", "HOLDFAST_RESOURCE", "HOLDFAST_KIND", "HOLDFAST_OUTCOME"],
        sometimes: ["HOLDFAST_IMAGE", "HOLDFAST_DIGEST", "OBJECT_SYSTEMD_UNIT"],
    }
    /// A resource was left untouched.
    Held = "2e9b567e4714411c802508c02bcd4f7e" {
        always: [
            "HOLDFAST_MODULE", "HOLDFAST_RESOURCE", "HOLDFAST_KIND", "HOLDFAST_OUTCOME", "HELD_MODULE",
            "REASON", "CAUSE", "CAUSE_MODULE", "HOLDFAST_SINCE", "HOLDFAST_WAITING_ON_TAKE",
        ],
        sometimes: ["HOLDFAST_ALSO", "HOLDFAST_HINT", "HOLDFAST_SENTENCE", "OBJECT_SYSTEMD_UNIT"],
    }
    /// A hold of the report before is no more.
    HoldEnded = "efd9a3db24f349fdb22065ec34c8a4a2" {
        always: [
            "HOLDFAST_MODULE", "HOLDFAST_RESOURCE", "HOLDFAST_KIND", "HELD_MODULE", "REASON",
            "HOLDFAST_ENDED_BY",
        ],
        sometimes: ["OBJECT_SYSTEMD_UNIT"],
    }
    /// A resource was tried in vain.
    Failed = "d8ae1767f6824cbcaddda082fa9bc76f" {
        always: [
            "HOLDFAST_MODULE", "HOLDFAST_RESOURCE", "HOLDFAST_KIND", "HOLDFAST_OUTCOME", "HOLDFAST_STEP",
            "HOLDFAST_ERROR",
        ],
        sometimes: ["ERRNO", "EXIT_STATUS", "OBJECT_SYSTEMD_UNIT"],
    }
    /// A resource was not tried, because another one failed.
    NotAttempted = "1971813f35164fc19157156ad367645e" {
        always: ["HOLDFAST_MODULE", "HOLDFAST_RESOURCE", "HOLDFAST_KIND", "HOLDFAST_OUTCOME", "HOLDFAST_AFTER"],
        sometimes: ["OBJECT_SYSTEMD_UNIT"],
    }
    /// Something worth knowing, which changes nothing.
    Note = "c671a6c99ee14afba8f4413801eb3b22" {
        always: ["HOLDFAST_MODULE", "HOLDFAST_RESOURCE", "HOLDFAST_KIND", "HOLDFAST_NOTE"],
        sometimes: ["HOLDFAST_SENTENCE", "OBJECT_SYSTEMD_UNIT"],
    }
    /// A report ends; it has the numbers.
    Finished = "ace3c2be6e334a8d9c0f4bf7e299f94d" {
        always: [
            "HOLDFAST_RESULT", "HOLDFAST_TOTAL", "HOLDFAST_APPLIED", "HOLDFAST_CHANGED", "HOLDFAST_UNCHANGED",
            "HOLDFAST_HELD", "HOLDFAST_FAILED", "HOLDFAST_NOT_ATTEMPTED", "HOLDFAST_REMOVED",
            "HOLDFAST_NEWLY_HELD", "HOLDFAST_ENTRIES", "HOLDFAST_STARTED_USEC", "HOLDFAST_DURATION_USEC",
        ],
        sometimes: ["HELD_MODULE"],
    }
    /// A report was cut off.
    Interrupted = "a10520a1d14e4cb09e14bbc16c129ac2" {
        always: ["HOLDFAST_ERROR"],
        sometimes: [],
    }
    /// A report ends without having done what was asked.
    Refused = "ea4bf3cd27b647b2834fa0e3b60cd38a" {
        always: ["HOLDFAST_ERROR"],
        sometimes: ["REASON", "HOLDFAST_HINT"],
    }
}
