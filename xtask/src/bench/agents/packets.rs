//! What packet logs say: which pairs of hosts loaded a place when, and whether two did at once.
//!
//! A log of a host's interface, or of a link, is that of one key: whatever loads in it must have
//! had the key for itself. The hub's record says which runs had leave to load; what no lease covers
//! is judged by what it sent.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::path::Path;

use anyhow::{Context, Result, ensure};

/// One packet: when it passed, between whom, and its IP octets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Packet {
    pub(super) at_us: u64,
    pub(super) source: Ipv4Addr,
    pub(super) target: Ipv4Addr,
    pub(super) octets: u64,
}

/// Two hosts, the lower address first: a run loads both directions.
pub(super) type Pair = (Ipv4Addr, Ipv4Addr);

/// A run by the hub's record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Run {
    pub(super) source: Ipv4Addr,
    pub(super) target: Ipv4Addr,
    pub(super) begin_us: u64,
    pub(super) end_us: u64,
    /// It leased what it loads. Else it is light.
    pub(super) loads: bool,
}

/// A time in which a pair loaded a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Load {
    pub(super) pair: Pair,
    pub(super) begin_us: u64,
    pub(super) end_us: u64,
    pub(super) octets: u64,
}

/// Two pairs that loaded one place at once, and for how long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Overlap {
    pub(super) pairs: [Pair; 2],
    pub(super) us: u64,
}

/// The packets of a capture file as tcpdump writes it: Ethernet, IPv4, microseconds.
pub(super) fn read(path: &Path) -> Result<Vec<Packet>> {
    let octets = std::fs::read(path).with_context(|| path.display().to_string())?;
    ensure!(octets.get(..4) == Some(&MAGIC), "{} is no capture with microseconds", path.display());
    let word = |at: usize| octets.get(at..at + 4).map(|four| u32::from_le_bytes([four[0], four[1], four[2], four[3]]));
    let mut packets = Vec::new();
    let mut at = 24;
    // The last record may be cut: the program was interrupted.
    while let (Some(seconds), Some(micros), Some(kept)) = (word(at), word(at + 4), word(at + 8)) {
        let begin = at + 16;
        at = begin + kept as usize;
        let Some(frame) = octets.get(begin..at) else { break };
        let at_us = u64::from(seconds) * 1_000_000 + u64::from(micros);
        packets.extend(packet(frame, at_us));
    }
    Ok(packets)
}

fn packet(frame: &[u8], at_us: u64) -> Option<Packet> {
    let ip = frame.get(14..34).filter(|_| frame[12..14] == [8, 0])?;
    let address = |at: usize| Ipv4Addr::new(ip[at], ip[at + 1], ip[at + 2], ip[at + 3]);
    let (source, target) = (address(12), address(16));
    let octets = u64::from(u16::from_be_bytes([ip[2], ip[3]]));
    Some(Packet { at_us, source, target, octets })
}

/// What loads: a run that leased its keys, however little the others left it; and whatever else is
/// more than light runs may send, which is 4 MB at once and 20 Mbit/s each
/// (docs/design/protocol.md).
pub(super) fn loads(packets: &[Packet], runs: &[Run]) -> Vec<Load> {
    let (leased, light): (Vec<&Run>, Vec<&Run>) = runs.iter().partition(|run| run.loads);
    let mut loads: Vec<Load> = leased.iter().filter_map(|run| sent(packets, run)).collect();
    let is_leased = |packet: &Packet| leased.iter().any(|run| run.is_of(packet.pair(), packet.at_us, packet.at_us));
    loads.extend(unleased(packets.iter().filter(|packet| !is_leased(packet)), &light));
    loads.sort_by_key(|load| (load.begin_us, load.pair));
    loads
}

/// What a run with leases sent. It begins and ends with a tenth of a second above what its traces
/// and its handshake take. While it waits for its leases, its target may measure the way back.
fn sent(packets: &[Packet], run: &Run) -> Option<Load> {
    let is_its = |packet: &&Packet| packet.source == run.source && run.is_of(packet.pair(), packet.at_us, packet.at_us);
    let parts = parts(packets.iter().filter(is_its)).filter(|part| part.octets > octets_in(TRACES_BPS, PART_US));
    parts.reduce(|all, part| Load { end_us: part.end_us, octets: all.octets + part.octets, ..all })
}

