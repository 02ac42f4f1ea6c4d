//! The layer at which bits are counted, and what each counts of one packet on a framed link.
//!
//! Source: IEEE 802.3 framing. Per packet of `L` IP octets, Ethernet occupies its wire for
//! `8 + 14 + 4·v + max(L, 46) + 4 + 12` octets: preamble with start delimiter, MAC header, `v` VLAN
//! tags, padded payload, FCS, inter-frame gap.

use serde::{Deserialize, Serialize};

use crate::BitRate;

/// The layer whose octets a rate counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Layer {
    /// The link's nominal rate: every octet time on the wire counts.
    Wire,
    /// The layer-2 frame from MAC header to FCS.
    Frame,
    /// The IP packet, header included (RFC 5136).
    Ip,
    /// What UDP carries.
    UdpPayload,
    /// What TCP carries (10-octet timestamp option padded to 12 in every segment).
    TcpPayload,
}

/// How a link wraps an IP packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Framing {
    /// Octets of the layer-2 frame that are not IP: header, tags, FCS.
    frame_overhead: u16,
    /// Octet times around the frame: preamble, start delimiter, inter-frame gap.
    line_overhead: u16,
    /// The shortest IP packet that needs no padding.
    min_ip: u16,
    /// The frame is cut into ATM cells of 48 octets, 53 on the wire, the last one padded.
    #[serde(default)]
    cells: bool,
}

impl Framing {
    /// Untagged Ethernet: 38 octets per packet, padding below 46.
    pub const ETHERNET: Self = Self::ethernet(0);

    /// A link that counts IP packets alone, such as an idealised queue or a TUN device.
    pub const BARE: Self = Self { frame_overhead: 0, line_overhead: 0, min_ip: 0, cells: false };

    /// Ethernet with `vlan_tags` tags.
    pub const fn ethernet(vlan_tags: u8) -> Self {
        Self { frame_overhead: 18 + 4 * vlan_tags as u16, line_overhead: 20, min_ip: 46, cells: false }
    }

    /// A link with a fixed per-packet overhead, all of it counted as frame.
    pub const fn fixed(overhead_octets: u16) -> Self {
        Self { frame_overhead: overhead_octets, line_overhead: 0, min_ip: 0, cells: false }
    }

    /// ATM with AAL5 (ADSL): the packet, `encapsulation_octets` around it (0 for VC-MUX to 32 for
    /// `PPPoE` in bridged LLC) and a trailer of 8 octets, in cells that carry 48 octets in 53
    /// (ITU-T I.363.5).
    pub const fn atm(encapsulation_octets: u16) -> Self {
        Self {
            frame_overhead: encapsulation_octets.saturating_add(AAL5_TRAILER),
            line_overhead: 0,
            min_ip: 0,
            cells: true,
        }
    }

    /// Whether packets are cut into cells, so that the octets that a packet occupies grow in steps.
    pub const fn is_cells(self) -> bool {
        self.cells
    }

    /// Octet times on the wire for one packet of `ip_octets`.
    pub const fn wire_octets(self, ip_octets: u32) -> u32 {
        let padded = if ip_octets < self.min_ip as u32 { self.min_ip as u32 } else { ip_octets };
        let frame = padded + self.frame_overhead as u32 + self.line_overhead as u32;
        if self.cells { frame.div_ceil(CELL_PAYLOAD) * CELL } else { frame }
    }

    /// Octets of one packet of `ip_octets` that count at `layer`; `None` if the packet is too short
    /// to hold the headers.
    pub fn counted_octets(self, layer: Layer, ip_octets: u32, ipv6: bool) -> Option<u32> {
        let ip_header = if ipv6 { 40 } else { 20 };
        match layer {
            Layer::Wire => Some(self.wire_octets(ip_octets)),
            Layer::Frame => Some(self.wire_octets(ip_octets) - u32::from(self.line_overhead)),
            Layer::Ip => Some(ip_octets),
            Layer::UdpPayload => ip_octets.checked_sub(ip_header + 8),
            Layer::TcpPayload => ip_octets.checked_sub(ip_header + 32),
        }
    }

