//! The thinking of holdfast, without any I/O: a module source is read into desired resources; what the host has is
//! given as observed state; a pure function makes a plan of steps and holds; and a report is a value before it is
//! written anywhere.

pub mod account;
pub mod confirm;
pub mod desired;
pub mod expand;
pub mod generated;
pub mod held;
pub mod hold;
pub mod kube;
pub mod ledger;
pub mod lint;
pub mod manifest;
pub mod module;
pub mod name;
pub mod observed;
pub mod paths;
pub mod plan;
pub mod ports;
pub mod problem;
pub mod quadlet;
pub mod record;
pub mod report;
pub mod resource;
pub mod status;
pub mod step;
pub mod tmpfiles;
pub mod trailer;
pub mod unitfile;
