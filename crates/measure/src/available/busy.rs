//! Measures for how much of the time bursts of other traffic keep the path busy, by small packets
//! that leave at an even pace between the trains.
//!
//! A burst that a faster link hands over at once stands in the tight link's queue, and nothing of
//! it arrives while that queue drains. So a short train meets a burst only if it passes at the very
//! moment. Otherwise its delays grow as if all of the link were free. Packets that wait tell: the
//! link is full for as long as they do. Suppose that they wait for longer than even traffic would
//! make them for a share `b` of the time, and that trains outside that time say `A'`. Then
//! `(1 - b) A'` is available (ours: all idle time of the link lies outside that share).

/// Longest time of a block, whose shares of waiting packets scatter as the bursts do (ours: several
/// blocks in the pause between two trains).
const BLOCK_NS: f64 = 5e7;
/// Fewest blocks, and least time, behind a share (ours).
const FEWEST_BLOCKS: usize = 4;
const LEAST_NS: f64 = 2e8;
/// Packets in a row that wait: one or two are jitter (ours).
const IN_A_ROW: usize = 3;
/// A departure gap of so many usual ones is a pause of the sender (ours).
const PAUSE: f64 = 5.0;
/// Fewest bursts, and least share of the time, that count (ours: even traffic reaches the threshold
/// in a four-hundredth of the time).
const FEWEST: usize = 2;
const LEAST: f64 = 0.02;
/// So much of the time counts however few bursts it was (ours: a queue that always stands).
const LONG: f64 = 0.1;
/// Of those that do not wait for long, so many find the link idle (ours); of a link that is busy
/// for more of the time than this, too few are left to tell.
const NO_EVEN: f64 = 0.9;
const MOST: f64 = 0.9;
/// Arrivals this close have one stamp (ours: a host takes longer from packet to packet), and the
/// share of them that is a host's.
const SAME_NS: f64 = 300.0;
const MOST_TOGETHER: f64 = 0.5;
/// Of so many pauses that trains would have met in the mean, they miss all in one run of twenty.
const MET_FOR_SURE: f64 = 3.0;
/// A packet that waits for less than so many full ones' time met nobody, or the end of one (ours).
pub(crate) const FREE_PACKETS: f64 = 0.5;
/// Rounds of the fixed point behind that: its slope is below a half.
const ROUNDS: usize = 30;

/// The small packets of a run: departures and delays of those that arrived, ns, a row for each
/// train.
#[derive(Debug, Clone, Default)]
pub(crate) struct Watch {
    trains: Vec<Vec<(i64, i64)>>,
}

/// What they saw.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Busy {
    /// Share of the time in which packets waited, and its standard error.
    pub(crate) share: f64,
    pub(crate) error: f64,
    /// Times that they began to wait.
    pub(crate) bursts: usize,
    /// Share of those outside that found the link idle, and its standard error.
    pub(crate) free: f64,
    pub(crate) free_error: f64,
    /// Share of the time, its pauses counted, for which the sending host paused.
    pub(crate) paused: f64,
    /// Share of those that wait one after the other which came in the same moment.
    pub(crate) together: f64,
    /// Seconds watched.
    pub(crate) time: f64,
}

impl Busy {
    /// More than even traffic does.
    pub(crate) fn matters(&self) -> bool {
        let several = self.bursts >= FEWEST && self.share >= LEAST;
        several || self.share >= LONG
    }

    /// Packets wait for long or not at all: there is no even traffic. Where none waits a token
    /// bucket may let even traffic through at once.
    pub(crate) fn is_all_bursts(&self) -> bool {
        self.matters() && self.free >= NO_EVEN && self.share < MOST
    }

    /// A receiving host that pauses looks like a burst. But then the sending host paused as well,
    /// for about as long as packets waited, or packets that waited all came in the same moment,
    /// which no link hands over, but a token bucket does.
    pub(crate) fn may_be_hosts(&self) -> bool {
        2.0 * self.paused >= self.share || self.is_together()
    }

    /// Packets that waited came in the same moment, and the sending host ran.
    pub(crate) fn is_together(&self) -> bool {
        2.0 * self.paused < self.share && self.together > MOST_TOGETHER
    }

    /// Share of the time for which a link of `bps` carried what a token bucket of these octets in
    /// front of it let through of each burst before packets began to wait: all of the bucket, or
    /// what it had filled up by since the burst before.
    pub(crate) fn hidden_by(&self, octets: u64, bps: f64) -> f64 {
        let each = 8.0 * octets as f64 / bps;
        (self.bursts as f64 * each / self.time).min(1.0 - self.share).max(0.0)
    }

