use std::time::Duration;

use narrows_methods::job::JobReport;
use narrows_probe::{
    AvailableFinding, Caveat, Cost, Entry, Estimate, Finding, Limit, LimitingFactor, Outcome, PathFacts, Ranged,
    Reason, TcpFinding,
};
use narrows_units::{BitRate, Direction, Metric, Octets};
use proptest::prelude::*;

use super::WIDTH;
use crate::answer_line::{Topic, answer_text};
use crate::{Document, Environments, Note, SINGLE_ENDED, Target};

/// The document of one job that found this, in the forward direction.
fn document(found: Vec<(Metric, Outcome)>) -> Document {
    let entries = found.into_iter().map(|(metric, outcome)| Entry {
        metric,
        direction: Direction::Forward,
        method: "test",
        outcome,
        cost: Cost::default(),
    });
    let job: JobReport<()> = JobReport {
        facts: PathFacts::ideal(1500, Duration::from_millis(20)),
        entries: entries.collect(),
        stages: Vec::new(),
        cost: Cost::default(),
        fault: None,
    };
    let target = Target { name: "far.example".to_owned(), address: None, port: None };
    let mut document = Document::new("test", "0.0.0".to_owned(), target, &[job], &[Environments::default()]);
    document.conclude();
    document
}

/// A rate, in kbit/s.
fn rate(metric: Metric, value: u64, low: u64, high: u64) -> (Metric, Estimate) {
    let of = |kbps: u64| BitRate::from_bps(kbps * 1000);
    (metric, Estimate::ip_rate(metric, of(value), of(low), of(high)))
}

fn capacity(value: u64, low: u64, high: u64) -> (Metric, Outcome) {
    let (metric, estimate) = rate(Metric::IpCapacity, value, low, high);
    (metric, estimate.into())
}

fn available(value: u64, low: u64, high: u64) -> (Metric, Outcome) {
    let (metric, estimate) = rate(Metric::AvailableIpCapacity, value, low, high);
    (metric, estimate.into())
}

fn answer(found: Vec<(Metric, Outcome)>) -> String {
    let document = document(found);
    let lines = document.answer;
    let rules: Vec<&str> = lines.iter().map(|line| line.rule).collect();
    format!("{}{}\n", answer_text(&lines), rules.join(" "))
}

