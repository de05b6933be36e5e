//! Podman's API socket: pull, pin, and how containers stand.

use std::collections::BTreeMap;
use std::path::Path;

use futures_util::StreamExt;
use holdfast_core::ledger::Pin;
use holdfast_core::step::Origin;
use podman_api::opts::{ContainerListFilter, ContainerListOpts, ImageTagOpts, PullOpts};
use thiserror::Error;
use tokio::sync::mpsc::UnboundedSender;

use crate::observe::podman::is_reference;

/// The repository of the tags that keep deployed images from being pruned.
const PIN_REPOSITORY: &str = "localhost/holdfast/pin";

/// What Podman refused.
#[derive(Debug, Error)]
pub enum PodmanError {
    /// An image could not be pulled.
    #[error("{image} cannot be pulled: {answer}")]
    Pull {
        /// The reference.
        image: String,
        /// What Podman or the registry said.
        answer: String,
    },
    /// Local storage has no such image.
    #[error("{0} is not in local storage")]
    NoImage(String),
    /// A call failed.
    #[error("Podman cannot {what}")]
    Call {
        /// What was asked for.
        what: String,
        /// Its answer.
        #[source]
        source: podman_api::Error,
    },
}

impl PodmanError {
    fn call(what: impl Into<String>) -> impl FnOnce(podman_api::Error) -> Self {
        let what = what.into();
        move |source| Self::Call { what, source }
    }
}

/// How a container stands.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Seen {
    /// Its ID.
    pub id: String,
    /// Seconds since 1970; with the ID it tells one run from the next.
    pub started_at: i64,
    /// created, running, exited, …
    pub state: String,
    /// starting, healthy, unhealthy; empty without a health check.
    pub health: String,
    /// Exit code of its last run.
    pub exit_code: i32,
}

/// Podman's API.
#[derive(Debug, Clone)]
pub struct Podman {
    api: podman_api::Podman,
}

impl Podman {
    /// For a socket; nothing is sent yet.
    #[must_use]
    pub fn new(socket: &Path) -> Self {
        // The crate's own API version is the only one whose answers it reads on every Podman since 5.0.
        Self { api: podman_api::Podman::unix(socket) }
    }

    /// Pulls an image with the service's own credentials, and sends what Podman says on the way.
    ///
    /// # Errors
    /// [`PodmanError::Pull`]
    pub async fn pull(&self, image: &str, lines: UnboundedSender<String>) -> Result<(), PodmanError> {
        let images = self.api.images();
        let options = PullOpts::builder().reference(image).build();
        let mut items = images.pull(&options);
        let failed = |answer: String| PodmanError::Pull { image: image.to_owned(), answer: one_line(&answer) };
        let mut id = None;
        while let Some(item) = items.next().await {
            let item = item.map_err(|error| failed(answer_of(&error)))?;
            // The HTTP status says 200 in any case: the last word is in the stream.
            if let Some(error) = item.error.filter(|error| !error.is_empty()) {
                return Err(failed(error));
            }
            if let Some(line) = item.stream {
                // Nobody listens any more: that is no reason to stop a pull.
                lines.send(one_line(&line)).unwrap_or_default();
            }
            id = item.id.filter(|id| !id.is_empty()).or(id);
        }
        id.map(|_| ()).ok_or_else(|| failed("Podman ended the pull without an image".to_owned()))
    }

    /// Finds out which image a reference stands for, and keeps that image, and its digest, by tags of ours.
    ///
    /// # Errors
    /// [`PodmanError`]
    pub async fn pin(&self, image: &str, origin: Origin) -> Result<Pin, PodmanError> {
        if !is_reference(image) {
            return Err(PodmanError::NoImage(image.to_owned()));
        }
        let found = match self.api.images().get(image).inspect().await {
            Err(error) if is_not_found(&error) => return Err(PodmanError::NoImage(image.to_owned())),
            other => other.map_err(PodmanError::call(format!("inspect {image}")))?,
        };
        let id = found.id.map(|id| id.trim_start_matches("sha256:").to_owned()).filter(|id| !id.is_empty());
        let id = id.ok_or_else(|| PodmanError::NoImage(image.to_owned()))?;
        self.tag(&id, PIN_REPOSITORY, short(&id).to_owned()).await?;

        let digests = of_repository(image, found.repo_digests.unwrap_or_default(), &found.digest.unwrap_or_default());
        let resolving = match origin {
            _ if image.contains("@sha256:") => Some(image.to_owned()),
            Origin::Pulled => self.first_that_resolves(&digests).await,
            Origin::Local => None,
        };
        // A digest resolves only while the image has some tag in that repository, and any tag may move away.
        if let (Some(_), Some(digest)) = (&resolving, digests.first()) {
            self.tag(&id, repository(digest), format!("holdfast-{}", short(&id))).await?;
        }
        let deployed = resolving.unwrap_or_else(|| id.clone());
        Ok(Pin { written: image.to_owned(), deployed, image_id: id })
    }

