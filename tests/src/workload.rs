//! The workload W(N): modules of 13 resources each, the last one with what is left of N.
//!
//! A module is a network, three volumes, three directories, three files of 1 KiB and three containers, each of which
//! mounts a volume, a directory and a file and runs without a network. The containers come last, so that a last module
//! of fewer than eleven resources has none. Same N, same bytes.

use std::fs;
use std::io;
use std::path::Path;

/// Resources in a whole module.
pub const PER_MODULE: usize = 13;
/// Where the containers' image is from: `tests/host/images.sh`.
pub const IMAGE: &str = "localhost/idle:1";

const FILE_BYTES: usize = 1024;
const INSTALL: &str = "\n[Install]\nWantedBy=multi-user.target\n";

/// How many of each there are in W(N).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    pub modules: usize,
    pub containers: usize,
    /// Networks, volumes and containers: each has a unit of its own.
    pub units: usize,
}

impl Counts {
    /// The counts of W(`n`).
    pub fn of(n: usize) -> Counts {
        let mut counts = Counts::default();
        for size in sizes(n) {
            counts.modules += 1;
            counts.containers += size.saturating_sub(10);
            counts.units += size.min(4) + size.saturating_sub(10);
        }
        counts
    }
}

/// Writes the modules of W(`n`) below `dir`: `w001`, `w002`, ...
pub fn write(dir: &Path, n: usize) -> io::Result<Counts> {
    for (index, size) in sizes(n).into_iter().enumerate() {
        module(dir, &format!("w{:03}", index + 1), size)?;
    }
    Ok(Counts::of(n))
}

fn sizes(n: usize) -> Vec<usize> {
    let mut sizes = vec![PER_MODULE; n / PER_MODULE];
    if !n.is_multiple_of(PER_MODULE) {
        sizes.push(n % PER_MODULE);
    }
    sizes
}

fn module(dir: &Path, name: &str, size: usize) -> io::Result<()> {
    let base = dir.join(name);
    let put = |path: String, text: String| {
        let path = base.join(path);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent)?;
        }
        fs::write(path, text)
    };
    let mut left = size;
    let mut take = |most: usize| {
        let taken = left.min(most);
        left -= taken;
        1..=taken
    };
    for _ in take(1) {
        put(format!("{name}.network"), format!("[Network]\nInternal=true\n{INSTALL}"))?;
    }
    for i in take(3) {
        put(format!("{name}-v{i}.volume"), format!("[Volume]\n{INSTALL}"))?;
    }
    let lines: String = take(3).map(|i| format!("d /var/lib/{name}/d{i} 0750 root root -\n")).collect();
    if !lines.is_empty() {
        put(format!("tmpfiles.d/{name}.conf"), lines)?;
    }
    for i in take(3) {
        put(format!("files/etc/{name}/f{i}.conf"), filled(name, i))?;
    }
    for i in take(3) {
        put(format!("{name}-c{i}.container"), container(name, i))?;
    }
    Ok(())
}

fn container(name: &str, i: usize) -> String {
    format!(
        "[Unit]\nDescription=Container {i} of {name}\n\n[Container]\nImage={IMAGE}\nNetwork=none\n\
         Volume={name}-v{i}.volume:/data\nVolume=/var/lib/{name}/d{i}:/state\n\
         Volume=/etc/{name}/f{i}.conf:/etc/f.conf:ro\n{INSTALL}"
    )
}

fn filled(name: &str, i: usize) -> String {
    let line = format!("# {name}, file {i}\n");
    let mut text = line.repeat(FILE_BYTES / line.len() + 1);
    text.truncate(FILE_BYTES - 1);
    text.push('\n');
    text
}

#[cfg(test)]
mod tests {
    use super::{Counts, PER_MODULE, filled};

    #[test]
    fn sizes_are_those_that_were_measured() {
        for (n, modules, containers) in [(35, 3, 6), (346, 27, 78), (1000, 77, 230), (3460, 267, 798)] {
            let counts = Counts::of(n);
            assert_eq!((counts.modules, counts.containers), (modules, containers), "W({n})");
        }
        assert_eq!(Counts::of(PER_MODULE).units, 7);
        assert_eq!(Counts::of(0), Counts::default());
        assert_eq!(filled("w001", 1).len(), 1024);
    }
}
