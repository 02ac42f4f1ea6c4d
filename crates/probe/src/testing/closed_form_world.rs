//! A small path for this crate's own tests: FIFO hops, cross traffic, and hosts with faults.
//!
//! Exact and deterministic: times are whole picoseconds, randomness is one linear congruential
//! generator per testbed. It is no substitute for the simulator of scenario files (no routing, no
//! TCP, cross traffic stays on its hop); it exists so that the unit tests of a method need nothing
//! but this crate.

mod hop;

use std::convert::Infallible;
use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use narrows_units::{BitRate, Delta, Receiver, Sender, Stamp};

pub use hop::{Arrivals, Bucket, Cross, Hop};

use crate::probes::{Arrival, Fate, HopReply, HopReplyKind, PacingCheck, PeerKind, Probe, Train, TrainReport};
use crate::{Budget, Estimator, Event, HostFacts, Measured, PathFacts, Refusal, StampSource, World, drive};

const PS_PER_NS: i64 = 1000;

/// How the receiving host stamps.
#[derive(Debug, Clone, Default)]
pub struct Stamping {
    /// Stamps are multiples of this.
    pub granularity: Duration,
    /// Each stamp is late by up to this, uniformly; never out of order.
    pub jitter: Duration,
    /// Packets wait for an interrupt that comes this long after the first of them.
    pub batch: Option<Duration>,
    /// Within a batch, stamps follow one another at this distance.
    pub batch_step: Duration,
}

/// The world. Fields may be changed between construction and use.
#[derive(Debug, Clone)]
pub struct ClosedFormWorld {
    pub hops: Vec<Hop>,
    pub facts: PathFacts,
    pub stamping: Stamping,
    pub offset: Delta,
    pub skew_ppm: f64,
    /// The peer answers echoes after up to this long, uniformly.
    pub echo_jitter: Duration,
    /// A peer at rest answers this much later. What arrives meanwhile waits, and follows at once.
    pub wake: Duration,
    awake_until: i64,
    /// Everything that was answered, in order.
    pub reports: Vec<TrainReport>,
    state: Vec<HopState>,
    random: Lcg,
    now_ps: i64,
}

#[derive(Debug, Clone)]
struct HopState {
    free_at: Vec<i64>,
    turn: usize,
    next_cross: Option<i64>,
    tokens_at: i64,
}

impl ClosedFormWorld {
    /// A path of these hops between ideal hosts. The sender's cost per packet is
    /// `facts.sender.send_cost`.
    pub fn new(hops: Vec<Hop>, seed: u64) -> Self {
        let one_way: Duration = hops.iter().map(|hop| hop.delay).sum();
        let mut random = Lcg::new(seed);
        let state = hops
            .iter()
            .map(|hop| HopState {
                free_at: vec![0; hop.channels.max(1)],
                turn: 0,
                // The first arrival falls anywhere within one mean gap, so that seeds differ in
                // phase.
                next_cross: hop.cross.as_ref().and_then(|cross| Some(scaled(mean_gap(cross)?, random.unit()))),
                tokens_at: i64::MIN / 4,
            })
            .collect();
        Self {
            hops,
            facts: PathFacts::ideal(1500, one_way * 2),
            stamping: Stamping::default(),
            offset: Delta::from_nanos(-40_000_000),
            skew_ppm: 0.0,
            echo_jitter: Duration::ZERO,
            wake: Duration::ZERO,
            awake_until: i64::MIN,
            reports: Vec::new(),
            state,
            random,
            // The cross traffic has been there for a while when the probes begin.
            now_ps: 1_000_000_000_000,
        }
    }

    /// Runs a method to its end.
    pub fn measure(&mut self, method: &mut dyn Estimator, budget: Budget) -> Measured {
        let Ok(measured) = drive(self, method, budget);
        measured
    }

    /// The narrow link's rate at the IP layer for packets of this size.
    pub fn ip_capacity(&self, ip_octets: u32) -> BitRate {
        let rates = self.hops.iter().filter_map(|hop| {
            let wire = u128::from(hop.framing.wire_octets(ip_octets));
            let bps = u128::from(hop.rate.bps()) * hop.channels as u128 * u128::from(ip_octets) / wire;
            u64::try_from(bps).ok().map(BitRate::from_bps)
        });
        rates.min().unwrap_or(BitRate::ZERO)
    }

