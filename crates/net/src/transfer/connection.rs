//! Opening the connections of a transfer.

use std::io;
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::os::fd::AsFd;
use std::time::Duration;

use narrows_units::BitRate;
use socket2::{Domain, Protocol, Socket, Type};

use crate::sys::option;

/// What to ask of a connection.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TransferOptions {
    /// Congestion control by its kernel name; `None`: the host's default. One that the host does
    /// not have, or does not let this user have, is passed over: what is used is read back.
    pub congestion: Option<String>,
    /// Payload octets that the window shall hold; `None`: autotuning.
    pub window_octets: Option<u32>,
    /// Pacing limit; `None`: the congestion control's own.
    pub pacing: Option<BitRate>,
    /// Where the connection begins, port 0 being any; `None`: the system chooses. Only of one that
    /// this side opens.
    pub near: Option<SocketAddr>,
    /// Largest segment; `None`: the path's. Only of one that this side opens.
    pub mss_octets: Option<u32>,
    /// Without Nagle's algorithm.
    pub no_delay: bool,
    /// DSCP, in the six upper bits.
    pub traffic_class: u8,
}

/// Connects to `peer` within `timeout`. Buffers are set first, because the window scale is fixed by
/// the SYN.
pub fn connect(peer: SocketAddr, options: &TransferOptions, timeout: Duration) -> io::Result<TcpStream> {
    let socket = prepare(peer, options)?;
    socket.connect_timeout(&peer.into(), timeout)?;
    Ok(socket.into())
}

/// A socket for a connection to `peer`, with all options set: what fails here is this host's doing.
pub(crate) fn prepare(peer: SocketAddr, options: &TransferOptions) -> io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(peer), Type::STREAM, Some(Protocol::TCP))?;
    if let Some(near) = options.near {
        socket.set_reuse_address(true)?;
        socket.bind(&near.into())?;
    }
    if let Some(octets) = options.mss_octets {
        socket.set_tcp_mss(octets)?;
    }
    apply(&socket, peer.ip(), options)?;
    Ok(socket)
}

/// Applies the options to a connection that the peer opened. The window can then no more be widened
/// beyond what the listening socket's own buffers announced, except by autotuning.
pub fn accepted(stream: &TcpStream, options: &TransferOptions) -> io::Result<()> {
    apply(&socket2::SockRef::from(stream), stream.peer_addr()?.ip(), options)
}

fn apply(socket: &Socket, peer: IpAddr, options: &TransferOptions) -> io::Result<()> {
    if let Some(octets) = options.window_octets {
        // The kernel doubles what is set, to pay for its own overhead; about the set value remains
        // for payload.
        let octets = usize::try_from(octets).unwrap_or(usize::MAX);
        socket.set_send_buffer_size(octets)?;
        socket.set_recv_buffer_size(octets)?;
    }
    if let Some(name) = &options.congestion {
        // Passed over on purpose: the report says what the kernel really used.
        let _ = socket.set_tcp_congestion(name.as_bytes());
    }
    if options.no_delay {
        socket.set_tcp_nodelay(true)?;
    }
    if options.traffic_class > 0 {
        mark(socket, peer, options.traffic_class)?;
    }
    set_pacing(socket, options.pacing)
}

/// DSCP, in the six upper bits, of what a socket sends from now on.
pub(crate) fn mark(socket: &impl AsFd, peer: IpAddr, class: u8) -> io::Result<()> {
    let fd = socket.as_fd();
    if peer.is_ipv6() {
        option::set_int(fd, libc::IPPROTO_IPV6, libc::IPV6_TCLASS, class.into())?;
    }
    // An IPv4 peer of an IPv6 socket is sent IPv4 packets.
    if peer.to_canonical().is_ipv4() {
        option::set_int(fd, libc::IPPROTO_IP, libc::IP_TOS, class.into())?;
    }
    Ok(())
}

/// What [`mark`] set, as the socket has it.
pub(crate) fn marked(socket: &impl AsFd, peer: IpAddr) -> Option<u8> {
    let fd = socket.as_fd();
    let class = if peer.to_canonical().is_ipv4() {
        option::get_int(fd, libc::IPPROTO_IP, libc::IP_TOS)
    } else {
        option::get_int(fd, libc::IPPROTO_IPV6, libc::IPV6_TCLASS)
    };
    class.ok().and_then(|class| u8::try_from(class).ok())
}

/// Limits the rate at which a connection sends; `None` lifts the limit.
pub(crate) fn set_pacing(socket: &impl AsFd, rate: Option<BitRate>) -> io::Result<()> {
    // Octets per second, 64 bit since Linux 4.20; all ones: no limit.
    let octets_per_second = rate.map_or(u64::MAX, |rate| (rate.bps() / 8).max(1));
    option::set(socket.as_fd(), libc::SOL_SOCKET, libc::SO_MAX_PACING_RATE, &octets_per_second.to_ne_bytes())
}

/// A call on a bulk connection waits at most this long: so late a thread looks at its stop flag.
const LONGEST_CALL: Duration = Duration::from_millis(20);
/// A reader of a connection that has carried so much is woken for no less than [`LOT_OCTETS`] at a
/// time, but after [`LONGEST_CALL`] for whatever there is (ours: by then what TCP learns in its
/// first round trips from how fast it is read is learnt).
pub(crate) const LOTS_FROM_OCTETS: u64 = 256 << 10;
/// Below half of the window that a connection has before its buffers grow.
const LOT_OCTETS: libc::c_int = 32 << 10;

/// Has reads and writes wait by themselves, which costs a third of the system calls of asking
/// whether they would have to.
pub(crate) fn wait_in_calls(stream: &TcpStream) -> io::Result<()> {
    stream.set_nonblocking(false)?;
    stream.set_read_timeout(Some(LONGEST_CALL))?;
    stream.set_write_timeout(Some(LONGEST_CALL))
}

/// Has the reader be woken less often. The kernel acknowledges as before, and wakes it too when the
/// window is full.
pub(crate) fn read_in_lots(stream: &TcpStream) {
    // Without it the reader is woken more often, that is all.
    let _ = option::set_int(stream.as_fd(), libc::SOL_SOCKET, libc::SO_RCVLOWAT, LOT_OCTETS);
}

/// The congestion control that a connection really uses.
pub(crate) fn congestion(stream: &TcpStream) -> String {
    let name = socket2::SockRef::from(stream).tcp_congestion().unwrap_or_default();
    let name: Vec<u8> = name.into_iter().take_while(|&octet| octet != 0).collect();
    String::from_utf8_lossy(&name).into_owned()
}
