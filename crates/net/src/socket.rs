//! Sockets as probing needs them: never fragmented, stamped by the kernel, with large buffers,
//! hearing ICMP errors. UDP, mostly; for hosts that run no server of ours also ICMP and TCP
//! segments by hand.

mod kind;

use std::ffi::c_int;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::OnceLock;
use std::time::Duration;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use socket2::{Domain, Protocol, Socket, Type};

use crate::clock;
use crate::sys::control::SO_TIMESTAMPING_NEW;
use crate::sys::option;
use crate::sys::send::{self, Message};

pub use kind::Kind;

/// What to ask of a socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SocketOptions {
    /// Receive buffer in octets of the kernel's accounting (which doubles what is set). Default
    /// ours: 8 MiB, half a second of 100 Mbit/s, or 64 MTU-sized packets per millisecond for 40 ms.
    pub receive_buffer_octets: usize,
    /// Send buffer, likewise. Default ours: 2 MiB.
    pub send_buffer_octets: usize,
    /// Other sockets may share the local port, the kernel choosing by the peer.
    pub reuse_port: bool,
}

impl Default for SocketOptions {
    fn default() -> Self {
        Self { receive_buffer_octets: 8 << 20, send_buffer_octets: 2 << 20, reuse_port: false }
    }
}

/// `SOF_TIMESTAMPING_*`: receive stamps by card and kernel, both reported, and no copy of what was
/// sent.
const STAMP_RECEIVED: c_int = (1 << 2) | (1 << 3) | (1 << 4) | (1 << 6) | (1 << 11);
/// Departure stamps by card and kernel, both of them, numbered.
const STAMP_SENT: c_int = (1 << 0) | (1 << 1) | (1 << 7) | (1 << 14);

/// Where in an ICMP error the extensions begin is told with it (Linux 5.9).
const IP_RECVERR_RFC4884: c_int = 26;
const IPV6_RECVERR_RFC4884: c_int = 31;

const NO_MESSAGE: Message<'static> = Message { payload: &[], hop_limit: None, segment_octets: None };

/// A socket with every option set that measurement needs.
#[derive(Debug)]
pub struct ProbeSocket {
    socket: Socket,
    kind: Kind,
    ipv6: bool,
    stamps: bool,
}

impl ProbeSocket {
    /// Opens a UDP socket and binds it.
    pub fn bind(local: SocketAddr, options: &SocketOptions) -> io::Result<Self> {
        Self::bind_kind(Kind::Udp, local, options)
    }

    /// Opens a socket of any kind and binds it.
    pub fn bind_kind(kind: Kind, local: SocketAddr, options: &SocketOptions) -> io::Result<Self> {
        keep_stamps_on();
        let socket = kind.open(local)?;
        let ipv6 = local.is_ipv6();
        if options.reuse_port {
            socket.set_reuse_port(true)?;
        }
        set_buffer(&socket, libc::SO_RCVBUFFORCE, libc::SO_RCVBUF, options.receive_buffer_octets)?;
        set_buffer(&socket, libc::SO_SNDBUFFORCE, libc::SO_SNDBUF, options.send_buffer_octets)?;
        let fd = socket.as_fd();
        if ipv6 {
            option::set_int(fd, libc::IPPROTO_IPV6, libc::IPV6_MTU_DISCOVER, libc::IPV6_PMTUDISC_PROBE)?;
            option::set_int(fd, libc::IPPROTO_IPV6, libc::IPV6_RECVERR, 1)?;
            // Older kernels do not say where extensions begin; where they lie in any case is found
            // without that.
            let _ = option::set_int(fd, libc::IPPROTO_IPV6, IPV6_RECVERR_RFC4884, 1);
            option::set_int(fd, libc::IPPROTO_IPV6, libc::IPV6_RECVHOPLIMIT, 1)?;
        } else {
            option::set_int(fd, libc::IPPROTO_IP, libc::IP_MTU_DISCOVER, libc::IP_PMTUDISC_PROBE)?;
            option::set_int(fd, libc::IPPROTO_IP, libc::IP_RECVERR, 1)?;
            let _ = option::set_int(fd, libc::IPPROTO_IP, IP_RECVERR_RFC4884, 1);
            option::set_int(fd, libc::IPPROTO_IP, libc::IP_RECVTTL, 1)?;
        }
        let stamps = option::set_int(fd, libc::SOL_SOCKET, SO_TIMESTAMPING_NEW, STAMP_RECEIVED).is_ok();
        socket.set_nonblocking(true)?;
        socket.bind(&local.into())?;
        Ok(Self { socket, kind, ipv6, stamps })
    }

