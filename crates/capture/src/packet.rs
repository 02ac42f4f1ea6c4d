//! A packet as a capture holds it.

/// What the octets of a captured packet begin with: a number of the registry of link types that
/// capture files use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LinkType(pub(crate) u32);

impl LinkType {
    /// BSD loopback: the address family in the capturing host's order.
    pub const NULL: Self = Self(0);
    /// Ethernet.
    pub const ETHERNET: Self = Self(1);
    /// PPP.
    pub const PPP: Self = Self(9);
    /// PPP in HDLC-like framing.
    pub const PPP_HDLC: Self = Self(50);
    /// PPP over Ethernet, from the `PPPoE` header on.
    pub const PPP_ETHER: Self = Self(51);
    /// An IP packet alone, of either version.
    pub const RAW: Self = Self(101);
    /// IEEE 802.11.
    pub const IEEE_802_11: Self = Self(105);
    /// OpenBSD loopback: the address family in network order.
    pub const LOOP: Self = Self(108);
    /// Linux cooked capture.
    pub const LINUX_SLL: Self = Self(113);
    /// IEEE 802.11 behind a radiotap header.
    pub const RADIOTAP: Self = Self(127);
    /// An IPv4 packet alone.
    pub const IPV4: Self = Self(228);
    /// An IPv6 packet alone.
    pub const IPV6: Self = Self(229);
    /// Linux cooked capture, version 2.
    pub const LINUX_SLL2: Self = Self(276);

    /// By its number in a file.
    pub const fn new(number: u32) -> Self {
        Self(number)
    }

    /// Its number in a file.
    pub const fn number(self) -> u32 {
        self.0
    }
}

/// A captured packet: what is there of it, and what the capture says about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RawPacket<'a> {
    /// When it passed, in nanoseconds of the capturing clock; `None` where the capture has no stamp
    /// for it.
    pub at_ns: Option<i64>,
    /// What its octets begin with.
    pub link: LinkType,
    /// As much of it as was kept.
    pub octets: &'a [u8],
    /// Octets that it had.
    pub whole_octets: u32,
    /// The outermost VLAN tag's control information, where the capturing host took the tag off.
    pub vlan: Option<u16>,
    /// The capturing host sent it (`true`) or received it, where the capture says so.
    pub outgoing: Option<bool>,
}
