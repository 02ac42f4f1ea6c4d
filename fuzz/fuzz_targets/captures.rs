//! Captures: any octets are a capture, a damaged one or none; what can be read becomes flows, and
//! every passive method has an answer to each, in bounded memory. The same octets as packets of
//! every link type, and as a filter.
#![no_main]

use narrows_capture::decode::decode;
use narrows_capture::file::CaptureReader;
use narrows_capture::filter::{Filter, Tags};
use narrows_capture::flows::FlowLimits;
use narrows_capture::packet::{LinkType, RawPacket};
use narrows_capture::{Analysis, Options};
use narrows_probe::RawParams;
use narrows_diagnose::passive::PASSIVE;
use libfuzzer_sys::fuzz_target;

const LINKS: [u32; 13] = [0, 1, 9, 12, 50, 51, 101, 105, 108, 113, 127, 229, 276];

fuzz_target!(|octets: &[u8]| {
    read(octets);
    // Behind a head the records themselves are reached.
    let head = [0xD4, 0xC3, 0xB2, 0xA1, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 101, 0, 0, 0];
    read(&[&head, octets].concat());
    let section = [
        &[0x0A, 0x0D, 0x0D, 0x0A, 28, 0, 0, 0, 0x4D, 0x3C, 0x2B, 0x1A, 1, 0, 0, 0][..],
        &[0xFF; 8],
        &[28, 0, 0, 0, 1, 0, 0, 0, 20, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 20, 0, 0, 0],
    ];
    read(&[&section.concat(), octets].concat());
    let program = std::str::from_utf8(octets)
        .ok()
        .and_then(|text| Filter::parse(text).ok()?.compile(LinkType::ETHERNET, Tags::InFrames, 1).ok());
    for link in LINKS.map(LinkType::new) {
        let raw = RawPacket {
            at_ns: Some(0),
            link,
            octets,
            whole_octets: u32::try_from(octets.len()).unwrap_or(u32::MAX),
            vlan: None,
            outgoing: None,
        };
        let _ = decode(&raw);
        if let Some(program) = &program {
            let _ = program.matches(&raw);
        }
    }
});

fn read(file: &[u8]) {
    let Ok(mut reader) = CaptureReader::open(file) else { return };
    let limits = FlowLimits { live: 4, held_octets: 1 << 20, min_packets: 1 };
    let methods = PASSIVE.iter().map(|method| (*method, RawParams::new())).collect();
    let options = Options { methods, limits, most_flows: 8, only: Vec::new() };
    let Ok(mut analysis) = Analysis::new(options) else { return };
    while let Some(raw) = reader.next_packet() {
        analysis.see(&raw);
    }
    let findings = analysis.finish();
    assert!(findings.flows.len() <= 8);
}
