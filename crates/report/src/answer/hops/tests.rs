use std::collections::BTreeMap;
use std::time::Duration;

use narrows_probe::outcome::{HopCapacity, HopFinding, PathFinding};
use narrows_probe::{Caveat, Cost, Entry, Estimate, Finding, Outcome, Ranged, Reason};
use narrows_units::{BitRate, Direction, Layer, Metric};

use super::*;
use crate::Target;
use crate::document::CostRow;
use crate::hops::{HopsRequest, ProbeFindings};

/// A hop of this capacity, kbit/s, of which this share is busy.
fn hop(ttl: u16, kbps: u64, verdict: BoundKind, busy: Option<f64>) -> HopFinding {
    let of = |kbps: u64| BitRate::from_bps(kbps * 1000);
    HopFinding {
        ttl,
        routers: Vec::new(),
        is_destination: false,
        capacity: Some(HopCapacity {
            rate: Ranged { value: of(kbps), low: of(kbps - kbps / 400), high: of(kbps + kbps / 400), verdict },
            layer: Layer::Ip,
        }),
        after: None,
        latency_ns: None,
        queueing_ns: None,
        round_trip_ns: None,
        loss_ratio: None,
        busy_ratio: busy,
        limited: None,
        hidden_devices: Vec::new(),
        apparent_rate: None,
        predicted: None,
        probes: 64,
        answers: 64,
        caveats: Vec::new(),
    }
}

fn measured(narrow: Option<u16>, tight: Option<u16>, hops: &[HopFinding]) -> Outcome {
    let rate = BitRate::from_mbps(1);
    let path = PathFinding { narrow_hop: narrow, tight_hop: tight, forecast: None, remote: None };
    let mut main = Estimate::ip_rate(Metric::IpCapacity, rate, rate, rate).found(Finding::Path(Box::new(path)));
    main.also = hops.iter().map(HopFinding::estimate).collect();
    main.into()
}

fn document(outcome: &Outcome) -> HopsDocument {
    let asked = HopsRequest {
        version: "0.0.0".to_owned(),
        started_at: None,
        target: Target { name: "far.example".to_owned(), address: None, port: None },
        via: "udp".to_owned(),
        method: "hops".to_owned(),
        params: BTreeMap::new(),
    };
    let cost = CostRow { octets: 0, packets: 0, seconds: Duration::ZERO.as_secs_f64(), peak_bps: 0 };
    let mut document = HopsDocument::new(asked, outcome, &ProbeFindings::default(), cost);
    document.conclude();
    document
}

fn answer(outcome: &Outcome) -> String {
    let lines = document(outcome).answer;
    let rules: Vec<&str> = lines.iter().map(|line| line.rule).collect();
    format!("{}{}\n", crate::answer_text(&lines), rules.join(" "))
}

