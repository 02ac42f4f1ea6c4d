//! Each rule with findings that trigger it and findings, as near as can be, that do not.

mod table;

use std::time::Duration;

use narrows_units::{BitRate, Direction, Metric};

use self::table::TABLE;
use super::*;
use narrows_probe::facts::PathFacts;
use narrows_probe::outcome::{Caveat, Limit, LossPattern, TcpFinding};

/// 100 Mbit/s over 40 ms, of which one connection gets 95: nothing to mend.
fn sound() -> Findings {
    let mut found = Findings::nothing(Direction::Forward, PathFacts::ideal(1500, Duration::from_millis(40)));
    found.rtt_ns = Some(40_000_000);
    found.rtt_spread_ns = Some(300_000);
    found.capacity_bps = Some(100_000_000);
    found.available_bps = Some(98_000_000);
    found.udp_bps = Some(97_000_000);
    found.burst_octets = Some(1_000_000);
    found.path_mtu_octets = Some(1500);
    found.black_hole = Some(false);
    found.buffer_clamped = Some(false);
    found.set_buffers_gain = Some(1.02);
    found.streams = (Some(1), None, None);
    found.other_way_tcp_bps = Some(93_000_000);
    found.tcp = TcpFinding {
        bps: Some(BitRate::from_mbps(95)),
        limits: vec![LimitingFactor::Queue],
        share_peer_window: Some(0.0),
        share_send_buffer: Some(0.0),
        share_idle: Some(0.0),
        retransmitted: Some(0.0004),
        retransmitted_segments: Some(40.0),
        needless: Some(1.0),
        reordered: Some(0.0),
        congestion: Some("cubic".to_owned()),
        mss_octets: Some(1448.0),
        rtt_min_ns: Some(40_100_000.0),
        rtt_loaded_ns: Some(60_000_000.0),
        window_scaled: Some(true),
        sender_cpu: Some(0.2),
        receiver_cpu: Some(0.3),
        variation: Some(0.05),
        threshold_cached: Some(false),
        worst_case_share: Some(0.97),
        pattern: Some(LossPattern { burstiness: 1.2, spacing_variation: Some(0.4) }),
    };
    let host = HostEnvironment {
        clocksource: Some("tsc".to_owned()),
        steal_ratio: Some(0.001),
        tcp_rmem_octets: Some([4096, 131_072, 6_291_456]),
        tcp_wmem_octets: Some([4096, 16_384, 4_194_304]),
        window_scaling: Some(true),
        receive_autotuning: Some(true),
        governor: Some("performance".to_owned()),
        idle_exit_ns: Some(2_000),
        memory_copy_octets_per_second: Some(8_000_000_000),
        softirq_share: Some(0.1),
        bus_bps: Some(50_000_000_000),
        interface_bps: Some(10_000_000_000),
        interface_most_bps: Some(10_000_000_000),
        half_duplex: Some(false),
        wireless: Some(false),
        receive_gather_us: Some(3),
        send_offload: Some(true),
        receive_offload: Some(true),
        congestion_controls: vec!["reno".to_owned(), "cubic".to_owned()],
        ..HostEnvironment::default()
    };
    found.sender = host.clone();
    found.receiver = host;
    found.facts.sender.interface_rate = Some(BitRate::from_gbps(10));
    found
}

fn caveat(found: &mut Findings, caveat: Caveat) {
    found.caveats.push((Metric::IpCapacity, caveat));
}

/// A change to sound findings.
type Change = fn(&mut Findings);

/// The same about the host that receives, or about the peer: rule, trigger, silence.
const OTHER_END: &[(&str, Change, Change)] = &[
    (
        "memory",
        |f| f.receiver.memory_copy_octets_per_second = Some(20_000_000),
        |f| f.receiver.memory_copy_octets_per_second = None,
    ),
    (
        "interface",
        |f| {
            f.facts.receiver.interface_rate = Some(BitRate::from_mbps(100));
            f.tcp.bps = Some(BitRate::from_bps(93_500_000));
        },
        |f| {
            f.facts.receiver.interface_rate = Some(BitRate::from_mbps(100));
            f.facts.receiver.virtual_interface = true;
            f.tcp.bps = Some(BitRate::from_bps(93_500_000));
        },
    ),
    (
        "interface",
        |f| {
            f.facts.receiver.interface_rate = Some(BitRate::from_gbps(10));
            f.receiver.bus_bps = Some(4_000_000_000);
        },
        |f| f.receiver.bus_bps = Some(4_000_000_000),
    ),
    (
        "offloads",
        |f| {
            f.receiver.receive_offload = Some(false);
            f.tcp.receiver_cpu = Some(0.99);
        },
        |f| {
            f.receiver.receive_offload = None;
            f.tcp.receiver_cpu = Some(0.99);
        },
    ),
    (
        "offloads",
        // A hypervisor's card has no rate.
        |f| {
            f.receiver.receive_offload = Some(false);
            f.receiver.interface_bps = None;
            f.receiver.softirq_share = Some(0.97);
        },
        |f| {
            // The interface is full.
            f.receiver.receive_offload = Some(false);
            f.receiver.interface_bps = Some(100_000_000);
            f.receiver.softirq_share = Some(0.97);
        },
    ),
    ("duplex", |f| f.receiver.half_duplex = Some(true), |f| f.receiver.half_duplex = None),
    ("virtual_host", |f| f.receiver.steal_ratio = Some(0.05), |f| f.receiver.steal_ratio = None),
    ("governor", |f| f.receiver.idle_exit_ns = Some(133_000), |f| f.receiver.idle_exit_ns = None),
    ("receive_drops", |f| f.receiver.counted.backlog_drops = Some(9), |f| f.receiver.counted.backlog_drops = Some(0)),
    (
        "clock",
        |f| f.receiver.clocksource = Some("acpi_pm".to_owned()),
        |f| f.receiver.clocksource = Some("tsc".to_owned()),
    ),
    ("window_scaling", |f| f.receiver.window_scaling = Some(false), |f| f.receiver.window_scaling = None),
];