    /// Share of so many seconds after a time without a burst in which there is one, where bursts
    /// and the times between them end at random: `b (1 - exp(-t / τ))` of the time at `t`, with
    /// `τ = (1 - b) D` and `D` a burst's mean length.
    pub(crate) fn met_within(&self, seconds: f64) -> f64 {
        let tau = (1.0 - self.share) * self.share * self.time / self.bursts.max(1) as f64;
        if tau <= 0.0 || seconds <= 0.0 {
            return 0.0;
        }
        self.share * (1.0 - tau / seconds * (1.0 - (-seconds / tau).exp()))
    }

    /// Whether `trains` of `seconds` together would have met pauses of a host, were packets held up
    /// by those.
    pub(crate) fn would_meet(&self, trains: usize, seconds: f64) -> bool {
        self.bursts as f64 / self.time * seconds + trains as f64 * self.share >= MET_FOR_SURE
    }
}

/// Delays that tell a packet that waits from one that met nobody, ns.
#[derive(Debug, Clone, Copy)]
struct Levels {
    /// The delay of a packet that waits nowhere.
    base: i64,
    /// What lies so much above it waits; the rest of its queue is gone so much later.
    waits: f64,
    /// What lies so little above it met nobody.
    free: f64,
    /// A departure gap that is a pause.
    pause: f64,
}

/// Sums over part of a train, ns.
#[derive(Debug, Clone, Copy, Default)]
struct Block {
    time: f64,
    busy: f64,
    /// Packets behind which no queue drains, and those of them that met nobody.
    outside: f64,
    free: f64,
}

/// Sums over all of them.
#[derive(Debug, Clone, Default)]
struct Sums {
    blocks: Vec<Block>,
    bursts: usize,
    paused: f64,
    /// Packets that wait one behind the other, and those of them that came together.
    follow: f64,
    together: f64,
}

impl Sums {
    fn add(&mut self, train: &[(i64, i64)], levels: Levels) {
        let waits = waits(train, levels);
        // Of each train its own: clocks drift.
        let least = train.iter().map(|&(_, delay)| delay).min().unwrap_or(levels.base);
        let (mut block, mut drained) = (Block::default(), 0.0);
        for (pair, waits) in train.windows(2).zip(waits.windows(2)) {
            let gap = gap_ns(pair);
            if gap > levels.pause {
                self.paused += gap;
                continue;
            }
            block.time += gap;
            match (waits[0], waits[1]) {
                (true, true) => {
                    block.busy += gap;
                    self.follow += 1.0;
                    let apart = gap + pair[1].1.saturating_sub(pair[0].1) as f64;
                    self.together += f64::from(u8::from(apart.abs() < SAME_NS));
                }
                (true, false) => {
                    block.busy += gap;
                    drained = gap + levels.waits;
                }
                (false, next) => {
                    // What is left of a queue drains, until the next burst comes.
                    block.busy += gap.min(drained.max(0.0));
                    self.bursts += usize::from(next);
                    let free = pair[0].1.saturating_sub(least) as f64 <= levels.free;
                    // The ends of bursts, and what is cut off by those of the train, are neither.
                    let ends = drained > 0.0 || pair[0].1.saturating_sub(levels.base) as f64 > levels.waits;
                    if free || !ends {
                        block.outside += 1.0;
                        block.free += f64::from(u8::from(free));
                    }
                }
            }
            drained -= gap;
            if block.time >= BLOCK_NS {
                self.blocks.push(std::mem::take(&mut block));
            }
        }
        self.blocks.push(block);
        self.blocks.retain(|block| block.time > 0.0);
    }
}

impl Watch {
    /// Takes packets by departure and delay, ns.
    pub(crate) fn push(&mut self, packets: Vec<(i64, i64)>) {
        self.trains.push(packets);
    }

    /// The least delay, ns.
    pub(crate) fn least_ns(&self) -> Option<i64> {
        self.trains.iter().flatten().map(|&(_, delay)| delay).min()
    }

    /// Seconds watched.
    pub(crate) fn time(&self) -> f64 {
        let spans = self.trains.iter().filter_map(|train| Some(train.last()?.0 - train.first()?.0));
        spans.sum::<i64>() as f64 * 1e-9
    }

