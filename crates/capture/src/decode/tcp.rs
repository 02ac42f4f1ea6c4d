//! The TCP header and the options that matter here.

use std::net::IpAddr;

use narrows_packet::TCP;
use narrows_packet::checksum::Sum;
use narrows_packet::tcp::{TCP_OCTETS, TcpHeader, TcpOptions};
use narrows_probe::probes::TcpFields;

use super::ip::Packet;
use super::{Endpoint, Unreadable};

/// What a TCP header says.
#[derive(Debug, Clone, Copy)]
pub(super) struct Segment {
    pub(super) source: Endpoint,
    pub(super) destination: Endpoint,
    pub(super) fields: TcpFields,
    pub(super) options: TcpOptions,
    pub(super) checksum_partial: bool,
}

#[inline]
pub(super) fn read(packet: &Packet<'_>) -> Result<Segment, Unreadable> {
    let header = TcpHeader::read(packet.transport)?;
    let header_octets = u32::try_from(header.header_octets).unwrap_or(u32::MAX);
    let payload_octets = packet.transport_octets.checked_sub(header_octets);
    let payload_octets = payload_octets.ok_or(Unreadable::Malformed)?;
    let end = header.header_octets.min(packet.transport.len());
    let options = TcpOptions::read(&packet.transport[TCP_OCTETS..end], header.syn);
    let (source, destination) = (packet.header.source, packet.header.destination);
    // Not complemented: what Linux leaves in the field for the card to complete.
    let partial = Sum::pseudo_header(source, destination, TCP, packet.transport_octets).value();
    Ok(Segment {
        source: endpoint(source, header.source_port),
        destination: endpoint(destination, header.destination_port),
        fields: TcpFields {
            sequence: header.sequence,
            acknowledgement: header.acknowledgement,
            payload_octets,
            syn: header.syn,
            fin: header.fin,
            rst: header.rst,
            window: header.window,
            timestamps: options.timestamps,
        },
        options,
        checksum_partial: header.checksum == partial,
    })
}

fn endpoint(address: IpAddr, port: u16) -> Endpoint {
    let address = match address {
        IpAddr::V4(address) => address.to_ipv6_mapped().to_bits(),
        IpAddr::V6(address) => address.to_bits(),
    };
    Endpoint { address, port }
}
