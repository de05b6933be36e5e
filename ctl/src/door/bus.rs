//! The agent over D-Bus.

use std::collections::HashMap;
use std::pin::Pin;

use futures_util::{Stream, StreamExt as _};
use holdfast_agent::bus::dict::{Dict, object};
use holdfast_agent::bus::error::PREFIX;
use holdfast_agent::bus::{NAME, path};
use holdfast_core::record::Summary;
use holdfast_core::report::{Counts, Report, ReportResult};
use holdfast_core::status::SCHEMA;
use holdfast_core::status::view::{LastSeen, View};
use serde_json::Value;
use zbus::proxy::MethodFlags;
use zbus::{Connection, DBusError as _, DynamicType, OwnedObjectPath, OwnedVariant, Proxy};

use super::password::{Agent, Ask};
use super::proxies::{JobProxy, ManagerProxy, ModuleProxy};
use super::{Found, JobLine, News, Wait, lost, read};
use crate::refusal::Refusal;

/// The standard errors' names begin so.
const STANDARD: &str = "org.freedesktop.DBus.Error.";

/// The system bus.
pub struct Bus {
    connection: Connection,
    manager: ManagerProxy<'static>,
    ask: Ask,
}

/// A job that was started here.
pub struct Job {
    pub id: u32,
    news: Pin<Box<dyn Stream<Item = News> + Send>>,
}

impl Bus {
    pub async fn open(ask: Ask) -> Result<Self, Refusal> {
        let connection = Connection::system().await.map_err(no_agent)?;
        let manager = ManagerProxy::builder(&connection).destination(NAME).path(path::ROOT);
        // Nothing of it is kept: each property is read when it is asked for.
        let manager = manager.cache_properties(zbus::proxy::CacheProperties::No).build().await.map_err(refusal)?;
        Ok(Self { connection, manager, ask })
    }

    pub async fn look(&self, modules: &[String]) -> Result<View, Refusal> {
        let nothing: HashMap<&str, OwnedVariant> = HashMap::new();
        let rows: Vec<Dict> = self.call(self.manager.inner(), "Plan", &(modules, nothing)).await?;
        let mut view = self.last_look().await?;
        for row in rows {
            let mut row = object(&row);
            let what = row["what"].take();
            match what.as_str().unwrap_or_default() {
                "change" => view.changes.push(read(row)?),
                "step" => view.steps.push(read(row)?),
                "note" => view.notes.push(read(row)?),
                // Holds stand in the last look already; what a later agent may add is not for this command.
                _ => {}
            }
        }
        Ok(view.only(modules))
    }

    pub async fn last_look(&self) -> Result<View, Refusal> {
        let modules = self.manager.list_modules().await.map_err(refusal)?;
        let holds = self.manager.list_holds("", HashMap::new()).await.map_err(refusal)?;
        let report = self.manager.last_report().await.map_err(refusal)?;
        let finished_usec = self.manager.last_apply_usec().await.map_err(refusal)?;
        Ok(View {
            schema: SCHEMA,
            observed_usec: self.manager.observed_usec().await.map_err(refusal)?,
            last: (!report.is_empty()).then_some(LastSeen { report, finished_usec }),
            modules: modules
                .into_iter()
                .map(|(name, .., more)| Ok((name, read(object(&more))?)))
                .collect::<Result<_, Refusal>>()?,
            holds: holds.into_iter().map(|(.., more)| read(object(&more))).collect::<Result<_, Refusal>>()?,
            ..View::default()
        })
    }

    pub async fn apply(&self, modules: &[String], wait: Wait) -> Result<Job, Refusal> {
        let mut options: HashMap<&str, OwnedVariant> = HashMap::new();
        if wait == Wait::Yes {
            options.insert("wait", true.into());
        }
        let (id, path): (u32, OwnedObjectPath) = self.call(self.manager.inner(), "Apply", &(modules, options)).await?;
        let job = self.job(path).await?;
        let waiting = job.clone();
        let end = futures_util::stream::once(async move { end(waiting.wait(HashMap::new()).await) });
        let told = job.clone();
        let steps = job.receive_step_changed().await.filter_map(move |step| {
            let told = told.clone();
            async move {
                let percent = told.percent().await.unwrap_or_default();
                step.get().await.ok().map(|step| News::Progress(percent, step))
            }
        });
        Ok(Job { id, news: Box::pin(futures_util::stream::select(steps, end)) })
    }

    pub async fn set_operator_hold(&self, module: &str, note: Option<&str>) -> Result<(), Refusal> {
        let done = self.try_operator_hold(module, note).await;
        let Err(Refusal { token, .. }) = &done else { return done };
        if token != "UnknownObject" {
            return done;
        }
        // A module that nobody has looked at yet has no object.
        self.look(&[module.to_owned()]).await?;
        self.try_operator_hold(module, note).await
    }

    async fn try_operator_hold(&self, module: &str, note: Option<&str>) -> Result<(), Refusal> {
        let proxy = ModuleProxy::builder(&self.connection).destination(NAME).path(path::module(module));
        let proxy = proxy.cache_properties(zbus::proxy::CacheProperties::No).build().await.map_err(refusal)?;
        let options: HashMap<&str, OwnedVariant> = HashMap::new();
        match note {
            Some(note) => self.call(proxy.inner(), "Hold", &(note, &options)).await,
            None => self.call(proxy.inner(), "Unhold", &(&options,)).await,
        }
    }