    /// For how much of the time delays were more than `threshold_ns` above `base_ns`. What falls
    /// below the threshold still waits; below `free_ns` it met nobody. `None` with too little
    /// time.
    pub(crate) fn busy(&self, base_ns: i64, threshold_ns: f64, free_ns: f64) -> Option<Busy> {
        let gaps: Vec<f64> = self.trains.iter().flat_map(|train| train.windows(2)).map(gap_ns).collect();
        let pause = PAUSE * narrows_stat::median(&gaps)?;
        let (mut sums, levels) = (Sums::default(), Levels { base: base_ns, waits: threshold_ns, free: free_ns, pause });
        for train in &self.trains {
            sums.add(train, levels);
        }
        let Sums { blocks, bursts, paused, follow, together } = sums;
        let time: f64 = blocks.iter().map(|block| block.time).sum();
        if blocks.len() < FEWEST_BLOCKS || time < LEAST_NS {
            return None;
        }
        let (share, error) = ratio(&blocks, |block| (block.busy, block.time))?;
        let (free, free_error) = ratio(&blocks, |block| (block.free, block.outside)).unwrap_or_default();
        Some(Busy {
            share: share.min(1.0),
            error,
            bursts,
            free: idle(free),
            free_error,
            paused: paused / (paused + time),
            together: together / follow.max(1.0),
            time: time * 1e-9,
        })
    }

    /// The delay that half of the packets have at most, ns.
    pub(crate) fn half(&self, base_ns: i64) -> Option<f64> {
        let delays: Vec<f64> =
            self.trains.iter().flatten().map(|&(_, delay)| delay.saturating_sub(base_ns) as f64).collect();
        narrows_stat::median(&delays)
    }
}

/// The share of packets that find the link idle, where `free` of them wait for less than half of a
/// full packet's time: `P(W <= x) = (1 - r) exp(r x)` of packets of one size that come at random
/// (M/D/1, x < 1), of which no share is larger than the link's idle time.
fn idle(free: f64) -> f64 {
    (0..ROUNDS).fold(free, |idle, _| free * (-(1.0 - idle) * FREE_PACKETS).exp())
}

/// The ratio of two sums over all blocks, and its standard error; `None` where the second is none.
fn ratio(blocks: &[Block], of: impl Fn(&Block) -> (f64, f64)) -> Option<(f64, f64)> {
    let (above, below) = blocks.iter().map(&of).fold((0.0, 0.0), |sum, add| (sum.0 + add.0, sum.1 + add.1));
    let ratio = above / below;
    let off = |block: &Block| {
        let (above, below) = of(block);
        (above - ratio * below).powi(2)
    };
    let count = blocks.len() as f64;
    let error = (blocks.iter().map(off).sum::<f64>() * count / (count - 1.0)).sqrt() / below;
    (below > 0.0).then_some((ratio, error))
}

/// Between the departures of two packets, ns.
fn gap_ns(pair: &[(i64, i64)]) -> f64 {
    pair[1].0.saturating_sub(pair[0].0) as f64
}

