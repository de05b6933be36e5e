//! The clock.

use std::time::{SystemTime, UNIX_EPOCH};

/// Microseconds since 1970.
#[must_use]
pub fn now_usec() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_micros()).unwrap_or(u64::MAX)
}
