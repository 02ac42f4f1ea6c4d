//! The OC-12 case of `[Netest03]` §III.A, number by number (docs/design/burst.md tells it), and
//! shapes.

use narrows_probe::Entry;
use narrows_probe::{BurstSample, Cost, Estimate, Outcome, Ranged, Reason};
use narrows_units::{Direction, Layer, Metric};

use super::*;

/// 82 kB at 660 into 622 Mbit/s over 30 ms: the paper takes the whole of OC-12 for available, and
/// the burst for the queue.
const OC12: Facts = Facts {
    p10_octets: 82_000,
    burst_octets: 82_000,
    queue_octets: Some(82_000),
    line_bps: 622_000_000,
    available_bps: 622_000_000,
    rtt_ns: 30_000_000,
};

/// 0.03 s x 622 Mbit/s = 18.66 Mbit = 2.3325 MB; 82 kB x 8 / 0.03 s = 21.8667 Mbit/s; 82 kB / 622
/// Mbit/s = 1.05466 ms.
#[test]
fn the_papers_numbers() {
    let means = Means::of(OC12);
    assert_eq!(means.delay_product_octets, 2_332_500);
    assert_eq!(means.unpaced_tcp_bps, 21_866_666);
    assert_eq!(means.safe_udp_interval_ns, 1_054_662);
    assert!(means.pace);
    assert_eq!(means.unpaced_streams, 29);
    assert_eq!(means.queue, Some(QueueVerdict::Shallow));
    assert_eq!(means.slow_start_loss_octets, Some(164_000));
    assert_eq!(means.reno_queue_octets, 2_332_500);
    assert_eq!(means.cubic_queue_octets, 999_642);
    // Half of the burst: the paper took 40 kB every 1 ms, 320 Mbit/s, and got 300.
    assert_eq!(means.safe_udp_burst_octets, 41_000);
    assert_eq!(means.safe_udp_bps, 311_000_111);
    // What it sends in a millisecond: less than the queue, so that pacing makes the limit
    // irrelevant.
    assert_eq!(means.paced_queue_octets, 77_750);
}

/// The paper's second stream: bursts of 40 kB. Twice as much takes 1.028939 ms at 622
/// Mbit/s, so half of the rate is left to others.
#[test]
fn the_papers_second_stream() {
    let means = Means::of(Facts { p10_octets: 80_000, burst_octets: 80_000, ..OC12 });
    assert_eq!(means.safe_udp_burst_octets, 40_000);
    assert_eq!(means.safe_udp_interval_ns, 1_028_938);
    assert_eq!(means.safe_udp_bps, 311_000_274);
}

#[test]
fn deep_and_fair_queues() {
    let with = |queue_octets| Means::of(Facts { queue_octets: Some(queue_octets), burst_octets: queue_octets, ..OC12 });
    assert_eq!(with(8_000_000).queue, Some(QueueVerdict::Bloated));
    assert_eq!(with(2_000_000).queue, Some(QueueVerdict::Fair));
    // 8 MB of switch in front of the router, as the paper's engineers tried: nothing to pace for.
    assert!(!with(8_000_000).pace);
    assert_eq!(with(8_000_000).slow_start_loss_octets, Some(2_332_500 + 8_000_000));
    // Nothing known is nothing claimed, and zeros break nothing.
    let nothing = Means::of(Facts {
        queue_octets: None,
        burst_octets: 0,
        p10_octets: 0,
        line_bps: 0,
        available_bps: 0,
        rtt_ns: 0,
    });
    assert_eq!((nothing.queue, nothing.unpaced_tcp_bps, nothing.unpaced_streams), (None, 0, 1));
}

fn document(outcome: Outcome) -> BurstDocument {
    let entry = Entry {
        metric: Metric::MaximumBurstOctets,
        direction: Direction::Forward,
        method: "burst",
        outcome,
        cost: Cost::default(),
    };
    BurstDocument::new(MetricRow::new(&entry), None)
}

