//! What a Quadlet file is called: its section, its unit, and what Podman makes of it.

use crate::resource::Kind;
use crate::unitfile::UnitFile;

/// The section of a kind: `Container`, `Pod`, …; empty for what is no Quadlet file.
#[must_use]
pub fn section(kind: Kind) -> &'static str {
    match kind {
        Kind::Container => "Container",
        Kind::Volume => "Volume",
        Kind::Network => "Network",
        Kind::Pod => "Pod",
        Kind::Image => "Image",
        Kind::Build => "Build",
        Kind::Kube => "Kube",
        Kind::Directory | Kind::File | Kind::Link | Kind::Unit => "",
    }
}

/// The unit that Podman's generator makes of a Quadlet file: `data.volume` -> `data-volume.service`. `ServiceName=`
/// is honoured.
#[must_use]
pub fn unit_name(kind: Kind, file_name: &str, unit: &UnitFile) -> String {
    match unit.last(section(kind), "ServiceName") {
        Some(name) => format!("{name}.service"),
        None => default_unit_name(kind, file_name),
    }
}

/// The unit of a Quadlet file whose text is not known.
#[must_use]
pub fn default_unit_name(kind: Kind, file_name: &str) -> String {
    let suffix = match kind {
        Kind::Volume => "-volume",
        Kind::Network => "-network",
        Kind::Pod => "-pod",
        Kind::Image => "-image",
        Kind::Build => "-build",
        Kind::Container | Kind::Kube | Kind::Directory | Kind::File | Kind::Link | Kind::Unit => "",
    };
    format!("{}{suffix}.service", stem(file_name))
}

/// What Podman calls the container, volume, network, pod or image of a Quadlet file, before specifiers and variables
/// are expanded. None for what has no such name: a `.kube` file, a template without an instance, a file without the key.
#[must_use]
pub fn object_name(kind: Kind, file_name: &str, unit: &UnitFile) -> Option<String> {
    let written = |key| unit.last(section(kind), key).map(str::to_owned);
    let by_stem = || Some(format!("systemd-{}", stem(file_name)));
    match kind {
        Kind::Container if is_template(file_name) => None,
        Kind::Container if stem(file_name).contains('@') => {
            written("ContainerName").or_else(|| Some("systemd-%p_%i".to_owned()))
        }
        Kind::Container => written("ContainerName").or_else(|| Some("systemd-%N".to_owned())),
        Kind::Volume => written("VolumeName").or_else(by_stem),
        Kind::Network => written("NetworkName").or_else(by_stem),
        Kind::Pod => written("PodName").or_else(by_stem),
        Kind::Image => written("ImageTag").or_else(|| written("Image")),
        Kind::Build => unit.all("Build", "ImageTag").first().map(|entry| entry.unquoted().to_owned()),
        Kind::Kube | Kind::Directory | Kind::File | Kind::Link | Kind::Unit => None,
    }
}

/// True for `x@.container`: a template, of which only instances run.
#[must_use]
pub fn is_template(file_name: &str) -> bool {
    stem(file_name).ends_with('@')
}

/// The name without its extension.
pub(super) fn stem(file_name: &str) -> &str {
    match file_name.rsplit_once('.') {
        Some((stem, _)) if !stem.is_empty() => stem,
        _ => file_name,
    }
}
