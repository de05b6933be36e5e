//! How answers reach people and scripts: the result on stdout, everything else on stderr.

use std::fmt;
use std::io::{self, ErrorKind, Write as _};

use anstream::ColorChoice;
use clap::builder::styling::{AnsiColor, Style};
use holdfast_agent::error::chain;
use holdfast_core::report::escape;
use holdfast_core::status::{Dress, State};
use jiff::tz::TimeZone;
use jiff::{Timestamp, ZonedDateTime};
use serde_json::{Value, json};

use crate::args::Color;
use crate::refusal::{FAILED, Refusal};

/// Where answers go, and in which form.
pub struct Output {
    json: bool,
    color: ColorChoice,
    now: ZonedDateTime,
}

impl Output {
    /// Text or JSON, with or without colour.
    pub fn new(color: Color, json: bool) -> Self {
        let color = match color {
            Color::Auto => anstream::AutoStream::choice(&io::stdout()),
            Color::Always => ColorChoice::Always,
            Color::Never => ColorChoice::Never,
        };
        Self { json, color, now: ZonedDateTime::now() }
    }

    /// The answer: `text` for people, `value` for scripts.
    ///
    /// # Errors
    /// When stdout cannot be written; a reader that went away early is no error.
    pub fn answer(&self, text: impl fmt::Display, value: &Value) -> io::Result<()> {
        let mut out = anstream::AutoStream::new(io::stdout().lock(), self.color);
        let text = if self.json { format!("{value:#}") } else { text.to_string() };
        match writeln!(out, "{}", text.trim_end()).and_then(|()| out.flush()) {
            Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
            other => other,
        }
    }

    /// What goes to the terminal beside the answer. That it cannot be written changes nothing.
    pub fn message(&self, text: impl fmt::Display) {
        say(text);
    }

    /// Tells an error and what to do about it; gives the exit status.
    pub fn error(&self, error: &anyhow::Error) -> u8 {
        let refusal = error.downcast_ref::<Refusal>();
        let status = refusal.map_or(FAILED, Refusal::exit_status);
        let sentence = chain(error.as_ref());
        let hint = refusal.and_then(Refusal::hint);
        self.message(escape(&sentence));
        if let Some(hint) = &hint {
            self.message(format_args!("Hint: {hint}"));
        }
        if self.json {
            let value = json!({ "schema": holdfast_core::status::SCHEMA, "error": sentence, "hint": hint });
            if let Err(error) = self.answer("", &value) {
                self.message(format_args!("cannot write the answer: {error}"));
            }
        }
        status
    }

    /// Does something with the dress of this terminal: local time, colour.
    pub fn dressed<T>(&self, use_it: impl FnOnce(&Dress<'_>) -> T) -> T {
        let time = |usec: u64| self.time(usec);
        use_it(&Dress { time: &time, state: &paint })
    }

    /// A time for people: the hour today, else with its date.
    pub fn time(&self, usec: u64) -> String {
        let stamp = i64::try_from(usec).ok().and_then(|usec| Timestamp::from_microsecond(usec).ok());
        let Some(at) = stamp.map(|stamp| stamp.to_zoned_datetime(TimeZone::system())) else { return usec.to_string() };
        let format = if at.date() == self.now.date() { "%H:%M:%S" } else { "%Y-%m-%d %H:%M:%S" };
        at.strftime(format).to_string()
    }
}

/// One line on stderr. The terminal may be gone while the work goes on, and that must not end it: `eprintln!` would.
pub fn say(text: impl fmt::Display) {
    drop(writeln!(anstream::stderr(), "holdfast: {text}"));
}

/// Colour never says anything that the words do not say.
fn paint(state: State, words: &str) -> String {
    let color = match state {
        State::Failed | State::Unreadable => AnsiColor::Red,
        State::WaitingOnTake | State::Held(_) | State::Stopped => AnsiColor::Yellow,
        State::Pending => AnsiColor::Blue,
        State::Applied => AnsiColor::Green,
    };
    let style = Style::new().fg_color(Some(color.into()));
    format!("{style}{words}{style:#}")
}

#[cfg(test)]
mod tests {
    use super::Output;
    use crate::args::Color;

    #[test]
    fn old_times_carry_their_date() {
        let output = Output::new(Color::Never, false);
        assert!(output.time(1_000_000_000_000_000).starts_with("2001-09-"), "{}", output.time(1_000_000_000_000_000));
    }
}
