//! A bucket by the envelope of all arrivals: what trains do not agree on one by one.
//!
//! What leaves a bucket of depth `σ` that fills at `ρ` is at most `σ + ρ τ` octets in any time `τ`
//! (`[ShaperProbe11]` §2). So with `ρ` known, every stretch of arrivals bounds `σ` from below,
//! however full the bucket was. A FIFO link of rate `ρ` has a `σ` of one packet: trains that were
//! let through faster, and others that it held to `ρ`, tell a bucket from a link. (Ours.)

use std::time::Duration;

use narrows_probe::probes::TrainReport;
use narrows_units::{BitRate, rounded};

use super::TurningPoint;
use super::bend::{points, share};
use super::ends::Pace;

/// One train of full-size packets, back to back: when it left, and what arrived when.
#[derive(Debug, Clone, PartialEq)]
pub struct Passage {
    /// First departure, ns on the sender's clock.
    departed_ns: i64,
    /// Rate from the first departure to the last, bit/s; infinite if at once.
    departure_bps: f64,
    /// Arrival on the receiver's clock, ns, and IP octets, in the order of arrival.
    rows: Vec<(i64, f64)>,
    /// Least time from departure to arrival, ns, with the clocks' unknown offset.
    least_ns: i64,
    /// As [`super::Bend::ours`], of its tail.
    ours: f64,
}

/// The end of a train.
struct Tail {
    octets: f64,
    time_ns: f64,
    ours: f64,
    packets: usize,
    /// The train it is of.
    place: usize,
}

impl Tail {
    /// What it came at and what others took with it, bit/s.
    fn rate(&self) -> f64 {
        8e9 * self.octets / self.time_ns / self.ours
    }
}

impl Passage {
    /// `None` if fewer than two packets arrived. `clock_step`: what the receiver's clock ticks by.
    pub fn of(report: &TrainReport, clock_step: Duration) -> Option<Self> {
        let departed_ns = report.arrivals.first()?.departed.nanos();
        let mut rows: Vec<(i64, f64)> =
            report.received().map(|(row, at)| (at.nanos(), f64::from(row.ip_octets))).collect();
        rows.sort_by_key(|(at, _)| *at);
        let delays = report.received().map(|(row, at)| at.nanos().saturating_sub(row.departed.nanos()));
        let least_ns = delays.min()?;
        let departure_bps = report.departure_rate().map_or(f64::INFINITY, BitRate::as_f64);
        let mut passage = Self { departed_ns, departure_bps, rows, least_ns, ours: 1.0 };
        if let Some(tail) = passage.tail(0) {
            let (_, points) = points(report)?;
            let last = &points[points.len() - tail.packets..];
            passage.ours = share(last, tail.rate(), clock_step.as_secs_f64()).0;
        }
        (passage.rows.len() > 1).then_some(passage)
    }

    /// Its last quarter, or its last half where that is short.
    fn tail(&self, place: usize) -> Option<Tail> {
        let count = self.rows.len();
        let from = [count - count / 4, count - count / 2].into_iter().find(|from| count - from >= LEAST_TAIL)?;
        let began = self.rows.get(from - 1)?.0;
        let time_ns = self.rows.last()?.0.saturating_sub(began) as f64;
        let octets = self.rows[from..].iter().map(|(_, octets)| octets).sum();
        (time_ns > 0.0).then_some(Tail { octets, time_ns, ours: self.ours, packets: count - from, place })
    }

    /// The highest rate at which its first packets, eight at least, can have passed, bit/s: from
    /// the time at which the first one can have come. A host that was held up makes it less.
    fn head_bps(&self, base_ns: i64) -> f64 {
        let begin = self.departed_ns.saturating_add(base_ns);
        let (mut octets, mut most) = (0.0, 0.0f64);
        for (place, (at, size)) in self.rows.iter().enumerate() {
            let time = at.saturating_sub(begin).max(1) as f64;
            if place >= LEAST_TAIL {
                most = most.max(8e9 * octets / time);
            }
            octets += size;
        }
        most
    }
}

