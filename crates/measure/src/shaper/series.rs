//! The long probe: arrivals in intervals, and where their rate falls for good.

use std::time::Duration;

use narrows_stat::{LevelShift, ShiftParams, ShiftTest};

use super::params::Params;
use narrows_probe::probes::{LoadReport, LoadStatus};

/// One interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Bin {
    pub(super) seconds: f64,
    /// IP octets that arrived.
    pub(super) octets: f64,
    pub(super) rate_bps: f64,
    /// Share of the packets that should have arrived, 0..1.
    pub(super) loss: f64,
    /// Mean delay above the least of the flow.
    pub(super) delay_s: Option<f64>,
}

impl Bin {
    fn read(status: &LoadStatus) -> Option<Self> {
        let seconds = (status.to - status.from).as_f64() * 1e-9;
        if seconds <= 0.0 {
            return None;
        }
        let octets = status.ip_octets as f64;
        let on_path = status.lost.saturating_sub(status.local_drops) as f64;
        let due = status.packets as f64 + status.lost as f64;
        Some(Self {
            seconds,
            octets,
            rate_bps: 8.0 * octets / seconds,
            loss: if due > 0.0 { on_path / due } else { 0.0 },
            delay_s: status.delay_above_min.map(|(_, mean, _)| mean.as_secs_f64()),
        })
    }
}

/// A flow as it arrived.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Series {
    pub(super) bins: Vec<Bin>,
    pub(super) sent_octets: u64,
    /// Octets and seconds of all intervals, those cut short too.
    whole: (f64, f64),
    pub(super) local_drops: u64,
    test: Option<ShiftTest>,
    shift: Option<LevelShift>,
}

/// What a flow shows of a bucket.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Fall {
    pub(super) peak_bps: f64,
    pub(super) sustained_bps: f64,
    /// Median absolute deviation of the rates that it is the median of.
    pub(super) mad_bps: f64,
    /// From the least to the greatest of them.
    pub(super) spread_bps: f64,
    /// Octets above the sustained rate, until it fell.
    pub(super) depth_octets: f64,
    /// Half of what one interval carries above the sustained rate.
    pub(super) half_bin_octets: f64,
    /// Intervals until it fell, and after.
    pub(super) before: usize,
    pub(super) after: usize,
    /// Length of an interval.
    pub(super) bin_s: f64,
    /// Mean loss after.
    pub(super) loss: f64,
    /// Largest mean delay of an interval after, above the median of those before.
    pub(super) delay_s: f64,
}

/// Share of an interval's time that one shorter by must not fall below: the last one of a flow is
/// cut off anywhere.
const WHOLE: f64 = 0.9;
/// The tool's limits: loss of more than this, in more than so many intervals in a row.
const ABORT: [(f64, usize); 2] = [(0.10, 10), (0.01, 20)];
/// Intervals without loss ahead of the first with loss: then it may be a policer's ("ours").
const CLEAN_BEFORE: usize = 4;

impl Series {
    /// Takes what arrived. Intervals shorter than the rest are left out: the flow ended in them.
    pub(super) fn note(&mut self, report: &LoadReport, bin: Duration) {
        self.sent_octets = self.sent_octets.saturating_add(report.sent_ip_octets);
        for status in &report.statuses {
            self.local_drops = self.local_drops.saturating_add(status.local_drops);
            let read = Bin::read(status);
            if let Some(bin) = read {
                self.whole = (self.whole.0 + bin.octets, self.whole.1 + bin.seconds);
            }
            let read = read.filter(|read| read.seconds >= WHOLE * bin.as_secs_f64());
            self.bins.extend(read);
            if let (Some(read), Some(test)) = (read, &mut self.test) {
                self.shift = test.push(read.rate_bps).ok().flatten();
            }
        }
    }

    pub(super) fn rates(&self) -> Vec<f64> {
        self.bins.iter().map(|bin| bin.rate_bps).collect()
    }

    /// An empty flow in which every new interval is tested.
    pub(super) fn tested(params: &Params) -> Self {
        let shift = ShiftParams {
            min_before: params.min_before,
            min_after: params.min_after,
            min_ratio: params.min_ratio,
            ..ShiftParams::default()
        };
        Self { test: ShiftTest::new(shift).ok(), ..Self::default() }
    }

