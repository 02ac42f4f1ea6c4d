//! The parts of a train during which the tight link never ran idle, and the slope over them.

use super::levels::{Block, blocks};
use narrows_train::burst_ends::Sample;

/// Fewest burst ends behind a line where no part is known to be busy: below, one outlier owns it
/// (ours).
const MIN_ENDS: usize = 5;
/// Fewest burst ends of a backlogged period.
const SHORTEST: usize = 3;
/// Parts into which a backlogged period is cut to see how much its delays wander (ours).
const BLOCKS: usize = 8;
/// A part ends when the delay falls below this share of what began it (ours).
const STILL_BACKLOGGED: f64 = 0.3;
/// Backlogged periods are believed from this share of the train's time on (ours).
const ENOUGH: f64 = 0.1;
/// Seconds after which transfers may have answered a train: round trips as they are met (ours).
pub(super) const ROUND_TRIPS: [f64; 4] = [0.01, 0.02, 0.05, 0.1];
/// Variance of a least-squares slope over a random walk, relative to that of the line from end to
/// end: 6/5 (ours: the integral of the squared weights of the regression, `36 ∫ (x - x²)² dx`).
const WALK: f64 = 1.2;

/// A packet that waited for less than this share of its own time on the narrow link found nobody
/// before it (ours: stamps of a microsecond, and what is left of a small packet).
const WAITED: f64 = 0.2;

/// The line through the parts of a train.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Slope {
    /// Departure rate, bit/s.
    pub(super) rate: f64,
    /// Growth of delay per unit of send time, and its standard error.
    pub(super) growth: f64,
    pub(super) error: f64,
    /// Time behind it, seconds.
    pub(super) time: f64,
    /// Time for which the sender paused so long that the queue may have run empty, seconds.
    pub(super) paused: f64,
    /// The tight link was busy throughout; otherwise the line is of all but the first third.
    pub(super) backlogged: bool,
    /// What lies outside the backlogged periods.
    pub(super) idle: Idle,
    /// What of the backlogged periods left before a round trip of others was over, for each of
    /// [`ROUND_TRIPS`].
    pub(super) early: [Early; 4],
}

/// The begin of a train, before transfers that share the link can have answered it.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct Early {
    /// Seconds in which the tight link was busy.
    pub(crate) time: f64,
    /// Departure rate, bit/s.
    pub(crate) rate: f64,
    /// Growth of delay per unit of send time.
    pub(crate) growth: f64,
}

impl Early {
    /// Nothing was busy in it.
    const NONE: Self = Self { time: 0.0, rate: 0.0, growth: 0.0 };

    /// What is available in it on a link of `capacity`.
    pub(crate) fn available(self, capacity: f64) -> f64 {
        self.rate - capacity * self.growth
    }
}

/// The priming burst of a train, while the queue that it built stood.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Primed {
    /// Seconds.
    pub(crate) time: f64,
    /// Departure rate, bit/s.
    pub(crate) rate: f64,
    /// Growth of delay per unit of send time.
    pub(crate) growth: f64,
}

impl Primed {
    /// What is available in it on a link of `capacity`.
    pub(crate) fn available(self, capacity: f64) -> f64 {
        self.rate - capacity * self.growth
    }
}

/// The parts of a train between those that kept the tight link busy.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct Idle {
    /// Seconds; none where receiving in batches hides which packets waited.
    pub(crate) time: f64,
    /// Departure rate, bit/s.
    pub(crate) rate: f64,
    /// Share of the packets there that did not wait.
    pub(crate) free: f64,
}

impl Idle {
    /// What is available in it on a link of `capacity`: of what the train leaves, the share of
    /// packets that found nobody there.
    pub(crate) fn available(self, capacity: f64) -> f64 {
        self.rate + self.free * (capacity - self.rate).max(0.0)
    }
}

