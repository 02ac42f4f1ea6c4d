//! Work that a kernel leaves to an interface.

use std::io;
use std::net::UdpSocket;
use std::os::fd::AsFd;

use crate::sys::ethtool;

/// `ETHTOOL_S…` (linux/ethtool.h), and whether frames would not be whole without it.
const OFF: [(u32, bool); 7] = [
    // Sending: segments, generic segments, checksums.
    (0x1f, true),
    (0x24, true),
    (0x17, true),
    // Receiving: generic coalescing, checksums.
    (0x2c, true),
    (0x15, false),
    // Fragments of UDP, where a kernel still knows them.
    (0x22, false),
    // Flags: large receive, VLAN tags and the rest.
    (0x26, false),
];

/// Lets the kernel finish each frame before this interface gets it: no segmentation, no coalescing,
/// no checksum or VLAN tag is left to the interface. In the calling thread's namespace; needs
/// `CAP_NET_ADMIN` there.
pub fn turn_off_offloads(interface: &str) -> io::Result<()> {
    let socket = UdpSocket::bind((std::net::Ipv4Addr::UNSPECIFIED, 0))?;
    for (command, needed) in OFF {
        match ethtool::set(socket.as_fd(), interface, command, 0) {
            Err(error) if needed => return Err(error),
            _ => {}
        }
    }
    Ok(())
}