#[test]
fn rules_about_hosts_look_at_both() {
    for direction in [Direction::Forward, Direction::Reverse] {
        for (id, fire, hush) in OTHER_END {
            let (mut loud, mut still) = (sound(), sound());
            (loud.direction, still.direction) = (direction, direction);
            fire(&mut loud);
            hush(&mut still);
            let advice = advise(&[loud]);
            let own = advice.iter().find(|advice| advice.id == *id);
            let own = own.unwrap_or_else(|| panic!("{id} should fire"));
            // Forward, the receiver is the remote host.
            let (meant, other) =
                if direction == Direction::Forward { ("the server", "this host") } else { ("this host", "the server") };
            assert!(own.text.contains(meant) && !own.text.contains(other), "{id}: {}", own.text);
            if let Some(command) = &own.command {
                assert_eq!(command.contains("on the server"), direction == Direction::Forward, "{id}: {command}");
            }
            assert!(!ids(&still).contains(id), "{id} should be silent: {:?}", ids(&still));
        }
    }
}

/// Both hosts with the same trouble are two pieces of advice.
#[test]
fn both_ends_may_be_at_fault() {
    let mut found = sound();
    found.sender.half_duplex = Some(true);
    found.receiver.half_duplex = Some(true);
    let said = ids(&found);
    assert_eq!(said.iter().filter(|id| **id == "duplex").count(), 2, "{said:?}");
}

/// Each counter has its own cure, on the interface that is meant; a ring that is as long as it can
/// be has none.
#[test]
fn drops_are_cured_where_they_are() {
    let command = |change: Change| {
        let mut found = sound();
        found.receiver.interface = Some("eth7".to_owned());
        change(&mut found);
        let advice = advise(&[found]);
        let own = advice.iter().find(|advice| advice.id == "receive_drops");
        own.expect("it fires").command.clone()
    };
    let ring = command(|f| {
        f.receiver.counted.ring_drops = Some(3);
        (f.receiver.ring_receive, f.receiver.ring_receive_most) = (Some(256), Some(2048));
    });
    assert_eq!(ring.as_deref(), Some("ethtool -G eth7 rx 2048   # on the server"));
    let full = command(|f| {
        f.receiver.counted.ring_drops = Some(3);
        (f.receiver.ring_receive, f.receiver.ring_receive_most) = (Some(2048), Some(2048));
    });
    assert_eq!(full, None);
    let backlog = command(|f| f.receiver.counted.backlog_drops = Some(3)).unwrap();
    assert!(backlog.contains("netdev_max_backlog") && !backlog.contains("rmem"), "{backlog}");
    let buffer = command(|f| f.receiver.counted.buffer_drops = Some(3)).unwrap();
    assert!(buffer.contains("rmem") && !buffer.contains("ethtool"), "{buffer}");
}

fn ids(found: &Findings) -> Vec<&'static str> {
    advise(std::slice::from_ref(found)).iter().map(|advice| advice.id).collect()
}

#[test]
fn sound_findings_call_for_nothing() {
    assert_eq!(ids(&sound()), [""; 0]);
    let nothing = Findings::nothing(Direction::Forward, PathFacts::ideal(1500, Duration::ZERO));
    assert_eq!(ids(&nothing), [""; 0], "no figure is ever assumed");
}

#[test]
fn each_rule_fires_and_is_silent() {
    for (id, fire, hush) in TABLE {
        let (mut loud, mut still) = (sound(), sound());
        fire(&mut loud);
        hush(&mut still);
        assert!(ids(&loud).contains(id), "{id} should fire: {:?}", ids(&loud));
        assert!(!ids(&still).contains(id), "{id} should be silent: {:?}", ids(&still));
    }
    for rule in RULES {
        assert!(TABLE.iter().any(|(id, ..)| *id == rule.id), "{} is not in the table", rule.id);
    }
}

