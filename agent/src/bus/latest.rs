//! What an object tells, set anew while its methods run: zbus holds an object's own lock for as long as a call takes, and
//! a call may wait for the very news.

use std::sync::{Arc, PoisonError, RwLock};

/// The latest of something.
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

    /// From now on it is this.
    pub fn set(&self, next: T) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(next);
    }
}
