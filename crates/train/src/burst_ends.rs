//! Which packets of a train have stamps that can be trusted: the last ones of what the receiving
//! host handed over together.

use std::time::Duration;

use narrows_probe::probes::TrainReport;

/// A gap at the receiver below this share of the shortest gap that the narrow link leaves is the
/// host's doing (ours).
const SHORT_GAP: f64 = 0.4;
/// Share of short gaps from which the receiver counts as batching (ours).
const BATCHING_SHARE: f64 = 0.25;

/// The units in which a method writes its formulas. Each keeps its own, so that sums and slopes
/// round as they always did.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Scale {
    /// Units of time per nanosecond.
    per_ns: f64,
    /// Units of time per second.
    per_second: f64,
    /// Units of size per octet.
    per_octet: f64,
    /// Bit/s per unit of size and time.
    bps: f64,
}

/// A packet that arrived, in the units of a [`Scale`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sample {
    /// Departure, since the first one.
    pub departed: f64,
    /// Arrival, since the first one, on the receiver's clock.
    pub arrived: f64,
    /// Size of all that had arrived with this packet, itself included.
    pub cumulative: f64,
}

impl Sample {
    /// One-way delay, less that of the first packet.
    pub fn delay(&self) -> f64 {
        self.arrived - self.departed
    }
}

/// The burst ends of a train.
#[derive(Debug, Clone, PartialEq)]
pub struct BurstEnds {
    /// In order of arrival.
    pub kept: Vec<Sample>,
    /// Typical spacing of batches, where the receiver batches.
    pub period: Option<Duration>,
    /// The receiving host did not run for an eighth of the train or more.
    pub stalled: bool,
    /// The longest batch, as a share of the train.
    pub longest: f64,
}

impl Scale {
    /// Nanoseconds and octets.
    pub const NANOS: Self = Self { per_ns: 1.0, per_second: 1e9, per_octet: 1.0, bps: 8e9 };
    /// Seconds and bits.
    pub const SECONDS: Self = Self { per_ns: 1e-9, per_second: 1.0, per_octet: 8.0, bps: 1.0 };

    /// The packets that arrived, in order of arrival.
    pub fn samples(self, report: &TrainReport) -> Vec<Sample> {
        let Some((departed, arrived)) = report.received().next().map(|(row, stamp)| (row.departed, stamp)) else {
            return Vec::new();
        };
        let mut samples: Vec<Sample> = report
            .received()
            .map(|(row, stamp)| Sample {
                departed: (row.departed - departed).as_f64() * self.per_ns,
                arrived: (stamp - arrived).as_f64() * self.per_ns,
                cumulative: f64::from(row.ip_octets) * self.per_octet,
            })
            .collect();
        // Stable: packets of one batch share a stamp and stay in send order.
        samples.sort_by(|a, b| a.arrived.total_cmp(&b.arrived));
        let mut cumulative = 0.0;
        for sample in &mut samples {
            cumulative += sample.cumulative;
            sample.cumulative = cumulative;
        }
        samples
    }

    /// Rate from the first sample to the last, the first one's size not counted, bit/s; infinite
    /// where no time passed.
    pub fn rate_between(self, samples: &[Sample]) -> f64 {
        let (Some(first), Some(last)) = (samples.first(), samples.last()) else {
            return f64::INFINITY;
        };
        let time = last.arrived - first.arrived;
        if time > 0.0 { (last.cumulative - first.cumulative) * self.bps / time } else { f64::INFINITY }
    }

    /// Drops every packet that the next one follows within a gap too short for the narrow link: it
    /// has waited in the host, for an unknown time, for a batch to end; the last of a batch has
    /// waited least (`[PJD04]`). `fastest` is the highest arrival rate seen so far, if any: no link
    /// behind the narrow one spaces packets much closer. `drop_last` leaves out the last batch of a
    /// host that batches. It ended for want of packets, so it waited for the timer, where the
    /// others may not have.
    pub fn burst_ends(self, samples: &[Sample], fastest: Option<f64>, drop_last: bool) -> BurstEnds {
        let own = self.rate_between(samples);
        let fastest = fastest.map_or(own, |seen| seen.max(own));
        let size = samples.last().map_or(0.0, |last| last.cumulative) / samples.len().max(1) as f64;
        let short = SHORT_GAP * size * self.bps / fastest;
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
        let batching = dropped as f64 >= BATCHING_SHARE * samples.len() as f64;
        if batching && drop_last {
            kept.pop();
        }
        let spacings: Vec<f64> = kept.windows(2).map(|pair| pair[1].arrived - pair[0].arrived).collect();
        let typical = narrows_stat::median(&spacings).unwrap_or(0.0).max(0.0);
        let span = samples.last().map_or(0.0, |last| last.departed);
        BurstEnds {
            longest: if dropped > 0 && span > 0.0 { longest / span } else { 0.0 },
            stalled: dropped > 0 && longest > span / 8.0 && longest > 4.0 * typical,
            period: batching.then(|| self.duration(typical)).flatten(),
            kept,
        }
    }

    /// The jump of the delay that a clock shows which was set, or a burst of others: one, and it
    /// stays. A queue that the train builds does not: it grows by one packet time at a time. A host
    /// that slept does not either: all but the last packet of what it found are dropped by then.
    pub fn jump(self, ends: &BurstEnds, span: f64) -> Option<f64> {
        let batch = self.batch(ends);
        let delays: Vec<f64> = ends.kept.iter().map(Sample::delay).collect();
        let jumps = delays.windows(2).map(|pair| pair[1] - pair[0]);
        // Batches make many jumps, a clock that is set makes one.
        let (jump, next) = jumps.fold((0.0f64, 0.0f64), |(most, next), jump| {
            if jump.abs() > most.abs() { (jump, most.abs()) } else { (most, next.max(jump.abs())) }
        });
        let size = jump.abs();
        let low = delays.iter().copied().fold(f64::INFINITY, f64::min);
        let high = delays.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let stays = size > (high - low) / 2.0 && next < size / 2.0;
        let large = delays.len() >= 8 && span > 0.0 && size > (span / 5.0).max(3.0 * batch);
        (large && stays).then_some(jump)
    }

    /// Time from batch to batch; zero where the receiver does not batch.
    pub fn batch(self, ends: &BurstEnds) -> f64 {
        ends.period.map_or(0.0, |period| period.as_secs_f64() * self.per_second)
    }

    fn duration(self, time: f64) -> Option<Duration> {
        Duration::try_from_secs_f64(if self.per_ns < 1.0 { time } else { time * 1e-9 }).ok()
    }
}
