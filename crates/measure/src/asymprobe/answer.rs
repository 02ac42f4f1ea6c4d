//! Which capacity is exact, and which a bound.

use narrows_units::{BitRate, Metric};

use super::run::{Kind, Run};
use narrows_probe::outcome::{Caveat, Details, Diagnostics, Estimate, Limit, Outcome, Ranged, Reason, SampleCounts};
use narrows_train::mindelay;
use narrows_train::mindelay::{Grain, HuntResult, Reads};

/// The two directions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    Forward,
    Reverse,
}

impl Side {
    /// Pairs in which this direction carries long packets, and packets of the third size.
    fn kinds(self) -> (Kind, Kind) {
        match self {
            Self::Forward => (Kind::Forward, Kind::ForwardThird),
            Self::Reverse => (Kind::Reverse, Kind::ReverseThird),
        }
    }
}

/// What the least round trips say (ours, after `[TRIO]`), ns.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Trio {
    /// What a long packet takes longer than a short one, all hops of a direction together.
    forward_ns: f64,
    reverse_ns: f64,
    /// Of the fourth: the time of both long less what the three others say it is.
    residual_ns: f64,
    valid: bool,
}

impl Run {
    /// The answer of all kinds that settled.
    pub(super) fn answer(&self) -> Outcome {
        let forward = self.side(Side::Forward, Metric::IpCapacity);
        let reverse = self.side(Side::Reverse, Metric::ReverseIpCapacity);
        let Some(mut estimate) = forward else {
            return self.no_number(self.why_not());
        };
        estimate.also.extend(reverse);
        for caveat in self.caveats() {
            estimate = estimate.caveat(caveat);
        }
        let own = std::mem::replace(&mut estimate.diagnostics, self.diagnostics());
        estimate.diagnostics.adopt(own, &OWN);
        estimate.counted(self.samples()).into()
    }

    /// One direction's capacity: exact where the dispersion follows its packets' size, else a
    /// bound.
    fn side(&self, side: Side, metric: Metric) -> Option<Estimate> {
        let (kind, third) = side.kinds();
        let found = self.kind_found(kind)?;
        if self.is_coarse(&found) {
            return None;
        }
        let octets = |kind: Kind| match (side, self.octets(kind)) {
            (Side::Forward, (own, _)) | (Side::Reverse, (_, own)) => own,
        };
        let rate = |each_ns: f64| self.ip_rate(octets(kind), each_ns);
        let value = rate(found.each_ns)?;
        let low = rate(found.each_high_ns)?;
        let high = rate(found.each_low_ns)?;
        let spread = |rate: BitRate, factor: f64| rate.scaled(factor).unwrap_or(rate);
        let mut estimate =
            Estimate::ip_rate(metric, value, spread(low, 1.0 - OTHER_ERROR), spread(high, 1.0 + OTHER_ERROR));
        let ratio = self.kind_found(third).map(|third| found.each_ns / third.each_ns);
        estimate.diagnostics.insert("size_test", ratio.unwrap_or(0.0));
        let framing = self.params.framing;
        let wire = |octets: u16| f64::from(framing.wire_octets(u32::from(octets)));
        let most = wire(octets(kind)) / wire(octets(third)) * (1.0 + self.params.moved);
        let exact = ratio.is_some_and(|ratio| (1.0 + self.params.moved..=most).contains(&ratio));
        estimate.diagnostics.insert("exact", exact);
        if side == Side::Forward && found.best.open() {
            let interface = self.facts.as_ref().and_then(|facts| facts.sender.interface_rate);
            let own = mindelay::wire_rate(framing, octets(kind), found.each_ns);
            if interface.is_none_or(|rate| (own / rate.as_f64() - 1.0).abs() > SAME) {
                return Some(estimate.caveat(Caveat::SenderLimited).at_least(Limit::Sender));
            }
        }
        let host_limits = self.facts.as_ref().is_some_and(|facts| {
            let (request, reply) = self.octets(kind);
            let busy = |host: &narrows_probe::HostFacts, octets| {
                let cost = host.receive_cost.max(host.send_cost);
                BitRate::over(u64::from(octets), cost)
                    .is_some_and(|most| mindelay::wire_rate(framing, octets, found.each_ns) >= BUSY * most.as_f64())
            };
            busy(&facts.sender, reply) || busy(&facts.receiver, request)
        });
        if host_limits {
            return Some(estimate.caveat(Caveat::ReceiverLimited).at_least(Limit::Receiver));
        }
        if exact {
            return Some(estimate);
        }
        Some(self.bound(estimate, side))
    }

