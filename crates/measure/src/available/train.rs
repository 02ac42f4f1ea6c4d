//! What one constant-rate train says: the rate at which it left, and the growth of its delays, over
//! the part that kept the tight link busy. Pure; what follows a path continuously may feed it
//! trains of its own and put the results into [`pooled`](super::joint::joint).

use std::time::Duration;

use narrows_units::{BitRate, Sender, Stamp};

use super::backlogged::{Early, Idle, Primed, Slope, behind, primed, slope};
use super::jumps::Jump;
use super::levels::Block;
use narrows_probe::probes::TrainReport;
use narrows_train::burst_ends::{BurstEnds, Sample, Scale};
use narrows_train::carried::Carried;
use narrows_train::reading::{departure_span_ns, lost_late, runs_backwards};
use narrows_train::train_method::arrived_ns;

/// A departure gap of this many usual ones is a pause (ours).
const PAUSE: f64 = 8.0;
/// Pauses of a train: a host that stands still now and then has fewer (ours).
const OFTEN: usize = 16;
/// Growth of delay below which a train has not overloaded the path (ours: a hundred times the skew
/// of a poor clock).
const QUIET: f64 = 0.01;

/// What is believed of the path before a train is read. It decides only which packets come too
/// early to count.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Prior {
    /// Highest arrival rate seen, bit/s.
    pub(crate) fastest: f64,
    /// Delay from which on the tight link's queue will hardly run empty again, seconds.
    pub(crate) backlogged_from: f64,
    /// Packets at the head that were sent faster, to fill the queue: they do not count.
    pub(crate) priming_packets: usize,
}

/// One train, reduced. Rates in bit/s at the IP layer, times in seconds.
#[derive(Debug, Clone, PartialEq)]
#[expect(clippy::struct_excessive_bools, reason = "each is one fact of the train, none a state")]
pub(crate) struct TrainSlope {
    /// Its first departure.
    pub(crate) at: Stamp<Sender>,
    /// Departure rate of all packets; infinite if the sender's clock saw no time pass.
    pub(crate) rate_sent: f64,
    /// The same of those that arrived.
    pub(crate) rate_in: f64,
    /// Arrival rate from burst end to burst end; infinite if no time passed.
    pub(crate) rate_out: f64,
    /// How fast the path carried it at least.
    pub(crate) carried: Carried,
    /// Departure rate over the part that counts, by the regression that gives `growth`.
    pub(crate) rate: f64,
    /// Growth of the one-way delay per unit of send time over that part; infinite where `rate_in`
    /// is.
    pub(crate) growth: f64,
    /// Its standard error, from how the delays wander within the train.
    pub(crate) growth_error: f64,
    /// Length of that part.
    pub(crate) backlogged_time: f64,
    /// First departure to last.
    pub(crate) send_time: f64,
    /// Packets sent, lost on the path, and of these lost in the second half.
    pub(crate) packets: usize,
    pub(crate) lost: usize,
    pub(crate) lost_late: usize,
    /// Burst ends.
    pub(crate) burst_ends: usize,
    /// Typical spacing of batches at the receiver, if it batches.
    pub(crate) batch: Option<Duration>,
    /// The receiving host did not run for an eighth of the train or more.
    pub(crate) slept: bool,
    /// Times that the sender paused for so long that the queue may have run empty.
    pub(crate) pauses: usize,
    /// How long it paused where that emptied the queue, seconds.
    pub(crate) paused: f64,
    /// The highest delay above the least, seconds.
    pub(crate) highest_delay: f64,
    /// Its head filled the queue, so that its slope is that of a busy link even at the turning
    /// point.
    pub(crate) headed: bool,
    /// What its head says by itself.
    pub(crate) primed: Option<Primed>,
    /// The tight link was busy over the part that counts; otherwise that part is all but the first
    /// third.
    pub(crate) backlogged: bool,
    /// What lies between the backlogged periods.
    pub(crate) idle: Idle,
    /// What of the backlogged periods left before transfers can have answered the train, for round
    /// trips from short to long.
    pub(crate) early: [Early; 4],
    /// The backlogged periods in pieces.
    pub(crate) blocks: Vec<Block>,
    /// The packets arrived as fast as the receiving host can stamp them. For the caller to set.
    pub(crate) receiver_bound: bool,
    /// It found a burst's queue when it came. For the caller to set.
    pub(crate) found_burst: bool,
    /// For that reason it does not count. For the caller to set.
    pub(crate) met_burst: bool,
}

