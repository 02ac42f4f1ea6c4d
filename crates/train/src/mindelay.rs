//! What the minimum-delay methods share (`capprobe`, `pbprobe`, `asymprobe`): a pair or bulk read
//! from a report, the filter of `[CapProbe04]` over many of them, and the test for receive batching
//! that comes before it.
//!
//! To disperse a pair wrongly, wider or narrower, takes a queue, and a queue delays. With `d1`,
//! `d2` the delays of the first and the last packet, the pair of least `d1 + d2` met no queue if
//! `min (d1 + d2) = min d1 + min d2`, each minimum over all pairs.
//!
//! Both delays count from the departure of the *first* packet (departs from `[CapProbe04]`, where
//! each counts from its own): what the sender's own gap does to a pair that the narrow link closes
//! anyway then changes neither. A constant offset drops out.
//!
//! The equality holds to a share of the *dispersion* (the kernel re-implementation takes 1 % of the
//! delay sum, which on a path of 100 ms is 2 ms of queueing, more than most dispersions, and means
//! nothing between two clocks), or to what the stamps are wrong by: an excess of x moves the
//! dispersion by x at most.

mod batches;
mod hunt;
mod words;

use narrows_stat::{SkewObjective, skew_line};
use narrows_units::{Framing, Sender, Stamp, nanos_f64};

use crate::train_method;
use narrows_probe::contract::{Event, Refusal, Step};
use narrows_probe::outcome::{Outcome, Reason};
use narrows_probe::probes::{Arrival, Fate, PacketPlan, Probe, Train, TrainReport};
use narrows_probe::{PathFacts, StampSource};

pub use batches::{Batching, Inner};
pub use hunt::{Hunt, HuntResult, State, Stop};
pub use words::{Via, answers_take_too_long};

/// A run of one of these methods: what it makes of each event.
pub trait Runs {
    /// Whether the path's facts have come.
    fn is_begun(&self) -> bool;

    /// Why it cannot even begin on such a path.
    fn unable(&self, facts: &PathFacts) -> Option<Reason>;

    /// Takes the path's facts.
    fn begin(&mut self, facts: PathFacts);

    /// What it does next.
    fn next(&mut self, now: Stamp<Sender>) -> Step;

    /// Takes what became of a train.
    fn take(&mut self, now: Stamp<Sender>, report: &TrainReport) -> Step;

    /// The world does not send the last train.
    fn refused(&mut self, now: Stamp<Sender>, refusal: Refusal) -> Step;

    /// Its outcome, if it must end for this reason.
    fn stop(&mut self, reason: Reason) -> Outcome;
}

/// One step of such a run.
pub fn step(run: &mut impl Runs, now: Stamp<Sender>, event: Event) -> Step {
    match event {
        Event::Started(facts) => {
            let unable = run.unable(&facts);
            run.begin(facts);
            match unable {
                Some(reason) => Step::Done(run.stop(reason)),
                None => run.next(now),
            }
        }
        Event::Train(report) if run.is_begun() => run.take(now, &report),
        Event::TimerFired if run.is_begun() => run.next(now),
        Event::Refused(refusal) if run.is_begun() => run.refused(now, refusal),
        Event::Stop(reason) => Step::Done(run.stop(reason)),
        _ => Step::Done(Outcome::inconclusive(Reason::UnexpectedEvent)),
    }
}

/// Whether a recorded train is the one that the run asks for. Packets of another size, or more of
/// them, are no sample of this run; the gaps that were asked for do not matter, since departures
/// tell what came of them.
pub fn is_own(asked: &Probe, own: Option<&Train>) -> bool {
    let (Probe::Train(asked), Some(own)) = (asked, own) else {
        return false;
    };
    let plain = |packet: &PacketPlan| packet.hop_limit.is_none();
    let size = |train: &Train| train.packets.iter().map(|packet| packet.ip_octets).collect::<Vec<_>>();
    asked.peer_kind == own.peer_kind && size(asked) == size(own) && asked.packets.iter().all(plain)
}

