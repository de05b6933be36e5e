//! `workload DIR N`: writes the modules of W(N) below DIR; prints how many modules, containers and units they are.

use std::process::ExitCode;

use holdfast_tests::workload;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [dir, n] = args.as_slice() else { return usage() };
    let Ok(n) = n.parse() else { return usage() };
    match workload::write(dir.as_ref(), n) {
        Ok(counts) => {
            println!("{} {} {}", counts.modules, counts.containers, counts.units);
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("workload: {dir}: {error}");
            ExitCode::FAILURE
        }
    }
}

fn usage() -> ExitCode {
    eprintln!("usage: workload DIR N");
    ExitCode::from(2)
}
