//! A hub, and agents that are nothing but clients of its bus.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use narrows_bus::embedded::{Address, Client, Limits, Server};
use narrows_bus::{Bus, Condition, Key, Message, Subscription, verifies};
use narrows_fleet::keys::Name;
use narrows_fleet::message::{
    BusAddress, Claim, Direction, Exit, Flag, Hop, Join, Joined, Origin, Plan, Run, Signed, Status, Stored, Value,
};
use narrows_hub::{Channels, Directory, Hub, Keys, Parts};
use narrows_record::Record;
use narrows_units::Metric;
use narrows_watch::Zone;
use serde::de::DeserializeOwned;
use tokio::net::TcpListener;
use uuid::Uuid;

/// Nothing takes that long, unless it never comes.
const NEVER: Duration = Duration::from_secs(60);

/// Monday, 23 November 2026.
pub(crate) const BEGIN: i64 = 1_795_392_000_000;
pub(crate) const MINUTE: i64 = 60_000;
pub(crate) const HOUR: i64 = 60 * MINUTE;

/// A hub whose steps the test makes.
pub(crate) struct World {
    pub(crate) hub: Arc<Hub>,
    pub(crate) record: Arc<dyn Record>,
    pub(crate) bus: Arc<dyn Bus>,
    pub(crate) news: News,
    now: Arc<AtomicI64>,
    listen: SocketAddr,
    server: Server,
    directory: Directory,
    folder: tempfile::TempDir,
    statuses: Subscription,
    channels: Channels,
}

/// A member of the fleet.
pub(crate) struct Agent {
    pub(crate) joined: Joined,
    pub(crate) bus: Client,
    pub(crate) key: Key,
    seq: u64,
}

pub(crate) fn name(text: &str) -> Name {
    text.parse().unwrap()
}

/// Waits for something that must come.
pub(crate) async fn soon<T>(what: impl Future<Output = T>) -> T {
    tokio::time::timeout(NEVER, what).await.expect("it never came")
}

pub(crate) async fn until(bus: &dyn Bus, wanted: impl FnMut(&Condition) -> bool) {
    let mut condition = bus.condition();
    soon(condition.wait_for(wanted)).await.unwrap();
}

