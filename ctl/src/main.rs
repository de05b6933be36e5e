//! The `holdfast` command: reads its arguments, does one verb, prints its answer, ends with its status.

mod args;
mod caller;
mod history;
mod output;
mod progress;
mod verbs;

use std::process::ExitCode;

use clap::Parser as _;

use args::{Args, Verb};
use output::Output;

fn main() -> ExitCode {
    let args = Args::parse();
    let output = Output::new(args.color, args.json);
    let status = match run(args.verb, &output) {
        Ok(status) => status,
        Err(error) => output.error(&error),
    };
    ExitCode::from(status)
}

/// Does the verb; what comes back is the exit status.
fn run(verb: Verb, output: &Output) -> anyhow::Result<u8> {
    // These need neither root nor a host.
    let verb = match verb {
        Verb::Lint { dir } => return verbs::lint::lint(&dir, output),
        Verb::Completion { shell } => return verbs::generate::completion(shell, output),
        Verb::Man { dir } => return verbs::generate::man(&dir),
        verb => verb,
    };
    caller::require_root()?;
    let settings = verbs::settings()?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    runtime.block_on(async {
        match verb {
            Verb::Status { modules } => verbs::look::status(&settings, &modules, output).await,
            Verb::Holds { module, reason } => verbs::look::holds(&settings, module, reason, output).await,
            Verb::Plan { modules } | Verb::Apply { modules, dry_run: true, wait: _ } => {
                verbs::look::plan(&settings, &modules, output).await
            }
            Verb::IsApplied { module } => verbs::look::is_applied(&settings, module, output).await,
            Verb::Apply { modules, dry_run: false, wait } => {
                verbs::apply::apply(&settings, &modules, wait, output).await
            }
            Verb::Report { id: _, list: true } => verbs::report::list(output).await,
            Verb::Report { id, list: false } => verbs::report::show(id.as_deref(), output).await,
            Verb::Hold { module, note } => verbs::hold::set(&settings, &module, Some(&note), output).await,
            Verb::Unhold { module } => verbs::hold::set(&settings, &module, None, output).await,
            Verb::Lint { dir } => verbs::lint::lint(&dir, output),
            Verb::Completion { shell } => verbs::generate::completion(shell, output),
            Verb::Man { dir } => verbs::generate::man(&dir),
        }
    })
}
