//! One client of the server.

use std::sync::Arc;
use std::time::Duration;

use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt, StreamExt};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;
use tokio::time::{Instant, interval, sleep_until, timeout};
use tokio_tungstenite::tungstenite::Message;

use super::connect::{Socket, next};
use super::frame::{Answer, Call, FromClient, FromServer, decode};
use super::greet::{Guest, receive};
use super::router::Outbox;
use super::shared::{Admission, Shared};
use crate::error::{Error, Result};
use crate::permissions::{PROVIDE, Permissions, fetch_subject, read_subject, write_subject};
use crate::subject;

/// Fetches of one client that may wait at once.
const FETCHES: usize = 8;

/// No fetch waits longer than this.
const LONGEST_FETCH: Duration = Duration::from_secs(60);

/// A fetch that waits looks this often for results that are due again.
const DUE_AGAIN: Duration = Duration::from_millis(250);

/// Octets of the longest id of a message.
const ID_OCTETS: usize = 128;

/// Serves one client until either end closes.
pub(super) async fn run(shared: Arc<Shared>, mut socket: Socket, admission: Option<Admission>) {
    let greeted = receive(&mut socket, &shared.id, admission.as_ref(), &shared.limits);
    // A client that may not connect has been told why; the others see the connection end.
    let Ok(Ok(Guest { public_key, may })) = timeout(shared.limits.greeting, greeted).await else { return };
    let (outbox, frames) = Outbox::new(shared.limits.queue_octets);
    let client = shared.router.enter(public_key, Arc::clone(&outbox));
    let entered = Entered { shared: Arc::clone(&shared), client };
    let (sink, stream) = socket.split();
    let session = ClientSession { shared, outbox: Arc::clone(&outbox), may, client, fetches: JoinSet::new() };
    let ping = entered.shared.limits.ping;
    tokio::select! {
        _ = session.read(stream) => {}
        _ = write(sink, frames, &outbox, ping) => {}
        () = outbox.until_cut() => {}
    }
}

/// Whoever entered leaves, also when the task is aborted.
struct Entered {
    shared: Arc<Shared>,
    client: u64,
}

impl Drop for Entered {
    fn drop(&mut self) {
        self.shared.router.leave(self.client);
    }
}

async fn write(
    mut sink: SplitSink<Socket, Message>,
    mut frames: mpsc::UnboundedReceiver<Vec<u8>>,
    outbox: &Outbox,
    ping: Duration,
) -> Result<()> {
    let mut pings = interval(ping);
    loop {
        tokio::select! {
            frame = frames.recv() => {
                let frame = frame.ok_or(Error::Closed)?;
                let octets = frame.len();
                sink.send(Message::Binary(frame.into())).await.map_err(Error::lost)?;
                outbox.written(octets);
            }
            _ = pings.tick() => sink.send(Message::Ping(Vec::new().into())).await.map_err(Error::lost)?,
        }
    }
}

struct ClientSession {
    shared: Arc<Shared>,
    outbox: Arc<Outbox>,
    may: Permissions,
    client: u64,
    fetches: JoinSet<()>,
}

impl ClientSession {
    async fn read(mut self, mut stream: SplitStream<Socket>) -> Result<()> {
        loop {
            let octets = next(&mut stream, self.shared.limits.silence).await?;
            match decode(&octets)? {
                FromClient::Call(number, call) => self.call(number, call).await?,
                FromClient::Send { subject, payload } => self.send(&subject, &payload),
                FromClient::Unsubscribe(subscription) => self.shared.router.unsubscribe(self.client, subscription),
            }
        }
    }

