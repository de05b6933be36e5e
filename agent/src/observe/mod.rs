//! One look at the host.
