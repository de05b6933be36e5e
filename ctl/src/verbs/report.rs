//! `holdfast report`: a report as the journal has it.

use anyhow::Result;
use holdfast_agent::settings::Settings;

use crate::history;
use crate::output::Output;

/// Shows one report, or lists them.
pub async fn report(_settings: &Settings, id: Option<String>, list: bool, output: &Output) -> Result<u8> {
    if list {
        return history::list(output).await;
    }
    history::show(id, output).await
}
