//! What an agent does next: orders, its part of the timetable, its visits of the mesh, and what the
//! hub wants to know beside them. Pure: time is an argument.
//!
//! # Light runs
//!
//! A visit of the mesh starts at its own time of the epoch. A peer that this agent never measured
//! is visited at once, one after the other with up to two seconds between, so that the matrix of a
//! small fleet is full within two minutes of a join. A run that failed or found no value is tried
//! again after 5 s, twice as long each time, up to an hour: a peer may have joined and not begun to
//! serve.
//!
//! A visit whose time had passed when its plan came is left out: the next epoch has others.

use std::collections::BTreeMap;
use std::time::Duration;

use narrows_fleet::clock::Hub;
use narrows_fleet::keys::{Key, Name};
use narrows_fleet::mesh::{EPOCH, Mesh};
use narrows_fleet::message::{Order, Origin, Peer, Plan};
use narrows_fleet::timetable::{Basis, Own};
use narrows_stat::SplitMix64;
use narrows_units::Stamp;
use uuid::Uuid;

use crate::chance::below_ms;

/// One run that is to be done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Job {
    pub(crate) origin: Origin,
    pub(crate) target: Name,
    /// How to reach it, if an order says so.
    pub(crate) peer: Option<Peer>,
    pub(crate) words: Vec<String>,
    /// What it leases; nothing for a light run.
    pub(crate) keys: Vec<Key>,
    /// The agent whose load it looks at, and does not wait for.
    pub(crate) beside: Option<Name>,
    /// What it may cost, of a loading run.
    pub(crate) octets: u64,
    /// When it is due.
    pub(crate) at_ms: i64,
    /// It does not begin later.
    pub(crate) until_ms: i64,
    pub(crate) length: Duration,
}

/// What became of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ended {
    /// It measured.
    Measured,
    /// It could not.
    Failed,
    /// It did not begin and waits for better times.
    Postponed {
        /// Until then.
        until_ms: i64,
    },
}

type Pair = (Name, String);

/// What is due, and what was done.
#[derive(Debug)]
pub(crate) struct Agenda {
    random: SplitMix64,
    orders: Vec<Order>,
    /// When each command last measured each target.
    measured: BTreeMap<Pair, i64>,
    tries: BTreeMap<Pair, Try>,
    /// The serial of the plan, and when it came.
    plan: (u64, i64),
    /// The mesh of that plan: of 10 000 hosts it takes a while to shuffle.
    mesh: Mesh,
    /// Loading runs that begin before are over.
    loads_from_ms: i64,
    /// Nothing that is due at once begins before.
    pause_ms: i64,
}

#[derive(Debug, Clone, Copy, Default)]
struct Try {
    failures: u32,
    not_before_ms: i64,
}

impl Agenda {
    /// Of an agent that starts now, with what it remembers.
    pub(crate) fn new(measured: BTreeMap<Pair, i64>, seed: u64, now_ms: i64) -> Self {
        Self {
            random: SplitMix64::new(seed),
            orders: Vec::new(),
            measured,
            tries: BTreeMap::new(),
            plan: (0, now_ms),
            mesh: Mesh::new(0, 0),
            loads_from_ms: now_ms,
            pause_ms: now_ms,
        }
    }

    /// Somebody wants this run.
    pub(crate) fn order(&mut self, order: Order) {
        self.orders.push(order);
    }

    /// The next job; it is due at [`Job::at_ms`].
    pub(crate) fn next(&mut self, plan: &Plan, now_ms: i64) -> Option<Job> {
        if self.plan.0 != plan.serial {
            // Peers may have come, or moved.
            self.plan = (plan.serial, now_ms);
            self.mesh = Mesh::new(plan.hosts(), plan.seed);
            self.tries.clear();
        }
        let heavy = self.orders.iter().map(ordered).chain(self.planned(plan)).min_by_key(|job| job.at_ms);
        let light = self.light(plan, now_ms);
        match (heavy, light) {
            // A light run that begins now must be over by then.
            (Some(heavy), Some(light)) if heavy.at_ms.saturating_sub(AHEAD_MS) <= light.at_ms.max(now_ms) => {
                Some(heavy)
            }
            (heavy, light) => light.or(heavy),
        }
    }

    /// A job of [`Self::next`] has ended.
    pub(crate) fn ended(&mut self, job: &Job, how: Ended, now_ms: i64) {
        match job.origin {
            Origin::Order(id) => {
                match how {
                    Ended::Postponed { until_ms } => {
                        if let Some(order) = self.orders.iter_mut().find(|order| order.id == id) {
                            order.at_ms = until_ms;
                        }
                    }
                    Ended::Measured | Ended::Failed => self.orders.retain(|order| order.id != id),
                }
                return;
            }
            Origin::Planned | Origin::Repeated => {
                self.loads_from_ms = self.loads_from_ms.max(job.at_ms + 1);
                return;
            }
            Origin::Mesh | Origin::Directed => {}
        }
        let pair = (job.target.clone(), job.words.join(" "));
        let tried = self.tries.entry(pair.clone()).or_default();
        match how {
            Ended::Measured => {
                self.tries.remove(&pair);
                self.measured.insert(pair, now_ms);
            }
            Ended::Failed => {
                let wait_ms = FIRST_WAIT_MS << tried.failures.min(10);
                tried.failures += 1;
                tried.not_before_ms = now_ms + wait_ms.min(LONGEST_WAIT_MS);
            }
            Ended::Postponed { until_ms } => tried.not_before_ms = until_ms,
        }
        if !matches!(how, Ended::Postponed { .. }) {
            self.pause_ms = now_ms + below_ms(&mut self.random, SPREAD_MS);
        }
    }

