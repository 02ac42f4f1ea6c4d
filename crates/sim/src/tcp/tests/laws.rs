use scenario::{Cross, Elastic, ElasticControl, Loss};

use super::*;

fn run(hop: Hop, config: FlowConfig, from: u64, to: u64) -> f64 {
    let mut rig = Rig::new(&scenario(hop), 1);
    let id = rig.stack.open(&config);
    rig.rate(id, from, to)
}

fn assert_between(value: f64, low: f64, high: f64, what: &str) {
    assert!((low..=high).contains(&value), "{what}: {value} is not in {low}..{high}");
}

/// Ten segments in the first round trip, twice as many in each one after: quick acknowledgements and counting of segments.
#[test]
fn slow_start_doubles_each_round_trip() {
    let mut rig = Rig::new(&scenario(one_hop(1000, 100, 10_000)), 1);
    let id = rig.stack.open(&flow(Control::Reno));
    for round in 0..7u32 {
        rig.run_until((u64::from(round) * 100 + 95) * MS);
        let sample = rig.sample(id);
        assert_eq!(sample.cwnd_segments, 10 << round, "round {round}");
        assert_eq!(sample.sent_octets, Some(MSS * (10 * ((2 << round) - 1))));
        assert_eq!(sample.ssthresh_segments, None);
    }
}

/// A queue as large as the bandwidth-delay product keeps the link busy through every reduction.
#[test]
fn one_flow_fills_an_idle_path() {
    for control in [Control::Reno, Control::Cubic] {
        for (mbps, rtt_ms) in [(10, 20), (100, 20), (100, 50)] {
            let bdp = mbps * rtt_ms * 1000 / 8 / 1500;
            let rate = run(
                one_hop(mbps, rtt_ms, bdp.max(20) * 5 / 4),
                flow(control),
                0,
                10 * SECOND,
            );
            let share = rate / payload_capacity(mbps);
            assert_between(share, 0.97, 1.0, &format!("{control:?} {mbps} Mbit/s {rtt_ms} ms"));
        }
    }
}
