//! `floor QUADLET_DIR DIR...`: the least that a no-op apply can do, and nothing besides.
//!
//! It hashes every file below the directories (what is desired, what is installed), gets Podman's lists of containers,
//! volumes, networks, secrets and pods from its socket, and asks systemd for all units of the Quadlet files at once. It
//! compares nothing and says only how much it saw. No library stands between it and the sockets.

use std::fs;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;

use sha2::{Digest, Sha256};

const PODMAN: &str = "/run/podman/podman.sock";
const BUS: &str = "/run/dbus/system_bus_socket";
const LISTS: [&str; 5] = ["containers/json?all=true", "volumes/json", "networks/json", "secrets/json", "pods/json"];

fn main() -> io::Result<()> {
    let dirs: Vec<String> = std::env::args().skip(1).collect();
    let mut files = 0;
    let mut hasher = Sha256::new();
    for dir in &dirs {
        hash(Path::new(dir), &mut hasher, &mut files)?;
    }
    let mut bytes = 0;
    for list in LISTS {
        bytes += podman(list)?;
    }
    let mut units = Vec::new();
    unit_names(Path::new(dirs.first().map_or("", String::as_str)), &mut units)?;
    let answer = list_units(&units)?;
    let sum = hasher.finalize();
    println!(
        "{files} files, {:02x}{:02x}..., {bytes} bytes of lists, {} units, {answer} bytes",
        sum[0],
        sum[1],
        units.len()
    );
    Ok(())
}

fn hash(dir: &Path, hasher: &mut Sha256, files: &mut usize) -> io::Result<()> {
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            hash(&entry.path(), hasher, files)?;
        } else {
            hasher.update(fs::read(entry.path())?);
            *files += 1;
        }
    }
    Ok(())
}

fn podman(list: &str) -> io::Result<usize> {
    let mut stream = UnixStream::connect(PODMAN)?;
    write!(stream, "GET /v4.3.1/libpod/{list} HTTP/1.1\r\nHost: podman\r\nConnection: close\r\n\r\n")?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer)?;
    if answer.starts_with(b"HTTP/1.1 200") { Ok(answer.len()) } else { Err(io::Error::other(list.to_owned())) }
}

fn unit_names(dir: &Path, units: &mut Vec<String>) -> io::Result<()> {
    for entry in fs::read_dir(dir)? {
        let path = entry?.path();
        if path.is_dir() {
            unit_names(&path, units)?;
            continue;
        }
        let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        match path.extension().and_then(|extension| extension.to_str()) {
            Some("container") => units.push(format!("{stem}.service")),
            Some(kind @ ("volume" | "network")) => units.push(format!("{stem}-{kind}.service")),
            _ => {}
        }
    }
    Ok(())
}

/// `ListUnitsByPatterns([], units)`; gives the answer's length.
fn list_units(units: &[String]) -> io::Result<usize> {
    let mut bus = BufReader::new(UnixStream::connect(BUS)?);
    // 30 is uid 0 in hex digits.
    bus.get_mut().write_all(b"\0AUTH EXTERNAL 30\r\n")?;
    let mut line = String::new();
    bus.read_line(&mut line)?;
    bus.get_mut().write_all(b"BEGIN\r\n")?;
    let dbus = ["/org/freedesktop/DBus", "org.freedesktop.DBus", "org.freedesktop.DBus", "Hello"];
    bus.get_mut().write_all(&call(1, dbus, "", &[]))?;
    answer(&mut bus)?;
    let systemd = [
        "/org/freedesktop/systemd1",
        "org.freedesktop.systemd1.Manager",
        "org.freedesktop.systemd1",
        "ListUnitsByPatterns",
    ];
    let mut names = Vec::new();
    for unit in units {
        string(&mut names, unit);
    }
    let mut body = 0u32.to_le_bytes().to_vec();
    body.extend(length(&names));
    body.extend(names);
    bus.get_mut().write_all(&call(2, systemd, "asas", &body))?;
    answer(&mut bus)
}

/// A method call: path, interface, destination and member, as the D-Bus specification puts them on the wire.
fn call(serial: u32, [path, interface, destination, member]: [&str; 4], signature: &str, body: &[u8]) -> Vec<u8> {
    let mut fields = Vec::new();
    for (code, kind, value) in [(1, b'o', path), (2, b's', interface), (6, b's', destination), (3, b's', member)] {
        pad(&mut fields, 8);
        fields.extend([code, 1, kind, 0]);
        string(&mut fields, value);
    }
    if !signature.is_empty() {
        pad(&mut fields, 8);
        fields.extend([8, 1, b'g', 0, signature.len() as u8]);
        fields.extend(signature.as_bytes());
        fields.push(0);
    }
    let mut message = vec![b'l', 1, 0, 1];
    message.extend(length(body));
    message.extend(serial.to_le_bytes());
    message.extend(length(&fields));
    message.extend(fields);
    pad(&mut message, 8);
    message.extend(body);
    message
}

/// Reads up to the next method return; signals before it are passed over.
fn answer(bus: &mut impl Read) -> io::Result<usize> {
    loop {
        let mut head = [0; 16];
        bus.read_exact(&mut head)?;
        let word = |at: usize| u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]) as usize;
        let body = word(4);
        let mut rest = vec![0; word(12).next_multiple_of(8) + body];
        bus.read_exact(&mut rest)?;
        match head[1] {
            2 => return Ok(body),
            3 => return Err(io::Error::other(String::from_utf8_lossy(&rest).into_owned())),
            _ => {}
        }
    }
}

fn string(to: &mut Vec<u8>, text: &str) {
    pad(to, 4);
    to.extend((text.len() as u32).to_le_bytes());
    to.extend(text.as_bytes());
    to.push(0);
}

fn pad(to: &mut Vec<u8>, boundary: usize) {
    to.resize(to.len().next_multiple_of(boundary), 0);
}

fn length(bytes: &[u8]) -> [u8; 4] {
    (bytes.len() as u32).to_le_bytes()
}
