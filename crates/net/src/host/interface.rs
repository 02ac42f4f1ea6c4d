//! The interface towards a peer.

use std::fs;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::path::{Path, PathBuf};

use narrows_diagnose::host::PARAVIRTUAL;
use narrows_units::BitRate;
use nix::ifaddrs::getifaddrs;

/// What the system says of one network interface.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Interface {
    /// Its name.
    pub name: String,
    /// Its number.
    pub index: u32,
    /// Largest IP packet, in octets.
    pub mtu: Option<u32>,
    /// Negotiated rate at the wire; `None` if unknown, or if there is no wire.
    pub rate: Option<BitRate>,
    /// Its kernel driver.
    pub driver: Option<String>,
    /// It has no wire of its own: a tunnel, a bridge, the loopback, or a virtual machine's card.
    pub is_virtual: bool,
}

impl Interface {
    /// The interface from which packets to `peer` leave: the one that has the address which the
    /// routing table gives them. Sends nothing.
    pub fn towards(peer: SocketAddr) -> Option<Self> {
        let any: IpAddr = if peer.is_ipv6() { [0u16; 8].into() } else { [0u8; 4].into() };
        let socket = UdpSocket::bind((any, 0)).ok()?;
        socket.connect(peer).ok()?;
        Self::with_address(socket.local_addr().ok()?.ip())
    }

    /// The interface that has this address.
    pub fn with_address(address: IpAddr) -> Option<Self> {
        let found = getifaddrs().ok()?.find(|interface| {
            interface.address.as_ref().is_some_and(|storage| match address {
                IpAddr::V4(wanted) => storage.as_sockaddr_in().is_some_and(|have| have.ip() == wanted),
                IpAddr::V6(wanted) => storage.as_sockaddr_in6().is_some_and(|have| have.ip() == wanted),
            })
        })?;
        Some(Self::by_name(&found.interface_name))
    }

    /// The interface of this name in the calling thread's namespace; `None` if there is none.
    pub fn named(name: &str) -> Option<Self> {
        // Names become parts of paths; the kernel allows neither of these in one.
        let sane = !name.is_empty()
            && name.len() < libc::IFNAMSIZ
            && !name.contains(['/', '\0'])
            && name != "."
            && name != "..";
        (sane && nix::net::if_::if_nametoindex(name).is_ok()).then(|| Self::by_name(name))
    }

    /// What `/sys` shows of it. In a network namespace that may still be another namespace's
    /// interfaces: one that is not ours tells nothing.
    pub(super) fn folder(name: &str, index: u32) -> Option<PathBuf> {
        let folder = Path::new("/sys/class/net").join(name);
        let read = |file: &str| fs::read_to_string(folder.join(file)).ok();
        let ours = read("ifindex")?.trim() == index.to_string() && has_hardware_address(name, read("address")?.trim());
        ours.then_some(folder)
    }

    fn by_name(name: &str) -> Self {
        let index = nix::net::if_::if_nametoindex(name).unwrap_or(0);
        let Some(folder) = Self::folder(name, index) else {
            return Self { name: name.to_owned(), index, mtu: None, rate: None, driver: None, is_virtual: true };
        };
        let read = |file: &str| fs::read_to_string(folder.join(file)).ok().map(|text| text.trim().to_owned());
        let driver = fs::read_link(folder.join("device/driver"))
            .ok()
            .and_then(|link| link.file_name().map(|name| name.to_string_lossy().into_owned()));
        let has_device = folder.join("device").exists();
        // Virtual cards report a rate that means nothing; unknown is reported as -1.
        let megabits = read("speed").and_then(|text| text.parse::<u64>().ok()).filter(|&rate| rate > 0);
        // Both ends of a `veth` are this kernel's.
        let invented = |driver: &str| driver == "veth" || PARAVIRTUAL.contains(&driver);
        let is_virtual = !has_device || driver.as_deref().is_some_and(invented);
        Self {
            name: name.to_owned(),
            index,
            mtu: read("mtu").and_then(|text| text.parse().ok()),
            rate: megabits.filter(|_| !is_virtual).and_then(|rate| rate.checked_mul(1_000_000)).map(BitRate::from_bps),
            driver,
            is_virtual,
        }
    }
}

/// Whether our interface of this name has this hardware address (`aa:bb:…`).
fn has_hardware_address(name: &str, address: &str) -> bool {
    let Ok(mut interfaces) = getifaddrs() else { return false };
    interfaces.any(|interface| {
        let octets = interface.address.as_ref().and_then(|storage| storage.as_link_addr()?.addr());
        let text = octets.map(|octets| octets.map(|octet| format!("{octet:02x}")).join(":"));
        interface.interface_name == name && text.as_deref() == Some(address)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_is_virtual_and_has_no_rate() {
        for peer in ["127.0.0.1:9", "[::1]:9"] {
            let interface = Interface::towards(peer.parse().unwrap()).unwrap();
            assert_eq!(interface.name, "lo");
            assert!(interface.is_virtual && interface.index > 0);
            assert_eq!((interface.rate, interface.driver), (None, None));
        }
        let interface = Interface::with_address([127, 0, 0, 1].into()).unwrap();
        assert_eq!(interface.mtu, Some(65_536));
        assert_eq!(Interface::with_address([192, 0, 2, 77].into()), None);
        assert!(!has_hardware_address("lo", "00:00:00:00:00:01"));
    }
}
