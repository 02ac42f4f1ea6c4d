//! What to send next.

use std::time::Duration;

use narrows_units::BitRate;

use super::cause::{Cause, Signature};
use super::classify;
use super::params::Params;
use narrows_probe::facts::PathFacts;
use narrows_probe::outcome::Confidence;
use narrows_probe::probes::{Load, LoadReport, PacketPlan, PeerKind, Probe, Then, Train, TrainId, TrainReport};

/// Everything that was asked and told so far.
#[derive(Debug, Clone, Default)]
pub(super) struct RunHistory {
    pub(super) trains: Vec<TrainReport>,
    pub(super) loads: Vec<(Load, LoadReport)>,
}

/// The parts of a run, in their order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Ladder,
    Doubling,
    Long,
    Small,
    Mixed,
    Singles,
    Slow,
    Check,
    Flows,
    Over,
}

/// Where a run is.
#[derive(Debug, Clone)]
pub(super) struct Planner {
    params: Params,
    part: Part,
    /// Probes of this part so far.
    sent: u32,
    /// Packets of long trains.
    long: u32,
    /// What is known at the end of the lengths' search, and again behind the long trains.
    known: Option<Signature>,
}

impl Planner {
    pub(super) fn new(params: Params) -> Self {
        Self { params, part: Part::Ladder, sent: 0, long: LONG, known: None }
    }

    /// The next probe; `None` if there is nothing more to ask.
    pub(super) fn next(&mut self, facts: &PathFacts, reported: &RunHistory, serial: u32) -> Option<Probe> {
        let size = self.params.ip_octets.map_or(facts.path_mtu, |octets| octets.min(facts.path_mtu));
        loop {
            let id = TrainId(serial);
            let probe = match self.part {
                Part::Ladder => self.ladder(id, size),
                Part::Doubling => self.doubling(id, size, facts, reported),
                Part::Long => self.long_train(id, size, facts, reported),
                Part::Small => {
                    (self.sent < SMALLS && self.is_worth_more()).then(|| uniform(id, self.long, small(size)))
                }
                Part::Mixed => (self.sent < MIXED).then(|| mixed(id, size)),
                Part::Singles => {
                    (self.sent == 0 && self.params.singles >= 2).then(|| singles(id, self.params.singles, size))
                }
                Part::Slow => self.slow(id, size),
                Part::Check => self.check(id, size),
                Part::Flows => self.flows(size, facts, reported),
                Part::Over => return None,
            };
            if let Some(probe) = probe {
                self.sent += 1;
                return Some(probe);
            }
            self.end_part(facts, reported);
        }
    }

    fn end_part(&mut self, facts: &PathFacts, reported: &RunHistory) {
        let next = match self.part {
            Part::Ladder => Part::Doubling,
            Part::Doubling => Part::Long,
            Part::Long => Part::Small,
            Part::Small => Part::Mixed,
            Part::Mixed => Part::Singles,
            Part::Singles => Part::Slow,
            Part::Slow => Part::Check,
            Part::Check => Part::Flows,
            Part::Flows | Part::Over => Part::Over,
        };
        let nothing = reported.trains.iter().all(|report| report.received().next().is_none());
        let next = if nothing { Part::Over } else { next };
        if matches!(self.part, Part::Doubling | Part::Long | Part::Check) {
            self.known = Some(classify(facts, &reported.trains));
        }
        (self.part, self.sent) = (next, 0);
    }

    /// Lengths 2 to 10, each some times, one after the other so that slow changes meet all alike.
    fn ladder(&self, id: TrainId, size: u16) -> Option<Probe> {
        let length = 2 + self.sent % LADDER;
        (self.sent < LADDER * REPEATS).then(|| uniform(id, length, size))
    }

    /// Powers of two, twice each, until a train spans several batches, or is long enough where
    /// there are none.
    fn doubling(&mut self, id: TrainId, size: u16, facts: &PathFacts, reported: &RunHistory) -> Option<Probe> {
        let length = (16u32 << (self.sent / 2).min(16)).min(self.params.longest);
        if self.sent.is_multiple_of(2) && length > 64 && self.is_long_enough(length / 2, facts, reported) {
            return None;
        }
        let last_was_longest = self.sent >= 2 && (16u32 << ((self.sent - 2) / 2).min(16)) >= self.params.longest;
        if self.sent.is_multiple_of(2) && last_was_longest {
            self.long = self.params.longest;
            return None;
        }
        Some(uniform(id, length, size))
    }