#[test]
fn what_one_end_alone_cannot_tell() {
    let mut document = document(vec![capacity(97_529, 97_000, 98_000)]);
    document.notes.push(Note { id: SINGLE_ENDED, text: "far.example runs no narrows serve".to_owned() });
    document.conclude();
    insta::assert_snapshot!(answer_text(&document.answer), @r"
    Carries   97.5 Mbit/s (97-98) to far.example
    Free now  not measurable without narrows serve on far.example
    Limit     the path's slowest link; which one: narrows hops far.example
    Do        run narrows serve there to measure free now, UDP, TCP, each direction
    ");
}

#[test]
fn answers_as_long_as_requests_tell_the_slower_direction() {
    let (metric, bound) = rate(Metric::IpCapacity, 49_100, 49_100, 49_100);
    let bound = bound.at_least(Limit::Path).caveat(Caveat::AsymmetricLimit);
    let mut document = document(vec![(metric, bound.into())]);
    document.notes.push(Note { id: SINGLE_ENDED, text: "far.example runs no narrows serve".to_owned() });
    document.conclude();
    insta::assert_snapshot!(answer_text(&document.answer), @r"
    Carries   at least 49.1 Mbit/s
    Free now  not measurable without narrows serve on far.example
    Limit     unknown: echoes only show the slower direction
    Do        run narrows serve there to measure free now, UDP, TCP, each direction
    Doubts    1, on capacity: either direction may be the limit
    ");
}

#[test]
fn an_idle_path() {
    insta::assert_snapshot!(answer(vec![capacity(975_293, 973_000, 977_000), available(960_000, 930_000, 975_000)]), @r"
    Carries   975 Mbit/s to far.example
    Free now  all of it (930-975 Mbit/s); no other traffic seen
    Limit     the path's slowest link; which one: narrows hops far.example
    Do        nothing to fix on the two hosts
    c2 f1 l7 d5
    ");
}

#[test]
fn other_traffic() {
    insta::assert_snapshot!(answer(vec![capacity(97_529, 96_000, 98_900), available(68_261, 55_330, 80_480)]), @r"
    Carries   97.5 Mbit/s (96-98.9) to far.example
    Free now  about 68 Mbit/s (55-80); other traffic takes the rest
    Limit     other traffic on a link of the path
    Do        find the busy link: narrows hops far.example
    c2 f4 l6 d4
    ");
}

#[test]
fn a_path_that_others_fill() {
    let full = vec![capacity(97_529, 97_000, 98_000), available(4_000, 3_000, 5_000)];
    insta::assert_snapshot!(answer(full), @r"
    Carries   97.5 Mbit/s (97-98) to far.example
    Free now  only about 4 Mbit/s (3-5); other traffic fills the path
    Limit     other traffic on a link of the path
    Do        find who fills the path
    c2 f2 l6 d1
    ");
}

#[test]
fn a_token_bucket() {
    let (metric, bucket) = rate(Metric::IpCapacity, 500_000, 499_000, 501_000);
    let peak =
        Estimate::ip_rate(Metric::PeakRate, BitRate::from_mbps(975), BitRate::from_mbps(970), BitRate::from_mbps(980));
    let found = vec![
        (metric, bucket.caveat(Caveat::Shaped).into()),
        (Metric::PeakRate, peak.into()),
        (
            Metric::CommittedBurstOctets,
            Estimate::new(
                Metric::CommittedBurstOctets,
                None,
                Ranged::new(Octets::new(450_000), Octets::new(440_000), Octets::new(460_000)),
            )
            .into(),
        ),
        available(498_000, 490_000, 505_000),
    ];
    insta::assert_snapshot!(answer(found), @r"
    Carries   500 Mbit/s sustained; bursts up to 450 kB pass at 975 Mbit/s
    Free now  all of it (490-505 Mbit/s); no other traffic seen
    Limit     a token bucket that delays the excess
    Do        count on the sustained rate, whatever short tests say
    c1 f1 l3 d3
    ");
}

#[test]
fn a_slow_receiver() {
    let (metric, bound) = rate(Metric::IpCapacity, 706_000, 706_000, 706_000);
    let (also, free) = rate(Metric::AvailableIpCapacity, 706_000, 706_000, 706_000);
    let found = vec![
        (metric, bound.at_least(Limit::Receiver).caveat(Caveat::ReceiverLimited).into()),
        (also, free.at_least(Limit::Receiver).into()),
    ];
    insta::assert_snapshot!(answer(found), @r"
    Carries   at least 706 Mbit/s; far.example could not take more
    Free now  at least 706 Mbit/s
    Limit     far.example, not the path: it could not take more
    Do        at far.example: spread the load over processors
    Doubts    1, on capacity: the receiver could not go faster
    c3 f5 l2 d1 w1
    ");
}

#[test]
fn nothing_certain_but_what_arrived() {
    let udp = rate(Metric::UdpAchievable, 65_000, 64_000, 66_000);
    let found = vec![
        (Metric::IpCapacity, Outcome::inconclusive(Reason::NoAgreement)),
        (Metric::AvailableIpCapacity, Outcome::inconclusive(Reason::MissingInput { what: "capacity".to_owned() })),
        (udp.0, udp.1.into()),
    ];
    insta::assert_snapshot!(answer(found), @r"
    Carries   at least 65 Mbit/s (UDP arrived); above that the samples do not agree
    Free now  unclear: another result is missing; UDP sustained 65 Mbit/s
    Limit     unknown: the capacity was not found
    Do        repeat while both hosts are idle, or --thorough (about 60 s, 200 MB)
    c5 f6 l8 d2
    ");
}

#[test]
fn one_connection_that_loses_at_random() {
    let (metric, tcp) = rate(Metric::TcpAchievableSingle, 10_000, 9_000, 11_000);
    let finding = TcpFinding {
        bps: Some(BitRate::from_mbps(10)),
        limits: vec![LimitingFactor::RandomLoss],
        retransmitted: Some(0.005),
        congestion: Some("cubic".to_owned()),
        ..TcpFinding::default()
    };
    let found = vec![
        capacity(97_529, 97_300, 97_700),
        available(85_000, 75_000, 95_000),
        (metric, tcp.found(Finding::Tcp(Box::new(finding))).into()),
    ];
    insta::assert_snapshot!(answer(found), @r"
    Carries   97.5 Mbit/s to far.example
    Free now  about 85 Mbit/s (75-95); other traffic takes the rest
    Limit     random loss of 0.50 %: one TCP connection (cubic) gets 10 Mbit/s
    Do        find the link that loses: narrows hops far.example
    c2 f4 l4 d7
    ");
}

#[test]
fn traffic_that_backs_off_and_a_stopped_search() {
    let (metric, free) = rate(Metric::AvailableIpCapacity, 40_000, 35_000, 45_000);
    let mut free = free.caveat(Caveat::ElasticCrossTraffic).caveat(Caveat::NotConverged);
    free.confidence = narrows_probe::Confidence::Low;
    let (other, known) = rate(Metric::IpCapacity, 97_529, 97_300, 97_700);
    let known = known.caveat(Caveat::BucketNotExcluded { deeper_than_octets: 0 });
    insta::assert_snapshot!(answer(vec![(other, known.into()), (metric, free.into())]), @r"
    Carries   97.5 Mbit/s to far.example
    Free now  about 40 Mbit/s (35-45) for one more sender; other traffic backed off
    Limit     other traffic on a link of the path
    Do        find the busy link: narrows hops far.example
    Doubts    2, the first on available: other traffic backed off meanwhile
    c2 f3 l6 d4 w1
    ");
}

#[test]
fn hosts_that_stall_are_told_before_the_path() {
    let mut document = document(vec![capacity(97_529, 97_300, 97_700), available(85_000, 75_000, 95_000)]);
    document.set_timing(crate::TimingReport {
        releases: 1000,
        late_ns_p50: 200,
        late_ns_p99: 9_000_000,
        late_ns_worst: 80_000_000,
        late_over_100us: 400,
        timing_valid: false,
        stages: Vec::new(),
    });
    let lines = super::answer(&document);
    let limit = lines.iter().find(|line| line.line == Topic::Limit).unwrap();
    assert_eq!((limit.rule, limit.text.as_str()), ("l1", "unknown: the timing was not valid: this machine was late"));
    assert!(lines.iter().any(|line| line.rule == "c2" && line.text.starts_with("timing invalid: 97.5 Mbit/s")));
}

/// A pause in the search for what is free does not unsay the bucket that the capacity showed.
#[test]
fn a_known_bucket_is_told_though_a_host_paused() {
    let (_, free) = rate(Metric::AvailableIpCapacity, 30_000, 5_000, 49_000);
    let free: Outcome = free.caveat(Caveat::HostStall).into();
    let said = |limited_by| {
        let (metric, mut capacity) = rate(Metric::IpCapacity, 49_540, 49_300, 49_800);
        capacity.limited_by = limited_by;
        let document = document(vec![(metric, capacity.into()), (Metric::AvailableIpCapacity, free.clone())]);
        super::answer(&document).into_iter().find(|line| line.line == Topic::Limit).unwrap().rule
    };
    assert_eq!(said(Limit::Shaper), "l3");
    assert_eq!(said(Limit::Path), "l1");
}

#[test]
fn the_host_that_paused_is_named() {
    let said = |sender_paused_trains, receiver_paused_trains| {
        let (metric, mut estimate) = rate(Metric::AvailableIpCapacity, 85_000, 30_000, 140_000);
        let found = AvailableFinding {
            trains: 40,
            sender_paused_trains,
            receiver_paused_trains,
            ..AvailableFinding::default()
        };
        estimate = estimate.caveat(Caveat::HostStall).found(Finding::Available(Box::new(found)));
        let lines = document(vec![(metric, estimate.into())]).answer;
        lines.into_iter().find(|line| line.line == Topic::Limit).expect("a limit").text
    };
    assert_eq!(said(12, 3), "unknown: this host paused during 12 of 40 trains");
    assert_eq!(said(0, 7), "unknown: far.example paused during 7 of 40 trains");
    assert_eq!(said(0, 0), "unknown: a host paused several times during the test");
}

/// Stages that only carry a load do not spoil what the path is known by.
#[test]
fn a_late_load_leaves_capacity_and_available() {
    let mut document = document(vec![capacity(97_529, 97_300, 97_700), available(85_000, 75_000, 95_000)]);
    let before = super::answer(&document);
    let stage = |stage, valid| crate::StageTimingRow { stage, attempts: 3, valid, late_ns_p99: 9_000_000 };
    document.set_timing(crate::TimingReport {
        releases: 1000,
        late_ns_p50: 200,
        late_ns_p99: 9_000_000,
        late_ns_worst: 80_000_000,
        late_over_100us: 400,
        timing_valid: false,
        stages: vec![stage(Metric::IpCapacity, true), stage(Metric::UdpAchievable, false)],
    });
    assert_eq!(super::answer(&document), before);
    assert!(!document.is_inconclusive());
}

/// One metric alone, as `narrows capacity` and `narrows available` ask for it.
fn alone(kind: &'static str, found: (Metric, Outcome)) -> String {
    let mut document = document(vec![found]);
    document.kind = kind;
    document.conclude();
    let rules: Vec<&str> = document.answer.iter().map(|line| line.rule).collect();
    format!("{}{}\n", answer_text(&document.answer), rules.join(" "))
}

#[test]
fn one_metric_alone_claims_nothing_of_others() {
    insta::assert_snapshot!(alone("capacity", capacity(97_529, 96_000, 98_900)), @r"
    Carries   97.5 Mbit/s (96-98.9) to far.example
    Limit     the path's slowest link; which one: narrows hops far.example
    c2 l7
    ");
    insta::assert_snapshot!(alone("available", available(68_261, 55_330, 80_480)), @r"
    Free now  about 68 Mbit/s (55-80)
    f4
    ");
    let lost = (Metric::AvailableIpCapacity, Outcome::inconclusive(Reason::NoAgreement));
    insta::assert_snapshot!(alone("available", lost), @r"
    Free now  unclear: the samples do not agree
    Do        repeat while both hosts are idle
    f6 d2
    ");
    let unknown = (Metric::IpCapacity, Outcome::inconclusive(Reason::NoAgreement));
    insta::assert_snapshot!(alone("capacity", unknown), @r"
    Carries   unknown: the samples do not agree
    Limit     unknown: the capacity was not found
    Do        repeat while both hosts are idle
    c6 l8 d2
    ");
}

/// The rates that a text has, as they stand there.
fn rates(text: &str) -> Vec<String> {
    let words: Vec<&str> = text.split([' ', ';', '(', ')', ',']).collect();
    let pairs = words.windows(2).filter(|pair| pair[1].ends_with("bit/s"));
    pairs.map(|pair| pair.join(" ")).collect()
}

proptest! {
    /// Three to five lines, none too wide, no figure that the rows lack, whatever was found.
    #[test]
    fn answers_keep_their_shape(
        capacity_kbps in 1_u64..100_000_000, width in 0_u64..50, share in 0_u64..130, bound in 0_u8..3, far in "[a-z.]{1,80}",
    ) {
        let spread = capacity_kbps * width / 100;
        let (metric, estimate) =
            rate(Metric::IpCapacity, capacity_kbps, capacity_kbps - spread.min(capacity_kbps), capacity_kbps + spread);
        let estimate = match bound {
            0 => estimate,
            1 => estimate.at_least(Limit::Sender),
            _ => estimate.at_most(),
        };
        let free = capacity_kbps * share / 100;
        let mut document = document(vec![(metric, estimate.into()), available(free, free / 2, free * 2)]);
        document.target.name = far;
        let lines = super::answer(&document);
        prop_assert!((3..=5).contains(&lines.len()), "{lines:?}");
        for line in answer_text(&lines).lines() {
            prop_assert!(line.is_ascii() && line.len() <= WIDTH, "{line}");
        }
        let of = |topic| lines.iter().find(|line| line.line == topic).map(|line| line.rule);
        // No figure that the rows lack.
        let known: Vec<u64> =
            document.metrics.iter().flat_map(|row| [row.value, row.low, row.high]).flatten().collect();
        for line in lines.iter().filter(|line| !line.text.ends_with("...")) {
            for rate in rates(&line.text) {
                let is = |digits| known.iter().any(|bps| BitRate::from_bps(super::rounded(*bps, digits)).to_string() == rate);
                prop_assert!(is(2) || is(3), "{rate} in {line:?}, of {known:?}");
            }
        }
        // What is free is never said to be more than what the path carries.
        if of(Topic::FreeNow) == Some("f4") && of(Topic::Carries) == Some("c2") {
            prop_assert!(free <= capacity_kbps, "{lines:?}");
        }
    }
}
