use std::num::NonZeroU8;
use std::time::Duration;

use narrows_probe::Entry;
use narrows_probe::outcome::{
    AnswerPace, Forecast, HiddenDevice, HopCapacity, HopFinding, PathFinding, Predicted, RemoteStamped, Responder,
};
use narrows_probe::probes::{
    Arrival, Fate, HopReply, HopReplyKind, PacingCheck, PacketPlan, PeerKind, Train, TrainId, TrainReport,
};
use narrows_probe::{Caveat, Cost, Estimate, Finding, Ranged, Reason, StampSource};
use narrows_units::{Direction, Metric, Stamp};
use serde_json::json;

use super::*;

fn rate(mbps: f64) -> BitRate {
    BitRate::from_bps_f64(mbps * 1e6).unwrap()
}

fn finding(ttl: u16, mbps: Option<f64>, verdict: BoundKind) -> HopFinding {
    HopFinding {
        ttl,
        routers: vec![Responder { address: IpAddr::from([198, 18, 0, u8::try_from(ttl).unwrap()]), answers: 60 }],
        is_destination: ttl == 5,
        capacity: mbps.map(|mbps| HopCapacity {
            rate: Ranged {
                value: rate(mbps),
                low: rate(if verdict == BoundKind::Estimated { mbps * 0.98 } else { mbps }),
                high: rate(if verdict == BoundKind::Estimated { mbps * 1.02 } else { mbps }),
                verdict,
            },
            layer: Layer::Ip,
        }),
        after: None,
        latency_ns: Some(250_000.0 * f64::from(ttl)),
        queueing_ns: Some(12_000.0),
        round_trip_ns: Some(510_000.0 * f64::from(ttl)),
        loss_ratio: Some(0.0),
        busy_ratio: (verdict == BoundKind::Estimated).then_some(0.25),
        limited: None,
        hidden_devices: Vec::new(),
        apparent_rate: None,
        predicted: Some(Predicted::Resolved),
        probes: 64,
        answers: 64,
        caveats: Vec::new(),
    }
}

/// 100 Mbit/s with a switch, a silent router, 10 Mbit/s, a limited router behind which there is
/// only a bound, the remote host.
fn outcome() -> Outcome {
    let mut first = finding(1, Some(97.529), BoundKind::Estimated);
    first.hidden_devices =
        vec![HiddenDevice { kind: "switch".to_owned(), capacity: rate(975.29), nominal: BitRate::from_gbps(1) }];
    let mut silent = finding(2, None, BoundKind::Inconclusive);
    silent.routers.clear();
    (silent.round_trip_ns, silent.latency_ns, silent.queueing_ns, silent.loss_ratio) = (None, None, None, None);
    silent.caveats = vec![Caveat::SilentRouter];
    let mut third = finding(3, Some(9.7529), BoundKind::Estimated);
    third.after = Some(1);
    third.loss_ratio = Some(0.015);
    let mut fourth = finding(4, Some(40.0), BoundKind::LowerBound);
    fourth.latency_ns = Some(-3_000.0);
    fourth.limited = Some(AnswerPace { burst: 6, every: Duration::from_secs(1) });
    let fifth = finding(5, Some(97.529), BoundKind::Estimated);
    let mut main = Estimate::ip_rate(Metric::IpCapacity, rate(9.7529), rate(9.6), rate(9.9)).found(Finding::Path(
        Box::new(PathFinding {
            narrow_hop: Some(3),
            tight_hop: Some(3),
            forecast: Some(Forecast { time: Duration::from_secs(9), octets: 400_000, ceiling: None }),
            remote: None,
        }),
    ));
    main.also = [first, silent, third, fourth, fifth].iter().map(HopFinding::estimate).collect();
    main.caveat(Caveat::Loss { ratio: 0.003 }).into()
}

fn plan(limit: u8) -> PacketPlan {
    PacketPlan { gap: Duration::ZERO, ip_octets: 100, hop_limit: NonZeroU8::new(limit) }
}

fn answered(from: [u8; 4], after_ns: i64, kind: HopReplyKind) -> Fate {
    Fate::Answered(HopReply {
        from: IpAddr::from(from),
        returned: Stamp::from_nanos(1_000 + after_ns),
        reply_ip_octets: 128,
        kind,
    })
}

