use narrows_scenario::{Cross, Elastic, ElasticControl, Loss};

use super::*;

fn run(hop: Hop, config: FlowConfig, from: u64, to: u64) -> f64 {
    let mut rig = Rig::new(&scenario(hop), 1);
    let id = rig.stack.open(&config);
    rig.rate(id, from, to)
}

fn assert_between(value: f64, low: f64, high: f64, what: &str) {
    assert!((low..=high).contains(&value), "{what}: {value} is not in {low}..{high}");
}

/// Ten segments in the first round trip, twice as many in each one after: quick acknowledgements
/// and counting of segments.
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

/// A queue as large as the bandwidth-delay product keeps the link busy through every reduction. The
/// first seconds are left out: slow start takes its time and overshoots.
#[test]
fn one_flow_fills_an_idle_path() {
    for control in [Control::Reno, Control::Cubic] {
        for (mbps, rtt_ms) in [(10, 20), (100, 20), (100, 50)] {
            let bdp = mbps * rtt_ms * 1000 / 8 / 1500;
            let hop = one_hop(mbps, rtt_ms, bdp.max(20) * 5 / 4);
            let rate = run(hop, flow(control), 3 * SECOND, 13 * SECOND);
            let share = rate / payload_capacity(mbps);
            assert_between(share, 0.98, 1.001, &format!("{control:?} {mbps} Mbit/s {rtt_ms} ms"));
        }
    }
}

/// With a receiver that allows autotuning only to 200 000 octets: 138 segments per round trip of 50
/// ms, and the time that one segment and one acknowledgement take on the wire.
#[test]
fn the_receivers_window_limits() {
    for window in [ReceiveWindow::Fixed(200_000), ReceiveWindow::Autotuned(200_000)] {
        let mut rig = Rig::new(&scenario(one_hop(1000, 50, 10_000)), 1);
        let id = rig.stack.open(&FlowConfig { window, ..flow(Control::Cubic) });
        let rate = rig.rate(id, SECOND, 5 * SECOND);
        let rtt = 0.050 + (1538.0 + 90.0) * 8.0 / 1e9;
        assert_between(rate / (138.0 * MSS as f64 * 8.0 / rtt), 0.99, 1.001, &format!("{window:?}"));
        let sample = rig.sample(id);
        assert_eq!(sample.peer_window_octets, Some(138 * 1448));
        assert_eq!((sample.retransmitted_segments, sample.timeouts), (0, Some(0)));
        // Slow start goes on up to twice what is used (Linux `tcp_is_cwnd_limited`).
        assert_between(f64::from(sample.cwnd_segments), 138.0, 278.0, "window");
        let (busy, stalled) = (sample.busy.unwrap(), sample.limited_by_receive_window.unwrap());
        assert_between(stalled.as_secs_f64() / busy.as_secs_f64(), 0.85, 1.0, "stalled share");
    }
}

/// Pacing at 20 Mbit/s of IP octets, on a path of 100.
#[test]
fn pacing_limits() {
    let config = FlowConfig { pacing: Some(BitRate::from_mbps(20)), ..flow(Control::Cubic) };
    let rate = run(one_hop(100, 20, 100), config, SECOND, 5 * SECOND);
    assert_between(rate / (20e6 * 1448.0 / 1500.0), 0.999, 1.001, "paced share");
}

/// With (nearly) no queue Reno's window saws between half the bandwidth-delay product and all of
/// it, 3/4 on average.
#[test]
fn reno_without_a_queue_averages_three_quarters() {
    let rate = run(one_hop(100, 20, 5), flow(Control::Reno), 10 * SECOND, 60 * SECOND);
    assert_between(rate / payload_capacity(100), 0.73, 0.81, "share");
}

