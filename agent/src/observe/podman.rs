//! Podman's side of the look: its lists and what local storage has under an image reference.
//!
//! podman-api is asked only at its default path version: at every other one its models do not fit what Podman sends.
//! The lists are fetched and read here: its models of them are large, and that of containers has no restart count.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::{Path, PathBuf};

use futures_util::stream::{FuturesUnordered, StreamExt};
use holdfast_core::observed::{Container, Image, Network, Pod, Volume};
use holdfast_core::ports::{PortClaim, Protocol, Span};
use http_body_util::{BodyExt, Empty};
use hyper::body::Bytes;
use podman_api::Podman;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};

use super::{DEADLINE, Listed, Lists, ObserveError, late, systemd};

/// The label in which Podman keeps the name of the unit that it was started by.
const UNIT_LABEL: &str = "PODMAN_SYSTEMD_UNIT";
/// How many images are asked for at a time: Podman locks its storage for each answer.
const IMAGES_AT_A_TIME: usize = 8;

/// Root's Podman behind its API socket.
#[derive(Clone)]
pub struct Engine {
    socket: PathBuf,
    api: Podman,
}

impl fmt::Debug for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { socket, api: _ } = self;
        f.debug_struct("Engine").field("socket", socket).finish_non_exhaustive()
    }
}

impl Engine {
    /// Names the socket; nothing is connected yet.
    #[must_use]
    pub fn new(socket: &Path) -> Self {
        Self { socket: socket.to_owned(), api: Podman::unix(socket) }
    }

    /// All lists at once.
    ///
    /// # Errors
    /// [`ObserveError`] when Podman does not answer.
    pub async fn lists(&self) -> Result<Lists, ObserveError> {
        let (listed, volumes, networks, pods, secrets) =
            tokio::try_join!(self.containers(), self.volumes(), self.networks(), self.pods(), self.secrets())?;
        let Listed { podman_version, containers } = listed;
        Ok(Lists { podman_version, containers, volumes, networks, pods, secrets })
    }

    /// All containers, running or not, and the version of Podman.
    ///
    /// # Errors
    /// [`ObserveError`] when Podman does not answer.
    pub async fn containers(&self) -> Result<Listed, ObserveError> {
        let (podman_version, listed) = self.list("containers/json?all=true", "list of containers").await?;
        let containers = listed.into_iter().map(ListedContainer::into_observed).collect();
        Ok(Listed { podman_version, containers })
    }

    /// All volumes, by name.
    ///
    /// # Errors
    /// [`ObserveError`] when Podman does not answer.
    pub async fn volumes(&self) -> Result<BTreeMap<String, Volume>, ObserveError> {
        let (_, listed) = self.list("volumes/json", "list of volumes").await?;
        let observed = listed.into_iter().map(|ListedVolume { name, labels, created_at: created, driver }| {
            (name, Volume { labels, created, driver })
        });
        Ok(observed.collect())
    }

    /// All networks, by name.
    ///
    /// # Errors
    /// [`ObserveError`] when Podman does not answer.
    pub async fn networks(&self) -> Result<BTreeMap<String, Network>, ObserveError> {
        let (_, listed) = self.list("networks/json", "list of networks").await?;
        Ok(listed.into_iter().map(|ListedNetwork { name, id, labels }| (name, Network { id, labels })).collect())
    }

    /// All pods, by name.
    ///
    /// # Errors
    /// [`ObserveError`] when Podman does not answer.
    pub async fn pods(&self) -> Result<BTreeMap<String, Pod>, ObserveError> {
        let (_, listed) = self.list("pods/json", "list of pods").await?;
        let observed =
            listed.into_iter().map(|ListedPod { name, id, labels, status: state }| (name, Pod { id, labels, state }));
        Ok(observed.collect())
    }

    /// All secrets: name to ID. Podman never tells what is in them here.
    ///
    /// # Errors
    /// [`ObserveError`] when Podman does not answer.
    pub async fn secrets(&self) -> Result<BTreeMap<String, String>, ObserveError> {
        let (_, listed) = self.list("secrets/json", "list of secrets").await?;
        Ok(listed.into_iter().map(|ListedSecret { id, spec }| (spec.name, id)).collect())
    }

    /// What local storage has under a reference, resolved as Podman does: short names, IDs and digests too.
    ///
    /// # Errors
    /// [`ObserveError`] when Podman does not answer.
    pub async fn image(&self, reference: &str) -> Result<Option<Image>, ObserveError> {
        if !is_reference(reference) {
            return Ok(None);
        }
        let image = self.api.images().get(reference);
        let question = format!("image {reference}");
        let data = tokio::time::timeout(DEADLINE, image.inspect()).await.map_err(|_| late(&question))?;
        match data {
            Ok(data) => {
                let id = bare_id(&data.id.unwrap_or_default());
                Ok(Some(Image { id, repo_digests: data.repo_digests.unwrap_or_default() }))
            }
            Err(podman_api::Error::Fault { code, message: _ }) if code.as_u16() == 404 => Ok(None),
            Err(error) => Err(self.failed(&question, error)),
        }
    }

