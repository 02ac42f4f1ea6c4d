//! When may a transfer end early? `TCP_INFO` samples in, a verdict out. Pure.
//!
//! Two rules, each usable by itself:
//! - [`Rule::Seed003`], the rule of `[QuickMode03]`: the end of slow start by the window's movement
//!   over two round trips, then one second, whatever it shows.
//! - [`Rule::Composite`], ours: the end of the ramp for Reno, CUBIC and BBR, then for as long as it
//!   takes until the rate stands *and something holds it there*: the link (its queue never
//!   empties), the peer's window, the application or a pacing rate, BBR, or so many losses that
//!   their mean is known. A window that merely has not been cut yet holds nothing: such a test runs
//!   on.

use std::time::Duration;

use narrows_units::{Sender, Stamp};

use super::ramp::{Ramp, RampEnd, Rule};
use narrows_diagnose::limits::theory;
use narrows_probe::probes::{Congestion, StreamReport, TcpSample, TcpState};
use narrows_train::bulk::series;

/// What holds the rate where it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Held {
    /// The rule of `[QuickMode03]` does not ask.
    Unasked,
    /// The link: its queue never empties.
    Link,
    /// The peer's window, the application, or a pacing rate.
    Elsewhere,
    /// BBR's model of the path.
    Bbr,
    /// Losses, as many as make a mean.
    Losses,
}

impl Held {
    /// What evidence calls it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Unasked => "not asked",
            Self::Link => "link",
            Self::Elsewhere => "window, application or pacing",
            Self::Bbr => "bbr",
            Self::Losses => "many losses",
        }
    }
}

/// The test may end: what it measured, and how far that may be off.
#[derive(Debug, Clone, PartialEq)]
pub struct Stop {
    /// When the measurement began.
    pub from: Stamp<Sender>,
    /// When it ended.
    pub to: Stamp<Sender>,
    /// Payload acknowledged in it, bit/s.
    pub bps: f64,
    /// Rates of its parts.
    pub parts_bps: Vec<f64>,
    /// What holds the rate.
    pub held: Held,
    /// By which share of itself the value may differ from that of 20 s: the 95 % interval of its
    /// mean, what one cut of the window in that time would cost, or what the ramp and BBR's looks
    /// at the empty round trip cost of it, whichever is most.
    pub risk: f64,
}

/// Where a test stands.
#[derive(Debug, Clone, PartialEq)]
pub enum QuickVerdict {
    /// The window still grows.
    Ramping,
    /// Past the ramp; the rate does not stand yet, or nothing holds it.
    Measuring,
    /// It may end.
    Stop(Stop),
}

/// The rules at work on one test of one or more connections.
#[derive(Debug, Clone)]
pub struct Quick {
    rule: Rule,
    /// A pacing rate was asked for: it holds a window without any queue.
    paced: bool,
    began: Option<Stamp<Sender>>,
    congestion: Congestion,
    ramps: Vec<Ramp>,
    ended: Vec<Option<RampEnd>>,
    polled: Vec<Option<Stamp<Sender>>>,
    rows: Vec<Row>,
}

/// All connections at one time.
#[derive(Debug, Clone, Copy)]
struct Row {
    at: Stamp<Sender>,
    acked_octets: u64,
    retransmitted: u64,
    /// Mean of the smoothed and of the smallest round-trip times, seconds.
    rtt: f64,
    floor: f64,
    mss_octets: f64,
    recovering: bool,
    /// Every connection's queue holds something.
    queued: bool,
    /// Something else than the congestion window is every connection's limit.
    elsewhere: bool,
}