    /// The tight link's rate at the IP layer less the traffic of others there, if that traffic has
    /// the same packet size.
    pub fn available(&self, ip_octets: u32) -> BitRate {
        let rates = self.hops.iter().map(|hop| {
            let wire = f64::from(hop.framing.wire_octets(ip_octets));
            let capacity = hop.rate.as_f64() * hop.channels as f64;
            let load = hop.cross.as_ref().map_or(0.0, |cross| {
                cross.rate.as_f64() * f64::from(hop.framing.wire_octets(cross.ip_octets)) / f64::from(cross.ip_octets)
            });
            BitRate::from_bps_f64((capacity - load).max(0.0) * f64::from(ip_octets) / wire).unwrap_or(BitRate::ZERO)
        });
        rates.min().unwrap_or(BitRate::ZERO)
    }

    fn carry(&mut self, train: &Train) -> TrainReport {
        let departures = self.departures(train);
        let mut rows = Vec::with_capacity(departures.len());
        let mut arrivals: Vec<Option<i64>> = Vec::with_capacity(departures.len());
        for (packet, &departed) in train.packets.iter().zip(&departures) {
            let mut at = Ok(departed);
            for index in 0..self.hops.len() {
                at = at.and_then(|at| self.cross_hop(index, at, packet.ip_octets));
            }
            let fate = match at {
                Ok(_) | Err(None) => Fate::Lost,
                Err(Some(reply)) => Fate::Answered(reply),
            };
            arrivals.push(at.ok());
            rows.push(Arrival {
                seq: u32::try_from(rows.len()).unwrap_or(u32::MAX),
                departed: Stamp::from_nanos(departed / PS_PER_NS),
                ip_octets: packet.ip_octets,
                fate,
            });
        }
        let stamps = self.stamp(&arrivals);
        let mut end = departures.last().copied().unwrap_or(self.now_ps);
        for ((row, arrival), stamp) in rows.iter_mut().zip(&arrivals).zip(&stamps) {
            let (Some(arrived), Some(stamp)) = (arrival, stamp) else {
                continue;
            };
            end = end.max(*stamp);
            row.fate = match train.peer_kind {
                PeerKind::Receiver => Fate::Received(self.on_receiver_clock(*stamp)),
                PeerKind::Echo | PeerKind::EchoSized(_) => Fate::Echoed {
                    returned: Stamp::from_nanos(self.returned(*arrived) / PS_PER_NS),
                    turned: Some(self.on_receiver_clock(*stamp)),
                },
                PeerKind::ClosedPort => {
                    self.answered(*arrived, row.ip_octets.min(548) + 28, HopReplyKind::PortUnreachable)
                }
                PeerKind::TcpSyn => self.answered(*arrived, 40, HopReplyKind::TcpAnswer),
            };
        }
        // The report crosses the path back; losses cost the timeout of the peer.
        let timeout = if rows.iter().any(|row| row.fate == Fate::Lost) { 200_000_000_000 } else { 0 };
        self.now_ps = end + timeout + ps(self.facts.rtt) / 2;
        let report = TrainReport {
            id: train.id,
            pacing: pacing(train, &rows),
            arrivals: rows,
            reordered: reordered(&arrivals),
            duplicates: 0,
            local_drops: 0,
            departed_by: StampSource::Simulated,
            arrived_by: self.facts.receiver.stamp_source,
        };
        self.reports.push(report.clone());
        report
    }

    fn departures(&self, train: &Train) -> Vec<i64> {
        let mut at = self.now_ps;
        let mut departures = Vec::with_capacity(train.packets.len());
        for (index, packet) in train.packets.iter().enumerate() {
            if index > 0 {
                at += ps(packet.gap.max(self.facts.sender.send_cost));
            }
            departures.push(at);
        }
        departures
    }

