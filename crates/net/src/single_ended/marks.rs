//! The octets of the probes that other hosts' programs and kernels answer, and how their answers
//! are told from anybody else's.
//!
//! Every packet carries what nobody off the path can guess: 64 random bits (ICMP, UDP), the
//! sender's stamp in 64 bits (STAMP), ports and sequence number (TCP, 32 bits). An answer that does
//! not bring them back is not looked at any further.

use std::net::IpAddr;

use narrows_packet::checksum::Sum;
use narrows_packet::icmp::{self, ICMP_OCTETS, Message};
use narrows_packet::ip::IpHeader;
use narrows_packet::tcp::{TCP_OCTETS, TcpHeader};
use narrows_packet::udp;
use narrows_wire::Psk;
use narrows_wire::stamp::{self, ReflectedPacket, SessionPacket, StampTime};

/// Random mark, train and position.
pub(super) const MARK_OCTETS: usize = 16;

/// What the packets of one train carry.
#[derive(Debug, Clone)]
pub(super) struct Marks {
    pub(super) form: Form,
    /// Packets of the train.
    pub(super) count: u32,
}

/// What they are.
#[derive(Debug, Clone)]
pub(super) enum Form {
    /// ICMP echo requests. `checksum`: this program computes it, and sets the identifier.
    Icmp { mark: Mark, ipv6: bool, identifier: u16, checksum: bool },
    /// UDP datagrams.
    Udp { mark: Mark },
    /// STAMP packets, numbered from `first`.
    Stamp { first: u32, packet: SessionPacket, key: Option<Psk> },
    /// SYNs, each from a port of its own unless they must be of one flow.
    Tcp { one_port: bool, near: IpAddr, remote: IpAddr, remote_port: u16, first_port: u16, first_sequence: u32 },
}

/// Nobody else's packets, and which train.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Mark {
    pub(super) tag: [u8; 8],
    pub(super) id: u32,
}

/// What the remote host said in an answer that is its own packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Echo {
    /// Position in the train.
    pub(super) seq: u32,
    /// When the remote host had received the packet, on its clock.
    pub(super) turned_ns: Option<i64>,
    /// How long it then took to answer.
    pub(super) residence_ns: Option<i64>,
    /// By how much its own count of packets is behind the sender's: so many never reached it. Zero
    /// where it keeps none.
    pub(super) behind: u32,
    /// What it says of its clock.
    pub(super) clock: Option<stamp::ErrorEstimate>,
}

/// What a quote in an ICMP error says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Quote {
    /// It is this packet of the train.
    Packet(u32),
    /// It is one of an earlier train.
    Late,
    /// It is none of ours.
    Foreign,
    /// It quotes too little to tell.
    Short,
}

impl Mark {
    fn write(self, seq: u32, octets: &mut [u8]) {
        if let Some(place) = octets.first_chunk_mut::<MARK_OCTETS>() {
            place[..8].copy_from_slice(&self.tag);
            place[8..12].copy_from_slice(&self.id.to_be_bytes());
            place[12..].copy_from_slice(&seq.to_be_bytes());
        }
    }

    /// Makes the sum of an ICMP packet the same for every packet of the world, where there is room
    /// for that behind the mark: routers choose among parallel paths by the checksum of ICMP, and
    /// it would tell packets of one flow apart (`[Augustin06]` §3).
    fn balance(self, packet: &mut [u8], ipv6: bool) {
        const AT: usize = ICMP_OCTETS + MARK_OCTETS;
        let Some(place) = packet.get_mut(AT..AT + 2) else {
            return;
        };
        place.fill(0);
        // The pseudo header of ICMPv6 has the length; addresses are the same anyway.
        let length = if ipv6 { u16::try_from(packet.len()).unwrap_or(0) } else { 0 };
        let sum = u32::from(Sum::new().word(length).octets(packet).value());
        let wanted = u32::from(u16::from_be_bytes([self.tag[0], self.tag[1]]));
        let missing = u16::try_from((0xffff + wanted - sum) % 0xffff).unwrap_or(0);
        if let Some(place) = packet.get_mut(AT..AT + 2) {
            place.copy_from_slice(&missing.to_be_bytes());
        }
    }

