//! The trailer of an installed Quadlet file, and the hash of its definition.
