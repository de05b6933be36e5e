//! What is told on stderr while an apply goes on: a bar on a terminal, else a line now and then.

use std::io::{self, IsTerminal as _};
use std::time::{Duration, Instant};

use holdfast_core::report::escape;
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
        let bar = ProgressBar::new(100);
        if let Ok(style) = ProgressStyle::with_template("{spinner} {pos:>3} % {wide_msg}") {
            bar.set_style(style);
        }
        bar.enable_steady_tick(Duration::from_millis(120));
        Self::Bar(bar)
    }

    /// One more word.
    pub fn tell(&mut self, percent: u32, text: &str) {
        match self {
            Self::Bar(bar) => {
                bar.set_position(percent.into());
                bar.set_message(escape(text).into_owned());
            }
            Self::Lines { last } if last.elapsed() >= PAUSE => {
                *last = Instant::now();
                say(format_args!("{percent} %: {}", escape(text)));
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
