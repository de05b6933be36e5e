//! Who asks, as far as /proc tells: for the journal.

use holdfast_core::record::Caller;

/// The kernel's word for "no login uid".
const UNSET: u32 = u32::MAX;

/// The longest command line that is told.
const WORDS: usize = 4096;

/// A user's process. It may be gone or another one by now: the uid is what counts, the rest is told for people.
#[must_use]
pub fn of_process(uid: u32, pid: Option<u32>) -> Caller {
    let read = |file: &str| pid.and_then(|pid| std::fs::read(format!("/proc/{pid}/{file}")).ok());
    let loginuid = read("loginuid").and_then(|text| String::from_utf8(text).ok());
    let loginuid = loginuid.and_then(|text| text.trim().parse().ok()).filter(|uid| *uid != UNSET);
    let mut words = read("cmdline").unwrap_or_default();
    words.truncate(WORDS);
    let words = String::from_utf8_lossy(&words).trim_end_matches('\0').replace('\0', " ");
    Caller { uid, loginuid, command_line: words }
}
