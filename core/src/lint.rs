//! What is wrong or worth knowing in a module directory, without a host.
