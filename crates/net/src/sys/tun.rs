//! `TUNSETIFF`: gives an open `/dev/net/tun` its interface.

#![expect(unsafe_code, reason = "this ioctl takes a pointer and has no safe wrapper")]

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

use super::ethtool::named;

/// Makes the interface in the network namespace of the calling thread, of the kind that the `IFF_`
/// flags say.
pub(crate) fn attach(tun: BorrowedFd<'_>, interface: &str, flags: libc::c_short) -> io::Result<()> {
    let mut request = named(interface)?;
    request.ifr_ifru.ifru_flags = flags;
    // SAFETY: the kernel reads and writes one `ifreq`, which outlives the call.
    let result = unsafe { libc::ioctl(tun.as_raw_fd(), libc::TUNSETIFF as libc::Ioctl, &raw mut request) };
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}
