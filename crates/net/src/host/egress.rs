//! By which door packets to a peer leave: interface, source address, next hop.

use std::fmt;
use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};

use super::Interface;

/// How packets to a peer leave this host.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Egress {
    /// The interface's name.
    pub interface: String,
    /// The address that they come from.
    pub source: IpAddr,
    /// The router that takes them; `None` where the peer is a neighbour, or nobody can tell.
    pub next_hop: Option<IpAddr>,
}

impl Egress {
    /// Asks the routing table of the calling thread's namespace. Sends nothing. Rules that choose
    /// among several tables show in the source address, and not in the next hop.
    pub fn towards(peer: IpAddr) -> Option<Self> {
        let any: IpAddr = if peer.is_ipv6() { [0u16; 8].into() } else { [0u8; 4].into() };
        let socket = UdpSocket::bind((any, 0)).ok()?;
        socket.connect(SocketAddr::new(peer, 9)).ok()?;
        let source = socket.local_addr().ok()?.ip();
        let interface = Interface::with_address(source)?.name;
        let read = |name: &str| fs::read_to_string(format!("/proc/thread-self/net/{name}")).unwrap_or_default();
        let next_hop = match peer {
            IpAddr::V4(peer) => next_hop_4(&read("route"), peer, &interface).map(IpAddr::V4),
            IpAddr::V6(peer) => next_hop_6(&read("ipv6_route"), peer, &interface).map(IpAddr::V6),
        };
        Some(Self { interface, source, next_hop })
    }

    /// It leaves the machine.
    pub fn is_a_link(&self) -> bool {
        self.interface != "lo"
    }
}

impl fmt::Display for Egress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} from {}", self.interface, self.source)?;
        self.next_hop.map_or(Ok(()), |hop| write!(f, " via {hop}"))
    }
}

/// The gateway of the longest matching prefix; lower metrics first.
fn next_hop_4(table: &str, peer: Ipv4Addr, interface: &str) -> Option<Ipv4Addr> {
    let rows = table.lines().skip(1).filter_map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [name, destination, gateway, _, _, _, metric, mask, ..] = words[..] else { return None };
        // Addresses stand in the machine's order of octets.
        let hex = |text: &str| u32::from_str_radix(text, 16).ok();
        let (destination, gateway, mask) = (hex(destination)?, hex(gateway)?, hex(mask)?);
        let peer = u32::from_ne_bytes(peer.octets());
        let covers = name == interface && peer & mask == destination;
        covers.then_some((mask.count_ones(), std::cmp::Reverse(metric.parse::<u32>().ok()?), gateway))
    });
    let (.., gateway) = rows.max()?;
    (gateway != 0).then(|| Ipv4Addr::from(gateway.to_ne_bytes()))
}

fn next_hop_6(table: &str, peer: Ipv6Addr, interface: &str) -> Option<Ipv6Addr> {
    let rows = table.lines().filter_map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [destination, length, _, _, gateway, metric, _, _, _, name] = words[..] else { return None };
        let address = |text: &str| u128::from_str_radix(text, 16).ok();
        let length = u32::from_str_radix(length, 16).ok().filter(|length| *length <= 128)?;
        let mask = u128::MAX.checked_shl(128 - length).unwrap_or(0);
        let covers = name == interface && u128::from(peer) & mask == address(destination)?;
        let metric = u32::from_str_radix(metric, 16).ok()?;
        covers.then_some((length, std::cmp::Reverse(metric), address(gateway)?))
    });
    let (.., gateway) = rows.max()?;
    (gateway != 0).then(|| Ipv6Addr::from(gateway))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(target_endian = "little")]
    fn the_longest_prefix_gives_the_next_hop() {
        let table = "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT\n\
            eth0\t00000000\t0101A8C0\t0003\t0\t0\t100\t00000000\t0\t0\t0\n\
            eth0\t0001A8C0\t00000000\t0001\t0\t0\t100\t00FFFFFF\t0\t0\t0\n\
            wlan0\t00000000\t0102A8C0\t0003\t0\t0\t50\t00000000\t0\t0\t0\n";
        let hop = |peer: [u8; 4], interface| next_hop_4(table, peer.into(), interface);
        assert_eq!(hop([9, 9, 9, 9], "eth0"), Some([192, 168, 1, 1].into()));
        assert_eq!(hop([9, 9, 9, 9], "wlan0"), Some([192, 168, 2, 1].into()));
        assert_eq!(hop([192, 168, 1, 7], "eth0"), None, "a neighbour");
    }

    #[test]
    fn prefixes_of_ipv6_too() {
        let none = "00000000000000000000000000000000";
        let row = |destination: &str, length: &str, gateway: &str| {
            format!("{destination} {length} {none} 00 {gateway} 00000400 00000001 00000000 00000003 eth0\n")
        };
        let router = "fe800000000000000000000000000001";
        let table = row(none, "00", router) + &row("20010db8000000000000000000000000", "40", none);
        let hop = |peer: &str| next_hop_6(&table, peer.parse().unwrap(), "eth0");
        assert_eq!(hop("2001:db9::1"), Some("fe80::1".parse().unwrap()));
        assert_eq!(hop("2001:db8::1"), None);
    }

    #[test]
    fn loopback_is_no_link() {
        let egress = Egress::towards([127, 0, 0, 1].into()).unwrap();
        assert!(!egress.is_a_link());
        assert_eq!(egress.to_string(), "lo from 127.0.0.1");
    }
}
