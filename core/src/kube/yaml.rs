//! The shape of what is read of kube YAML. Everything else in a document is left alone.

use serde::Deserialize;
use serde_saphyr::Spanned;

use crate::kube::KubeError;

/// All documents that are not empty.
pub(super) fn documents(text: &str) -> Result<Vec<Document>, KubeError> {
    serde_saphyr::from_multiple(text).map_err(|error| {
        let error = error.without_snippet();
        let line = error.location().and_then(|at| u32::try_from(at.line()).ok()).unwrap_or(1).max(1);
        // The crate ends its sentence with the place, which stands before it here.
        let message = error.to_string();
        let message = message.split(" at line ").next().unwrap_or_default().to_owned();
        KubeError { line, message }
    })
}

/// The line of a value.
pub(super) fn line<T>(value: &Spanned<T>) -> Option<u32> {
    u32::try_from(value.referenced.line()).ok().filter(|line| *line > 0)
}

#[derive(Debug, Deserialize)]
pub(super) struct Document {
    #[serde(default)]
    pub kind: String,
    #[serde(default)]
    pub metadata: Metadata,
    #[serde(default)]
    pub spec: Option<Spec>,
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct Metadata {
    pub name: Option<String>,
}

/// A pod's own spec, or that of what has a template of one.
#[derive(Debug, Default, Deserialize)]
#[serde(from = "SpecFields")]
pub(super) struct Spec {
    pub template: Option<Template>,
    pub pod: PodSpec,
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct Template {
    pub spec: Option<PodSpec>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct PodSpec {
    pub containers: Vec<Container>,
    pub init_containers: Vec<Container>,
    pub volumes: Vec<Volume>,
    pub host_network: bool,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct SpecFields {
    template: Option<Template>,
    #[serde(default)]
    containers: Vec<Container>,
    #[serde(default)]
    init_containers: Vec<Container>,
    #[serde(default)]
    volumes: Vec<Volume>,
    #[serde(default)]
    host_network: bool,
}

impl From<SpecFields> for Spec {
    fn from(fields: SpecFields) -> Self {
        let SpecFields { template, containers, init_containers, volumes, host_network } = fields;
        Self { template, pod: PodSpec { containers, init_containers, volumes, host_network } }
    }
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Container {
    pub name: String,
    pub image: Option<String>,
    #[serde(default)]
    pub ports: Vec<Port>,
    #[serde(default)]
    pub env: Vec<Variable>,
    #[serde(default)]
    pub env_from: Vec<EnvFrom>,
    #[serde(default)]
    pub volume_mounts: Vec<VolumeMount>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Port {
    pub container_port: Option<i64>,
    pub host_port: Option<Spanned<i64>>,
    #[serde(rename = "hostIP")]
    pub host_ip: Option<String>,
    pub protocol: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Variable {
    pub value_from: Option<ValueFrom>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ValueFrom {
    pub secret_key_ref: Option<Reference>,
    pub config_map_key_ref: Option<Reference>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct EnvFrom {
    pub secret_ref: Option<Reference>,
    pub config_map_ref: Option<Reference>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Reference {
    pub name: Option<String>,
    #[serde(default)]
    pub optional: bool,
}

impl Reference {
    /// The name, when the thing must be there.
    pub fn required(&self) -> Option<String> {
        self.name.clone().filter(|_| !self.optional)
    }
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct VolumeMount {
    pub name: String,
    pub mount_path: String,
    #[serde(default)]
    pub read_only: bool,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Volume {
    pub name: String,
    pub host_path: Option<HostPathSource>,
    pub persistent_volume_claim: Option<Claim>,
    pub secret: Option<SecretSource>,
    pub config_map: Option<Reference>,
}

#[derive(Debug, Deserialize)]
pub(super) struct HostPathSource {
    pub path: Spanned<String>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Claim {
    pub claim_name: Spanned<String>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct SecretSource {
    pub secret_name: Option<String>,
}
