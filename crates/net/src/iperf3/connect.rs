//! Sockets of a test, with the options that its parameters ask for.

use std::io;
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::os::fd::AsFd;
use std::time::Duration;

use narrows_units::BitRate;
use narrows_wire::iperf3::Parameters;
use socket2::{Domain, Protocol, SockRef, Socket, TcpKeepalive, Type};

use crate::socket::{ProbeSocket, SocketOptions};
use crate::transfer::{self, set_pacing};

/// Buffers of UDP streams where nobody asked for any: of one, and of all together (ours: half a
/// second of 100 Mbit/s for one).
const UDP_BUFFER: usize = 8 << 20;
const UDP_BUFFERS: usize = 64 << 20;

/// Where this side's sockets begin.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Near {
    pub(super) address: Option<IpAddr>,
    pub(super) port: Option<u16>,
}

impl Near {
    /// `None`: the system chooses all of it.
    fn socket_address(self, ipv6: bool) -> Option<SocketAddr> {
        if self.address.is_none() && self.port.is_none() {
            return None;
        }
        let any = if ipv6 { IpAddr::from([0u16; 8]) } else { IpAddr::from([0u8; 4]) };
        Some(SocketAddr::new(self.address.unwrap_or(any), self.port.unwrap_or(0)))
    }
}

/// The control connection.
pub(super) fn control(peer: SocketAddr, near: Near, timeout: Duration) -> io::Result<TcpStream> {
    let socket = Socket::new(Domain::for_address(peer), Type::STREAM, Some(Protocol::TCP))?;
    if let Some(address) = (Near { port: None, ..near }).socket_address(peer.is_ipv6()) {
        socket.bind(&address.into())?;
    }
    socket.connect_timeout(&peer.into(), timeout)?;
    let stream = TcpStream::from(socket);
    watch(&stream)?;
    Ok(stream)
}

/// A control connection is silent during a test: the kernel asks now and then whether the remote
/// host is still there.
pub(super) fn watch(stream: &TcpStream) -> io::Result<()> {
    const EVERY: Duration = Duration::from_secs(1);
    stream.set_nodelay(true)?;
    let alive = TcpKeepalive::new().with_time(EVERY).with_interval(EVERY).with_retries(3);
    SockRef::from(stream).set_tcp_keepalive(&alive)
}

/// A client's data connection. What is asked for and cannot be had is an error.
pub(super) fn stream(
    peer: SocketAddr,
    near: Near,
    parameters: &Parameters,
    timeout: Duration,
) -> Result<TcpStream, (&'static str, io::Error)> {
    let say = |doing| move |error| (doing, error);
    let socket =
        Socket::new(Domain::for_address(peer), Type::STREAM, Some(Protocol::TCP)).map_err(say("open a TCP socket"))?;
    if let Some(address) = near.socket_address(peer.is_ipv6()) {
        socket.set_reuse_address(true).map_err(say("share an address"))?;
        socket.bind(&address.into()).map_err(say("use that local address and port"))?;
    }
    if let Some(octets) = parameters.window_octets {
        let octets = usize::try_from(octets).unwrap_or(usize::MAX);
        socket.set_send_buffer_size(octets).map_err(say("set the send buffer"))?;
        socket.set_recv_buffer_size(octets).map_err(say("set the receive buffer"))?;
    }
    if let Some(octets) = parameters.mss_octets {
        socket.set_tcp_mss(octets).map_err(say("set the segment size"))?;
    }
    if let Some(name) = &parameters.congestion {
        socket
            .set_tcp_congestion(name.as_bytes())
            .map_err(say("use that congestion control (not loaded, or not allowed to this user)"))?;
    }
    if parameters.no_delay {
        socket.set_tcp_nodelay(true).map_err(say("turn Nagle's algorithm off"))?;
    }
    mark(&socket, peer.ip(), parameters.tos).map_err(say("mark packets with that DSCP"))?;
    pace(&socket, parameters.fq_rate_bps).map_err(say("pace that connection"))?;
    socket.connect_timeout(&peer.into(), timeout).map_err(say("open a data connection"))?;
    Ok(socket.into())
}

/// A server's data connection. What cannot be had is passed over: the results say what was used.
pub(super) fn accepted(stream: &TcpStream, parameters: &Parameters, most_bps: u64) -> io::Result<()> {
    let socket = SockRef::from(stream);
    if let Some(octets) = parameters.window_octets {
        let octets = usize::try_from(octets).unwrap_or(usize::MAX);
        let _ = socket.set_send_buffer_size(octets);
        let _ = socket.set_recv_buffer_size(octets);
    }
    if let Some(name) = &parameters.congestion {
        let _ = socket.set_tcp_congestion(name.as_bytes());
    }
    if parameters.no_delay {
        let _ = socket.set_tcp_nodelay(true);
    }
    let _ = mark(stream, stream.peer_addr()?.ip(), parameters.tos);
    let asked = if parameters.fq_rate_bps == 0 { u64::MAX } else { parameters.fq_rate_bps };
    let rate = asked.min(most_bps);
    pace(stream, if rate == u64::MAX { 0 } else { rate })
}

/// A UDP socket of a stream. Both sides let the network cut datagrams that are too long, unless
/// told otherwise.
pub(super) fn datagrams(
    near: SocketAddr,
    peer: SocketAddr,
    parameters: &Parameters,
    shared_port: bool,
) -> io::Result<ProbeSocket> {
    let buffer = parameters.window_octets.map_or_else(
        || (UDP_BUFFERS / parameters.all_streams().max(1)).min(UDP_BUFFER),
        |octets| usize::try_from(octets).unwrap_or(usize::MAX),
    );
    let options = SocketOptions {
        receive_buffer_octets: buffer,
        send_buffer_octets: buffer.min(2 << 20),
        reuse_port: shared_port,
    };
    let socket = ProbeSocket::bind(near, &options)?;
    socket.connect(peer)?;
    if !parameters.dont_fragment {
        socket.let_fragment()?;
    }
    // A mark or a pace that cannot be had shows in the packets, and hurts nobody.
    let _ = mark(&socket, peer.ip(), parameters.tos);
    let _ = pace(&socket, parameters.fq_rate_bps);
    Ok(socket)
}

/// Any local address for a peer, or the one that was asked for.
pub(super) fn near_of(near: Near, peer: SocketAddr) -> SocketAddr {
    let any = if peer.is_ipv6() { SocketAddr::from(([0u16; 8], 0)) } else { SocketAddr::from(([0u8; 4], 0)) };
    near.socket_address(peer.is_ipv6()).unwrap_or(any)
}

fn mark(socket: &impl AsFd, peer: IpAddr, tos: u8) -> io::Result<()> {
    if tos == 0 {
        return Ok(());
    }
    transfer::mark(socket, peer, tos)
}

fn pace(socket: &impl AsFd, bps: u64) -> io::Result<()> {
    if bps == 0 {
        return Ok(());
    }
    set_pacing(socket, Some(BitRate::from_bps(bps)))
}
