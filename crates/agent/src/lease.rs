//! Leases over the bus: the task that feeds `fleet::lease::Lessee` and carries out its actions.
//!
//! Each key is one of the bucket `lease_<generation>`; its value is null, or a lease that this
//! agent signed. What others wrote counts only if they signed it.

mod feed;

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use narrows_bus::{Bus, Condition, Error, Key as Signer};
use narrows_fleet::clock::Boot;
use narrows_fleet::keys::{Key, Name};
use narrows_fleet::lease::{
    ANSWER_WITHIN, Action, Credential, Event, Lessee, Obstacle, Place, RequestId, Stopped, Verifier, Want, sealed,
};
use narrows_fleet::message::Joined;
use narrows_units::Stamp;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinSet;
use uuid::Uuid;

use self::feed::{Feeds, Update};
use crate::clock::Clock;

/// How a run stands that wants its keys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Standing {
    /// It waits for its keys.
    Waiting,
    /// It may send until then, or until this changes.
    Sending(Stamp<Boot>),
    /// It never began. `None`: the bus did not answer.
    Skipped(Option<Obstacle>),
    /// It has to stop at once.
    Stopped(Stopped),
}

/// Who loads this host, by which revision.
pub(crate) type Loading = Option<(Uuid, u64)>;

/// What the rest of the agent sees of it.
#[derive(Clone)]
pub(crate) struct Leases {
    agent: Name,
    lessee: Arc<Mutex<Lessee>>,
    clock: Arc<dyn Clock>,
    commands: mpsc::Sender<Command>,
    loading: watch::Receiver<Loading>,
}

enum Command {
    Take(Want, watch::Sender<Standing>),
    Finish,
    /// Listens to this key beside, and says when it is known who has it.
    Watch(Key, oneshot::Sender<()>),
    /// Leases are in this bucket from now on, and this certifies the agent's key.
    Bucket(String, String),
}

/// What the bus answered.
enum Answer {
    Event(Event),
    /// The value of a key at a revision, as it is there.
    Value(RequestId, Key, u64, Bytes),
}

/// The task itself.
pub(crate) struct Driver {
    leases: Leases,
    bus: Arc<dyn Bus>,
    commands: mpsc::Receiver<Command>,
    loading: watch::Sender<Loading>,
    bucket: String,
    signer: Signer,
    /// The hub's word that the signer is this agent; empty until a plan says it.
    certificate: String,
    verifier: Verifier,
    /// The connection that stands, by its number.
    connection: Option<u64>,
    open: JoinSet<(u64, Option<Answer>)>,
    run: Option<watch::Sender<Standing>>,
    /// The keys of that run.
    keys: Vec<Key>,
    /// The target of the newest light run, and who waits until it is known.
    watched: Option<Key>,
    waits: Option<oneshot::Sender<()>>,
    feeds: Feeds,
    seen: mpsc::Receiver<Update>,
}

impl Leases {
    /// Together with the task, which has to run.
    pub(crate) fn new(joined: &Joined, signer: Signer, bus: Arc<dyn Bus>, clock: Arc<dyn Clock>) -> (Self, Driver) {
        let agent = joined.agent.clone();
        let (sender, commands) = mpsc::channel(8);
        let (loading, loads) = watch::channel(None);
        let lessee = Arc::new(Mutex::new(Lessee::new(agent.clone(), crate::chance::seed())));
        let leases = Self { agent, lessee, clock, commands: sender, loading: loads };
        let (feeds, seen) = Feeds::new(Arc::clone(&bus));
        let driver = Driver {
            leases: leases.clone(),
            bus,
            commands,
            loading,
            bucket: format!("lease_{}", joined.lease_generation),
            signer,
            certificate: String::new(),
            verifier: Verifier::new(joined.tenant.clone(), joined.hub_key.clone(), narrows_bus::verifies),
            connection: None,
            open: JoinSet::new(),
            run: None,
            keys: Vec::new(),
            watched: None,
            waits: None,
            feeds,
            seen,
        };
        (leases, driver)
    }

    /// Begins to take the keys of a run. One at a time.
    pub(crate) async fn take(&self, want: Want) -> watch::Receiver<Standing> {
        let (sender, standing) = watch::channel(Standing::Waiting);
        // Without its task the agent is about to end, and the run stays where it is.
        let _ = self.commands.send(Command::Take(want, sender)).await;
        standing
    }

