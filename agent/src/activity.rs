//! Whether anybody needs the agent: calls that are being answered, and when the last one was.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Counts calls.
#[derive(Debug)]
pub struct Activity {
    calls: AtomicUsize,
    last: Mutex<Instant>,
}

/// A call that is being answered, until it is dropped.
#[derive(Debug)]
pub struct Call<'a>(&'a Activity);

impl Default for Activity {
    fn default() -> Self {
        Self { calls: AtomicUsize::new(0), last: Mutex::new(Instant::now()) }
    }
}

impl Activity {
    /// A call begins.
    #[must_use]
    pub fn call(&self) -> Call<'_> {
        self.calls.fetch_add(1, Ordering::SeqCst);
        Call(self)
    }

    /// Something happened that is no call of ours: a property was read.
    pub fn touch(&self) {
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }

    /// For how long nothing has happened; none while something does.
    #[must_use]
    pub fn idle(&self) -> Option<Duration> {
        let since = self.last.lock().unwrap_or_else(PoisonError::into_inner).elapsed();
        (self.calls.load(Ordering::SeqCst) == 0).then_some(since)
    }
}

impl Drop for Call<'_> {
    fn drop(&mut self) {
        self.0.touch();
        self.0.calls.fetch_sub(1, Ordering::SeqCst);
    }
}