/// Whose stamps tell when a packet was there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reads {
    /// The receiver's: one way, two clocks.
    Arrivals,
    /// The peer's own, sent back in its echo: one way, two clocks.
    Turns,
    /// The sender's, when the answer is back: there and back, one clock.
    Returns,
}

impl Reads {
    /// Nanoseconds on the clock that these stamps are of.
    fn stamp_ns(self, row: &Arrival) -> Option<i64> {
        match (self, row.fate) {
            (Self::Arrivals, Fate::Received(stamp)) => Some(stamp.nanos()),
            (Self::Turns, Fate::Echoed { turned, .. }) => turned.map(Stamp::nanos),
            (Self::Returns, _) => train_method::returned_ns(row),
            (_, Fate::Received(_) | Fate::Echoed { .. } | Fate::Answered(_) | Fate::Lost) => None,
        }
    }

    /// Whether the two stamps of a delay are of two clocks, which drift apart.
    pub fn two_clocks(self) -> bool {
        self != Self::Returns
    }
}

/// How finely delays are told, ns.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Grain {
    /// Of one arrival.
    pub arrival_ns: f64,
    /// Of one departure.
    pub departure_ns: f64,
}

impl Grain {
    /// What the hosts measured of themselves: a step of the clock, or twice the typical error of a
    /// stamp.
    pub fn of(facts: &PathFacts, reads: Reads) -> Self {
        let host = match reads {
            Reads::Arrivals | Reads::Turns => &facts.receiver,
            Reads::Returns => &facts.sender,
        };
        Self {
            arrival_ns: nanos_f64(host.clock_resolution).max(2.0 * nanos_f64(host.stamp_error)),
            departure_ns: nanos_f64(facts.sender.clock_resolution),
        }
    }

    /// Error of the delay sum of one pair.
    fn sum_ns(self) -> f64 {
        self.arrival_ns + self.departure_ns
    }
}

/// A pair or bulk that came whole and in order.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bulk {
    /// Departure of the first packet, ns of the sender's clock.
    departed_ns: i64,
    /// From there to the first packet's arrival, clock offset included.
    first_ns: i64,
    /// From the first arrival to the last.
    pub span_ns: f64,
    /// The same of the departures.
    pub sent_ns: f64,
    /// Packets after the first.
    pub after: usize,
    /// The median gap: what one packet takes, if fewer than half the gaps hold others.
    pub typical_ns: f64,
    /// From the second batch that begins within it to the last one.
    inner: Option<Inner>,
    /// Octets of the remote host's own answer to the last packet; `None` for an echo, which has the
    /// probe's.
    pub reply_octets: Option<u16>,
    /// Whose stamps the delays are made of.
    pub stamped_by: StampSource,
}

/// Why a report is no sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flaw {
    /// Not a single answer.
    Silent,
    /// Some packets are missing.
    Holed,
    /// Packets changed order.
    Disordered,
    /// No time passed between first and last.
    Closed,
    /// Answers without the stamps that are read.
    Unstamped,
}

impl Bulk {
    /// Reads a report. Every packet must have come, in order: `[PBProbe08]` drops a bulk with any
    /// loss.
    pub fn read(report: &TrainReport, reads: Reads) -> Result<Self, Flaw> {
        let rows = &report.arrivals;
        let stamps: Vec<i64> = rows.iter().filter_map(|row| reads.stamp_ns(row)).collect();
        if rows.is_empty() || rows.iter().all(|row| row.fate == Fate::Lost) {
            return Err(Flaw::Silent);
        }
        if stamps.is_empty() {
            return Err(Flaw::Unstamped);
        }
        if stamps.len() < rows.len() || rows.len() < 2 {
            return Err(Flaw::Holed);
        }
        if stamps.windows(2).any(|two| two[1] < two[0]) {
            return Err(Flaw::Disordered);
        }
        let gaps: Vec<f64> = stamps.windows(2).map(|two| two[1].saturating_sub(two[0]) as f64).collect();
        let (first, last) = (rows[0], rows[rows.len() - 1]);
        let span = stamps[stamps.len() - 1].saturating_sub(stamps[0]);
        if span <= 0 {
            return Err(Flaw::Closed);
        }
        Ok(Self {
            departed_ns: first.departed.nanos(),
            first_ns: stamps[0].saturating_sub(first.departed.nanos()),
            span_ns: span as f64,
            sent_ns: last.departed.nanos().saturating_sub(first.departed.nanos()).max(0) as f64,
            after: rows.len() - 1,
            typical_ns: narrows_stat::median(&gaps).unwrap_or(span as f64),
            inner: Inner::read(&stamps),
            reply_octets: match last.fate {
                Fate::Answered(reply) => Some(reply.reply_ip_octets),
                Fate::Received(_) | Fate::Echoed { .. } | Fate::Lost => None,
            },
            stamped_by: report.arrived_by,
        })
    }

