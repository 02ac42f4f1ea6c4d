//! A hub's part, clocks, and measurements that take time and send nothing.

use std::path::PathBuf;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use narrows_agent::{Agent, Bounds, Clock, Limits, Measure, Membership, Outcome, Parts, State, Task};
use narrows_bus::{Bus, Key, Subscription};
use narrows_fleet::clock::Boot;
use narrows_fleet::keys::Name;
use narrows_fleet::lease::{Credential, GUARD, Holder, Place, certified, sealed};
use narrows_fleet::message::{
    Answer, BusAddress, Hop, HubTime, Joined, Order, Peer, Plan, Run, Signed, Status, Stored,
};
use narrows_units::{Stamp, hex};
use serde::Serialize;
use serde_json::json;
use tokio::sync::watch;
use tokio::time::Instant;
use uuid::Uuid;

use crate::memory::Memory;

/// When the tests begin, by the hub's clock.
pub(crate) const BEGAN_MS: i64 = 1_800_000_000_000;

pub(crate) fn name(text: &str) -> Name {
    text.parse().unwrap()
}

pub(crate) fn words(text: &str) -> Vec<String> {
    text.split(' ').map(ToOwned::to_owned).collect()
}

/// Every clock shows the runtime's time, which passes when nobody has anything to do. The wall
/// clock of the host may be set.
#[derive(Clone)]
pub(crate) struct Time(Instant, Arc<AtomicI64>);

impl Clock for Time {
    fn boot(&self) -> Stamp<Boot> {
        Stamp::<Boot>::from_nanos(1_000_000_000) + self.0.elapsed()
    }

    fn unix_ms(&self) -> i64 {
        let set = self.1.load(Ordering::Relaxed);
        BEGAN_MS + set + i64::try_from(self.0.elapsed().as_millis()).unwrap()
    }

    fn error(&self) -> Option<Duration> {
        Some(Duration::from_millis(1))
    }
}

impl Time {
    pub(crate) fn elapsed_ms(&self) -> u128 {
        self.0.elapsed().as_millis()
    }

    /// Somebody sets the wall clock.
    pub(crate) fn step(&self, ms: i64) {
        self.1.fetch_add(ms, Ordering::Relaxed);
    }
}

/// A measurement that was.
#[derive(Debug, Clone)]
pub(crate) struct Sent {
    pub(crate) agent: String,
    pub(crate) words: Vec<String>,
    pub(crate) fence: bool,
    pub(crate) from_ms: u128,
    pub(crate) to_ms: u128,
}

pub(crate) type Log = Arc<Mutex<Vec<Sent>>>;

/// Measures nothing: `rtt` takes 1 s, everything else 5 s.
struct Fake {
    agent: String,
    time: Time,
    log: Log,
}

/// Notes when it ends, also if it is dropped.
struct Sending<'a>(&'a Fake, Sent);

impl Drop for Sending<'_> {
    fn drop(&mut self) {
        self.1.to_ms = self.0.time.0.elapsed().as_millis();
        self.0.log.lock().unwrap().push(self.1.clone());
    }
}

#[async_trait]
impl Measure for Fake {
    async fn run(&self, task: &Task, until: Option<watch::Receiver<Stamp<Boot>>>) -> Outcome {
        let sent = Sent {
            agent: self.agent.clone(),
            words: task.words.clone(),
            fence: task.fence.is_some(),
            from_ms: self.time.0.elapsed().as_millis(),
            to_ms: 0,
        };
        let _sending = Sending(self, sent);
        let length = if task.words[0] == "rtt" { 1_000 } else { 5_000 };
        let length = task
            .words
            .iter()
            .skip_while(|word| *word != "-t")
            .nth(1)
            .map_or(length, |text| 1_000 * text.parse::<u64>().unwrap());
        let end = Instant::now() + Duration::from_millis(length);
        while Instant::now() < end {
            tokio::time::sleep(Duration::from_millis(10)).await;
            // As a child does, whatever becomes of its agent.
            if until.as_ref().is_some_and(|until| self.time.boot() + GUARD >= *until.borrow()) {
                return Outcome { code: Some(1), document: None, said: "its lease ended".to_owned() };
            }
        }
        let document = json!({"metric": "available_ip_capacity", "value": 94_000_000, "low": 93_000_000,
            "high": 95_000_000, "unit": "bit/s", "direction": "forward", "verdict": "estimated", "octets": 1_000});
        Outcome { code: Some(0), document: Some(document), said: String::new() }
    }

