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

use tokio::task::{AbortHandle, JoinSet};

use crate::error::Result;
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
    tasks: JoinSet<()>,
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
        let mut tasks = JoinSet::new();
        tasks.spawn(driver.run());
        tasks.spawn(feed(Arc::clone(&shared)));
        let (condition, own) = (shared.bus.condition(), Arc::clone(&shared));
        tasks.spawn(connection::watch(condition, move |why| own.fault("no connection to the bus", why)));
        tasks.spawn(buckets(Arc::clone(&shared)));
        tasks.spawn(moves::follow(Arc::clone(&shared)));
        tasks.spawn(server::keep_keys(Arc::clone(&shared)));
        tasks.spawn(send::send(Arc::clone(&shared)));
        tasks.spawn(status::tell(Arc::clone(&shared)));
        let work = tasks.spawn(work::work(Arc::clone(&shared)));
        Ok(Self { shared, tasks, work })
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
    pub async fn stop(mut self) {
        // With it the measurement ends; then its keys go back, so that nobody waits for them.
        self.work.abort();
        self.shared.leases.finish().await;
        tokio::time::sleep(FAREWELL).await;
        self.tasks.shutdown().await;
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