    /// Opens a UDP socket, binds it to any address of the peer's family, and connects it.
    pub fn connected(peer: SocketAddr, options: &SocketOptions) -> io::Result<Self> {
        Self::connected_kind(Kind::Udp, peer, options)
    }

    /// Opens a socket of any kind, binds it to any address of the peer's family, and connects it.
    pub fn connected_kind(kind: Kind, peer: SocketAddr, options: &SocketOptions) -> io::Result<Self> {
        let any = if peer.is_ipv6() { SocketAddr::from(([0u16; 8], 0)) } else { SocketAddr::from(([0u8; 4], 0)) };
        let socket = Self::bind_kind(kind, any, options)?;
        socket.connect(peer)?;
        Ok(socket)
    }

    /// Fixes the peer: only its packets are received from now on.
    pub fn connect(&self, peer: SocketAddr) -> io::Result<()> {
        self.socket.connect(&peer.into())
    }

    /// The address it is bound to.
    pub fn local(&self) -> io::Result<SocketAddr> {
        address(&self.socket.local_addr()?)
    }

    /// The peer it is connected to.
    pub fn peer(&self) -> io::Result<SocketAddr> {
        address(&self.socket.peer_addr()?)
    }

    /// The packets are IPv6.
    pub fn ipv6(&self) -> bool {
        self.ipv6
    }

    /// What it sends.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// Octets of header that the kernel puts in front of a payload: IP, and UDP.
    pub fn header_octets(&self) -> u16 {
        let ip = if self.ipv6 { 40 } else { 20 };
        if self.kind == Kind::Udp { ip + 8 } else { ip }
    }

    /// Sends packets with this hop limit, unless they carry one of their own.
    pub fn set_hop_limit(&self, hop_limit: u8) -> io::Result<()> {
        if self.ipv6 {
            option::set_int(self.as_fd(), libc::IPPROTO_IPV6, libc::IPV6_UNICAST_HOPS, hop_limit.into())
        } else {
            option::set_int(self.as_fd(), libc::IPPROTO_IP, libc::IP_TTL, hop_limit.into())
        }
    }

    /// Has the kernel tell DSCP and ECN of every packet that arrives.
    pub fn tell_traffic_class(&self) -> io::Result<()> {
        let fd = self.socket.as_fd();
        if self.ipv6 {
            option::set_int(fd, libc::IPPROTO_IPV6, libc::IPV6_RECVTCLASS, 1)
        } else {
            option::set_int(fd, libc::IPPROTO_IP, libc::IP_RECVTOS, 1)
        }
    }

    /// DSCP, in the six upper bits, of packets from now on.
    pub fn set_traffic_class(&self, class: u8) -> io::Result<()> {
        let fd = self.socket.as_fd();
        if self.ipv6 {
            option::set_int(fd, libc::IPPROTO_IPV6, libc::IPV6_TCLASS, class.into())
        } else {
            option::set_int(fd, libc::IPPROTO_IP, libc::IP_TOS, class.into())
        }
    }

    /// Lets the kernel hand over several datagrams of one length as one message (`UDP_GRO`, Linux
    /// 5.0), of which only a [`Receiver`](crate::receive::Receiver) that gathers makes datagrams
    /// again.
    pub(crate) fn gather(&self, on: bool) -> io::Result<()> {
        option::set_int(self.as_fd(), libc::SOL_UDP, libc::UDP_GRO, on.into())
    }