    /// The packets left no closer than they came: the narrow link never closed the gap, and the
    /// rate is the sender's.
    pub fn open(&self) -> bool {
        self.sent_ns > OPEN * self.span_ns
    }
}

/// `pathrate` practice: a host within 5 % of the answer may be the answer.
const OPEN: f64 = 0.95;

/// When a sample counts as one that met no queue.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rule {
    /// Largest excess of the delay sum over the sum of the least delays, as a share of the
    /// dispersion.
    pub tolerance: f64,
    /// The step of the delays.
    pub grain: Grain,
    /// Delays come from two clocks.
    pub two_clocks: bool,
    /// Error that receive batching adds to one stamp, ns.
    pub period_ns: f64,
}

/// What the filter makes of the samples so far.
#[derive(Debug, Clone, PartialEq)]
pub struct Reading {
    /// The sample of least delay sum.
    pub best: usize,
    /// Its excess over the sum of the least delays, ns.
    pub residual_ns: f64,
    /// Samples within the tolerance, in order.
    pub clean: Vec<usize>,
    /// Samples whose delay sum the stamps cannot tell from the best one's, in order.
    pub near: Vec<usize>,
    /// Samples since the last new minimum of either delay or of the sum.
    pub stable: usize,
    /// What one clock gains on the other per ns.
    pub slope: f64,
    /// Least delay of first packets above the first sample's own, ns, and that delay.
    pub least_first_ns: f64,
}

/// Runs the filter; `None` without samples. The clocks' skew is the slope of the line below the
/// first packets' delays, and is believed only where it makes more samples clean than none at all
/// (ours).
pub fn read(bulks: &[Bulk], rule: &Rule) -> Option<Reading> {
    let flat = read_with(bulks, rule, 0.0)?;
    let tilted = if rule.two_clocks { skew(bulks).and_then(|slope| read_with(bulks, rule, slope)) } else { None };
    Some(match tilted {
        Some(tilted) if tilted.clean.len() > flat.clean.len() => tilted,
        _ => flat,
    })
}

fn skew(bulks: &[Bulk]) -> Option<f64> {
    let (times, delays) = heads(bulks)?;
    clock_skew(&times, &delays)
}

/// What one clock gains on the other per ns: the slope of the line below delays of two clocks,
/// `None` if that is steeper than clocks drift.
pub fn clock_skew(times_ns: &[f64], delays_ns: &[f64]) -> Option<f64> {
    let slope = skew_line(times_ns, delays_ns, SkewObjective::SumOfDistances).ok()?.slope;
    (slope.abs() < LARGEST_SKEW).then_some(slope)
}

/// Departures and delays of the first packets, from those of the first sample on.
fn heads(bulks: &[Bulk]) -> Option<(Vec<f64>, Vec<f64>)> {
    let origin = bulks.first()?;
    let from = |own: i64, origin: i64| own.saturating_sub(origin) as f64;
    Some(
        bulks
            .iter()
            .map(|bulk| {
                let time = from(bulk.departed_ns, origin.departed_ns);
                (time, from(bulk.first_ns, origin.first_ns))
            })
            .unzip(),
    )
}