impl Slope {
    /// All packets left at once.
    pub(super) const UNTIMED: Self = Self {
        rate: f64::INFINITY,
        growth: f64::INFINITY,
        error: 0.0,
        time: 0.0,
        paused: 0.0,
        backlogged: true,
        idle: Idle { time: 0.0, rate: 0.0, free: 0.0 },
        early: [Early::NONE; 4],
    };
}

/// The burst ends of packets that did not belong to the head.
pub(super) fn behind(kept: &[Sample], priming_packets: f64) -> &[Sample] {
    let first = kept.iter().position(|sample| sample.departed >= priming_packets).unwrap_or(0);
    &kept[first..]
}

/// What the priming burst says by itself: from where the delay has grown to `backlogged_from` above
/// the least to its last packet. It begins at a stopping time and ends at a planned one, and it
/// left at a rate of its own, so it tells the tight link's capacity beside what is available.
pub(super) fn primed(kept: &[Sample], priming_packets: f64, least: f64, backlogged_from: f64) -> Option<Primed> {
    let end = kept.iter().position(|sample| sample.departed >= priming_packets)?;
    let delays = smoothed(&kept[..=end]);
    let begin = delays.iter().position(|delay| delay - least >= backlogged_from)?;
    if end + 1 < begin + SHORTEST {
        return None;
    }
    let time = kept[end].departed - kept[begin].departed;
    let rate = (kept[end].cumulative - kept[begin].cumulative) / time;
    let growth = (delays[end] - delays[begin]) / time;
    (time > 0.0 && rate.is_finite() && growth.is_finite()).then_some(Primed { time, rate, growth })
}

/// The slope over the backlogged periods of `kept`: each begins where the delay has grown to
/// `backlogged_from` above the least, and ends where it has fallen to a third of that, or where the
/// sender paused for longer than the delay.
///
/// Begin and end look at no later packet (they are stopping times), so that what a part gathers in
/// the mean is `(R - A)/C` of its time, whatever the traffic of others did to begin or end it; idle
/// moments of the link, in which delays do not fall as they should, stay out. So the parts' slopes
/// are those from end to end, summed over all of them, and not regressions, which would favour
/// parts that ended early. Their blocks come with it. Delays are medians of five neighbours, so
/// that no single stamp makes an end.
pub(super) fn slope(
    kept: &[Sample],
    least: f64,
    pauses: &[(f64, f64)],
    backlogged_from: f64,
    packet: f64,
) -> Option<(Slope, Vec<Block>)> {
    let delays = smoothed(kept);
    let stretches = stretches(kept, least, pauses);
    let parts: Vec<(usize, usize)> =
        stretches.iter().flat_map(|&(begin, end)| parts(&delays, (begin, end), least, backlogged_from)).collect();
    let length = |&(begin, end): &(usize, usize)| kept[end].departed - kept[begin].departed;
    let whole: f64 = stretches.iter().map(length).sum();
    let backlogged: f64 = parts.iter().map(length).sum();
    let line = if backlogged > 0.0 && backlogged >= ENOUGH * whole {
        from_end_to_end(kept, &delays, &parts, backlogged)?
    } else {
        regression(kept, &delays, &stretches)?
    };
    let idle = if line.backlogged {
        idle(kept, least, &stretches, &parts, packet)
    } else {
        idle(kept, least, &stretches, &[], packet)
    };
    let early =
        if line.backlogged { ROUND_TRIPS.map(|within| early(kept, &delays, &parts, within)) } else { [Early::NONE; 4] };
    let blocks = if line.backlogged { blocks(kept, &delays, least, &parts) } else { Vec::new() };
    let pause = |pair: &[(usize, usize)]| kept[pair[1].0].departed - kept[pair[0].1].departed;
    let line = Slope { paused: stretches.windows(2).map(pause).sum(), idle, early, ..line };
    Some((line, blocks))
}