    /// How the named containers stand; those that are not there are not in the answer.
    ///
    /// # Errors
    /// [`PodmanError`]
    pub async fn containers(&self, names: &[String]) -> Result<BTreeMap<String, Seen>, PodmanError> {
        if names.is_empty() {
            return Ok(BTreeMap::new());
        }
        // Podman takes the name for a regular expression; no other character of a name means anything in one.
        let exact = names.iter().map(|name| ContainerListFilter::Name(format!("^{}$", name.replace('.', "\\."))));
        let options = ContainerListOpts::builder().all(true).filter(exact).build();
        let list = self.api.containers().list(&options).await.map_err(PodmanError::call("list containers"))?;
        let mut seen = BTreeMap::new();
        for container in list {
            let facts = Seen {
                id: container.id.unwrap_or_default(),
                started_at: container.started_at.unwrap_or_default(),
                state: container.state.unwrap_or_default(),
                health: container.status.unwrap_or_default(),
                exit_code: container.exit_code.unwrap_or_default(),
            };
            for name in container.names.unwrap_or_default() {
                seen.insert(name, facts.clone());
            }
        }
        Ok(seen)
    }

    /// The last line that the health check of a container printed; none where it cannot be told.
    pub async fn last_health_line(&self, name: &str) -> Option<String> {
        let found = self.api.containers().get(name).inspect().await.ok()?;
        let output = found.state?.health?.log?.pop()?.output?;
        Some(one_line(output.lines().rfind(|line| !line.trim().is_empty())?))
    }

    async fn tag(&self, id: &str, repository: &str, tag: String) -> Result<(), PodmanError> {
        let options = ImageTagOpts::builder().repo(repository).tag(tag).build();
        let tagged = self.api.images().get(id).tag(&options).await;
        tagged.map_err(PodmanError::call(format!("tag an image in {repository}")))
    }

    async fn first_that_resolves(&self, references: &[String]) -> Option<String> {
        for reference in references {
            if self.api.images().get(reference).exists().await.is_ok_and(|exists| exists) {
                return Some(reference.clone());
            }
        }
        None
    }
}

/// `name@sha256:…` pairs of the reference's own repository, the one with the image's main digest first: Podman lists
/// every name of an image with every digest of it.
fn of_repository(image: &str, digests: Vec<String>, first: &str) -> Vec<String> {
    let wanted = repository(image);
    let mut own: Vec<String> = digests.into_iter().filter(|pair| same_repository(wanted, repository(pair))).collect();
    own.sort_by_key(|pair| first.is_empty() || !pair.ends_with(first));
    own
}

/// As much of an ID as Podman shows.
fn short(id: &str) -> &str {
    id.get(..12).unwrap_or(id)
}

/// A reference without tag and digest.
fn repository(reference: &str) -> &str {
    let name = reference.split('@').next().unwrap_or(reference);
    match name.rsplit_once(':') {
        Some((name, tag)) if !tag.contains('/') => name,
        _ => name,
    }
}

/// A short name (`nginx`, `library/nginx`) stands for that name in the registry where it was found.
fn same_repository(written: &str, full: &str) -> bool {
    let registry = written.split('/').next().unwrap_or_default();
    let is_full = written.contains('/') && (registry.contains(['.', ':']) || registry == "localhost");
    written == full || (!is_full && full.ends_with(&format!("/{written}")))
}

fn is_not_found(error: &podman_api::Error) -> bool {
    matches!(error, podman_api::Error::Fault { code, message: _ } if code.as_u16() == 404)
}

/// Podman's own words, without the HTTP status in front.
fn answer_of(error: &podman_api::Error) -> String {
    match error {
        podman_api::Error::Fault { code: _, message } => message.clone(),
        other => other.to_string(),
    }
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::{of_repository, repository};

    #[test]
    fn repositories() {
        for (reference, expected) in [
            ("nginx", "nginx"),
            ("nginx:1.27", "nginx"),
            ("localhost:5000/svc", "localhost:5000/svc"),
            ("localhost:5000/svc:1.0", "localhost:5000/svc"),
            ("localhost:5000/svc:1.0@sha256:ab", "localhost:5000/svc"),
            ("localhost:5000/svc@sha256:ab", "localhost:5000/svc"),
        ] {
            assert_eq!(repository(reference), expected, "{reference}");
        }
    }

    #[test]
    fn only_digests_of_the_written_repository_are_taken() {
        let all = |pairs: &[&str]| pairs.iter().map(|pair| (*pair).to_owned()).collect::<Vec<_>>();
        let known = all(&[
            "localhost/svc@sha256:aa",
            "localhost:5000/svc@sha256:aa",
            "localhost:5000/svc@sha256:bb",
            "example.test/other/svc@sha256:aa",
        ]);
        let taken = of_repository("localhost:5000/svc:1.0", known.clone(), "sha256:bb");
        assert_eq!(taken, all(&["localhost:5000/svc@sha256:bb", "localhost:5000/svc@sha256:aa"]));
        assert_eq!(of_repository("localhost/svc:1.0", known.clone(), ""), all(&["localhost/svc@sha256:aa"]));
        assert_eq!(of_repository("example.test/svc", known, ""), all(&[]), "another path is another repository");
        let hub = all(&["docker.io/library/nginx@sha256:cc"]);
        assert_eq!(of_repository("nginx:1", hub.clone(), ""), hub, "a short name");
        assert_eq!(of_repository("inx", hub, ""), all(&[]), "names are compared by parts");
    }
}