/// The window of `[QuickMode03]`, and the least of ours.
const LEAST_WINDOW: Duration = Duration::from_secs(1);
/// Round trips of the measurement at least: of queues; of BBR, whose gains take turns over eight.
const WINDOW_RTTS: f64 = 3.0;
const WINDOW_RTTS_BBR: f64 = 8.0;
/// Parts of the window: at least four, each so long, of so many round trips and segments, so that
/// neither the rhythm of acknowledgements nor one recovery makes them differ (ours, by the sweep in
/// docs/results/quick-mode.md). Where cuts do not empty the queue fewer will do.
const FEWEST_PARTS: usize = 4;
const MOST_PARTS: usize = 40;
const PART_SECONDS: f64 = 0.2;
const PART: (f64, f64) = (1.5, 20.0);
const PART_DEEP: (f64, f64) = (1.0, 8.0);
/// Halves further apart than this, and means less sure, do not stand (ours).
const HALVES_APART: f64 = 0.10;
const UNSURE: f64 = 0.06;
/// Round trips above the shortest by this factor went through a queue; the share of the samples
/// that must have (ours).
const QUEUED: f64 = 1.05;
const MOSTLY: f64 = 0.95;
/// What one cut of the window may cost of 20 s (ours).
const MOST_RISK: f64 = 0.05;
/// Losses, further apart than a round trip, whose mean is known (ours).
const MANY_LOSSES: u32 = 10;
/// What is predicted.
const HORIZON_SECONDS: f64 = 20.0;
/// Rows kept: more than a quarter of an hour.
const MOST_ROWS: usize = 40_000;
/// BBR's window while it looks for the path's empty delay; such rows say nothing of the rate.
const PROBE_RTT_SEGMENTS: u32 = 4;

impl Quick {
    /// Before the first sample; `paced` if a pacing rate was asked for.
    pub fn new(rule: Rule, paced: bool) -> Self {
        Self {
            rule,
            paced,
            began: None,
            congestion: Congestion::Cubic,
            ramps: Vec::new(),
            ended: Vec::new(),
            polled: Vec::new(),
            rows: Vec::new(),
        }
    }

    /// How long until the next look is worth while.
    pub fn poll_every(&self, rtt: Duration) -> Duration {
        let longest = self.ramps.iter().map(|ramp| ramp.poll_every(rtt)).max();
        longest.unwrap_or_else(|| Ramp::new(self.rule).poll_every(rtt))
    }

