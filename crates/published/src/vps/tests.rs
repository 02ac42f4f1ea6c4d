//! The published arithmetic of slopes, without a path; whole runs are
//! `scenarios/{pathchar,pchar,clink}-*.toml`.

use std::time::Duration;

use super::fit::{Assumed, Point, Slope, slope};
use super::settings::{Draw, Pause, Regress, Settings};
use super::table::{Cell, Half};
use narrows_probe::Method;
use narrows_probe::probes::{Arrival, Fate, HopReply, HopReplyKind, PacingCheck, PeerKind, Train, TrainReport};
use narrows_probe::{Event, Outcome, PathFacts, Probe, Step};
use narrows_units::{Framing, Stamp};

/// Sizes of clink's grid over 10 and 100 Mbit/s both ways, with answers that quote up to `quoted`
/// octets.
fn grid(ns_per_octet: f64, quoted: u16) -> Vec<Point> {
    (28..=1500)
        .step_by(16)
        .map(|octets: u16| {
            let (forward, reverse) = (f64::from(octets) + 38.0, f64::from(octets.min(quoted) + 28) + 38.0);
            Point { forward, reverse, least_ns: 250_000.0 + ns_per_octet * (forward + reverse) }
        })
        .collect()
}

fn rate_mbps(slope: Slope) -> f64 {
    8e3 / slope.forward
}

/// A fit on the probe's length alone reads 10 Mbit/s as 7.76 where routers quote up to 548 octets,
/// and two slopes undo it.
#[test]
fn quotes_make_links_slow_for_who_forgets_them() {
    let points = grid(800.0, 548);
    let drawn = |regress, draw| slope(&points, regress, draw, 1.0).unwrap();
    let forgetful = drawn(Regress::Probe, Draw::Lsq);
    assert!((rate_mbps(forgetful) - 7.76).abs() < 0.03, "{}", rate_mbps(forgetful));
    assert_eq!(forgetful.assumed, Assumed::Free);
    for draw in [Draw::Lsq, Draw::Kendall, Draw::Lms] {
        let both = drawn(Regress::Both, draw);
        assert!((rate_mbps(both) - 10.0).abs() < 1e-6);
        assert!((both.reverse - 800.0).abs() < 1e-6 && both.assumed == Assumed::Nothing);
        let sum = drawn(Regress::Sum, draw);
        assert!((rate_mbps(sum) - 10.0).abs() < 1e-6 && sum.assumed == Assumed::Alike);
    }
}

#[test]
fn answers_of_one_size_and_echoes_need_no_second_slope() {
    for regress in [Regress::Probe, Regress::Sum, Regress::Both] {
        let quoting_little = slope(&grid(80.0, 0), regress, Draw::Lsq, 1.0).unwrap();
        assert!((rate_mbps(quoting_little) - 100.0).abs() < 1e-6);
        assert_eq!(quoting_little.assumed, Assumed::Nothing);
    }
    let mut echoes = grid(80.0, 1500);
    for point in &mut echoes {
        point.reverse = point.forward;
    }
    let both = slope(&echoes, Regress::Both, Draw::Lsq, 1.0).unwrap();
    assert_eq!(both.assumed, Assumed::Alike);
}

/// Half of the sizes having met a queue moves least squares, and the median of squares not.
#[test]
fn a_third_of_the_sizes_in_a_queue() {
    let mut points = grid(800.0, 548);
    for point in points.iter_mut().skip(40).step_by(2) {
        point.least_ns += 700_000.0;
    }
    let drawn = |draw| rate_mbps(slope(&points, Regress::Sum, draw, 1.0).unwrap());
    assert!(drawn(Draw::Lsq) < 9.0, "{}", drawn(Draw::Lsq));
    assert!((drawn(Draw::Lms) - 10.0).abs() < 1e-6, "{}", drawn(Draw::Lms));
}

#[test]
fn errors_are_at_least_those_of_the_stamps() {
    let line = slope(&grid(80.0, 0), Regress::Both, Draw::Lsq, 5_000.0).unwrap();
    // 93 sizes: root of the sum of squares about the mean 4142 octets.
    assert!((line.se - 5_000.0 / 4142.0).abs() < 0.01, "{}", line.se);
    assert!(slope(&grid(80.0, 0)[..4], Regress::Both, Draw::Lsq, 1.0).is_none());
}

#[test]
fn a_cell_keeps_least_values_of_all_and_of_each_half() {
    let mut cell = Cell::new(100);
    for (round_trip, better) in [(50, true), (40, true), (45, false), (60, false)] {
        assert_eq!(cell.take(round_trip, 56), better);
    }
    let least = [Half::Both, Half::Even, Half::Odd].map(|half| cell.least_ns(half));
    assert_eq!(least, [Some(40), Some(45), Some(40)]);
}

