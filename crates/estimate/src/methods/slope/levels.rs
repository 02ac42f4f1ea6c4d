//! What a standing queue takes from transfers that share the link: within one round trip they send less, as their answers come later.
//!
//! A transfer held by a window `W` sends `W/(T + q)` behind a queue of `q` seconds, whatever the round trip `T`: the longer the queue, the
//! more it leaves. Traffic that asks nobody leaves the same behind any queue. So what the blocks of busy parts leave is regressed on the
//! delay at which each of them *begins*: a block's own growth does not enter the delay before it, so that beside such traffic what is
//! summed up has no drift, whatever began or ended the part. Unlike the begins of trains this needs no round trip shorter than a train
//! and longer than its head.

use super::ends::Sample;
use super::train::TrainSlope;

/// Blocks of a busy part at most, and batch ends of a block at least (ours).
const BLOCKS: usize = 12;
const BLOCK_ENDS: usize = 4;
/// Fewest blocks, and trains that they come from (ours).
const FEWEST: (usize, usize) = (12, 4);

/// A piece of a busy part.
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

/// The blocks of the busy parts (first and last index of each).
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
                bits: kept[to].carried - kept[from].carried,
                growth: delays[to] - delays[from],
            }
        }));
    }
    all.retain(|block| block.time > 0.0);
    all
}

/// How much more the trains found available than they would have behind no queue of theirs, and the standard error of that. The error is
/// of whole trains' contributions: blocks of one train are not independent. `None` where few blocks or trains tell.
pub(super) fn leaning(near: &[(usize, &TrainSlope)], capacity: f64) -> Option<(f64, f64)> {
    let found = |block: &Block| (block.bits - capacity * block.growth) / block.time;
    let all = || near.iter().flat_map(|(_, train)| &train.blocks);
    let trains = near.iter().filter(|(_, train)| !train.blocks.is_empty()).count();
    if all().count() < FEWEST.0 || trains < FEWEST.1 {
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
    let by_level = near.iter().map(|(_, train)| products(&train.blocks, 0.0)).sum::<f64>() / squares;
    let scatter: f64 = near
        .iter()
        .map(|(_, train)| products(&train.blocks, by_level).powi(2))
        .sum();
    // Mean and slope took two of the trains.
    let taken = trains as f64 / (trains - 2) as f64;
    let error = (scatter * taken).sqrt() / squares;
    let (less, error) = (by_level * level, error * level);
    (less.is_finite() && error.is_finite() && error > 0.0).then_some((less, error))
}