    /// The dispersion is the other direction's, or it cannot be told whose: at least this, or what
    /// the least round trips allow.
    fn bound(&self, mut estimate: Estimate, side: Side) -> Estimate {
        let mut least = estimate.rate().map_or(BitRate::ZERO, |rate| rate.low);
        if let Some(trio) = self.trio().filter(|trio| trio.valid) {
            let longer = match side {
                Side::Forward => trio.forward_ns,
                Side::Reverse => trio.reverse_ns,
            };
            let framing = self.params.framing;
            let wire = |octets: u16| f64::from(framing.wire_octets(u32::from(octets)));
            let share = (wire(self.large) - wire(self.small)) / wire(self.large);
            // All hops together take that long; the narrow one takes no longer.
            let rate = self.ip_rate(self.large, (longer + self.grain_ns()) / share);
            if let Some(rate) = rate.filter(|rate| longer > 0.0 && *rate > least) {
                least = rate;
                estimate.diagnostics.insert("by_round_trips", true);
            }
        }
        estimate.adjust(|rate: &mut Ranged<BitRate>| (rate.value, rate.low) = (least, least));
        estimate.caveat(Caveat::AsymmetricLimit).at_least(Limit::Path)
    }

    fn ip_rate(&self, octets: u16, each_ns: f64) -> Option<BitRate> {
        let mtu = self.facts.as_ref()?.path_mtu;
        let wire = mindelay::wire_rate(self.params.framing, octets, each_ns);
        BitRate::from_bps_f64(mindelay::ip_rate(self.params.framing, mtu, wire))
    }

    fn kind_found(&self, kind: Kind) -> Option<HuntResult> {
        let found = self.found.iter().find(|(own, _)| *own == kind)?;
        found.1
    }

    fn grain_ns(&self) -> f64 {
        let grain = self.facts.as_ref().map(|facts| Grain::of(facts, Reads::Returns));
        grain.map_or(0.0, |grain| grain.arrival_ns + grain.departure_ns)
    }

    fn is_coarse(&self, found: &HuntResult) -> bool {
        let grain = self.facts.as_ref().map(|facts| Grain::of(facts, Reads::Returns));
        grain.is_some_and(|grain| grain.arrival_ns > COARSEST * found.span_ns)
    }

    fn trio(&self) -> Option<Trio> {
        let least = |kind: Kind| self.kind_found(kind).map(|found| found.least_first_ns);
        let (short, long) = (least(Kind::Short)?, least(Kind::Long)?);
        let (forward, reverse) = (least(Kind::Forward)?, least(Kind::Reverse)?);
        let (forward_ns, reverse_ns) = (forward - short, reverse - short);
        let residual_ns = (long - short) - forward_ns - reverse_ns;
        let allowed = (TRIO_SHARE * (forward_ns + reverse_ns)).max(2.0 * self.grain_ns());
        Some(Trio { forward_ns, reverse_ns, residual_ns, valid: residual_ns.abs() <= allowed })
    }

    /// Why there is no forward capacity.
    fn why_not(&self) -> Reason {
        if self.kind_found(Kind::Forward).is_some_and(|found| self.is_coarse(&found)) {
            return Reason::StampsTooCoarse;
        }
        let (sent, lost) = self.tally;
        if 2 * lost > sent {
            return Reason::TooMuchLoss { lost, sent };
        }
        Reason::NotConverged
    }