    /// The packet's position, if the octets begin with this mark.
    fn read(self, octets: &[u8]) -> Quote {
        let Some(found) = octets.first_chunk::<MARK_OCTETS>() else {
            return Quote::Short;
        };
        let (tag, rest) = found.split_at(8);
        let (id, seq) = rest.split_at(4);
        if tag != self.tag {
            Quote::Foreign
        } else if id == self.id.to_be_bytes() {
            Quote::Packet(be32(seq))
        } else {
            Quote::Late
        }
    }
}

impl Marks {
    /// Payload octets that a packet must have.
    pub(super) fn least_payload(&self) -> usize {
        match &self.form {
            Form::Icmp { .. } => ICMP_OCTETS + MARK_OCTETS,
            Form::Udp { .. } => MARK_OCTETS,
            Form::Stamp { key, .. } => stamp::stamp_octets(key.is_some()),
            Form::Tcp { .. } => TCP_OCTETS,
        }
    }

    /// Writes packet `seq` over the front of `payload`.
    pub(super) fn write(&self, seq: u32, payload: &mut [u8]) {
        match &self.form {
            Form::Icmp { mark, ipv6, identifier, checksum } => {
                let Some((header, data)) = payload.split_first_chunk_mut::<ICMP_OCTETS>() else {
                    return;
                };
                let echo = icmp::Echo { identifier: *identifier, sequence: low16(seq) };
                *header = Message::EchoRequest(echo).header(*ipv6);
                mark.write(seq, data);
                mark.balance(payload, *ipv6);
                if *checksum {
                    icmp::write_checksum(payload);
                }
            }
            Form::Udp { mark } => mark.write(seq, payload),
            Form::Stamp { first, packet, key } => {
                let seq = first.wrapping_add(seq);
                // Sizes were checked; a packet that does not fit would carry nothing.
                let _ = SessionPacket { seq, ..*packet }.write(payload, key.as_ref());
                if let Some(behind) = payload.get_mut(stamp::stamp_octets(key.is_some())..) {
                    stamp::write_padding(behind);
                }
            }
            Form::Tcp { near, remote, .. } => self.write_syn(seq, payload, (*near, *remote)),
        }
    }

    fn write_syn(&self, seq: u32, payload: &mut [u8], ends: (IpAddr, IpAddr)) {
        let Form::Tcp { remote_port, .. } = &self.form else {
            return;
        };
        let (source_port, sequence) = self.syn(seq);
        let header = TcpHeader {
            source_port,
            destination_port: *remote_port,
            sequence,
            syn: true,
            // 64 KiB, as if there were a socket.
            window: u16::MAX,
            ..TcpHeader::default()
        };
        header.write(ends, payload);
    }

    /// Port and sequence number of a SYN. Numbers lie further apart than a payload is long.
    fn syn(&self, seq: u32) -> (u16, u32) {
        match &self.form {
            Form::Tcp { one_port, first_port, first_sequence, .. } => (
                first_port.wrapping_add(if *one_port { 0 } else { low16(seq) }),
                first_sequence.wrapping_add(seq.wrapping_mul(1 << 16)),
            ),
            Form::Icmp { .. } | Form::Udp { .. } | Form::Stamp { .. } => (0, 0),
        }
    }

    /// What a packet says that came back whole (from the header that the socket's kind begins at;
    /// `octets`, its length, may be more than `payload` holds). `None`: not an answer to this
    /// train.
    pub(super) fn read_echo(&self, payload: &[u8], octets: usize) -> Option<Echo> {
        let plain = |seq| Echo { seq, turned_ns: None, residence_ns: None, behind: 0, clock: None };
        let echo = match &self.form {
            Form::Icmp { mark, ipv6, .. } => {
                let (Message::EchoReply(_), data) = Message::read_echo(payload, *ipv6)? else {
                    return None;
                };
                match mark.read(data) {
                    Quote::Packet(seq) => plain(seq),
                    Quote::Late | Quote::Foreign | Quote::Short => return None,
                }
            }
            Form::Udp { .. } => return None,
            Form::Stamp { first, packet, key } => {
                let reply = ReflectedPacket::parse(payload, key.as_ref()).ok()?;
                // TWAMP reflectors know no session identifier.
                let session = reply.ssid == packet.ssid || reply.ssid == 0;
                if !session || reply.sender_time != packet.time.wire() {
                    return None;
                }
                let (received, left) = (reply.received.unix_ns(), reply.transmitted.unix_ns());
                Echo {
                    seq: reply.sender_seq.wrapping_sub(*first),
                    turned_ns: Some(received),
                    residence_ns: left.checked_sub(received).filter(|time| *time >= 0),
                    behind: reply.sender_seq.wrapping_sub(reply.seq),
                    clock: Some(reply.error),
                }
            }
            Form::Tcp { .. } => plain(self.read_segment(payload, octets)?),
        };
        (echo.seq < self.count).then_some(echo)
    }

