//! BBR against what its model must do on paths whose truth is known.

use narrows_scenario::Loss;

use super::*;

/// Its model begins with the handshake's round trip.
fn bbr(rtt_ms: u64) -> FlowConfig {
    FlowConfig { handshake: rtt_ms * MS, ..flow(Control::Bbr) }
}

fn opened(hop: Hop, rtt_ms: u64) -> (Rig, u32) {
    let mut rig = Rig::new(&scenario(hop), 1);
    let id = rig.stack.open(&bbr(rtt_ms));
    (rig, id)
}

/// Share of the payload capacity between two times, after which the path is left as it is.
fn share(mbps: u64, rig: &mut Rig, id: u32, from: u64, to: u64) -> f64 {
    rig.rate(id, from, to) / payload_capacity(mbps)
}

/// One flow, a queue of one bandwidth-delay product: nearly all of the link, with two looks at the
/// empty round trip in it.
#[test]
fn fills_an_idle_path() {
    for (mbps, rtt_ms) in [(10, 50), (100, 20), (100, 50)] {
        let product = mbps * rtt_ms * 1000 / 8 / 1500;
        let (mut rig, id) = opened(one_hop(mbps, rtt_ms, product.max(20)), rtt_ms);
        let share = share(mbps, &mut rig, id, 2 * SECOND, 22 * SECOND);
        assert!((0.94..=1.001).contains(&share), "{mbps} Mbit/s {rtt_ms} ms: {share}");
    }
}

/// One packet in a hundred is lost at random: Reno has 12 segments of 333, BBR nearly everything.
#[test]
fn random_losses_do_not_stop_it() {
    let rate = |config: FlowConfig| {
        let hop = one_hop(100, 40, 400).loss(Loss::Random { ratio: 0.01 });
        let mut rig = Rig::new(&scenario(hop), 3);
        let id = rig.stack.open(&config);
        rig.rate(id, 2 * SECOND, 12 * SECOND) / payload_capacity(100)
    };
    let (bbr, reno) = (rate(bbr(40)), rate(flow(Control::Reno)));
    assert!((0.85..=1.0).contains(&bbr), "{bbr}");
    assert!(reno < 0.1, "{reno}");
}

/// Start-up at 2.885, the drain at its inverse, then gains of 1.25, 0.75 and 1 around the link's
/// rate. The queue that start-up made, up to two bandwidth-delay products, is gone after the drain
/// and stays short.
#[test]
fn starts_drains_and_cruises() {
    let (mut rig, id) = opened(one_hop(50, 40, 2000), 40);
    let mut seen = Vec::new();
    let (mut highest, mut later) = (0.0f64, Vec::new());
    for tick in 1..400 {
        rig.run_until(tick * 10 * MS);
        let sample = rig.sample(id);
        let gain = sample.bbr_pacing_gain.unwrap();
        if seen.last() != Some(&gain) {
            seen.push(gain);
        }
        highest = highest.max(sample.rtt.as_secs_f64());
        if tick > 150 {
            later.push(sample.rtt.as_secs_f64());
        }
    }
    assert_eq!(seen[..2], [739, 88], "{seen:?}");
    assert!(seen[2..].iter().all(|gain| [320, 192, 256].contains(gain)), "{seen:?}");
    for gain in [320, 192, 256] {
        assert!(seen[2..].iter().filter(|seen| **seen == gain).count() >= 5, "{seen:?}");
    }
    let mean = later.iter().sum::<f64>() / later.len() as f64;
    assert!(highest > 0.060, "start-up fills the queue: {highest}");
    assert!((0.040..0.050).contains(&mean), "{mean}");
    assert_eq!(rig.drops, 0);
}

/// Every ten seconds the window falls to four segments for 200 ms and a round trip, as long as no
/// smaller round trip is seen by chance.
#[test]
fn polls_for_the_empty_round_trip() {
    let (mut rig, id) = opened(one_hop(20, 30, 200), 30);
    let mut polls: Vec<(u64, u64)> = Vec::new();
    for tick in 1..3500u64 {
        rig.run_until(tick * 10 * MS);
        if rig.sample(id).cwnd_segments > 4 {
            continue;
        }
        match polls.last_mut() {
            Some((_, last)) if *last + 1 == tick => *last = tick,
            _ => polls.push((tick, tick)),
        }
    }
    assert_eq!(polls.len(), 3, "{polls:?}");
    for (from, to) in &polls {
        assert!((20..=32).contains(&(to - from)), "{polls:?}");
    }
    for pair in polls.windows(2) {
        assert!((1000..=1060).contains(&(pair[1].0 - pair[0].0)), "{polls:?}");
    }
}

/// A link that becomes five times slower, and again as fast: the model forgets after ten round
/// trips, and finds a quarter more in each cycle of eight.
#[test]
fn follows_the_link() {
    let hop = one_hop(50, 20, 200)
        .then_rate(Duration::from_secs(5), BitRate::from_mbps(10))
        .then_rate(Duration::from_secs(10), BitRate::from_mbps(50));
    let (mut rig, id) = opened(hop, 20);
    let slow = share(10, &mut rig, id, 7 * SECOND, 10 * SECOND);
    assert!((0.93..=1.001).contains(&slow), "{slow}");
    let fast = share(50, &mut rig, id, 14 * SECOND, 19 * SECOND);
    assert!((0.90..=1.001).contains(&fast), "{fast}");
}

/// Two flows that begin five seconds apart share after some of their looks at the empty round trip,
/// which they make together.
#[test]
fn two_flows_share() {
    let mut rig = Rig::new(&scenario(one_hop(50, 20, 170)), 1);
    let first = rig.stack.open(&bbr(20));
    let second = rig.stack.open(&FlowConfig { begins: 5 * SECOND, ..bbr(20) });
    rig.run_until(30 * SECOND);
    let before = rig.stack.read(second).unwrap().0;
    let one = rig.rate(first, 30 * SECOND, 60 * SECOND) / payload_capacity(50);
    let other = (rig.stack.read(second).unwrap().0 - before) as f64 * 8.0 / 30.0 / payload_capacity(50);
    assert!((0.25..=0.75).contains(&one), "{one} {other}");
    assert!((0.90..=1.001).contains(&(one + other)), "{one} {other}");
}

/// After timeouts and a single segment it comes back from a link that carries
/// two packets a second for two seconds.
#[test]
fn survives_an_outage() {
    let hop = one_hop(10, 20, 40)
        .then_rate(Duration::from_secs(2), BitRate::from_bps(24_000))
        .then_rate(Duration::from_secs(4), BitRate::from_mbps(10));
    let (mut rig, id) = opened(hop, 20);
    let rate = share(10, &mut rig, id, 8 * SECOND, 12 * SECOND);
    assert!((0.85..=1.001).contains(&rate), "{rate}");
}