    /// When a packet that comes to hop `index` at `at` reaches the next; what happened to it
    /// otherwise.
    fn cross_hop(&mut self, index: usize, at: i64, ip_octets: u16) -> Result<i64, Option<HopReply>> {
        self.let_cross_in(index, at);
        let (hop, state) = (&self.hops[index], &mut self.state[index]);
        if ip_octets > hop.mtu {
            let before: Duration = self.hops[..index].iter().map(|hop| hop.delay).sum();
            return Err(hop.reports_too_big.then(|| HopReply {
                from: IpAddr::V4(Ipv4Addr::new(10, 0, u8::try_from(index).unwrap_or(u8::MAX), 1)),
                returned: Stamp::from_nanos((at + ps(before)) / PS_PER_NS),
                reply_ip_octets: 56,
                kind: HopReplyKind::PacketTooBig { mtu: Some(hop.mtu) },
            }));
        }
        if hop.loss > 0.0 && self.random.unit() < hop.loss {
            return Err(None);
        }
        match enqueue(hop, state, at, u32::from(ip_octets)) {
            Some(sent) => Ok(sent + ps(hop.delay)),
            None => Err(None),
        }
    }

    fn let_cross_in(&mut self, index: usize, until: i64) {
        let hop = &self.hops[index];
        let state = &mut self.state[index];
        let Some(cross) = &hop.cross else { return };
        let Some(mean) = mean_gap(cross) else { return };
        while let Some(at) = state.next_cross.filter(|at| *at <= until) {
            for _ in 0..cross.burst.max(1) {
                let octets = if cross.mixed { mixed_size(self.random.unit()) } else { cross.ip_octets };
                enqueue(hop, state, at, octets);
            }
            let gap = match cross.arrivals {
                Arrivals::Constant => mean,
                Arrivals::Poisson => scaled(mean, -(1.0 - self.random.unit()).ln()),
            };
            state.next_cross = Some(at + gap.max(1));
        }
    }

    /// Arrival times as the receiving host stamps them, in ps of true time.
    fn stamp(&mut self, arrivals: &[Option<i64>]) -> Vec<Option<i64>> {
        let jitter = ps(self.stamping.jitter);
        let mut in_order: Vec<(i64, usize)> =
            arrivals.iter().enumerate().filter_map(|(index, at)| at.map(|at| (at, index))).collect();
        in_order.sort_unstable();
        let mut stamps = vec![None; arrivals.len()];
        let (mut last, mut interrupt, mut within) = (i64::MIN, i64::MIN, 0i64);
        for (arrived, index) in in_order {
            let mut stamp = arrived;
            if let Some(batch) = self.stamping.batch {
                if arrived > interrupt {
                    interrupt = arrived + ps(batch);
                    within = 0;
                }
                stamp = interrupt + within * ps(self.stamping.batch_step);
                within += 1;
            }
            if jitter > 0 {
                stamp += scaled(jitter, self.random.unit());
            }
            let granularity = ps(self.stamping.granularity).max(1);
            stamp = (stamp / granularity * granularity).max(last);
            last = stamp;
            stamps[index] = Some(stamp);
        }
        stamps
    }

    fn on_receiver_clock(&self, true_ps: i64) -> Stamp<Receiver> {
        let skew = scaled(true_ps, self.skew_ppm * 1e-6);
        Stamp::from_nanos((true_ps + skew) / PS_PER_NS + self.offset.nanos())
    }

    /// What a peer answers that runs nothing for the sender.
    fn answered(&mut self, arrived: i64, reply_ip_octets: u16, kind: HopReplyKind) -> Fate {
        Fate::Answered(HopReply {
            from: IpAddr::V4(Ipv4Addr::new(10, 0, u8::MAX, 2)),
            returned: Stamp::from_nanos(self.returned(arrived) / PS_PER_NS),
            reply_ip_octets,
            kind,
        })
    }

    fn returned(&mut self, arrived: i64) -> i64 {
        let reverse: Duration = self.hops.iter().map(|hop| hop.delay).sum();
        // A host falls asleep within a millisecond.
        let at_rest = arrived > self.awake_until.saturating_add(1_000 * 1_000 * PS_PER_NS);
        let turned = if at_rest { arrived + ps(self.wake) } else { arrived.max(self.awake_until) };
        self.awake_until = turned;
        turned + ps(reverse) + scaled(ps(self.echo_jitter), self.random.unit())
    }
}

impl World for ClosedFormWorld {
    type Fault = Infallible;

    fn now(&self) -> Stamp<Sender> {
        Stamp::from_nanos(self.now_ps / PS_PER_NS)
    }

    fn facts(&self) -> PathFacts {
        self.facts.clone()
    }

