//! Leases: one agent takes six keys that nobody else wants and gives them back, as a loading run
//! does. Two of them are hosts, whose agents hear of each write.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use narrows_bus::{Bus, Error, Key};
use narrows_fleet::clock::Boot;
use narrows_fleet::keys::Key as LeaseKey;
use narrows_fleet::lease::{Action, Credential, Event, KeyState, Lessee, Place, RequestId, Want, sealed};
use narrows_fleet::message::{Plan, Signed};
use narrows_units::Stamp;
use tokio::task::JoinSet;
use uuid::Uuid;

use crate::agents::Agent;
use crate::{figure, now, quantiles};

const BUCKET: &str = "lease_1";

/// How long it took to get all keys, and what that is made of.
#[derive(Default)]
pub(crate) struct Times {
    all: Vec<Duration>,
    /// The reads go out together: until the last of them is answered.
    reads: Vec<Duration>,
    /// Each write waits for the one before.
    writes: Vec<Duration>,
    /// Tries that found a key taken or a write refused; there is nobody who could.
    pub(crate) backed_off: u32,
}

impl Times {
    /// One figure a step.
    pub(crate) fn figures(self) {
        figure("lease of six keys", quantiles(self.all));
        figure("of it, reads of the keys", quantiles(self.reads));
        figure("of it, each of six writes", quantiles(self.writes));
    }
}

/// Takes keys until the time is over. Nothing is taken within 15 s of the first connection.
pub(crate) async fn takes([agent, target]: [Arc<Agent>; 2], signer: Key, time: Duration) -> Times {
    let (began, bus) = (now(), &agent.bus);
    let credential = Credential { public_key: signer.public(), certificate: certificate(&agent).await };
    let clock = || Stamp::<Boot>::from_nanos(i64::try_from(began.elapsed().as_nanos()).unwrap());
    let mut lessee = Lessee::new(agent.name.clone(), 7);
    let connected = Event::Connected { server: "one".to_owned() };
    drop(lessee.handle(connected, clock()));
    let mut times = Times::default();
    let mut open: JoinSet<Option<Event>> = JoinSet::new();
    let keys = keys([&agent, &target]);
    tokio::time::sleep(WAIT).await;
    while began.elapsed() < time.max(WAIT + Duration::from_secs(5)) {
        let (run, start_by, asked) = (Uuid::now_v7(), clock() + Duration::from_secs(60), now());
        let want = Want { run, keys: keys.clone(), start_by, after_new_bus: Duration::ZERO };
        let mut actions = lessee.take(want, clock()).unwrap_or_default();
        let mut started = false;
        let mut sent = BTreeMap::new();
        let mut reads = 0;
        // Until the keys are given back too.
        loop {
            for action in actions.drain(..) {
                match action {
                    Action::Read { request, key } => {
                        reads += 1;
                        open.spawn(read(Arc::clone(bus), request, key));
                    }
                    Action::Write { request, key, expected, holder } => {
                        if holder.is_some() {
                            sent.insert(request, now());
                        }
                        let value = holder.map_or(NOBODY, |holder| {
                            let place = Place { bucket: BUCKET, key: &key };
                            sealed(place, holder, expected, &credential, |octets| signer.sign(octets)).into()
                        });
                        open.spawn(write(Arc::clone(bus), request, key, value, expected));
                    }
                    Action::Start => {
                        times.all.push(asked.elapsed());
                        started = true;
                    }
                    Action::Stop(_) | Action::BackedOff { .. } | Action::Skipped { .. } => times.backed_off += 1,
                }
            }
            if started && open.is_empty() {
                actions.extend(lessee.handle(Event::Finished, clock()));
                if actions.is_empty() {
                    break;
                }
                continue;
            }
            let event = tokio::select! {
                Some(Ok(event)) = open.join_next() => event.unwrap_or(Event::Tick),
                () = tokio::time::sleep(Duration::from_millis(100)) => Event::Tick,
            };
            match &event {
                Event::Read { .. } => {
                    reads -= 1;
                    if reads == 0 && !started {
                        times.reads.push(asked.elapsed());
                    }
                }
                Event::Accepted { request, .. } if !started => {
                    times.writes.extend(sent.remove(request).map(|sent| sent.elapsed()));
                }
                _ => {}
            }
            actions.extend(lessee.handle(event, clock()));
        }
    }
    times
}

/// What a run between two hosts takes: both of them, and four links.
fn keys(hosts: [&Agent; 2]) -> Vec<LeaseKey> {
    let hosts = hosts.map(|host| format!("host.{}", host.name));
    let links = (0..4).map(|link| format!("link.{link}.0"));
    hosts.into_iter().chain(links).map(|key| key.parse().unwrap()).collect()
}

async fn read(bus: Arc<dyn Bus>, request: RequestId, key: LeaseKey) -> Option<Event> {
    let entry = bus.read(BUCKET, &key.to_string()).await.ok()?;
    let (revision, value) = entry.map_or((0, NOBODY), |entry| (entry.revision, entry.value));
    // Nobody else takes these keys.
    let state = if value == NOBODY { KeyState::Free } else { KeyState::Unproven };
    Some(Event::Read { request, revision, state })
}

async fn write(bus: Arc<dyn Bus>, request: RequestId, key: LeaseKey, value: Bytes, expected: u64) -> Option<Event> {
    match bus.write(BUCKET, &key.to_string(), value, expected).await {
        Ok(revision) => Some(Event::Accepted { request, revision }),
        Err(Error::Conflict(_)) => Some(Event::Refused { request }),
        Err(_) => None,
    }
}

/// What the hub says of the agent's key, in its plan.
async fn certificate(agent: &Agent) -> String {
    let entry = agent.bus.read("plan", agent.name.as_str()).await.unwrap().unwrap();
    let signed: Signed = serde_json::from_slice(&entry.value).unwrap();
    serde_json::from_str::<Plan>(&signed.message).unwrap().certificate
}

/// The value of a key that is free.
const NOBODY: Bytes = Bytes::from_static(b"null");
/// What a lessee waits before it takes something from a bus that it does not know.
const WAIT: Duration = Duration::from_secs(16);
