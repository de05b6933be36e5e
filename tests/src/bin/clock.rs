//! `clock RUNS COMMAND...`: runs the commands in turns, RUNS times each, and prints a line for each run: the command's
//! number, wall time and CPU time in microseconds, peak memory in KiB, and how it ended.
//!
//! A command is split at spaces; what it prints is thrown away. Time is CLOCK_MONOTONIC from before the fork until the
//! process is reaped; CPU time and memory are the kernel's, with all descendants that were waited for.

use std::process::{Command, ExitCode, Stdio};
use std::time::Instant;

fn main() -> ExitCode {
    let mut args = std::env::args().skip(1);
    let runs: Option<u32> = args.next().and_then(|runs| runs.parse().ok());
    let commands: Vec<String> = args.collect();
    let Some(runs) = runs.filter(|_| !commands.is_empty()) else {
        eprintln!("usage: clock RUNS COMMAND...");
        return ExitCode::from(2);
    };
    for _ in 0..runs {
        for (number, command) in commands.iter().enumerate() {
            match run(command) {
                Ok(run) => println!("{number} {} {} {} {}", run.wall, run.cpu, run.memory, run.status),
                Err(error) => {
                    eprintln!("clock: {command}: {error}");
                    return ExitCode::FAILURE;
                }
            }
        }
    }
    ExitCode::SUCCESS
}

struct Run {
    wall: u128,
    cpu: i64,
    memory: i64,
    status: i32,
}

fn run(command: &str) -> std::io::Result<Run> {
    let mut words = command.split_whitespace();
    let mut process = Command::new(words.next().unwrap_or_default());
    process.args(words).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let start = Instant::now();
    let child = process.spawn()?;
    let mut status = 0;
    // SAFETY: all zeroes is a valid rusage, which has only numbers in it.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: both pointers are to live values of the right types; `child` is ours and nobody else waits for it.
    let waited = unsafe { libc::wait4(child.id().cast_signed(), &raw mut status, 0, &raw mut usage) };
    let wall = start.elapsed().as_micros();
    if waited < 0 {
        return Err(std::io::Error::last_os_error());
    }
    let micros = |time: libc::timeval| time.tv_sec * 1_000_000 + time.tv_usec;
    let status = if libc::WIFEXITED(status) { libc::WEXITSTATUS(status) } else { 128 + libc::WTERMSIG(status) };
    Ok(Run { wall, cpu: micros(usage.ru_utime) + micros(usage.ru_stime), memory: usage.ru_maxrss, status })
}
