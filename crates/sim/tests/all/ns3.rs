//! Packet times and drops that ns-3 found on the same paths with the same packets: ours are within
//! a nanosecond per link, and the same packets are dropped in the same place.
//!
//! `xtask/bench/ns3` has the program that made the files, and says how to read them.

use std::fmt::Write as _;
use std::num::ParseIntError;
use std::str::FromStr;
use std::time::Duration;

use narrows_scenario::{Hop, PathDirection, Queue, Scenario, TokenBucket};
use narrows_sim::{DropCause, Output, Packet, Path};
use narrows_units::{BitRate, Framing, Octets, nanos};

const CASES: [(&str, &str); 8] = [
    ("two-links-packets", include_str!("../fixtures/ns3/two-links-packets.txt")),
    ("three-links-packets", include_str!("../fixtures/ns3/three-links-packets.txt")),
    ("two-links-octets", include_str!("../fixtures/ns3/two-links-octets.txt")),
    ("three-links-octets", include_str!("../fixtures/ns3/three-links-octets.txt")),
    ("ethernet", include_str!("../fixtures/ns3/ethernet.txt")),
    ("trains", include_str!("../fixtures/ns3/trains.txt")),
    ("shaper-packets", include_str!("../fixtures/ns3/shaper-packets.txt")),
    ("shaper-octets", include_str!("../fixtures/ns3/shaper-octets.txt")),
];

/// A packet of the list, and what ns-3 made of it.
struct Listed {
    sent: u64,
    ip_octets: u16,
    first: usize,
    last: usize,
    /// Per link: when its last bit left, or when it was dropped.
    left: Vec<u64>,
    dropped: Option<DropCause>,
}

impl Listed {
    /// What becomes of it on a path that ends behind this link: at which link it is last seen,
    /// when, and why it goes no further.
    fn up_to(&self, exit: usize) -> (usize, u64, Option<DropCause>) {
        let seen = self.left.len() - 1;
        let place = seen.min(exit.min(self.last) - self.first);
        (self.first + place, self.left[place], self.dropped.filter(|_| place == seen))
    }
}

fn number<T: FromStr<Err = ParseIntError>>(word: &str) -> T {
    word.parse().expect("a number")
}

fn queue(word: &str) -> Queue {
    match (word.strip_suffix('p'), word.strip_suffix('B')) {
        // As much as ns-3 can be told.
        (Some("1000000"), _) => Queue::Unlimited,
        (Some(packets), _) => Queue::Packets(number(packets)),
        (_, octets) => Queue::Octets(Octets::new(number(octets.expect("p or B")))),
    }
}

fn read(text: &str) -> (Vec<Hop>, Vec<Listed>) {
    let (mut hops, mut list) = (Vec::<Hop>::new(), Vec::new());
    let (mut framing, mut sent) = (Framing::BARE, 0);
    for line in text.lines() {
        let words: Vec<&str> = line.split(' ').collect();
        match words[0] {
            "framing" if words[1] == "ethernet" => framing = Framing::ETHERNET,
            "#" | "framing" => {}
            "link" => {
                let hop = Hop::rate(BitRate::from_bps(number(words[1]))).delay(Duration::from_nanos(number(words[2])));
                let mtu = if framing == Framing::ETHERNET { 9000 } else { 1500 };
                hops.push(hop.framing(framing).queue(queue(words[3])).mtu(mtu));
            }
            "bucket" => {
                let (rate, burst) = (BitRate::from_bps(number(words[1])), Octets::new(number(words[2])));
                let hop = hops.pop().expect("a link before its bucket");
                hops.push(hop.bucket(TokenBucket { rate, burst, queue: Some(queue(words[3])), timer: Duration::ZERO }));
            }
            _ => {
                sent += number::<u64>(words[0]);
                list.push(listed(sent, &words, &hops));
            }
        }
    }
    (hops, list)
}

fn listed(sent: u64, words: &[&str], hops: &[Hop]) -> Listed {
    let (first, mut reached): (usize, u64) = (number(words[2]), sent);
    let (mut left, mut dropped) = (Vec::new(), None);
    for (word, hop) in words[4..].iter().zip(&hops[first..]) {
        dropped = match word.as_bytes()[0] {
            b'x' => Some(DropCause::Queue),
            b's' => Some(DropCause::Shaper),
            _ => None,
        };
        let at = reached + number::<u64>(word.trim_start_matches(['x', 's']));
        left.push(at);
        reached = at + nanos(hop.delay);
    }
    Listed { sent, ip_octets: number(words[1]), first, last: number(words[3]), left, dropped }
}

