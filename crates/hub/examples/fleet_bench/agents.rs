//! Agents: each a connection, with the subscriptions that a real one has.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use narrows_bus::embedded::{Address, Client, Limits};
use narrows_bus::{Bus, Key, nats};
use narrows_fleet::keys::Name;
use narrows_fleet::message::{Plan, Signed, Status, Stored};
use tokio::sync::{Notify, Semaphore};

use crate::hub::Hub;
use crate::{figure, now};

pub(crate) struct Agent {
    pub(crate) name: Name,
    pub(crate) bus: Arc<dyn Bus>,
    pub(crate) seq: AtomicU64,
    /// Serial and octets of its newest plan.
    plan: Mutex<(u64, usize)>,
    /// Results that nobody has said to be stored, and when each was handed over.
    pub(crate) open: Mutex<BTreeMap<u64, Instant>>,
}

pub(crate) struct Fleet {
    pub(crate) agents: Vec<Arc<Agent>>,
    /// From handing over a result until its agent may forget it.
    pub(crate) lags: Arc<Mutex<Vec<Duration>>>,
    pub(crate) heard: Arc<Notify>,
}

impl Fleet {
    pub(crate) async fn connect(seeds: &str, hub: &Hub, bus: &str) -> Self {
        let (lags, heard) = (Arc::new(Mutex::new(Vec::new())), Arc::new(Notify::new()));
        let few = Arc::new(Semaphore::new(AT_ONCE));
        let mut starting = Vec::new();
        for (number, seed) in seeds.lines().enumerate() {
            let (key, bus, embedded, key_hash) =
                (Key::from_seed(seed).unwrap(), bus.to_owned(), hub.bus(), hub.key_hash);
            let (few, lags, heard) = (Arc::clone(&few), Arc::clone(&lags), Arc::clone(&heard));
            starting.push(tokio::spawn(async move {
                let _one = few.acquire().await.unwrap();
                let name: Name = crate::name(number).parse().unwrap();
                let bus: Arc<dyn Bus> = if bus == "embedded" {
                    let tls = Some(Arc::new(narrows_bus::pinned(key_hash)));
                    Arc::new(Client::connect(Address { url: embedded, tls }, key, Limits::default()))
                } else {
                    let options = nats::Options { key: Some(key), ..nats::Options::new(&bus, name.as_str()) };
                    Arc::new(nats::Client::connect(options).await.unwrap())
                };
                bus.condition().wait_for(|now| now.server.is_some()).await.unwrap();
                let (seq, open) = (AtomicU64::new(0), Mutex::default());
                let agent = Arc::new(Agent { name, bus, seq, plan: Mutex::default(), open });
                agent.listen(lags, heard).await;
                agent
            }));
        }
        let mut agents = Vec::new();
        for one in starting {
            agents.push(one.await.unwrap());
        }
        Self { agents, lags, heard }
    }

    /// Waits until every agent has a plan of at least this serial; of any, if none is said.
    pub(crate) async fn planned(&self, serial: Option<u64>) {
        for agent in &self.agents {
            for wait in 0_u32.. {
                if agent.plan.lock().unwrap().0 >= serial.unwrap_or(1) {
                    break;
                }
                // What came before it listened is on the bus. Seldom: that is load too.
                if wait.is_multiple_of(READ_EACH)
                    && let Some(entry) = agent.bus.read("plan", agent.name.as_str()).await.unwrap()
                {
                    agent.planned(&entry.value);
                }
                tokio::time::sleep(LOOK).await;
            }
        }
    }

    /// How large plans are.
    pub(crate) fn plans(&self) {
        let sizes: Vec<usize> = self.agents.iter().map(|agent| agent.plan.lock().unwrap().1).collect();
        let (sum, most) = (sizes.iter().sum::<usize>(), sizes.iter().max().copied().unwrap_or(0));
        figure("octets of a plan", format!("mean {}, largest {most}", sum / sizes.len().max(1)));
    }
}

impl Agent {
    async fn listen(self: &Arc<Self>, lags: Arc<Mutex<Vec<Duration>>>, heard: Arc<Notify>) {
        let name = &self.name;
        let mut plans = self.bus.subscribe(&format!("plan.{name}")).await.unwrap();
        let mut stored = self.bus.subscribe(&format!("stored.{name}")).await.unwrap();
        let mut leases = self.bus.subscribe(&format!("lease.host.{name}")).await.unwrap();
        let agent = Arc::clone(self);
        tokio::spawn(async move {
            let mut next = tokio::time::interval(STATUS);
            loop {
                tokio::select! {
                    Ok(message) = plans.next() => agent.planned(&message.payload),
                    Ok(message) = stored.next() => {
                        let said: Stored = serde_json::from_slice(&message.payload).unwrap();
                        let mut open = agent.open.lock().unwrap();
                        let done: Vec<u64> = open.keys().copied().filter(|seq| said.has(*seq)).collect();
                        let times = done.iter().filter_map(|seq| open.remove(seq)).map(|since| now().duration_since(since));
                        lags.lock().unwrap().extend(times);
                        heard.notify_one();
                    }
                    Ok(_) = leases.next() => {}
                    _ = next.tick() => agent.say().await,
                }
            }
        });
    }

    fn planned(&self, payload: &[u8]) {
        let signed: Signed = serde_json::from_slice(payload).unwrap();
        let plan: Plan = serde_json::from_str(&signed.message).unwrap();
        let mut known = self.plan.lock().unwrap();
        if plan.serial > known.0 {
            *known = (plan.serial, payload.len());
        }
    }

    async fn say(&self) {
        let status = Status {
            schema: Status::SCHEMA.to_owned(),
            agent: self.name.clone(),
            at_ms: i64::try_from(narrows_hub::wall_clock().as_millis()).unwrap(),
            version: "0.1.0".to_owned(),
            kinds: vec!["rtt".to_owned(), "available".to_owned()],
            plan_serial: self.plan.lock().unwrap().0,
            order_serial: 0,
            clock_synchronised: true,
            clock_error_ms: 1,
            clock_ahead_ms: None,
            spool_runs: self.open.lock().unwrap().len() as u64,
            spool_octets: 0,
            spool_lost: 0,
            leases_lost: 0,
            running: None,
            order: None,
            orders: Vec::new(),
            leaving: false,
            declined: Vec::new(),
            faults: Vec::new(),
        };
        // The hub may be stopped; the next one says the same.
        drop(self.bus.send(&format!("status.{}", self.name), serde_json::to_vec(&status).unwrap().into()).await);
    }
}

/// Connections that are made at a time.
const AT_ONCE: usize = 64;
/// How often it is looked whether a plan is there, and at which of these looks on the bus.
const LOOK: Duration = Duration::from_millis(50);
const READ_EACH: u32 = 100;
/// As real agents do.
const STATUS: Duration = Duration::from_secs(30);