fn lossy(ratio: f64, rtt_ms: u64, seconds: u64, control: Control) -> f64 {
    let hop = one_hop(1000, rtt_ms, 10_000).loss(Loss::Random { ratio });
    let scenario = Scenario::new("lossy").hop(hop).reverse_hop(one_hop(1000, rtt_ms, 10_000)).validate().unwrap();
    let mut rig = Rig::new(&scenario, 3);
    let id = rig.stack.open(&flow(control));
    let rate = rig.rate(id, 5 * SECOND, seconds * SECOND);
    rate * rtt_ms as f64 * 1e-3 / (MSS * 8) as f64
}

/// Mean window under random loss: sqrt(3 / (2 p)) segments (Mathis, Semke, Mahdavi, Ott, CCR 1997;
/// every segment counts).
#[test]
fn reno_follows_the_square_root_law() {
    for (ratio, rtt_ms) in [(0.01, 20), (0.001, 20), (0.0003, 100)] {
        let window = lossy(ratio, rtt_ms, 120, Control::Reno);
        let law = (1.5 / ratio).sqrt();
        assert_between(window / law, 0.7, 1.3, &format!("loss {ratio}: {window} against {law}"));
    }
}

/// RFC 9438 eq. 6 with beta 0.7 and C 0.4: 1.054 (RTT / p)^(3/4) segments where Reno has fewer, for
/// evenly spaced losses. For independent ones and fast convergence a Monte Carlo of the fluid model
/// (ours, 4 · 10^5 round trips) gives the factor 1.21.
#[test]
fn cubic_follows_its_response_function() {
    for (ratio, rtt_ms) in [(0.0001, 200), (0.0001, 100)] {
        let window = lossy(ratio, rtt_ms, 400, Control::Cubic);
        let law = 1.21 * (rtt_ms as f64 * 1e-3 / ratio).powf(0.75);
        assert_between(window / law, 0.75, 1.25, &format!("loss {ratio}: {window} against {law}"));
    }
    let window = lossy(0.003, 20, 120, Control::Cubic);
    assert_between(window / (1.5f64 / 0.003).sqrt(), 0.7, 1.3, "Reno-friendly region");
}

/// From one full queue to the next: K = cbrt(0.3 W / 0.4) seconds up to the origin, and on (or
/// less) to where the queue is full again. The origin is the last peak, or 0.85 of it if that was
/// below the origin before (fast convergence).
#[test]
fn cubic_comes_back_after_k() {
    let mut rig = Rig::new(&scenario(one_hop(100, 50, 60)), 1);
    let id = rig.stack.open(&flow(Control::Cubic));
    let (mut peaks, mut last) = (Vec::new(), rig.sample(id));
    for tick in 1..6000 {
        rig.run_until(tick * 10 * MS);
        let now = rig.sample(id);
        if now.ssthresh_segments != last.ssthresh_segments {
            peaks.push((tick as f64 * 0.01, f64::from(last.cwnd_segments)));
        }
        last = now;
    }
    // The first is the end of slow start.
    assert!(peaks.len() >= 6, "{peaks:?}");
    let mut origin = 0.0;
    for pair in peaks[1..].windows(2) {
        let ((from, peak), (to, next)) = (pair[0], pair[1]);
        origin = if peak < origin { peak * 0.85 } else { peak };
        let after = |window: f64| ((origin - 0.7 * peak) / 0.4).cbrt() + ((window - origin) / 0.4).cbrt();
        // Near the origin a segment more or less is a second; recovery takes a round trip or two.
        assert_between(to - from, after(next - 1.0) - 0.1, after(next + 1.0) + 0.3, &format!("{peaks:?}"));
    }
}

#[test]
fn two_flows_share() {
    for control in [Control::Reno, Control::Cubic] {
        let mut rig = Rig::new(&scenario(one_hop(100, 20, 170)), 1);
        let first = rig.stack.open(&flow(control));
        let second = rig.stack.open(&FlowConfig { begins: 2 * SECOND, ..flow(control) });
        let rate = rig.rate(first, 20 * SECOND, 80 * SECOND);
        let before = rig.stack.read(second).unwrap().0;
        let share = rate / payload_capacity(100);
        assert_between(share, 0.35, 0.65, &format!("{control:?}"));
        let other = before as f64 * 8.0 / 78.0 / payload_capacity(100);
        assert_between(share + other, 0.95, 1.05, "together");
    }
}