    /// Lets host and routers cut packets that are too long for a link, as ordinary sockets do.
    pub fn let_fragment(&self) -> io::Result<()> {
        if self.ipv6 {
            let never = libc::IPV6_PMTUDISC_DONT;
            option::set_int(self.as_fd(), libc::IPPROTO_IPV6, libc::IPV6_MTU_DISCOVER, never)
        } else {
            let never = libc::IP_PMTUDISC_DONT;
            option::set_int(self.as_fd(), libc::IPPROTO_IP, libc::IP_MTU_DISCOVER, never)
        }
    }

    /// Payload octets of an IP packet of this length; `None` if the headers alone are longer.
    pub fn payload_octets(&self, ip_octets: u16) -> Option<usize> {
        ip_octets.checked_sub(self.header_octets()).map(usize::from)
    }

    /// The IP octets of a packet with this payload; saturates at the largest IP packet.
    pub fn ip_octets(&self, payload_octets: usize) -> u16 {
        u16::try_from(payload_octets).map_or(u16::MAX, |octets| octets.saturating_add(self.header_octets()))
    }

    /// The kernel stamps what arrives.
    pub fn stamps(&self) -> bool {
        self.stamps
    }

    /// What the kernel takes the path MTU to be; only of a connected socket.
    pub fn path_mtu(&self) -> Option<u16> {
        let mtu = if self.ipv6 {
            option::get_int(self.as_fd(), libc::IPPROTO_IPV6, libc::IPV6_MTU)
        } else {
            option::get_int(self.as_fd(), libc::IPPROTO_IP, libc::IP_MTU)
        };
        // The loopback interface's 65536 is more than a length field holds; the largest packet is
        // 65535.
        mtu.ok().and_then(|mtu| u32::try_from(mtu).ok()).map(|mtu| u16::try_from(mtu).unwrap_or(u16::MAX))
    }

    /// Receive and send buffer that the kernel really granted, in octets of its own accounting
    /// (twice what was set).
    pub fn buffers(&self) -> io::Result<(usize, usize)> {
        Ok((self.socket.recv_buffer_size()?, self.socket.send_buffer_size()?))
    }

    /// Packets that the socket has dropped since it was made, almost always for want of buffer;
    /// wraps. The same counter as `SO_RXQ_OVFL`, but read at once: that option tells only with the
    /// next packet that gets in, which may never come.
    pub fn drops(&self) -> Option<u32> {
        /// `SO_MEMINFO` (Linux 4.12): nine counters, of which the last is the drops.
        const SO_MEMINFO: c_int = 55;
        const DROPS_OFFSET: usize = 8 * 4;
        let mut octets = [0; 9 * 4];
        let length = option::get(self.as_fd(), libc::SOL_SOCKET, SO_MEMINFO, &mut octets).ok()?;
        let drops = octets[..length].get(DROPS_OFFSET..)?;
        Some(u32::from_ne_bytes(drops.try_into().ok()?))
    }

    /// Turns departure stamps on or off. Turning on restarts their numbering at zero, so a train's
    /// first packet is number 0. `false` if the kernel will not stamp.
    pub fn stamp_departures(&self, on: bool) -> bool {
        let set = |flags| option::set_int(self.as_fd(), libc::SOL_SOCKET, SO_TIMESTAMPING_NEW, flags).is_ok();
        // Numbering restarts only when the flag goes from off to on.
        set(STAMP_RECEIVED) && (!on || set(STAMP_RECEIVED | STAMP_SENT))
    }

    /// Sends one datagram to the connected peer. An ICMP error that waits on the socket is not this
    /// packet's: it is passed over.
    pub fn send(&self, payload: &[u8]) -> io::Result<()> {
        retry_over_queued_errors(|| self.socket.send(payload)).map(|_| ())
    }

