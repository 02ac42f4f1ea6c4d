//! Takes notices from the outbox to their channels, each channel in a thread of its own.

mod plan;

use std::collections::BTreeMap;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use narrows_watch::WallTime;

use self::plan::{Delivery, Outcome, Plan};
use crate::body::NoticeBody;
use crate::error::SendError;
use crate::outbox::{Outbox, OutboxError};
use crate::send::Deliver;

/// What became of the newest attempt of a channel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// When the answer came.
    pub at: WallTime,
    /// What the peer said, or what went wrong.
    pub result: Result<String, SendError>,
}

/// How a channel fares.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ChannelStatus {
    /// The newest answer.
    pub last: Option<Answer>,
    /// Notices that were delivered.
    pub delivered: u64,
    /// Attempts in vain.
    pub failed: u64,
    /// Notices that were given up after 24 hours.
    pub undelivered: u64,
}

/// How all of them fare.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Status {
    /// By the channel's name.
    pub channels: BTreeMap<String, ChannelStatus>,
    /// Why the outbox cannot be used now.
    pub outbox: Option<OutboxError>,
}

/// The thread that empties the outbox.
pub struct Worker {
    outbox: Arc<dyn Outbox>,
    inbox: Sender<Message>,
    status: Arc<Mutex<Status>>,
    thread: Option<JoinHandle<()>>,
}

impl std::fmt::Debug for Worker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Worker").field("status", &self.status).finish_non_exhaustive()
    }
}

enum Message {
    /// Something changed: time, or the outbox.
    Look,
    /// A notice that was pushed, or that was on its way when the program ended.
    Noted(String, Box<NoticeBody>, WallTime),
    /// A notice that the outbox did not take.
    Unsaved(String, Box<NoticeBody>),
    /// A thread has tried.
    Tried(Box<Delivery>, Result<String, SendError>),
    /// Other settings.
    Use(Arc<dyn Deliver>),
    Stop,
}

impl Worker {
    /// Begins with what the outbox holds. `clock` tells the time of day.
    pub fn start(
        outbox: Arc<dyn Outbox>,
        deliver: Arc<dyn Deliver>,
        clock: impl Fn() -> WallTime + Send + 'static,
    ) -> std::io::Result<Self> {
        let (inbox, messages) = mpsc::channel();
        let status = Arc::new(Mutex::new(Status::default()));
        let desk = Desk {
            outbox: Arc::clone(&outbox),
            deliver,
            clock: Box::new(clock),
            plan: Plan::default(),
            threads: BTreeMap::new(),
            inbox: inbox.clone(),
            status: Arc::clone(&status),
        };
        let thread = thread::Builder::new().name("notify".to_owned()).spawn(move || desk.run(&messages))?;
        Ok(Self { outbox, inbox, status, thread: Some(thread) })
    }

    /// Takes a notice for a channel. It is safe once this returns. After an error it is tried once
    /// all the same: a full disk is no reason to say nothing.
    pub fn push(&self, channel: &str, body: &NoticeBody, now: WallTime) -> Result<(), OutboxError> {
        let text = serde_json::to_string(body).map_err(|error| OutboxError(error.to_string()))?;
        let pushed = self.outbox.push(channel, &text, now).map(drop);
        if pushed.is_err() {
            self.say(Message::Unsaved(channel.to_owned(), Box::new(body.clone())));
        }
        self.still(channel, body, now);
        pushed
    }

    /// Says that an alert fires since before the program began: a channel that wants it again each
    /// minute gets it again.
    pub fn still(&self, channel: &str, body: &NoticeBody, now: WallTime) {
        self.say(Message::Noted(channel.to_owned(), Box::new(body.clone()), now));
    }

    /// Goes on with other channels. What is on its way goes on by the old ones.
    pub fn reload(&self, deliver: Arc<dyn Deliver>) {
        self.say(Message::Use(deliver));
    }

    /// Looks at time and outbox again.
    pub fn wake(&self) {
        self.say(Message::Look);
    }

    /// How the channels fare.
    pub fn status(&self) -> Status {
        locked(&self.status).clone()
    }

    /// Ends within a second. What is on its way then stays in the outbox.
    pub fn stop(mut self) {
        self.end();
    }

    fn say(&self, message: Message) {
        // The thread ends by `Stop` alone, and nobody can call this afterwards.
        let _ = self.inbox.send(message);
    }

    fn end(&mut self) {
        self.say(Message::Stop);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        if self.thread.is_some() {
            self.end();
        }
    }
}

fn locked(status: &Mutex<Status>) -> MutexGuard<'_, Status> {
    status.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What the worker's thread has.