/// Loads that no lease covers. They begin and end with a tenth of a second above the rate of a
/// light run. Each light run of the pair meanwhile had octets of its own.
fn unleased<'a>(packets: impl Iterator<Item = &'a Packet>, light: &[&Run]) -> Vec<Load> {
    let mut loads: Vec<Load> = Vec::new();
    for part in parts(packets).filter(|part| part.octets > octets_in(LIGHT_BPS, PART_US)) {
        match loads.last_mut() {
            Some(last) if last.pair == part.pair && part.begin_us - last.end_us < PAUSE_US => {
                last.end_us = part.end_us;
                last.octets += part.octets;
            }
            _ => loads.push(part),
        }
    }
    loads.retain(|load| {
        let runs = light.iter().filter(|run| run.is_of(load.pair, load.begin_us, load.end_us)).count().max(1) as u64;
        load.octets > runs * (LIGHT_OCTETS + octets_in(LIGHT_BPS, load.end_us - load.begin_us))
    });
    loads
}

/// What each pair sent in each tenth of a second, pair by pair.
fn parts<'a>(packets: impl Iterator<Item = &'a Packet>) -> impl Iterator<Item = Load> {
    let mut parts: BTreeMap<(Pair, u64), Load> = BTreeMap::new();
    for packet in packets {
        let pair = packet.pair();
        let new = Load { pair, begin_us: packet.at_us, end_us: packet.at_us, octets: 0 };
        let part = parts.entry((pair, packet.at_us / PART_US)).or_insert(new);
        part.end_us = part.end_us.max(packet.at_us);
        part.octets += packet.octets;
    }
    parts.into_values()
}

impl Packet {
    fn pair(&self) -> Pair {
        (self.source.min(self.target), self.source.max(self.target))
    }
}

impl Run {
    /// Whether it may have sent of what this pair did in this time.
    fn is_of(&self, pair: Pair, begin_us: u64, end_us: u64) -> bool {
        let own = (self.source.min(self.target), self.source.max(self.target));
        own == pair && self.begin_us <= end_us && begin_us <= self.end_us
    }
}

const fn octets_in(bps: u64, us: u64) -> u64 {
    bps / 8 * us / 1_000_000
}

/// Loads of different pairs that met.
pub(super) fn overlaps(loads: &[Load]) -> Vec<Overlap> {
    let mut overlaps = Vec::new();
    for (at, one) in loads.iter().enumerate() {
        // They are sorted by their begins.
        for other in loads[at + 1..].iter().take_while(|other| other.begin_us < one.end_us) {
            if one.pair != other.pair {
                let us = one.end_us.min(other.end_us) - other.begin_us;
                overlaps.push(Overlap { pairs: [one.pair, other.pair], us });
            }
        }
    }
    overlaps
}