fn read_with(bulks: &[Bulk], rule: &Rule, slope: f64) -> Option<Reading> {
    let (times, heads) = heads(bulks)?;
    let delays: Vec<(f64, f64)> = times
        .iter()
        .zip(&heads)
        .zip(bulks)
        .map(|((time, head), bulk)| {
            let first = head - slope * time;
            (first, first + bulk.span_ns)
        })
        .collect();
    let sum = |(first, last): (f64, f64)| first + last;
    let best = (0..delays.len()).min_by(|a, b| sum(delays[*a]).total_cmp(&sum(delays[*b])))?;
    let noise = rule.grain.sum_ns() + rule.period_ns;
    let tolerance = (rule.tolerance * bulks[best].span_ns).max(noise);
    // A minimum that is new by less than the tolerance tells says nothing new.
    let step = (tolerance / 4.0).max(noise);
    let mut least = (f64::INFINITY, f64::INFINITY, f64::INFINITY);
    let mut stable = 0;
    for own in &delays {
        let new = own.0 < least.0 - step || own.1 < least.1 - step || sum(*own) < least.2 - step;
        stable = if new { 0 } else { stable + 1 };
        least = (least.0.min(own.0), least.1.min(own.1), least.2.min(sum(*own)));
    }
    let floor = least.0 + least.1;
    let residual = sum(delays[best]) - floor;
    let within = |most: f64| (0..delays.len()).filter(|index| sum(delays[*index]) - floor <= most).collect();
    Some(Reading {
        best,
        residual_ns: residual,
        clean: within(tolerance),
        near: within(residual + noise),
        stable,
        slope,
        least_first_ns: least.0 + bulks[0].first_ns as f64,
    })
}

/// Ours: no pair of working clocks drifts apart faster.
const LARGEST_SKEW: f64 = 500e-6;

/// Rate on a wire of this framing at which packets of `ip_octets` take `each_ns`, bit/s.
pub fn wire_rate(framing: Framing, ip_octets: u16, each_ns: f64) -> f64 {
    8.0 * f64::from(framing.wire_octets(u32::from(ip_octets))) / each_ns * 1e9
}

/// The IP-layer rate of packets of `ip_octets` on a wire of this rate, both in bit/s.
pub fn ip_rate(framing: Framing, ip_octets: u16, wire_bps: f64) -> f64 {
    let ip = u32::from(ip_octets);
    wire_bps * f64::from(ip) / f64::from(framing.wire_octets(ip))
}

/// What answers of the remote host may hide of the reverse direction.
pub enum Back {
    /// Nothing.
    Observed,
    /// A reverse direction slower than the forward direction by more than the answers are smaller.
    Slower {
        /// IP octets of a reply.
        reply_ip_octets: u16,
    },
    /// As much as the forward direction: the value may be the reverse direction's.
    Either,
}

/// How far the reverse direction decides the dispersion of bulks of packets of `ip_octets`.
pub fn way_back(reads: Reads, bulk: &Bulk, ip_octets: u16) -> Back {
    if reads.two_clocks() {
        return Back::Observed;
    }
    let wire = |octets: u16| f64::from(Framing::ETHERNET.wire_octets(u32::from(octets)));
    match bulk.reply_octets {
        Some(reply_ip_octets) if wire(reply_ip_octets) <= SMALL_REPLY * wire(ip_octets) => {
            Back::Slower { reply_ip_octets }
        }
        Some(_) | None => Back::Either,
    }
}

/// Ours, as `nettimer`: answers beyond this share of the probe, both on a wire, are no small ones.
const SMALL_REPLY: f64 = 0.25;

/// Between 0.75 and 1.25, for the n-th wait: evenly spread and the same in every run, so that no
/// pace of other traffic stays in step with the probes (ours).
pub fn uneven(n: u32) -> f64 {
    const GOLDEN: f64 = 0.618_033_988_749_894_9;
    0.75 + 0.5 * (f64::from(n) * GOLDEN).fract()
}

/// A duration of so many nanoseconds; none of what is no time.
pub fn duration(nanos: f64) -> std::time::Duration {
    std::time::Duration::try_from_secs_f64(nanos / 1e9).unwrap_or_default()
}

#[cfg(test)]
mod tests;
