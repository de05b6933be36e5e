//! The `holdfast` command: reads its arguments, does one verb, prints its answer, ends with its status.

mod args;
mod door;
mod output;
mod progress;
mod refusal;
mod verbs;

use std::process::ExitCode;

use clap::Parser as _;

use args::{Args, Verb};
use door::{Ask, Door, Wait};
use output::Output;

fn main() -> ExitCode {
    let args = Args::parse();
    let output = Output::new(args.color, args.json);
    let status = match run(args, &output) {
        Ok(status) => status,
        Err(error) => output.error(&error),
    };
    ExitCode::from(status)
}

/// Does the verb; what comes back is the exit status.
fn run(args: Args, output: &Output) -> anyhow::Result<u8> {
    // These need no host.
    let verb = match args.verb {
        Verb::Lint { dir } => return verbs::lint::lint(&dir, output),
        Verb::Completion { shell } => return verbs::generate::completion(shell, output),
        Verb::Man { dir } => return verbs::generate::man(&dir),
        verb => verb,
    };
    let ask = match (args.no_ask_password, &verb) {
        // Whoever may not look now is answered with the last look.
        (true, _) | (false, Verb::Status { .. } | Verb::Holds { .. }) => Ask::No,
        (false, _) => Ask::Yes,
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let door = &Door::open(ask).await?;
        match verb {
            Verb::Status { modules } => verbs::look::status(door, &modules, output).await,
            Verb::Holds { module, reason } => verbs::look::holds(door, module, reason, output).await,
            Verb::Plan { modules } | Verb::Apply { modules, dry_run: true, wait: _ } => {
                verbs::look::plan(door, &modules, output).await
            }
            Verb::IsApplied { module } => verbs::look::is_applied(door, module, output).await,
            Verb::Apply { modules, dry_run: false, wait } => {
                let wait = if wait { Wait::Yes } else { Wait::No };
                verbs::apply::apply(door, &modules, wait, output).await
            }
            Verb::Report { id: _, list: true } => verbs::report::list(door, output).await,
            Verb::Report { id, list: false } => verbs::report::show(door, id.as_deref(), output).await,
            Verb::Hold { module, note } => verbs::operator_hold::set(door, &module, Some(&note), output).await,
            Verb::Unhold { module } => verbs::operator_hold::set(door, &module, None, output).await,
            Verb::Jobs => verbs::jobs::jobs(door, output).await,
            Verb::Cancel { job } => verbs::jobs::cancel(door, job, output).await,
            Verb::Lint { dir } => verbs::lint::lint(&dir, output),
            Verb::Completion { shell } => verbs::generate::completion(shell, output),
            Verb::Man { dir } => verbs::generate::man(&dir),
        }
    })
}
