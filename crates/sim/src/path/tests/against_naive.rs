use proptest::prelude::*;
use proptest::test_runner::RngSeed;

use super::naive::{self, Sending};
use super::strategy::{Plan, plans, scenario};
use super::*;

const END: u64 = 120 * MS;

pub(super) fn sendings(scenario: &Scenario, plans: &[Plan]) -> Vec<Sending> {
    let sending = |(id, &(micros, way, first, further, ip_octets, hop_limit)): (u32, &Plan)| {
        let last = scenario.hops(way).len() - 1;
        let first = first.min(last);
        let packet = Packet { ip_octets, hop_limit, flow: 0, payload: id };
        (micros * 1000, way, first, (first + further).min(last), packet)
    };
    (0..).zip(plans).map(sending).collect()
}

/// The same by [`Path`], which goes on in steps of `step` and gets each packet when its time has
/// come.
pub(super) fn real(scenario: &Scenario, seed: u64, sendings: &[Sending], step: u64) -> Vec<Output<u32>> {
    let mut path = Path::new(scenario, seed);
    let mut out = Vec::new();
    let mut to_send = sendings.iter().peekable();
    let mut now = 0;
    while now < END {
        let next = (now + step).min(END);
        while let Some((at, way, first, exit, packet)) = to_send.next_if(|sending| sending.0 <= next) {
            path.cross(*at, *way, *first, *exit, packet.clone());
        }
        path.advance(next, &mut out);
        now = next;
    }
    assert_eq!(out.len() + path.inside(), sendings.len(), "a packet was lost or doubled");
    out
}

fn payload(output: &Output<u32>) -> u32 {
    match output {
        Output::Delivered { payload, .. }
        | Output::Expired { payload, .. }
        | Output::TooBig { payload, .. }
        | Output::Dropped { payload, .. } => *payload,
    }
}

fn config() -> ProptestConfig {
    ProptestConfig { cases: 1000, rng_seed: RngSeed::Fixed(1), failure_persistence: None, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(config())]

    /// The key oracle: lazy service gives every packet the very fate that one event at a time gives
    /// it.
    #[test]
    fn lazy_service_changes_nothing(
        scenario in scenario(true),
        plans in plans(),
        seed in any::<u64>(),
        step in 1_000u64..40_000_000,
    ) {
        let sendings = sendings(&scenario, &plans);
        let out = real(&scenario, seed, &sendings, step);
        prop_assert!(out.is_sorted_by_key(Output::at));
        let mut expected = naive::run(&scenario, seed, &sendings, END);
        let mut found = out.clone();
        expected.sort_by_key(|output| (output.rank(), payload(output)));
        found.sort_by_key(|output| (output.rank(), payload(output)));
        prop_assert_eq!(&found, &expected);
        // Nor does the step, not even in the order of what happens at one instant.
        prop_assert_eq!(real(&scenario, seed, &sendings, END), out);
    }

    /// Rates that change and stop, against a search of the whole schedule for every packet. All
    /// rates divide 8·10⁹, so times are whole.
    #[test]
    fn schedules(
        changes in proptest::collection::vec((0u64..20_000, prop::sample::select(vec![0u64, 1, 2, 4, 8, 10, 40])), 0..8),
        packets in proptest::collection::vec((0u64..3_000_000, 1u16..1500), 1..100),
    ) {
        let mut hop = Hop::rate(BitRate::from_mbps(5)).framing(Framing::BARE).queue(Queue::Unlimited);
        for (micros, mbps) in &changes {
            hop = hop.then_rate(Duration::from_micros(*micros), BitRate::from_mbps(*mbps));
        }
        hop.schedule.sort_by_key(|change| change.at);
        let mut link = Link::new(hop.rate, hop.framing, hop.queue, &hop.schedule);
        let nanoseconds = |index: usize| narrows_units::nanos(hop.schedule[index].at);
        let (mut at, mut free) = (0, 0);
        for (gap, ip_octets) in packets {
            at += gap / 10;
            let mut begin: u64 = at.max(free);
            let in_force = |begin: u64| (0..hop.schedule.len()).rev().find(|&index| nanoseconds(index) <= begin);
            let rate = |begin: u64| in_force(begin).map_or(hop.rate, |index| hop.schedule[index].rate);
            while begin < NEVER && rate(begin) == BitRate::ZERO {
                let next = (0..hop.schedule.len()).find(|&index| nanoseconds(index) > begin);
                begin = next.map_or(NEVER, nanoseconds);
            }
            free = match rate(begin).time_for(u64::from(ip_octets)) {
                Some(time) if begin < NEVER => begin + narrows_units::nanos(time),
                _ => NEVER,
            };
            prop_assert_eq!(link.serve(at, ip_octets), Some(free));
        }
    }

    /// Without overtaking a way is FIFO from end to end, and no link is faster than its rate.
    #[test]
    fn order_and_pace(scenario in scenario(false), plans in plans(), seed in any::<u64>()) {
        let sendings = sendings(&scenario, &plans);
        let out = real(&scenario, seed, &sendings, END);
        for way in [PathDirection::Forward, PathDirection::Reverse] {
            let hops = scenario.hops(way);
            let through = |id: u32| sendings[id as usize].2 == 0;
            let arrived: Vec<(u64, u32, u16)> = out
                .iter()
                .filter_map(|output| match output {
                    Output::Delivered { at, way: on, node, ip_octets, payload, .. }
                        if *on == way && *node == hops.len() && through(*payload) =>
                    {
                        Some((*at, *payload, *ip_octets))
                    }
                    _ => None,
                })
                .collect();
            // Ids are in order of sending.
            prop_assert!(arrived.is_sorted_by_key(|&(_, id, _)| id));
            // The last link that serialises sets the pace, unless jitter follows it.
            let last = &hops[hops.len() - 1];
            let (rate, framing) = match last.layer2.last() {
                Some(device) => (device.rate, device.framing),
                None if last.jitter == narrows_scenario::Jitter::None => (last.rate, last.framing),
                None => continue,
            };
            for pair in arrived.windows(2) {
                let octets = framing.wire_octets(u32::from(pair[1].2));
                let least = narrows_units::nanos(rate.time_for(u64::from(octets)).unwrap());
                // Departures and the time are both rounded up.
                prop_assert!(pair[1].0 - pair[0].0 + 1 >= least);
            }
        }
    }
}
