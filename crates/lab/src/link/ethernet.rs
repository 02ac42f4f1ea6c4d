//! Frames as the packets of a link.

use narrows_packet::ip::IpHeader;
use narrows_scenario::PathDirection;
use narrows_sim::Path;

use crate::icmp::Trouble;
use crate::packet;
use crate::player::{Admitted, Buffer, Rules};

/// Octets of an Ethernet header without tags.
pub(super) const HEADER_OCTETS: usize = 14;
/// Octets of one VLAN tag (IEEE 802.1Q).
pub(super) const TAG_OCTETS: usize = 4;
/// Where the type, or the first tag, stands.
pub(super) const TYPE_AT: usize = 12;

/// Any frame is carried as it is; a link knows neither addresses nor hop limits.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Ethernet;

impl Rules for Ethernet {
    fn admit(&self, _: &Path<Buffer>, _: PathDirection, frame: &[u8]) -> Option<Admitted> {
        Some(Admitted { ip_octets: payload_octets(frame)?, hop_limit: u8::MAX, flow: flow(frame) })
    }

    fn arrive(&self, _: &mut [u8], _: u8) {}

    fn answer(
        &mut self,
        _: &mut Path<Buffer>,
        _: u64,
        _: (PathDirection, usize),
        _: Trouble,
        frame: Buffer,
    ) -> Result<(), Buffer> {
        Err(frame)
    }
}

/// What a frame carries behind its header and its tags, in octets: the IP packet, or as much of
/// anything else. `None` if it is no frame.
pub(super) fn payload_octets(frame: &[u8]) -> Option<u16> {
    u16::try_from(frame.len().checked_sub(header_octets(frame)?)?).ok()
}

/// What tells the flow of the IP packet in a frame; all else is one flow.
fn flow(frame: &[u8]) -> u32 {
    let packet = header_octets(frame).and_then(|header| frame.get(header..));
    let read = packet.and_then(|packet| Some(packet::flow(&IpHeader::read_whole(packet)?.0, packet)));
    read.unwrap_or(0)
}

/// Length of a frame's header with its tags.
fn header_octets(frame: &[u8]) -> Option<usize> {
    let mut header = HEADER_OCTETS;
    // A customer's tag within a provider's (IEEE 802.1ad) is the most there is.
    for _ in 0..2 {
        let kind = frame.get(header - 2..header)?;
        if !matches!(kind, [0x81, 0x00] | [0x88, 0xa8]) {
            break;
        }
        header += TAG_OCTETS;
    }
    Some(header)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(kinds: &[[u8; 2]], payload: usize) -> Vec<u8> {
        let mut frame = vec![7; TYPE_AT];
        for (index, kind) in kinds.iter().enumerate() {
            frame.extend(kind);
            if index + 1 < kinds.len() {
                frame.extend([0, 5]);
            }
        }
        frame.extend(vec![9; payload]);
        frame
    }

    #[test]
    fn tags_are_not_payload() {
        let (customer, provider, ipv4, arp) = ([0x81, 0], [0x88, 0xa8], [8, 0], [8, 6]);
        assert_eq!(payload_octets(&frame(&[ipv4], 1500)), Some(1500));
        assert_eq!(payload_octets(&frame(&[arp], 28)), Some(28));
        assert_eq!(payload_octets(&frame(&[customer, ipv4], 1500)), Some(1500));
        assert_eq!(payload_octets(&frame(&[provider, customer, ipv4], 64)), Some(64));
        assert_eq!(payload_octets(&frame(&[ipv4], 0)), Some(0));
    }

    #[test]
    fn what_is_cut_within_its_header_is_no_frame() {
        let whole = frame(&[[0x81, 0], [8, 0]], 0);
        for length in 0..whole.len() {
            assert_eq!(payload_octets(&whole[..length]), None, "{length}");
        }
        // IEEE 802.3 length instead of a type; far too long.
        assert_eq!(payload_octets(&frame(&[[0, 38]], 38)), Some(38));
        assert_eq!(payload_octets(&frame(&[[8, 0]], 70_000)), None);
    }
}
