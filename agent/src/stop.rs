//! The sign to stop that a running apply looks at between its steps.

use holdfast_core::step::Stop;
use tokio::sync::watch;

/// A sign that is shown at most once, to all its copies.
#[derive(Debug, Clone)]
pub struct StopSign(watch::Sender<Option<Stop>>);

impl Default for StopSign {
    fn default() -> Self {
        Self(watch::Sender::new(None))
    }
}

impl StopSign {
    /// Shows it. The first reason stays.
    pub fn show(&self, stop: Stop) {
        self.0.send_if_modified(|shown| {
            let first = shown.is_none();
            shown.get_or_insert(stop);
            first
        });
    }

    /// Whether it is shown, and why.
    #[must_use]
    pub fn shown(&self) -> Option<Stop> {
        *self.0.borrow()
    }

    /// Waits until it is shown.
    pub async fn wait(&self) -> Stop {
        let mut sign = self.0.subscribe();
        match sign.wait_for(Option::is_some).await.map(|shown| *shown) {
            Ok(Some(stop)) => stop,
            // Its sender is part of `self`, so that it cannot be gone.
            Ok(None) | Err(_) => std::future::pending().await,
        }
    }
}
