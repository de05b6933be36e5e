//! The keys of each Quadlet section that Podman 5.4 knows: one more drops the file there.

use crate::quadlet::section;
use crate::resource::Kind;
use crate::unitfile::{Entry, UnitFile};

/// Keys of the Quadlet section, and of `[Quadlet]`, that Podman 5.4 does not know. A newer Podman knows more: what its
/// generator says is what counts.
#[must_use]
pub fn unsupported_keys(kind: Kind, unit: &UnitFile) -> Vec<&Entry> {
    let known = |entry: &&Entry| match entry.section.as_str() {
        "Quadlet" => entry.key == "DefaultDependencies",
        own if own == section(kind) => COMMON.contains(&entry.key.as_str()) || keys(kind).contains(&entry.key.as_str()),
        _ => true,
    };
    unit.entries.iter().filter(|entry| !known(entry)).collect()
}

const COMMON: &[&str] = &["ContainersConfModule", "GlobalArgs", "PodmanArgs", "ServiceName"];

fn keys(kind: Kind) -> &'static [&'static str] {
    match kind {
        Kind::Container => &[
            "AddCapability", "AddDevice", "AddHost", "Annotation", "AutoUpdate", "CgroupsMode", "ContainerName", "DNS",
            "DNSOption", "DNSSearch", "DropCapability", "Entrypoint", "Environment", "EnvironmentFile",
            "EnvironmentHost", "Exec", "ExposeHostPort", "GIDMap", "Group", "GroupAdd", "HealthCmd", "HealthInterval",
            "HealthLogDestination", "HealthMaxLogCount", "HealthMaxLogSize", "HealthOnFailure", "HealthRetries",
            "HealthStartPeriod", "HealthStartupCmd", "HealthStartupInterval", "HealthStartupRetries",
            "HealthStartupSuccess", "HealthStartupTimeout", "HealthTimeout", "HostName", "IP", "IP6", "Image", "Label",
            "LogDriver", "LogOpt", "Mask", "Mount", "Network", "NetworkAlias", "NoNewPrivileges", "Notify",
            "PidsLimit", "Pod", "PublishPort", "Pull", "ReadOnly", "ReadOnlyTmpfs", "RemapGid", "RemapUid",
            "RemapUidSize", "RemapUsers", "Rootfs", "RunInit", "SeccompProfile", "Secret", "SecurityLabelDisable",
            "SecurityLabelFileType", "SecurityLabelLevel", "SecurityLabelNested", "SecurityLabelType", "ShmSize",
            "StartWithPod", "StopSignal", "StopTimeout", "SubGIDMap", "SubUIDMap", "Sysctl", "Timezone", "Tmpfs",
            "UIDMap", "Ulimit", "Unmask", "User", "UserNS", "VolatileTmp", "Volume", "WorkingDir",
        ],
        Kind::Volume => {
            &["Copy", "Device", "Driver", "Group", "Image", "Label", "Options", "Type", "User", "VolumeName"]
        }
        Kind::Network => &[
            "DNS", "DisableDNS", "Driver", "Gateway", "IPAMDriver", "IPRange", "IPv6", "Internal", "Label",
            "NetworkName", "Options", "Subnet",
        ],
        Kind::Pod => &[
            "AddHost", "DNS", "DNSOption", "DNSSearch", "GIDMap", "IP", "IP6", "Network", "NetworkAlias", "PodName",
            "PublishPort", "RemapGid", "RemapUid", "RemapUidSize", "RemapUsers", "SubGIDMap", "SubUIDMap", "UIDMap",
            "UserNS", "Volume",
        ],
        Kind::Image => &[
            "AllTags", "Arch", "AuthFile", "CertDir", "Creds", "DecryptionKey", "Image", "ImageTag", "OS", "TLSVerify",
            "Variant",
        ],
        Kind::Build => &[
            "Annotation", "Arch", "AuthFile", "DNS", "DNSOption", "DNSSearch", "Environment", "File", "ForceRM",
            "GroupAdd", "ImageTag", "Label", "Network", "Pull", "Secret", "SetWorkingDirectory", "TLSVerify", "Target",
            "Variant", "Volume",
        ],
        Kind::Kube => &[
            "AutoUpdate", "ConfigMap", "ExitCodePropagation", "KubeDownForce", "LogDriver", "LogOpt", "Network",
            "PublishPort", "RemapGid", "RemapUid", "RemapUidSize", "RemapUsers", "SetWorkingDirectory", "UserNS",
            "Yaml",
        ],
        Kind::Directory | Kind::File | Kind::Link | Kind::Unit => &[],
    }
}
