//! Captures that are damaged by chance, the same ones every time: nothing panics, nothing grows,
//! and what is whole stays readable.
use crate::common;

use common::{analyse, connection, options, pcap};
use narrows_capture::file::CaptureReader;
use narrows_stat::SplitMix64;

/// A value-stable generator.
struct Chance(SplitMix64);

impl Chance {
    fn below(&mut self, most: usize) -> usize {
        usize::try_from(self.0.next_u64() % u64::try_from(most.max(1)).unwrap()).unwrap()
    }
}

/// The same packets as blocks.
fn blocks(file: &[u8]) -> Vec<u8> {
    let block = |kind: u32, body: &[u8]| {
        let length = u32::try_from(12 + body.len()).unwrap();
        [&kind.to_le_bytes()[..], &length.to_le_bytes(), body, &length.to_le_bytes()].concat()
    };
    let section = [0x1A2B_3C4Du32.to_le_bytes(), [1, 0, 0, 0], [255; 4], [255; 4]].concat();
    let interface = [&[1u8, 0, 0, 0, 96, 0, 0, 0][..], &[9, 0, 1, 0, 9, 0, 0, 0]].concat();
    let mut all = [block(0x0A0D_0D0A, &section), block(1, &interface)].concat();
    let mut reader = CaptureReader::open(file).unwrap();
    while let Some(raw) = reader.next_packet() {
        let ticks = u64::try_from(raw.at_ns.unwrap()).unwrap();
        let kept = u32::try_from(raw.octets.len()).unwrap();
        let high = u32::try_from(ticks >> 32).unwrap();
        let low = u32::try_from(ticks & 0xFFFF_FFFF).unwrap();
        let mut body = [0, high, low, kept, raw.whole_octets].map(u32::to_le_bytes).concat();
        body.extend(raw.octets);
        body.resize(body.len().next_multiple_of(4), 0);
        all.extend(block(6, &body));
    }
    all
}

fn damaged(file: &[u8], chance: &mut Chance) -> Vec<u8> {
    let mut file = file.to_vec();
    for _ in 0..=chance.below(6) {
        let at = chance.below(file.len());
        match chance.below(6) {
            0 => file.truncate(at.max(1)),
            1 => file[at] = u8::try_from(chance.0.next_u64() & 0xFF).unwrap(),
            2 => file[at] ^= 1 << chance.below(8),
            3 => {
                let end = (at + chance.below(200)).min(file.len());
                file.drain(at..end);
            }
            4 => {
                let word = [0u32, 1, 0x7FFF_FFFF, u32::MAX, 262_144, 12][chance.below(6)].to_le_bytes();
                let end = (at + 4).min(file.len());
                file[at..end].copy_from_slice(&word[..end - at]);
            }
            _ => {
                let end = (at + chance.below(500)).min(file.len());
                let again = file[at..end].to_vec();
                let to = chance.below(file.len());
                file.splice(to..to, again);
            }
        }
        if file.is_empty() {
            file.push(0);
        }
    }
    file
}

#[test]
fn damage_of_any_kind_harms_nothing_else() {
    let whole = pcap(&[connection(40_000, 0, 60), connection(40_001, 500, 30)].concat());
    let mut chance = Chance(SplitMix64::new(7));
    for file in [whole.clone(), blocks(&whole)] {
        let packets = analyse(&file, options()).unwrap().counts.packets;
        let mut read = 0;
        for _ in 0..1_500 {
            let Some(findings) = analyse(&damaged(&file, &mut chance), options()) else {
                continue;
            };
            assert!(findings.flows.len() <= 200, "{}", findings.flows.len());
            read += findings.counts.packets;
        }
        // Most files are damaged at a few places, so most of them is there.
        assert!(read > 1_500 * packets / 3, "{read} of {packets} each");
    }
}

#[test]
fn one_flipped_bit_costs_few_packets() {
    let whole = pcap(&connection(40_000, 0, 60));
    let mut chance = Chance(SplitMix64::new(11));
    for file in [whole.clone(), blocks(&whole)] {
        let packets = analyse(&file, options()).unwrap().counts.packets;
        for _ in 0..1_000 {
            // Behind the head: what it says holds for all packets.
            let at = 100 + chance.below(file.len() - 100);
            let mut flipped = file.clone();
            flipped[at] ^= 1 << chance.below(8);
            let counts = analyse(&flipped, options()).unwrap().counts;
            // A length that grew by up to 1024 octets, less than its packet had, takes as many
            // records of 70 with it, and two more until they line up again.
            assert!(counts.packets + 17 >= packets && counts.packets <= packets + 2, "{at}: {}", counts.packets);
        }
    }
}

#[test]
fn noise_is_no_capture_and_noise_behind_a_head_is_damage() {
    let mut chance = Chance(SplitMix64::new(13));
    for round in 0..300 {
        let noise: Vec<u8> =
            (0..chance.below(5_000) + 30).map(|_| u8::try_from(chance.0.next_u64() & 0xFF).unwrap()).collect();
        assert!(analyse(&noise, options()).is_none(), "{round}");
        let mut file = pcap(&[]);
        file.extend(&noise);
        let findings = analyse(&file, options()).unwrap();
        assert!(findings.flows.is_empty());
    }
}
