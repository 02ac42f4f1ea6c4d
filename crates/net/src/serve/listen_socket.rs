//! The server's public UDP port: stateless address validation, then a socket of its own for each
//! flow.
//!
//! An address gets nothing unless a session's control connection comes from it; and until it has
//! echoed a cookie *and* shown the session's token, it gets at most one cookie per hello, 44 octets
//! for 64.

use std::io::{self, IoSlice, IoSliceMut};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6};
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use narrows_wire::{Datagram, Handshake};
use nix::sys::socket::{
    ControlMessage, ControlMessageOwned, MsgFlags, SockaddrIn, SockaddrIn6, SockaddrStorage, recvmsg, sendmsg,
    setsockopt, sockopt,
};
use socket2::{Domain, Protocol, Socket, Type};

use super::flow::Flow;
use super::session::{Server, lock, now, same_address, same_socket};

/// How often the thread looks whether it should end.
const POLL: Duration = Duration::from_millis(100);

/// Opens the port.
pub(super) fn open(address: SocketAddr) -> io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(address), Type::DGRAM, Some(Protocol::UDP))?;
    // So that each flow's connected socket can share the port; only sockets of the same user may.
    socket.set_reuse_port(true)?;
    if address.is_ipv6() {
        socket.set_only_v6(true)?;
        setsockopt(&socket, sockopt::Ipv6RecvPacketInfo, &true)?;
    } else {
        setsockopt(&socket, sockopt::Ipv4PacketInfo, &true)?;
    }
    socket.set_read_timeout(Some(POLL))?;
    socket.bind(&address.into())?;
    Ok(socket)
}

/// Where a datagram came from, and which of our addresses it was sent to.
#[derive(Debug, Clone, Copy)]
struct DatagramRoute {
    from: SocketAddr,
    to: SocketAddr,
}

/// Answers until the server ends.
pub(super) fn attend(socket: &Socket, server: &Arc<Server>) {
    let port = socket.local_addr().ok().and_then(|local| local.as_socket()).map_or(0, |local| local.port());
    let mut octets = [0u8; 256];
    while !server.ended.load(Ordering::Relaxed) {
        match receive(socket, port, &mut octets) {
            Ok(Some((way, length))) => {
                if let Ok(Datagram::Handshake(message)) = Datagram::parse(&octets[..length]) {
                    answer(socket, server, way, message);
                }
            }
            Ok(None) => {}
            Err(error) if is_passing(&error) => {}
            Err(error) => {
                tracing::error!(%error, "the UDP port is lost");
                return;
            }
        }
    }
}

fn is_passing(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted | io::ErrorKind::TimedOut)
        || crate::socket::is_queued_icmp(error)
}

fn receive(socket: &Socket, port: u16, octets: &mut [u8]) -> io::Result<Option<(DatagramRoute, usize)>> {
    let mut control = nix::cmsg_space!(libc::in_pktinfo, libc::in6_pktinfo);
    let mut parts = [IoSliceMut::new(octets)];
    let message = recvmsg::<SockaddrStorage>(socket.as_raw_fd(), &mut parts, Some(&mut control), MsgFlags::empty())?;
    let Some(from) = message.address.as_ref().and_then(socket_address) else {
        return Ok(None);
    };
    let mut to = None;
    for info in message.cmsgs()? {
        to = match info {
            ControlMessageOwned::Ipv4PacketInfo(info) => {
                let address = Ipv4Addr::from(u32::from_be(info.ipi_spec_dst.s_addr));
                Some(SocketAddr::from((address, port)))
            }
            ControlMessageOwned::Ipv6PacketInfo(info) => {
                let address = Ipv6Addr::from(info.ipi6_addr.s6_addr);
                let scope = if address.is_unicast_link_local() { info.ipi6_ifindex } else { 0 };
                Some(SocketAddr::V6(SocketAddrV6::new(address, port, 0, scope)))
            }
            _ => to,
        };
    }
    // A datagram cut by the buffer is longer than any of the handshake; its head is judged all the
    // same.
    Ok(to.map(|to| (DatagramRoute { from, to }, message.bytes)))
}

