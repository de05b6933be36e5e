//! Files that we write: what each shall hold, and what stands there now (three-way, as dpkg does).

use sha2::{Digest, Sha256};

use super::Given;
use crate::desired::{Body, Resource};
use crate::ledger::{Entry, Pin};
use crate::name::HostPath;
use crate::observed::{Observed, PathState};
use crate::quadlet::section;
use crate::resource::{Kind, ResourceKey};
use crate::step::{FileContent, PinSource, Trailer};
use crate::trailer;

/// A file as it shall be.
pub(super) struct WantedFile {
    pub path: HostPath,
    pub content: FileContent,
    /// Its SHA-256; none while the image that goes into it is not known.
    pub sha256: Option<String>,
    pub mode: u32,
    pub owner: (String, String),
}

/// What to do with a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum FileState {
    /// It is as it shall be.
    Same,
    /// It is to be written, over what has this SHA-256, or where nothing is.
    Write { replaces: Option<String> },
    /// Edited on the host, not in the module: it stays.
    Edited,
    /// Edited on the host and in the module.
    EditedTwice,
}

/// Lower-case hex.
pub(super) fn sha256(bytes: &[u8]) -> String {
    format!("{:x}", Sha256::digest(bytes))
}

/// The SHA-256 of what a step writes, given the image that goes into it.
#[must_use]
pub fn content_sha256(content: &FileContent, pin: Option<&Pin>) -> String {
    match content {
        FileContent::Bytes(bytes) => sha256(bytes),
        FileContent::Quadlet { text, trailer } => sha256(trailer::render(text, trailer, pin).as_bytes()),
    }
}

/// The image that was deployed for a container, while the module still asks for it by the same words.
pub(super) fn known_pin<'a>(entry: Option<&'a Entry>, resource: &Resource) -> Option<&'a Pin> {
    let pin = entry?.pin.as_ref()?;
    (resource.facts.image.as_deref() == Some(pin.written.as_str())).then_some(pin)
}

/// The files of a resource, in the order of their paths.
pub(super) fn wanted_files(
    entry: Option<&Entry>, module: &str, key: &ResourceKey, resource: &Resource,
) -> Vec<WantedFile> {
    let root = || ("root".to_owned(), "root".to_owned());
    let bytes = |path: &HostPath, content: &[u8], mode: u32, owner: (String, String)| WantedFile {
        path: path.clone(),
        sha256: Some(sha256(content)),
        content: FileContent::Bytes(content.to_vec()),
        mode,
        owner,
    };
    match &resource.body {
        Body::Quadlet { path, text, assets, hash } => {
            let pin = known_pin(entry, resource);
            let needs_pin = key.kind == Kind::Container && resource.facts.image.is_some();
            let source = match (needs_pin, pin) {
                (false, _) => PinSource::AsWritten,
                (true, Some(pin)) => PinSource::Known(pin.clone()),
                // The step's number is filled in when the steps are put in order.
                (true, None) => PinSource::Step(0),
            };
            let trailer = Trailer {
                module: module.to_owned(),
                section: section(key.kind).to_owned(),
                hash: hash.clone(),
                pin: source,
            };
            let content = FileContent::Quadlet { text: text.clone(), trailer };
            let known = !needs_pin || pin.is_some();
            let quadlet = WantedFile {
                path: path.clone(),
                sha256: known.then(|| content_sha256(&content, pin)),
                content,
                mode: 0o644,
                owner: root(),
            };
            let assets = assets.iter().map(|(path, asset)| bytes(path, &asset.content, asset.mode, root()));
            assets.chain(std::iter::once(quadlet)).collect()
        }
        Body::Unit { files, .. } => {
            files.iter().map(|(path, text)| bytes(path, text.as_bytes(), 0o644, root())).collect()
        }
        Body::File { path, content, mode, owner } => vec![bytes(path, content, *mode, owner.clone())],
        Body::PlainVolume | Body::Directory { .. } | Body::Link { .. } | Body::Opaque => Vec::new(),
    }
}

/// The files of a resource that hold what they shall hold, with their SHA-256.
pub(crate) fn files_as_wanted(
    observed: &Observed, entry: &Entry, module: &str, key: &ResourceKey, resource: &Resource,
) -> Vec<(HostPath, String)> {
    let on_disk = |path: &HostPath| match observed.paths.get(path).map(|facts| &facts.state) {
        Some(PathState::File { sha256, .. }) => sha256.clone(),
        _ => None,
    };
    let wanted = wanted_files(Some(entry), module, key, resource).into_iter();
    wanted
        .filter_map(|file| Some((on_disk(&file.path).filter(|disk| file.sha256.as_ref() == Some(disk))?, file.path)))
        .map(|(sha256, path)| (path, sha256))
        .collect()
}

/// Compares what is there with what we wrote and what is wanted.
pub(super) fn file_state(given: Given<'_>, entry: Option<&Entry>, file: &WantedFile) -> FileState {
    let disk = match given.observed.paths.get(&file.path).map(|facts| &facts.state) {
        Some(PathState::File { sha256: Some(sha256), .. }) => sha256,
        _ => return FileState::Write { replaces: None },
    };
    let Some(entry) = entry else { return FileState::Write { replaces: None } };
    let written = entry.paths.get(&file.path);
    let replace = FileState::Write { replaces: Some(disk.clone()) };
    if file.sha256.as_ref() == Some(disk) {
        FileState::Same
    } else if written == Some(disk) || entry.intent {
        // An intent announced a write here whose end is not known: what is there is ours.
        replace
    } else if written.is_some() && written == file.sha256.as_ref() {
        FileState::Edited
    } else {
        FileState::EditedTwice
    }
}