    /// Gives the keys back.
    pub(crate) async fn finish(&self) {
        let _ = self.commands.send(Command::Finish).await;
    }

    /// From now on [`Self::loaded`] knows of this host beside the agent's own. Returns when it
    /// does, or when the bus does not say so in time.
    pub(crate) async fn watch(&self, host: &Name) {
        let (sender, known) = oneshot::channel();
        let _ = self.commands.send(Command::Watch(Key::Host(host.clone()), sender)).await;
        let _ = tokio::time::timeout(ANSWER_WITHIN, known).await;
    }

    /// Leases are in this bucket from now on, and this certifies the agent's key.
    pub(crate) async fn bucket(&self, name: String, certificate: String) {
        let _ = self.commands.send(Command::Bucket(name, certificate)).await;
    }

    /// The fence of the run under way, as the owner of this key sees it.
    pub(crate) fn revision(&self, key: &Key) -> Option<u64> {
        self.lessee().revision(key)
    }

    /// Whether another agent's run loads one of these keys now; `beside` is one that may.
    pub(crate) fn loaded(&self, keys: &[Key], beside: Option<&Name>) -> bool {
        let (lessee, now) = (self.lessee(), self.clock.boot());
        let other = |agent: &Name| *agent != self.agent && Some(agent) != beside;
        keys.iter().any(|key| lessee.shown(key, now).is_some_and(|(holder, _)| other(&holder.agent)))
    }

    /// Who loads this host.
    pub(crate) fn loading(&self) -> watch::Receiver<Loading> {
        self.loading.clone()
    }

