//! Files of both kinds, whole and broken.

use std::io::Write;

use super::*;

type Packets = Vec<(Option<i64>, u32, Vec<u8>, u32, Option<bool>)>;

fn read(file: &[u8]) -> (Packets, Damages, u64) {
    let mut reader = CaptureReader::open(file).unwrap();
    let mut packets = Vec::new();
    while let Some(raw) = reader.next_packet() {
        packets.push((raw.at_ns, raw.link.number(), raw.octets.to_vec(), raw.whole_octets, raw.outgoing));
    }
    (packets, reader.damages().clone(), reader.dropped())
}

fn stamps(file: &[u8]) -> Vec<Option<i64>> {
    read(file).0.into_iter().map(|packet| packet.0).collect()
}

/// A classic file; `word` gives the order.
fn pcap(
    magic: u32,
    word: fn(u32) -> [u8; 4],
    half: fn(u16) -> [u8; 2],
    extra: usize,
    records: &[(u32, u32, &[u8])],
) -> Vec<u8> {
    let mut file = word(magic).to_vec();
    file.extend([half(2), half(4)].concat());
    for field in [0, 0, 65_535, 1] {
        file.extend(word(field));
    }
    for (seconds, fraction, octets) in records {
        let kept = u32::try_from(octets.len()).unwrap();
        for field in [*seconds, *fraction, kept, kept + 100] {
            file.extend(word(field));
        }
        file.extend(vec![0; extra]);
        file.extend(*octets);
    }
    file
}

fn little(magic: u32, records: &[(u32, u32, &[u8])]) -> Vec<u8> {
    pcap(magic, u32::to_le_bytes, u16::to_le_bytes, 0, records)
}

fn hundred() -> Vec<u8> {
    let octets: Vec<Vec<u8>> = (0..100u8).map(|index| vec![index; 60]).collect();
    let records: Vec<(u32, u32, &[u8])> =
        (0..).zip(&octets).map(|(index, octets)| (1_000, index, octets.as_slice())).collect();
    little(0xA1B2_C3D4, &records)
}

#[test]
fn classic_files_of_every_order_and_unit() {
    let records: [(u32, u32, &[u8]); 2] = [(1, 5, b"one"), (2, 999_999, b"three")];
    let micro = [Some(1_000_005_000), Some(2_999_999_000)];
    let nano = [Some(1_000_000_005), Some(2_000_999_999)];
    let big = |magic| pcap(magic, u32::to_be_bytes, u16::to_be_bytes, 0, &records);
    assert_eq!(stamps(&little(0xA1B2_C3D4, &records)), micro);
    assert_eq!(stamps(&big(0xA1B2_C3D4)), micro);
    assert_eq!(stamps(&little(0xA1B2_3C4D, &records)), nano);
    assert_eq!(stamps(&big(0xA1B2_3C4D)), nano);
    let modified = pcap(0xA1B2_CD34, u32::to_le_bytes, u16::to_le_bytes, 8, &records);
    let (packets, damages, _) = read(&modified);
    assert_eq!(damages.count(), 0);
    assert_eq!(packets[1], (micro[1], 1, b"three".to_vec(), 105, None));
}

#[test]
fn compressed_files_are_read_and_their_damage_reported() {
    let file = hundred();
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(&file).unwrap();
    let packed = encoder.finish().unwrap();
    assert_eq!(read(&packed).0, read(&file).0);
    let (packets, damages, _) = read(&packed[..packed.len() - 30]);
    assert!(packets.len() < 100 && damages.count() == 1, "{damages:?}");
    assert!(matches!(damages.first()[0].fault, Fault::Reading(_)), "{damages:?}");
}

#[test]
fn zstd_is_read_frame_by_frame_and_its_damage_reported() {
    use ruzstd::encoding::{CompressionLevel, compress_to_vec};
    let file = hundred();
    let packed = |part: &[u8]| compress_to_vec(part, CompressionLevel::Fastest);
    let whole = packed(&file);
    assert_eq!(read(&whole).0, read(&file).0);
    // Two frames, cut within a record, and between them one that holds something else.
    let other = [&[0x5A, 0x2A, 0x4D, 0x18, 3, 0, 0, 0][..], b"abc"].concat();
    let several = [packed(&file[..1_000]), other, packed(&file[1_000..])].concat();
    let (packets, damages, _) = read(&several);
    assert_eq!((packets, damages.count()), (read(&file).0, 0));
    let cut = [packed(&file[..1_000]), packed(&file[1_000..])[..20].to_vec()].concat();
    let (packets, damages, _) = read(&cut);
    assert!(!packets.is_empty() && packets.len() < 100, "{}", packets.len());
    assert!(matches!(damages.first()[0].fault, Fault::Reading(_)), "{damages:?}");
    let behind = [whole.as_slice(), b"what is this"].concat();
    let (packets, damages, _) = read(&behind);
    assert_eq!((packets.len(), damages.count()), (100, 1), "{damages:?}");
    let open = CaptureReader::open(&whole[..5]).map(|_| ());
    assert!(matches!(open, Err(OpenError::Reading(_))), "{open:?}");
}