/// Which packets are among several in a row that wait.
fn waits(train: &[(i64, i64)], levels: Levels) -> Vec<bool> {
    let above = |&(_, delay): &(i64, i64)| delay.saturating_sub(levels.base) as f64 > levels.waits;
    let mut waits: Vec<bool> = train.iter().map(above).collect();
    for run in waits.chunk_by_mut(|a, b| a == b) {
        if run.len() < IN_A_ROW {
            run.fill(false);
        }
    }
    waits
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: i64 = 1_000_000;
    const THRESHOLD: f64 = 500_000.0;
    const FREE: f64 = 60_000.0;

    /// A packet each millisecond; every `period` of them a burst of `burst` us.
    fn watch(packets: i64, period: i64, burst: i64) -> Watch {
        let mut watch = Watch::default();
        let delay = |at: i64| 5 * MS + 1000 * (burst - 990 * (at % period)).max(0);
        watch.push((0..packets).map(|at| (at * MS, delay(at))).collect());
        watch
    }

    #[test]
    fn bursts_keep_the_link_busy_for_their_share_of_the_time() {
        // 9.5 of each 35 ms, and half a packet's time that the threshold rounds off.
        let busy = watch(1050, 35, 9_500).busy(5 * MS, THRESHOLD, FREE).unwrap();
        assert!((busy.share - 10.0 / 35.0).abs() < 0.02, "{busy:?}");
        assert!(busy.matters() && !busy.may_be_hosts(), "{busy:?}");
        assert!(busy.error < 0.05 && (29..=30).contains(&busy.bursts), "{busy:?}");
    }

    #[test]
    fn long_trains_meet_bursts_that_are_not_there_when_they_come() {
        let busy = watch(1050, 35, 9_500).busy(5 * MS, THRESHOLD, FREE).unwrap();
        // Of a time far longer than a burst all but what one lasts, of a shorter one next to none.
        assert!((busy.met_within(10.0) / busy.share - 1.0).abs() < 0.01, "{busy:?}");
        assert!(busy.met_within(1e-4) < 0.01 * busy.share && busy.met_within(0.0) < 1e-9, "{busy:?}");
        // τ = 25/35 of 10 ms: 1 - e^-1 of it over itself.
        let met = busy.met_within(0.00714) / busy.share;
        assert!((met - 0.368).abs() < 0.02, "{met}");
    }

    /// Waits about the threshold, as even traffic makes them: no time counts twice.
    #[test]
    fn what_a_bucket_lets_through_of_bursts_is_busy_time_too() {
        let busy = watch(1050, 35, 9_500).busy(5 * MS, THRESHOLD, FREE).unwrap();
        // 50 kB are 4 ms of 100 Mbit/s.
        assert!((busy.hidden_by(50_000, 1e8) - 4.0 / 35.0).abs() < 0.005, "{busy:?}");
        // The bucket cannot have filled by more than what is left of the time.
        assert!((busy.hidden_by(5_000_000, 1e8) + busy.share - 1.0).abs() < 1e-9, "{busy:?}");
    }

    #[test]
    fn a_queue_that_comes_and_goes_keeps_the_link_busy_for_no_more_than_its_time() {
        let mut watch = Watch::default();
        // Of ten milliseconds four wait, and the queue behind them is gone after half of one more.
        let delay = |at: i64| if at % 10 < 4 { 5 * MS + 600_000 } else { 5 * MS };
        watch.push((0..1000).map(|at| (at * MS, delay(at))).collect());
        let busy = watch.busy(5 * MS, THRESHOLD, FREE).unwrap();
        assert!((busy.share - 0.45).abs() < 0.01, "{busy:?}");
        // The next wait comes before the last one's queue is gone.
        let mut watch = Watch::default();
        let delay = |at: i64| if at % 5 < 4 { 35 * MS } else { 5 * MS };
        watch.push((0..1000).map(|at| (at * MS, delay(at))).collect());
        let busy = watch.busy(5 * MS, 20.0 * THRESHOLD, FREE).unwrap();
        assert!(busy.share > 0.99 && busy.share <= 1.0, "{busy:?}");
    }

    #[test]
    fn a_queue_that_always_stands_takes_all() {
        let mut watch = watch(1, 1, 0);
        watch.push((0..1000).map(|at| (at * MS, 30 * MS + at)).collect());
        let busy = watch.busy(watch.least_ns().unwrap(), THRESHOLD, FREE).unwrap();
        assert!(busy.share > 0.99 && busy.error < 0.01, "{busy:?}");
    }

    #[test]
    fn jitter_is_no_burst() {
        let busy = watch(1000, 10, 2000).busy(5 * MS, THRESHOLD, FREE).unwrap();
        assert!(busy.share < 1e-9 && !busy.matters(), "{busy:?}");
    }

    #[test]
    fn pauses_of_the_sender_are_no_time() {
        let mut watch = Watch::default();
        let at = |index: i64| index * MS + if index >= 500 { 60 * MS } else { 0 };
        watch.push((0..1000).map(|index| (at(index), 5 * MS)).collect());
        let busy = watch.busy(5 * MS, THRESHOLD, FREE).unwrap();
        assert!((busy.paused - 0.061 / 1.059).abs() < 1e-6 && (busy.time - 0.998).abs() < 1e-6, "{busy:?}");
        assert!(Watch::default().busy(0, THRESHOLD, FREE).is_none());
        assert!(watch.time() > 1.0);
    }

    #[test]
    fn packets_that_meet_the_end_of_another_did_not_find_the_link_idle() {
        // M/D/1: half of the time busy, packets that wait for less than half a packet's time.
        assert!((idle(0.5 * 0.25f64.exp()) - 0.5).abs() < 1e-6);
        assert!((idle(1.0) - 1.0).abs() < 1e-9 && idle(0.0) < 1e-9);
    }
}
