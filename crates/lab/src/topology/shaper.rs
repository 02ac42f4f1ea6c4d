//! What the kernel's shapers are told, and how they depart from the scenario's links.
//!
//! Linux counts what it hands to a device: IP packet and Ethernet header, 14 octets. A size table,
//! tc-stab(8), adds what the scenario's framing has around that (24 octets of FCS, preamble and gap
//! on Ethernet) and pads short frames, so the shaper's rate is the link's nominal rate to the
//! octet.

use std::io;
use std::process::{Command, Stdio};

use narrows_scenario::{Burst, Hop, Link, PathDirection, Queue, Scenario, TokenBucket};
use narrows_sim::Segment;
use narrows_units::{BitRate, Framing, Octets};

use crate::error::{LabError, WhyNot};
use crate::node::Node;

/// Octets that the kernel counts beside the IP packet.
const ETHERNET_HEADER: u32 = 14;
/// Limit of a queue that never drops.
const UNLIMITED_OCTETS: u64 = 2_000_000_000;
const UNLIMITED_PACKETS: u32 = 1_000_000;

/// One way of one link, as a shaper is to play it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Shaper {
    kind: Kind,
    rate: BitRate,
    framing: Framing,
    mtu: u16,
    burst: Octets,
    queue: Queue,
    bucket: Option<TokenBucket>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Tbf,
    Htb,
}

/// What is counted, and how much of it: the shaper's rate, burst and size table.
struct Counting {
    rate: BitRate,
    burst: u64,
    peak: Option<BitRate>,
    queue: Queue,
    framing: Framing,
}

impl Shaper {
    /// The shaper of a segment; `None` if it is not a shaper's.
    pub(crate) fn of(scenario: &Scenario, way: PathDirection, segment: Segment) -> Option<Self> {
        let hop = scenario.hops(way).get(segment.hop)?;
        let (kind, burst) = match hop.link {
            Link::Tbf(burst) => (Kind::Tbf, burst),
            Link::Htb(burst) => (Kind::Htb, burst),
            Link::RealTime | Link::Veth => return None,
        };
        let one_packet = |framing: Framing| Octets::new(u64::from(framing.wire_octets(u32::from(hop.mtu))));
        match segment.device {
            None => Some(Self {
                kind,
                rate: hop.rate,
                framing: hop.framing,
                mtu: hop.mtu,
                burst: match burst {
                    Burst::OnePacket => one_packet(hop.framing),
                    Burst::Octets(octets) => octets,
                },
                queue: hop.queue,
                bucket: binding_bucket(hop),
            }),
            Some(index) => {
                let device = hop.layer2.get(index)?;
                Some(Self {
                    kind,
                    rate: device.rate,
                    framing: device.framing,
                    mtu: hop.mtu,
                    burst: one_packet(device.framing),
                    queue: device.queue,
                    bucket: None,
                })
            }
        }
    }

    /// The arguments of each call of `tc` that sets it up on a device.
    pub(crate) fn commands(&self, device: &str) -> Vec<Vec<String>> {
        let counting = self.counting();
        let mut root = words(&["qdisc", "add", "dev", device, "root", "handle", "1:"]);
        root.extend(self.size_table(&counting));
        let rate = format!("{}bit", counting.rate.bps());
        let burst = counting.burst.to_string();
        let limit = self.limit(&counting);
        let mut commands = match self.kind {
            Kind::Tbf => {
                // The first queue is made by tbf itself, and replaced below.
                root.extend(words(&["tbf", "rate", &rate, "burst", &burst, "limit", &burst]));
                if let Some(peak) = counting.peak {
                    let octets = u64::from(counting.framing.wire_octets(u32::from(self.mtu)));
                    let octets = octets.max(self.frame()).to_string();
                    root.extend(words(&["peakrate", &format!("{}bit", peak.bps()), "mtu", &octets]));
                }
                vec![root]
            }
            Kind::Htb => {
                root.extend(words(&["htb", "default", "1"]));
                let mut class = words(&["class", "add", "dev", device, "parent", "1:", "classid", "1:1", "htb"]);
                let quantum = counting.framing.wire_octets(u32::from(self.mtu)).to_string();
                class.extend(words(&["rate", &rate, "ceil", &rate, "burst", &burst]));
                class.extend(words(&["cburst", &burst, "quantum", &quantum]));
                vec![root, class]
            }
        };
        let mut queue = words(&["qdisc", "add", "dev", device, "parent", "1:1", "handle", "10:"]);
        queue.extend(limit);
        commands.push(queue);
        commands
    }

