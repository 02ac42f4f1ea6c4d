//! Finding the IP packet in a captured frame.

use std::net::IpAddr;

use narrows_packet::ip::IpHeader;

/// Length and ends of a captured IP packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct IpPacket {
    pub(super) ip_octets: u16,
    pub(super) from: IpAddr,
    pub(super) to: IpAddr,
}

/// Link-layer types by number (<https://www.tcpdump.org/linktypes.html>).
mod kind {
    pub(super) const NULL: i32 = 0;
    pub(super) const ETHERNET: i32 = 1;
    pub(super) const RAW: [i32; 3] = [12, 14, 101];
    pub(super) const LOOP: i32 = 108;
    pub(super) const LINUX_SLL: i32 = 113;
    pub(super) const IPV4: i32 = 228;
    pub(super) const IPV6: i32 = 229;
    pub(super) const LINUX_SLL2: i32 = 276;
}

/// The IP packet in a frame of which `data` was kept and that was `original` octets long; `None` if
/// it is none, or if its header was not kept.
pub(super) fn ip_packet(link: i32, data: &[u8], original: u32) -> Option<IpPacket> {
    let at = match link {
        kind::ETHERNET => behind_tags(data, 12)?,
        kind::NULL | kind::LOOP => 4,
        kind::LINUX_SLL => behind_tags(data, 14)?,
        kind::LINUX_SLL2 => {
            let known = matches!(word(data, 0)?, 0x0800 | 0x86dd);
            known.then_some(20)?
        }
        kind::IPV4 | kind::IPV6 => 0,
        link if kind::RAW.contains(&link) => 0,
        _ => return None,
    };
    let left = u64::from(original).saturating_sub(at as u64);
    read(data.get(at..)?, left)
}

/// Where the IP header begins if the type field is at `at`.
fn behind_tags(data: &[u8], mut at: usize) -> Option<usize> {
    /// Tags that are looked behind.
    const TAGS: usize = 4;
    for _ in 0..=TAGS {
        match word(data, at)? {
            // IEEE 802.1Q and 802.1ad.
            0x8100 | 0x88a8 | 0x9100 => at += 4,
            0x0800 | 0x86dd => return Some(at + 2),
            _ => return None,
        }
    }
    None
}

fn read(packet: &[u8], left: u64) -> Option<IpPacket> {
    let header = IpHeader::read(packet).ok()?;
    // Packets that the capturing host's card was still to cut say 0, or less than they have.
    let said = header.ip_octets.map_or(left, u64::from);
    Some(IpPacket { ip_octets: u16::try_from(said).unwrap_or(u16::MAX), from: header.source, to: header.destination })
}

fn word(data: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(data.get(at..at + 2)?.try_into().ok()?))
}