    fn lessee(&self) -> MutexGuard<'_, Lessee> {
        self.lessee.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Driver {
    /// Until it is dropped.
    pub(crate) async fn run(mut self) {
        let mut condition = self.bus.condition();
        let own = Key::Host(self.leases.agent.clone());
        loop {
            let now = condition.borrow_and_update().clone();
            self.follow(&now);
            let wanted: BTreeSet<Key> = [&own].into_iter().chain(&self.watched).chain(&self.keys).cloned().collect();
            self.feeds.keep(&self.bucket, &wanted);
            let due = self.leases.lessee().due();
            let wait = due.map_or(LOOK, |due| due.since(self.leases.clock.boot()).min(LOOK));
            tokio::select! {
                biased;
                _ = condition.changed() => {}
                Some(command) = self.commands.recv() => self.command(command),
                Some(Ok((connection, answer))) = self.open.join_next() => {
                    if let Some(answer) = answer.filter(|_| self.connection == Some(connection)) {
                        self.answered(answer);
                    }
                }
                Some(seen) = self.seen.recv() => {
                    // It may be of a connection of which we have not heard.
                    let now = condition.borrow().clone();
                    self.follow(&now);
                    self.seen(seen);
                }
                () = tokio::time::sleep(wait) => self.handle(Event::Tick),
            }
        }
    }

    /// Connections that come and go.
    fn follow(&mut self, now: &Condition) {
        let connection = now.server.as_ref().map(|_| now.connections);
        if connection == self.connection {
            return;
        }
        self.connection = connection;
        if connection.is_none() {
            self.waits = None;
        }
        match &now.server {
            // Revisions of one bucket say nothing of another one.
            Some(server) => self.handle(Event::Connected { server: format!("{server} {}", self.bucket) }),
            None => self.handle(Event::Disconnected),
        }
    }

    fn command(&mut self, command: Command) {
        match command {
            Command::Take(want, standing) => {
                let now = self.leases.clock.boot();
                self.keys.clone_from(&want.keys);
                let actions = self.leases.lessee().take(want, now);
                self.run = Some(standing);
                match actions {
                    Some(actions) => self.act(actions),
                    // Another run is not over: the caller did not keep to one at a time.
                    None => self.over(Standing::Skipped(None)),
                }
            }
            Command::Finish => {
                self.run = None;
                self.keys.clear();
                self.handle(Event::Finished);
            }
            Command::Watch(key, sender) => {
                // Whoever waits without a connection would wait in vain.
                self.waits = Some(sender).filter(|_| self.connection.is_some() && !self.feeds.knows(&key));
                self.watched = Some(key);
            }
            Command::Bucket(bucket, certificate) => {
                self.certificate = certificate;
                if bucket != self.bucket {
                    self.bucket = bucket;
                    self.feeds.forget();
                    // The next look at the condition connects anew.
                    self.connection = None;
                    self.handle(Event::Disconnected);
                }
            }
        }
    }

    fn seen(&mut self, seen: Update) {
        let Update { connection, key, revision, value } = seen;
        if self.connection != Some(connection) {
            return;
        }
        let state = self.verifier.state(Place { bucket: &self.bucket, key: &key }, revision, &value);
        self.feeds.note(&key);
        let is_watched = self.watched.as_ref() == Some(&key);
        self.handle(Event::Republished { key, revision, state });
        if is_watched {
            // To drop it is to say so: whoever waits may look now.
            self.waits = None;
        }
    }

    fn answered(&mut self, answer: Answer) {
        let event = match answer {
            Answer::Event(event) => event,
            Answer::Value(request, key, revision, value) => {
                let state = self.verifier.state(Place { bucket: &self.bucket, key: &key }, revision, &value);
                Event::Read { request, revision, state }
            }
        };
        self.handle(event);
    }

    fn handle(&mut self, event: Event) {
        let now = self.leases.clock.boot();
        let actions = self.leases.lessee().handle(event, now);
        self.act(actions);
    }

    fn act(&mut self, actions: Vec<Action>) {
        for action in actions {
            match action {
                Action::Read { request, key } => {
                    self.ask(move |bus, bucket| async move {
                        let entry = bus.read(&bucket, &key.to_string()).await.ok()?;
                        let (revision, value) = entry.map_or((0, NOBODY), |entry| (entry.revision, entry.value));
                        Some(Answer::Value(request, key, revision, value))
                    });
                }
                Action::Write { request, key, expected, holder } => {
                    let value = holder.map_or(NOBODY, |holder| {
                        let place = Place { bucket: &self.bucket, key: &key };
                        let (public_key, certificate) = (self.signer.public(), self.certificate.clone());
                        let credential = Credential { public_key, certificate };
                        sealed(place, holder, expected, &credential, |octets| self.signer.sign(octets)).into()
                    });
                    self.ask(move |bus, bucket| async move {
                        match bus.write(&bucket, &key.to_string(), value, expected).await {
                            Ok(revision) => Some(Answer::Event(Event::Accepted { request, revision })),
                            Err(Error::Conflict(_)) => Some(Answer::Event(Event::Refused { request })),
                            // Whether it happened is unknown; the lessee reads again in time.
                            Err(_) => None,
                        }
                    });
                }
                // Both are in the standing below.
                Action::Start | Action::BackedOff { .. } => {}
                Action::Stop(why) => self.over(Standing::Stopped(why)),
                Action::Skipped { obstacle } => self.over(Standing::Skipped(obstacle)),
            }
        }
        let (until, loading) = {
            let (lessee, now) = (self.leases.lessee(), self.leases.clock.boot());
            let host = Key::Host(self.leases.agent.clone());
            (lessee.send_until(), lessee.shown(&host, now).map(|(holder, revision)| (holder.run, revision)))
        };
        if let (Some(until), Some(run)) = (until, &self.run) {
            run.send_if_modified(|standing| std::mem::replace(standing, Standing::Sending(until)) != *standing);
        }
        self.loading.send_if_modified(|last| std::mem::replace(last, loading) != loading);
    }

    fn over(&mut self, standing: Standing) {
        self.keys.clear();
        if let Some(run) = self.run.take() {
            run.send_replace(standing);
        }
    }

    /// Asks the bus on the connection that stands now, or not at all.
    fn ask<F>(&mut self, call: impl FnOnce(Arc<dyn Bus>, String) -> F + Send + 'static)
    where
        F: Future<Output = Option<Answer>> + Send,
    {
        let Some(connection) = self.connection else { return };
        let (bus, bucket) = (Arc::clone(&self.bus), self.bucket.clone());
        self.open.spawn(async move {
            if bus.condition().borrow().connections != connection {
                return (connection, None);
            }
            (connection, call(bus, bucket).await)
        });
    }
}

/// The value of a key that is free.
const NOBODY: Bytes = Bytes::from_static(b"null");

/// What ends by time alone, such as a holder that renews no more, is noticed after this.
const LOOK: Duration = Duration::from_secs(2);
