//! Capacity from the packets of least delay in trains that left back to back (ours, after
//! `[CapProbe04]`).
//!
//! The k-th packet of such a train arrives `base + k T + W` after the departure of the train's
//! first. `T` is its time on the narrow link, and `W >= 0` what others made it wait. Pairs that met
//! nobody need two packets without a wait, and a filter that stamps do not blur. Trains have many
//! more neighbours, all on one line: the right slope has most of them at the bottom.

use super::gaps::CLOSED;
use super::sample::{Phase, Sample};
use super::session::{MethodRun, Pooled};

/// The narrow link's wire rate, where enough neighbours lie at the bottom for one slope, and three
/// times as many as for any other.
pub(super) fn narrow(session: &MethodRun) -> Option<Pooled> {
    let trains = arrivals(session);
    let (from, to) = slopes(&trains)?;
    let steps = ((to / from).ln() / STEP.ln()).ceil().clamp(1.0, MOST_STEPS);
    let lines: Vec<Line> = std::iter::successors(Some(from), |slope| Some(slope * STEP))
        .take_while(|slope| *slope < from * STEP.powf(steps))
        .filter_map(|slope| Line::of_slope(&trains, slope))
        .collect();
    let best = lines.iter().copied().max_by_key(|line| line.neighbours)?;
    let other = lines.iter().filter(|line| (line.slope / best.slope - 1.0).abs() > APART).map(|line| line.neighbours);
    let other = other.max().unwrap_or(0);
    if best.neighbours < LEAST || other * AHEAD > best.neighbours {
        return None;
    }
    let fit = best.fitted(&trains).filter(|fit| left_faster(session, fit.slope))?;
    let octets = f64::from(session.framing().wire_octets(u32::from(session.full_size())));
    let rate = |slope: f64| 8e9 * octets / slope;
    let (low, high) = (rate(fit.slope + fit.error), rate(fit.slope - fit.error - fit.waits));
    Some(Pooled { rate: rate(fit.slope), low, high, explained: true })
}

/// Whether trains left clearly faster than one packet in so many ns: else the line is the sender's.
fn left_faster(session: &MethodRun, slope: f64) -> bool {
    let gaps: Vec<f64> = lined_up(session).map(|sample| sample.sent_ns / sample.gaps_ns.len() as f64).collect();
    narrows_stat::median(&gaps).is_some_and(|gap| gap < CLOSED * slope)
}

/// Trains of full-size packets that left back to back.
fn lined_up(session: &MethodRun) -> impl Iterator<Item = &Sample> {
    session.bursts().filter(|sample| {
        sample.phase != Phase::Filter && sample.ip_octets == session.full_size() && sample.sent_ns < sample.span_ns()
    })
}

/// Arrivals of the full-size packets of each train, ns after the departure of its first packet.
fn arrivals(session: &MethodRun) -> Vec<Vec<f64>> {
    let times = lined_up(session).filter_map(|sample| {
        let first = sample.delays?.first_ns as f64;
        let after = sample.gaps_ns.iter().take(LONGEST).scan(first, |at, gap| {
            *at += gap;
            Some(*at)
        });
        Some(std::iter::once(first).chain(after).collect())
    });
    times.collect()
}

/// Slopes to be tried: from below the shortest gaps to beyond most.
fn slopes(trains: &[Vec<f64>]) -> Option<(f64, f64)> {
    let gaps: Vec<f64> = trains.iter().flat_map(|train| train.windows(2).map(|two| two[1] - two[0])).collect();
    let (short, long) = (narrows_stat::quantile(&gaps, 0.02)?, narrows_stat::quantile(&gaps, 0.9)?);
    Some((0.8 * short.max(LEAST_GAP_NS), 1.1 * long)).filter(|(from, to)| from < to)
}

/// A slope, and the line of that slope below all packets.
#[derive(Debug, Clone, Copy)]
struct Line {
    slope: f64,
    bottom: f64,
    tolerance: f64,
    neighbours: usize,
}

/// A line through the packets at the bottom.
struct Fit {
    slope: f64,
    error: f64,
    /// What waits within the tolerance may have added to the slope.
    waits: f64,
}

impl Line {
    fn of_slope(trains: &[Vec<f64>], slope: f64) -> Option<Self> {
        let all = trains.iter().flat_map(|train| above(train, slope));
        let bottom = all.reduce(f64::min)?;
        let tolerance = (TOLERANCE * slope).max(TOLERANCE_NS);
        let line = Self { slope, bottom, tolerance, neighbours: 0 };
        let neighbours = trains.iter().map(|train| line.at_bottom(train).len()).sum();
        Some(Self { neighbours, ..line })
    }

    /// Indices of packets at the bottom whose next is there, too.
    fn at_bottom(&self, train: &[f64]) -> Vec<usize> {
        let there: Vec<bool> = above(train, self.slope).map(|above| above - self.bottom < self.tolerance).collect();
        (1..there.len()).filter(|next| there[next - 1] && there[*next]).map(|next| next - 1).collect()
    }

    fn fitted(self, trains: &[Vec<f64>]) -> Option<Fit> {
        let mut line = self;
        for _ in 0..ROUNDS {
            let slope = line.through(trains)?.slope;
            let settled = (slope / line.slope - 1.0).abs() < SETTLED;
            line = Self::of_slope(trains, slope)?;
            if settled {
                break;
            }
        }
        line.through(trains)
    }

    fn through(&self, trains: &[Vec<f64>]) -> Option<Fit> {
        let (mut places, mut times) = (Vec::new(), Vec::new());
        for train in trains {
            let mut indices: Vec<usize> = self.at_bottom(train).into_iter().flat_map(|at| [at, at + 1]).collect();
            indices.dedup();
            for index in indices {
                places.push(index as f64);
                times.push(*train.get(index)?);
            }
        }
        let fit = narrows_stat::ols(&places, &times).ok()?;
        let spread = narrows_stat::variance_sample(&places)?.sqrt();
        let slope = fit.line.slope;
        let error = 1.645 * fit.slope_se.max(RESOLUTION * slope);
        Some(Fit { slope, error, waits: self.tolerance / 4.0 / spread.max(1.0) })
    }
}

fn above(train: &[f64], slope: f64) -> impl Iterator<Item = f64> + '_ {
    train.iter().enumerate().map(move |(index, at)| at - slope * index as f64)
}

// Ours, all of them.
/// From one slope to the next.
const STEP: f64 = 1.005;
/// From a gap to a thousand of it.
const MOST_STEPS: f64 = 1400.0;
/// Packets of a train that count: behind them a queue of the probes' own may stand elsewhere.
const LONGEST: usize = 20;
const LEAST_GAP_NS: f64 = 200.0;
/// A packet is at the bottom up to this share of its time above it, or what stamps are off by.
const TOLERANCE: f64 = 0.06;
const TOLERANCE_NS: f64 = 2000.0;
/// Neighbours that speak, and how far ahead they must be of any slope this far apart.
const LEAST: usize = 6;
const AHEAD: usize = 3;
const APART: f64 = 0.06;
const ROUNDS: usize = 5;
const SETTLED: f64 = 1e-4;
/// Framing and clock rate.
const RESOLUTION: f64 = 0.002;