#[test]
fn what_is_no_capture_is_named() {
    let open = |file: &[u8]| CaptureReader::open(file).map(|_| ()).unwrap_err();
    assert_eq!(open(b""), OpenError::Empty);
    assert_eq!(open(b"hello, world, how are you?"), OpenError::NotACapture);
    assert_eq!(open(b"x"), OpenError::NotACapture);
    assert_eq!(open(&hundred()[..20]), OpenError::NoHead { octets: 20 });
    assert_eq!(open(&[0x0A, 0x0D, 0x0D, 0x0A, 1]), OpenError::NoHead { octets: 5 });
    assert_eq!(open(&[0xFD, b'7', b'z', b'X', b'Z', 0]), OpenError::Compressed { with: "xz" });
    assert_eq!(open(b"snoop\0\0\0\0\0\0\x02"), OpenError::OtherKind { kind: "snoop" });
    let mut old = hundred();
    old[4] = 1;
    assert_eq!(open(&old), OpenError::Version { major: 1, minor: 4 });
}

#[test]
fn a_file_cut_anywhere_keeps_what_came_before() {
    let file = hundred();
    let record = 16 + 60;
    for end in 24..file.len() {
        let (packets, damages, _) = read(&file[..end]);
        let whole = (end - 24) / record;
        assert_eq!(packets.len(), whole);
        let clean = (end - 24) % record == 0;
        assert_eq!(damages.count(), u64::from(!clean), "{end}");
        if !clean {
            let damage = &damages.first()[0];
            assert_eq!(damage.fault, Fault::Truncated);
            let place = u64::try_from(24 + whole * record).unwrap();
            assert_eq!((damage.octet, damage.packet), (place, whole as u64));
        }
    }
}

#[test]
fn behind_a_broken_record_reading_goes_on() {
    let mut file = hundred();
    let record = 16 + 60;
    // The length of record 10.
    let at = 24 + 10 * record + 8;
    file[at..at + 4].copy_from_slice(&u32::MAX.to_le_bytes());
    let (packets, damages, _) = read(&file);
    assert_eq!(damages.count(), 1);
    assert_eq!(damages.first()[0].fault, Fault::RecordLength { octets: u64::from(u32::MAX) });
    assert_eq!((damages.first()[0].packet, damages.skipped_octets()), (10, record as u64));
    let firsts: Vec<u8> = packets.iter().map(|packet| packet.2[0]).collect();
    let expected: Vec<u8> = (0..100).filter(|index| *index != 10).collect();
    assert_eq!(firsts, expected);
}

#[test]
fn a_tail_of_zeros_is_one_damage() {
    let mut file = hundred();
    file.extend(vec![0; 3_000_000]);
    let (packets, damages, _) = read(&file);
    assert_eq!((packets.len(), damages.count()), (100, 1));
    assert_eq!(damages.skipped_octets(), 3_000_000);
}

/// Blocks in an order of octets.
struct Ng {
    big: bool,
    file: Vec<u8>,
}

impl Ng {
    fn new(big: bool) -> Self {
        let mut file = Self { big, file: Vec::new() };
        let body = [file.word(0x1A2B_3C4D), file.halves(1, 0), [0xFF; 4], [0xFF; 4]].concat();
        file.block(0x0A0D_0D0A, &body);
        file
    }

    fn word(&self, value: u32) -> [u8; 4] {
        if self.big { value.to_be_bytes() } else { value.to_le_bytes() }
    }

    fn halves(&self, a: u16, b: u16) -> [u8; 4] {
        let half = |value: u16| {
            if self.big { value.to_be_bytes() } else { value.to_le_bytes() }
        };
        [half(a), half(b)].concat().try_into().unwrap()
    }

    fn option(&self, code: u16, value: &[u8]) -> Vec<u8> {
        let mut option = self.halves(code, u16::try_from(value.len()).unwrap()).to_vec();
        option.extend(value);
        option.resize(option.len().next_multiple_of(4), 0);
        option
    }

    fn block(&mut self, kind: u32, body: &[u8]) {
        let length = u32::try_from(12 + body.len()).unwrap();
        let words = [kind, length].map(|value| self.word(value)).concat();
        self.file.extend(words);
        self.file.extend(body);
        self.file.extend(self.word(length));
    }

    fn interface(&mut self, link: u16, options: &[(u16, &[u8])]) {
        let mut body = [self.halves(link, 0), self.word(96)].concat();
        for (code, value) in options {
            body.extend(self.option(*code, value));
        }
        self.block(1, &body);
    }