const MAGIC: [u8; 4] = [0xd4, 0xc3, 0xb2, 0xa1];
/// What is looked at together.
const PART_US: u64 = 100_000;
/// A pair that pauses for so long has ended what it did. Longer than TCP waits after a loss,
/// shorter than the time between two runs of one pair.
const PAUSE_US: u64 = 2_000_000;
const LIGHT_OCTETS: u64 = 4_400_000;
const LIGHT_BPS: u64 = 22_000_000;
const TRACES_BPS: u64 = 1_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    fn host(number: u8) -> Ipv4Addr {
        Ipv4Addr::new(10, 0, 0, number)
    }

    /// A run from one time to another at 80 Mbit/s, or at 8.
    fn run(pair: (u8, u8), (begin_s, end_s): (u64, u64), mbps: u64) -> Vec<Packet> {
        let (source, target) = (host(pair.0), host(pair.1));
        let gap_us = 12_000 / mbps;
        let times = (begin_s * 1_000_000..end_s * 1_000_000).step_by(usize::try_from(gap_us).unwrap());
        times.map(|at_us| Packet { at_us, source, target, octets: 1_500 }).collect()
    }

    fn log(runs: &[Vec<Packet>]) -> Vec<Packet> {
        let mut all = runs.concat();
        all.sort_by_key(|packet| packet.at_us);
        all
    }

    #[test]
    fn runs_one_after_the_other_and_light_ones_beside_them_are_right() {
        // The first one pauses for a second, and is traced when it is over.
        let first = [run((1, 2), (0, 3), 80), run((1, 2), (4, 5), 80), run((1, 2), (5, 7), 1)];
        let packets = log(&[first.concat(), run((1, 3), (6, 11), 80), run((1, 4), (2, 8), 8)]);
        let loads = loads(&packets, &[]);
        assert_eq!(loads.iter().map(|load| load.pair).collect::<Vec<_>>(), [(host(1), host(2)), (host(1), host(3))]);
        assert_eq!(overlaps(&loads), []);
    }

    /// What a fleet without leases would do.
    #[test]
    fn the_checker_catches_runs_that_meet() {
        let packets = log(&[run((1, 2), (0, 5), 80), run((1, 3), (4, 9), 80), run((1, 4), (20, 25), 80)]);
        let found = overlaps(&loads(&packets, &[]));
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].pairs, [(host(1), host(2)), (host(1), host(3))]);
        assert!((990_000..=1_000_000).contains(&found[0].us), "{found:?}");
        // One within the other, and one that meets two.
        let packets = log(&[run((1, 2), (0, 10), 80), run((3, 4), (2, 5), 80), run((5, 6), (4, 8), 80)]);
        assert_eq!(overlaps(&loads(&packets, &[])).len(), 3);
    }

    /// A run of the record.
    fn said((one, other): (u8, u8), (begin_s, end_s): (u64, u64), loads: bool) -> Run {
        Run { source: host(one), target: host(other), begin_us: begin_s * 1_000_000, end_us: end_s * 1_000_000, loads }
    }

    /// Three at once on one link: two of them sent no more than a light run.
    #[test]
    fn a_run_that_the_others_starved_met_them_too() {
        let packets = log(&[run((1, 2), (0, 5), 80), run((3, 4), (0, 5), 6), run((5, 6), (0, 5), 6)]);
        assert_eq!(overlaps(&loads(&packets, &[])), []);
        let runs = [(1, 2), (3, 4), (5, 6)].map(|pair| said(pair, (0, 6), true));
        assert_eq!(overlaps(&loads(&packets, &runs)).len(), 3);
        // What was traced and sent nothing yet has not begun.
        let packets = log(&[run((1, 2), (0, 5), 80), run((3, 4), (5, 10), 80)]);
        let runs = [said((1, 2), (0, 6), true), said((3, 4), (3, 11), true)];
        assert_eq!(overlaps(&loads(&packets, &runs)), []);
        // Nor while its target measures the way back.
        let packets = log(&[run((1, 2), (0, 5), 80), run((4, 3), (2, 4), 16), run((3, 4), (5, 10), 80)]);
        assert_eq!(overlaps(&loads(&packets, &runs)), []);
        // A run without a lease that sends like a load is one, whatever the record says of it.
        let packets = log(&[run((1, 2), (0, 5), 80), run((3, 4), (2, 7), 80)]);
        let runs = [said((1, 2), (0, 6), true), said((3, 4), (0, 9), false)];
        assert_eq!(overlaps(&loads(&packets, &runs)).len(), 1);
    }

    /// Each of two light runs in a row may send 4 MB at once.
    #[test]
    fn light_runs_one_after_the_other_are_no_load() {
        let mut looks = log(&[run((3, 4), (1, 2), 32), run((3, 4), (2, 3), 32)]);
        let packets = log(&[run((1, 2), (0, 5), 80), looks.clone()]);
        assert_eq!(overlaps(&loads(&packets, &[])), []);
        for packet in &mut looks {
            packet.octets += 500;
        }
        let packets = log(&[run((1, 2), (0, 5), 80), looks]);
        assert_eq!(overlaps(&loads(&packets, &[])).len(), 1);
        let runs = [said((3, 4), (1, 2), false), said((3, 4), (2, 3), false)];
        assert_eq!(overlaps(&loads(&packets, &runs)), []);
    }

    #[test]
    fn a_capture_file_is_read_to_its_last_whole_record() {
        let mut file = MAGIC.to_vec();
        file.extend([0; 20]);
        let mut frame = [0; 34];
        frame[12] = 8;
        frame[16..18].copy_from_slice(&1_500_u16.to_be_bytes());
        frame[26..30].copy_from_slice(&host(9).octets());
        frame[30..34].copy_from_slice(&host(2).octets());
        for (kept, whole) in [(34_u32, true), (34, false)] {
            for word in [7_u32, 5, kept, 1_514] {
                file.extend(word.to_le_bytes());
            }
            file.extend(&frame[..if whole { 34 } else { 20 }]);
        }
        let path = std::env::temp_dir().join(format!("narrows-packets-{}.pcap", std::process::id()));
        std::fs::write(&path, &file).unwrap();
        let packets = read(&path);
        std::fs::remove_file(&path).unwrap();
        let expected = Packet { at_us: 7_000_005, source: host(9), target: host(2), octets: 1_500 };
        assert_eq!(packets.unwrap(), [expected]);
    }
}
