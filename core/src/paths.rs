//! Whose is a host path: the module's own, or the host's.