    fn is_long_enough(&mut self, length: u32, facts: &PathFacts, reported: &RunHistory) -> bool {
        let known = classify(facts, &reported.trains);
        // A train that arrives at one instant lies within one batch.
        let rate = known.rate.map(|rate| rate.median).filter(|rate| rate.bps() < u64::MAX);
        let packets = match (known.batch_packets, rate) {
            (Some(packets), Some(_)) => packets * BATCHES,
            (None, Some(_)) => f64::from(LONG),
            (_, None) => return false,
        };
        let fits = rate.map_or(f64::MAX, |rate| {
            self.params.span.as_secs_f64() * rate.as_f64() / (8.0 * f64::from(facts.path_mtu))
        });
        let whole = |value: f64| count(value.clamp(f64::from(LEAST_LONG), f64::from(self.params.longest)));
        // Four batches show what there is; an even train of so many shows that there are none, if
        // it was not within a burst.
        let shown = known.batch_packets.is_none_or(|packets| f64::from(length) >= 4.0 * packets) && length >= 128;
        let too_long = f64::from(length) > fits;
        if shown || too_long {
            self.long = whole(packets.max(f64::from(LONG)).min(fits));
        }
        shown || too_long
    }

    fn long_train(&mut self, id: TrainId, size: u16, facts: &PathFacts, reported: &RunHistory) -> Option<Probe> {
        if self.sent == FEW {
            self.known = Some(classify(facts, &reported.trains));
        }
        let most = if self.is_worth_more() { self.params.trains } else { FEW };
        (self.sent < most).then(|| uniform(id, self.long, size))
    }

    /// Whether there is anything but an idle link that one size of packets tells all about.
    fn is_worth_more(&self) -> bool {
        self.known.as_ref().is_none_or(|known| !matches!(known.cause, Cause::SingleLink | Cause::SenderLimited))
    }

    /// Below the path's rate: what comes in batches now was put so by a timer or a counter, not by
    /// load.
    fn slow(&self, id: TrainId, size: u16) -> Option<Probe> {
        let known = self.known.as_ref()?;
        let (packets, rate) = (known.batch_packets?, known.rate?.median);
        let share = (3.0 / packets).clamp(SLOW, FAST);
        let length = count((packets * 12.0).clamp(100.0, f64::from(self.long.max(100))));
        (self.sent < SLOWS).then(|| paced(id, length, size, rate.scaled(share)?)).flatten()
    }

    /// Just below the rate that was found.
    fn check(&self, id: TrainId, size: u16) -> Option<Probe> {
        let known = self.known.as_ref()?;
        if matches!(known.cause, Cause::SenderLimited | Cause::TokenBucket { .. }) {
            return None;
        }
        let rate = known.rate?.median;
        let length = self.long.max(48);
        let below = if known.batch_packets.is_some() { CHECKED_BATCHES } else { CHECKED };
        (self.sent < CHECKS).then(|| paced(id, length, size, rate.scaled(below)?)).flatten()
    }

    /// Several flows at once: first whether they get more together than one, then how much.
    fn flows(&self, size: u16, facts: &PathFacts, reported: &RunHistory) -> Option<Probe> {
        let known = self.known.as_ref()?;
        let one = known.rate?.median;
        let weak = known.confidence == Confidence::Low && known.cause == Cause::Unclear;
        let moot = matches!(known.cause, Cause::SenderLimited | Cause::ParallelLinks { .. } | Cause::CrossTraffic);
        if self.params.flows < 2 || weak || moot || one.bps() == 0 {
            return None;
        }
        let (streams, times) = match self.sent {
            0 => (self.params.flows, f64::from(self.params.flows).min(FIRST_LOAD)),
            // Only where the first got more is it worth the load: enough for each flow to fill a
            // channel alone.
            1 | 2 if together(reported).is_some_and(|rate| rate > MORE * one.as_f64()) => {
                let streams = self.params.flows.saturating_mul(if self.sent == 1 { 2 } else { 4 });
                (streams, 1.5 * f64::from(streams))
            }
            _ => return None,
        };
        let rate = [one.scaled(times), facts.sender.max_send_rate, facts.rate_cap];
        let time = one.time_for(u64::from(size) * LOAD_PACKETS)?;
        let period = known.cause.period().unwrap_or_default();
        let duration = time.max(LEAST_LOAD).max(period * PERIODS).min(MOST_LOAD);
        Some(Probe::Load(Load {
            rate: rate.into_iter().flatten().min()?,
            ip_octets: size,
            burst: 1,
            streams,
            duration,
            status_every: duration / STATUSES,
            then: Then::Finish,
        }))
    }

    /// How long to leave the path alone behind a train.
    pub(super) fn pause(&self, facts: &PathFacts, report: &TrainReport) -> Duration {
        let stamps = || report.received().map(|(_, stamp)| stamp);
        let took = match (stamps().min(), stamps().max()) {
            (Some(first), Some(last)) => last.since(first),
            _ => Duration::ZERO,
        };
        let rest = took.min(self.params.span * 2).mul_f64(self.params.rest);
        // A bucket may have been emptied; those of usual routers hold up to 150 ms of their rate
        // (`capacity` §10.4).
        let refill = if 20 * report.lost_on_path() > report.arrivals.len() { REFILL } else { Duration::ZERO };
        rest.max(refill).max(LEAST_REST).max(facts.rtt.min(LEAST_REST * 10) / 2)
    }
}