    /// Sends datagrams to the connected peer back to back, by one system call; how many the kernel
    /// took (at most 64 at a time). An error concerns the first of them, and none left. Never
    /// waits.
    pub fn send_batch(&self, payloads: &[&[u8]]) -> io::Result<usize> {
        let mut messages = [NO_MESSAGE; send::BATCH];
        let count = payloads.len().min(send::BATCH);
        for (message, payload) in messages.iter_mut().zip(payloads) {
            message.payload = payload;
        }
        if count == 0 {
            return Ok(0);
        }
        retry_over_queued_errors(|| send::send(self.as_fd(), &messages[..count], self.ipv6))
    }

    /// Sends one datagram to any peer.
    pub fn send_to(&self, payload: &[u8], peer: SocketAddr) -> io::Result<()> {
        let peer = peer.into();
        retry_over_queued_errors(|| self.socket.send_to(payload, &peer)).map(|_| ())
    }

    /// Waits until something can be read, or `deadline_ns` (monotonic) passes, or an error is
    /// queued.
    pub fn wait(&self, deadline_ns: i64) -> io::Result<Ready> {
        self.poll(PollFlags::POLLIN, deadline_ns)
    }

    /// Waits until something can be sent, or `deadline_ns` passes.
    pub fn wait_to_send(&self, deadline_ns: i64) -> io::Result<Ready> {
        self.poll(PollFlags::POLLOUT, deadline_ns)
    }

    fn poll(&self, wanted: PollFlags, deadline_ns: i64) -> io::Result<Ready> {
        let left = u64::try_from(deadline_ns.saturating_sub(clock::now_ns())).unwrap_or(0);
        // Rounded up, so that a wait does not become a spin within the last millisecond.
        let timeout = PollTimeout::try_from(Duration::from_nanos(left).as_millis() + u128::from(left > 0))
            .unwrap_or(PollTimeout::MAX);
        let mut fds = [PollFd::new(self.as_fd(), wanted)];
        match poll(&mut fds, timeout) {
            Ok(_) => {}
            Err(nix::errno::Errno::EINTR) => return Ok(Ready::default()),
            Err(errno) => return Err(errno.into()),
        }
        let seen = fds[0].revents().unwrap_or(PollFlags::empty());
        Ok(Ready { wanted: seen.intersects(wanted), error: seen.contains(PollFlags::POLLERR) })
    }
}

impl AsFd for ProbeSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Keeps the kernel's switch for receive stamps on until the process ends. It is one for the whole
/// host, and turning it on takes effect only milliseconds later: without this the first packets of
/// every socket that is the only one to ask would lack stamps.
fn keep_stamps_on() {
    static KEEPER: OnceLock<Option<Socket>> = OnceLock::new();
    KEEPER.get_or_init(|| {
        let socket = Socket::new(Domain::IPV4, Type::DGRAM, Some(Protocol::UDP)).ok()?;
        option::set_int(socket.as_fd(), libc::SOL_SOCKET, SO_TIMESTAMPING_NEW, STAMP_RECEIVED).ok()?;
        Some(socket)
    });
}

/// What a wait ended with; neither is set when time ran out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Ready {
    /// What was waited for.
    pub wanted: bool,
    /// The error queue holds something (departure stamps too are queued there).
    pub error: bool,
}

/// An ICMP error that came earlier is reported by the next call on the socket, whatever that is,
/// and the packet of that call is not sent. Sends again as often as such an error can wait: a
/// kernel keeps one at a time, and more may come meanwhile.
pub(crate) fn retry_over_queued_errors<T>(mut send: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    const ATTEMPTS: u32 = 8;
    for _ in 1..ATTEMPTS {
        match send() {
            Err(error) if is_queued_icmp(&error) => {}
            other => return other,
        }
    }
    send()
}

/// The error is (or may be) what an ICMP message left behind.
pub(crate) fn is_queued_icmp(error: &io::Error) -> bool {
    matches!(
        error.raw_os_error(),
        Some(
            libc::EHOSTUNREACH
                | libc::ENETUNREACH
                | libc::ECONNREFUSED
                | libc::EHOSTDOWN
                | libc::ENOPROTOOPT
                | libc::EPROTO
                | libc::EMSGSIZE
                | libc::EOPNOTSUPP
                | libc::EACCES
        )
    )
}

