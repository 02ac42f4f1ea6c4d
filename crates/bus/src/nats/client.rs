//! A client of a NATS server.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_nats::HeaderMap;
use async_nats::client::Request;
use async_nats::jetstream::consumer::{self, FromConsumer, PullConsumer};
use async_nats::jetstream::response::Response;
use async_nats::jetstream::{self, Context};
use async_trait::async_trait;
use bytes::Bytes;
use futures_util::StreamExt;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinHandle;

use super::answers::{ack, entry, failed, number};
use super::condition::Follower;
use super::follow::{follow, refused, round_trip};
use super::options::{Options, connect_options};
use super::settings;
use crate::bus::{Bus, Condition, Delivery, Entry, Kept, Message, Subscription};
use crate::error::{Error, Result};
use crate::permissions::{read_subject, write_subject};
use crate::settings::{STREAM, Settings};
use crate::subject;

/// Less than what may wait for a subscription, by which the results of a batch come.
const LARGEST_BATCH: usize = Subscription::WAITING / 2;

/// How long the server has for results which it has already said that it has. It holds them back
/// while too many are not acknowledged.
const REST: Duration = Duration::from_secs(1);

/// A client of a NATS server.
pub struct Client {
    connection: async_nats::Client,
    context: Context,
    follower: Arc<Follower>,
    following: JoinHandle<()>,
    timeout: Duration,
}

impl Client {
    /// Begins to connect. Only options that cannot be right fail here.
    pub async fn connect(options: Options) -> Result<Self> {
        subject::name(&options.id)?;
        let (sender, events) = mpsc::channel(1_024);
        let client = connect_options(&options, sender).connect(&options.server).await.map_err(Error::lost)?;
        let follower = Arc::new(Follower::new());
        let following = tokio::spawn(follow(client.clone(), Arc::clone(&follower), events));
        let mut context = jetstream::new(client.clone());
        context.set_timeout(options.timeout);
        Ok(Self { connection: client, context, follower, following, timeout: options.timeout })
    }

    fn connected(&self) -> Result<watch::Receiver<Condition>> {
        let condition = self.follower.condition();
        let trouble = match &*condition.borrow() {
            Condition { server: Some(_), .. } => None,
            Condition { trouble, .. } => Some(trouble.clone().unwrap_or_default()),
        };
        trouble.map_or(Ok(condition), |trouble| Err(Error::Disconnected(trouble)))
    }

    fn fits(&self, octets: usize) -> Result<()> {
        let most = self.connection.max_payload();
        if octets <= most { Ok(()) } else { Err(Error::TooLarge { octets, most }) }
    }

    /// A request to the server or a stream, called `name` in errors.
    async fn ask(
        &self,
        name: &str,
        subject: String,
        headers: HeaderMap,
        payload: Bytes,
    ) -> Result<async_nats::Message> {
        self.fits(payload.len())?;
        let mut condition = self.connected()?;
        let mut refusals = self.follower.refusals();
        let request = Request::new().headers(headers).payload(payload).timeout(Some(self.timeout));
        tokio::select! {
            // A refusal that is there is the answer, whatever else happened since.
            biased;
            () = refused(&mut refusals, &subject) => Err(Error::Refused(format!("publish to {subject}"))),
            answer = self.connection.send_request(subject.clone(), request) => answer.map_err(|error| failed(&error, name)),
            _ = condition.wait_for(|now| now.server.is_none()) => Err(Error::Unanswered),
        }
    }

    /// As the library does it, but a refusal is seen at once.
    async fn consumer(&self, sink: &str) -> Result<PullConsumer> {
        let name = format!("{STREAM}/{sink}");
        let subject = format!("$JS.API.CONSUMER.INFO.{STREAM}.{sink}");
        let answer = self.ask(&name, subject, HeaderMap::new(), Bytes::new()).await?;
        let unread = |error: &dyn fmt::Display| Error::Protocol(error.to_string());
        let info: consumer::Info = match serde_json::from_slice(&answer.payload).map_err(|error| unread(&error))? {
            Response::Ok(info) => info,
            Response::Err { .. } => return Err(Error::Missing(name)),
        };
        let config = consumer::pull::Config::try_from_consumer_config(info.config.clone());
        Ok(PullConsumer::new(config.map_err(|error| unread(&error))?, info, self.context.clone()))
    }
}

#[async_trait]
impl Bus for Client {
    fn condition(&self) -> watch::Receiver<Condition> {
        self.follower.condition()
    }

    async fn provide(&self, settings: &Settings) -> Result<()> {
        // Whoever may not ask is told so at once; the library would wait for an answer.
        let subject = format!("$JS.API.STREAM.INFO.{STREAM}");
        self.ask(STREAM, subject, HeaderMap::new(), Bytes::new()).await?;
        settings::provide(&self.context, settings).await
    }

    async fn publish(&self, subject: &str, id: &str, payload: Bytes) -> Result<Kept> {
        subject::subject(subject)?;
        let mut headers = HeaderMap::new();
        headers.insert("Nats-Msg-Id", id);
        headers.insert("Nats-Expected-Stream", STREAM);
        let answer = self.ask(STREAM, subject.to_owned(), headers, payload).await?;
        let ack = ack(STREAM, &answer)?;
        Ok(Kept { sequence: ack.sequence, duplicate: ack.duplicate })
    }