    /// How the ramp of the first connection ended.
    pub fn ramp_end(&self) -> Option<&'static str> {
        self.ended.first().copied().flatten().map(RampEnd::name)
    }

    pub(super) fn ended(&self) -> Option<RampEnd> {
        self.ended.first().copied().flatten()
    }

    pub(super) fn first_ramp(&self) -> Option<&Ramp> {
        self.ramps.first()
    }

    /// Takes the newest samples of all connections, which were sampled together, and says where the
    /// test stands.
    pub fn take(&mut self, streams: &[StreamReport]) -> QuickVerdict {
        if let Some(stream) = streams.first() {
            self.congestion = stream.congestion.clone();
            self.began = self.began.or(stream.samples.first().map(|sample| sample.at));
        }
        if self.ramps.len() < streams.len() {
            self.ramps.resize(streams.len(), Ramp::new(self.rule));
            self.ended.resize(streams.len(), None);
            self.polled.resize(streams.len(), None);
        }
        let count = streams.iter().map(|stream| stream.samples.len()).min().unwrap_or(0);
        for place in 0..count {
            let samples: Vec<&TcpSample> = streams.iter().map(|stream| &stream.samples[place]).collect();
            self.ramp(&samples);
            if self.is_ramped() {
                self.measure(&samples);
            }
        }
        if !self.is_ramped() || streams.is_empty() {
            return QuickVerdict::Ramping;
        }
        self.stop().map_or(QuickVerdict::Measuring, QuickVerdict::Stop)
    }

    fn is_ramped(&self) -> bool {
        !self.ended.is_empty() && self.ended.iter().all(Option::is_some)
    }

    /// Polls each connection's ramp when its time has come.
    fn ramp(&mut self, samples: &[&TcpSample]) {
        for (place, sample) in samples.iter().enumerate() {
            if self.ended[place].is_some() {
                continue;
            }
            let ramp = &mut self.ramps[place];
            let Some(polled) = self.polled[place] else {
                ramp.begin(sample);
                self.polled[place] = Some(sample.at);
                continue;
            };
            let every = ramp.poll_every(sample.rtt);
            if sample.at.since(polled) + every / 16 >= every {
                self.ended[place] = ramp.poll(sample, &self.congestion);
                self.polled[place] = Some(sample.at);
            }
        }
    }

    fn measure(&mut self, samples: &[&TcpSample]) {
        let Some(row) = Row::of(samples, self.paced) else {
            return;
        };
        let probing =
            self.congestion == Congestion::Bbr && samples.iter().any(|s| s.cwnd_segments <= PROBE_RTT_SEGMENTS);
        let newer = self.rows.last().is_none_or(|last| last.at.nanos() < row.at.nanos());
        if !newer || probing || self.rows.len() >= MOST_ROWS {
            return;
        }
        if self.rows.is_empty() && row.recovering && self.rule == Rule::Composite {
            return;
        }
        self.rows.push(row);
    }

    fn stop(&self) -> Option<Stop> {
        let (first, last) = (self.rows.first()?, self.rows.last()?);
        if self.rule == Rule::Seed003 {
            return self.second();
        }
        if last.recovering {
            return None;
        }
        self.judge(first.at, false).or_else(|| {
            // A queue that no cut empties makes every window alike: the newest will do.
            let window = self.window(first.at)?;
            let length = Duration::try_from_secs_f64(window.part * FEWEST_PARTS as f64 * 1.02).ok()?;
            let reverse = i64::try_from(length.max(LEAST_WINDOW).as_nanos()).ok()?;
            let from = Stamp::from_nanos(last.at.nanos().saturating_sub(reverse));
            (window.deep && from.nanos() > first.at.nanos()).then(|| self.judge(from, true))?
        })
    }

    /// One second, whatever it shows (`[QuickMode03]` §3.3).
    fn second(&self) -> Option<Stop> {
        let (first, last) = (self.rows.first()?, self.rows.last()?);
        let seconds = last.at.since(first.at);
        if seconds < LEAST_WINDOW {
            return None;
        }
        let parts_bps = self.parts(first.at, 10);
        let bps = rate(first, last)?;
        let half = interval(&parts_bps).unwrap_or(0.0);
        Some(Stop {
            from: first.at,
            to: last.at,
            bps,
            parts_bps,
            held: Held::Unasked,
            risk: (half / bps.max(1.0)).max(self.worst(bps, seconds.as_secs_f64())).max(self.missed(bps)),
        })
    }

    /// What a window right after a cut would show too little.
    fn worst(&self, bps: f64, seconds: f64) -> f64 {
        let Some(last) = self.rows.last() else { return 0.0 };
        let floor = Duration::try_from_secs_f64(last.floor).unwrap_or_default();
        let segments = theory::window_segments(bps, floor, last.mss_octets);
        1.0 - theory::worst_case(&self.congestion, segments, floor, seconds)
    }

    /// What the ramp and BBR's looks at the empty round trip cost of 20 s.
    fn missed(&self, bps: f64) -> f64 {
        let (Some(began), Some(last)) = (self.began, self.rows.last()) else {
            return 0.0;
        };
        let late = last.at.since(began).as_secs_f64() - last.acked_octets as f64 * 8.0 / bps.max(1.0);
        (late / HORIZON_SECONDS).clamp(0.0, 1.0) + theory::looks(&self.congestion, last.floor)
    }

    /// Whether the window since `from` answers.
    fn judge(&self, from: Stamp<Sender>, slid: bool) -> Option<Stop> {
        let window = self.window(from)?;
        if slid && !window.deep {
            return None;
        }
        let last = self.rows.last()?;
        let seconds = last.at.since(window.from.at).as_secs_f64();
        let bbr = self.congestion == Congestion::Bbr;
        let rounds = if bbr { WINDOW_RTTS_BBR } else { WINDOW_RTTS };
        let whole = (seconds / window.part).floor().min(MOST_PARTS as f64);
        let count = (FEWEST_PARTS..=MOST_PARTS).rev().find(|&count| count as f64 <= whole)?;
        let long = seconds >= LEAST_WINDOW.as_secs_f64().max(rounds * window.loaded);
        let parts_bps = self.parts(window.from.at, count);
        if !long || parts_bps.len() < FEWEST_PARTS {
            return None;
        }
        let (early, late) = parts_bps.split_at(parts_bps.len() / 2);
        let (early, late) = (narrows_stat::mean(early)?, narrows_stat::mean(late)?);
        let half = interval(&parts_bps)?;
        let stands = early > 0.0 && (late / early - 1.0).abs() <= HALVES_APART && half <= UNSURE * window.bps;
        if !stands {
            return None;
        }
        let held = self.held(&window, slid)?;
        let cut = match held {
            Held::Link => window.cut,
            Held::Unasked | Held::Elsewhere | Held::Bbr | Held::Losses => 0.0,
        };
        Some(Stop {
            from: window.from.at,
            to: last.at,
            bps: window.bps,
            parts_bps,
            held,
            risk: (half / window.bps).max(cut).max(self.missed(window.bps)),
        })
    }

    fn held(&self, window: &Window, slid: bool) -> Option<Held> {
        if self.congestion == Congestion::Bbr {
            return Some(Held::Bbr);
        }
        if window.elsewhere >= MOSTLY {
            return Some(Held::Elsewhere);
        }
        if window.queued >= MOSTLY && window.cut <= MOST_RISK && self.withstands_losses(window) {
            return Some(Held::Link);
        }
        (window.losses >= MANY_LOSSES && !slid).then_some(Held::Losses)
    }

    /// Whether one loss more than were seen, in as many segments, would leave the rate where it is,
    /// by the laws of Reno and CUBIC: what has not struck in a thousand segments may well strike
    /// once in each of the next thousands.
    fn withstands_losses(&self, window: &Window) -> bool {
        let (Some(first), Some(last)) = (self.rows.first(), self.rows.last()) else {
            return false;
        };
        let segments = last.acked_octets.saturating_sub(first.acked_octets) as f64 / last.mss_octets;
        let ratio = f64::from(losses(&self.rows).saturating_add(1)) / segments.max(1.0);
        let floor = Duration::try_from_secs_f64(last.floor).unwrap_or_default();
        let law = match &self.congestion {
            Congestion::Cubic => Congestion::Cubic,
            Congestion::Reno | Congestion::Bbr | Congestion::Other(_) => Congestion::Reno,
        };
        let each = theory::loss_model_bps(&law, ratio.min(1.0), floor, last.mss_octets);
        each.is_some_and(|each| each * self.ramps.len() as f64 >= window.bps)
    }

    /// The rows since `from`, in sums.
    fn window(&self, from: Stamp<Sender>) -> Option<Window> {
        let begin = self.rows.partition_point(|row| row.at.nanos() <= from.nanos()).saturating_sub(1);
        let rows = &self.rows[begin..];
        let (first, last) = (rows.first()?, rows.last()?);
        let bps = rate(first, last).filter(|bps| *bps > 0.0)?;
        let count = (rows.len() - 1).max(1) as f64;
        let share = |of: fn(&Row) -> bool| rows[1..].iter().filter(|row| of(row)).count() as f64 / count;
        let rtts: Vec<f64> = rows[1..].iter().map(|row| row.rtt).collect();
        let loaded = narrows_stat::median(&rtts)?;
        let floor = Duration::try_from_secs_f64(last.floor).unwrap_or_default();
        let segments = theory::window_segments(bps, floor, last.mss_octets);
        let backlog = (loaded / last.floor.max(1e-9) - 1.0).max(0.0);
        let cut = theory::one_cut(&self.congestion, segments, floor, backlog, HORIZON_SECONDS);
        let queued = share(|row| row.queued);
        let deep = cut <= 0.0 && queued >= MOSTLY;
        let (rounds, per_part) = if deep { PART_DEEP } else { PART };
        let by_segments = per_part * last.mss_octets * 8.0 / bps;
        Some(Window {
            from: *first,
            bps,
            loaded,
            queued,
            elsewhere: share(|row| row.elsewhere),
            losses: losses(rows),
            cut,
            deep,
            part: PART_SECONDS.max(rounds * loaded).max(by_segments),
        })
    }

    /// Rates of `count` equal parts of the time since `from`.
    fn parts(&self, from: Stamp<Sender>, count: usize) -> Vec<f64> {
        let Some(last) = self.rows.last() else {
            return Vec::new();
        };
        let whole = last.at.since(from);
        let bounds: Vec<&Row> = (0..=count)
            .filter_map(|k| {
                let at = from + whole.mul_f64(k as f64 / count.max(1) as f64);
                let next = self.rows.partition_point(|row| row.at.nanos() <= at.nanos());
                self.rows.get(next.saturating_sub(1))
            })
            .collect();
        bounds.windows(2).filter_map(|pair| rate(pair[0], pair[1])).collect()
    }
}

