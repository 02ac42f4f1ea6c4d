//! The TUN device of a host: its kernel's end is the host's only interface, ours is where the path
//! begins and ends.

use std::fmt;
use std::io;

use narrows_net::tun::{Tun, TunLayer};
use nix::net::if_::if_nametoindex;

use crate::error::LabError;
use crate::host::LabHost;
use crate::namespace::{set_queue_packets, transmit_drops};
use crate::netlink::{Link, Netlink};
use crate::plan::{AddressPlan, Addresses};
use crate::player::End;

/// Name of the interface inside each host.
pub const INTERFACE: &str = "path0";

/// Packets that the kernel keeps for us, so that it never drops what a train puts in at once while
/// we are away. At 1500 octets this is 20 MB, more than the path's own queues usually hold.
const QUEUE_PACKETS: u32 = 16_384;

/// A TUN device, seen from the path. A packet counts as sent once it is in the device's queue, so
/// TCP small queues do not hold a sender back here as they do on an interface card.
pub(crate) struct Device {
    tun: Tun,
}

impl Device {
    /// Makes the device inside the host and sets it up.
    pub(crate) fn create(host: &LabHost) -> Result<Self, LabError> {
        let doing = || format!("making the TUN device of the {}", host.side().name());
        let addresses = host.addresses();
        let made = host.run(|| -> io::Result<Tun> {
            let tun = Tun::create(INTERFACE, TunLayer::Ip)?;
            set_up(addresses, host.mtu())?;
            set_queue_packets(INTERFACE, QUEUE_PACKETS)?;
            Ok(tun)
        })?;
        let tun = made.map_err(|source| LabError::kernel(doing(), source))?;
        Ok(Self { tun })
    }
}

/// Gives the device its MTU and its addresses, and sets it up.
fn set_up(addresses: Addresses, mtu: u16) -> io::Result<()> {
    let number = if_nametoindex(INTERFACE)?;
    let netlink = Netlink::open()?;
    netlink.set(&Link::numbered(number).mtu(mtu))?;
    let ipv4 = (addresses.ipv4.into(), AddressPlan::PREFIX_V4);
    let ipv6 = addresses.ipv6.map(|ipv6| (ipv6.into(), AddressPlan::PREFIX_V6));
    for (address, length) in [Some(ipv4), ipv6].into_iter().flatten() {
        netlink.add_address(number, address, length)?;
    }
    netlink.set(&Link::numbered(number).up())
}

impl fmt::Debug for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(INTERFACE)
    }
}

impl End for Device {
    /// A read takes some 0.3 to 1 µs.
    const CLOSE_NS: u64 = 2_000;

    fn receive(&mut self, into: &mut [u8]) -> io::Result<Option<usize>> {
        match self.tun.receive(into) {
            Ok(octets) => Ok(Some(octets)),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn deliver(&mut self, packet: &[u8]) -> io::Result<()> {
        self.tun.send(packet)
    }
}

/// Packets that the host's kernel dropped on their way to us, because its queue was full.
pub(crate) fn dropped_by_kernel(host: &LabHost) -> Result<u64, LabError> {
    let doing = || format!("reading the interface counters of the {}", host.side().name());
    transmit_drops(host.namespace(), INTERFACE).map_err(|source| LabError::kernel(doing(), source))
}
