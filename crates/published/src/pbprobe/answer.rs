//! What is said of the bulks.

use narrows_units::{BitRate, Metric};

use super::run::{COARSEST, Run};
use crate::forward_bound::bounded;
use narrows_probe::outcome::{Caveat, Confidence, Details, Diagnostics, Estimate, Outcome, Reason, SampleCounts};
use narrows_train::mindelay;
use narrows_train::mindelay::{Grain, Hunt, HuntResult};

impl Run {
    /// The answer of bulks of packets of `octets` that have settled.
    pub(super) fn answer(&mut self, octets: u16, found: &HuntResult) -> Outcome {
        self.close_hunt();
        self.octets = octets;
        let Some(facts) = &self.facts else {
            return self.no_number(Reason::NotConverged);
        };
        let grain = Grain::of(facts, self.via.reads()).arrival_ns;
        if grain > COARSEST * found.span_ns {
            return self.no_number(Reason::StampsTooCoarse);
        }
        let few_batches = self.batched() && found.batches < LEAST_BATCHES;
        if few_batches {
            return self.no_number(Reason::ReceiveBatching);
        }
        let rate = |each_ns: f64| {
            let wire = mindelay::wire_rate(self.params.framing, self.octets, each_ns);
            BitRate::from_bps_f64(mindelay::ip_rate(self.params.framing, facts.path_mtu, wire))
        };
        let ends = (rate(found.each_ns), rate(found.each_high_ns), rate(self.least_each_ns(found)));
        let (Some(value), Some(low), Some(high)) = ends else {
            return self.no_number(Reason::StampsTooCoarse);
        };
        let other = if self.octets == facts.path_mtu { CLOCK_ERROR } else { FRAMING_ERROR };
        let low = low.scaled(1.0 - other).unwrap_or(low);
        let high = high.scaled(1.0 + other).unwrap_or(high);
        let mut estimate = Estimate::ip_rate(Metric::IpCapacity, value, low, high);
        if self.batching.seen().is_none() {
            estimate.confidence = Confidence::Low;
        }
        for caveat in self.caveats(Some(found)) {
            estimate = estimate.caveat(caveat);
        }
        estimate.diagnostics = self.diagnostics();
        bounded(estimate.counted(self.samples()), facts, self.via, (self.octets, self.params.framing), found).into()
    }

    /// The least time a packet may take: bulks that met no queue may still each hold packets of
    /// others, if all do. Gaps tell, where stamps tell gaps. Elsewhere the scatter does, less what
    /// stamps scatter: n packets of others per bulk scatter the dispersion by √n packets' time, and
    /// the best hold no more than the others.
    fn least_each_ns(&self, found: &HuntResult) -> f64 {
        if self.tells_gaps(found) {
            return found.each_low_ns.min(found.typical_ns);
        }
        let stamps = self.stamp_scatter_ns();
        let held = (found.scatter_ns.powi(2) - stamps.powi(2)).max(0.0) / found.each_ns;
        let share = (held / found.span_ns).min(0.5);
        found.each_low_ns * (1.0 - share)
    }

    /// What steps of the clock and batches scatter a dispersion by.
    fn stamp_scatter_ns(&self) -> f64 {
        let grain = self.facts.as_ref().map_or(0.0, |facts| Grain::of(facts, self.via.reads()).arrival_ns);
        let period = if self.batched() {
            self.hunt.as_ref().map_or(0.0, Hunt::period_ns).max(self.batching.period_ns())
        } else {
            0.0
        };
        TWO_STEPS * grain.hypot(period)
    }

    /// No number, with what was seen.
    pub(super) fn no_number(&self, reason: Reason) -> Outcome {
        let found = self.hunt.as_ref().and_then(|hunt| hunt.found(self.batched()));
        Outcome::Inconclusive {
            reason,
            caveats: self.caveats(found.as_ref()),
            details: Details::default(),
            diagnostics: self.diagnostics(),
        }
        .counted(self.samples())
    }

