//! Opening the connections of a transfer.

use std::io;
use std::net::{SocketAddr, TcpStream};
use std::os::fd::AsFd;
use std::time::Duration;

use socket2::{Domain, Protocol, Socket, Type};
use units::BitRate;

use crate::sys::option;

/// What to ask of a connection.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TransferOptions {
    /// Congestion control by its kernel name; `None`: the host's default. One that the host does not have, or does not let this
    /// user have, is passed over: what is used is read back.
    pub congestion: Option<String>,
    /// Payload octets that the window shall hold; `None`: autotuning.
    pub window_octets: Option<u32>,
    /// Pacing limit; `None`: the congestion control's own.
    pub pacing: Option<BitRate>,
}

/// Connects to `peer` within `timeout`. Buffers are set first, because the window scale is fixed by the SYN.
pub fn connect(peer: SocketAddr, options: &TransferOptions, timeout: Duration) -> io::Result<TcpStream> {
    let socket = Socket::new(Domain::for_address(peer), Type::STREAM, Some(Protocol::TCP))?;
    apply(&socket, options)?;
    socket.connect_timeout(&peer.into(), timeout)?;
    Ok(socket.into())
}

/// Applies the options to a connection that the peer opened. The window can then no more be widened beyond what the listening
/// socket's own buffers announced, except by autotuning.
pub fn accepted(stream: &TcpStream, options: &TransferOptions) -> io::Result<()> {
    apply(&socket2::SockRef::from(stream), options)
}

fn apply(socket: &Socket, options: &TransferOptions) -> io::Result<()> {
    if let Some(octets) = options.window_octets {
        // The kernel doubles what is set, to pay for its own overhead; about the set value remains for payload.
        let octets = usize::try_from(octets).unwrap_or(usize::MAX);
        socket.set_send_buffer_size(octets)?;
        socket.set_recv_buffer_size(octets)?;
    }
    if let Some(name) = &options.congestion {
        // Passed over on purpose: the report says what the kernel really used.
        let _ = socket.set_tcp_congestion(name.as_bytes());
    }
    set_pacing(socket, options.pacing)
}

/// Limits the rate at which a connection sends; `None` lifts the limit.
pub(crate) fn set_pacing(socket: &impl AsFd, rate: Option<BitRate>) -> io::Result<()> {
    // Octets per second, 64 bit since Linux 4.20; all ones: no limit.
    let octets_per_second = rate.map_or(u64::MAX, |rate| (rate.bps() / 8).max(1));
    option::set(
        socket.as_fd(),
        libc::SOL_SOCKET,
        libc::SO_MAX_PACING_RATE,
        &octets_per_second.to_ne_bytes(),
    )
}

/// The congestion control that a connection really uses.
pub(crate) fn congestion(stream: &TcpStream) -> String {
    let name = socket2::SockRef::from(stream).tcp_congestion().unwrap_or_default();
    let name: Vec<u8> = name.into_iter().take_while(|&octet| octet != 0).collect();
    String::from_utf8_lossy(&name).into_owned()
}
