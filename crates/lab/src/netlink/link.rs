//! An interface, as far as it is to be made or changed.

use std::os::fd::RawFd;

use super::attributes::Attributes;

/// An interface, as far as it is to be made or changed.
#[derive(Debug, Clone)]
pub(crate) struct Link {
    number: u32,
    up: bool,
    attributes: Attributes,
}

impl Link {
    /// The one of this number.
    pub(crate) fn numbered(number: u32) -> Self {
        Self { number, up: false, attributes: Attributes::new(Vec::new()) }
    }

    /// The one of this name, or a new one.
    pub(crate) fn named(name: &str) -> Self {
        let mut link = Self::numbered(0);
        link.attributes.put_text(IFLA_IFNAME, name);
        link
    }

    /// A bridge that floods every group and looks for none, so that it says nothing of its own.
    pub(crate) fn bridge(name: &str) -> Self {
        let mut data = Attributes::new(Vec::new());
        data.put(IFLA_BR_MCAST_SNOOPING, &[0]);
        Self::named(name).of_kind("bridge", &data.octets())
    }

    /// The near end of a virtual cable whose other end is this.
    pub(crate) fn cable_to(self, other: &Self) -> Self {
        let mut data = Attributes::new(Vec::new());
        data.put(VETH_INFO_PEER, &other.octets());
        self.of_kind("veth", &data.octets())
    }

    fn of_kind(self, kind: &str, data: &[u8]) -> Self {
        let mut info = Attributes::new(Vec::new());
        info.put(IFLA_INFO_KIND, kind.as_bytes());
        info.put(IFLA_INFO_DATA, data);
        self.with(IFLA_LINKINFO, &info.octets())
    }

    /// Set up.
    pub(crate) fn up(self) -> Self {
        Self { up: true, ..self }
    }

    pub(crate) fn mtu(self, mtu: u16) -> Self {
        self.with(IFLA_MTU, &u32::from(mtu).to_ne_bytes())
    }

    pub(crate) fn mac(self, mac: &[u8]) -> Self {
        self.with(IFLA_ADDRESS, mac)
    }

    /// Packets that its queue takes.
    pub(crate) fn queue_packets(self, packets: u32) -> Self {
        self.with(IFLA_TXQLEN, &packets.to_ne_bytes())
    }

    /// A port of the bridge of this number.
    pub(crate) fn port_of(self, bridge: u32) -> Self {
        self.with(IFLA_MASTER, &bridge.to_ne_bytes())
    }

    /// In the network namespace of this descriptor.
    pub(crate) fn within(self, namespace: RawFd) -> Self {
        self.with(IFLA_NET_NS_FD, &namespace.to_ne_bytes())
    }

    fn with(mut self, kind: u16, value: &[u8]) -> Self {
        self.attributes.put(kind, value);
        self
    }

    /// struct ifinfomsg and the attributes: family and padding, kind of hardware, number, flags,
    /// which of them change.
    pub(super) fn octets(&self) -> Vec<u8> {
        let flags = if self.up { IFF_UP } else { 0 };
        let head = [0, self.number, flags, flags].map(u32::to_ne_bytes).concat();
        [head, self.attributes.clone().octets()].concat()
    }
}

// Numbers of linux/if_link.h and linux/if.h.
const IFF_UP: u32 = 1;
const IFLA_ADDRESS: u16 = 1;
const IFLA_IFNAME: u16 = 3;
const IFLA_MTU: u16 = 4;
const IFLA_MASTER: u16 = 10;
const IFLA_TXQLEN: u16 = 13;
const IFLA_LINKINFO: u16 = 18;
const IFLA_NET_NS_FD: u16 = 28;
const IFLA_INFO_KIND: u16 = 1;
const IFLA_INFO_DATA: u16 = 2;
const VETH_INFO_PEER: u16 = 1;
const IFLA_BR_MCAST_SNOOPING: u16 = 23;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cable_holds_its_other_end() {
        let other = Link::named("b").mtu(1500);
        let cable = Link::named("a").cable_to(&other).up().octets();
        let end = other.octets();
        assert!(cable.windows(end.len()).any(|window| window == end));
        assert!(cable.windows(4).any(|window| window == b"veth"));
        assert_eq!(cable[8..16], [1_u32.to_ne_bytes(), 1_u32.to_ne_bytes()].concat());
        assert_eq!(end[8..16], [0; 8]);
    }
}