fn seen(fates: &[(u8, Fate)]) -> HopStatistics {
    let mut seen = HopStatistics::default();
    for (limit, fate) in fates {
        let train = Train { id: TrainId(1), packets: vec![plan(*limit)], peer_kind: PeerKind::ClosedPort };
        let report = TrainReport {
            id: TrainId(1),
            arrivals: vec![Arrival { seq: 0, departed: Stamp::from_nanos(1_000), ip_octets: 100, fate: *fate }],
            reordered: 0,
            duplicates: 0,
            local_drops: 0,
            departed_by: StampSource::Kernel,
            arrived_by: StampSource::Kernel,
            pacing: PacingCheck::Kept,
        };
        seen.take(&train, &report, None);
    }
    seen
}

fn found() -> ProbeFindings {
    let expired = |last, after_ns| answered([198, 18, 0, last], after_ns, HopReplyKind::TimeExceeded);
    let mut found = ProbeFindings {
        statistics: seen(&[
            (1, expired(1, 500_000)),
            (1, expired(1, 700_000)),
            (1, Fate::Lost),
            (1, expired(1, 600_000)),
            (2, Fate::Lost),
            (3, expired(3, 1_500_000)),
            (3, expired(33, 1_600_000)),
            (3, expired(3, 1_550_000)),
            (4, expired(4, 2_000_000)),
            (5, answered([198, 18, 0, 5], 2_500_000, HopReplyKind::PortUnreachable)),
            (6, answered([198, 18, 0, 5], 2_500_000, HopReplyKind::PortUnreachable)),
        ]),
        ..ProbeFindings::default()
    };
    found.names.insert([198, 18, 0, 1].into(), "edge.example.net".to_owned());
    let label = LabelRow { label: 24_001, traffic_class: 5, ttl: 1 };
    found.labels.insert((4, [198, 18, 0, 4].into()), vec![label]);
    found.unmatched_replies.late = 2;
    found
}

fn document(outcome: &Outcome, found: &ProbeFindings) -> HopsDocument {
    let asked = HopsRequest {
        version: "0.1.0".to_owned(),
        started_at: None,
        target: Target {
            name: "far.example.net".to_owned(),
            address: Some([198, 18, 0, 5].into()),
            port: Some(33_434),
        },
        via: "UDP port 33434".to_owned(),
        method: "hops".to_owned(),
        params: BTreeMap::new(),
    };
    let cost = Cost {
        packets: 320,
        octets: 250_000,
        time: Duration::from_millis(8_500),
        peak_bps: 900_000,
        ..Cost::default()
    };
    HopsDocument::new(asked, outcome, found, cost.into())
}

#[test]
fn documents_follow_the_shipped_schema() {
    let schema: serde_json::Value = serde_json::from_str(schema::HOPS).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let nothing = Outcome::inconclusive(Reason::NoAnswer);
    let mut broken = document(&outcome(), &found());
    broken.error = Some(Problem { code: 1, who: "host", text: "no more sockets".to_owned() });
    for document in [
        document(&outcome(), &found()),
        document(&outcome(), &ProbeFindings::default()),
        document(&nothing, &found()),
        document(&nothing, &ProbeFindings::default()),
        broken,
    ] {
        let json: serde_json::Value = serde_json::from_str(&document.json()).unwrap();
        let errors: Vec<String> = validator.iter_errors(&json).map(|error| error.to_string()).collect();
        assert!(errors.is_empty(), "{json}: {errors:?}");
    }
    let mut wrong: serde_json::Value = serde_json::from_str(&document(&outcome(), &found()).json()).unwrap();
    wrong["hops"][0]["capacity"] = "much".into();
    assert!(!validator.is_valid(&wrong), "the schema must be able to refuse");
}

/// What the whole forward direction told, and that the reverse direction gave nothing.
fn ways(mbps: f64) -> [Entry; 2] {
    let entry = |direction, outcome| Entry {
        metric: Metric::IpCapacity,
        direction,
        method: "capacity",
        outcome,
        cost: Cost::default(),
    };
    let forward = Estimate::ip_rate(Metric::IpCapacity, rate(mbps), rate(mbps * 0.99), rate(mbps * 1.01));
    [entry(Direction::Forward, forward.into()), entry(Direction::Reverse, Outcome::inconclusive(Reason::NoAnswer))]
}