type News = Arc<Mutex<Vec<(&'static str, serde_json::Value)>>>;

fn parts(
    folder: &tempfile::TempDir,
    (record, bus, directory, server): (&Arc<dyn Record>, Arc<dyn Bus>, Directory, Server),
    url: &str,
    now: &Arc<AtomicI64>,
    (news, channels): (&News, &Channels),
) -> Parts {
    let (clock, heard) = (Arc::clone(now), Arc::clone(news));
    Parts {
        keys: Keys::open(&folder.path().join("state"), &["127.0.0.1".to_owned()]).unwrap(),
        record: Arc::clone(record),
        bus,
        left: None,
        directory,
        bus_address: BusAddress::Embedded { url: url.to_owned() },
        lease_generation: 1,
        bus_octets: 20_000_000_000,
        tenant: name("default"),
        own_host: "10.0.0.1".parse().unwrap(),
        url: "https://10.0.0.1:8622".to_owned(),
        channels: channels.clone(),
        zone: Zone::fixed(0),
        clock: Arc::new(move || clock.load(Ordering::Relaxed)),
        tokens: None,
        tell: Arc::new(move |kind, text| heard.lock().unwrap().push((kind, serde_json::from_str(&text).unwrap()))),
        cut: Arc::new(move |key| {
            server.cut(key);
        }),
    }
}

impl World {
    pub(crate) async fn new() -> Self {
        Self::with(Channels::default()).await
    }

    /// With channels.
    pub(crate) async fn with(channels: Channels) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let url = format!("sqlite:{}", folder.path().join("hub.db").display());
        let record = narrows_record::open(&url).await.unwrap();
        // The same timetables in each run of a test.
        let mesh = serde_json::json!({ "seed": 7, "began_ms": BEGIN });
        record.set_setting("mesh", &mesh.to_string()).await.unwrap();
        let directory = Directory::default();
        let server =
            Server::open(&folder.path().join("bus.db"), directory.admission("lease_1"), Limits::default()).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let listen = listener.local_addr().unwrap();
        let serving = server.clone();
        tokio::spawn(async move { serving.serve(listener, None).await });
        let bus: Arc<dyn Bus> = Arc::new(server.local());
        until(&*bus, |now| now.server.is_some()).await;
        let (now, news) = (Arc::new(AtomicI64::new(BEGIN)), Arc::new(Mutex::default()));
        let statuses = bus.subscribe("status.*").await.unwrap();
        let url = format!("ws://{listen}/bus");
        let known = directory.clone();
        let parts = parts(&folder, (&record, Arc::clone(&bus), known, server.clone()), &url, &now, (&news, &channels));
        let hub = Hub::open(parts).await.unwrap();
        Self { hub, record, bus, news, now, listen, server, directory, folder, statuses, channels }
    }

    /// Another process of the hub, over the same bus and record.
    pub(crate) async fn restart(&mut self) {
        // The server is the same, and asks the same directory.
        let (directory, bus): (_, Arc<dyn Bus>) = (self.directory.clone(), Arc::new(self.server.local()));
        until(&*bus, |now| now.server.is_some()).await;
        let url = format!("ws://{}/bus", self.listen);
        let held = (&self.record, bus, directory, self.server.clone());
        let parts = parts(&self.folder, held, &url, &self.now, (&self.news, &self.channels));
        self.hub = Hub::open(parts).await.unwrap();
    }

    pub(crate) fn now(&self) -> i64 {
        self.now.load(Ordering::Relaxed)
    }

    pub(crate) fn pass(&self, ms: i64) {
        self.now.fetch_add(ms, Ordering::Relaxed);
    }

    pub(crate) async fn join(&self, wanted: &str, labels: &[(&str, &str)]) -> Agent {
        let token = self.hub.token(1, "test").await.unwrap();
        let key = Key::new();
        let join = request(wanted, &token.to_string(), &key, labels);
        let joined = self.hub.join(&join, "10.0.0.7".parse().unwrap()).await.unwrap();
        let bus = self.connect(&key);
        until(&bus, |now| now.server.is_some()).await;
        Agent::new(joined, bus, key)
    }

    pub(crate) fn connect(&self, key: &Key) -> Client {
        let address = Address { url: format!("ws://{}/bus", self.listen), tls: None };
        Client::connect(address, key.clone(), Limits::default())
    }

    /// Three agents, with plans.
    pub(crate) async fn fleet(&self, names: [&str; 3]) -> [Agent; 3] {
        let [a, b, c] = names;
        let all = [self.join(a, &[]).await, self.join(b, &[("role", "edge")]).await, self.join(c, &[]).await];
        self.hub.plan().await.unwrap();
        all
    }

    /// A configuration, and the plans that are made from it.
    pub(crate) async fn apply(&self, toml: &str) {
        let applied = self.hub.apply(toml, "test").await.unwrap();
        assert_eq!(self.hub.plan().await.unwrap(), applied.serial);
    }

    /// The hub takes the next status that an agent sent.
    pub(crate) async fn hear(&mut self) {
        let message = soon(self.statuses.next()).await.unwrap();
        self.hub.hear(&message.subject, &message.payload).await.unwrap();
    }

    /// The hub takes everything that waits on the bus, and says how many results that were.
    pub(crate) async fn ingest(&self) -> usize {
        let mut all = 0;
        loop {
            match self.hub.ingest(Duration::from_millis(1)).await.unwrap() {
                0 => return all,
                some => all += some,
            }
        }
    }
}

pub(crate) fn request(wanted: &str, token: &str, key: &Key, labels: &[(&str, &str)]) -> Join {
    let labels = labels.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
    Join {
        token: token.to_owned(),
        name: name(wanted),
        public_key: key.public(),
        labels: labels.collect(),
        address: None,
        port: 8620,
        version: "0.1.0".to_owned(),
        again: None,
    }
}

impl Agent {
    pub(crate) fn new(joined: Joined, bus: Client, key: Key) -> Self {
        Self { joined, bus, key, seq: 0 }
    }

    pub(crate) fn name(&self) -> &Name {
        &self.joined.agent
    }