/// The bucket that all these trains conform to, in the order in which they were sent: most of those
/// that were held back ended at one rate, and others were let through at half as much again.
pub fn envelope(trains: &[Passage]) -> Option<TurningPoint> {
    let base_ns = trains.iter().map(|train| train.least_ns).min()?;
    let heads: Vec<f64> = trains.iter().map(|train| train.head_bps(base_ns)).collect();
    let fastest = heads.iter().copied().fold(0.0, f64::max);
    let held = |tail: &Tail| tail.rate() * APART < fastest;
    let tails: Vec<Tail> = (0..).zip(trains).filter_map(|(place, train)| train.tail(place)).filter(held).collect();
    let near = |rate: f64| tails.iter().filter(move |tail| (tail.rate() / rate - 1.0).abs() <= ALIKE);
    let weight = |rate: f64| near(rate).map(|tail| tail.octets).sum::<f64>();
    let centre = tails.iter().map(Tail::rate).max_by(|a, b| weight(*a).total_cmp(&weight(*b)))?;
    let alike: Vec<&Tail> = near(centre).collect();
    let all: f64 = tails.iter().map(|tail| tail.octets).sum();
    let time_ns: f64 = alike.iter().map(|tail| tail.time_ns * tail.ours).sum();
    if alike.len() < LEAST_TRAINS || weight(centre) < MOST * all {
        return None;
    }
    let rate = 8e9 * weight(centre) / time_ns;
    let (depth, levels) = levels(trains, base_ns, rate);
    // Each of them shows the bend, or came when the bucket had been drained. Others drain it as
    // well, but no two loaded links hold trains back by as much.
    let far = fastest > NO_LINKS * rate;
    let bent = |tail: &&&Tail| heads[tail.place] > APART * rate || levels[tail.place] > depth / 2.0;
    let packet = trains.iter().filter_map(|train| train.rows.last()).map(|(_, octets)| *octets).fold(0.0, f64::max);
    let explained = alike.iter().filter(bent).count();
    if depth < LEAST_DEPTH * packet || !(far || explained * 4 >= alike.len() * 3) {
        return None;
    }
    let rates: Vec<f64> = alike.iter().map(|tail| tail.rate()).collect();
    let sent: Vec<f64> = alike.iter().map(|tail| trains[tail.place].departure_bps.min(fastest)).collect();
    let sent_bps = narrows_stat::median(&sent)?;
    // A sender that the bucket itself holds up leaves as slowly as it arrives, but for its head.
    let began: Vec<f64> = alike.iter().map(|tail| heads[tail.place]).collect();
    let end = |pick: fn(f64, f64) -> f64| rates.iter().copied().reduce(pick).and_then(BitRate::from_bps_f64);
    Some(TurningPoint {
        peak: BitRate::from_bps_f64(narrows_stat::median(&began)?.max(sent_bps).max(APART * rate))?,
        sustained: BitRate::from_bps_f64(rate)?,
        sustained_range: (end(f64::min)?, end(f64::max)?),
        sent: BitRate::from_bps_f64(sent_bps)?,
        depth_octets: rounded(depth),
        depth_range: (rounded(depth), rounded(depth * (1.0 + super::UNEVEN_DEPTH) + packet)),
        sender_limited: false,
        ours: 1.0,
        uneven: true,
        pace: Pace::Uneven,
        lost_share: 0.0,
        queued_octets: 0,
        trains: alike.len(),
    })
}

/// The least depth of a bucket of this rate that let all these trains through as they came, octets.
pub fn depth_octets(trains: &[Passage], rate: BitRate) -> u64 {
    let base_ns = trains.iter().map(|train| train.least_ns).min().unwrap_or(0);
    rounded(levels(trains, base_ns, rate.as_f64()).0)
}

/// The least depth of a bucket of this rate that let all trains through as they came, octets, and
/// what was gone from it at the end of each.
fn levels(trains: &[Passage], base_ns: i64, rate_bps: f64) -> (f64, Vec<f64>) {
    let (mut level, mut last_ns, mut depth) = (0.0f64, i64::MIN, 0.0f64);
    let mut ends = Vec::with_capacity(trains.len());
    for train in trains {
        let filled = |from: i64, to: i64| rate_bps / 8e9 * to.saturating_sub(from) as f64;
        // Nothing of it can have come before; a late first stamp leaves the others too close.
        let begin = train.departed_ns.saturating_add(base_ns);
        level = if last_ns == i64::MIN { 0.0 } else { (level - filled(last_ns, begin)).max(0.0) };
        last_ns = begin;
        for (at, octets) in &train.rows {
            level += octets - filled(last_ns, *at);
            last_ns = *at;
            depth = depth.max(level);
        }
        ends.push(level);
    }
    (depth, ends)
}

// Ours, all of them.
/// Packets of a tail: a timer that is late by half a packet's time moves it by no more than a
/// sixteenth, and a receiver that stamps pairs together by no more than an eighth.
const LEAST_TAIL: usize = 8;
/// Times the rate that others were held to: FIFO links beside traffic of half their rate do less.
const APART: f64 = 1.5;
/// A link of `C` beside other traffic `x < C` lets a train of `r >= C` through at `r C / (r + x)`,
/// more than `C / 2`, and a second one at more than `C / 3`.
const NO_LINKS: f64 = 3.0;
/// Tails beside traffic that comes at random differ by more.
const ALIKE: f64 = 0.03;
/// As many as must bend to one rate.
const LEAST_TRAINS: usize = super::ON_RATE;
/// Of the octets of all tails that were held back.
const MOST: f64 = 0.5;
/// Packets: below that a timer's lateness passes for a bucket.
const LEAST_DEPTH: f64 = 8.0;
