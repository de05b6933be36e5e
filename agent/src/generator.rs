//! Podman's own generator on a staged tree.
