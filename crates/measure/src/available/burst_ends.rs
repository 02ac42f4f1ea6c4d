//! Which packets of a train have stamps that can be trusted: the last ones of what the receiving
//! host handed over together.

use std::time::Duration;

use narrows_probe::probes::TrainReport;

/// A gap at the receiver below this share of the shortest gap that the narrow link leaves is the
/// host's doing (ours, as in `fac2`; the specification's 0.3 of the sender's gap is the same where
/// the train is as fast as the link).
const SHORT_GAP: f64 = 0.4;
/// Share of short gaps from which the receiver counts as batching (ours, as in `fac2`).
const BATCHING_SHARE: f64 = 0.25;

/// A packet that arrived.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Sample {
    /// Departure, seconds since the first one.
    pub(crate) departed: f64,
    /// Arrival, seconds since the first one, on the receiver's clock.
    pub(crate) arrived: f64,
    /// Bits that had arrived with this packet, itself included.
    pub(crate) cumulative_bits: f64,
}

impl Sample {
    /// One-way delay, less that of the first packet: seconds.
    pub(crate) fn delay(&self) -> f64 {
        self.arrived - self.departed
    }
}

/// The packets that arrived, in order of arrival.
pub(crate) fn samples(report: &TrainReport) -> Vec<Sample> {
    let Some((departed, arrived)) = report.received().next().map(|(row, stamp)| (row.departed, stamp)) else {
        return Vec::new();
    };
    let mut samples: Vec<Sample> = report
        .received()
        .map(|(row, stamp)| Sample {
            departed: (row.departed - departed).as_f64() * 1e-9,
            arrived: (stamp - arrived).as_f64() * 1e-9,
            cumulative_bits: f64::from(row.ip_octets) * 8.0,
        })
        .collect();
    // Stable: packets of one batch share a stamp and stay in send order.
    samples.sort_by(|a, b| a.arrived.total_cmp(&b.arrived));
    let mut cumulative_bits = 0.0;
    for sample in &mut samples {
        cumulative_bits += sample.cumulative_bits;
        sample.cumulative_bits = cumulative_bits;
    }
    samples
}

/// The burst ends of a train.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct BurstEnds {
    /// In order of arrival.
    pub(crate) kept: Vec<Sample>,
    /// Typical spacing of batches, where the receiver batches.
    pub(crate) period: Option<Duration>,
    /// The receiving host did not run for an eighth of the train or more.
    pub(crate) slept: bool,
}

/// Drops every packet that the next one follows within a gap too short for the narrow link: it has
/// waited in the host, for an unknown time, for a batch to end; the last of a batch has waited
/// least (`[PJD04]`). `fastest` is the highest arrival rate seen so far, if any: no link behind the
/// narrow one spaces packets much closer.
pub(crate) fn burst_ends_of(samples: &[Sample], fastest: Option<f64>) -> BurstEnds {
    let own = rate_between(samples);
    let fastest = fastest.map_or(own, |seen| seen.max(own));
    let bits = samples.last().map_or(0.0, |last| last.cumulative_bits) / samples.len().max(1) as f64;
    let short = SHORT_GAP * bits / fastest;
    let mut kept = Vec::with_capacity(samples.len());
    let (mut dropped, mut longest, mut run_began) = (0usize, 0.0f64, 0.0f64);
    for (index, sample) in samples.iter().enumerate() {
        let next = samples.get(index + 1);
        if next.is_some_and(|next| next.arrived - sample.arrived < short) {
            dropped += 1;
        } else {
            longest = longest.max(sample.departed - run_began);
            run_began = next.map_or(0.0, |next| next.departed);
            kept.push(*sample);
        }
    }
    let spacings: Vec<f64> = kept.windows(2).map(|pair| pair[1].arrived - pair[0].arrived).collect();
    let typical = narrows_stat::median(&spacings).unwrap_or(0.0).max(0.0);
    let batching = dropped as f64 >= BATCHING_SHARE * samples.len() as f64;
    let span = samples.last().map_or(0.0, |last| last.departed);
    BurstEnds {
        slept: dropped > 0 && longest > span / 8.0 && longest > 4.0 * typical,
        period: batching.then(|| Duration::try_from_secs_f64(typical).ok()).flatten(),
        kept,
    }
}

/// Rate from the first sample to the last, the first one's bits not counted; infinite where no time
/// passed.
pub(crate) fn rate_between(samples: &[Sample]) -> f64 {
    let (Some(first), Some(last)) = (samples.first(), samples.last()) else {
        return f64::INFINITY;
    };
    let time = last.arrived - first.arrived;
    if time > 0.0 { (last.cumulative_bits - first.cumulative_bits) / time } else { f64::INFINITY }
}