    async fn fetch(&self, sink: &str, most: usize, wait: Duration) -> Result<Vec<Delivery>> {
        subject::name(sink)?;
        let consumer = self.consumer(sink).await?;
        // Asked for everything at once, a server answers when it has all or the time is over. The
        // first result says how many more there are.
        let (mut taken, left) = batch(&consumer, 1, wait).await?;
        let more = usize::try_from(left).unwrap_or(usize::MAX).min(most.saturating_sub(1)).min(LARGEST_BATCH);
        if more > 0 {
            taken.extend(batch(&consumer, more, REST).await?.0);
        }
        Ok(taken)
    }

    /// The server answers the last one, when it has worked off those before.
    async fn ack(&self, sink: &str, taken: &[Delivery]) -> Result<()> {
        let Some((last, before)) = taken.split_last() else { return Ok(()) };
        self.connected()?;
        for one in before {
            let sent = self.connection.publish(one.ack.clone(), "+ACK".into()).await;
            sent.map_err(Error::lost)?;
        }
        self.ask(&format!("{STREAM}/{sink}"), last.ack.clone(), HeaderMap::new(), "+ACK".into()).await.map(drop)
    }

    async fn send(&self, subject: &str, payload: Bytes) -> Result<()> {
        subject::subject(subject)?;
        self.fits(payload.len())?;
        self.connected()?;
        self.connection.publish(subject.to_owned(), payload).await.map_err(Error::lost)
    }

    async fn subscribe(&self, pattern: &str) -> Result<Subscription> {
        subject::pattern(pattern)?;
        self.connected()?;
        let mut refused = self.follower.subscribed(pattern);
        let subscriber = self.connection.subscribe(pattern.to_owned());
        let mut subscriber = subscriber.await.map_err(Error::lost)?;
        // The server works off one client's requests in order: after this one, it has subscribed.
        round_trip(&self.connection, &self.follower, self.timeout).await?;
        if let Ok(error) = refused.try_recv() {
            return Err(error);
        }
        let (sender, messages) = mpsc::channel(1);
        let (refuse, later) = oneshot::channel();
        tokio::spawn(async move {
            loop {
                tokio::select! {
                    () = sender.closed() => return,
                    Ok(error) = &mut refused => {
                        // Whoever subscribed may be gone.
                        let _ = refuse.send(error);
                        return;
                    }
                    next = subscriber.next() => {
                        let Some(next) = next else { return };
                        if sender.send(message(next)).await.is_err() {
                            return;
                        }
                    }
                }
            }
        });
        Ok(Subscription { messages, refused: Some(later) })
    }

    async fn read(&self, bucket: &str, key: &str) -> Result<Option<Entry>> {
        subject::name(bucket)?;
        subject::key(key)?;
        entry(self.ask(bucket, read_subject(bucket, key), HeaderMap::new(), Bytes::new()).await?)
    }

    async fn write(&self, bucket: &str, key: &str, value: Bytes, expected: u64) -> Result<u64> {
        subject::name(bucket)?;
        subject::key(key)?;
        let mut headers = HeaderMap::new();
        headers.insert("Nats-Expected-Last-Subject-Sequence", expected.to_string());
        let answer = self.ask(bucket, write_subject(bucket, key), headers, value).await?;
        Ok(ack(&format!("{bucket}/{key}"), &answer)?.sequence)
    }
}

impl Drop for Client {
    /// The connection ends with the last handle on it.
    fn drop(&mut self) {
        self.following.abort();
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Client").field("condition", &*self.follower.condition().borrow()).finish_non_exhaustive()
    }
}

/// Results, and how many the stream has for this consumer beyond them.
async fn batch(consumer: &PullConsumer, most: usize, wait: Duration) -> Result<(Vec<Delivery>, u64)> {
    // No time at all would mean that the request never ends.
    let expires = wait.max(Duration::from_millis(1));
    let asked = consumer.batch().max_messages(most).expires(expires).messages().await;
    let mut batch = asked.map_err(|_| Error::Unanswered)?;
    let (mut taken, mut left) = (Vec::new(), 0);
    // Why a batch ended early does not matter: what is left comes with the next one.
    while let Some(Ok(next)) = batch.next().await {
        let info = next.info().map_err(|error| Error::Protocol(error.to_string()))?;
        left = info.pending;
        let (sequence, attempt) = (info.stream_sequence, u64::try_from(info.delivered).unwrap_or(1));
        let id = next.headers.as_ref().and_then(|headers| headers.get("Nats-Msg-Id"));
        taken.push(Delivery {
            subject: next.subject.to_string(),
            id: id.map(ToString::to_string).unwrap_or_default(),
            payload: next.payload.clone(),
            sequence,
            attempt,
            ack: next.reply.as_ref().map(ToString::to_string).unwrap_or_default(),
        });
    }
    Ok((taken, left))
}

fn message(message: async_nats::Message) -> Message {
    let revision = message.headers.as_ref().and_then(|headers| number(headers, "Nats-Sequence"));
    Message { subject: message.subject.to_string(), payload: message.payload, revision }
}
