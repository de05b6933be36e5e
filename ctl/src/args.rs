//! What can be said on the command line. Help, completions and the manual page are made from this.

use std::path::PathBuf;

use clap::{Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use holdfast_core::hold::Reason;

/// Runs containers as Podman Quadlet units from modules, and never touches what it did not make
#[derive(Debug, Parser)]
#[command(name = "holdfast", version, arg_required_else_help = true, disable_help_subcommand = true)]
#[command(long_about = LONG_ABOUT, after_help = AFTER_HELP)]
pub struct Args {
    /// Print one JSON object instead of text
    #[arg(long, global = true)]
    pub json: bool,
    /// When to use colour; NO_COLOR is honoured
    #[arg(long, global = true, value_enum, default_value_t = Color::Auto, value_name = "WHEN")]
    pub color: Color,
    /// Never ask for a password: what needs one is refused
    #[arg(long, global = true)]
    pub no_ask_password: bool,
    /// What to do
    #[command(subcommand)]
    pub verb: Verb,
}

const LONG_ABOUT: &str = "\
Runs containers as Podman Quadlet units from modules: directories of Quadlet files below /etc/holdfast/modules.

What holdfast did not make it does not touch. A resource that meets something foreign is held, with a reason, and every \
answer says so: status, plan and apply do not end with 0 while anything is held.";

const AFTER_HELP: &str = "\
Exit status: 0 all that was asked is so, 1 failed, 2 usage, 3 partly failed, 4 no such module or report, \
6 something is held, pending, unreadable or stopped by the operator, 75 another apply runs, 77 not authorised, \
130 interrupted (the apply goes on). holdfast(1) has the details.";

/// When to use colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Color {
    /// On a terminal, unless NO_COLOR is set
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

/// One verb.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// Look at the host and say how the modules are
    ///
    /// The first line has the numbers; one line follows for each module that is not fine, the worst first. Ends with
    /// 6 while anything is held, pending, unreadable or stopped by the operator, with 3 (or 1, when nothing is
    /// applied) while something failed, else with 0.
    Status {
        /// Only these modules [default: all]
        #[arg(value_name = "MODULE")]
        modules: Vec<String>,
    },
    /// Look at the host and list what is held, why, and the way out
    ///
    /// Ends with 0 whenever it could answer.
    Holds {
        /// Only this module [default: all]
        module: Option<String>,
        /// Only holds with this reason, for example found
        #[arg(long, value_name = "REASON", value_parser = reason)]
        reason: Option<Reason>,
    },
    /// Look at the host and say what apply would do; does nothing
    ///
    /// Ends as status does: 0 only if there is nothing to do and nothing is held.
    Plan {
        /// Only these modules [default: all]
        #[arg(value_name = "MODULE")]
        modules: Vec<String>,
    },
    /// Make the host what the modules ask for, but for what is held, and report
    ///
    /// The report goes to the journal first. Ends with 6 when something is held and nothing failed. One apply runs
    /// at a time; a second one ends with 75, or waits with --wait. Ctrl-C ends the watching, not the apply.
    Apply {
        /// Only these modules [default: all]
        #[arg(value_name = "MODULE")]
        modules: Vec<String>,
        /// Say what would be done, and do nothing: as plan
        #[arg(long)]
        dry_run: bool,
        /// Wait while another apply runs
        #[arg(long)]
        wait: bool,
    },
    /// Show a report, rebuilt from the journal
    ///
    /// Ends with 0 whenever it could answer, whatever the report says; with 4 when the journal has no such report.
    Report {
        /// The report's id, or enough of its first characters [default: the last one]
        id: Option<String>,
        /// List the reports that the journal has
        #[arg(long, conflicts_with = "id")]
        list: bool,
    },
    /// Check a module directory without looking at the host
    ///
    /// Works on any directory, as any user. Ends with 1 when there is an error, with 0 when there are only warnings.
    Lint {
        /// The module's directory
        dir: PathBuf,
    },
    /// The gate for scripts: succeed only if everything is applied, runs and is healthy now
    ///
    /// As in: holdfast is-applied route-proxy && podman stop oldproxy
    IsApplied {
        /// The module [default: all]
        module: Option<String>,
    },
    /// Keep apply from changing a module until unhold
    Hold {
        /// The module
        module: String,
        /// Why, for everybody who meets the hold
        #[arg(long, value_name = "TEXT")]
        note: String,
    },
    /// End the operator's hold on a module
    Unhold {
        /// The module
        module: String,
    },
    /// List the jobs that run or wait, and those that ended within the last minute
    Jobs,
    /// End a job early, after the step that runs; the next apply does the rest
    Cancel {
        /// Its number, as jobs lists it
        job: u32,
    },
    /// Print a completion script for a shell
    Completion {
        /// The shell
        #[arg(value_parser = shell)]
        shell: Shell,
    },
    /// Write the manual pages of this command into a directory
    #[command(hide = true)]
    Man {
        /// The directory; it must exist
        dir: PathBuf,
    },
}

fn reason(text: &str) -> Result<Reason, String> {
    text.parse().map_err(|_| {
        let all: Vec<&str> = Reason::ALL.iter().map(|reason| reason.token()).collect();
        format!("the reasons are {}", all.join(", "))
    })
}

fn shell(text: &str) -> Result<Shell, String> {
    match text {
        "bash" => Ok(Shell::Bash),
        "zsh" => Ok(Shell::Zsh),
        "fish" => Ok(Shell::Fish),
        _ => Err("the shells are bash, zsh, fish".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory as _, Parser as _};

    use super::{Args, Verb};

    #[test]
    fn the_definition_is_sound() {
        Args::command().debug_assert();
    }

    #[test]
    fn global_options_may_follow_the_verb() {
        let args = Args::try_parse_from(["holdfast", "holds", "web", "--reason", "found", "--json"]).unwrap();
        assert!(args.json);
        assert!(matches!(args.verb, Verb::Holds { module: Some(_), reason: Some(_) }));
    }

    #[test]
    fn what_is_no_reason_is_refused_with_the_list() {
        let error = Args::try_parse_from(["holdfast", "holds", "--reason", "fuond"]).unwrap_err();
        assert_eq!(error.exit_code(), 2);
        assert!(error.to_string().contains("needs-held"), "{error}");
    }

    #[test]
    fn a_hold_needs_a_note() {
        assert_eq!(Args::try_parse_from(["holdfast", "hold", "web"]).unwrap_err().exit_code(), 2);
    }
}
