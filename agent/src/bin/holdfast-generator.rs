//! holdfast-generator: placeholders for held units, nothing else. systemd runs it at boot and at each reload.
//!
//! It never makes a boot or a reload fail: what it does not understand it passes over, and says so in the kernel's log.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::{OpenOptionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use holdfast_core::held::{self, Generated, Marker};

/// Markers are small; what is larger is something else.
const LARGEST: u64 = 1024 * 1024;

fn main() -> ExitCode {
    // systemd gives three directories; what is in the last one is weaker than any other unit file.
    let Some(late) = std::env::args_os().nth(3).map(PathBuf::from) else {
        eprintln!("holdfast-generator: systemd runs it, with three directories; see systemd.generator(7)");
        return ExitCode::FAILURE;
    };
    for (path, generated) in held::generated(&read(Path::new(held::DIRECTORY))) {
        if let Err(error) = put(&late.join(&path), &generated) {
            say(&format!("cannot write {}: {error}", late.join(&path).display()));
        }
    }
    ExitCode::SUCCESS
}

/// The markers that can be read.
fn read(directory: &Path) -> BTreeMap<String, Marker> {
    let mut markers = BTreeMap::new();
    let entries = match fs::read_dir(directory) {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NotFound => return markers,
        Err(error) => {
            say(&format!("cannot read {}: {error}", directory.display()));
            return markers;
        }
    };
    for entry in entries {
        let entry = match entry {
            Ok(entry) => entry,
            Err(error) => {
                say(&format!("cannot read all of {}: {error}", directory.display()));
                break;
            }
        };
        let name = entry.file_name().to_string_lossy().into_owned();
        // What a write that was cut off left is no marker; a script of System V is a unit that comes first.
        if name.starts_with('.') || held::scripts(&name).iter().any(|script| Path::new(script).exists()) {
            continue;
        }
        match marker(&entry.path()) {
            Ok(marker) => drop(markers.insert(name, marker)),
            Err(why) => say(&format!("{} is passed over: {why}", entry.path().display())),
        }
    }
    markers
}

fn marker(path: &Path) -> Result<Marker, String> {
    let content = content(path).map_err(|error| error.to_string())?;
    Marker::parse(&content).map_err(|error| error.to_string())
}

/// A regular file's content. Anything else is not opened: a FIFO would never answer.
fn content(path: &Path) -> io::Result<Vec<u8>> {
    let found = fs::symlink_metadata(path)?;
    if !found.is_file() || found.len() > LARGEST {
        return Err(io::Error::new(ErrorKind::InvalidData, "it is no small regular file"));
    }
    let mut content = Vec::new();
    File::open(path)?.take(LARGEST).read_to_end(&mut content)?;
    Ok(content)
}

/// What another generator put there stays.
fn put(path: &Path, generated: &Generated) -> io::Result<()> {
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent)?;
    }
    let made = match generated {
        Generated::Link(target) => symlink(target, path),
        Generated::File(text) => File::create_new(path).and_then(|mut file| file.write_all(text.as_bytes())),
    };
    match made {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
        made => made,
    }
}

/// To the kernel's log, as the journal does not run yet at boot; to standard error where there is none.
fn say(text: &str) {
    const WARNING: &str = "<4>";
    let line: String = text.chars().map(|c| if c.is_control() { '?' } else { c }).collect();
    // Where it is a pipe that nobody reads, it must not wait.
    let mut log = OpenOptions::new();
    log.write(true).custom_flags(rustix::fs::OFlags::NONBLOCK.bits().cast_signed());
    let told = log
        .open("/dev/kmsg")
        .and_then(|mut log| log.write_all(format!("{WARNING}holdfast-generator: {line}\n").as_bytes()));
    if told.is_err() {
        eprintln!("holdfast-generator: {line}");
    }
}