    /// A rate counted at `from`, for packets of `ip_octets` on this link, counted at `to` instead;
    /// `None` if the packet is too short for either layer.
    pub fn convert(self, rate: BitRate, from: Layer, to: Layer, ip_octets: u32, ipv6: bool) -> Option<BitRate> {
        let from = self.counted_octets(from, ip_octets, ipv6).filter(|&n| n > 0)?;
        let to = self.counted_octets(to, ip_octets, ipv6)?;
        let bps = (u128::from(rate.bps()) * u128::from(to) + u128::from(from) / 2) / u128::from(from);
        u64::try_from(bps).ok().map(BitRate::from_bps)
    }
}

/// Octets of an ATM cell, and those of them that carry the frame.
const CELL: u32 = 53;
const CELL_PAYLOAD: u32 = 48;
/// Octets of the trailer that AAL5 puts behind a frame.
const AAL5_TRAILER: u16 = 8;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// 1500 IP octets on untagged Ethernet occupy 1538; the fractions 1500, 1472 and 1448 over 1538
    /// are the published ceilings.
    #[test]
    fn ceilings_at_1500_octets() {
        let nominal = BitRate::from_mbps(100);
        for (layer, bps) in [
            (Layer::Wire, 100_000_000),
            (Layer::Ip, 97_529_259),
            (Layer::UdpPayload, 95_708_713),
            (Layer::TcpPayload, 94_148_244),
        ] {
            assert_eq!(
                Framing::ETHERNET.convert(nominal, Layer::Wire, layer, 1500, false),
                Some(BitRate::from_bps(bps)),
                "{layer:?}"
            );
        }
        let tagged = Framing::ethernet(1).convert(nominal, Layer::Wire, Layer::Ip, 1500, false);
        assert_eq!(tagged, Some(BitRate::from_bps(97_276_265)));
        let jumbo = Framing::ETHERNET.convert(BitRate::from_gbps(1), Layer::Wire, Layer::Ip, 9000, false);
        assert_eq!(jumbo, Some(BitRate::from_bps(995_795_530)));
    }

    #[test]
    fn short_packets_are_padded_and_too_short_ones_have_no_payload() {
        assert_eq!(Framing::ETHERNET.wire_octets(40), 84);
        assert_eq!(Framing::ETHERNET.counted_octets(Layer::UdpPayload, 27, false), None);
        assert_eq!(Framing::ETHERNET.counted_octets(Layer::Frame, 1500, false), Some(1518));
        assert_eq!(Framing::BARE.convert(BitRate::from_mbps(1), Layer::UdpPayload, Layer::Ip, 28, false), None);
    }

    /// By hand: 1500 + 8 octets are 31.4 cells, 576 + 8 and 600 + 8 both 13 of them; 32 octets more
    /// make 1540, 33 cells.
    #[test]
    fn cells_carry_48_octets_in_53() {
        for (encapsulation, ip, cells) in
            [(0, 1500, 32), (0, 576, 13), (0, 600, 13), (32, 1500, 33), (0, 40, 1), (0, 41, 2)]
        {
            assert_eq!(Framing::atm(encapsulation).wire_octets(ip), 53 * cells, "{encapsulation} {ip}");
        }
        // 8 Mbit/s of cells carry 7.075 Mbit/s of packets of 1500 octets.
        let ip = Framing::atm(0).convert(BitRate::from_mbps(8), Layer::Wire, Layer::Ip, 1500, false);
        assert_eq!(ip, Some(BitRate::from_bps(7_075_472)));
    }

    proptest! {
        #[test]
        fn conversion_and_back_is_within_rounding(bps in 1_000_000u64..400_000_000_000, ip in 60u32..9000) {
            let rate = BitRate::from_bps(bps);
            let ip_rate = Framing::ETHERNET.convert(rate, Layer::Wire, Layer::Ip, ip, false).unwrap();
            let back = Framing::ETHERNET.convert(ip_rate, Layer::Ip, Layer::Wire, ip, false).unwrap();
            prop_assert!(back.bps().abs_diff(bps) <= 2);
        }
    }
}