    async fn trace(&self, _address: &str) -> Vec<Hop> {
        vec![Hop { address: Some([192, 0, 2, 254].into()) }]
    }
}

/// A fleet without a hub: the tests say what one would.
pub(crate) struct World {
    pub(crate) bus: Memory,
    pub(crate) log: Log,
    pub(crate) time: Time,
    key: Key,
    folder: tempfile::TempDir,
}

impl World {
    pub(crate) fn new() -> Self {
        Self {
            bus: Memory::new(),
            log: Log::default(),
            time: Time(Instant::now(), Arc::default()),
            key: Key::new(),
            folder: tempfile::tempdir().unwrap(),
        }
    }

    pub(crate) fn joined(&self, agent: &str) -> Joined {
        Joined {
            agent: name(agent),
            tenant: name("t"),
            hub_key: self.key.public(),
            bus: BusAddress::Embedded { url: "ws://nowhere".to_owned() },
            lease_generation: 1,
        }
    }

    fn place(&self, agent: &str) -> PathBuf {
        self.folder.path().join(agent)
    }

    pub(crate) fn start(&self, agent: &str) -> Agent {
        self.start_within(agent, Limits::default())
    }

    pub(crate) fn membership(&self, agent: &str) -> Membership {
        Membership { hub: String::new(), key_hash: String::new(), port: 8620, joined: self.joined(agent) }
    }

    pub(crate) fn state(&self, host: &str) -> State {
        State::open(&self.place(host)).unwrap()
    }

    /// Starts an agent, or starts it again on the same folder.
    pub(crate) fn start_within(&self, agent: &str, limits: Limits) -> Agent {
        self.start_on(agent, agent, limits)
    }

    /// The same on the folder of a host that may have been another agent.
    pub(crate) fn start_on(&self, host: &str, agent: &str, limits: Limits) -> Agent {
        let fake = Fake { agent: agent.to_owned(), time: self.time.clone(), log: Arc::clone(&self.log) };
        let parts = Parts {
            state: self.state(host),
            membership: self.membership(agent),
            limits,
            version: "test".to_owned(),
            bus: Arc::new(self.bus.clone()),
            clock: Arc::new(self.time.clone()),
            measure: Arc::new(fake),
            bounds: Bounds::default(),
        };
        Agent::start(parts).unwrap()
    }

    /// A plan for one of these agents, with nothing but the mesh.
    pub(crate) fn plan(&self, agents: &[&str], agent: &str, serial: u64) -> Plan {
        let peers = agents.iter().map(|agent| Peer {
            place: None,
            name: name(agent),
            address: format!("{agent}:8620"),
            site: None,
            keys: Vec::new(),
        });
        Plan {
            schema: Plan::SCHEMA.to_owned(),
            tenant: name("t"),
            agent: name(agent),
            serial,
            made_ms: self.time.unix_ms(),
            not_after_ms: self.time.unix_ms() + 35 * 86_400_000,
            lease_generation: 1,
            certificate: self.certificate(agent),
            bus: None,
            seed: 7,
            mesh_began_ms: BEGAN_MS - 1_000_000,
            place: u32::try_from(agents.iter().position(|one| *one == agent).unwrap()).unwrap(),
            mesh_hosts: None,
            peers: peers.collect(),
            mesh: vec![words("rtt"), words("available")],
            directed: Vec::new(),
            begin_ms: self.time.unix_ms(),
            length_ms: 86_400_000,
            runs: Vec::new(),
            server_keys: Vec::new(),
            denied: Vec::new(),
            stored: Stored::default(),
        }
    }

    /// The hub's word that an agent's key is its own.
    pub(crate) fn certificate(&self, agent: &str) -> String {
        let public_key = self.signer(agent).public();
        hex::to_text(&self.key.sign(&certified(&name("t"), &name(agent), &public_key)))
    }

    /// The key of an agent, also of one that never starts.
    pub(crate) fn signer(&self, agent: &str) -> Key {
        State::open(&self.place(agent)).unwrap().key().unwrap()
    }

    /// An agent's lease of a key over a revision.
    pub(crate) fn lease(&self, agent: &str, key: &str, after: u64) -> Vec<u8> {
        let signer = self.signer(agent);
        let credential = Credential { public_key: signer.public(), certificate: self.certificate(agent) };
        let holder = Holder { agent: name(agent), run: Uuid::from_u128(1) };
        let place = Place { bucket: "lease_1", key: &key.parse().unwrap() };
        sealed(place, holder, after, &credential, |octets| signer.sign(octets))
    }

