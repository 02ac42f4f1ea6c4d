//! Captures made up packet by packet.

use narrows_capture::file::CaptureReader;
use narrows_capture::packet::{LinkType, RawPacket};
use narrows_capture::write::PcapWriter;
use narrows_capture::{Analysis, Findings, Options};
use narrows_diagnose::passive::PASSIVE;
use narrows_probe::RawParams;

/// One TCP packet to be.
#[derive(Clone, Copy)]
pub(crate) struct Tcp {
    pub(crate) at_us: i64,
    pub(crate) from: ([u8; 4], u16),
    pub(crate) to: ([u8; 4], u16),
    pub(crate) sequence: u32,
    pub(crate) acknowledgement: u32,
    pub(crate) flags: u8,
    pub(crate) payload: u16,
    pub(crate) hop_limit: u8,
    pub(crate) ip_id: u16,
}

pub(crate) const SYN: u8 = 2;
pub(crate) const ACK: u8 = 16;
pub(crate) const FIN: u8 = 1;

impl Tcp {
    pub(crate) fn frame(&self) -> Vec<u8> {
        let mut frame = vec![2; 12];
        frame.extend([8, 0, 0x45, 0]);
        frame.extend((40 + self.payload).to_be_bytes());
        frame.extend(self.ip_id.to_be_bytes());
        frame.extend([0x40, 0, self.hop_limit, 6, 0, 0]);
        frame.extend([self.from.0, self.to.0].concat());
        frame.extend([self.from.1, self.to.1].map(u16::to_be_bytes).concat());
        frame.extend([self.sequence, self.acknowledgement].map(u32::to_be_bytes).concat());
        frame.extend([0x50, self.flags, 0xFF, 0xFF, 0x12, 0x34, 0, 0]);
        frame
    }

    pub(crate) fn answer(&self, after_us: i64, flags: u8) -> Self {
        let taken = u32::from(self.payload) + u32::from(self.flags & (SYN | FIN) != 0);
        Self {
            at_us: self.at_us + after_us,
            from: self.to,
            to: self.from,
            sequence: self.acknowledgement,
            acknowledgement: self.sequence.wrapping_add(taken),
            flags,
            payload: 0,
            hop_limit: 64,
            ip_id: 0,
        }
    }
}

/// A connection that begins, sends `packets` and ends, seen at the sender: the peer is 10 ms
/// away.
pub(crate) fn connection(port: u16, begins_us: i64, packets: u32) -> Vec<Tcp> {
    let syn = Tcp {
        at_us: begins_us,
        from: ([10, 0, 0, 1], port),
        to: ([10, 0, 0, 2], 5_201),
        sequence: u32::MAX - 5_000,
        acknowledgement: 0,
        flags: SYN,
        payload: 0,
        hop_limit: 64,
        ip_id: 1,
    };
    let syn_ack = Tcp { sequence: 77, hop_limit: 60, ..syn.answer(10_000, SYN | ACK) };
    let ack = syn_ack.answer(20, ACK);
    let mut all = vec![syn, syn_ack, ack];
    let mut sequence = syn.sequence.wrapping_add(1);
    for index in 0..packets {
        let data = Tcp {
            at_us: ack.at_us + 1 + 1_000 * i64::from(index),
            sequence,
            payload: 1_460,
            ip_id: u16::try_from(index % 60_000).unwrap() + 2,
            ..ack
        };
        sequence = sequence.wrapping_add(1_460);
        all.push(data);
        all.push(Tcp { hop_limit: 60, ..data.answer(10_000, ACK) });
    }
    all.sort_by_key(|packet| packet.at_us);
    all
}

/// A pcap file of these packets.
pub(crate) fn pcap(packets: &[Tcp]) -> Vec<u8> {
    let mut writer = PcapWriter::new(Vec::new(), LinkType::ETHERNET, 96).unwrap();
    for packet in packets {
        let frame = packet.frame();
        let raw = RawPacket {
            at_ns: Some(packet.at_us * 1_000),
            link: LinkType::ETHERNET,
            octets: &frame,
            whole_octets: u32::from(packet.payload) + 54,
            vlan: None,
            outgoing: None,
        };
        writer.write(&raw).unwrap();
    }
    writer.finish().unwrap()
}

/// With every passive method.
pub(crate) fn options() -> Options {
    Options { methods: PASSIVE.iter().map(|method| (*method, RawParams::new())).collect(), ..Options::default() }
}

/// Reads a file to its end, or not at all.
pub(crate) fn analyse(file: &[u8], options: Options) -> Option<Findings> {
    let mut reader = CaptureReader::open(file).ok()?;
    let mut analysis = Analysis::new(options).unwrap();
    while let Some(raw) = reader.next_packet() {
        analysis.see(&raw);
    }
    analysis.set_dropped(reader.dropped());
    analysis.set_resolution(reader.resolution_ns());
    Some(analysis.finish())
}
