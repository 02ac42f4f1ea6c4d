//! Limits beside the traffic of others, which is what makes a queue look like something else.

use std::time::Duration;

use narrows_diagnose::limits::LimitingFactor;
use narrows_scenario::{
    Arrivals, Cross, Elastic, ElasticControl, Loss, Scenario, SizeMix, Source, TokenBucket, Workload,
};
use narrows_units::{BitRate, Octets};

use super::{Base, Case, Control, Induced, roomy, whole};

/// A share of the rate between a fifth and three fifths: 4 of 12 Mbit/s, 40 of 100.
fn load(base: Base) -> BitRate {
    base.rate(0.2 + 0.4 * base.share())
}

fn beside(base: Base, cross: Cross) -> Option<Case> {
    let mut scenario = base.scenario().cross(cross);
    scenario.warm_up = Duration::from_secs(2);
    base.case(scenario)
}

fn poisson(base: Base) -> Cross {
    Cross::on_hop(0, Arrivals::Poisson, load(base), SizeMix::constant(1500))
}

fn carrying(base: Base, flows: u16, workload: Workload) -> Cross {
    let extra_rtt = Duration::from_secs_f64(base.rtt_ms / 2e3);
    Cross::elastic_on_hop(0, Elastic { extra_rtt, workload, ..Elastic::greedy(flows, ElasticControl::Cubic) })
}

pub(crate) const BESIDE: [Induced; 7] = [
    ("queue beside Poisson traffic", LimitingFactor::Queue, |base| beside(base, poisson(base))),
    ("queue beside bursts", LimitingFactor::Queue, |base| {
        let mean_on = Duration::from_millis(20);
        let arrivals = Arrivals::ParetoOnOff { shape: 1.5, mean_on, peak: base.rate(0.9) };
        let source = Source::Open { arrivals, rate: load(base), sizes: SizeMix::constant(1500) };
        beside(base, Cross { source, ..poisson(base) })
    }),
    ("queue beside greedy TCP", LimitingFactor::Queue, |base| beside(base, carrying(base, 2, Workload::Greedy))),
    ("queue beside short transfers", LimitingFactor::Queue, |base| {
        let web = Workload::Web { rate: load(base), mean: Octets::new(60_000), sigma: 1.5 };
        beside(base, carrying(base, 1, web))
    }),
    ("queue beside films", LimitingFactor::Queue, |base| {
        let each = BitRate::from_bps(load(base).bps() / 3);
        beside(base, carrying(base, 3, Workload::Video { rate: each, chunk: Duration::from_secs(2) }))
    }),
    ("0.5 % of random loss", LimitingFactor::RandomLoss, |base| {
        // What it allows must be well below the rate, and struck often enough.
        let (allowed, ratio) = (base.loss(0.6)?, 0.005);
        let hop = base.hop().loss(Loss::Random { ratio });
        (allowed < ratio).then(|| base.case(roomy(Scenario::new("loss").hop(hop))))?
    }),
    ("shaper behind Poisson traffic", LimitingFactor::Shaper, |base| {
        // The traffic leaves the path in front of the shaper.
        let queue = narrows_scenario::Queue::Octets(Octets::new(whole(base.product()).max(60_000)));
        let burst = Octets::new(whole(base.mbps * 1e6 * 0.3 * base.length / 5.0 / 8.0).max(6_000));
        let bucket = TokenBucket { rate: base.rate(0.3), burst, queue: Some(queue), timer: Duration::ZERO };
        let shaped = Base { rtt_ms: 0.2, queue: 4.0, ..base }.hop().bucket(bucket);
        let scenario = Scenario::new("shaper").hop(base.hop()).hop(shaped);
        let light = Cross::on_hop(0, Arrivals::Poisson, base.rate(0.3), SizeMix::constant(1500));
        (base.control != Control::Bbr).then(|| base.case(roomy(scenario.cross(light))))?
    }),
];
