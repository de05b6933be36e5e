//! Kube YAML -> needs and claims.

mod yaml;

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::name::HostPath;
use crate::ports::PortClaim;
use crate::quadlet::{Mount, MountType, Published, QuadletFacts, ports};

use yaml::{Container, Document, PodSpec, Volume};

/// A text that is no kube YAML.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("line {line}: {message}")]
pub struct KubeError {
    /// The line, from 1.
    pub line: u32,
    /// What is wrong there.
    pub message: String,
}

/// What `podman kube play` makes of a YAML file with one or more documents.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KubeFacts {
    /// The pods that it makes, by Podman's names.
    pub pods: Vec<String>,
    /// The containers that it makes, by Podman's names: `POD-CONTAINER`.
    pub containers: Vec<String>,
    /// Host paths and claims that are mounted; a claim is a Podman volume of the claim's name. Lines are those of the
    /// YAML file.
    pub mounts: Vec<Mount>,
    /// Host paths that are relabelled.
    pub relabels: Vec<HostPath>,
    /// Host ports.
    pub ports: Vec<PortClaim>,
    /// The same in the terms of `lint --json`.
    pub published: Vec<Published>,
    /// Images.
    pub images: BTreeSet<String>,
    /// Podman secrets that must be there: those that no document of the file makes.
    pub secrets: BTreeSet<String>,
    /// Config maps that no document of the file makes: they come from `ConfigMap=`.
    pub config_maps: BTreeSet<String>,
}

impl KubeFacts {
    /// Adds needs and claims to those of the `.kube` file that names the YAML. Lines are left out, since they are not
    /// those of the `.kube` file.
    pub fn add_to(&self, facts: &mut QuadletFacts) {
        facts.mounts.extend(self.mounts.iter().map(|mount| Mount { line: None, ..mount.clone() }));
        facts.relabels.extend(self.relabels.iter().cloned());
        facts.ports.extend(self.ports.iter().cloned());
        facts.published.extend(self.published.iter().cloned());
        facts.secrets.extend(self.secrets.iter().cloned());
    }
}

/// Reads all documents of a text. Kinds that Podman does not play say nothing.
///
/// # Errors
/// [`KubeError`] when it is no YAML, or a field that is read has a value of another type.
pub fn read(text: &str) -> Result<KubeFacts, KubeError> {
    let documents = yaml::documents(text)?;
    let mut facts = KubeFacts::default();
    let (mut secrets, mut config_maps) = (BTreeSet::new(), BTreeSet::new());
    for document in &documents {
        let name = document.metadata.name.clone().unwrap_or_default();
        match document.kind.as_str() {
            "Secret" => {
                secrets.insert(name);
            }
            "ConfigMap" => {
                config_maps.insert(name);
            }
            _ => facts.document(document, &name)?,
        }
    }
    facts.secrets.retain(|name| !secrets.contains(name));
    facts.config_maps.retain(|name| !config_maps.contains(name));
    Ok(facts)
}

impl KubeFacts {
    fn document(&mut self, document: &Document, name: &str) -> Result<(), KubeError> {
        let Some(spec) = &document.spec else { return Ok(()) };
        match document.kind.as_str() {
            "Pod" => self.pod(name.to_owned(), &spec.pod),
            "Deployment" | "DaemonSet" | "Job" => {
                match spec.template.as_ref().and_then(|template| template.spec.as_ref()) {
                    Some(pod) => self.pod(format!("{name}-pod"), pod),
                    None => Ok(()),
                }
            }
            _ => Ok(()),
        }
    }

    fn pod(&mut self, name: String, pod: &PodSpec) -> Result<(), KubeError> {
        let volumes: BTreeMap<&str, &Volume> =
            pod.volumes.iter().map(|volume| (volume.name.as_str(), volume)).collect();
        for container in pod.init_containers.iter().chain(&pod.containers) {
            self.containers.push(format!("{name}-{}", container.name));
            self.images.extend(container.image.clone());
            self.environment(container);
            self.mounts(container, &volumes);
            if !pod.host_network {
                self.host_ports(container)?;
            }
        }
        for volume in &pod.volumes {
            self.secrets.extend(volume.secret.as_ref().and_then(|secret| secret.secret_name.clone()));
            self.config_maps.extend(volume.config_map.as_ref().and_then(|map| map.name.clone()));
        }
        self.pods.push(name);
        Ok(())
    }

    fn environment(&mut self, container: &Container) {
        for variable in &container.env {
            let Some(from) = &variable.value_from else { continue };
            self.secrets.extend(from.secret_key_ref.as_ref().and_then(|reference| reference.required()));
            self.config_maps.extend(from.config_map_key_ref.as_ref().and_then(|reference| reference.required()));
        }
        for from in &container.env_from {
            self.secrets.extend(from.secret_ref.as_ref().and_then(|reference| reference.required()));
            self.config_maps.extend(from.config_map_ref.as_ref().and_then(|reference| reference.required()));
        }
    }

    fn mounts(&mut self, container: &Container, volumes: &BTreeMap<&str, &Volume>) {
        for wanted in &container.volume_mounts {
            let Some(volume) = volumes.get(wanted.name.as_str()) else { continue };
            // Podman takes options behind the path, as in its own -v.
            let (target, options) = wanted.mount_path.split_once(':').unwrap_or((&wanted.mount_path, ""));
            let option = |names: &[&str]| options.split(',').any(|option| names.contains(&option));
            let mut mount = Mount {
                kind: MountType::Volume,
                source: String::new(),
                file: None,
                target: target.to_owned(),
                read_only: wanted.read_only || option(&["ro"]),
                relative: false,
                line: None,
            };
            if let Some(path) = volume.host_path.as_ref().map(|host_path| &host_path.path) {
                mount.line = yaml::line(path);
                let known = HostPath::new(&path.value).ok();
                mount.kind = if known.is_some() { MountType::Bind } else { MountType::Other };
                mount.source = known.as_ref().map_or_else(|| path.value.clone(), ToString::to_string);
                self.relabels.extend(known.filter(|_| option(&["z", "Z", "U"])));
            } else if let Some(claim) = &volume.persistent_volume_claim {
                mount.line = yaml::line(&claim.claim_name);
                mount.source.clone_from(&claim.claim_name.value);
            } else {
                continue;
            }
            self.mounts.push(mount);
        }
    }

    fn host_ports(&mut self, container: &Container) -> Result<(), KubeError> {
        for port in &container.ports {
            let Some(host) = port.host_port.as_ref().filter(|host| host.value != 0) else { continue };
            let published = Published {
                host_ip: port.host_ip.clone().unwrap_or_default(),
                host: host.value.to_string(),
                container: port.container_port.unwrap_or(host.value).to_string(),
                protocol: port.protocol.as_deref().unwrap_or("TCP").to_ascii_lowercase(),
            };
            let claims = ports::claims(&published);
            let claims = claims.map_err(|message| KubeError { line: yaml::line(host).unwrap_or(1), message })?;
            self.ports.extend(claims);
            self.published.push(published);
        }
        Ok(())
    }
}