impl TrainSlope {
    /// What is available while it passes, if the tight link carries `capacity` and the train
    /// overloads it: `A = R - C s`.
    pub(crate) fn available(&self, capacity: f64) -> f64 {
        self.rate - capacity * self.growth
    }

    /// The same over all of the train, what lies between its backlogged periods by `share` of its
    /// time; and the time.
    pub(crate) fn whole(&self, capacity: f64, share: f64) -> (f64, f64) {
        let idle = share * self.idle.time;
        if self.backlogged {
            let time = self.backlogged_time + idle;
            let sum = self.backlogged_time * self.available(capacity) + idle * self.idle.available(capacity);
            return (if time > 0.0 { sum / time } else { self.available(capacity) }, time);
        }
        let found = (1.0 - share) * self.available(capacity) + share * self.idle.available(capacity);
        (if idle > 0.0 { found } else { self.available(capacity) }, self.backlogged_time.max(idle))
    }

    /// The rate that the sender reached: where it paused, what lies between the pauses went faster
    /// than the whole. A sender that pauses all the time, because a queue of its own host makes it
    /// wait, is no faster than the whole.
    pub(crate) fn rate_reached(&self) -> f64 {
        if self.pauses < OFTEN { self.rate_sent.max(self.rate) } else { self.rate_sent }
    }

    /// It has not overloaded the path: neither its rate nor its delays say so.
    pub(crate) fn is_quiet(&self) -> bool {
        self.growth <= QUIET.max(self.growth_error) || self.rate_in <= self.rate_out * (1.0 + QUIET)
    }
}

/// Why a train says nothing.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Unusable {
    /// Fewer than two packets arrived.
    AllLost,
    /// A clock jumped.
    ClockStep,
    /// The delay jumped, and stayed: a burst of others, or a clock that was set.
    Jumped(Jump),
    /// Too few batches to draw a line through.
    FewBatches,
}