    fn send(&mut self, probe: Probe) -> Result<Event, Infallible> {
        let Probe::Train(train) = probe else {
            return Ok(Event::Refused(Refusal::NotOffered));
        };
        if let Some(largest) = train.packets.iter().map(|packet| packet.ip_octets).max()
            && largest > self.facts.path_mtu
        {
            return Ok(Event::Refused(Refusal::TooLarge { max_ip_octets: self.facts.path_mtu }));
        }
        Ok(Event::Train(self.carry(&train)))
    }

    fn wait(&mut self, until: Stamp<Sender>) -> Result<(), Infallible> {
        self.now_ps = self.now_ps.max(until.nanos().saturating_mul(PS_PER_NS));
        Ok(())
    }
}

fn mixed_size(unit: f64) -> u32 {
    match unit {
        u if u < 0.5 => 40,
        u if u < 0.75 => 576,
        _ => 1500,
    }
}

/// When a packet has left the hop; `None` if the queue is full.
fn enqueue(hop: &Hop, state: &mut HopState, at: i64, ip_octets: u32) -> Option<i64> {
    let wire = hop.framing.wire_octets(ip_octets);
    let transmission = serialisation(hop.rate, wire);
    let waits = (state.free_at[state.turn] - at).max(0);
    let backlog = i128::from(waits) * i128::from(hop.rate.bps()) / 8_000_000_000_000;
    if backlog + i128::from(wire) > i128::from(hop.queue_octets) {
        return None;
    }
    let mut begin = at.max(state.free_at[state.turn]);
    if let Some(bucket) = &hop.bucket {
        // `tokens_at` is when the bucket was or will be empty: the generic cell rate algorithm.
        let full = serialisation(bucket.rate, bucket.depth_octets);
        state.tokens_at = state.tokens_at.max(begin - full) + serialisation(bucket.rate, wire);
        begin = begin.max(state.tokens_at);
    }
    let sent = begin + transmission;
    state.free_at[state.turn] = sent;
    state.turn = (state.turn + 1) % state.free_at.len();
    Some(sent)
}

fn serialisation(rate: BitRate, wire_octets: u32) -> i64 {
    let ps = u128::from(wire_octets) * 8_000_000_000_000 / u128::from(rate.bps().max(1));
    i64::try_from(ps).unwrap_or(i64::MAX / 4)
}

fn mean_gap(cross: &Cross) -> Option<i64> {
    (cross.rate > BitRate::ZERO).then(|| serialisation(cross.rate, cross.ip_octets * cross.burst.max(1)))
}

fn pacing(train: &Train, rows: &[Arrival]) -> PacingCheck {
    let worst = train.packets.iter().zip(rows).skip(1).zip(rows).filter(|((plan, _), _)| plan.gap > Duration::ZERO);
    let worst = worst.map(|((plan, row), before)| (row.departed - before.departed - Delta::from(plan.gap)).nanos());
    match worst.map(i64::unsigned_abs).max().filter(|worst| *worst > 1000) {
        Some(worst) => PacingCheck::Broken { worst: Duration::from_nanos(worst) },
        None => PacingCheck::Kept,
    }
}

fn reordered(arrivals: &[Option<i64>]) -> u32 {
    let mut latest = i64::MIN;
    let mut count = 0;
    for at in arrivals.iter().flatten() {
        if *at < latest {
            count += 1;
        }
        latest = latest.max(*at);
    }
    count
}

fn ps(time: Duration) -> i64 {
    Delta::from(time).nanos().saturating_mul(PS_PER_NS)
}

#[expect(clippy::cast_possible_truncation, reason = "test times are far below 2^53 ps in any product used here")]
fn scaled(ps: i64, factor: f64) -> i64 {
    (ps as f64 * factor).round() as i64
}

/// Knuth's 64-bit linear congruential generator; the upper 53 bits make the number.
#[derive(Debug, Clone)]
struct Lcg(u64);

impl Lcg {
    fn new(seed: u64) -> Self {
        let mut lcg = Self(seed ^ 0x9E37_79B9_7F4A_7C15);
        for _ in 0..4 {
            lcg.unit();
        }
        lcg
    }

    fn unit(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// A host that stamps in the kernel with this error, sends a packet in `send_cost` and receives one
/// in `receive_cost`.
pub fn real_host(stamp_error: Duration, send_cost: Duration, receive_cost: Duration) -> HostFacts {
    HostFacts { send_cost, receive_cost, stamp_error, stamp_source: StampSource::Kernel, ..HostFacts::ideal() }
}

#[cfg(test)]
mod tests;
