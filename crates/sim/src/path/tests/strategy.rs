//! Random scenarios.

use std::time::Duration;

use narrows_scenario::{
    Arrivals, Cross, Hop, Jitter, Layer2, Loss, PathDirection, Queue, Reorder, Router, Scenario, SizeMix, TokenBucket,
};
use narrows_units::{BitRate, Framing, Octets};
use proptest::prelude::*;

fn rate() -> impl Strategy<Value = BitRate> {
    (1_000_000u64..50_000_000).prop_map(BitRate::from_bps)
}

fn micros(most: u64) -> impl Strategy<Value = Duration> {
    (0..=most * 1000).prop_map(Duration::from_nanos)
}

fn framing() -> impl Strategy<Value = Framing> {
    prop_oneof![Just(Framing::ETHERNET), Just(Framing::BARE), Just(Framing::fixed(13))]
}

fn queue() -> impl Strategy<Value = Queue> {
    prop_oneof![
        Just(Queue::Unlimited),
        (1u32..30).prop_map(Queue::Packets),
        (1500u64..30_000).prop_map(|octets| Queue::Octets(Octets::new(octets))),
    ]
}

fn device() -> impl Strategy<Value = Layer2> {
    (rate(), framing(), micros(300), queue()).prop_map(|(rate, framing, delay, queue)| Layer2 {
        rate,
        framing,
        delay,
        queue,
    })
}

fn bucket() -> impl Strategy<Value = TokenBucket> {
    (rate(), 1500u64..20_000, proptest::option::of(queue())).prop_map(|(rate, burst, queue)| TokenBucket {
        rate,
        burst: Octets::new(burst),
        queue,
        timer: Duration::ZERO,
    })
}

fn loss() -> impl Strategy<Value = Loss> {
    prop_oneof![
        3 => Just(Loss::None),
        1 => (0.0..0.5).prop_map(|ratio| Loss::Random { ratio }),
        1 => (0.0..0.5, 1.0..5.0).prop_map(|(ratio, mean_burst)| Loss::Bursty { ratio, mean_burst }),
    ]
}

fn jitter() -> impl Strategy<Value = Jitter> {
    prop_oneof![
        3 => Just(Jitter::None),
        1 => micros(2000).prop_map(Jitter::Uniform),
        1 => micros(1000).prop_map(Jitter::Exponential),
    ]
}

fn reorder() -> impl Strategy<Value = Option<Reorder>> {
    proptest::option::weighted(0.3, (0.0..1.0, micros(2000)).prop_map(|(ratio, by)| Reorder { ratio, by }))
}

fn router() -> impl Strategy<Value = Router> {
    let limit = proptest::option::of((10.0..1000.0, 1u32..5));
    (any::<bool>(), micros(500), micros(200), limit).prop_map(|(answers, icmp_delay, icmp_jitter, icmp_limit)| Router {
        answers,
        icmp_delay,
        icmp_jitter,
        icmp_limit,
        icmp_max_octets: 576,
        oddities: narrows_scenario::Oddities::default(),
    })
}

/// `overtaking`: with hold-backs.
fn hop(overtaking: bool) -> impl Strategy<Value = Hop> {
    let link = (rate(), framing(), micros(1000), queue(), 600u16..1500);
    let extras =
        (proptest::collection::vec(device(), 0..3), proptest::option::weighted(0.3, bucket()), loss(), jitter());
    (link, extras, reorder(), router()).prop_map(move |(link, extras, reorder, router)| {
        let mut hop = Hop::rate(link.0).framing(link.1).delay(link.2).queue(link.3).mtu(link.4);
        (hop.layer2, hop.bucket, hop.loss, hop.jitter) = extras;
        hop.reorder = reorder.filter(|_| overtaking);
        hop.router(router)
    })
}

fn arrivals() -> impl Strategy<Value = Arrivals> {
    prop_oneof![
        Just(Arrivals::Cbr),
        Just(Arrivals::Poisson),
        (1.1..2.5, 100u64..5000).prop_map(|(shape, micros)| Arrivals::ParetoOnOff {
            shape,
            mean_on: Duration::from_micros(micros),
            peak: BitRate::from_mbps(40),
        }),
    ]
}

fn way() -> impl Strategy<Value = PathDirection> {
    prop_oneof![Just(PathDirection::Forward), Just(PathDirection::Reverse)]
}

fn cross() -> impl Strategy<Value = Cross> {
    let sizes = prop_oneof![(40u16..1600).prop_map(SizeMix::constant), Just(SizeMix::imix())];
    let hops = (way(), 0usize..4, 0usize..3);
    let times = (micros(20_000), proptest::option::of(micros(60_000)));
    (hops, arrivals(), 100_000u64..20_000_000, sizes, times).prop_map(|(hops, arrivals, bps, sizes, times)| {
        let mut cross = Cross::on_hop(hops.1, arrivals, BitRate::from_bps(bps), sizes).way(hops.0);
        cross.last_hop = hops.1 + hops.2;
        (cross.from, cross.until) = times;
        cross
    })
}

/// A scenario of one to four hops with up to four sources.
pub(in crate::path) fn scenario(overtaking: bool) -> impl Strategy<Value = Scenario> {
    let hops = proptest::collection::vec(hop(overtaking), 1..4);
    (hops, proptest::collection::vec(cross(), 0..4)).prop_map(|(hops, crosses)| {
        let last = hops.len() - 1;
        let mut scenario = Scenario::new("random");
        for hop in hops {
            scenario = scenario.hop(hop);
        }
        for mut cross in crosses {
            cross.first_hop = cross.first_hop.min(last);
            cross.last_hop = cross.last_hop.min(last);
            scenario = scenario.cross(cross);
        }
        scenario.validate().unwrap()
    })
}

/// A packet to send: microseconds (so that some coincide), way, first hop, hops further, IP octets,
/// hop limit.
pub(in crate::path) type Plan = (u64, PathDirection, usize, usize, u16, u8);

/// Up to eighty packets within 80 ms, mostly from the hosts, in order of time.
pub(in crate::path) fn plans() -> impl Strategy<Value = Vec<Plan>> {
    let first = prop_oneof![4 => Just(0usize), 1 => 0usize..3];
    let exit = prop_oneof![4 => Just(9usize), 1 => 0usize..3];
    let hop_limit = prop_oneof![3 => Just(64u8), 1 => 1u8..5];
    let plan = (0u64..80_000, way(), first, exit, 28u16..1500, hop_limit);
    proptest::collection::vec(plan, 1..80).prop_map(|mut plans| {
        plans.sort_by_key(|plan| plan.0);
        plans
    })
}
