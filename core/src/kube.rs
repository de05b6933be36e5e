//! Kube YAML -> needs and claims.