#[test]
fn rules_are_numbered_and_reported_apart() {
    let numbers: Vec<u8> = RULES.iter().map(|rule| rule.number).collect();
    assert_eq!(numbers, (1..=31).collect::<Vec<u8>>());
    for (index, rule) in RULES.iter().enumerate() {
        assert!(RULES[..index].iter().all(|other| other.id != rule.id), "{}", rule.id);
    }
}

/// Every piece of advice carries figures, a confidence, and a sentence; what no other limit is, is
/// not called the next.
#[test]
fn advice_is_complete() {
    for (id, fire, _) in TABLE {
        let mut loud = sound();
        fire(&mut loud);
        for advice in advise(&[loud]) {
            assert!(!advice.evidence.is_empty(), "{id}");
            assert!(!advice.text.is_empty() && !advice.trigger.is_empty(), "{id}");
            if advice.severity == Severity::Limiting {
                assert!(!advice.text.starts_with("next limit"), "{id}");
            }
        }
    }
}

/// The limit that the counters name comes first; the other, though it would bind lower, is the next
/// one.
#[test]
fn the_binding_limit_comes_first() {
    let mut found = sound();
    found.tcp.limits = vec![LimitingFactor::PeerWindow];
    found.tcp.share_peer_window = Some(0.8);
    found.tcp.bps = Some(BitRate::from_bps(20_000_000));
    found.burst_octets = Some(30_000);
    let advice = advise(&[found.clone()]);
    assert_eq!(advice[0].id, "receive_buffer");
    assert_eq!(advice[0].severity, Severity::Limiting);
    let queue = advice.iter().find(|advice| advice.id == "shallow_queue").unwrap();
    assert_eq!(queue.severity, Severity::Warning);
    assert!(queue.text.starts_with("next limit: "), "{}", queue.text);
    // Without a name, the lower one binds: 30 kB per 40 ms are 6 Mbit/s.
    found.tcp.limits = vec![];
    let advice = advise(&[found]);
    assert_eq!((advice[0].id, advice[0].binds_at_bps), ("shallow_queue", Some(6_000_000)));
}

/// Seed 002's two cases: the OC-12 with an 82 kB queue, and the host of figure 3 that -`FullD`
/// mends 22-fold.
#[test]
fn the_cases_of_netest() {
    let mut oc12 = sound();
    oc12.rtt_ns = Some(30_000_000);
    oc12.capacity_bps = Some(622_000_000);
    oc12.available_bps = Some(570_000_000);
    oc12.burst_octets = Some(82_000);
    oc12.tcp.bps = Some(BitRate::from_bps(9_000_000));
    oc12.tcp.rtt_min_ns = Some(30_000_000.0);
    let advice = advise(&[oc12]);
    let queue = advice.iter().find(|advice| advice.id == "shallow_queue").unwrap();
    assert_eq!(queue.binds_at_bps, Some(21_866_666));
    assert!(queue.text.contains("keep UDP bursts below 41 kB"), "{}", queue.text);

    let mut solaris = sound();
    solaris.rtt_ns = Some(78_800_000);
    solaris.tcp.rtt_min_ns = Some(78_800_000.0);
    solaris.available_bps = Some(347_303_900);
    solaris.tcp.bps = Some(BitRate::from_bps(6_185_400));
    solaris.set_buffers_gain = Some(136.7045 / 6.1854);
    solaris.streams = (Some(65), None, None);
    solaris.tcp.limits = vec![];
    solaris.tcp.retransmitted = Some(0.0);
    let advice = advise(&[solaris]);
    let named: Vec<&str> = advice.iter().map(|advice| advice.id).collect();
    assert!(named.contains(&"set_buffers") && named.contains(&"parallel_streams"), "{named:?}");
}

/// What concerns the remote host says so.
#[test]
fn commands_name_the_host() {
    for (direction, remote) in [(Direction::Forward, false), (Direction::Reverse, true)] {
        let mut found = sound();
        found.direction = direction;
        found.tcp.share_send_buffer = Some(0.5);
        let advice = advise(&[found]);
        let command = advice[0].command.clone().unwrap();
        assert_eq!(command.contains("server"), remote, "{command}");
    }
}

/// The page lists every rule with its trigger, as the table has it.
#[test]
fn the_page_lists_every_rule() {
    use std::fmt::Write as _;
    let mut table = String::from("| rule | name | triggered by |\n|--:|---|---|\n");
    for rule in RULES {
        let _ = writeln!(table, "| {} | `{}` | {} |", rule.number, rule.id, rule.trigger);
    }
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/guide/advice.md");
    let page = std::fs::read_to_string(path).unwrap();
    assert!(page.contains(&table), "docs/guide/advice.md should hold:\n{table}");
}
