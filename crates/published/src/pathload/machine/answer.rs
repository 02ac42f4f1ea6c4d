//! What the run has found, and what to say of it.

use narrows_units::{BitRate, Metric};

use super::Machine;
use crate::pathload::search::{Search, Stop};
use narrows_probe::{Caveat, Confidence, Details, Diagnostics, Estimate, Limit, Outcome, Reason, SampleCounts};

/// Loss that says more about the path than about a rate, when no rate went through without a trend
/// ("ours").
const TOO_MUCH_LOSS: f64 = 0.15;
/// Packets of others by which the delay may be off over a stream ("ours", from the sweeps of this
/// module's tests).
const GRAINS: f64 = 1.0;
/// Octets that Ethernet adds to an IP packet, gap and preamble included.
const ETHERNET_OCTETS: f64 = 38.0;

impl Machine {
    pub(super) fn finish_without(&self, reason: Reason) -> Outcome {
        let mut diagnostics = Diagnostics::default();
        diagnostics.insert("fleets", self.fleets);
        let caveats = self.caveats();
        Outcome::Inconclusive { reason, caveats, details: Details::default(), diagnostics }.counted(self.samples())
    }

    fn samples(&self) -> SampleCounts {
        SampleCounts::default().kept("fleets", self.fleets)
    }

    /// What there is, if there is anything.
    pub(super) fn finish_unless(&self, reason: Reason) -> Outcome {
        match &self.search {
            Some(search) if search.low > 0.0 && search.high.is_some() => self.finish(None),
            _ => self.finish_without(reason),
        }
    }

    pub(super) fn finish(&self, stop: Option<Stop>) -> Outcome {
        let Some(search) = &self.search else {
            return self.finish_without(Reason::NotConverged);
        };
        let grey = search.grey_low.zip(search.grey_high);
        let high = search.high.unwrap_or(search.low);
        let middle = match (stop, grey) {
            // Under coalescence the grey region says little, and the tool does not print it.
            (Some(Stop::GreyResolution), Some((low, high))) if !self.reader.coalescing => f64::midpoint(low, high),
            _ => f64::midpoint(search.low, high),
        };
        if search.low <= 0.0 && (self.high_by_loss || self.lost as f64 > TOO_MUCH_LOSS * self.sent as f64) {
            return self.finish_without(Reason::TooMuchLoss {
                // What was overtaken counts as lost, as in the tool.
                lost: self.lost + self.reordered,
                sent: self.sent,
            });
        }
        let bound_only = self.lower_bound_only || search.high.is_none();
        if (bound_only && search.low <= 0.0) || high <= 0.0 {
            let coalesced = self.reader.coalescing;
            return self.finish_without(if coalesced { Reason::ReceiveBatching } else { Reason::NotConverged });
        }
        let mut estimate = if bound_only { self.bound(search, stop) } else { self.range(search, middle, high) };
        let settled = matches!(stop, Some(Stop::Resolution | Stop::GreyResolution | Stop::MaxRate));
        if !settled {
            estimate = estimate.caveat(Caveat::NotConverged);
            estimate.confidence = Confidence::Low;
        }
        if stop == Some(Stop::Timer) {
            estimate = estimate.caveat(Caveat::TimerLimited);
        }
        estimate.interval = Some(self.now.since(self.began));
        for caveat in self.caveats() {
            estimate = estimate.caveat(caveat);
        }
        self.with_evidence(estimate, search).into()
    }

    /// No rate with a trend, or none that could be judged.
    fn bound(&self, search: &Search, stop: Option<Stop>) -> Estimate {
        let limit = if self.lower_bound_only { Limit::Receiver } else { self.rate_limit() };
        let low = rate(search.low);
        let estimate = Estimate::ip_rate(Metric::AvailableIpCapacity, low, low, low).at_least(limit);
        if self.lower_bound_only || stop != Some(Stop::MaxRate) {
            return estimate;
        }
        estimate.caveat(match limit {
            Limit::Receiver => Caveat::ReceiverLimited,
            Limit::Clock => Caveat::TimerLimited,
            _ => Caveat::SenderLimited,
        })
    }

    /// Departs from pathload 1.3.2, which prints the grey region as the range: its edges are known
    /// to the grey resolution only, so the interval reaches from the highest rate without trend to
    /// the lowest with one.
    fn range(&self, search: &Search, middle: f64, high: f64) -> Estimate {
        let low = search.low * (1.0 - self.unseen(search.low));
        let high = high * self.framing(high) * (1.0 + self.grain(high));
        let mut estimate = Estimate::ip_rate(Metric::AvailableIpCapacity, rate(middle), rate(low), rate(high));
        if let Some((low, high)) = search.grey_low.zip(search.grey_high) {
            let (low, high) = (rate(low), rate(high));
            estimate = estimate.caveat(Caveat::GreyRegion { low, high });
        }
        if self.high_by_loss {
            // Whether those losses are of the queue that the rate fills or of the path at any rate,
            // nothing tells.
            estimate.confidence = Confidence::Low;
        }
        self.buckets.tell(estimate)
    }

