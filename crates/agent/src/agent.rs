//! The agent: its tasks, from start to end.
//!
//! | task | what it does |
//! |-|-|
//! | `feed` | takes plans, orders, and what the record has |
//! | `connection` | says when the bus stays away |
//! | `work` | measures, one run at a time |
//! | `lease` | leases what a loading run loads |
//! | `send` | sends results from the spool |
//! | `status` | tells how the agent is |
//! | `server` | writes the keys of this host's server |
//! | `moves` | looks at another bus that a plan names |

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Mutex;
use tokio::task::{AbortHandle, Id, JoinError, JoinSet};

use crate::error::{Error, Result};
use crate::feed::{bucket, feed, recall_plan};
use crate::former::{Former, own};
use crate::lease::Leases;
use crate::parts::Parts;
use crate::server;
use crate::shared::Shared;
use crate::state::Membership;
use crate::{connection, moves, send, status, work};

/// An agent that runs.
pub struct Agent {
    shared: Arc<Shared>,
    tasks: Mutex<JoinSet<()>>,
    /// The names of the tasks.
    names: Vec<(Id, &'static str)>,
    work: AbortHandle,
}

impl Agent {
    /// Starts its tasks, within a tokio runtime.
    pub fn start(parts: Parts) -> Result<Self> {
        let (spool, former) = own(&parts.state, &parts.membership.joined, parts.bounds)?;
        if let Some(Former { path, runs }) = former {
            tracing::warn!(runs, path = %path.display(), "results of a member of before cannot be sent any more");
        }
        let (bus, clock) = (Arc::clone(&parts.bus), Arc::clone(&parts.clock));
        let (leases, driver) = Leases::new(&parts.membership.joined, parts.state.key()?, bus, clock);
        let shared = Arc::new(Shared::new(parts, spool, leases));
        recall_plan(&shared);
        let (mut tasks, of) = (JoinSet::new(), || Arc::clone(&shared));
        let (condition, own) = (shared.bus.condition(), of());
        let watched = connection::watch(condition, move |why| own.fault("no connection to the bus", why));
        let work = tasks.spawn(work::work(of()));
        let names = [
            (work.id(), "work"),
            (tasks.spawn(driver.run()).id(), "lease"),
            (tasks.spawn(feed(of())).id(), "feed"),
            (tasks.spawn(watched).id(), "connection"),
            (tasks.spawn(buckets(of())).id(), "buckets"),
            (tasks.spawn(moves::follow(of())).id(), "moves"),
            (tasks.spawn(server::keep_keys(of())).id(), "server"),
            (tasks.spawn(send::send(of())).id(), "send"),
            (tasks.spawn(status::tell(of())).id(), "status"),
        ];
        Ok(Self { shared, tasks: Mutex::new(tasks), names: names.to_vec(), work })
    }

    /// Waits until one of its tasks fails: the others are of little use without it. The agent says
    /// so in its status until it is started again.
    pub async fn failed(&self) -> Error {
        let mut tasks = self.tasks.lock().await;
        loop {
            match tasks.join_next().await {
                // Some have nothing to do any more: the bus has moved, or is gone.
                Some(Ok(())) => {}
                Some(Err(error)) => {
                    let why = self.name_of(&error);
                    self.shared.fault("a part of the agent failed", Some(why.clone()));
                    return Error::Task(why);
                }
                // Nobody fails any more.
                None => std::future::pending().await,
            }
        }
    }

    fn name_of(&self, error: &JoinError) -> String {
        let name = self.names.iter().find(|(id, _)| *id == error.id()).map_or("a task", |(_, name)| name);
        format!("{name}: {error}")
    }

    /// The file for `narrows serve --fleet-keys`, as soon as a plan has said what is in it.
    pub async fn server_keys(&self) -> PathBuf {
        server::keys(&self.shared).await
    }

    /// Waits until the bus has moved: the agent is to stop, and to start with this membership.
    pub async fn moved(&self) -> Membership {
        let mut moved = self.shared.moved.subscribe();
        match moved.wait_for(Option::is_some).await.map(|moved| moved.clone()) {
            Ok(Some(membership)) => membership,
            // The sender is in what we have.
            _ => std::future::pending().await,
        }
    }

    /// Says what is wrong with its host, or that it is right again.
    pub fn fault(&self, what: &'static str, why: Option<String>) {
        self.shared.fault(what, why);
    }

    /// Ends what runs, and tells the hub how it was at the end.
    pub async fn stop(self) {
        // With it the measurement ends; then its keys go back, so that nobody waits for them.
        self.work.abort();
        self.shared.leases.finish().await;
        tokio::time::sleep(FAREWELL).await;
        self.tasks.into_inner().shutdown().await;
        {
            let mut about = self.shared.about();
            (about.running, about.order) = (None, None);
        }
        status::say(&self.shared, false).await;
    }
}

/// Time for the last writes to leave this host.
const FAREWELL: Duration = Duration::from_millis(200);

/// Leases move with the plan that names another bucket.
async fn buckets(shared: Arc<Shared>) {
    let mut plans = shared.plan.subscribe();
    loop {
        let plan = plans.borrow_and_update().clone();
        if let Some(plan) = plan {
            shared.leases.bucket(bucket(&plan), plan.certificate.clone()).await;
        }
        if plans.changed().await.is_err() {
            return;
        }
    }
}
