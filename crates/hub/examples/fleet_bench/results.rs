//! Results: a steady stream of them, and many at once.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use narrows_fleet::message::{Claim, Direction, Exit, Hop, Origin, Run, Value};
use narrows_units::Metric;
use tokio::sync::Semaphore;
use uuid::Uuid;

use crate::agents::{Agent, Fleet};
use crate::hub::Hub;
use crate::{figure, now, quantiles};

impl Fleet {
    /// One result after the other, from one agent after the other.
    pub(crate) async fn steady(&self, time: Duration) {
        let began = now();
        let mut ticks = tokio::time::interval(Duration::from_secs(1) / RATE);
        let mut count = 0;
        while began.elapsed() < time {
            ticks.tick().await;
            let (agent, target) = self.pair(count);
            count += 1;
            tokio::spawn(async move { agent.publish(&target).await });
        }
        self.all_stored().await;
        let lags = std::mem::take(&mut *self.lags.lock().unwrap());
        figure(&format!("published to stored, {RATE} a second"), quantiles(lags));
    }

    /// Results that wait while the hub does not run, and how fast it takes them then. The embedded
    /// bus stands still with its hub: there they come as fast as it takes them.
    pub(crate) async fn backlog(&self, hub: &Hub, embedded: bool, count: u64) {
        if !embedded {
            hub.signal("-STOP");
        }
        let mut began = now();
        let few = Arc::new(Semaphore::new(AT_ONCE));
        let mut publishing = Vec::new();
        for number in 0..count {
            let (agent, target) = self.pair(number);
            let few = Arc::clone(&few);
            publishing.push(tokio::spawn(async move {
                let _one = few.acquire().await.unwrap();
                agent.publish(&target).await;
            }));
        }
        for one in publishing {
            one.await.unwrap();
        }
        let rate = count as f64 / began.elapsed().as_secs_f64();
        figure("published at once", format!("{count}, {rate:.0} a second"));
        if !embedded {
            began = now();
            hub.signal("-CONT");
        }
        self.all_stored().await;
        figure("backlog", format!("{:.0} runs a second", count as f64 / began.elapsed().as_secs_f64()));
        self.lags.lock().unwrap().clear();
    }

    /// Every agent its turn, and of its targets too.
    fn pair(&self, number: u64) -> (Arc<Agent>, Arc<Agent>) {
        let (number, all) = (usize::try_from(number).unwrap(), self.agents.len());
        let offset = 1 + number / all % (all - 1);
        (Arc::clone(&self.agents[number % all]), Arc::clone(&self.agents[(number + offset) % all]))
    }

    async fn all_stored(&self) {
        while self.agents.iter().any(|agent| !agent.open.lock().unwrap().is_empty()) {
            // An agent hears of the last of its results after all others: look again then.
            drop(tokio::time::timeout(Duration::from_millis(100), self.heard.notified()).await);
        }
    }
}

impl Agent {
    async fn publish(&self, target: &Self) {
        let seq = self.seq.fetch_add(1, Ordering::Relaxed) + 1;
        let run = self.run(target, seq);
        let payload = serde_json::to_vec(&run).unwrap();
        self.open.lock().unwrap().insert(seq, now());
        let subject = format!("result.{}.{}", self.name, run.kind);
        // No answer in time: it is handed over again, as the spool does.
        while self.bus.publish(&subject, &run.id.to_string(), payload.clone().into()).await.is_err() {
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    }

    /// As large as most: 2.8 kB of evidence, eight routers, five values.
    fn run(&self, target: &Self, seq: u64) -> Run {
        let value = |metric: Metric, value: f64| Value {
            metric,
            direction: Direction::Forward,
            unit: metric.unit(),
            claim: Claim::Estimate,
            value,
            low: value * 0.97,
            high: value * 1.03,
        };
        let of = 100e6 + f64::from(u32::try_from(seq % 97).unwrap()) * 1e5;
        let hop = |number: u8| Hop { address: Some(std::net::Ipv4Addr::new(172, 16, number, 1).into()) };
        Run {
            schema: Run::SCHEMA.to_owned(),
            id: Uuid::now_v7(),
            agent: self.name.clone(),
            seq,
            target: target.name.clone(),
            kind: "available".to_owned(),
            origin: Origin::Mesh,
            began_ms: i64::try_from(narrows_hub::wall_clock().as_millis()).unwrap(),
            length_ms: 2_500,
            exit: Exit::Done,
            reason: None,
            octets: 3_400_000,
            route_before: (1..9).map(hop).collect(),
            route_after: Vec::new(),
            flags: Vec::new(),
            values: vec![
                value(Metric::AvailableIpCapacity, of),
                value(Metric::IpCapacity, 1e9),
                value(Metric::RoundTripTime, 12e6),
                value(Metric::TcpAchievableSingle, of),
                value(Metric::UdpAchievable, of),
            ],
            evidence: Some(serde_json::json!({ "schema": "narrows.report/1", "text": "x".repeat(2_750) })),
        }
    }
}

/// Light runs of 10 000 hosts, each second.
const RATE: u32 = 53;
const AT_ONCE: usize = 256;
