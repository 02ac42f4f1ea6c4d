//! Writes a large capture: `make_capture FILE OCTETS FLOWS [KEPT]`. By default of headers alone, as
//! a capture with a snap length of 96 has them: the most packets that a file of that size can hold.
//! `KEPT`: octets kept of a packet.
#![expect(clippy::print_stdout, reason = "a tool for the terminal")]

use std::fs::File;
use std::io::BufWriter;

use narrows_capture::packet::{LinkType, RawPacket};
use narrows_capture::write::PcapWriter;

const HEADERS: u32 = 66;
const PAYLOAD: u32 = 1_448;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let usage = "make_capture FILE OCTETS FLOWS [KEPT]";
    let (path, octets, flows) = match (args.next(), args.next(), args.next()) {
        (Some(path), Some(octets), Some(flows)) => (path, octets.parse::<u64>()?, flows.parse::<u32>()?),
        _ => return Err(usage.into()),
    };
    let kept = args.next().map_or(Ok(HEADERS), |kept| kept.parse())?.max(HEADERS);
    let file = BufWriter::with_capacity(1 << 20, File::create(path)?);
    let mut writer = PcapWriter::new(file, LinkType::ETHERNET, kept)?;
    let mut sent = vec![0u32; usize::try_from(flows)?];
    let (mut written, mut at_ns, mut packets) = (24u64, 0i64, 0u64);
    // A generator without state to speak of: which flow comes next must not be guessable by caches.
    let mut chance = 88_172_645_463_325_252u64;
    while written < octets {
        chance ^= chance << 13;
        chance ^= chance >> 7;
        chance ^= chance << 17;
        let flow = u32::try_from(chance % u64::from(flows))?;
        let sequence = &mut sent[usize::try_from(flow)?];
        for packet in 0..3 {
            at_ns += 1_000;
            let is_ack = packet == 2;
            let mut frame = frame(flow, *sequence, is_ack, u32::try_from(at_ns / 1_000_000 % 1_000_000_000)?);
            if !is_ack {
                *sequence = sequence.wrapping_add(PAYLOAD);
            }
            let whole_octets = if is_ack { HEADERS } else { HEADERS + PAYLOAD };
            frame.resize(usize::try_from(kept.min(whole_octets))?, 0x5A);
            let raw = RawPacket {
                at_ns: Some(at_ns),
                link: LinkType::ETHERNET,
                octets: &frame,
                whole_octets,
                vlan: None,
                outgoing: None,
            };
            writer.write(&raw)?;
            written += 16 + u64::from(kept.min(whole_octets));
            packets += 1;
        }
    }
    writer.finish()?;
    println!("{packets} packets, {written} octets, {flows} flows");
    Ok(())
}

fn frame(flow: u32, sequence: u32, is_ack: bool, millis: u32) -> Vec<u8> {
    let port = u16::try_from(flow % 50_000).unwrap_or(0) + 1_024;
    let near = (0x0A00_0000 + flow / 50_000, port);
    let remote = (0xC000_0201, 443);
    let (from, to) = if is_ack { (remote, near) } else { (near, remote) };
    let (own, acknowledged) = if is_ack { (1, sequence) } else { (sequence, 1) };
    let ip_octets = 52 + if is_ack { 0 } else { u16::try_from(PAYLOAD).unwrap_or(0) };
    let mut frame = vec![2; 12];
    frame.extend([8, 0, 0x45, 0]);
    frame.extend(ip_octets.to_be_bytes());
    frame.extend([0, 1, 0x40, 0, 60, 6, 0, 0]);
    frame.extend([from.0, to.0].map(u32::to_be_bytes).concat());
    frame.extend([from.1, to.1].map(u16::to_be_bytes).concat());
    frame.extend([own, acknowledged].map(u32::to_be_bytes).concat());
    frame.extend([0x80, 0x10, 0xFF, 0xFF, 0x12, 0x34, 0, 0, 1, 1, 8, 10]);
    frame.extend([millis, millis].map(u32::to_be_bytes).concat());
    frame
}
