//! Binding a packet socket.

#![expect(unsafe_code, reason = "nix can read link-layer addresses, but not make one")]

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

/// Lets a packet socket receive every protocol of one interface, and send there.
pub(crate) fn to_interface(fd: BorrowedFd<'_>, index: u32) -> io::Result<()> {
    // SAFETY: `sockaddr_ll` is a C structure of integers, for all of which zero is a valid value.
    let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
    address.sll_family = u16::try_from(libc::AF_PACKET).unwrap_or(0);
    address.sll_protocol = u16::try_from(libc::ETH_P_ALL).unwrap_or(0).to_be();
    address.sll_ifindex = i32::try_from(index).map_err(|_| io::ErrorKind::InvalidInput)?;
    let length = libc::socklen_t::try_from(size_of::<libc::sockaddr_ll>()).map_err(|_| io::ErrorKind::InvalidInput)?;
    // SAFETY: the kernel reads `length` octets through a pointer to a structure of that length,
    // which outlives the call.
    let result = unsafe { libc::bind(fd.as_raw_fd(), (&raw const address).cast(), length) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