/// Sums over a window.
#[derive(Debug)]
struct Window {
    from: Row,
    bps: f64,
    /// Median round-trip time, seconds.
    loaded: f64,
    /// Shares of the rows.
    queued: f64,
    elsewhere: f64,
    losses: u32,
    /// What one cut would cost of 20 s.
    cut: f64,
    /// No cut empties the queue.
    deep: bool,
    /// Length of a part, seconds.
    part: f64,
}

impl Row {
    fn of(samples: &[&TcpSample], paced: bool) -> Option<Self> {
        let first = samples.first()?;
        let count = samples.len() as f64;
        let floor = |sample: &TcpSample| sample.min_rtt.unwrap_or(sample.rtt);
        let elsewhere = |sample: &TcpSample| {
            let by_window =
                f64::from(sample.in_flight_segments) >= series::WINDOW_FULL * f64::from(sample.cwnd_segments);
            let by_peer = series::peer_window_used(sample).is_some_and(|share| share >= series::WINDOW_FULL);
            let calm = sample.state == TcpState::Open;
            paced || by_peer || (calm && !by_window)
        };
        Some(Self {
            at: first.at,
            acked_octets: samples.iter().map(|s| s.acked_octets).fold(0, u64::saturating_add),
            retransmitted: samples.iter().map(|s| u64::from(s.retransmitted_segments)).sum(),
            rtt: samples.iter().map(|s| s.rtt.as_secs_f64()).sum::<f64>() / count,
            floor: samples.iter().map(|s| floor(s).as_secs_f64()).sum::<f64>() / count,
            mss_octets: f64::from(first.mss_octets.max(1)),
            recovering: samples.iter().any(|s| matches!(s.state, TcpState::Recovery | TcpState::Loss)),
            queued: samples.iter().all(|s| s.rtt.as_secs_f64() > QUEUED * floor(s).as_secs_f64()),
            elsewhere: samples.iter().all(|s| elsewhere(s)),
        })
    }
}