    /// How the kernel departs from the link that the scenario means, in words.
    pub(crate) fn departures(&self) -> Vec<String> {
        let counting = self.counting();
        let packet = counting.framing.wire_octets(u32::from(self.mtu));
        let early = counting.rate.time_for(counting.burst).unwrap_or_default();
        let mut said = vec![format!(
            "packets leave as soon as there are tokens, so after a rest {} octets leave at once, up to {} before a link of {} would \
             have sent them",
            counting.burst,
            narrows_units::format_duration(early),
            counting.rate
        )];
        let around = i64::from(packet) - i64::from(self.mtu);
        said.push(match self.bucket {
            Some(_) => "tokens count IP octets, by a size table".to_owned(),
            None => format!("{around} octets are counted around each IP packet, by a size table"),
        });
        match (self.queue_played(), self.bucket, self.kind) {
            (Queue::Octets(_), ..) => said.push(format!(
                "the queue holds the octets of full-size packets with what is counted around them: {}; the packet being sent is not \
                 in it",
                self.limit(&counting).join(" ")
            )),
            (Queue::Packets(_), ..) => said.push(format!("the packet being sent is not in the queue: {}", self.limit(&counting).join(" "))),
            (Queue::Unlimited, ..) => said.push(format!("the queue has an end: {}", self.limit(&counting).join(" "))),
        }
        if self.bucket.is_some() && self.kind == Kind::Htb {
            said.push("htb has no peak rate: a burst leaves as fast as this machine can send it".to_owned());
        }
        said
    }

    fn queue_played(&self) -> Queue {
        self.bucket.and_then(|bucket| bucket.queue).unwrap_or(self.queue)
    }

    /// A full frame as a kernel measures it. TCP hands several segments to a device at once, and
    /// tbf cuts them apart; whatever its size table says, it drops them if one of these frames is
    /// longer than its bucket or its peak's.
    fn frame(&self) -> u64 {
        u64::from(u32::from(self.mtu) + ETHERNET_HEADER)
    }

    fn counting(&self) -> Counting {
        let mtu = u32::from(self.mtu);
        let least = if self.kind == Kind::Tbf { self.frame() } else { 0 };
        match self.bucket {
            None => Counting {
                rate: self.rate,
                burst: self.burst.count().max(least),
                peak: None,
                queue: self.queue,
                framing: self.framing,
            },
            Some(bucket) => Counting {
                rate: bucket.rate,
                burst: bucket.burst.count().max(least),
                peak: ip_rate(self.rate, self.framing, mtu),
                queue: self.queue_played(),
                framing: Framing::BARE,
            },
        }
    }

    /// With a shortest frame the kernel needs a table; a slot for each octet makes it exact. What
    /// the kernel counts anyway needs none, and `tc` refuses one that changes nothing.
    fn size_table(&self, counting: &Counting) -> Vec<String> {
        let mtu = u32::from(self.mtu);
        let around = counting.framing.wire_octets(mtu) - mtu;
        let shortest = counting.framing.wire_octets(0);
        if around == ETHERNET_HEADER && shortest <= around {
            return Vec::new();
        }
        let mut table = words(&["stab", "overhead"]);
        table.push((i64::from(around) - i64::from(ETHERNET_HEADER)).to_string());
        if shortest > around {
            let slots = (counting.framing.wire_octets(mtu) + 1).next_multiple_of(1_024).to_string();
            table.extend(words(&["mpu", &shortest.to_string(), "mtu", &slots, "tsize", &slots]));
        }
        table
    }

    fn limit(&self, counting: &Counting) -> Vec<String> {
        let (mtu, packet) = (u64::from(self.mtu), u64::from(counting.framing.wire_octets(u32::from(self.mtu))));
        match counting.queue {
            Queue::Octets(octets) => {
                // Without the packet that is being sent, and never less than one.
                let waiting = octets.count().saturating_sub(mtu).max(mtu);
                let counted = waiting.saturating_mul(packet).div_ceil(mtu);
                words(&["bfifo", "limit", &counted.min(UNLIMITED_OCTETS).to_string()])
            }
            Queue::Packets(packets) => {
                let waiting = packets.saturating_sub(1).clamp(1, UNLIMITED_PACKETS);
                words(&["pfifo", "limit", &waiting.to_string()])
            }
            Queue::Unlimited => words(&["bfifo", "limit", &UNLIMITED_OCTETS.to_string()]),
        }
    }
}

/// The token bucket, if it shapes and ever binds: behind one that is faster than the link there is
/// the link alone.
fn binding_bucket(hop: &Hop) -> Option<TokenBucket> {
    let bucket = hop.bucket?;
    let link = ip_rate(hop.rate, hop.framing, u32::from(hop.mtu))?;
    (bucket.queue.is_some() && bucket.rate < link).then_some(bucket)
}

/// The rate at which a link carries the IP octets of full-size packets.
fn ip_rate(rate: BitRate, framing: Framing, mtu: u32) -> Option<BitRate> {
    framing.convert(rate, narrows_units::Layer::Wire, narrows_units::Layer::Ip, mtu, false)
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|&word| word.to_owned()).collect()
}