/// What of the parts left `within` so many seconds of the train's first departure.
fn early(kept: &[Sample], delays: &[f64], parts: &[(usize, usize)], within: f64) -> Early {
    let (mut time, mut bits, mut growth) = (0.0, 0.0, 0.0);
    for &(begin, end) in parts {
        let end = (begin..=end).take_while(|&index| kept[index].departed <= within).last().unwrap_or(begin);
        time += kept[end].departed - kept[begin].departed;
        bits += kept[end].cumulative - kept[begin].cumulative;
        growth += delays[end] - delays[begin];
    }
    if time > 0.0 { Early { time, rate: bits / time, growth: growth / time } } else { Early::NONE }
}

/// What lies outside `parts`, all of it together.
fn idle(kept: &[Sample], least: f64, stretches: &[(usize, usize)], parts: &[(usize, usize)], packet: f64) -> Idle {
    let (mut time, mut bits, mut free, mut count) = (0.0, 0.0, 0u32, 0u32);
    let mut add = |begin: usize, end: usize| {
        if end <= begin {
            return;
        }
        time += kept[end].departed - kept[begin].departed;
        bits += kept[end].cumulative - kept[begin].cumulative;
        for sample in &kept[begin + 1..=end] {
            count += 1;
            free += u32::from(sample.delay() - least < WAITED * packet);
        }
    };
    for &(begin, end) in stretches {
        let mut from = begin;
        for &(start, stop) in parts.iter().filter(|(start, stop)| begin <= *start && *stop <= end) {
            add(from, start);
            from = stop;
        }
        add(from, end);
    }
    Idle { time, rate: if time > 0.0 { bits / time } else { 0.0 }, free: f64::from(free) / f64::from(count.max(1)) }
}

/// Medians of five neighbours; fewer at the ends.
fn smoothed(kept: &[Sample]) -> Vec<f64> {
    let raw: Vec<f64> = kept.iter().map(Sample::delay).collect();
    (0..raw.len())
        .map(|index| {
            let side = 2.min(index).min(raw.len() - 1 - index);
            narrows_stat::median(&raw[index - side..=index + side]).unwrap_or(raw[index])
        })
        .collect()
}

/// First and last index between pauses that emptied the queue.
fn stretches(kept: &[Sample], least: f64, pauses: &[(f64, f64)]) -> Vec<(usize, usize)> {
    let mut all = Vec::new();
    let mut begin = 0;
    for (index, pair) in kept.windows(2).enumerate() {
        let emptied = pauses
            .iter()
            .any(|&(at, length)| pair[0].departed < at && at <= pair[1].departed && length > pair[0].delay() - least);
        if emptied {
            all.push((begin, index));
            begin = index + 1;
        }
    }
    if begin < kept.len() {
        all.push((begin, kept.len() - 1));
    }
    all
}

/// First and last index of each backlogged period of a stretch.
fn parts(delays: &[f64], (start, stop): (usize, usize), least: f64, backlogged_from: f64) -> Vec<(usize, usize)> {
    let mut all = Vec::new();
    let mut begin = None;
    for (index, delay) in delays.iter().enumerate().take(stop + 1).skip(start) {
        let queue = delay - least;
        begin = match begin {
            None if queue >= backlogged_from => Some(index),
            Some(from) if queue < STILL_BACKLOGGED * backlogged_from => {
                all.push((from, index));
                None
            }
            same => same,
        };
    }
    all.extend(begin.map(|from| (from, stop)));
    all.retain(|(begin, end)| end + 1 >= begin + SHORTEST);
    all
}

fn from_end_to_end(kept: &[Sample], delays: &[f64], parts: &[(usize, usize)], time: f64) -> Option<Slope> {
    let sum = |of: &dyn Fn(usize) -> f64| parts.iter().map(|&(begin, end)| of(end) - of(begin)).sum::<f64>();
    let rate = sum(&|index| kept[index].cumulative) / time;
    let growth = sum(&|index| delays[index]) / time;
    let wander = wandering(kept, delays, parts, growth);
    (rate.is_finite() && growth.is_finite()).then(|| Slope {
        rate,
        growth,
        error: (wander / time).sqrt(),
        time,
        paused: 0.0,
        backlogged: true,
        idle: Idle::default(),
        early: [Early::NONE; 4],
    })
}