    /// Its plan on the bus, if the hub signed it.
    pub(crate) async fn plan(&self) -> Plan {
        let entry = self.bus.read("plan", self.name().as_str()).await.unwrap().expect("a plan");
        self.open(&entry.value).expect("signed by the hub")
    }

    /// What a signed message says; `None` if the hub did not sign it.
    pub(crate) fn open<T: DeserializeOwned>(&self, octets: &[u8]) -> Option<T> {
        let signed: Signed = serde_json::from_slice(octets).ok()?;
        let digits: Vec<u8> = (0..signed.signature.len() / 2)
            .map(|at| u8::from_str_radix(&signed.signature[2 * at..2 * at + 2], 16).unwrap())
            .collect();
        let good = verifies(&self.joined.hub_key, signed.message.as_bytes(), &digits);
        good.then(|| serde_json::from_str(&signed.message).unwrap())
    }

    pub(crate) fn status(&self, plan_serial: u64) -> Status {
        Status {
            schema: Status::SCHEMA.to_owned(),
            agent: self.name().clone(),
            at_ms: BEGIN,
            version: "0.1.0".to_owned(),
            kinds: vec!["rtt".to_owned(), "available".to_owned()],
            plan_serial,
            order_serial: 0,
            clock_synchronised: true,
            clock_error_ms: 1,
            clock_ahead_ms: None,
            spool_runs: 0,
            spool_octets: 0,
            spool_lost: 0,
            leases_lost: 0,
            running: None,
            order: None,
            orders: Vec::new(),
            leaving: false,
            declined: Vec::new(),
            faults: Vec::new(),
        }
    }

    pub(crate) async fn say(&self, status: &Status) {
        let payload = serde_json::to_vec(status).unwrap();
        self.bus.send(&format!("status.{}", self.name()), payload.into()).await.unwrap();
    }

    /// A run of its own, with one value in Mbit/s.
    pub(crate) fn run(&mut self, target: &Name, kind: &str, metric: Metric, mbps: f64, began_ms: i64) -> Run {
        self.seq += 1;
        let of = |share: f64| mbps * share * 1e6;
        Run {
            schema: Run::SCHEMA.to_owned(),
            id: id(began_ms),
            agent: self.name().clone(),
            seq: self.seq,
            target: target.clone(),
            kind: kind.to_owned(),
            origin: Origin::Mesh,
            began_ms,
            length_ms: 2_000,
            exit: Exit::Done,
            reason: None,
            octets: 1_000_000,
            route_before: Vec::new(),
            route_after: Vec::new(),
            flags: Vec::<Flag>::new(),
            values: vec![Value {
                metric,
                direction: Direction::Forward,
                unit: metric.unit(),
                claim: Claim::Estimate,
                value: of(1.0),
                low: of(0.99),
                high: of(1.01),
            }],
            evidence: None,
        }
    }

    pub(crate) async fn publish(&self, run: &Run) {
        let payload = serde_json::to_vec(run).unwrap();
        let subject = format!("result.{}.{}", run.agent, run.kind);
        self.bus.publish(&subject, &run.id.to_string(), payload.into()).await.unwrap();
    }

    pub(crate) async fn subscribe(&self, what: &str) -> Subscription {
        let subscription = self.bus.subscribe(&format!("{what}.{}", self.name())).await.unwrap();
        // The answer to a question comes when the subscription is there.
        self.bus.read("plan", self.name().as_str()).await.unwrap();
        subscription
    }
}

/// The id of a run that began then.
fn id(began_ms: i64) -> Uuid {
    let ms = u64::try_from(began_ms).unwrap();
    let now = uuid::Timestamp::from_unix(uuid::NoContext, ms / 1_000, u32::try_from(ms % 1_000).unwrap() * 1_000_000);
    Uuid::new_v7(now)
}

pub(crate) fn hops(addresses: &[&str]) -> Vec<Hop> {
    addresses.iter().map(|text| Hop { address: text.parse().ok() }).collect()
}

pub(crate) fn stored(message: &Message) -> Stored {
    serde_json::from_slice(&message.payload).unwrap()
}