/// Reduces a train. Its packets may have any departures: pauses of the sender are cut out, and what
/// was really sent is what counts.
pub(crate) fn analyse(report: &TrainReport, prior: Option<Prior>) -> Result<TrainSlope, Unusable> {
    let samples = Scale::SECONDS.samples(report);
    if samples.len() < 2 {
        return Err(Unusable::AllLost);
    }
    if runs_backwards(report) {
        return Err(Unusable::ClockStep);
    }
    let span = departure_span_ns(report) * 1e-9;
    let burst_ends = Scale::SECONDS.burst_ends(&samples, prior.map(|prior| prior.fastest), false);
    let rate_out = Scale::SECONDS.rate_between(&burst_ends.kept);
    let rate_sent = report.departure_rate().map_or(f64::INFINITY, BitRate::as_f64);
    // No path speeds a train up by much: it arrived as one batch.
    if !rate_out.is_finite() || rate_out > 1.2 * rate_sent {
        return Err(Unusable::FewBatches);
    }
    let carried = Carried::of(report, arrived_ns).ok_or(Unusable::AllLost)?;
    check_jump(&burst_ends, span, carried)?;
    let pauses = pauses(&samples);
    let priming_packets = prior.and_then(|prior| report.arrivals.get(prior.priming_packets)).map(|row| row.departed);
    let origin = report.received().next().map(|(row, _)| row.departed);
    let priming_packets =
        priming_packets.zip(origin).map_or(0.0, |(priming_packets, origin)| (priming_packets - origin).as_f64() * 1e-9);
    let least = burst_ends.kept.iter().map(Sample::delay).fold(f64::INFINITY, f64::min);
    let tail = behind(&burst_ends.kept, priming_packets);
    let (line, blocks) = if span > 0.0 {
        let backlogged_from = prior.map_or(f64::INFINITY, |prior| prior.backlogged_from);
        let packet = samples.last().map_or(0.0, |last| last.cumulative) / samples.len() as f64;
        let packet = prior.map_or(0.0, |prior| packet / prior.fastest);
        slope(tail, least, &pauses, backlogged_from, packet).ok_or(Unusable::FewBatches)?
    } else {
        (Slope::UNTIMED, Vec::new())
    };
    let primed = prior
        .filter(|_| priming_packets > 0.0 && pauses.is_empty())
        .and_then(|prior| primed(&burst_ends.kept, priming_packets, least, prior.backlogged_from));
    let rest = samples.last().map_or(0.0, |last| last.cumulative) * (1.0 - 1.0 / samples.len() as f64);
    Ok(TrainSlope {
        at: report.arrivals.first().map_or(Stamp::from_nanos(0), |row| row.departed),
        rate_sent,
        rate_in: if span > 0.0 { rest / span } else { f64::INFINITY },
        rate_out,
        carried,
        rate: line.rate,
        growth: line.growth,
        growth_error: line.error,
        backlogged_time: line.time,
        send_time: span,
        packets: report.arrivals.len(),
        lost: report.lost_on_path(),
        lost_late: lost_late(report),
        burst_ends: burst_ends.kept.len(),
        batch: burst_ends.period,
        slept: burst_ends.stalled,
        pauses: pauses.len(),
        paused: line.paused,
        highest_delay: tail.iter().map(Sample::delay).fold(0.0, f64::max) - least.min(0.0),
        headed: priming_packets > 0.0,
        primed,
        backlogged: line.backlogged,
        idle: if burst_ends.period.is_some() { Idle::default() } else { line.idle },
        early: line.early,
        blocks,
        receiver_bound: false,
        found_burst: false,
        met_burst: false,
    })
}

/// Whether a clock was set in between, or others sent a burst. Where the sender paused, a queue ran
/// empty or a host caught up: that is neither.
fn check_jump(burst_ends: &BurstEnds, span: f64, carried: Carried) -> Result<(), Unusable> {
    let longest = (span / 10.0).max(3.0 * Scale::SECONDS.batch(burst_ends));
    let quiet_sender = burst_ends.kept.windows(2).all(|pair| pair[1].departed - pair[0].departed < longest);
    let Some(by) = Scale::SECONDS.jump(burst_ends, span).filter(|_| quiet_sender) else { return Ok(()) };
    let jump = Jump { by, least_ns: carried.least_ns(), time: span };
    // A host that stood still hands over late what its clock would have shown in time.
    let burst = jump.may_be_burst() && !burst_ends.stalled;
    Err(if burst { Unusable::Jumped(jump) } else { Unusable::ClockStep })
}

/// Departures before which the sender did not run: the time of the first packet behind each pause,
/// with the pause's length.
fn pauses(samples: &[Sample]) -> Vec<(f64, f64)> {
    let gaps: Vec<f64> = samples.windows(2).map(|pair| pair[1].departed - pair[0].departed).collect();
    let mean = samples.last().map_or(0.0, |last| last.departed) / samples.len() as f64;
    let usual = narrows_stat::median(&gaps).unwrap_or(0.0).max(mean / 4.0);
    let long = samples.windows(2).filter(|pair| pair[1].departed - pair[0].departed > PAUSE * usual);
    long.map(|pair| (pair[1].departed, pair[1].departed - pair[0].departed)).collect()
}