/// Most that several flows got together, in bit/s: over the status intervals of their loads,
/// without the first and the last.
pub(super) fn together(reported: &RunHistory) -> Option<f64> {
    let rates = reported.loads.iter().filter(|(load, _)| load.streams >= 2).filter_map(|(_, report)| delivered(report));
    rates.max_by(f64::total_cmp)
}

fn delivered(report: &LoadReport) -> Option<f64> {
    let whole = report.statuses.get(1..report.statuses.len().checked_sub(1)?)?;
    let octets: f64 = whole.iter().map(|status| status.ip_octets as f64).sum();
    let time: f64 = whole.iter().map(|status| status.to.since(status.from).as_secs_f64()).sum();
    (time > 0.0 && octets > 0.0).then(|| octets * 8.0 / time)
}

fn uniform(id: TrainId, length: u32, size: u16) -> Probe {
    Probe::Train(Train::uniform(id, usize::try_from(length).unwrap_or(2), size, Duration::ZERO))
}

fn paced(id: TrainId, length: u32, size: u16, rate: BitRate) -> Option<Probe> {
    let length = usize::try_from(length).ok()?;
    (rate > BitRate::ZERO).then(|| Probe::Train(Train::at_rate(id, length, size, rate)))
}

/// Large and small packets in turn, back to back: on one channel none overtakes.
fn mixed(id: TrainId, size: u16) -> Probe {
    let plan = |ip_octets| PacketPlan { gap: Duration::ZERO, ip_octets, hop_limit: None };
    // Pairs of each, so that channels in turn do not get one size each.
    let little = (small(size) / 2).max(SMALLEST.min(size));
    let four = [size, size, little, size].map(plan);
    Probe::Train(Train {
        id,
        packets: four.into_iter().cycle().take(MIXED_PACKETS).collect(),
        peer_kind: PeerKind::Receiver,
    })
}

/// Single packets, 10 to 11 ms apart: no phase of theirs is that of any slot.
fn singles(id: TrainId, packets: u32, size: u16) -> Probe {
    let mut train = Train::uniform(id, usize::try_from(packets).unwrap_or(2), size, SINGLES_APART);
    for (k, packet) in (0u32..).zip(&mut train.packets) {
        packet.gap += SINGLES_APART.mul_f64((f64::from(k) * GOLDEN).fract() / 10.0);
    }
    Probe::Train(train)
}

/// A third of the full size, as long as it can carry the probe header.
fn small(size: u16) -> u16 {
    (size / 3).max(SMALLEST.min(size))
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "float casts saturate, and the value is a count"
)]
fn count(value: f64) -> u32 {
    value as u32
}

/// Packets of a long train (`capacity` §11.1: at least 200).
const LONG: u32 = 240;
/// Ours: a train that spans this many batches (`capacity` §11.2: 20 slots) and two that its ends
/// cut.
const BATCHES: f64 = 24.0;
/// Ours, on paths on which 200 packets take too long.
const LEAST_LONG: u32 = 64;
/// Lengths 2 to 10 (pathrate's preliminary phase), and how often each (ours).
const LADDER: u32 = 9;
const REPEATS: u32 = 3;
/// Ours.
const FEW: u32 = 4;
const SMALLS: u32 = 3;
const MIXED: u32 = 3;
const MIXED_PACKETS: usize = 32;
const SLOWS: u32 = 2;
const CHECKS: u32 = 2;
/// `capacity` §11.1: one packet per 10 ms.
const SINGLES_APART: Duration = Duration::from_millis(10);
/// The golden ratio's fraction spreads phases evenly.
const GOLDEN: f64 = 0.618_033_988_749_895;
/// Slow trains: a third of the rate, more where batches are small, so that three packets fall into
/// a timer's period (ours).
const SLOW: f64 = 1.0 / 3.0;
const FAST: f64 = 0.6;
/// Just below the rate that was found; less near where bursts must be full to carry it (ours).
const CHECKED: f64 = 0.97;
const CHECKED_BATCHES: f64 = 0.93;
/// First load of several flows, in times of what one gets (ours).
const FIRST_LOAD: f64 = 3.0;
/// Several flows that get this many times what one gets have more than one channel (ours).
pub(super) const MORE: f64 = 1.25;
/// A load of several flows: time for so many packets of one (ours), within bounds.
const LOAD_PACKETS: u64 = 200;
const LEAST_LOAD: Duration = Duration::from_millis(20);
const PERIODS: u32 = 16;
const MOST_LOAD: Duration = Duration::from_secs(3);
const STATUSES: u32 = 8;
/// Ours.
const LEAST_REST: Duration = Duration::from_millis(10);
const REFILL: Duration = Duration::from_millis(200);
/// Carries the probe header.
const SMALLEST: u16 = 120;