fn found() -> BurstFinding {
    let point = |(mbps, p10, median, max, bursts)| BurstPoint {
        rate_bps: BitRate::from_mbps(mbps),
        p10: Octets::new(p10),
        median: Octets::new(median),
        max: Octets::new(max),
        bursts,
    };
    BurstFinding {
        ip_octets: 1500,
        rate_bps: Some(BitRate::from_gbps(1)),
        through_rate_bps: Some(BitRate::from_mbps(97)),
        sample: Some(BurstSample {
            p10: Octets::new(69_000),
            median: Octets::new(70_500),
            max: Octets::new(70_500),
            max_is_bound: false,
        }),
        curve: [(200, 120_000, 124_500, 126_000, 4), (1_000, 69_000, 70_500, 70_500, 23)].map(point).to_vec(),
        queue: QueueFinding {
            policy: Some("drop_tail".to_owned()),
            counts: Some("octets".to_owned()),
            effective_octets: Some(Octets::new(64_000)),
            basis: Some("line".to_owned()),
            ..QueueFinding::default()
        },
        rtt_ns: Some(Delta::from_nanos(10_000_000)),
    }
}

fn estimate(found: BurstFinding) -> Outcome {
    let range = Ranged::new(70_500, 69_000, 72_000).map(Octets::new);
    Estimate::new(Metric::MaximumBurstOctets, Some(Layer::Ip), range).found(Finding::Burst(Box::new(found))).into()
}

#[test]
fn the_machine_contract() {
    let document = document(estimate(found()));
    let json: serde_json::Value = serde_json::from_str(&document.json()).unwrap();
    for (name, value) in
        [("value", 70_500), ("p10", 69_000), ("median", 70_500), ("max", 70_500), ("rate_bps", 1_000_000_000)]
    {
        assert_eq!(json[name], value, "{name}");
    }
    assert_eq!(json["metric"], "maximum_burst_octets");
    assert_eq!(json["queue"]["policy"], "drop_tail");
    assert_eq!(json["means"]["queue"], "fair");
    assert_eq!(json["curve"].as_array().unwrap().len(), 2);
    assert_eq!(json["curve"][0]["median"], 124_500);
    let text = document.text();
    for part in ["64 kB by the line", "counts octets", "every", "nine of ten"] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

/// Both ends of what the schema allows, and something that it must refuse.
#[test]
fn json_follows_the_shipped_schema() {
    let schema: serde_json::Value = serde_json::from_str(crate::schema::BURST).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let mut bucket = found();
    bucket.sample = bucket.sample.map(|sample| BurstSample { max_is_bound: true, ..sample });
    bucket.queue = QueueFinding {
        policy: Some("policer".to_owned()),
        basis: Some("rate".to_owned()),
        bucket_rate_bps: Some(BitRate::from_mbps(5)),
        bucket_octets: Some(Octets::new(30_000)),
        drain_ns: Some(Delta::from_nanos(9_000_000)),
        ..bucket.queue
    };
    for outcome in [estimate(found()), estimate(bucket), Outcome::inconclusive(Reason::NoAnswer)] {
        let mut json: serde_json::Value = serde_json::from_str(&document(outcome).json()).unwrap();
        let errors: Vec<String> = validator.iter_errors(&json).map(|error| error.to_string()).collect();
        assert!(errors.is_empty(), "{errors:#?}");
        json["queue"]["policy"] = "tail".into();
        assert!(!validator.is_valid(&json), "the schema must be able to refuse");
    }
}

#[test]
fn nothing_measured() {
    let document = document(Outcome::inconclusive(Reason::NoAnswer));
    assert_eq!((document.p10, document.median, document.means.is_none()), (None, None, true));
    let json: serde_json::Value = serde_json::from_str(&document.json()).unwrap();
    assert!(json["value"].is_null() && json["p10"].is_null() && json["rate_bps"].is_null());
    assert!(!document.text().is_empty());
}