    /// An order that may begin within two minutes.
    pub(crate) fn order(&self, agent: &str, target: &str, command: &str, serial: u64) -> Order {
        let now_ms = self.time.unix_ms();
        let loads = narrows_fleet::config::loads(&words(command)) == Some(true);
        let hosts = if loads { vec![agent, target] } else { Vec::new() };
        Order {
            schema: Order::SCHEMA.to_owned(),
            tenant: name("t"),
            agent: name(agent),
            id: Uuid::from_u128(u128::from(serial)),
            serial,
            target: name(target),
            peer: None,
            command: words(command),
            beside: None,
            keys: hosts.iter().map(|host| format!("host.{host}").parse().unwrap()).collect(),
            at_ms: now_ms,
            not_after_ms: now_ms + 120_000,
            length_ms: 60_000,
            octets: 1_000_000,
        }
    }

    pub(crate) fn sign(&self, message: &impl Serialize) -> Signed {
        let message = serde_json::to_string(message).unwrap();
        let signature = self.key.sign(message.as_bytes());
        Signed { message, signature: hex::to_text(&signature) }
    }

    /// "a" and "b" are peers; "a" runs nothing but what it is ordered.
    pub(crate) fn plan_of_orders(&self) -> Plan {
        Plan { mesh: Vec::new(), ..self.plan(&["a", "b"], "a", 1) }
    }

    pub(crate) async fn give(&self, plan: &Plan) {
        self.give_signed(plan.agent.as_str(), &self.sign(plan)).await;
    }

    pub(crate) async fn give_signed(&self, agent: &str, signed: &Signed) {
        self.bus.put("plan", agent, serde_json::to_vec(signed).unwrap()).await;
    }

    pub(crate) async fn say(&self, order: &Order) {
        let text = serde_json::to_vec(&self.sign(order)).unwrap();
        self.bus.send(&format!("order.{}", order.agent), text.into()).await.unwrap();
    }

    pub(crate) async fn stored(&self, agent: &str, ranges: &[(u64, u64)]) {
        let text = serde_json::to_vec(&Stored { ranges: ranges.to_vec() }).unwrap();
        self.bus.send(&format!("stored.{agent}"), text.into()).await.unwrap();
    }

    /// Answers the next status of an agent with this time of the hub.
    pub(crate) async fn answer(&self, statuses: &mut Subscription, hub_ms: i64) {
        let status = until(statuses, |_| true).await;
        let time = HubTime {
            schema: HubTime::SCHEMA.to_owned(),
            tenant: name("t"),
            agent: status.agent.clone(),
            asked_ms: status.at_ms,
            hub_ms,
        };
        let answer = Answer { stored: Stored::default(), time: Some(self.sign(&time)) };
        let text = serde_json::to_vec(&answer).unwrap();
        self.bus.send(&format!("stored.{}", status.agent), text.into()).await.unwrap();
    }

    /// What the agent says of itself from now on.
    pub(crate) async fn statuses(&self, agent: &str) -> Subscription {
        self.bus.subscribe(&format!("status.{agent}")).await.unwrap()
    }

    /// The same, with the bus back.
    pub(crate) async fn statuses_later(&self, agent: &str) -> Subscription {
        self.bus.comes("1");
        self.statuses(agent).await
    }

    /// The runs of an agent by its sequence.
    pub(crate) fn runs(&self, agent: &str) -> Vec<Run> {
        let all = self.bus.results().into_iter().map(|(run, _)| run);
        let mut runs: Vec<Run> = all.filter(|run| run.agent.as_str() == agent).collect();
        runs.sort_by_key(|run| run.seq);
        runs
    }
}

/// The next status that is as wanted; an hour is more than enough.
pub(crate) async fn until(statuses: &mut Subscription, mut wanted: impl FnMut(&Status) -> bool) -> Status {
    let found = async {
        loop {
            let message = statuses.next().await.unwrap();
            let status: Status = serde_json::from_slice(&message.payload).unwrap();
            if wanted(&status) {
                return status;
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(3_600), found).await.expect("it never came")
}

/// Lets time pass.
pub(crate) async fn pass(seconds: u64) {
    tokio::time::sleep(Duration::from_secs(seconds)).await;
}
