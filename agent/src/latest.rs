//! What is so now, and once for all: two cells that many may look at while one sets them.

use std::mem::replace;
use std::sync::{Arc, PoisonError, RwLock};

use tokio::sync::watch;

/// The latest of something. On the bus an object tells what stands here: zbus holds an object's own lock for as long as a
/// call takes, and a call may wait for the very news.
#[derive(Debug)]
pub struct Latest<T>(RwLock<Arc<T>>);

impl<T> Latest<T> {
    /// The first.
    pub fn new(first: T) -> Self {
        Self(RwLock::new(Arc::new(first)))
    }

    /// What is so now.
    pub fn get(&self) -> Arc<T> {
        Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// From now on it is this; gives what it was.
    pub fn set(&self, next: impl Into<Arc<T>>) -> Arc<T> {
        replace(&mut *self.0.write().unwrap_or_else(PoisonError::into_inner), next.into())
    }
}

/// Something that is set once, for all its copies.
#[derive(Debug, Clone)]
pub struct Once<T>(watch::Sender<Option<T>>);

impl<T> Default for Once<T> {
    fn default() -> Self {
        Self(watch::Sender::new(None))
    }
}

impl<T: Clone> Once<T> {
    /// Sets it. The first stays.
    pub fn set(&self, value: T) {
        self.0.send_if_modified(|set| {
            let first = set.is_none();
            set.get_or_insert(value);
            first
        });
    }

    /// What it is; none while it is not set.
    #[must_use]
    pub fn get(&self) -> Option<T> {
        self.0.borrow().clone()
    }

    /// Waits until it is set.
    pub async fn wait(&self) -> T {
        let mut set = self.0.subscribe();
        match set.wait_for(Option::is_some).await.map(|set| set.clone()) {
            Ok(Some(value)) => value,
            // Its sender is part of `self`, so that it cannot be gone.
            Ok(None) | Err(_) => std::future::pending().await,
        }
    }
}