/// Least squares over the last two thirds of each stretch, weighted by their lengths.
fn regression(kept: &[Sample], delays: &[f64], stretches: &[(usize, usize)]) -> Option<Slope> {
    let (mut time, mut rate, mut growth, mut wander) = (0.0, 0.0, 0.0, 0.0);
    for &(begin, end) in stretches {
        let count = end + 1 - begin;
        let begin = if count >= 4 * MIN_ENDS { begin + count / 3 } else { begin };
        if end + 1 < begin + MIN_ENDS {
            continue;
        }
        let length = kept[end].departed - kept[begin].departed;
        let times: Vec<f64> = kept[begin..=end].iter().map(|sample| sample.departed).collect();
        let cumulative_bits: Vec<f64> = kept[begin..=end].iter().map(|sample| sample.cumulative).collect();
        let (Ok(bits), Ok(line)) =
            (narrows_stat::ols(&times, &cumulative_bits), narrows_stat::ols(&times, &delays[begin..=end]))
        else {
            continue;
        };
        time += length;
        rate += bits.line.slope * length;
        growth += line.line.slope * length;
        wander += WALK * wandering(kept, delays, &[(begin, end)], line.line.slope) * length;
    }
    let slope = Slope {
        rate: rate / time,
        growth: growth / time,
        error: (wander / time / time).sqrt(),
        time,
        paused: 0.0,
        backlogged: false,
        idle: Idle::default(),
        early: [Early::NONE; 4],
    };
    (time > 0.0 && slope.rate.is_finite() && slope.growth.is_finite()).then_some(slope)
}

/// How fast the delay's variance grows with time (a random walk's parameter), in seconds: from what
/// the blocks of the parts gather beyond the common growth.
fn wandering(kept: &[Sample], delays: &[f64], parts: &[(usize, usize)], growth: f64) -> f64 {
    let (mut squares, mut time, mut steps) = (0.0, 0.0, 0u32);
    for &(begin, end) in parts {
        let blocks = BLOCKS.min((end - begin) / 4).max(1);
        let border = |block: usize| begin + block * (end - begin) / blocks;
        for block in 0..blocks {
            let (from, to) = (border(block), border(block + 1));
            let passed = kept[to].departed - kept[from].departed;
            squares += (delays[to] - delays[from] - growth * passed).powi(2);
            time += passed;
            steps += 1;
        }
    }
    // The growth itself took one of the steps.
    let taken = f64::from(steps) / f64::from(steps.saturating_sub(1).max(1));
    if time > 0.0 { taken * squares / time } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Packets every 2 ms of a link of 24 Mbit/s; every other one waits for a packet time, too
    /// little for a backlogged period.
    #[test]
    fn packets_that_wait_nowhere_show_an_idle_link() {
        let kept: Vec<Sample> = (0..41)
            .map(|index| {
                let departed = f64::from(index) * 0.002;
                let waits = if index % 2 == 1 { 0.0005 } else { 0.0 };
                Sample { departed, arrived: departed + waits, cumulative: f64::from(index + 1) * 12_000.0 }
            })
            .collect();
        let (found, blocks) = slope(&kept, 0.0, &[], f64::INFINITY, 0.0005).expect("a line");
        assert!(!found.backlogged && blocks.is_empty());
        assert!((found.idle.time - 0.08).abs() < 1e-9, "{:?}", found.idle);
        assert!((found.idle.rate - 6e6).abs() < 1.0, "{:?}", found.idle);
        assert!((found.idle.free - 0.5).abs() < 1e-9, "{:?}", found.idle);
        // Half of what the train leaves.
        assert!((found.idle.available(24e6) - 15e6).abs() < 1.0);
        // Never below what it sent.
        assert!((found.idle.available(3e6) - 6e6).abs() < 1.0);
    }
}
