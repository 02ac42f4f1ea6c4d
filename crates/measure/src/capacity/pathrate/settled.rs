//! Capacity behind a shaper's small bucket, from the later part of trains (ours).
//!
//! Kernels shape by a bucket of some packets and a timer. The first packets of a train pass at
//! once. The next one waits until the timer fires, late by tens of microseconds. From there on
//! packets leave at the shaper's rate, as tokens keep arriving while the timer is late. So pairs
//! and short trains are wrong in the same way in every train. Only the later part of long trains
//! shows the rate.

use super::paced::contradicts;
use super::rates::plain;
use super::sample::{Phase, Sample};
use super::session::MethodRun;
use narrows_probe::outcome::{BoundKind, Caveat, Estimate, Reason};
use narrows_units::BitRate;

/// The rate at which long trains went on, once their first packets were through.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Settled {
    /// Wire rate, bit/s.
    pub(super) rate: f64,
    /// Twice the standard error of the trains' mean.
    pub(super) error: f64,
    /// Two thirds of the trains began with packets that passed at once.
    bucket: bool,
}

/// The estimate, or what long trains settled at where that contradicts it: no FIFO link carries the
/// later part of a train faster than its capacity, and none lets two packets through at once.
pub(super) fn corrected(session: &MethodRun, found: Result<Estimate, Reason>) -> Result<Estimate, Reason> {
    let Some(settled) = settled(session) else { return found };
    let wire = |ip: f64| ip * settled.rate / session.ip_rate(settled.rate);
    let contradicted = match &found {
        Err(_) => settled.bucket,
        Ok(estimate) => estimate.rate().is_some_and(|rate| {
            let above = |ip: BitRate| wire(ip.as_f64()) / settled.rate - 1.0;
            let far = APART + settled.error / settled.rate;
            let faster = || settled.bucket || contradicts(session, settled.rate, wire(rate.high.as_f64()));
            let wrong = above(rate.value) < -far || (above(rate.high) > far && faster());
            if rate.verdict == BoundKind::Estimated { wrong } else { settled.bucket }
        }),
    };
    if !contradicted {
        return found;
    }
    let error = settled.error.max(KNOWN * settled.rate);
    let found = plain(session, settled.rate, settled.rate - error, settled.rate + error)?;
    Ok(found.with("branch", "settled trains").caveat(Caveat::Shaped))
}

/// Packets of the trains that tell more, where most begin as behind a bucket and are too short to
/// say at which rate they go on.
pub(super) fn wanted(session: &MethodRun) -> Option<usize> {
    if settled(session).is_some() {
        return None;
    }
    let trains = later_parts(session);
    let (gaps, time) = trains.iter().fold((0.0, 0.0), |(gaps, time), train| (gaps + train.gaps, time + train.time_ns));
    let inside: Vec<&Later<'_>> = trains.iter().collect();
    let begins = inside.len() >= LEAST_TRAINS && lets_some_through(&inside, time / gaps);
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a positive count of packets")]
    let packets = (LASTS_NS * gaps / time).ceil() as usize;
    begins.then_some(packets.max(LEAST_PACKETS))
}

/// Where trains of full-size packets settled, if most agree. Those that bursts of others met are
/// slower, and do not count.
fn settled(session: &MethodRun) -> Option<Settled> {
    let trains = later_parts(session);
    let all: f64 = trains.iter().map(|train| train.gaps).sum();
    let weigh = |inside: &mut dyn Iterator<Item = &Later<'_>>| inside.map(|train| train.gaps).sum::<f64>();
    let around = |gap_ns: f64| trains.iter().filter(move |train| train.agrees(gap_ns));
    let weight = |train: &Later<'_>| weigh(&mut around(train.gap_ns()));
    let centre = trains.iter().max_by(|a, b| weight(a).total_cmp(&weight(b)))?.gap_ns();
    let inside: Vec<&Later<'_>> = around(centre).collect();
    let gaps = weigh(&mut inside.iter().copied());
    let faster = weigh(&mut trains.iter().filter(|train| !train.agrees(centre) && train.gap_ns() < centre));
    if inside.len() < LEAST_TRAINS || gaps < LEAST_GAPS || gaps < MOST * all || faster > FASTER * all {
        return None;
    }
    let gap_ns = inside.iter().map(|train| train.time_ns).sum::<f64>() / gaps;
    let square = |train: &&Later<'_>| train.gaps * (train.gap_ns() / gap_ns - 1.0).powi(2);
    let variance = inside.iter().map(square).sum::<f64>() / gaps;
    let error = 2.0 * (variance / (inside.len() - 1) as f64).sqrt();
    let octets = session.framing().wire_octets(u32::from(session.full_size()));
    let rate = 8e9 * f64::from(octets) / gap_ns;
    let bucket = lets_some_through(&inside, gap_ns);
    (error < APART).then_some(Settled { rate, error: error * rate, bucket })
}

