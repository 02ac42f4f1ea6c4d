//! The IP header, and how much of what follows was kept.

use narrows_packet::ip::{HeaderError, IpHeader};

use super::Unreadable;

/// What IP headers say of a packet.
#[derive(Debug, Clone, Copy)]
pub(super) struct Packet<'a> {
    pub(super) header: IpHeader,
    /// The protocol behind extension headers.
    pub(super) protocol: u8,
    pub(super) fragment: bool,
    /// Length of the packet, header included.
    pub(super) ip_octets: u32,
    /// Length of transport header and payload.
    pub(super) transport_octets: u32,
    /// From the transport header on, as much as was kept, without padding.
    pub(super) transport: &'a [u8],
}

/// Reads the headers. `room` is what the frame had behind the link's header: the packet's length
/// where it names none, as packets longer than 65 535 octets do before the card cuts them up.
#[inline]
pub(super) fn read(octets: &[u8], room: u32) -> Result<Packet<'_>, Unreadable> {
    let header = IpHeader::read(octets)?;
    let ip_octets = header.ip_octets.unwrap_or(room);
    if ip_octets < u32::try_from(header.header_octets).unwrap_or(u32::MAX) {
        return Err(Unreadable::Malformed);
    }
    let behind = header.transport(octets)?;
    let headers = u32::try_from(behind.header_octets).unwrap_or(u32::MAX);
    let transport_octets = ip_octets.checked_sub(headers).ok_or(Unreadable::Malformed)?;
    // Ethernet pads short packets, and padding is no payload.
    let kept = usize::try_from(transport_octets).unwrap_or(usize::MAX);
    Ok(Packet {
        header,
        protocol: behind.protocol,
        fragment: behind.fragment,
        ip_octets,
        transport_octets,
        transport: behind.octets.get(..kept).unwrap_or(behind.octets),
    })
}

impl From<HeaderError> for Unreadable {
    fn from(error: HeaderError) -> Self {
        match error {
            HeaderError::Short => Self::CutShort,
            HeaderError::Malformed => Self::Malformed,
        }
    }
}