/// Whether the program that does it can be had.
pub(crate) fn have_tc() -> Result<(), WhyNot> {
    let call = Command::new("tc").arg("-V").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status();
    match call {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(WhyNot::NoTc(io::Error::other(format!("tc -V: {status}")))),
        Err(error) => Err(WhyNot::NoTc(error)),
    }
}

/// Sets the shaper up on a device of a node.
pub(crate) fn apply(node: &Node, device: &str, shaper: &Shaper) -> Result<(), LabError> {
    for arguments in shaper.commands(device) {
        let doing = || format!("tc {} in the {}", arguments.join(" "), node.name());
        let output = node
            .run(|| Command::new("tc").args(&arguments).stdin(Stdio::null()).output())?
            .map_err(|source| LabError::kernel(doing(), source))?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
            return Err(LabError::kernel(doing(), io::Error::other(said)));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn commands(hop: Hop) -> Vec<String> {
        let scenario = Scenario::new("shaper").hop(hop).validate().unwrap();
        let segment = Segment { hop: 0, device: None };
        let shaper = Shaper::of(&scenario, PathDirection::Forward, segment).unwrap();
        shaper.commands("eth0").iter().map(|words| words.join(" ")).collect()
    }

    fn hop(mbps: u64, link: Link) -> Hop {
        Hop::rate(BitRate::from_mbps(mbps)).link(link)
    }

    #[test]
    fn tbf_counts_the_wire() {
        let hop = hop(100, Link::Tbf(Burst::OnePacket)).queue(Queue::Packets(50));
        assert_eq!(
            commands(hop),
            [
                "qdisc add dev eth0 root handle 1: stab overhead 24 mpu 84 mtu 2048 tsize 2048 tbf rate 100000000bit burst 1538 \
                 limit 1538",
                "qdisc add dev eth0 parent 1:1 handle 10: pfifo limit 49",
            ]
        );
    }

    #[test]
    fn what_a_kernel_counts_by_itself_needs_no_table() {
        let hop = hop(50, Link::Tbf(Burst::Octets(Octets::new(32_000)))).framing(Framing::fixed(14));
        assert_eq!(commands(hop)[0], "qdisc add dev eth0 root handle 1: tbf rate 50000000bit burst 32000 limit 32000");
    }

    /// Segments of TCP that the kernel cuts apart have 1514 octets, of which the table takes 14.
    #[test]
    fn a_bucket_holds_a_frame_at_least() {
        let hop = hop(50, Link::Tbf(Burst::OnePacket)).framing(Framing::BARE);
        assert!(commands(hop)[0].contains("stab overhead -14 tbf rate 50000000bit burst 1514 "));
    }

    #[test]
    fn htb_has_one_class() {
        let hop = hop(10, Link::Htb(Burst::Octets(Octets::new(4_000))))
            .framing(Framing::BARE)
            .queue(Queue::Octets(Octets::new(30_000)));
        assert_eq!(
            commands(hop),
            [
                "qdisc add dev eth0 root handle 1: stab overhead -14 htb default 1",
                "class add dev eth0 parent 1: classid 1:1 htb rate 10000000bit ceil 10000000bit burst 4000 cburst 4000 quantum 1500",
                "qdisc add dev eth0 parent 1:1 handle 10: bfifo limit 28500",
            ]
        );
    }

    /// A token bucket counts IP octets, and the link behind it is its peak rate: 1500 of 1538
    /// octets of 1 Gbit/s.
    #[test]
    fn a_shaper_is_the_bucket_and_the_link_its_peak() {
        let bucket = TokenBucket {
            rate: BitRate::from_mbps(200),
            burst: Octets::new(64_000),
            queue: Some(Queue::Octets(Octets::new(256_000))),
            timer: std::time::Duration::ZERO,
        };
        assert_eq!(
            commands(hop(1_000, Link::Tbf(Burst::OnePacket)).bucket(bucket)),
            [
                "qdisc add dev eth0 root handle 1: stab overhead -14 tbf rate 200000000bit burst 64000 limit 64000 peakrate \
                 975292588bit mtu 1514",
                "qdisc add dev eth0 parent 1:1 handle 10: bfifo limit 254500",
            ]
        );
        // A bucket that is faster than its link never binds.
        let plain = commands(hop(100, Link::Tbf(Burst::OnePacket)).bucket(bucket));
        assert!(plain[0].contains("rate 100000000bit") && !plain[0].contains("peakrate"), "{plain:?}");
    }

    #[test]
    fn other_links_have_none() {
        for link in [Link::RealTime, Link::Veth] {
            let scenario = Scenario::new("none").hop(hop(10, link)).validate().unwrap();
            let segment = Segment { hop: 0, device: None };
            assert_eq!(Shaper::of(&scenario, PathDirection::Forward, segment), None);
        }
    }
}