#[test]
fn a_server_there_tells_both_ways() {
    let outcome = match outcome() {
        Outcome::Estimated(mut estimate) => {
            let Finding::Path(path) = &mut estimate.details.finding else {
                panic!("a path");
            };
            path.remote = Some(RemoteStamped {
                packets: 64,
                lost: 2,
                other_way: false,
                last_hop: true,
                all_links_ns: None,
                queueing_ns: Some(12_000.4),
            });
            (*estimate).into()
        }
        other @ Outcome::Inconclusive { .. } => other,
    };
    let [forward, reverse] = ways(9.76);
    let document = document(&outcome, &found()).with_ways(Some(&forward), Some(&reverse));
    assert!(!document.is_contradicted());
    let [other, _] = ways(20.0);
    assert!(document.clone().with_ways(Some(&other), None).is_contradicted());
    let json: serde_json::Value = serde_json::from_str(&document.json()).unwrap();
    let schema: serde_json::Value = serde_json::from_str(schema::HOPS).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    assert!(validator.is_valid(&json), "{json:#}");
    let remote = &json["server"];
    assert_eq!((&remote["one_way"]["lost"], &remote["one_way"]["queueing_ns"]), (&2.into(), &12_000.into()));
    assert_eq!((&remote["forward"]["capacity"], &remote["reverse"]["capacity"]), (&9_760_000.into(), &json!(null)));
    let text = document.text(false);
    for line in [
        "62 of 64 packets came; they measure the last hop",
        "forward direction: 9.76 Mbit/s",
        "reverse direction: inconclusive",
    ] {
        assert!(text.contains(line), "{line}: {text}");
    }
}

#[test]
fn rows_join_the_answer_and_what_was_seen() {
    let document = document(&outcome(), &found());
    assert_eq!(document.hops.len(), 5, "nothing lies beyond the destination");
    assert_eq!((document.narrow_hop, document.tight_hop, document.reached), (Some(3), Some(3), true));
    let [first, second, third, fourth, _] = document.hops.as_slice() else {
        panic!("five hops");
    };
    assert_eq!(first.capacity, Some(97_529_000));
    assert_eq!(first.available, Some(73_146_750));
    assert_eq!(first.routers[0].name.as_deref(), Some("edge.example.net"));
    assert_eq!((first.probes.sent, first.probes.answered), (4, 3));
    assert_eq!((first.probes.best_ns, first.probes.mean_ns, first.probes.worst_ns), (500_000, 600_000, 700_000));
    assert_eq!(first.probes.deviation_ns, 100_000);
    assert_eq!((second.capacity, second.verdict), (None, BoundKind::Inconclusive));
    assert_eq!(second.caveats.iter().filter(|caveat| caveat.id == "silent_router").count(), 1);
    // The one that answered most comes first, and that there are two is said.
    assert_eq!(third.routers[0].address, "198.18.0.3");
    assert!(third.caveats.iter().any(|caveat| caveat.id == "several_routers"));
    assert_eq!((third.measured_from, third.loss_ratio), (Some(1), Some(0.015)));
    assert_eq!((fourth.verdict, fourth.available, fourth.latency_ns), (BoundKind::LowerBound, None, Some(-3_000)));
    assert_eq!(fourth.routers[0].mpls[0].label, 24_001);
    let cut = document.clone().from(3);
    assert_eq!(cut.hops.first().map(|hop| hop.ttl), Some(3));
}

#[test]
fn without_a_method_the_narrow_hop_is_found_only_where_no_bound_could_be_it() {
    let with = |hops: &[HopFinding]| {
        let mut main = Estimate::ip_rate(Metric::IpCapacity, rate(1.0), rate(1.0), rate(1.0));
        main.also = hops.iter().map(HopFinding::estimate).collect();
        document(&main.into(), &ProbeFindings::default())
    };
    let estimated = |ttl, mbps| finding(ttl, Some(mbps), BoundKind::Estimated);
    let bound = |ttl, mbps| finding(ttl, Some(mbps), BoundKind::LowerBound);
    assert_eq!(with(&[estimated(1, 100.0), estimated(2, 10.0)]).narrow_hop, Some(2));
    assert_eq!(with(&[estimated(1, 10.0), bound(2, 50.0)]).narrow_hop, Some(1));
    assert_eq!(with(&[estimated(1, 10.0), bound(2, 5.0)]).narrow_hop, None);
    assert_eq!(with(&[bound(2, 5.0)]).narrow_hop, None);
}