    async fn call(&mut self, number: u64, call: Call) -> Result<()> {
        if let Err(error) = allowed(&self.may, self.shared.limits.message_octets, &call) {
            self.outbox.answer(number, Err(error));
            return Ok(());
        }
        match call {
            Call::Subscribe { subscription, pattern } => {
                let done = self.shared.router.subscribe(self.client, subscription, pattern);
                self.outbox.answer(number, done.map(|()| Answer::Done));
            }
            Call::Fetch { sink, most, wait_ms } => self.fetch(number, sink, most, Duration::from_millis(wait_ms)),
            call => {
                let outbox = Arc::clone(&self.outbox);
                self.shared.keeper.ask(call, Box::new(move |answer| outbox.answer(number, answer))).await?;
            }
        }
        Ok(())
    }

    fn send(&self, subject: &str, payload: &[u8]) {
        let fits = payload.len() <= self.shared.limits.message_octets;
        if fits && subject::subject(subject).is_ok() && self.may.may_publish(subject) {
            self.shared.router.publish(subject, payload, None);
        } else {
            self.outbox.push(&FromServer::Refused(subject.to_owned()));
        }
    }

    /// A fetch waits in a task of its own, so that the client can go on meanwhile.
    fn fetch(&mut self, number: u64, sink: String, most: u32, wait: Duration) {
        while self.fetches.try_join_next().is_some() {}
        if self.fetches.len() >= FETCHES {
            self.outbox.answer(number, Err(Error::Refused(format!("have more than {FETCHES} fetches at once"))));
            return;
        }
        let (shared, outbox) = (Arc::clone(&self.shared), Arc::clone(&self.outbox));
        let deadline = Instant::now() + wait.min(LONGEST_FETCH);
        self.fetches.spawn(async move {
            let answer = results(&shared, &sink, most, deadline).await;
            outbox.answer(number, answer);
        });
    }
}

/// Results for a sink, or an empty batch after the deadline.
async fn results(shared: &Shared, sink: &str, most: u32, deadline: Instant) -> Result<Answer> {
    let mut arrivals = shared.keeper.arrivals();
    loop {
        arrivals.mark_unchanged();
        let (reply, answer) = oneshot::channel();
        let call = Call::Fetch { sink: sink.to_owned(), most, wait_ms: 0 };
        // Nobody waits for the answer once the client is gone: it is delivered again.
        shared.keeper.ask(call, Box::new(move |answer| drop(reply.send(answer)))).await?;
        let answer = answer.await.map_err(|_| Error::Closed)??;
        let none = matches!(&answer, Answer::Batch(batch) if batch.is_empty());
        let now = Instant::now();
        if !none || now >= deadline {
            return Ok(answer);
        }
        tokio::select! {
            _ = arrivals.changed() => {}
            () = sleep_until(deadline.min(now + DUE_AGAIN)) => {}
        }
    }
}

/// Whether a client may ask for that, and the bus can carry it.
fn allowed(may: &Permissions, most: usize, call: &Call) -> Result<()> {
    let fits = |octets: usize| if octets <= most { Ok(()) } else { Err(Error::TooLarge { octets, most }) };
    let to = match call {
        Call::Provide(_) => PROVIDE.to_owned(),
        Call::Publish { subject, id, payload } => {
            subject::subject(subject)?;
            if id.is_empty() || id.len() > ID_OCTETS {
                return Err(Error::Subject(id.clone()));
            }
            fits(payload.len())?;
            subject.clone()
        }
        Call::Fetch { sink, .. } | Call::Ack { sink, .. } => {
            subject::name(sink)?;
            fetch_subject(sink)
        }
        Call::Subscribe { pattern, .. } => {
            subject::pattern(pattern)?;
            let refused = || Error::Refused(format!("subscribe to {pattern}"));
            return if may.may_subscribe(pattern) { Ok(()) } else { Err(refused()) };
        }
        Call::Read { bucket, key } => {
            subject::name(bucket)?;
            subject::key(key)?;
            read_subject(bucket, key)
        }
        Call::Write { bucket, key, value, .. } => {
            subject::name(bucket)?;
            subject::key(key)?;
            fits(value.len())?;
            write_subject(bucket, key)
        }
    };
    if may.may_publish(&to) { Ok(()) } else { Err(Error::Refused(format!("publish to {to}"))) }
}