    /// The loading run of the timetable that is next.
    fn planned(&self, plan: &Plan) -> Option<Job> {
        let at = |ms: i64| Stamp::<Hub>::from_nanos(ms.saturating_mul(1_000_000));
        let runs = plan.runs.iter().map(|run| (at(run.at_ms), run)).collect();
        let own = Own::new(at(plan.begin_ms), Duration::from_millis(plan.length_ms), runs);
        let (begin, basis, run) = own.next(at(self.loads_from_ms))?;
        let at_ms = begin.nanos().div_euclid(1_000_000);
        let length = Duration::from_millis(run.length_ms);
        Some(Job {
            origin: if basis == Basis::Reserved { Origin::Planned } else { Origin::Repeated },
            target: run.target.clone(),
            peer: None,
            words: run.command.clone(),
            keys: run.keys.clone(),
            beside: None,
            octets: run.octets,
            at_ms,
            until_ms: at_ms.saturating_add(i64::try_from(run.length_ms).unwrap_or(i64::MAX)),
            length,
        })
    }

    /// The light run that is due first.
    fn light(&self, plan: &Plan, now_ms: i64) -> Option<Job> {
        let epoch_ms = i64::try_from(EPOCH.as_millis()).unwrap_or(i64::MAX);
        let epoch = now_ms.saturating_sub(plan.mesh_began_ms).div_euclid(epoch_ms).max(0);
        let begin_ms = plan.mesh_began_ms + epoch * epoch_ms;
        let mut jobs = Vec::new();
        // The next epoch too, so that there is always something to wait for.
        for (number, begin_ms) in [(epoch, begin_ms), (epoch + 1, begin_ms + epoch_ms)] {
            for visit in self.mesh.visits(plan.place, number.unsigned_abs()) {
                let Some(peer) = plan.peer_at(visit.target) else { continue };
                let start_ms = begin_ms + i64::try_from(visit.start.as_millis()).unwrap_or(0);
                for words in &plan.mesh {
                    let at_ms = match self.measured.get(&(peer.name.clone(), words.join(" "))) {
                        None if number == epoch => Some(self.pause_ms),
                        None => Some(start_ms),
                        Some(last_ms) if *last_ms >= begin_ms => None,
                        Some(_) => (start_ms >= self.plan.1).then_some(start_ms),
                    };
                    jobs.extend(at_ms.map(|at_ms| self.visit(Origin::Mesh, &peer.name, words, at_ms)));
                }
            }
        }
        for directed in &plan.directed {
            let last_ms = self.measured.get(&(directed.target.clone(), directed.command.join(" ")));
            let at_ms = match (last_ms, directed.every_ms) {
                (None, _) => Some(self.pause_ms),
                (Some(_), None) => None,
                (Some(last_ms), Some(every_ms)) => Some(last_ms + i64::try_from(every_ms).unwrap_or(i64::MAX / 2)),
            };
            jobs.extend(at_ms.map(|at_ms| self.visit(Origin::Directed, &directed.target, &directed.command, at_ms)));
        }
        // The first of those that are due together: what the mesh wants comes first.
        jobs.into_iter().min_by_key(|job| job.at_ms.max(now_ms))
    }

    fn visit(&self, origin: Origin, target: &Name, words: &[String], at_ms: i64) -> Job {
        let tried = self.tries.get(&(target.clone(), words.join(" "))).copied().unwrap_or_default();
        Job {
            origin,
            target: target.clone(),
            peer: None,
            words: words.to_vec(),
            keys: Vec::new(),
            beside: None,
            octets: 0,
            at_ms: at_ms.max(tried.not_before_ms),
            until_ms: i64::MAX,
            length: crate::measure::LIGHT,
        }
    }
}

fn ordered(order: &Order) -> Job {
    Job {
        origin: Origin::Order(order.id),
        target: order.target.clone(),
        peer: order.peer.clone(),
        words: order.command.clone(),
        keys: order.keys.clone(),
        beside: order.beside.clone(),
        octets: order.octets,
        at_ms: order.at_ms,
        until_ms: order.not_after_ms,
        length: Duration::from_millis(order.length_ms),
    }
}

/// The id of an order, for reports.
pub(crate) const fn order_of(job: &Job) -> Option<Uuid> {
    match job.origin {
        Origin::Order(id) => Some(id),
        Origin::Mesh | Origin::Directed | Origin::Planned | Origin::Repeated => None,
    }
}

/// No light run begins so shortly before a loading one. Ours: `available` and the trace before it
/// take six seconds.
const AHEAD_MS: i64 = 10_000;
const SPREAD_MS: i64 = 2_000;
const FIRST_WAIT_MS: i64 = 5_000;
const LONGEST_WAIT_MS: i64 = 3_600_000;

#[cfg(test)]
mod tests;
