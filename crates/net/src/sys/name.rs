//! `getnameinfo`: the name of an address, as the host's own resolver has it.

#![expect(unsafe_code, reason = "getnameinfo takes raw pointers and no crate that we have wraps it")]

use std::ffi::c_char;
use std::net::{IpAddr, SocketAddr};

use socket2::SockAddr;

/// The name of an address; `None` if it has none, or the resolver fails. Blocks for as long as the
/// resolver takes.
pub(crate) fn of(address: IpAddr) -> Option<String> {
    /// `NI_MAXHOST`.
    const ROOM: usize = 1025;
    const ROOM_LENGTH: libc::socklen_t = 1025;
    let target = SockAddr::from(SocketAddr::new(address, 0));
    let mut host = [0u8; ROOM];
    // SAFETY: `target` holds a valid socket address of `target.len()` octets, and `host` is
    // writable for `ROOM_LENGTH` octets (which equals `ROOM`); both outlive the call. No service
    // name is asked for: a null pointer with length zero is allowed then.
    let result = unsafe {
        libc::getnameinfo(
            target.as_ptr().cast(),
            target.len(),
            host.as_mut_ptr().cast::<c_char>(),
            ROOM_LENGTH,
            std::ptr::null_mut(),
            0,
            libc::NI_NAMEREQD,
        )
    };
    if result != 0 {
        return None;
    }
    let end = host.iter().position(|octet| *octet == 0)?;
    String::from_utf8(host[..end].to_vec()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_without_a_name_has_none_and_nothing_breaks() {
        // What loopback is called depends on the host; that a call returns does not.
        for address in [IpAddr::from([127, 0, 0, 1]), IpAddr::from([0u16, 0, 0, 0, 0, 0, 0, 1])] {
            assert!(of(address).is_none_or(|name| !name.is_empty()));
        }
    }
}