fn socket_address(address: &SockaddrStorage) -> Option<SocketAddr> {
    address
        .as_sockaddr_in()
        .map(|v4| SocketAddr::V4((*v4).into()))
        .or_else(|| address.as_sockaddr_in6().map(|v6| SocketAddr::V6((*v6).into())))
}

/// Answers from the very address that was asked.
fn send(socket: &Socket, way: DatagramRoute, octets: &[u8]) -> io::Result<()> {
    let parts = [IoSlice::new(octets)];
    let flags = MsgFlags::MSG_DONTWAIT;
    match (way.from, way.to) {
        (SocketAddr::V4(from), SocketAddr::V4(to)) => {
            let info = libc::in_pktinfo {
                ipi_ifindex: 0,
                ipi_spec_dst: libc::in_addr { s_addr: u32::from(*to.ip()).to_be() },
                ipi_addr: libc::in_addr { s_addr: 0 },
            };
            let control = [ControlMessage::Ipv4PacketInfo(&info)];
            sendmsg(socket.as_raw_fd(), &parts, &control, flags, Some(&SockaddrIn::from(from)))?;
        }
        (SocketAddr::V6(from), SocketAddr::V6(to)) => {
            let info = libc::in6_pktinfo {
                ipi6_addr: libc::in6_addr { s6_addr: to.ip().octets() },
                ipi6_ifindex: to.scope_id(),
            };
            let control = [ControlMessage::Ipv6PacketInfo(&info)];
            sendmsg(socket.as_raw_fd(), &parts, &control, flags, Some(&SockaddrIn6::from(from)))?;
        }
        // One socket is of one version.
        _ => {}
    }
    Ok(())
}

fn answer(socket: &Socket, server: &Arc<Server>, way: DatagramRoute, message: Handshake) {
    match message {
        Handshake::Hello { session, nonce } => {
            // A stranger's address gets nothing at all, so that the port reflects nothing.
            if !server.session(session).is_some_and(|session| same_address(session.peer, way.from.ip())) {
                return;
            }
            let cookie = server.keys.make(way.from, &nonce, now());
            let reply = Handshake::Cookie { session, nonce, cookie };
            // Whether it failed here or on the path, the client asks again.
            let _ = send(socket, way, &reply.encode());
        }
        Handshake::Start { session, nonce, cookie, token, flow } => {
            if !server.keys.check(way.from, &nonce, &cookie, now()) {
                return;
            }
            let Some(session) = server.session(session) else { return };
            if session.token != token
                || !same_address(session.peer, way.from.ip())
                || flow >= session.limits.max_streams
            {
                return;
            }
            let known = lock(&session.flows).get(&flow).cloned();
            if let Some(known) = known {
                if same_socket(known.peer, way.from) {
                    known.confirm();
                    return;
                }
                known.replaced.store(true, Ordering::Relaxed);
            }
            if server.flows.load(Ordering::Relaxed) >= server.options.limits.flows {
                tracing::warn!(client = %way.from, "too many flows");
                return;
            }
            match Flow::open(&session, way.to, way.from, nonce, flow, &server.flows) {
                Ok(opened) => {
                    let mut flows = lock(&session.flows);
                    // The session may have ended meanwhile; then nobody would remove the flow
                    // again.
                    if !session.ended.load(Ordering::Relaxed) {
                        flows.insert(flow, Arc::clone(&opened));
                        drop(flows);
                        opened.confirm();
                    }
                }
                Err(error) => tracing::warn!(%error, client = %way.from, "no socket for a flow"),
            }
        }
        // Answers belong to clients.
        Handshake::Cookie { .. } | Handshake::Started { .. } => {}
    }
}