/// Three hops of 100, 10 and 100 Mbit/s both ways, no queues, each router quoting up to 548 octets,
/// the peer saying that its port is closed; `slow`: a router that takes 1 us per octet for its
/// answer.
pub(crate) fn drive(name: &str, params: &[(&str, &str)], slow: Option<u8>) -> Outcome {
    let raw = params.iter().copied().collect();
    let method: &dyn Method = match name {
        "pathchar" => &crate::pathchar::Pathchar,
        "pchar" => &crate::pchar::Pchar,
        "clink" => &crate::clink::Clink,
        "bing" => &crate::bing::Bing,
        _ => panic!("{name} is none of these tools"),
    };
    let mut run = method.begin(&raw).unwrap();
    let mut now = Stamp::from_nanos(0);
    let mut step = run.step(now, Event::Started(PathFacts::ideal(1500, Duration::from_millis(1))));
    loop {
        step = match step {
            Step::Wait { until } => {
                now = until;
                run.step(now, Event::TimerFired)
            }
            Step::Send(Probe::Train(train)) => {
                let report = answered(&train, now.nanos(), slow);
                now = now + Duration::from_millis(3);
                run.step(now, Event::Train(report))
            }
            Step::Send(other) => panic!("{other:?}"),
            Step::Done(outcome) => return outcome,
        };
    }
}

fn answered(train: &Train, departed: i64, slow: Option<u8>) -> TrainReport {
    assert_eq!(train.packets.len(), 1);
    assert!(matches!(train.peer_kind, PeerKind::ClosedPort | PeerKind::Echo));
    let plan = train.packets[0];
    let limit = plan.hop_limit.unwrap().get();
    let reply = plan.ip_octets.min(548) + 28;
    let wire = |octets: u16| i64::from(Framing::ETHERNET.wire_octets(octets.into()));
    let octets = wire(plan.ip_octets) + wire(reply);
    let times = [80, 800, 80];
    let links: i64 = times.iter().take(limit.into()).map(|ns| ns * octets).sum();
    let own = if slow == Some(limit) { 1_000 * i64::from(plan.ip_octets) } else { 0 };
    let hop = HopReply {
        from: std::net::Ipv4Addr::new(10, 0, 0, limit.min(3)).into(),
        returned: Stamp::from_nanos(departed + 300_000 * i64::from(limit) + links + own),
        reply_ip_octets: reply,
        kind: if limit >= 3 { HopReplyKind::PortUnreachable } else { HopReplyKind::TimeExceeded },
    };
    TrainReport {
        id: train.id,
        arrivals: vec![Arrival {
            seq: 0,
            departed: Stamp::from_nanos(departed),
            ip_octets: plan.ip_octets,
            fate: Fate::Answered(hop),
        }],
        reordered: 0,
        duplicates: 0,
        local_drops: 0,
        departed_by: narrows_probe::StampSource::Simulated,
        arrived_by: narrows_probe::StampSource::Simulated,
        pacing: PacingCheck::Kept,
    }
}

pub(crate) fn mbps(outcome: &Outcome) -> Vec<f64> {
    let estimate = outcome.estimate().unwrap_or_else(|| panic!("{outcome:?}"));
    let all = std::iter::once(estimate).chain(&estimate.also);
    all.map(|estimate| estimate.in_unit().value as f64 / 1e6).collect()
}

/// What each reads on seed 001's path without switches: its default the truth, the tools' own
/// settings what the tools print.
#[test]
fn three_hops_by_each_of_them() {
    for name in ["pathchar", "pchar", "clink"] {
        let found = mbps(&drive(name, &[], None));
        for (found, truth) in found.iter().zip([9.7529, 97.529, 9.7529, 97.529]) {
            assert!((found / truth - 1.0).abs() < 1e-3, "{name}: {found} for {truth}");
        }
        assert_eq!(found.len(), 4);
    }
    for (name, share) in [("clink", 0.776), ("pathchar", 0.78)] {
        let found = mbps(&drive(name, &[("preset", "tool")], None));
        assert!((found[0] / 9.7529 - share).abs() < 0.01, "{name}: {found:?}");
        assert!(found.len() >= 2, "{name}: {found:?}");
    }
}

#[test]
fn a_slow_router_is_left_out_and_the_next_hop_bounded() {
    let outcome = drive("pathchar", &[], Some(1));
    let estimate = outcome.estimate().unwrap();
    let hops: Vec<Option<u16>> = estimate.also.iter().map(narrows_probe::Estimate::hop).collect();
    assert_eq!(hops, [Some(2), Some(3)]);
    // 100 and 10 Mbit/s one after the other look like 9.09.
    let both = &estimate.also[0];
    assert_eq!(both.verdict(), narrows_probe::BoundKind::LowerBound);
    assert!((both.in_unit().value as f64 / 1e6 - 9.7529 * 100.0 / 110.0).abs() < 0.05, "{}", both.in_unit().value);
}

#[test]
fn sizes_are_those_of_the_tools() {
    for (count, smallest, step, last) in [(45, 64, 32, 1472), (46, 32, 32, 1472), (93, 28, 16, 1500)] {
        let settings = Settings {
            smallest,
            step,
            repeats: 1,
            reshuffled: false,
            pause: Pause::Of(Duration::ZERO),
            hops: 1,
            regress: Regress::Both,
            draw: Draw::Lsq,
            halves: false,
            adaptive: false,
            framing: Framing::ETHERNET,
        };
        let sizes = settings.sizes(0, 1500);
        let ends = (sizes.len(), sizes.first(), sizes.last());
        assert_eq!(ends, (count, Some(&smallest), Some(&last)));
        // A world that needs longer packets gets its least one, and those above.
        assert_eq!(settings.sizes(100, 1500).first(), Some(&100));
    }
}
