//! Capacity from the single gaps of trains that left back to back (ours).
//!
//! Stamps of real hosts scatter by a microsecond or two. At a gigabit that is a tenth of a packet's
//! time, so the rates of pairs scatter by as much, and no mode of them is narrow. But whatever one
//! stamp is late the next gap is short by, so the gaps of a train scatter around the packet's time
//! and not away from it. A packet of others between two of ours makes a gap longer by its own time.

use narrows_stat::{mean, median};

use super::sample::{Phase, Sample};
use super::session::{MethodRun, Pooled};

/// The narrow link's wire rate, where most gaps are one packet of ours, packets of other sizes say
/// the same, and the trains' first gaps say what their last ones say.
pub(super) fn narrow(session: &MethodRun) -> Option<Pooled> {
    let full = session.full_size();
    let trains: Vec<Vec<f64>> =
        back_to_back(session).filter(|s| s.ip_octets == full).map(|s| scaled(session, s)).collect();
    let centre = centre(&trains)?;
    let cluster = Cluster::around(&trains, centre, LEAST_GAPS)?;
    let others: Vec<Vec<f64>> = back_to_back(session)
        .filter(|sample| sample.ip_octets < full && f64::from(sample.ip_octets) >= LEAST_SIZE * f64::from(full))
        .map(|sample| scaled(session, sample))
        .collect();
    let other = Cluster::around(&others, centre, LEAST_OTHERS)?;
    let same = (other.mean / cluster.mean - 1.0).abs() < SIZES_AGREE;
    if !same {
        return None;
    }
    let half = cluster.half_width();
    let (rate, low, high) = (8e9 / cluster.mean, 8e9 / (cluster.mean + half), 8e9 / (cluster.mean - half));
    Some(Pooled { rate, low, high, explained: true })
}

/// Gaps that are one packet of ours. Times are ns per octet on the wire.
struct Cluster {
    mean: f64,
    median: f64,
    /// Mean of each train.
    of_trains: Vec<f64>,
    /// Means of gaps among a train's first ones, and behind those.
    early: Option<f64>,
    late: Option<f64>,
}

impl Cluster {
    fn around(trains: &[Vec<f64>], centre: f64, least: usize) -> Option<Self> {
        let near = |gap: &f64| (gap / centre - 1.0).abs() < NEAR;
        let all = trains.iter().map(Vec::len).sum::<usize>();
        let inside: Vec<f64> = trains.iter().flatten().copied().filter(near).collect();
        if inside.len() < least || (inside.len() as f64) < SHARE * all as f64 {
            return None;
        }
        // Gaps that lie anywhere in the window are not one packet's time, but a blur of several.
        if narrows_stat::mad(&inside)? > BLURRED * centre {
            return None;
        }
        let part = |from: usize, to: usize| {
            let gaps = trains.iter().flat_map(|train| train.iter().skip(from).take(to - from));
            mean(&gaps.copied().filter(near).collect::<Vec<_>>())
        };
        let of_trains = trains.iter().filter_map(|train| {
            let own: Vec<f64> = train.iter().copied().filter(near).collect();
            (own.len() >= LEAST_OF_TRAIN).then(|| mean(&own)).flatten()
        });
        let of_trains: Vec<f64> = of_trains.collect();
        (of_trains.len() >= LEAST_TRAINS).then_some(())?;
        let (mean, median) = (mean(&inside)?, median(&inside)?);
        Some(Self { mean, median, of_trains, early: part(0, EARLY), late: part(EARLY, usize::MAX) })
    }

    /// Half of the 90 % interval: what trains differ by, how lopsided the gaps are, and what a
    /// queue that grew behind the narrow link has moved the later ones by.
    fn half_width(&self) -> f64 {
        let n = self.of_trains.len() as f64;
        let sd = narrows_stat::variance_sample(&self.of_trains).unwrap_or(0.0).sqrt();
        let t = narrows_stat::student_t_quantile(0.95, n - 1.0).unwrap_or(2.0);
        let moved = self.early.zip(self.late).map_or(0.0, |(early, late)| (early - late).abs());
        (t * sd / n.sqrt()).hypot(self.mean - self.median).hypot(moved / 2.0).max(RESOLUTION * self.mean)
    }
}

/// Back-to-back trains that left clearly faster than they came.
fn back_to_back(session: &MethodRun) -> impl Iterator<Item = &Sample> {
    let small = |sample: &&Sample| sample.phase != Phase::Filter && sample.sent_ns < CLOSED * sample.span_ns();
    session.bursts().filter(small)
}

/// Its gaps, ns per octet on the wire.
fn scaled(session: &MethodRun, sample: &Sample) -> Vec<f64> {
    let octets = f64::from(session.framing().wire_octets(u32::from(sample.ip_octets)));
    sample.gaps_ns.iter().map(|gap| gap / octets).collect()
}

/// Where most gaps are: the middle of the window of so many percent that holds most of them.
fn centre(trains: &[Vec<f64>]) -> Option<f64> {
    let mut gaps: Vec<f64> = trains.iter().flatten().copied().filter(|gap| *gap > 0.0).collect();
    gaps.sort_by(f64::total_cmp);
    median(densest(&gaps, WINDOW))
}

/// The most of sorted `values` that lie within a factor of `window`.
pub(in crate::capacity) fn densest(values: &[f64], window: f64) -> &[f64] {
    let (mut best, mut end) = ((0, 0), 0);
    for (begin, low) in values.iter().enumerate() {
        while values.get(end).is_some_and(|value| *value < low * window) {
            end += 1;
        }
        if end - begin > best.1 - best.0 {
            best = (begin, end);
        }
    }
    values.get(best.0..best.1).unwrap_or(&[])
}

// Ours, all of them.
/// A gap is a packet of ours up to this share from the centre: a packet of 600 octets of others
/// makes it two fifths longer.
const NEAR: f64 = 0.25;
/// Half of the gaps are nearer to their median than this; an even blur has an eighth.
const BLURRED: f64 = 0.08;
/// Of this ratio from end to end.
const WINDOW: f64 = 1.3;
/// Most gaps.
const SHARE: f64 = 0.5;
const LEAST_GAPS: usize = 60;
const LEAST_OTHERS: usize = 20;
const LEAST_TRAINS: usize = 3;
const LEAST_OF_TRAIN: usize = 3;
/// Gaps at the begin of a train, before a queue behind the narrow link has grown.
const EARLY: usize = 3;
/// A sender that is no faster than this share of the link may be what trains show.
pub(super) const CLOSED: f64 = 0.8;
/// Smaller packets are nearer to what hosts take per packet.
const LEAST_SIZE: f64 = 0.6;
/// What a wrong framing makes of packets of three fifths.
const SIZES_AGREE: f64 = 0.04;
/// Clock frequency and framing.
const RESOLUTION: f64 = 0.002;