struct Desk {
    outbox: Arc<dyn Outbox>,
    deliver: Arc<dyn Deliver>,
    clock: Box<dyn Fn() -> WallTime + Send>,
    plan: Plan,
    threads: BTreeMap<String, Sender<Work>>,
    inbox: Sender<Message>,
    status: Arc<Mutex<Status>>,
}

/// One attempt, and by what.
struct Work {
    deliver: Arc<dyn Deliver>,
    delivery: Delivery,
    now: WallTime,
}

impl Desk {
    fn run(mut self, messages: &Receiver<Message>) {
        loop {
            let now = (self.clock)();
            let looked = self.look(now);
            locked(&self.status).outbox = looked.err();
            match messages.recv_timeout(self.plan.wait(now)) {
                Ok(Message::Stop) => return self.finish(messages),
                Ok(message) => self.take(message),
                Err(RecvTimeoutError::Timeout) => {}
                // `self.inbox` is a sender: this cannot be.
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    }

    fn look(&mut self, now: WallTime) -> Result<(), OutboxError> {
        let settled = self.settle();
        let due = self.outbox.due(now);
        for delivery in self.plan.ready(due.clone().unwrap_or_default(), now) {
            self.hand_out(delivery, now);
        }
        due.and(settled)
    }

    /// Writes what became of notices. What cannot be written is kept, so that nothing is sent twice
    /// for that.
    fn settle(&mut self) -> Result<(), OutboxError> {
        let mut all = Ok(());
        for (id, outcome) in self.plan.unsettled() {
            let written = match outcome {
                Outcome::Retry(due) => self.outbox.retry(id, due),
                Outcome::Done(at) => self.outbox.done(id, at),
                Outcome::GivenUp(of) => self.outbox.give_up(&of),
            };
            match written {
                Ok(()) => self.plan.settled(id),
                Err(error) => all = Err(error),
            }
        }
        all
    }

    fn hand_out(&mut self, delivery: Delivery, now: WallTime) {
        let channel = delivery.channel.clone();
        let work = Work { deliver: Arc::clone(&self.deliver), delivery, now };
        let work = match self.threads.get(&channel) {
            Some(thread) => thread.send(work).map_err(|unsent| unsent.0),
            None => Err(work),
        };
        let Err(work) = work else { return };
        match begin(&channel, self.inbox.clone()) {
            Ok(thread) => {
                // A thread that has just begun listens.
                let _ = thread.send(work);
                self.threads.insert(channel, thread);
            }
            Err(error) => {
                let why = SendError::Program(format!("no thread: {error}"));
                self.tried(work.delivery, Err(why));
            }
        }
    }

    fn take(&mut self, message: Message) {
        match message {
            Message::Noted(channel, body, now) => {
                let repeats = self.deliver.repeats(&channel);
                self.plan.noted(&channel, *body, repeats, now);
            }
            Message::Unsaved(channel, body) => self.plan.unsaved(channel, *body),
            Message::Tried(delivery, result) => self.tried(*delivery, result),
            Message::Use(deliver) => self.deliver = deliver,
            Message::Look | Message::Stop => {}
        }
    }

    fn tried(&mut self, delivery: Delivery, result: Result<String, SendError>) {
        let now = (self.clock)();
        let is_undelivered = self.plan.tried(&delivery, result.as_ref().err(), now);
        let status = &mut *locked(&self.status);
        let channel = status.channels.entry(delivery.channel).or_default();
        match &result {
            Ok(_) => channel.delivered += 1,
            Err(_) => channel.failed += 1,
        }
        channel.undelivered += u64::from(is_undelivered);
        channel.last = Some(Answer { at: now, result });
    }

    /// Answers that come at once still count; nothing else is waited for.
    fn finish(mut self, messages: &Receiver<Message>) {
        self.deliver.stop();
        for _ in 0..GRACE_SLICES {
            if !self.plan.is_busy() {
                break;
            }
            if let Ok(message @ Message::Tried(..)) = messages.recv_timeout(GRACE_SLICE) {
                self.take(message);
            }
        }
        let settled = self.settle();
        locked(&self.status).outbox = settled.err();
    }
}

/// The thread of a channel: it ends with the worker.
fn begin(channel: &str, inbox: Sender<Message>) -> std::io::Result<Sender<Work>> {
    let (sender, work) = mpsc::channel::<Work>();
    thread::Builder::new().name(format!("notify-{channel}")).spawn(move || {
        for Work { deliver, delivery, now } in work {
            let result = deliver.send(&delivery.channel, &delivery.body, now);
            if inbox.send(Message::Tried(Box::new(delivery), result)).is_err() {
                return;
            }
        }
    })?;
    Ok(sender)
}

const GRACE_SLICE: Duration = Duration::from_millis(50);
const GRACE_SLICES: usize = 10;

#[cfg(test)]
mod tests;
