//! `holdfast apply`: the agent's job, watched until its report.

use anyhow::Result;
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::door::{Door, News, Wait};
use crate::output::Output;
use crate::progress::Teller;

/// The exit status after Ctrl-C.
const INTERRUPTED: u8 = 130;

/// Applies and reports. The job is the agent's: whoever watches it may go.
pub async fn apply(door: &Door, modules: &[String], wait: Wait, output: &Output) -> Result<u8> {
    let mut signals = Signals::new()?;
    let mut job = door.apply(modules, wait).await?;
    let mut teller = Teller::new();
    let end = loop {
        tokio::select! {
            news = job.next() => match news {
                News::Progress(percent, step) => teller.tell(percent, &step),
                News::Reported(report) => break Some(Ok(report)),
                News::Ended(refusal) => break Some(Err(refusal)),
            },
            () = signals.next() => break None,
        }
    };
    teller.end();
    match end {
        Some(Ok(report)) => {
            output.answer(&report, &report.to_json()?)?;
            Ok(report.exit_status())
        }
        Some(Err(refusal)) => Err(refusal.into()),
        None => {
            let id = job.id();
            output.message(format_args!("job {id} goes on to its end and reports"));
            output.message(format_args!("Hint: holdfast jobs; holdfast report; to end it early: holdfast cancel {id}"));
            Ok(INTERRUPTED)
        }
    }
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
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
            _ = self.hangup.recv() => {}
        }
    }
}
