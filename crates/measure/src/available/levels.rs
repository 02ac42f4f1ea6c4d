//! What a standing queue takes from transfers that share the link: within one round trip they send
//! less, as their answers come later.
//!
//! A transfer held by a window `W` sends `W/(T + q)` behind a queue of `q` seconds, whatever the
//! round trip `T`: the longer the queue, the more it leaves. Traffic that asks nobody leaves the
//! same behind any queue. So what the blocks of backlogged periods leave is regressed on the delay
//! at which each of them *begins*: a block's own growth does not enter the delay before it, so that
//! beside such traffic what is summed up has no drift, whatever began or ended the part. Unlike the
//! begins of trains this needs no round trip shorter than a train and longer than its head.

use narrows_train::burst_ends::Sample;

/// Blocks of a backlogged period at most, and burst ends of a block at least (ours).
const BLOCKS: usize = 12;
const BLOCK_ENDS: usize = 4;
/// Nine tenths of what is normal lie within so many deviations.
pub(super) const NORMAL: f64 = 1.645;
/// Fewest blocks, and trains that they come from (ours).
const FEWEST: (usize, usize) = (12, 4);

/// A piece of a backlogged period.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Block {
    /// Delay above the least where it begins, seconds.
    level: f64,
    /// Its length, seconds.
    time: f64,
    /// Bits that left in it.
    bits: f64,
    /// By what the delay grew in it, seconds.
    growth: f64,
}

/// The blocks of the backlogged periods (first and last index of each).
pub(super) fn blocks(kept: &[Sample], delays: &[f64], least: f64, parts: &[(usize, usize)]) -> Vec<Block> {
    let mut all = Vec::new();
    for &(begin, end) in parts {
        let count = BLOCKS.min((end - begin) / BLOCK_ENDS).max(1);
        let border = |block: usize| begin + block * (end - begin) / count;
        all.extend((0..count).map(|block| {
            let (from, to) = (border(block), border(block + 1));
            Block {
                level: delays[from] - least,
                time: kept[to].departed - kept[from].departed,
                bits: kept[to].cumulative - kept[from].cumulative,
                growth: delays[to] - delays[from],
            }
        }));
    }
    all.retain(|block| block.time > 0.0);
    all
}

/// How much more the trains (the blocks of each) found available than they would have behind no
/// queue of theirs, and the standard error of that. The error is of whole trains' contributions:
/// blocks of one train are not independent. `None` where few blocks or trains tell.
pub(super) fn leaning(trains: &[&[Block]], capacity: f64) -> Option<(f64, f64)> {
    let found = |block: &Block| (block.bits - capacity * block.growth) / block.time;
    let all = || trains.iter().copied().flatten();
    let telling = trains.iter().filter(|blocks| !blocks.is_empty()).count();
    if all().count() < FEWEST.0 || telling < FEWEST.1 {
        return None;
    }
    let time: f64 = all().map(|block| block.time).sum();
    let mean = |of: &dyn Fn(&Block) -> f64| all().map(|block| block.time * of(block)).sum::<f64>() / time;
    let (level, available) = (mean(&|block| block.level), mean(&found));
    let squares: f64 = all().map(|block| block.time * (block.level - level).powi(2)).sum();
    let products = |blocks: &[Block], by_level: f64| {
        let of = |block: &Block| {
            let off = block.level - level;
            block.time * off * (found(block) - available - by_level * off)
        };
        blocks.iter().map(of).sum::<f64>()
    };
    let by_level = trains.iter().map(|blocks| products(blocks, 0.0)).sum::<f64>() / squares;
    let scatter: f64 = trains.iter().map(|blocks| products(blocks, by_level).powi(2)).sum();
    // Mean and slope took two of the trains; what few trains say of their own scatter is uncertain
    // itself (Student's, as large at nine tenths).
    let taken = (telling - 2) as f64;
    let student = narrows_stat::student_t_quantile(0.95, taken).ok()? / NORMAL;
    let error = student * (scatter * telling as f64 / taken).sqrt() / squares;
    let (less, error) = (by_level * level, error * level);
    (less.is_finite() && error.is_finite() && error > 0.0).then_some((less, error))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ten trains of 60 Mbit/s on 100, in blocks of 1 ms, behind heads of 1 to 4 ms. Others take
    /// what `others` gives for the queue at a block's begin, more or less by up to 5 Mbit/s at
    /// random.
    fn trains(others: impl Fn(f64) -> f64) -> Vec<Vec<Block>> {
        let mut generator = narrows_stat::SplitMix64::new(7);
        let mut random = move || 2.0 * generator.next_unit() - 1.0;
        let train = |index: u32| {
            let mut level = 1e-3 * f64::from(1 + index % 4);
            let mut block = || {
                let growth = 1e-3 * (60e6 + others(level) + 5e6 * random() - 100e6) / 100e6;
                let block = Block { level, time: 1e-3, bits: 60e3, growth };
                level = (level + growth).max(0.0);
                block
            };
            (0..12).map(|_| block()).collect()
        };
        (0..10).map(train).collect()
    }

    fn read(trains: &[Vec<Block>]) -> Option<(f64, f64)> {
        let blocks: Vec<&[Block]> = trains.iter().map(Vec::as_slice).collect();
        leaning(&blocks, 100e6)
    }

    /// A window that would take six tenths of the link over a round trip of 5 ms takes four behind
    /// the 2.4 ms that stand in the mean: a line finds 12 of these 19 Mbit/s, for it bends.
    #[test]
    fn windows_lean_on_the_queue() {
        let (less, error) = read(&trains(|queue| 60e6 * 0.005 / (0.005 + queue))).expect("enough blocks");
        assert!((8e6..20e6).contains(&less), "{less} {error}");
        assert!(less > 5.0 * error, "{less} {error}");
    }

    #[test]
    fn traffic_that_asks_nobody_does_not() {
        let (less, error) = read(&trains(|_| 45e6)).expect("enough blocks");
        assert!(less.abs() < 2.0 * error && error > 0.0, "{less} {error}");
    }

    #[test]
    fn few_trains_say_nothing() {
        assert_eq!(read(&trains(|_| 45e6)[..3]), None);
        assert_eq!(read(&[]), None);
    }
}