    /// Where the rate falls for good, if it does.
    pub(super) fn fall(&self) -> Option<Fall> {
        self.read(self.shift.as_ref()?)
    }

    fn read(&self, shift: &LevelShift) -> Option<Fall> {
        // Departs from [ShaperProbe11]: the sum goes on over the intervals of the transition, since
        // the one in which the bucket runs empty holds tokens too; and it ends at the widest step
        // in between, for in a series without noise the first split that passes lies some intervals
        // before the rate falls.
        let end = shift.end.max(shift.fall);
        let (head, tail) = (self.bins.get(..=end)?, self.bins.get(end + 1..)?);
        let rates: Vec<f64> = tail.iter().map(|bin| bin.rate_bps).collect();
        let sustained = narrows_stat::median(&rates)?;
        let depth: f64 = head.iter().map(|bin| (bin.rate_bps - sustained) * bin.seconds / 8.0).sum();
        let until = self.bins.get(..=shift.fall)?;
        let peak = narrows_stat::median(&until.iter().map(|bin| bin.rate_bps).collect::<Vec<_>>())?;
        let bin = narrows_stat::median(&head.iter().map(|bin| bin.seconds).collect::<Vec<_>>())?;
        let quiet = narrows_stat::median(&until.iter().filter_map(|bin| bin.delay_s).collect::<Vec<_>>());
        let most = tail.iter().filter_map(|bin| bin.delay_s).fold(0.0, f64::max);
        Some(Fall {
            peak_bps: peak,
            sustained_bps: sustained,
            mad_bps: narrows_stat::mad(&rates).unwrap_or(0.0),
            spread_bps: rates.iter().copied().fold(0.0, f64::max) - rates.iter().copied().fold(f64::INFINITY, f64::min),
            depth_octets: depth,
            half_bin_octets: (peak - sustained).max(0.0) * bin / 16.0,
            before: head.len(),
            after: tail.len(),
            bin_s: bin,
            loss: tail.iter().map(|bin| bin.loss).sum::<f64>() / tail.len() as f64,
            delay_s: (most - quiet.unwrap_or(0.0)).max(0.0),
        })
    }

    /// Losses that void the rates, by the tool's rules; but not those of what may be a policer,
    /// which begin after a while.
    pub(super) fn too_lossy(&self) -> bool {
        let clean = self.bins.iter().take_while(|bin| bin.loss <= ABORT[1].0).count();
        clean < CLEAN_BEFORE && self.lossy()
    }

    /// The tool's rules alone.
    pub(super) fn lossy(&self) -> bool {
        ABORT.iter().any(|&(most, bins)| {
            let runs = self.bins.split(|bin| bin.loss <= most);
            runs.map(<[Bin]>::len).max().unwrap_or(0) > bins
        })
    }

    /// Octets that a bucket of `sustained` bit/s gave out beyond what it took in.
    pub(super) fn taken(&self, sustained_bps: f64) -> f64 {
        let (octets, seconds) = self.whole;
        (octets - sustained_bps / 8.0 * seconds).max(0.0)
    }

    /// Whether the second half of a short flow arrived slower than the first: then its mean is no
    /// capacity.
    pub(super) fn falls_off(&self, min_ratio: f64) -> bool {
        let rates = self.rates();
        let side = (rates.len() / 3).max(1);
        let (Some(head), Some(tail)) = (rates.get(..side), rates.get(rates.len().saturating_sub(side)..)) else {
            return false;
        };
        match (narrows_stat::median(head), narrows_stat::median(tail)) {
            (Some(head), Some(tail)) => head > min_ratio * tail,
            _ => false,
        }
    }

    pub(super) fn seconds(&self) -> f64 {
        self.bins.iter().map(|bin| bin.seconds).sum()
    }

    /// Mean rate, bit/s.
    pub(super) fn mean_bps(&self) -> Option<f64> {
        let seconds = self.seconds();
        (seconds > 0.0).then(|| 8.0 * self.bins.iter().map(|bin| bin.octets).sum::<f64>() / seconds)
    }
}
