//! What is said of the runs.

use narrows_units::Metric;

use super::run::{Run, full_size_rate};
use crate::forward_bound::bounded;
use narrows_probe::outcome::{Caveat, Confidence, Details, Diagnostics, Estimate, Outcome, Reason, SampleCounts};
use narrows_train::mindelay;
use narrows_train::mindelay::HuntResult;

impl Run {
    /// The answer of two runs that agree.
    pub(super) fn answer(&self) -> Outcome {
        let Some(facts) = &self.facts else {
            return Outcome::inconclusive(Reason::UnexpectedEvent);
        };
        let rate = |octets: u16, each_ns: f64| {
            full_size_rate(&self.params, facts, mindelay::wire_rate(self.params.framing, octets, each_ns))
        };
        let values: Vec<f64> =
            self.found.iter().filter_map(|(octets, found)| Some(rate(*octets, found.each_ns)?.as_f64())).collect();
        let lows = self.found.iter().filter_map(|(octets, found)| rate(*octets, found.each_high_ns));
        let highs = self.found.iter().filter_map(|(octets, found)| rate(*octets, found.each_low_ns));
        let mean = narrows_stat::mean(&values).and_then(narrows_units::BitRate::from_bps_f64);
        let (Some(value), Some(low), Some(high)) = (mean, lows.min(), highs.max()) else {
            return self.no_number(Reason::StampsTooCoarse);
        };
        let widened = |rate: narrows_units::BitRate, factor: f64| rate.scaled(factor).unwrap_or(rate);
        let (low, high) = (widened(low, 1.0 - OTHER_ERROR), widened(high, 1.0 + OTHER_ERROR));
        let mut estimate = Estimate::ip_rate(Metric::IpCapacity, value, low, high);
        let unchecked = self.checks.iter().any(|checks| checks.iter().all(|(_, found)| found.is_none()));
        if unchecked || self.batching.seen().is_none() {
            // Stamps too coarse for small packets leave it open whether something steady parts the
            // large ones. Without the test, batches cannot be ruled out.
            estimate.confidence = Confidence::Low;
        }
        for caveat in self.caveats() {
            estimate = estimate.caveat(caveat);
        }
        estimate.diagnostics = self.diagnostics();
        let estimate = estimate.counted(self.samples());
        let Some((octets, found)) = self.found.first() else { return estimate.into() };
        bounded(estimate, facts, self.via, (*octets, self.params.framing), found).into()
    }

    /// No number, with what was seen.
    pub(super) fn no_number(&self, reason: Reason) -> Outcome {
        let mut caveats = self.caveats();
        if reason == Reason::ReceiveBatching {
            let nanos = mindelay::duration(self.batching.period_ns());
            caveats.push(Caveat::ReceiveBatching { period: nanos });
        }
        Outcome::Inconclusive { reason, caveats, details: Details::default(), diagnostics: self.diagnostics() }
            .counted(self.samples())
    }

    fn samples(&self) -> SampleCounts {
        SampleCounts::default()
            .kept("clean_pairs", self.tally.clean)
            .rejected("queued_pairs", self.tally.pairs.saturating_sub(self.tally.clean))
            .rejected("incomplete_pairs", self.tally.lost)
            .rejected("reordered_pairs", self.tally.disordered)
    }

    fn caveats(&self) -> Vec<Caveat> {
        let mut caveats = Vec::new();
        let share = |part: u64, whole: u64| part as f64 / whole.max(1) as f64;
        if self.tally.lost > 0 {
            let ratio = share(self.tally.lost, self.tally.sent);
            caveats.push(Caveat::Loss { ratio });
        }
        if self.tally.disordered > 0 {
            let ratio = share(self.tally.disordered, self.tally.sent);
            caveats.push(Caveat::Reordering { ratio });
        }
        let slope = self.found.first().map_or(0.0, |(_, found)| found.slope);
        if slope.abs() > NOTABLE_SKEW {
            caveats.push(Caveat::ClockSkew { ppm: slope * 1e6 });
        }
        caveats
    }

    /// Sizes, rates and counts of the two runs; of a hunt that found nothing, its best pair.
    fn diagnostics(&self) -> Diagnostics {
        let mut diagnostics = Diagnostics::default();
        diagnostics.insert("peer_kind", format!("{:?}", self.via).to_lowercase().as_str());
        diagnostics.insert("restarts", self.restarts);
        diagnostics.insert("batches_seen", self.batching.seen().unwrap_or(false));
        let names = [
            ("first_octets", "first_bps", "first_clean", "first_pairs", "first_residual_ns"),
            ("second_octets", "second_bps", "second_clean", "second_pairs", "second_residual_ns"),
        ];
        for ((octets, found), names) in self.found.iter().zip(names) {
            diagnostics.insert(names.0, u32::from(*octets));
            diagnostics.insert(names.1, self.ip_bps(*octets, found));
            diagnostics.insert(names.2, found.clean);
            diagnostics.insert(names.3, found.samples);
            diagnostics.insert(names.4, found.residual_ns);
        }
        if let Some((_, found)) = self.found.first() {
            diagnostics.insert("skew_ppm", found.slope * 1e6);
        }
        if let Some(checks) = &self.checks {
            diagnostics.insert("small_packets_contradict", self.contradicted());
            let names = ["check_large_bps", "check_middle_bps", "check_small_bps"];
            for (name, (octets, found)) in names.into_iter().zip(checks) {
                if let Some(found) = found {
                    diagnostics.insert(name, self.ip_bps(*octets, found));
                }
            }
        }
        let last = self.hunt.as_ref().and_then(|hunt| hunt.found(false));
        if let Some(found) = last {
            let octets = if self.found.len() == 1 { self.octets.1 } else { self.octets.0 };
            diagnostics.insert("best_pair_bps", self.ip_bps(octets, &found));
            diagnostics.insert("best_pair_residual_ns", found.residual_ns);
            diagnostics.insert("stable_pairs", found.stable);
        }
        diagnostics.insert("pairs", self.tally.pairs);
        diagnostics.insert("clean_pairs", self.tally.clean);
        if self.tally.clean > 0 {
            // One pair in so many met no queue.
            let expected = self.tally.pairs as f64 / self.tally.clean as f64;
            diagnostics.insert("expected_pairs", expected);
        }
        diagnostics
    }

    fn ip_bps(&self, octets: u16, found: &HuntResult) -> f64 {
        let mtu = self.facts.as_ref().map_or(1500, |facts| facts.path_mtu);
        let wire = mindelay::wire_rate(self.params.framing, octets, found.each_ns);
        mindelay::ip_rate(self.params.framing, mtu, wire).round()
    }
}

/// Ours: what a tag or two that the assumed framing lacks do to the rate of small packets, restated
/// for large ones, and what two clocks differ by.
const OTHER_ERROR: f64 = 0.006;
/// Ours: oscillators of hosts are within 100 ppm each.
const NOTABLE_SKEW: f64 = 200e-6;
