//! tmpfiles.d lines of a module -> declared paths.