    /// The run was told to stop: what has settled by then counts.
    pub(super) fn stopped(&self, reason: Reason) -> Outcome {
        match self.answer() {
            Outcome::Estimated(estimate) => estimate.caveat(Caveat::StoppedEarly).into(),
            Outcome::Inconclusive { caveats, details, diagnostics, .. } => {
                Outcome::Inconclusive { reason, caveats, details, diagnostics }
            }
        }
    }

    /// No number, with what was seen.
    pub(super) fn no_number(&self, reason: Reason) -> Outcome {
        let mut caveats = self.caveats();
        if reason == Reason::ReceiveBatching {
            let period = mindelay::duration(self.batching.period_ns());
            caveats.push(Caveat::ReceiveBatching { period });
        }
        Outcome::Inconclusive { reason, caveats, details: Details::default(), diagnostics: self.diagnostics() }
            .counted(self.samples())
    }

    fn samples(&self) -> SampleCounts {
        let count =
            |of: fn(&HuntResult) -> usize| self.found.iter().filter_map(|(_, found)| found.as_ref()).map(of).sum();
        let (clean, samples): (usize, usize) = (count(|found| found.clean), count(|found| found.samples));
        SampleCounts::default()
            .kept("clean_pairs", clean)
            .rejected("queued_pairs", samples.saturating_sub(clean))
            .rejected("incomplete_pairs", self.tally.1)
    }

    fn caveats(&self) -> Vec<Caveat> {
        let (sent, lost) = self.tally;
        if lost == 0 {
            return Vec::new();
        }
        let ratio = lost as f64 / sent.max(1) as f64;
        vec![Caveat::Loss { ratio }]
    }

    fn diagnostics(&self) -> Diagnostics {
        let mut diagnostics = Diagnostics::default();
        diagnostics.insert("long_octets", u32::from(self.large));
        diagnostics.insert("short_octets", u32::from(self.small));
        let names = |kind: Kind| match kind {
            Kind::Forward => ("forward_ns", "forward_expected_pairs"),
            Kind::Reverse => ("reverse_ns", "reverse_expected_pairs"),
            Kind::ForwardThird => ("forward_third_ns", "forward_third_expected_pairs"),
            Kind::ReverseThird => ("reverse_third_ns", "reverse_third_expected_pairs"),
            Kind::Short => ("short_ns", "short_expected_pairs"),
            Kind::Long => ("long_ns", "long_expected_pairs"),
        };
        for (kind, found) in &self.found {
            let Some(found) = found else { continue };
            let (dispersion, expected) = names(*kind);
            diagnostics.insert(dispersion, found.each_ns);
            diagnostics.insert(expected, found.samples as f64 / found.clean.max(1) as f64);
        }
        if let Some(trio) = self.trio() {
            diagnostics.insert("trio_forward_ns", trio.forward_ns);
            diagnostics.insert("trio_reverse_ns", trio.reverse_ns);
            diagnostics.insert("trio_residual_ns", trio.residual_ns);
            diagnostics.insert("trio_valid", trio.valid);
        }
        diagnostics
    }
}

/// What is told of each direction by itself.
const OWN: [&str; 3] = ["size_test", "exact", "by_round_trips"];
/// Ours: the published accuracy is 10 %.
const COARSEST: f64 = 0.1;
/// Ours: what a tag or two that the assumed framing lacks do, two clocks, and rounding.
const OTHER_ERROR: f64 = 0.006;
/// Ours.
const SAME: f64 = 0.03;
/// Ours: a host that takes this share of the dispersion per packet may be what disperses.
const BUSY: f64 = 0.95;
/// Ours: of both differences, what the fourth round trip may be off by.
const TRIO_SHARE: f64 = 0.05;