/// What counts of all trains of full-size packets that left back to back.
fn later_parts(session: &MethodRun) -> Vec<Later<'_>> {
    let pushed = [Phase::Preliminary, Phase::Trains, Phase::Bucket, Phase::Pushed, Phase::Settle];
    pushed
        .into_iter()
        .flat_map(|phase| session.of(phase))
        .filter(|sample| sample.ip_octets == session.full_size() && !sample.open())
        .filter_map(Later::of)
        .collect()
}

/// Whether most trains begin with packets that came together and one that came late, and go on
/// without. A host at rest stamps a first packet late, which brings two together as well; but then
/// the third comes in time.
fn lets_some_through(trains: &[&Later<'_>], packet_ns: f64) -> bool {
    let together = |gap: &&f64| **gap < TOGETHER * packet_ns;
    let begins = trains.iter().filter(|train| {
        let Some(head) = train.sample.delays else { return false };
        let first = head.first_ns.saturating_sub(head.head_ns) as f64;
        let next = train.sample.gaps_ns.iter().find(|gap| !together(gap));
        first < TOGETHER * packet_ns && next.is_some_and(|gap| *gap > LATE * packet_ns)
    });
    let later = || trains.iter().flat_map(|train| later(train.sample));
    let again = later().filter(together).count() as f64 / later().count() as f64;
    begins.count() as f64 > BEGIN * trains.len() as f64 && again < AGAIN
}

/// A train without the packets that a small bucket may have let through.
struct Later<'a> {
    sample: &'a Sample,
    gaps: f64,
    time_ns: f64,
}

impl<'a> Later<'a> {
    fn of(sample: &'a Sample) -> Option<Self> {
        let gaps = later(sample);
        let time_ns: f64 = gaps.iter().sum();
        (time_ns > 0.0 && gaps.len() >= LEAST_LATER).then_some(Self { sample, gaps: gaps.len() as f64, time_ns })
    }

    fn gap_ns(&self) -> f64 {
        self.time_ns / self.gaps
    }

    /// Whether it says the same, to what traffic at random does not and what a timer may be late
    /// by.
    fn agrees(&self, gap_ns: f64) -> bool {
        let expected = gap_ns * self.gaps;
        (self.time_ns - expected).abs() < (ALIKE * expected).max(TIMER_NS.min(gap_ns))
    }
}

/// Its gaps behind the first quarter, and behind a bucket of three packets at least.
fn later(sample: &Sample) -> &[f64] {
    let first = sample.gaps_ns.len().div_ceil(FIRST_PART).max(LEAST_FIRST);
    sample.gaps_ns.get(first..).unwrap_or_default()
}

/// Ours: trains beside traffic that comes at random differ by more.
const ALIKE: f64 = 0.015;
/// Ours, and no more than a packet's time: a packet of others makes more.
const TIMER_NS: f64 = 20e3;
/// Ours: half of what was sent.
const MOST: f64 = 0.5;
/// Ours: hosts that stood still push the rest of a train together now and then.
const FASTER: f64 = 0.25;
/// Ours: two rounds' trains, which have a scatter.
const LEAST_TRAINS: usize = 4;
/// Ours: a timer that is late by a packet's time is then a fiftieth of the rate.
const LEAST_GAPS: f64 = 60.0;
/// Ours.
const FIRST_PART: usize = 4;
const LEAST_FIRST: usize = 2;
const LEAST_LATER: usize = 5;
/// Ours: more than what trains agree to.
const APART: f64 = 0.02;
/// Ours: of a packet's time.
const TOGETHER: f64 = 0.5;
const LATE: f64 = 1.06;
/// Ours: of the trains.
const BEGIN: f64 = 0.66;
/// Ours: of the later gaps. Receivers that take packets in batches have more.
const AGAIN: f64 = 0.33;
/// Ours: a timer moves a train of 6 ms by less than a hundredth.
const LASTS_NS: f64 = 6e6;
const LEAST_PACKETS: usize = 24;
pub(super) const TRAINS: usize = 4;
/// Ours: what timers of a bucket and stamps move a long train's rate by.
const KNOWN: f64 = 0.01;
