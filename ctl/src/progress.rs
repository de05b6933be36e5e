//! What is told on stderr while an apply goes on: a bar on a terminal, else a line now and then.

use std::io::{self, IsTerminal as _};
use std::time::{Duration, Instant};

use holdfast_agent::apply::Progress;
use indicatif::{ProgressBar, ProgressStyle};

use crate::output::say;

/// The least time between two lines where stderr is no terminal: short work stays silent.
const PAUSE: Duration = Duration::from_secs(2);

/// Tells how far an apply is.
pub enum Teller {
    /// On a terminal.
    Bar(ProgressBar),
    /// In a log.
    Lines {
        /// When the last line was written, or the work began.
        last: Instant,
    },
}

impl Teller {
    /// The one that fits stderr.
    pub fn new() -> Self {
        if !io::stderr().is_terminal() {
            return Self::Lines { last: Instant::now() };
        }
        let bar = ProgressBar::no_length();
        if let Ok(style) = ProgressStyle::with_template("{spinner} {pos}/{len} {wide_msg}") {
            bar.set_style(style);
        }
        bar.enable_steady_tick(Duration::from_millis(120));
        Self::Bar(bar)
    }

    /// One more word.
    pub fn tell(&mut self, progress: &Progress) {
        let Progress { text, done, of } = progress;
        match self {
            Self::Bar(bar) => {
                bar.set_length(u64::try_from(*of).unwrap_or(u64::MAX));
                bar.set_position(u64::try_from(*done).unwrap_or(u64::MAX));
                bar.set_message(text.clone());
            }
            Self::Lines { last } if last.elapsed() >= PAUSE => {
                *last = Instant::now();
                if *of > 0 {
                    say(format_args!("{done} of {of}: {text}"));
                } else {
                    say(text);
                }
            }
            Self::Lines { last: _ } => {}
        }
    }

    /// Takes the bar away, so that the report stands alone.
    pub fn end(&self) {
        if let Self::Bar(bar) = self {
            bar.finish_and_clear();
        }
    }
}
