//! holdfastd: answers on the bus and on the socket that systemd holds for it, and leaves when nobody asks.

use std::process::ExitCode;

use anyhow::Context as _;
use holdfast_agent::desk::Desk;
use holdfast_agent::error::chain;
use holdfast_agent::journal;
use holdfast_agent::service::{self, ServiceError};
use holdfast_agent::settings::Settings;
use listenfd::ListenFd;

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{}", chain(error.as_ref()));
            ExitCode::FAILURE
        }
    }
}

fn run() -> anyhow::Result<()> {
    let listener = ListenFd::from_env().take_unix_listener(0).map_err(ServiceError::Socket)?;
    let listener = listener.ok_or(ServiceError::NoSocket)?;
    journal::init_diagnostics()?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    runtime.context("cannot start")?.block_on(service::run(listener, Desk::open(Settings::default())))?;
    Ok(())
}