/// Packets a millisecond (eight segments) late are taken for lost at first, then the threshold
/// rises above that.
#[test]
fn reordering_is_learnt() {
    let reorder = narrows_scenario::Reorder { ratio: 0.01, by: Duration::from_millis(1) };
    let mut rig = Rig::new(&scenario(one_hop(100, 20, 200).reorder(reorder)), 1);
    let id = rig.stack.open(&flow(Control::Cubic));
    let rate = rig.rate(id, 5 * SECOND, 15 * SECOND);
    assert_between(rate / payload_capacity(100), 0.97, 1.001, "share");
    let early = rig.sample(id).retransmitted_segments;
    let drops = u32::try_from(rig.drops).unwrap();
    assert_between(f64::from(early), f64::from(drops), f64::from(drops + 40), "retransmissions");
}

/// A link that stops for two seconds: the timeouts double (about 0.25, 0.5, 1 s), and the
/// connection goes on afterwards.
#[test]
fn timeouts_during_an_outage() {
    let hop = one_hop(10, 20, 20)
        .then_rate(Duration::from_secs(2), BitRate::from_bps(1))
        .then_rate(Duration::from_secs(4), BitRate::from_mbps(10));
    let mut rig = Rig::new(&scenario(hop), 1);
    let id = rig.stack.open(&flow(Control::Cubic));
    rig.run_until(3_900 * MS);
    let sample = rig.sample(id);
    assert_eq!(sample.state, narrows_probe::probes::TcpState::Loss);
    assert_eq!((sample.timeouts, sample.cwnd_segments), (Some(3), 1));
}

/// Elastic cross traffic takes what there is, and half of it beside one other connection.
#[test]
fn elastic_traffic_yields_its_share() {
    let elastic = |flows, window_octets| {
        Cross::elastic_on_hop(
            0,
            Elastic {
                extra_rtt: Duration::from_millis(10),
                window_octets,
                ..Elastic::greedy(flows, ElasticControl::Cubic)
            },
        )
    };
    let rate = |cross: Cross| {
        let scenario = Scenario::new("elastic").hop(one_hop(100, 10, 200)).cross(cross).validate().unwrap();
        let mut rig = Rig::new(&scenario, 5);
        let mine = rig.stack.open(&flow(Control::Cubic));
        rig.rate(mine, 10 * SECOND, 40 * SECOND) / payload_capacity(100)
    };
    assert_between(rate(elastic(3, None)), 0.12, 0.45, "beside three");
    // Each of two has 30 segments per round trip of 20 ms and more: at most 17.4 Mbit/s of payload.
    assert_between(rate(elastic(2, Some(30 * 1448))), 0.62, 0.95, "beside two that are limited");
}

#[test]
fn the_same_seed_gives_the_same_connection() {
    let run = |seed| {
        let elastic = Elastic { extra_rtt: Duration::from_millis(5), ..Elastic::greedy(4, ElasticControl::Reno) };
        let scenario = Scenario::new("same")
            .hop(one_hop(50, 10, 60).loss(Loss::Random { ratio: 1e-3 }))
            .cross(Cross::elastic_on_hop(0, elastic))
            .validate()
            .unwrap();
        let mut rig = Rig::new(&scenario, seed);
        let id = rig.stack.open(&flow(Control::Cubic));
        let samples: Vec<TcpSample> = (1..20)
            .map(|tick| {
                rig.run_until(tick * 200 * MS);
                rig.sample(id)
            })
            .collect();
        (samples, rig.drops)
    };
    assert_eq!(run(7), run(7));
    assert_ne!(run(7), run(8));
}