    fn samples(&self) -> SampleCounts {
        let counts = SampleCounts::default();
        let Some(hunt) = &self.hunt else { return counts };
        let clean = hunt.found(self.batched()).map_or(0, |found| found.clean);
        counts
            .kept("clean_bulks", clean)
            .rejected("queued_bulks", hunt.samples().saturating_sub(clean))
            .rejected("incomplete_bulks", hunt.lost())
            .rejected("reordered_bulks", hunt.disordered)
            .rejected("one_stamp_bulks", hunt.closed)
    }

    fn caveats(&self, found: Option<&HuntResult>) -> Vec<Caveat> {
        let mut caveats = Vec::new();
        let share = |part: u64| part as f64 / self.tally.sent.max(1) as f64;
        if self.batched() {
            let period = self.hunt.as_ref().map_or(0.0, Hunt::period_ns);
            caveats.push(Caveat::ReceiveBatching { period: mindelay::duration(period.max(self.batching.period_ns())) });
        }
        if self.tally.lost > 0 {
            let ratio = share(self.tally.lost);
            caveats.push(Caveat::Loss { ratio });
        }
        if self.tally.disordered > 0 {
            let ratio = share(self.tally.disordered);
            caveats.push(Caveat::Reordering { ratio });
        }
        let slope = found.map_or(0.0, |found| found.slope);
        if slope.abs() > NOTABLE_SKEW {
            caveats.push(Caveat::ClockSkew { ppm: slope * 1e6 });
        }
        caveats
    }

    fn diagnostics(&self) -> Diagnostics {
        let mut diagnostics = Diagnostics::default();
        diagnostics.insert("peer_kind", format!("{:?}", self.via).to_lowercase().as_str());
        diagnostics.insert("bulk_packets", self.length);
        diagnostics.insert("packet_octets", u32::from(self.octets));
        diagnostics.insert("shortened", self.shortened);
        diagnostics.insert("batches_seen", self.batched());
        if let Some(paced) = &self.paced {
            diagnostics.insert("paced_bulks", paced.tried);
            diagnostics.insert("paced_bulks_came_as_they_left", paced.held);
        }
        let Some(found) = self.hunt.as_ref().and_then(|hunt| hunt.found(self.batched())) else {
            return diagnostics;
        };
        let mtu = self.facts.as_ref().map_or(1500, |facts| facts.path_mtu);
        let wire = mindelay::wire_rate(self.params.framing, self.octets, found.each_ns);
        diagnostics.insert("best_bulk_bps", mindelay::ip_rate(self.params.framing, mtu, wire).round());
        diagnostics.insert("typical_gap_ns", found.typical_ns);
        diagnostics.insert("bulks", found.samples);
        diagnostics.insert("clean_bulks", found.clean);
        diagnostics.insert("stable_bulks", found.stable);
        diagnostics.insert("residual_ns", found.residual_ns);
        diagnostics.insert("dispersion_ns", found.span_ns);
        diagnostics.insert("skew_ppm", found.slope * 1e6);
        if found.clean > 0 {
            let expected = found.samples as f64 / found.clean as f64;
            diagnostics.insert("expected_bulks", expected);
        }
        diagnostics
    }
}

/// Standard deviation of the difference of two values that are each evenly spread over one step.
const TWO_STEPS: f64 = 0.408;
/// Ours: batches that begin within a bulk.
const LEAST_BATCHES: usize = 4;
/// Ours: what two clocks differ by, and rounding.
const CLOCK_ERROR: f64 = 0.001;
/// Ours: what a tag or two that the assumed framing lacks do to the rate of small packets, restated
/// for large ones.
const FRAMING_ERROR: f64 = 0.005;
/// Ours: oscillators of hosts are within 100 ppm each.
const NOTABLE_SKEW: f64 = 200e-6;
