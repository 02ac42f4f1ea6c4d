//! What triggers each rule, and what must not.

use super::*;

/// Rule, what triggers it, and what must not.
pub(super) const TABLE: &[(&str, Change, Change)] = &[
    ("send_buffer", |f| f.tcp.share_send_buffer = Some(0.3), |f| f.tcp.share_send_buffer = Some(0.15)),
    (
        "send_buffer",
        // 98 Mbit/s over 40 ms are 490 kB, twice that is needed.
        |f| f.sender.tcp_wmem_octets = Some([4096, 16_384, 970_000]),
        |f| f.sender.tcp_wmem_octets = Some([4096, 16_384, 990_000]),
    ),
    (
        "receive_buffer",
        |f| f.tcp.share_peer_window = Some(0.5),
        |f| {
            // The same stall, but the receiver is too busy to read.
            f.tcp.share_peer_window = Some(0.5);
            f.tcp.receiver_cpu = Some(0.97);
        },
    ),
    (
        "window_scaling",
        |f| f.tcp.window_scaled = Some(false),
        |f| {
            // 2 Mbit/s over 40 ms hold 10 kB: no need of scaling.
            f.tcp.window_scaled = Some(false);
            f.available_bps = Some(2_000_000);
            f.capacity_bps = Some(2_000_000);
            f.tcp.bps = Some(BitRate::from_bps(1_900_000));
        },
    ),
    ("buffer_clamped", |f| f.buffer_clamped = Some(true), |f| f.buffer_clamped = None),
    (
        "shallow_queue",
        |f| {
            // 82 kB per 40 ms: 16.4 Mbit/s.
            f.burst_octets = Some(82_000);
            f.tcp.bps = Some(BitRate::from_bps(10_000_000));
        },
        |f| {
            f.burst_octets = Some(82_000);
            f.tcp.bps = Some(BitRate::from_bps(90_000_000));
        },
    ),
    (
        "shallow_queue",
        |f| {
            f.burst_octets = Some(82_000);
            f.burst_packets = Some(60);
            f.tcp.retransmitted = Some(0.001);
            f.tcp.bps = Some(BitRate::from_bps(10_000_000));
        },
        |f| {
            // So much is lost anywhere that no burst of 150 packets is likely to come through.
            f.burst_octets = Some(82_000);
            f.burst_packets = Some(150);
            f.tcp.retransmitted = Some(0.005);
            f.tcp.bps = Some(BitRate::from_bps(10_000_000));
        },
    ),
    (
        "congestion_control",
        |f| {
            f.tcp.limits = vec![LimitingFactor::RandomLoss];
            f.rtt_ns = Some(200_000_000);
            f.tcp.bps = Some(BitRate::from_bps(9_000_000));
        },
        |f| f.tcp.limits = vec![LimitingFactor::RandomLoss],
    ),
    (
        "congestion_control",
        |f| {
            f.tcp.congestion = Some("bbr".to_owned());
            f.tcp.retransmitted = Some(0.08);
        },
        |f| {
            f.tcp.congestion = Some("bbr".to_owned());
            f.tcp.retransmitted = Some(0.03);
        },
    ),
    ("host_processor", |f| f.tcp.sender_cpu = Some(0.95), |f| f.tcp.sender_cpu = Some(0.85)),
    (
        "host_processor",
        |f| f.host_limited = vec![(Metric::UdpAchievable, Limit::Receiver)],
        |f| f.host_limited = vec![(Metric::UdpAchievable, Limit::Path)],
    ),
    (
        "host_processor",
        |f| f.tcp.limits = vec![LimitingFactor::Application],
        |f| f.tcp.limits = vec![LimitingFactor::Pacing],
    ),
    (
        "memory",
        // 2 × 20 MB/s × 8 / 3 are 107 Mbit/s, of which 95 are 89 %.
        |f| f.sender.memory_copy_octets_per_second = Some(20_000_000),
        |f| f.sender.memory_copy_octets_per_second = Some(23_000_000),
    ),
    (
        "interface",
        |f| {
            f.facts.sender.interface_rate = Some(BitRate::from_mbps(100));
            f.tcp.bps = Some(BitRate::from_bps(93_500_000));
        },
        |f| {
            f.facts.sender.interface_rate = Some(BitRate::from_mbps(100));
            f.facts.sender.virtual_interface = true;
        },
    ),
    ("interface", |f| f.sender.bus_bps = Some(8_000_000_000), |f| f.sender.bus_bps = Some(11_000_000_000)),
    (
        "receive_batching",
        |f| {
            caveat(f, Caveat::ReceiveBatching { period: Duration::from_micros(125) });
        },
        |f| caveat(f, Caveat::TimerLimited),
    ),
    (
        "receive_batching",
        // Eight packets of 1500 octets at 100 Mbit/s last 960 µs.
        |f| f.receiver.receive_gather_us = Some(1000),
        |f| f.receiver.receive_gather_us = Some(900),
    ),
    (
        "offloads",
        |f| {
            f.sender.send_offload = Some(false);
            f.tcp.sender_cpu = Some(0.99);
        },
        |f| f.sender.send_offload = Some(false),
    ),
    (
        "mtu_black_hole",
        |f| {
            f.black_hole = Some(true);
            f.path_mtu_octets = Some(1420);
        },
        // A router that says so is no black hole.
        |f| f.path_mtu_octets = Some(1420),
    ),
    ("mtu_black_hole", |f| f.tcp.limits = vec![LimitingFactor::MtuBlackHole], |f| f.tcp.limits = vec![]),
    ("fragments", |f| f.sender.counted.fragments = Some(12), |f| f.sender.counted.fragments = Some(0)),
    ("fragments", |f| f.path_mtu_octets = Some(1006), |f| f.path_mtu_octets = Some(1280)),
    ("duplex", |f| f.sender.half_duplex = Some(true), |f| f.sender.half_duplex = None),
    (
        "duplex",
        |f| f.sender.interface_bps = Some(100_000_000),
        |f| {
            f.sender.interface_bps = Some(100_000_000);
            f.sender.interface_most_bps = Some(100_000_000);
        },
    ),
    ("duplex", |f| f.sender.counted.damaged_frames = Some(3), |f| f.sender.counted.damaged_frames = Some(0)),
    (
        "loss_pattern",
        |f| {
            f.tcp.pattern = Some(LossPattern { burstiness: 8.0, spacing_variation: Some(0.5) });
        },
        |f| {
            f.tcp.pattern = Some(LossPattern { burstiness: 4.0, spacing_variation: Some(0.5) });
        },
    ),
    (
        "loss_pattern",
        |f| {
            f.tcp.pattern = Some(LossPattern { burstiness: 1.0, spacing_variation: Some(0.02) });
        },
        |f| {
            f.tcp.pattern = Some(LossPattern { burstiness: 1.0, spacing_variation: None });
        },
    ),
    (
        "token_bucket",
        |f| f.tcp.limits = vec![LimitingFactor::Policer],
        |f| f.tcp.limits = vec![LimitingFactor::RandomLoss],
    ),
    (
        "token_bucket",
        |f| caveat(f, Caveat::Shaped),
        |f| {
            caveat(f, Caveat::BucketNotExcluded { deeper_than_octets: 20_000 });
        },
    ),
    (
        "token_bucket",
        |f| f.bucket = (Some(200_000_000), Some(5_000_000)),
        // As fast as the capacity: no bucket.
        |f| f.bucket = (Some(100_000_000), None),
    ),
    (
        "reordering",
        |f| caveat(f, Caveat::Reordering { ratio: 0.002 }),
        |f| caveat(f, Caveat::Reordering { ratio: 0.0005 }),
    ),
    (
        "reordering",
        |f| {
            f.tcp.reordered = Some(30.0);
            f.tcp.needless = Some(35.0);
        },
        |f| {
            f.tcp.reordered = Some(30.0);
            f.tcp.needless = Some(10.0);
        },
    ),
    ("asymmetry", |f| f.other_way_tcp_bps = Some(200_000_000), |f| f.other_way_tcp_bps = Some(180_000_000)),
    (
        "asymmetry",
        |f| {
            f.udp_bps = Some(90_000_000);
            f.caveats.push((Metric::RoundTripTime, Caveat::Loss { ratio: 0.05 }));
        },
        |f| {
            // Both ways share the loss, as far as anybody knows.
            f.udp_bps = Some(90_000_000);
            f.caveats.push((Metric::RoundTripTime, Caveat::Loss { ratio: 0.05 }));
            f.caveats.push((Metric::UdpAchievable, Caveat::Loss { ratio: 0.04 }));
        },
    ),
    (
        "asymmetry",
        |f| f.other_way_tcp_bps = Some(200_000_000),
        |f| {
            // The budget ended this way's transfer in its ramp.
            f.other_way_tcp_bps = Some(200_000_000);
            f.caveats.push((Metric::TcpAchievableSingle, Caveat::StoppedEarly));
        },
    ),
    ("clock", |f| caveat(f, Caveat::ClockSkew { ppm: -80.0 }), |f| caveat(f, Caveat::ClockSkew { ppm: 20.0 })),
    (
        "clock",
        |f| f.sender.clocksource = Some("hpet".to_owned()),
        |f| f.sender.clocksource = Some("kvm-clock".to_owned()),
    ),
    ("clock", |f| caveat(f, Caveat::ClockStep), |f| caveat(f, Caveat::HostStall)),
    (
        "variable_link",
        |f| {
            f.tcp.variation = Some(0.4);
            f.rtt_spread_ns = Some(15_000_000);
        },
        |f| {
            // The same with much loss: congestion, not the link.
            f.tcp.variation = Some(0.4);
            f.rtt_spread_ns = Some(15_000_000);
            f.tcp.retransmitted = Some(0.02);
        },
    ),
    (
        "variable_link",
        |f| {
            f.tcp.variation = Some(0.4);
            f.sender.wireless = Some(true);
        },
        |f| f.sender.wireless = Some(true),
    ),
    ("deep_queue", |f| f.tcp.rtt_loaded_ns = Some(200e6), |f| f.tcp.rtt_loaded_ns = Some(130e6)),
    ("virtual_host", |f| f.sender.steal_ratio = Some(0.05), |f| f.sender.steal_ratio = Some(0.02)),
    ("virtual_host", |f| f.facts.receiver.virtual_interface = true, |f| f.sender.virtual_machine = Some(true)),
    (
        "governor",
        |f| {
            f.sender.governor = Some("powersave".to_owned());
            f.tcp.sender_cpu = Some(0.95);
        },
        |f| f.sender.governor = Some("powersave".to_owned()),
    ),
    (
        "governor",
        // A packet lasts 122 µs at 98 Mbit/s.
        |f| f.sender.idle_exit_ns = Some(133_000),
        |f| f.sender.idle_exit_ns = Some(100_000),
    ),
    ("receive_drops", |f| caveat(f, Caveat::LocalDrops { packets: 7 }), |f| caveat(f, Caveat::Loss { ratio: 0.02 })),
    ("receive_drops", |f| f.sender.counted.ring_drops = Some(9), |f| f.sender.counted.ring_drops = Some(0)),
    ("proxy", |f| f.tcp.rtt_min_ns = Some(25e6), |f| f.tcp.rtt_min_ns = Some(30e6)),
    (
        "proxy",
        |f| {
            f.rtt_ns = Some(1_600_000);
            f.tcp.rtt_min_ns = Some(500_000.0);
        },
        |f| {
            // Loopback, or one wire: a program answers to UDP, the kernel to TCP.
            f.rtt_ns = Some(11_000);
            f.tcp.rtt_min_ns = Some(3_000.0);
        },
    ),
    (
        "set_buffers",
        |f| {
            f.set_buffers_gain = Some(22.0);
            f.tcp.retransmitted = Some(0.0);
        },
        |f| {
            // The gain has a cause: the send buffer.
            f.set_buffers_gain = Some(22.0);
            f.tcp.retransmitted = Some(0.0);
            f.tcp.share_send_buffer = Some(0.9);
        },
    ),
    (
        "parallel_streams",
        |f| {
            f.tcp.bps = Some(BitRate::from_bps(40_000_000));
            f.streams = (Some(3), Some(6), None);
        },
        |f| f.streams = (Some(2), None, None),
    ),
    (
        "parallel_streams",
        |f| {
            f.streams_asked = Some(8);
            f.streams = (Some(2), Some(5), Some(9));
        },
        |f| {
            f.streams_asked = Some(4);
            f.streams = (Some(2), Some(5), Some(9));
        },
    ),
    ("metrics_cache", |f| f.tcp.threshold_cached = Some(true), |f| f.tcp.threshold_cached = None),
    (
        "per_flow_limit",
        |f| {
            caveat(f, Caveat::Multichannel { channels: 4, each: BitRate::from_mbps(25), by_flow: true });
        },
        // Dealt packet by packet, one flow gets them all.
        |f| {
            caveat(f, Caveat::Multichannel { channels: 4, each: BitRate::from_mbps(25), by_flow: false });
        },
    ),
    (
        "test_too_short",
        |f| f.tcp.limits = vec![LimitingFactor::Growing],
        |f| f.tcp.limits = vec![LimitingFactor::Queue],
    ),
    ("test_too_short", |f| f.tcp.worst_case_share = Some(0.7), |f| f.tcp.worst_case_share = Some(0.92)),
    ("path_busy", |f| f.available_bps = Some(9_000_000), |f| f.available_bps = Some(11_000_000)),
];