    /// Overload that goes unseen, as a share of the rate: the delay that it adds over a whole
    /// stream is no more than one tick of each clock and what packets of others make of it
    /// ("ours").
    fn unseen(&self, rate: f64) -> f64 {
        let Some(facts) = &self.facts else { return 0.0 };
        let ticks = facts.sender.clock_resolution + facts.receiver.clock_resolution;
        let stream_ns = self.params.stream_packets as f64 * self.limits.shape(rate).gap_ns as f64;
        (ticks.as_nanos() as f64 / stream_ns + self.grain(rate)).min(0.5)
    }

    /// The traffic of others comes in packets, too: over a stream of duration `D` the delay steps
    /// by one of `L` octets, `8 L/C`, whatever the rate is. An overload of `8 L/D` bit/s adds no
    /// more than that, and so is not told from none, and a step at the wrong place is not told from
    /// it. As a share of the rate that is `GRAINS` over the packets of a stream, for packets of
    /// full size.
    fn grain(&self, rate: f64) -> f64 {
        let shape = self.limits.shape(rate);
        let larger = f64::from(self.limits.most_octets) / f64::from(shape.ip_octets.max(1));
        (GRAINS * larger / self.params.stream_packets as f64).min(0.2)
    }

    /// Packets below full size pay more for framing: what full packets could get is up to this much
    /// more ("ours": Ethernet's 38 octets; the interval, not the value, allows for it, since
    /// nothing tells the framing of the tight link).
    fn framing(&self, rate: f64) -> f64 {
        let overhead = |octets: u16| 1.0 + ETHERNET_OCTETS / f64::from(octets.max(1));
        overhead(self.limits.shape(rate).ip_octets) / overhead(self.limits.most_octets)
    }

    fn rate_limit(&self) -> Limit {
        let capped = self.facts.as_ref().and_then(|facts| facts.rate_cap);
        let capped = capped.is_some_and(|cap| self.limits.max_rate() >= 0.99 * cap.as_f64());
        let Some(facts) = self.facts.as_ref().filter(|_| !capped) else {
            return if capped { Limit::Budget } else { Limit::Sender };
        };
        let (sender, receiver) = (&facts.sender, &facts.receiver);
        let binds = |gap: std::time::Duration| gap.as_nanos() as f64 >= 0.99 * self.limits.least_gap_ns;
        if binds(sender.min_gap) || binds(sender.send_cost) {
            Limit::Sender
        } else if binds(super::receiving_gap(receiver)) {
            Limit::Receiver
        } else if binds(sender.clock_resolution.max(receiver.clock_resolution)) {
            Limit::Clock
        } else {
            Limit::Sender
        }
    }

    fn with_evidence(&self, estimate: Estimate, search: &Search) -> Estimate {
        estimate
            .with("initial_dispersion_bps", self.initial_rate.unwrap_or(f64::NAN))
            .with("resolution_bps", search.resolution)
            .with("grey_resolution_bps", search.grey_resolution)
            .with("fleet_rate_bps", self.log[0].clone())
            .with("fleet_verdict", self.log[1].clone())
            .with("no_trend_up_to_bps", search.low)
            .with("increasing_from_bps", search.high.unwrap_or(f64::NAN))
            .with("fleets", self.fleets)
            .counted(self.samples())
            .with("interrupt_coalescence", self.reader.coalescing)
    }

    fn caveats(&self) -> Vec<Caveat> {
        let share = |count: u64| count as f64 / self.sent.max(1) as f64;
        let seen = [
            self.bursts_every.map(|period| Caveat::ReceiveBatching { period }),
            (share(self.lost) > 0.001).then(|| Caveat::Loss { ratio: share(self.lost) }),
            (self.local_drops > 0).then_some(Caveat::LocalDrops { packets: self.local_drops }),
            (share(self.reordered) > 0.001).then(|| Caveat::Reordering { ratio: share(self.reordered) }),
            (self.sender_switches + self.receiver_switches > 0).then_some(Caveat::HostStall),
        ];
        seen.into_iter().flatten().collect()
    }
}

fn rate(bps: f64) -> BitRate {
    BitRate::from_bps_f64(bps).unwrap_or(BitRate::ZERO)
}