/// Where ours differs from ns-3, one line per packet, and the largest difference in nanoseconds of
/// those that do not.
fn compare(hops: &[Hop], list: &[Listed]) -> (String, u64) {
    let build = |scenario: Scenario, hop: &Hop| scenario.hop(hop.clone());
    let scenario = hops.iter().fold(Scenario::new("ns-3"), build).validate().expect("a plain path is valid");
    let (mut differing, mut worst) = (String::new(), 0);
    // Nothing behind a link changes what happens on it, so a path that ends there shows its times.
    for exit in 0..hops.len() {
        let mut path = Path::new(&scenario, 1);
        let mut expected = 0;
        for (number, listed) in list.iter().enumerate().filter(|(_, listed)| listed.first <= exit) {
            let packet = Packet { ip_octets: listed.ip_octets, hop_limit: 64, flow: 0, payload: number };
            expected += 1;
            if listed.first == 0 && listed.last.min(exit) + 1 == hops.len() {
                path.send(listed.sent, PathDirection::Forward, packet);
            } else {
                path.cross(listed.sent, PathDirection::Forward, listed.first, listed.last.min(exit), packet);
            }
        }
        let mut out = Vec::new();
        path.advance(1_000_000_000_000, &mut out);
        assert_eq!(out.len(), expected);
        for output in out {
            let (number, link, at, dropped) = match output {
                Output::Delivered { at, node, payload, .. } => {
                    (payload, node - 1, at - nanos(hops[node - 1].delay), None)
                }
                Output::Dropped { at, hop, cause, payload, .. } => (payload, hop, at, Some(cause)),
                other => panic!("{other:?}"),
            };
            let theirs = list[number].up_to(exit);
            let apart = at.abs_diff(theirs.1);
            // Each link rounds up once; a packet also waits for others that were rounded up.
            if (link, dropped) == (theirs.0, theirs.2) && apart <= link as u64 + 1 {
                worst = worst.max(apart);
            } else {
                let _ = writeln!(differing, "packet {number}: {link} {at} {dropped:?}, ns-3 {theirs:?}");
            }
        }
    }
    (differing, worst)
}

#[test]
fn packets_leave_and_are_dropped_as_in_ns3() {
    let (mut drops, mut times) = (0, 0);
    for (name, text) in CASES {
        let (hops, list) = read(text);
        let (differing, worst) = compare(&hops, &list);
        assert!(differing.is_empty(), "{name}:\n{differing}");
        let dropped = list.iter().filter(|listed| listed.dropped.is_some()).count();
        let seen: usize = list.iter().map(|listed| listed.left.len()).sum();
        println!("{name}: {} packets, {} times, {dropped} drops, {worst} ns apart at most", list.len(), seen - dropped);
        drops += dropped;
        times += seen - dropped;
    }
    assert!(drops > 300 && times > 4_000, "the lists show little: {drops} drops, {times} times");
}

/// Only what is compared in earnest notices a path that is a little different.
#[test]
fn a_path_unlike_that_of_ns3_is_noticed() {
    let larger = |queue: Queue| match queue {
        Queue::Packets(packets) => Queue::Packets(packets + 1),
        Queue::Octets(octets) => Queue::Octets(Octets::new(octets.count() + 1500)),
        Queue::Unlimited => queue,
    };
    for (name, text) in CASES {
        let (hops, list) = read(text);
        for (place, hop) in hops.iter().enumerate() {
            let noticed = |other: Hop| {
                let mut path = hops.clone();
                path[place] = other;
                !compare(&path, &list).0.is_empty()
            };
            let rate = BitRate::from_bps(hop.rate.bps() / 1_000 * 999);
            assert!(noticed(Hop { rate, ..hop.clone() }), "{name}, link {place}: rate");
            let drops = |listed: &Listed| {
                listed.dropped == Some(DropCause::Queue) && listed.first + listed.left.len() - 1 == place
            };
            if list.iter().any(drops) {
                assert!(noticed(hop.clone().queue(larger(hop.queue))), "{name}, link {place}: queue");
            }
            if let Some(bucket) = hop.bucket {
                let deeper = TokenBucket { burst: Octets::new(bucket.burst.count() + 1), ..bucket };
                assert!(noticed(hop.clone().bucket(deeper)), "{name}: depth");
                let longer = TokenBucket { queue: bucket.queue.map(larger), ..bucket };
                assert!(noticed(hop.clone().bucket(longer)), "{name}: queue of the shaper");
            }
        }
    }
}