    pub async fn report(&self, id: &str) -> Result<Found, Refusal> {
        let mut value = object(&self.manager.get_report(id).await.map_err(refusal)?);
        let warning = value["warning"].take().as_str().map(str::to_owned);
        Ok(Found { report: read(value)?, warning })
    }

    pub async fn reports(&self, max: u32) -> Result<Vec<Summary>, Refusal> {
        let list = self.manager.list_reports(0, max).await.map_err(refusal)?;
        let summary = |(report, result, started_usec, finished_usec, more): (String, String, u64, u64, Dict)| {
            let value = object(&more);
            let text = |key: &str| value[key].as_str().unwrap_or_default().to_owned();
            let (action, sentence) = (text("action"), text("sentence"));
            Ok(Summary {
                report,
                action,
                result: ReportResult::ALL.into_iter().find(|known| known.token() == result),
                started_usec,
                finished_usec: Some(finished_usec).filter(|usec| *usec != 0),
                counts: read::<Counts>(value)?,
                sentence,
            })
        };
        list.into_iter().map(summary).collect()
    }

    pub async fn jobs(&self) -> Result<Vec<JobLine>, Refusal> {
        let jobs = self.manager.list_jobs().await.map_err(refusal)?;
        let line =
            |(id, kind, _, state, percent, _, more): (u32, String, String, String, u32, OwnedObjectPath, Dict)| {
                let mut row = object(&more);
                row["id"] = id.into();
                row["kind"] = kind.into();
                row["state"] = state.into();
                row["percent"] = percent.into();
                read(row)
            };
        jobs.into_iter().map(line).collect()
    }

    pub async fn cancel(&self, id: u32) -> Result<(), Refusal> {
        let job = self.job(path::job(id)).await?;
        let options: HashMap<&str, OwnedVariant> = HashMap::new();
        match self.call(job.inner(), "Cancel", &(options,)).await {
            Err(refusal) if refusal.token == "UnknownObject" => {
                Err(Refusal::new("NoSuchJob", format!("no job {id} runs")))
            }
            done => done,
        }
    }

    async fn job(&self, path: OwnedObjectPath) -> Result<JobProxy<'static>, Refusal> {
        JobProxy::builder(&self.connection).destination(NAME).path(path).build().await.map_err(refusal)
    }

    /// A call that polkit may want a password for.
    async fn call<B, R>(&self, proxy: &Proxy<'_>, method: &'static str, body: &B) -> Result<R, Refusal>
    where
        B: serde::Serialize + DynamicType,
        R: for<'d> zbus::wire::DynamicDeserialize<'d>,
    {
        let agent = match self.ask {
            Ask::Yes => Agent::start(),
            Ask::No => None,
        };
        let flags = match self.ask {
            Ask::Yes => MethodFlags::ALLOW_INTERACTIVE_AUTH,
            Ask::No => MethodFlags::empty(),
        };
        let answer = proxy.call_with_flags(method, flags, body).await.map_err(refusal)?;
        drop(agent);
        answer.ok_or_else(|| Refusal::new("NoAgent", format!("the agent did not answer {method}")))
    }
}

impl Job {
    pub async fn next(&mut self) -> News {
        match self.news.next().await {
            Some(news) => news,
            None => News::Ended(lost()),
        }
    }
}

/// How a job ended, as its `Wait` tells.
fn end(answer: zbus::Result<(String, Dict)>) -> News {
    match answer {
        Ok((result, details)) => {
            let mut details = object(&details);
            match details["report"].take() {
                Value::Null if result == "canceled" => News::Ended(Refusal::new("Canceled", "the job was canceled")),
                Value::Null => {
                    let text = |key: &str| details[key].as_str().unwrap_or_default().to_owned();
                    News::Ended(Refusal::new(&text("error-name"), text("error-message")))
                }
                report => match read::<Report>(report) {
                    Ok(report) => News::Reported(Box::new(report)),
                    Err(refusal) => News::Ended(refusal),
                },
            }
        }
        Err(error) => match refusal(error) {
            Refusal { token, .. } if token == "NoReply" || token == "NoAgent" => News::Ended(lost()),
            refusal => News::Ended(refusal),
        },
    }
}

fn refusal(error: zbus::Error) -> Refusal {
    let (name, message) = match &error {
        zbus::Error::MethodError(name, message, _) => (name.to_string(), message.clone().unwrap_or_default()),
        zbus::Error::FDO(error) => (error.name().to_string(), error.description().unwrap_or_default().to_owned()),
        _ => return no_agent(error),
    };
    match name.strip_prefix(PREFIX).or_else(|| name.strip_prefix(STANDARD)) {
        // The bus says so of an agent that is not there.
        Some("ServiceUnknown" | "NameHasNoOwner" | "Disconnected" | "TimedOut" | "Timeout") => {
            Refusal::new("NoAgent", no_answer(&message))
        }
        Some(token) => Refusal::new(token, message),
        None => Refusal::new("NoAgent", no_answer(&format!("{message} ({name})"))),
    }
}

fn no_agent(error: zbus::Error) -> Refusal {
    Refusal::new("NoAgent", no_answer(&holdfast_agent::error::chain(&error)))
}

fn no_answer(why: &str) -> String {
    format!("the agent does not answer: {why}")
}
