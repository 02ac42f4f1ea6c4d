//! Whether there is a connection, and to which server.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use async_nats::Event;
use async_nats::client::Request;
use async_nats::connection::State;
use tokio::sync::{broadcast, mpsc};
use tokio::task::JoinSet;
use tokio::time::interval;

use super::answers::failed;
use super::condition::Follower;
use crate::error::{Error, Result};
use crate::permissions::ROUND_TRIP;

/// How often the state of the connection is looked at, beside its events.
const LOOK: Duration = Duration::from_millis(500);

/// A question on a new connection that was lost with it is asked again.
const ASK_AGAIN: Duration = Duration::from_secs(1);

/// Follows a connection. The library drops events while many wait, and an event may come late, so
/// each is only a reason to look at the state now.
pub(super) async fn follow(client: async_nats::Client, follower: Arc<Follower>, mut events: mpsc::Receiver<Event>) {
    let statistics = client.statistics();
    let (mut connects, mut looks) = (0, interval(LOOK));
    let mut asking = JoinSet::new();
    loop {
        let event = tokio::select! {
            Some(event) = events.recv() => Some(event),
            _ = looks.tick() => None,
        };
        let up = client.connection_state() == State::Connected;
        let now = statistics.connects.load(Ordering::Relaxed);
        // The library says that a connection ended before its state does.
        if now != connects || !up || event == Some(Event::Disconnected) {
            asking.abort_all();
            follower.disconnected();
            if up {
                connects = now;
                asking.spawn(ask(client.clone(), Arc::clone(&follower)));
            }
        }
        while asking.try_join_next().is_some() {}
        if let Some(event) = event {
            follower.event(event);
        }
    }
}

/// The client knows the server's new id when the server has answered. The answer may be a refusal,
/// which is an event: asking needs a task.
async fn ask(client: async_nats::Client, follower: Arc<Follower>) {
    while round_trip(&client, &follower, ASK_AGAIN).await.is_err() {}
    follower.connected(client.server_info().server_id);
}

/// Returns when the server has worked off what was sent before.
pub(super) async fn round_trip(client: &async_nats::Client, follower: &Follower, timeout: Duration) -> Result<()> {
    let mut refusals = follower.refusals();
    let request = Request::new().timeout(Some(timeout));
    tokio::select! {
        // Nobody listens there, which the server says at once.
        answer = client.send_request(ROUND_TRIP, request) => match answer.map_err(|error| failed(&error, ROUND_TRIP)) {
            Ok(_) | Err(Error::Missing(_)) => Ok(()),
            Err(error) => Err(error),
        },
        // A client that may not ask gets an answer all the same.
        () = refused(&mut refusals, ROUND_TRIP) => Ok(()),
    }
}

/// Returns when the server refuses a subject.
pub(super) async fn refused(refusals: &mut broadcast::Receiver<String>, subject: &str) {
    loop {
        match refusals.recv().await {
            Ok(one) if one == subject => return,
            Ok(_) | Err(broadcast::error::RecvError::Lagged(_)) => {}
            Err(broadcast::error::RecvError::Closed) => std::future::pending().await,
        }
    }
}