    fn packet(&mut self, interface: u32, ticks: u64, octets: &[u8], flags: Option<u32>) {
        let kept = u32::try_from(octets.len()).unwrap();
        let high = u32::try_from(ticks >> 32).unwrap();
        let low = u32::try_from(ticks & 0xFFFF_FFFF).unwrap();
        let mut body = [interface, high, low, kept, kept + 7].map(|value| self.word(value)).concat();
        body.extend(octets);
        body.resize(body.len().next_multiple_of(4), 0);
        // A comment before the flags: options are walked, not assumed.
        if let Some(flags) = flags {
            body.extend(self.option(1, b"hello"));
            body.extend(self.option(2, &self.word(flags)));
            body.extend(self.option(0, b""));
        }
        self.block(6, &body);
    }
}

#[test]
fn blocks_of_either_order_with_units_offsets_and_several_sections() {
    for big in [false, true] {
        let mut ng = Ng::new(big);
        let offset = if big { 100i64.to_be_bytes() } else { 100i64.to_le_bytes() };
        ng.interface(1, &[]);
        ng.interface(101, &[(9, &[9]), (14, &offset)]);
        // A binary unit: 2^-10 s.
        ng.interface(113, &[(9, &[0x8A])]);
        ng.packet(0, 1_000_001, b"abcde", Some(2));
        ng.packet(1, 5_000_000_007, b"f", Some(1));
        ng.packet(2, 1_536, b"", None);
        ng.block(4, &[0; 40]);
        let simple = [ng.word(500).to_vec(), vec![9; 96]].concat();
        ng.block(3, &simple);
        let statistics = [[2, 0, 0].map(|value| ng.word(value)).concat(), {
            let dropped = if big { 17u64.to_be_bytes() } else { 17u64.to_le_bytes() };
            ng.option(5, &dropped)
        }]
        .concat();
        ng.block(5, &statistics);
        let mut second = Ng::new(!big);
        second.interface(1, &[(9, &[3])]);
        second.packet(0, 9_999, b"last", None);
        ng.file.extend(second.file);
        let (packets, damages, dropped) = read(&ng.file);
        assert_eq!((damages.count(), dropped), (0, 17), "{damages:?}");
        assert_eq!(
            packets,
            [
                (Some(1_000_001_000), 1, b"abcde".to_vec(), 12, Some(true)),
                (Some(105_000_000_007), 101, b"f".to_vec(), 8, Some(false)),
                (Some(1_500_000_000), 113, b"".to_vec(), 7, None),
                (None, 1, vec![9; 96], 500, None),
                (Some(9_999_000_000), 1, b"last".to_vec(), 11, None),
            ]
        );
    }
}

#[test]
fn broken_blocks_are_passed_over_one_by_one() {
    let mut ng = Ng::new(false);
    ng.interface(1, &[]);
    ng.packet(0, 1, b"one", None);
    // No such interface; a packet longer than its block; a stamp beyond all time.
    ng.packet(7, 2, b"two", None);
    let long = [0, 0, 3, 4_000, 4_000].map(u32::to_le_bytes).concat();
    ng.block(6, &long);
    ng.packet(0, u64::MAX, b"never", None);
    ng.packet(0, 4, b"four", None);
    // A block whose two lengths differ, with a whole one behind it.
    let at = ng.file.len() + 4;
    ng.packet(0, 5, b"five", None);
    ng.file[at] = 40;
    ng.packet(0, 6, b"six", None);
    let (packets, damages, _) = read(&ng.file);
    let texts: Vec<&[u8]> = packets.iter().map(|packet| packet.2.as_slice()).collect();
    assert_eq!(texts, [b"one".as_slice(), b"four", b"six"]);
    let faults: Vec<&Fault> = damages.first().iter().map(|damage| &damage.fault).collect();
    assert_eq!(
        faults,
        [
            &Fault::Interface { interface: 7 },
            &Fault::RecordLength { octets: 4_000 },
            &Fault::Stamp,
            &Fault::BlockLength { octets: 40 },
        ]
    );
}

/// A reader that gives a few octets at a time.
struct Dripping<'a>(&'a [u8], usize);

impl Read for Dripping<'_> {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        self.1 = self.1 * 7 % 11 + 1;
        let octets = self.1.min(into.len()).min(self.0.len());
        into[..octets].copy_from_slice(&self.0[..octets]);
        self.0 = &self.0[octets..];
        Ok(octets)
    }
}

#[test]
fn how_a_file_arrives_does_not_matter() {
    let file = hundred();
    let mut reader = CaptureReader::open(Dripping(&file, 1)).unwrap();
    let mut count = 0;
    while reader.next_packet().is_some() {
        count += 1;
    }
    assert_eq!((count, reader.damages().count()), (100, 0));
}
