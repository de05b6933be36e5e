//! Is a started unit healthy: container health, restarts, deadline.
