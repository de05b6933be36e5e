//! `holdfast apply`: the road from modules to report, in this process.

use anyhow::Result;
use holdfast_agent::apply::{Busy, apply as run};
use holdfast_agent::settings::Settings;
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::caller::caller;
use crate::output::Output;
use crate::progress::Teller;

/// The exit status after Ctrl-C.
const INTERRUPTED: u8 = 130;

/// Applies and reports.
pub async fn apply(settings: &Settings, modules: &[String], wait: bool, output: &Output) -> Result<u8> {
    let busy = if wait { Busy::Wait } else { Busy::Refuse };
    let caller = caller();
    let mut teller = Teller::new();
    let mut signals = Signals::new()?;
    let mut interrupted = false;
    let result = {
        let mut tell = |progress| teller.tell(&progress);
        let mut road = std::pin::pin!(run(settings, modules, busy, &caller, &mut tell));
        loop {
            tokio::select! {
                result = &mut road => break Some(result),
                () = signals.next() => {
                    if interrupted {
                        break None;
                    }
                    interrupted = true;
                    output.message("interrupted: the apply goes on to its end and reports. Press Ctrl-C again to cut it \
                        off; the next apply then goes on from there");
                }
            }
        }
    };
    teller.end();
    let Some(result) = result else {
        output.message("cut off. Hint: holdfast apply");
        return Ok(INTERRUPTED);
    };
    let report = result?;
    output.answer(&report, &report.to_json())?;
    Ok(if interrupted { INTERRUPTED } else { report.exit_status() })
}

/// Ctrl-C, and systemd's wish to stop. A terminal that went away stops nothing: the report is in the journal.
struct Signals {
    interrupt: Signal,
    terminate: Signal,
    hangup: Signal,
}

impl Signals {
    fn new() -> std::io::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hangup: signal(SignalKind::hangup())?,
        })
    }

    async fn next(&mut self) {
        loop {
            tokio::select! {
                _ = self.interrupt.recv() => return,
                _ = self.terminate.recv() => return,
                _ = self.hangup.recv() => {}
            }
        }
    }
}