#[test]
fn the_table() {
    insta::assert_snapshot!(document(&outcome(), &found()).text(false));
}

#[test]
fn a_path_that_does_not_answer() {
    let nothing = Outcome::inconclusive(Reason::NoAnswer);
    insta::assert_snapshot!(document(&nothing, &ProbeFindings::default()).text(false));
    assert_eq!(Pipe::new(&document(&nothing, &ProbeFindings::default())).text(Strokes::Unicode), "");
}

#[test]
fn the_pipe() {
    let pipe = Pipe::new(&document(&outcome(), &found()));
    insta::assert_snapshot!(pipe.text(Strokes::Unicode));
    let ascii = pipe.text(Strokes::Ascii);
    assert!(ascii.is_ascii(), "{ascii}");
    insta::assert_snapshot!(ascii);
}

#[test]
fn the_pipe_as_svg() {
    let svg = Pipe::new(&document(&outcome(), &found())).svg();
    insta::assert_snapshot!(svg.replace("><", ">\n<"));
    let mut reader = quick_xml::Reader::from_str(&svg);
    loop {
        match reader.read_event() {
            Ok(quick_xml::events::Event::Eof) => break,
            Ok(_) => {}
            Err(error) => panic!("{error}: {svg}"),
        }
    }
    assert!(!svg.contains("href") && !svg.contains("NaN"), "nothing from elsewhere, nothing undefined");
}

#[test]
fn mtrs_own_report() {
    let text = document(&outcome(), &found()).mtr("here");
    insta::assert_snapshot!(text);
}

#[test]
fn live_lines_fit_and_say_what_is_known() {
    let outcome = outcome();
    let lines = live(outcome.estimate(), &found(), 80);
    assert_eq!(lines.lines().filter(|line| !line.is_empty()).count(), 5);
    assert!(lines.lines().all(|line| line.chars().count() <= 80), "{lines}");
    assert!(lines.contains("◀ narrow 9.753 Mbit/s"), "{lines}");
    assert!(live(None, &found(), 80).contains("198.18.0.3"));
    assert_eq!(live(None, &ProbeFindings::default(), 80), "");
}

#[test]
fn names_cannot_write_to_the_terminal() {
    let mut found = found();
    found.names.insert([198, 18, 0, 1].into(), "a\u{1b}[2Jb".to_owned());
    let text = document(&outcome(), &found).text(true);
    assert!(!text.contains('\u{1b}'), "{text}");
}

mod any {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Whatever rates and shares a method writes: no panic, lines of even width, an SVG without
        /// undefined numbers.
        #[test]
        fn paths_are_drawn(hops in proptest::collection::vec((any::<u64>(), 0.0f64..1.5, 0u8..4), 0..40)) {
            let mut main = Estimate::ip_rate(Metric::IpCapacity, rate(1.0), rate(1.0), rate(1.0));
            main.also = (1..).zip(&hops).map(|(ttl, (bps, busy, kind))| {
                let verdict = [BoundKind::Estimated, BoundKind::LowerBound, BoundKind::UpperBound, BoundKind::Inconclusive][usize::from(*kind)];
                let value = BitRate::from_bps(*bps);
                let capacity = HopCapacity { rate: Ranged { verdict, ..Ranged::exactly(value) }, layer: Layer::Ip };
                HopFinding { capacity: Some(capacity), busy_ratio: Some(*busy), ..finding(ttl, None, verdict) }.estimate()
            }).collect();
            let document = document(&main.into(), &ProbeFindings::default());
            let pipe = Pipe::new(&document);
            prop_assert!(!pipe.svg().contains("NaN"));
            prop_assert!(pipe.text(Strokes::Ascii).is_ascii());
            let _ = (document.text(true), document.mtr("x"), pipe.text(Strokes::Unicode));
        }
    }
}
