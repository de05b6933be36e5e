//! The agent over its socket, for root where there is no bus.

use std::collections::BTreeMap;

use holdfast_agent::varlink::client::{CallError, Client};
use holdfast_core::record::Summary;
use holdfast_core::status::SCHEMA;
use holdfast_core::status::view::{LastSeen, View};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::{Found, JobLine, News, Wait, lost, read};
use crate::refusal::Refusal;

/// Where systemd listens for the agent.
const PATH: &str = "/run/holdfast/io.holdfast.Agent";

/// The socket. Each call has a connection of its own.
pub struct Socket;

/// A job that was started here.
pub struct Job {
    pub id: u32,
    news: mpsc::UnboundedReceiver<News>,
}

impl Socket {
    /// Only whether the agent can be reached.
    pub async fn open() -> Result<Self, Refusal> {
        Client::connect(PATH).await.map(|_| Self).map_err(Refusal::from)
    }

    pub async fn look(&self, modules: &[String]) -> Result<View, Refusal> {
        let mut answer = call("Plan", json!({ "modules": modules })).await?;
        let mut view = view(&mut answer)?;
        view.changes = take(&mut answer, "changes")?;
        view.steps = take(&mut answer, "steps")?;
        view.notes = take(&mut answer, "notes")?;
        view.holds = take(&mut answer, "holds")?;
        Ok(view)
    }

    pub async fn last_look(&self) -> Result<View, Refusal> {
        let mut view = view(&mut call("ListModules", json!({})).await?)?;
        view.holds = take(&mut call("ListHolds", json!({})).await?, "holds")?;
        Ok(view)
    }

    pub async fn apply(&self, modules: &[String], wait: Wait) -> Result<Job, Refusal> {
        let mut client = Client::connect(PATH).await.map_err(Refusal::from)?;
        let parameters = json!({ "modules": modules, "wait": wait == Wait::Yes });
        let (sender, news) = mpsc::unbounded_channel();
        let (first, started) = tokio::sync::oneshot::channel();
        tokio::spawn(async move {
            let mut first = Some(first);
            let mut tell = |news: Result<(u32, News), Refusal>| match (first.take(), news) {
                (Some(first), Ok((id, news))) => first.send(Ok(id)).is_ok() && sender.send(news).is_ok(),
                (Some(first), Err(refusal)) => first.send(Err(refusal)).is_ok(),
                (None, Ok((_, news))) => sender.send(news).is_ok(),
                (None, Err(refusal)) => sender.send(News::Ended(refusal)).is_ok(),
            };
            let mut replies = match client.more("Apply", parameters).await {
                Ok(replies) => replies,
                Err(error) => {
                    tell(Err(error.into()));
                    return;
                }
            };
            loop {
                let news = match replies.next().await {
                    Ok(Some(reply)) => news_of(reply.parameters),
                    Ok(None) => return,
                    Err(error) => Err(error.into()),
                };
                let more = news.is_ok();
                if !tell(news) || !more {
                    return;
                }
            }
        });
        let id = started.await.map_err(|_| lost())??;
        Ok(Job { id, news })
    }

    pub async fn set_operator_hold(&self, module: &str, note: Option<&str>) -> Result<(), Refusal> {
        let done = match note {
            Some(note) => call("Hold", json!({ "module": module, "note": note })).await,
            None => call("Unhold", json!({ "module": module })).await,
        };
        done.map(drop)
    }

    pub async fn report(&self, id: &str) -> Result<Found, Refusal> {
        let mut answer = call("GetReport", json!({ "report_id": id })).await?;
        let warning = take(&mut answer, "warning")?;
        Ok(Found { report: take(&mut answer, "report")?, warning })
    }

    pub async fn reports(&self, max: u32) -> Result<Vec<Summary>, Refusal> {
        take(&mut call("ListReports", json!({ "max": max })).await?, "reports")
    }

    pub async fn jobs(&self) -> Result<Vec<JobLine>, Refusal> {
        take(&mut call("ListJobs", json!({})).await?, "jobs")
    }

    pub async fn cancel(&self, id: u32) -> Result<(), Refusal> {
        call("CancelJob", json!({ "id": id })).await.map(drop)
    }
}

impl Job {
    pub async fn next(&mut self) -> News {
        self.news.recv().await.unwrap_or_else(|| News::Ended(lost()))
    }
}

impl From<CallError> for Refusal {
    fn from(error: CallError) -> Self {
        let CallError { token, message } = error;
        // One word for one thing at both doors.
        let token = if token == "InvalidParameter" { "InvalidArgs" } else { &token };
        Self::new(token, message)
    }
}

async fn call(method: &str, parameters: Value) -> Result<Value, Refusal> {
    Ok(Client::connect(PATH).await?.call(method, parameters).await?)
}

fn view(answer: &mut Value) -> Result<View, Refusal> {
    let rows: Vec<Value> = take(answer, "modules")?;
    let named = |row: Value| Ok((row["name"].as_str().unwrap_or_default().to_owned(), read(row)?));
    let report: Option<String> = take(answer, "last_report")?;
    let finished_usec: Option<u64> = take(answer, "last_apply_usec")?;
    Ok(View {
        schema: SCHEMA,
        observed_usec: take(answer, "observed_usec")?,
        last: report.zip(finished_usec).map(|(report, finished_usec)| LastSeen { report, finished_usec }),
        modules: rows.into_iter().map(named).collect::<Result<BTreeMap<_, _>, Refusal>>()?,
        ..View::default()
    })
}

fn news_of(mut answer: Value) -> Result<(u32, News), Refusal> {
    let canceled = answer["job"]["result"] == "canceled";
    let job: JobLine = take(&mut answer, "job")?;
    let report: Option<Value> = take(&mut answer, "report")?;
    let news = match report {
        Some(report) => News::Reported(Box::new(read(report)?)),
        None if canceled => News::Ended(Refusal::new("Canceled", "the job was canceled")),
        None => News::Progress(job.percent, job.step),
    };
    Ok((job.id, news))
}

fn take<T: DeserializeOwned>(answer: &mut Value, key: &str) -> Result<T, Refusal> {
    read(answer[key].take())
}