/// Beyond the system's limit if privileged, else as far as it goes.
fn set_buffer(socket: &Socket, forced: c_int, plain: c_int, octets: usize) -> io::Result<()> {
    let octets = c_int::try_from(octets).unwrap_or(c_int::MAX / 2);
    option::set_int(socket.as_fd(), libc::SOL_SOCKET, forced, octets)
        .or_else(|_| option::set_int(socket.as_fd(), libc::SOL_SOCKET, plain, octets))
}

fn address(address: &socket2::SockAddr) -> io::Result<SocketAddr> {
    address.as_socket().ok_or_else(|| io::ErrorKind::AddrNotAvailable.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn loopback() -> SocketAddr {
        SocketAddr::from(([127, 0, 0, 1], 0))
    }

    #[test]
    fn buffers_read_back() {
        let options =
            SocketOptions { receive_buffer_octets: 65_536, send_buffer_octets: 32_768, ..SocketOptions::default() };
        let socket = ProbeSocket::bind(loopback(), &options).unwrap();
        assert_eq!(socket.buffers().unwrap(), (131_072, 65_536));
    }

    #[test]
    fn both_versions_know_their_headers() {
        for (local, headers) in [(loopback(), 28), (SocketAddr::from(([0, 0, 0, 0, 0, 0, 0, 1], 0)), 48)] {
            let remote = ProbeSocket::bind(local, &SocketOptions::default()).unwrap();
            let near = ProbeSocket::connected(remote.local().unwrap(), &SocketOptions::default()).unwrap();
            assert_eq!(near.header_octets(), headers);
            assert_eq!(near.ip_octets(near.payload_octets(1500).unwrap()), 1500);
            assert_eq!(near.payload_octets(headers - 1), None);
            assert_eq!(near.path_mtu(), Some(65_535));
            assert_eq!(near.peer().unwrap(), remote.local().unwrap());
        }
    }

    #[test]
    fn a_refused_port_does_not_eat_the_next_packet() {
        let gone = ProbeSocket::bind(loopback(), &SocketOptions::default()).unwrap().local().unwrap();
        let near = ProbeSocket::connected(gone, &SocketOptions::default()).unwrap();
        for _ in 0..5 {
            near.send(&[1; 10]).unwrap();
        }
    }

    #[test]
    fn a_batch_arrives_in_order() {
        let remote = ProbeSocket::bind(loopback(), &SocketOptions::default()).unwrap();
        let near = ProbeSocket::connected(remote.local().unwrap(), &SocketOptions::default()).unwrap();
        let payloads: Vec<Vec<u8>> = (0..100u8).map(|k| vec![k; 20 + usize::from(k)]).collect();
        let all: Vec<&[u8]> = payloads.iter().map(Vec::as_slice).collect();
        let mut sent = 0;
        while sent < all.len() {
            sent += near.send_batch(&all[sent..]).unwrap();
        }
        assert_eq!((sent, near.send_batch(&[]).unwrap()), (100, 0));
        let mut receiver = crate::receive::Receiver::new(&remote, 256);
        let mut seen: Vec<Vec<u8>> = Vec::new();
        while seen.len() < 100 && receiver.receive(&remote, clock::now_ns() + 1_000_000_000).unwrap() > 0 {
            seen.extend(receiver.iter().map(|datagram| datagram.payload.to_vec()));
        }
        assert_eq!(seen, payloads);
    }

    #[test]
    fn a_wait_ends_at_its_deadline() {
        let socket = ProbeSocket::bind(loopback(), &SocketOptions::default()).unwrap();
        let deadline = clock::now_ns() + 3_000_000;
        assert_eq!(socket.wait(deadline).unwrap(), Ready::default());
        assert!(clock::now_ns() >= deadline);
    }
}
