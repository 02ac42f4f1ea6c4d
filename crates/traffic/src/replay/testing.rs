//! Captures made for tests.

use std::io::Write;

/// An IPv4 packet of this length from 10.0.0.`from` to 10.0.0.9, of which only the header is kept,
/// behind an Ethernet header.
pub(super) fn frame(ip_octets: u16, from: u8) -> Vec<u8> {
    let mut data = vec![0; 12];
    data.extend([0x81, 0x00, 0x00, 0x05, 0x08, 0x00]);
    data.extend([0x45, 0]);
    data.extend(ip_octets.to_be_bytes());
    data.extend([0; 8]);
    data.extend([10, 0, 0, from, 10, 0, 0, 9]);
    data
}

pub(super) fn pcap(packets: &[(u32, u32, Vec<u8>)], nanos: bool) -> Vec<u8> {
    let magic: u32 = if nanos { 0xa1b2_3c4d } else { 0xa1b2_c3d4 };
    let mut file = magic.to_le_bytes().to_vec();
    file.extend([2, 0, 4, 0]);
    file.extend([0; 8]);
    file.extend(65_535u32.to_le_bytes());
    file.extend(1u32.to_le_bytes());
    for (seconds, parts, data) in packets {
        let length = u32::try_from(data.len()).unwrap();
        for word in [*seconds, *parts, length, 2000] {
            file.extend(word.to_le_bytes());
        }
        file.extend(data);
    }
    file
}

pub(super) fn written(content: &[u8]) -> tempfile::NamedTempFile {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(content).unwrap();
    file.flush().unwrap();
    file
}

/// A capture of packets of these lengths at these microseconds.
pub(crate) fn capture(packets: &[(u32, u16)]) -> tempfile::NamedTempFile {
    let frames: Vec<_> = packets.iter().map(|&(at, octets)| (9, at, frame(octets, 1))).collect();
    written(&pcap(&frames, false))
}
