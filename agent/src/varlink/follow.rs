//! A job, as one caller is told of it.

use std::sync::Arc;

use serde_json::{Value, json};
use tokio::sync::mpsc::{self, UnboundedReceiver, UnboundedSender};

use super::session::Session;
use super::{Fault, Refusal};
use crate::desk::Event;
use crate::desk::job::{End, Job, StepEnd};

impl Session {
    /// Tells how a job goes on, if there are events to tell, and gives how it ended. `events` is from before the job was
    /// looked up. A caller that hangs up changes nothing of it.
    pub(super) async fn follow(
        &mut self, job: &Arc<Job>, events: Option<UnboundedReceiver<Event>>,
    ) -> Result<Value, Fault> {
        if let Some(events) = events.filter(|_| job.end().is_none()) {
            let (sender, news) = mpsc::unbounded_channel();
            tokio::try_join!(hear(events, job.id, sender), self.pass_on(job, news))?;
        }
        let end = job.wait().await;
        self.desk.heard().await;
        match &*end {
            End::Reported(report) => Ok(answer(job, None, report.to_json()?)),
            End::Failed(error) => Err(Refusal::from(error).into()),
            End::Looked(_) | End::Canceled => Ok(answer(job, None, Value::Null)),
        }
    }

    async fn pass_on(&mut self, job: &Job, mut news: UnboundedReceiver<Option<StepEnd>>) -> Result<(), Fault> {
        let mut before = row(job);
        self.tell(answer(job, None, Value::Null)).await?;
        while let Some(ended) = news.recv().await {
            let now = row(job);
            // A slow caller is not told each of them: what it gets is how it is now.
            if ended.is_some() || now != before {
                self.tell(answer(job, ended, Value::Null)).await?;
            }
            before = now;
        }
        Ok(())
    }
}

/// Hears of a job until it has ended. Everybody who waits for events to be heard waits for this, so that it waits for no
/// caller.
async fn hear(
    mut events: UnboundedReceiver<Event>, id: u32, news: UnboundedSender<Option<StepEnd>>,
) -> Result<(), Fault> {
    while let Some(event) = events.recv().await {
        let new = match event {
            // That it has ended is told with how.
            Event::JobMoved(job) if job.id == id && job.end().is_none() => None,
            Event::Step(job, step) if job.id == id => Some(step),
            Event::JobEnded(job, _) if job.id == id => break,
            Event::Looked(_)
            | Event::JobNew(_)
            | Event::JobMoved(_)
            | Event::Step(_, _)
            | Event::JobEnded(_, _)
            | Event::JobGone(_)
            | Event::Fence(_) => continue,
        };
        if news.send(new).is_err() {
            break;
        }
    }
    Ok(())
}

/// A job, as everybody is told of it.
pub(super) fn row(job: &Job) -> Value {
    let (now, end) = (job.now(), job.end());
    json!({
        "id": job.id, "kind": job.work.token(), "modules": job.modules, "uid": job.caller.uid, "started_usec": job.started_usec,
        "state": now.state.token(), "percent": now.percent(), "report_id": Some(now.report).filter(|report| !report.is_empty()), "step": now.step,
        "done": now.done, "of": now.of, "result": end.map(|end| end.result()),
    })
}

/// A reply of Apply and WaitJob.
pub(super) fn answer(job: &Job, ended: Option<StepEnd>, report: Value) -> Value {
    let ended = ended.map(|StepEnd { seq, step, module, resource, result, reason }| {
        json!({
            "seq": seq, "module": module, "resource": resource, "step": step, "result": result, "reason": reason,
        })
    });
    json!({ "job": row(job), "ended": ended, "report": report })
}
