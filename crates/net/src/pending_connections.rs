//! What servers of other programs' protocols share: listening at several addresses, and connections
//! that have not said yet what they want.

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, Ipv6Addr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use socket2::{Domain, Protocol, Socket, Type};

use crate::clock;

/// How often a thread looks whether it should end.
pub(crate) const POLL_MILLIS: u8 = 50;

/// Opens every address by `open`, the later ones at the port of the first. A host without IPv6 is
/// served by IPv4 alone.
pub(crate) fn open_all<T>(
    listen: &[IpAddr],
    port: u16,
    open: impl Fn(SocketAddr) -> io::Result<(T, SocketAddr)>,
) -> io::Result<(Vec<T>, Vec<SocketAddr>)> {
    let (mut opened, mut addresses, mut chosen) = (Vec::new(), Vec::new(), port);
    for &address in listen {
        match open(SocketAddr::new(address, chosen)) {
            Ok((one, address)) => {
                chosen = address.port();
                opened.push(one);
                addresses.push(address);
            }
            Err(error) if address.is_unspecified() && address.is_ipv6() && is_absent(&error) => {}
            Err(error) => return Err(error),
        }
    }
    if opened.is_empty() {
        return Err(io::ErrorKind::AddrNotAvailable.into());
    }
    Ok((opened, addresses))
}

/// This host does not have that IP version.
pub(crate) fn is_absent(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EAFNOSUPPORT | libc::EADDRNOTAVAIL))
}

/// A listener that does not block, for one IP version; the kernel holds `backlog` connections until
/// they are accepted.
pub(crate) fn listen(address: SocketAddr, backlog: i32) -> io::Result<TcpListener> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    if address.is_ipv6() {
        socket.set_only_v6(true)?;
    }
    // A restart must not wait for old connections to time out.
    socket.set_reuse_address(true)?;
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    socket.listen(backlog)?;
    Ok(socket.into())
}

/// Addresses of one IPv6 /64 belong to one client.
pub(crate) fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(whole) => {
            let [a, b, c, d, ..] = whole.segments();
            Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0).into()
        }
        v4 @ IpAddr::V4(_) => v4,
    }
}

/// A connection that has not said what it wants; `said` is what it has.
#[derive(Debug)]
pub(crate) struct Pending<S> {
    pub(crate) stream: TcpStream,
    pub(crate) peer: SocketAddr,
    pub(crate) since_ns: i64,
    pub(crate) said: S,
}

/// Whether the listener, and each pending connection, has something.
pub(crate) fn wait<S>(listener: &TcpListener, pending: &[Pending<S>]) -> Vec<bool> {
    let mut fds: Vec<PollFd<'_>> = std::iter::once(listener.as_fd())
        .chain(pending.iter().map(|one| one.stream.as_fd()))
        .map(|fd| PollFd::new(fd, PollFlags::POLLIN))
        .collect();
    // A failed wait shows nothing as ready, and is repeated.
    let _ = poll(&mut fds, PollTimeout::from(POLL_MILLIS));
    fds.iter().map(|fd| fd.revents().is_some_and(|seen| !seen.is_empty())).collect()
}

/// Takes those that wait at the listener, so that at most `most` are pending; `whose` says which
/// addresses are one client's.
pub(crate) fn accept<S: Default>(
    listener: &TcpListener,
    pending: &mut Vec<Pending<S>>,
    most: usize,
    whose: fn(IpAddr) -> IpAddr,
) {
    /// Connections taken in one go, so that those that wait are looked at in between.
    const AT_ONCE: usize = 64;
    for _ in 0..AT_ONCE {
        match listener.accept() {
            Ok((stream, peer)) => {
                if pending.len() >= most {
                    make_room(pending, whose);
                }
                if stream.set_nonblocking(true).is_ok() {
                    pending.push(Pending { stream, peer, since_ns: clock::now_ns(), said: S::default() });
                }
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
            Err(error) => {
                // Out of descriptors, most likely: one that waits makes room.
                make_room(pending, whose);
                tracing::debug!(%error, "a connection could not be accepted");
                clock::sleep_until_ns(clock::now_ns() + 5_000_000);
                return;
            }
        }
    }
}

/// Whoever means it says so within a round trip: of the client with the most connections, the
/// oldest is the least likely to.
fn make_room<S>(pending: &mut Vec<Pending<S>>, whose: fn(IpAddr) -> IpAddr) {
    let mut counts: BTreeMap<IpAddr, usize> = BTreeMap::new();
    for one in pending.iter() {
        *counts.entry(whose(one.peer.ip())).or_default() += 1;
    }
    let worst = counts.into_iter().max_by_key(|(_, count)| *count);
    let oldest = worst.and_then(|(client, _)| pending.iter().position(|one| whose(one.peer.ip()) == client));
    if let Some(oldest) = oldest {
        pending.remove(oldest);
    }
}