#[test]
fn a_tight_link_behind_the_narrow_one() {
    let hops = [
        hop(1, 975_293, BoundKind::Estimated, Some(0.1)),
        hop(2, 97_529, BoundKind::Estimated, Some(0.2)),
        hop(3, 195_058, BoundKind::Estimated, Some(0.667)),
    ];
    insta::assert_snapshot!(answer(&measured(Some(2), Some(3), &hops)), @r"
    Carries   97.5 Mbit/s for single packets; hop 2 is the slowest link
    Free now  roughly 65 Mbit/s; other traffic takes the rest
    Limit     other traffic on hop 3 (195 Mbit/s, 65 free), not the slowest link
    Do        less traffic or a faster link there
    c2 f4 l5 d4
    ");
}

#[test]
fn an_idle_path_and_one_that_others_fill() {
    let idle = [hop(1, 975_293, BoundKind::Estimated, Some(0.0)), hop(2, 97_529, BoundKind::Estimated, Some(0.01))];
    insta::assert_snapshot!(answer(&measured(Some(2), Some(2), &idle)), @r"
    Carries   97.5 Mbit/s for single packets; hop 2 is the slowest link
    Free now  all of it; no other traffic seen
    Limit     the slowest link of the path
    c2 f1 l7
    ");
    let full = [hop(1, 975_293, BoundKind::Estimated, Some(0.0)), hop(2, 97_529, BoundKind::Estimated, Some(0.96))];
    insta::assert_snapshot!(answer(&measured(Some(2), Some(2), &full)), @r"
    Carries   97.5 Mbit/s for single packets; hop 2 is the slowest link
    Free now  only 3.9 Mbit/s; other traffic fills the path
    Limit     other traffic on hop 2, the slowest link
    Do        less traffic or a faster link there
    c2 f2 l6 d4
    ");
}

#[test]
fn a_hop_whose_load_was_not_seen_may_be_the_tight_one() {
    let unseen = hop(1, 97_529, BoundKind::Estimated, None);
    let busy = [unseen.clone(), hop(2, 19_506, BoundKind::Estimated, Some(0.5))];
    insta::assert_snapshot!(answer(&measured(Some(2), Some(2), &busy)), @r"
    Carries   19.5 Mbit/s for single packets; hop 2 is the slowest link
    Free now  roughly 9.75 Mbit/s or less
    Limit     other traffic on hop 2 or before it
    Do        less traffic or a faster link there
    c2 f4 l6 d4
    ");
    let idle = [unseen.clone(), hop(2, 19_506, BoundKind::Estimated, Some(0.0))];
    insta::assert_snapshot!(answer(&measured(Some(2), Some(2), &idle)), @r"
    Carries   19.5 Mbit/s for single packets; hop 2 is the slowest link
    Free now  unclear: single probes cannot show it; narrows available can
    Limit     the slowest link of the path, or traffic that was not seen
    c2 f6 l7
    ");
    let none = [unseen, hop(2, 19_506, BoundKind::Estimated, None)];
    insta::assert_snapshot!(answer(&measured(Some(2), None, &none)), @r"
    Carries   19.5 Mbit/s for single packets; hop 2 is the slowest link
    Free now  unclear: single probes cannot show it; narrows available can
    Limit     the slowest link of the path, or traffic that was not seen
    c2 f6 l7
    ");
}

/// Single packets pass a token bucket at the link's rate, trains do not: neither is wrong.
#[test]
fn a_token_bucket_that_single_packets_pass() {
    let hops = [hop(1, 975_293, BoundKind::Estimated, Some(0.0)), hop(2, 195_058, BoundKind::Estimated, Some(0.0))];
    let rate = BitRate::from_mbps(50);
    let sustained = Estimate::ip_rate(Metric::IpCapacity, rate, rate, rate).caveat(Caveat::Shaped);
    let entry = Entry {
        metric: Metric::IpCapacity,
        direction: Direction::Forward,
        method: "capacity",
        outcome: sustained.into(),
        cost: Cost::default(),
    };
    let mut document = document(&measured(Some(2), Some(2), &hops)).with_ways(Some(&entry), None);
    document.conclude();
    assert!(!document.is_contradicted());
    insta::assert_snapshot!(crate::answer_text(&document.answer), @r"
    Carries   50 Mbit/s sustained; single packets pass faster
    Free now  unclear: single probes cannot show it; narrows available can
    Limit     a token bucket; single packets cannot show at which hop
    Do        count on the sustained rate, whatever short tests say
    ");
}

#[test]
fn bounds_and_nothing() {
    let mut far = hop(2, 40_000, BoundKind::LowerBound, None);
    far.caveats = vec![Caveat::SilentRouter];
    let hops = [hop(1, 97_529, BoundKind::Estimated, None), far];
    insta::assert_snapshot!(answer(&measured(None, None, &hops)), @r"
    Carries   at most 97.8 Mbit/s (hop 1); hops without a rate may be slower
    Limit     unknown: the slowest link was not found
    Do        measure the path as a whole: narrows test far.example
    Doubts    1 on hop 2: a router does not answer
    c4 l8 d2 w1
    ");
    // A bucket before a fast link passes each packet at that link's rate.
    let both = [hop(1, 975_290, BoundKind::LowerBound, None), hop(2, 495_000, BoundKind::LowerBound, None)];
    let mut document = document(&measured(None, None, &both));
    document.reached = true;
    document.conclude();
    let said = crate::answer_text(&document.answer);
    let carries = "Carries   at least 494 Mbit/s for single packets; a token bucket would not show\n";
    assert!(said.starts_with(carries), "{said}");
    insta::assert_snapshot!(answer(&Outcome::inconclusive(Reason::NoAnswer)), @r"
    Carries   unknown: no probe was answered
    Limit     unknown: the slowest link was not found
    Do        measure the path as a whole: narrows test far.example
    c6 l8 d2
    ");
}

proptest::proptest! {
    /// One to five lines, none too wide, and what is free is at most what the path carries.
    #[test]
    fn answers_keep_their_shape(
        rates in proptest::collection::vec((1_000_u64..100_000_000, 0_u8..3, 0.0_f64..1.0), 0..6),
        far in "[a-z.]{1,80}",
    ) {
        let kinds = [BoundKind::Estimated, BoundKind::LowerBound, BoundKind::Estimated];
        let hops: Vec<HopFinding> = rates.iter().zip(1..).map(|(&(kbps, kind, busy), ttl)| {
            hop(ttl, kbps, kinds[usize::from(kind)], (kind < 2).then_some(busy))
        }).collect();
        let mut document = document(&measured(None, None, &hops));
        document.target.name = far;
        document.conclude();
        let lines = document.answer.clone();
        proptest::prop_assert!((1..=5).contains(&lines.len()), "{lines:?}");
        for line in crate::answer_text(&lines).lines() {
            proptest::prop_assert!(line.is_ascii() && line.len() <= super::super::WIDTH, "{line}");
        }
        if let (Some(whole), Some((_, free))) = (document.whole(), tight(&document)) {
            proptest::prop_assert!(free <= whole.value, "{lines:?}");
        }
    }
}