    /// What local storage has under each of some references.
    ///
    /// # Errors
    /// [`ObserveError`] when Podman does not answer.
    pub async fn images(&self, references: &BTreeSet<String>) -> Result<BTreeMap<String, Option<Image>>, ObserveError> {
        let mut images = BTreeMap::new();
        let mut waiting = references.iter();
        let ask = async |reference: &String| (reference.clone(), self.image(reference).await);
        let mut asked: FuturesUnordered<_> = waiting.by_ref().take(IMAGES_AT_A_TIME).map(ask).collect();
        while let Some((reference, image)) = asked.next().await {
            images.insert(reference, image?);
            asked.extend(waiting.next().map(ask));
        }
        Ok(images)
    }

    /// A fault or an unreadable answer came from Podman; anything else means that nobody answers.
    fn failed(&self, question: &str, error: podman_api::Error) -> ObserveError {
        match error {
            podman_api::Error::Fault { .. }
            | podman_api::Error::SerdeJsonError(_)
            | podman_api::Error::InvalidResponse(_)
            | podman_api::Error::ServerError(_) => {
                ObserveError::Answer { question: question.to_owned(), source: Box::new(error) }
            }
            other => self.silent(other),
        }
    }

    fn silent(&self, source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> ObserveError {
        ObserveError::Engine { socket: self.socket.display().to_string(), source: source.into() }
    }

    /// One of Podman's lists, and its version.
    async fn list<T: DeserializeOwned>(&self, what: &str, question: &str) -> Result<(String, Vec<T>), ObserveError> {
        let (version, body) = self.raw(&format!("/v4.3.1/libpod/{what}"), question).await?;
        // Podman says null for a list of nothing.
        let listed: Option<Vec<T>> = serde_json::from_slice(&body)
            .map_err(|error| ObserveError::Answer { question: question.to_owned(), source: Box::new(error) })?;
        Ok((version, listed.unwrap_or_default()))
    }

    /// One GET: Podman's version from the answer's header (its `/version` runs several programs first), and the body.
    async fn raw(&self, target: &str, question: &str) -> Result<(String, Bytes), ObserveError> {
        let exchange = async {
            let stream = tokio::net::UnixStream::connect(&self.socket).await.map_err(|error| self.silent(error))?;
            let io = hyper_util::rt::TokioIo::new(stream);
            let (mut sender, connection) =
                hyper::client::conn::http1::handshake(io).await.map_err(|error| self.silent(error))?;
            // A fault of the connection reaches us through the sender as well.
            let connection = tokio::spawn(async move { connection.await.unwrap_or_default() });
            let request = hyper::Request::get(target)
                .header("Host", "podman")
                .body(Empty::<Bytes>::new())
                .map_err(|error| self.silent(error))?;
            let response = sender.send_request(request).await.map_err(|error| self.silent(error))?;
            let status = response.status();
            let version = response.headers().get("Libpod-API-Version").and_then(|value| value.to_str().ok());
            let version = version.unwrap_or_default().to_owned();
            let body = response.into_body().collect().await.map_err(|error| self.silent(error))?.to_bytes();
            connection.abort();
            if status.is_success() {
                Ok((version, body))
            } else {
                let said = format!("{status}: {}", String::from_utf8_lossy(&body));
                Err(ObserveError::Answer { question: question.to_owned(), source: said.into() })
            }
        };
        tokio::time::timeout(DEADLINE, exchange).await.map_err(|_| late(format!("the {question}")))?
    }
}

/// True for what can be the name of an image at all. What cannot would be no part of a URL either, and the crate panics
/// on it.
pub(crate) fn is_reference(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-+:/@".contains(&byte))
}

/// A container as Podman lists it. A field that is null or not there is as good as empty.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
struct ListedContainer {
    #[serde(deserialize_with = "null_is_empty")]
    id: String,
    #[serde(deserialize_with = "null_is_empty")]
    names: Vec<String>,
    #[serde(deserialize_with = "null_is_empty")]
    image: String,
    #[serde(rename = "ImageID", deserialize_with = "null_is_empty")]
    image_id: String,
    #[serde(deserialize_with = "null_is_empty")]
    labels: BTreeMap<String, String>,
    #[serde(deserialize_with = "null_is_empty")]
    state: String,
    #[serde(deserialize_with = "null_is_empty")]
    status: String,
    #[serde(deserialize_with = "null_is_empty")]
    started_at: i64,
    #[serde(deserialize_with = "null_is_empty")]
    exit_code: i32,
    #[serde(deserialize_with = "null_is_empty")]
    pid: i64,
    #[serde(deserialize_with = "null_is_empty")]
    pod: String,
    #[serde(deserialize_with = "null_is_empty")]
    pod_name: String,
    #[serde(deserialize_with = "null_is_empty")]
    is_infra: bool,
    #[serde(deserialize_with = "null_is_empty")]
    auto_remove: bool,
    #[serde(deserialize_with = "null_is_empty")]
    restarts: u64,
    #[serde(deserialize_with = "null_is_empty")]
    networks: Vec<String>,
    #[serde(deserialize_with = "null_is_empty")]
    ports: Vec<ListedPort>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
struct ListedVolume {
    name: String,
    #[serde(deserialize_with = "null_is_empty")]
    labels: BTreeMap<String, String>,
    #[serde(deserialize_with = "null_is_empty")]
    created_at: String,
    #[serde(deserialize_with = "null_is_empty")]
    driver: String,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct ListedNetwork {
    name: String,
    #[serde(deserialize_with = "null_is_empty")]
    id: String,
    #[serde(deserialize_with = "null_is_empty")]
    labels: BTreeMap<String, String>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
struct ListedPod {
    name: String,
    #[serde(deserialize_with = "null_is_empty")]
    id: String,
    #[serde(deserialize_with = "null_is_empty")]
    labels: BTreeMap<String, String>,
    #[serde(deserialize_with = "null_is_empty")]
    status: String,
}

#[derive(Debug, Clone, Default, Deserialize)]
struct ListedSecret {
    #[serde(rename = "ID")]
    id: String,
    #[serde(rename = "Spec")]
    spec: ListedSpec,
}

#[derive(Debug, Clone, Default, Deserialize)]
struct ListedSpec {
    #[serde(rename = "Name")]
    name: String,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct ListedPort {
    #[serde(deserialize_with = "null_is_empty")]
    host_ip: String,
    #[serde(deserialize_with = "null_is_empty")]
    host_port: u16,
    #[serde(deserialize_with = "null_is_empty")]
    range: u16,
    #[serde(deserialize_with = "null_is_empty")]
    protocol: String,
}

impl ListedContainer {
    fn into_observed(self) -> (String, Container) {
        let up = matches!(self.state.as_str(), "running" | "paused");
        let unit = self.unit(up);
        let ports = if up { self.claims() } else { Vec::new() };
        // Podman keeps the last word of a health check beyond the end of the container.
        let is_health = |word: &String| matches!(word.as_str(), "starting" | "healthy" | "unhealthy");
        let health = Some(self.status).filter(|word| up && is_health(word));
        let pod = [self.pod_name, self.pod].into_iter().find(|pod| !pod.is_empty());
        let name = self.names.into_iter().next().unwrap_or_else(|| self.id.clone());
        let container = Container {
            image_id: bare_id(&self.image_id),
            id: self.id,
            image: self.image,
            labels: self.labels,
            state: self.state,
            health,
            started_at: self.started_at,
            exit_code: self.exit_code,
            pid: self.pid,
            pod,
            infra: self.is_infra,
            auto_remove: self.auto_remove,
            restarts: self.restarts,
            networks: self.networks,
            ports,
            unit,
        };
        (name, container)
    }

    /// A label can say anything, and `podman commit` copies ours: what runs is asked for its cgroup.
    fn unit(&self, up: bool) -> Option<String> {
        if up && let Some(cgroup) = systemd::cgroup_of_parent(self.pid) {
            return systemd::unit_of_conmon(&cgroup);
        }
        self.labels.get(UNIT_LABEL).filter(|unit| !unit.is_empty()).cloned()
    }

    /// Members of a pod repeat the ports of its infra container.
    fn claims(&self) -> Vec<PortClaim> {
        if !self.pod.is_empty() && !self.is_infra {
            return Vec::new();
        }
        self.ports.iter().flat_map(ListedPort::claims).collect()
    }
}

impl ListedPort {
    fn claims(&self) -> Vec<PortClaim> {
        let span = Span::of_publish(self.host_ip.parse().ok());
        let last = self.host_port.saturating_add(self.range.max(1) - 1);
        let mut claims = Vec::new();
        for protocol in self.protocol.split(',').filter_map(protocol) {
            // Port 0 is one that Podman has not picked yet.
            for port in (self.host_port..=last).filter(|port| *port != 0) {
                claims.push(PortClaim { span: span.clone(), port, protocol });
            }
        }
        claims
    }
}

fn protocol(word: &str) -> Option<Protocol> {
    match word {
        "tcp" | "" => Some(Protocol::Tcp),
        "udp" => Some(Protocol::Udp),
        "sctp" => Some(Protocol::Sctp),
        _ => None,
    }
}

fn null_is_empty<'de, D: Deserializer<'de>, T: Default + Deserialize<'de>>(value: D) -> Result<T, D::Error> {
    Ok(Option::<T>::deserialize(value)?.unwrap_or_default())
}

/// An image ID without its algorithm.
fn bare_id(id: &str) -> String {
    id.strip_prefix("sha256:").unwrap_or(id).to_owned()
}

#[cfg(test)]
mod tests;