fn rate(from: &Row, to: &Row) -> Option<f64> {
    let seconds = to.at.since(from.at).as_secs_f64();
    let octets = to.acked_octets.saturating_sub(from.acked_octets);
    (seconds > 0.0).then(|| octets as f64 * 8.0 / seconds)
}

/// Losses that are further apart than a round trip.
fn losses(rows: &[Row]) -> u32 {
    let mut count = 0u32;
    let mut last: Option<Stamp<Sender>> = None;
    for pair in rows.windows(2) {
        if pair[1].retransmitted <= pair[0].retransmitted {
            continue;
        }
        let apart = last.is_none_or(|last| pair[1].at.since(last).as_secs_f64() > pair[1].rtt);
        count += u32::from(apart);
        last = Some(pair[1].at);
    }
    count
}

/// Half the 95 % interval of the parts' mean, their likeness to neighbours allowed for.
fn interval(parts: &[f64]) -> Option<f64> {
    let correlation = narrows_stat::autocorrelation_lag1(parts).unwrap_or(0.0);
    let worth = narrows_stat::effective_count(parts.len(), correlation);
    let spread = narrows_stat::coefficient_of_variation(parts)? * narrows_stat::mean(parts)?;
    let freedom = parts.len().checked_sub(1).filter(|freedom| *freedom > 0)?;
    let quantile = narrows_stat::student_t_quantile(0.975, freedom as f64).ok()?;
    Some(quantile * spread / worth.max(1.0).sqrt())
}

#[cfg(test)]
mod tests;
