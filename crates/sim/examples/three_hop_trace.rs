//! Departure and arrival times of a fixed flow over three hops with fixed cross traffic, for
//! comparison with another simulator.
//!
//! Nothing is random. Hops without framing: 100, 10 and 50 Mbit/s; 1, 5 and 2 ms; queues of 20
//! packets, the one being sent included. Through flow: 200 packets of 1500 octets, packet k at k ·
//! 617 µs (19.4 Mbit/s), from node 0 to node 3. Cross traffic: packets of 1000 octets over the
//! second hop alone, packet k at k · 4 ms (2 Mbit/s) until 124 ms. The gap of 617 µs is prime to
//! all the other times, so that no packet reaches the second hop when another does or when one
//! leaves it, and the result does not hang on the order of events at one instant.
//!
//! One line per packet of the through flow: its number, when it was sent, and when it arrived at
//! the peer (`-` if it was dropped), all in nanoseconds.

use std::time::Duration;

use narrows_scenario::{Hop, PathDirection, Queue, Scenario};
use narrows_sim::{Output, Packet, Path};
use narrows_units::{BitRate, Framing};

const PACKETS: u64 = 200;
const GAP_NS: u64 = 617_000;
const CROSS_GAP_NS: usize = 4_000_000;

#[expect(clippy::print_stdout, reason = "an example prints its result")]
fn main() {
    let mut path = Path::new(&scenario(), 1);
    for k in 0..PACKETS {
        path.send(k * GAP_NS, PathDirection::Forward, packet(1500, Some(k)));
    }
    for at in (0..PACKETS * GAP_NS).step_by(CROSS_GAP_NS) {
        path.cross(at, PathDirection::Forward, 1, 1, packet(1000, None));
    }
    let mut outputs = Vec::new();
    path.advance(1_000_000_000, &mut outputs);
    let mut arrivals: Vec<Option<u64>> = vec![None; 200];
    for output in outputs {
        if let Output::Delivered { at, payload: Some(k), .. } = output {
            arrivals[usize::try_from(k).expect("there are 200 packets")] = Some(at);
        }
    }
    for (k, arrival) in (0u64..).zip(arrivals) {
        let arrival = arrival.map_or_else(|| "-".to_owned(), |at| at.to_string());
        println!("{k} {} {arrival}", k * GAP_NS);
    }
}

fn packet(ip_octets: u16, payload: Option<u64>) -> Packet<Option<u64>> {
    Packet { ip_octets, hop_limit: 64, flow: 0, payload }
}

fn scenario() -> Scenario {
    let hop = |mbps, ms| {
        Hop::rate(BitRate::from_mbps(mbps))
            .framing(Framing::BARE)
            .delay(Duration::from_millis(ms))
            .queue(Queue::Packets(20))
    };
    Scenario::new("three hops")
        .hop(hop(100, 1))
        .hop(hop(10, 5))
        .hop(hop(50, 2))
        .validate()
        .expect("a plain path is valid")
}
