//! Completions and manual pages, made from the definition of the command line.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};
use clap::CommandFactory as _;
use clap_complete::Shell;
use clap_mangen::Man;
use serde_json::json;

use crate::args::Args;
use crate::output::Output;

/// The sections of holdfast(1) that no option list can tell.
const TAIL: &str = include_str!("../../man/holdfast.1.tail");

/// Prints a completion script.
pub fn completion(shell: Shell, output: &Output) -> Result<u8> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Args::command(), "holdfast", &mut script);
    let script = String::from_utf8(script)?;
    output.answer(&script, &json!({ "schema": holdfast_core::status::SCHEMA, "script": script }))?;
    Ok(0)
}

/// Writes holdfast.1 and one page for each verb.
pub fn man(dir: &Path) -> Result<u8> {
    let mut command = Args::command();
    command.build();
    for verb in command.get_subcommands().filter(|verb| !verb.is_hide_set()) {
        let name = format!("holdfast-{}", verb.get_name());
        let page = verb.clone().display_name(name.clone()).version(env!("CARGO_PKG_VERSION"));
        let mut text = Vec::new();
        Man::new(page).title(name.to_uppercase()).render(&mut text)?;
        write(dir, &name, &text)?;
    }
    let man = Man::new(command).title("HOLDFAST");
    let mut text = Vec::new();
    man.render_title(&mut text)?;
    man.render_name_section(&mut text)?;
    man.render_synopsis_section(&mut text)?;
    man.render_description_section(&mut text)?;
    man.render_subcommands_section(&mut text)?;
    man.render_options_section(&mut text)?;
    text.extend_from_slice(TAIL.as_bytes());
    write(dir, "holdfast", &text)?;
    Ok(0)
}

fn write(dir: &Path, name: &str, text: &[u8]) -> Result<()> {
    let path = dir.join(format!("{name}.1"));
    fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))
}
