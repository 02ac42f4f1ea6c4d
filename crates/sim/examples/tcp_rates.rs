//! Mean TCP payload rates over 20 s, alone on some common paths: what quick mode's shorter runs are
//! judged against.
//!
//! `cargo run --release --example tcp_rates -p narrows-sim`

use std::time::{Duration, Instant};

use narrows_probe::probes::{Congestion, Then, Transfer};
use narrows_probe::{Event, Probe, World};
use narrows_scenario::{Hop, PathDirection, Queue, Scenario};
use narrows_sim::SimWorld;
use narrows_units::{BitRate, Framing, Layer, Octets};

#[expect(clippy::print_stdout, reason = "an example speaks to its user")]
#[expect(clippy::disallowed_methods, reason = "how long the simulation takes is part of the answer")]
fn main() {
    println!(
        "Mbit/s rtt_ms queue/bdp control  0-1s   1-2s   0-20s  (share of the payload capacity)  retransmitted  run_s"
    );
    for (mbps, rtt_ms) in [(10, 20), (10, 100), (100, 10), (100, 50), (491, 20), (1000, 10), (1000, 50)] {
        for queue in [0.25, 1.0, 2.0] {
            for control in [Congestion::Reno, Congestion::Cubic] {
                let began = Instant::now();
                let (parts, retransmitted) = shares(mbps, rtt_ms, queue, &control);
                let [first, second, all] = parts;
                println!(
                    "{mbps:6} {rtt_ms:6} {queue:9} {:7} {first:6.3} {second:6.3} {all:6.3} {:45} {:6.2}",
                    control.name(),
                    retransmitted,
                    began.elapsed().as_secs_f64(),
                );
            }
        }
    }
}

/// Shares of the payload capacity that were acknowledged in the first, the second, and the first
/// twenty seconds.
fn shares(mbps: u64, rtt_ms: u64, queue: f64, control: &Congestion) -> ([f64; 3], u32) {
    let rate = BitRate::from_mbps(mbps);
    let bdp = rate.octets_in(Duration::from_millis(rtt_ms)) as f64;
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a few megaoctets")]
    let queue = Octets::new(((bdp * queue) as u64).max(6000));
    let hop = Hop::rate(rate).delay(Duration::from_millis(rtt_ms) / 2).queue(Queue::Octets(queue));
    let mut scenario = Scenario::new("one hop").hop(hop);
    scenario.receiver.tcp_receive_octets = 64 << 20;
    let scenario = scenario.validate().expect("a path of one hop");
    let mut world = SimWorld::new(&scenario, PathDirection::Forward, 1);
    let transfer = Transfer {
        streams: 1,
        congestion: Some(control.clone()),
        window_octets: None,
        pacing: None,
        duration: Duration::from_secs(20),
        sample_every: Duration::from_secs(1),
        then: Then::Finish,
    };
    let Ok(Event::Transfer(report)) = world.send(Probe::Transfer(transfer)) else {
        return ([f64::NAN; 3], 0);
    };
    let capacity = Framing::ETHERNET.convert(rate, Layer::Wire, Layer::TcpPayload, 1500, false);
    let capacity = capacity.map_or(f64::NAN, BitRate::as_f64);
    let samples = &report.streams[0].samples;
    let acked = |from: usize, to: usize| {
        let octets = samples[to].acked_octets - samples[from].acked_octets;
        octets as f64 * 8.0 / (to - from) as f64 / capacity
    };
    ([acked(0, 1), acked(1, 2), acked(0, 20)], samples[20].retransmitted_segments)
}