    /// Position of the SYN from this port with (about) this sequence number.
    fn seq_of(&self, port: u16, sequence: u32) -> Option<u32> {
        match &self.form {
            Form::Tcp { one_port: true, first_port, first_sequence, .. } => {
                (port == *first_port).then(|| sequence.wrapping_sub(*first_sequence) >> 16)
            }
            Form::Tcp { first_port, .. } => Some(u32::from(port.wrapping_sub(*first_port))),
            Form::Icmp { .. } | Form::Udp { .. } | Form::Stamp { .. } => None,
        }
    }

    /// RST, or SYN and ACK, that acknowledges one of ours (RFC 9293 §3.10.7.1: the SYN and all of
    /// its payload; an open port may leave the payload out).
    fn read_segment(&self, segment: &[u8], octets: usize) -> Option<u32> {
        let Form::Tcp { remote_port, .. } = &self.form else {
            return None;
        };
        let header = TcpHeader::read(segment).ok()?;
        let acknowledgement = header.acknowledgement?;
        if octets < TCP_OCTETS || header.rst == header.syn || header.source_port != *remote_port {
            return None;
        }
        let seq = self.seq_of(header.destination_port, acknowledgement.wrapping_sub(1))?;
        let acknowledged = acknowledgement.wrapping_sub(self.syn(seq).1);
        (1..1 << 16).contains(&acknowledged).then_some(seq)
    }

    /// Which packet an ICMP error quotes (from the header that the socket's kind begins at).
    pub(super) fn read_quote(&self, quoted: &[u8]) -> Quote {
        let found = match &self.form {
            Form::Icmp { mark, .. } => quoted.get(ICMP_OCTETS..).map_or(Quote::Short, |data| mark.read(data)),
            Form::Udp { mark } => mark.read(quoted),
            Form::Stamp { first, packet, key } => {
                let time = if key.is_some() { 16..24 } else { 4..12 };
                match (quoted.get(stamp::STAMP_SEQ), quoted.get(time)) {
                    (Some(seq), Some(time)) if time == packet.time.wire().to_be_bytes() => {
                        Quote::Packet(be32(seq).wrapping_sub(*first))
                    }
                    (Some(_), Some(_)) => Quote::Foreign,
                    _ => Quote::Short,
                }
            }
            Form::Tcp { remote_port, .. } => match quoted.first_chunk::<8>() {
                None => Quote::Short,
                // Errors quote eight octets at least: ports and sequence number.
                Some(start) => {
                    let sequence = be32(&start[4..8]);
                    let ours = udp::ports(start).filter(|(_, to)| to == remote_port);
                    match ours.and_then(|(from, _)| self.seq_of(from, sequence)) {
                        Some(seq) if sequence == self.syn(seq).1 => Quote::Packet(seq),
                        _ => Quote::Foreign,
                    }
                }
            },
        };
        match found {
            Quote::Packet(seq) if seq >= self.count => Quote::Foreign,
            other => other,
        }
    }
}

/// A sender's packet at this time of the wall clock; its clock is not one that a reflector should
/// set its own by.
pub(super) fn session_packet(unix_ns: i64, ssid: u16) -> SessionPacket {
    /// T1 is written before the train leaves, and only marks it: departures are stamped otherwise.
    const OFF_BY_NS: u64 = 1_000_000_000;
    let error = stamp::ErrorEstimate::new(OFF_BY_NS, false, stamp::StampFormat::Ntp);
    SessionPacket { seq: 0, time: StampTime::from_unix_ns(unix_ns, error.format), error, ssid }
}

/// What follows the header of a received IPv4 packet; nothing if it has none.
pub(super) fn behind_ipv4(packet: &[u8]) -> &[u8] {
    let header = IpHeader::read(packet).ok();
    header.and_then(|header| packet.get(header.header_octets..)).unwrap_or_default()
}

fn be32(octets: &[u8]) -> u32 {
    octets.first_chunk().copied().map_or(0, u32::from_be_bytes)
}

fn low16(value: u32) -> u16 {
    let [_, _, high, low] = value.to_be_bytes();
    u16::from_be_bytes([high, low])
}

#[cfg(test)]
mod tests;
