//! Who comes: connections that say by their first octets which test they belong to, and UDP greetings.

use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use socket2::{Domain, Protocol, Socket, Type};
use wire::iperf3::{COOKIE_OCTETS, Cookie, MOST_STREAMS, State};

use super::serve::{Entry, Shared};
use super::session;
use crate::clock::{self, nanos};
use crate::receive::Receiver;
use crate::socket::{ProbeSocket, SocketOptions};

/// Connections that the kernel holds for us until we accept them.
const BACKLOG: i32 = 256;
/// How often a thread looks whether it should end.
const LOOK_MILLIS: u8 = 50;
/// How long a connection may take to say what it is.
const GREETING_NS: i64 = 5_000_000_000;
/// How often a free port is looked for that is free for both TCP and UDP.
const PORT_TRIES: u32 = 16;

/// One address.
pub(super) struct Door {
    pub(super) tcp: TcpListener,
    pub(super) udp: ProbeSocket,
}

/// Opens every address. A host without IPv6 is served by IPv4 alone.
pub(super) fn open_all(listen: &[IpAddr], port: u16) -> io::Result<(Vec<Door>, Vec<SocketAddr>)> {
    let mut tries = 0;
    loop {
        tries += 1;
        match open_once(listen, port) {
            Err(error) if port == 0 && tries < PORT_TRIES && error.kind() == io::ErrorKind::AddrInUse => {}
            done => return done,
        }
    }
}

fn open_once(listen: &[IpAddr], port: u16) -> io::Result<(Vec<Door>, Vec<SocketAddr>)> {
    let (mut doors, mut addresses, mut chosen) = (Vec::new(), Vec::new(), port);
    for &address in listen {
        match open(SocketAddr::new(address, chosen)) {
            Ok((door, address)) => {
                chosen = address.port();
                doors.push(door);
                addresses.push(address);
            }
            Err(error)
                if address.is_unspecified()
                    && address.is_ipv6()
                    && matches!(error.raw_os_error(), Some(libc::EAFNOSUPPORT | libc::EADDRNOTAVAIL)) => {}
            Err(error) => return Err(error),
        }
    }
    if doors.is_empty() {
        return Err(io::ErrorKind::AddrNotAvailable.into());
    }
    Ok((doors, addresses))
}

fn open(address: SocketAddr) -> io::Result<(Door, SocketAddr)> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    if address.is_ipv6() {
        socket.set_only_v6(true)?;
    }
    socket.set_reuse_address(true)?;
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    let tcp = TcpListener::from(socket);
    let address = tcp.local_addr()?;
    let options = SocketOptions {
        // Greetings are four octets long.
        receive_buffer_octets: 1 << 20,
        reuse_port: true,
        ..SocketOptions::default()
    };
    let udp = ProbeSocket::bind(address, &options)?;
    Ok((Door { tcp, udp }, address))
}

/// A connection that has not yet said what it is.
struct Pending {
    stream: TcpStream,
    peer: SocketAddr,
    octets: [u8; COOKIE_OCTETS],
    got: usize,
    since_ns: i64,
}

enum Progress {
    Waits,
    Said(Cookie),
    Gone,
}

impl Pending {
    fn read(&mut self) -> Progress {
        match self.stream.read(&mut self.octets[self.got..]) {
            Ok(0) => Progress::Gone,
            Ok(read) => {
                self.got += read;
                if self.got < COOKIE_OCTETS {
                    return Progress::Waits;
                }
                Cookie::parse(self.octets).map_or(Progress::Gone, Progress::Said)
            }
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {
                Progress::Waits
            }
            Err(_) => Progress::Gone,
        }
    }
}

/// Takes connections until the server ends.
pub(super) fn attend(listener: &TcpListener, shared: &Arc<Shared>) {
    let most = shared.options.limits.half_open.max(1);
    let mut pending: Vec<Pending> = Vec::new();
    while !shared.ended.load(Ordering::Relaxed) {
        let ready = wait(listener, &pending);
        if ready.first().copied().unwrap_or(false) {
            accept(listener, &mut pending, most);
        }
        let now = clock::now_ns();
        let mut ready = ready.into_iter().skip(1);
        pending = pending
            .into_iter()
            .filter_map(|mut one| {
                let progress = if ready.next().unwrap_or(true) {
                    one.read()
                } else {
                    Progress::Waits
                };
                match progress {
                    Progress::Waits => (now - one.since_ns < GREETING_NS).then_some(one),
                    Progress::Gone => None,
                    Progress::Said(cookie) => {
                        admit(shared, cookie, one);
                        None
                    }
                }
            })
            .collect();
    }
}

/// Whether the listener, and each pending connection, has something.
fn wait(listener: &TcpListener, pending: &[Pending]) -> Vec<bool> {
    let mut fds: Vec<PollFd<'_>> = std::iter::once(listener.as_fd())
        .chain(pending.iter().map(|one| one.stream.as_fd()))
        .map(|fd| PollFd::new(fd, PollFlags::POLLIN))
        .collect();
    // A failed wait shows nothing as ready, and is repeated.
    let _ = poll(&mut fds, PollTimeout::from(LOOK_MILLIS));
    fds.iter()
        .map(|fd| fd.revents().is_some_and(|seen| !seen.is_empty()))
        .collect()
}

fn accept(listener: &TcpListener, pending: &mut Vec<Pending>, most: usize) {
    /// Connections taken in one go, so that those that wait are looked at in between.
    const AT_ONCE: usize = 64;
    for _ in 0..AT_ONCE {
        match listener.accept() {
            Ok((stream, peer)) => {
                if pending.len() >= most {
                    make_room(pending);
                }
                if stream.set_nonblocking(true).is_ok() {
                    pending.push(Pending {
                        stream,
                        peer,
                        octets: [0; COOKIE_OCTETS],
                        got: 0,
                        since_ns: clock::now_ns(),
                    });
                }
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
            Err(error) => {
                // Out of descriptors, most likely: one that waits makes room.
                make_room(pending);
                tracing::debug!(%error, "a connection could not be accepted");
                clock::sleep_until_ns(clock::now_ns() + 5_000_000);
                return;
            }
        }
    }
}

/// Whoever means it says so within a round trip: of the address with the most connections, the oldest is the least likely to.
fn make_room(pending: &mut Vec<Pending>) {
    let mut counts: BTreeMap<IpAddr, usize> = BTreeMap::new();
    for one in pending.iter() {
        *counts.entry(one.peer.ip()).or_default() += 1;
    }
    let worst = counts.into_iter().max_by_key(|(_, count)| *count);
    let oldest = worst.and_then(|(address, _)| pending.iter().position(|one| one.peer.ip() == address));
    if let Some(oldest) = oldest {
        pending.remove(oldest);
    }
}

/// A stream of a test that waits for it, or a new test.
fn admit(shared: &Arc<Shared>, cookie: Cookie, pending: Pending) {
    let Pending { mut stream, peer, .. } = pending;
    let address = peer.ip().to_canonical();
    let mut sessions = shared.sessions();
    if let Some(entry) = sessions.get(&cookie) {
        if entry.peer != address || entry.streams.try_send(stream).is_err() {
            tracing::debug!(%peer, "a stream of no test");
        }
        return;
    }
    let limits = &shared.options.limits;
    let same = sessions.values().filter(|entry| entry.peer == address).count();
    if sessions.len() >= limits.sessions || same >= limits.sessions_per_address {
        drop(sessions);
        // Whether the client hears it is its own affair.
        let _ = stream.write(&[State::AccessDenied.octet()]);
        return;
    }
    let (sender, streams) = mpsc::sync_channel(2 * usize::from(MOST_STREAMS));
    sessions.insert(
        cookie,
        Entry {
            peer: address,
            streams: sender,
        },
    );
    drop(sessions);
    let server = Arc::clone(shared);
    let thread = std::thread::Builder::new()
        .name("iperf3-test".to_owned())
        .spawn(move || session::conduct(&server, cookie, stream, peer, streams));
    if let Err(error) = thread {
        shared.sessions().remove(&cookie);
        tracing::error!(%error, "no thread for a test");
    }
}

/// Hands UDP greetings on until the server ends.
pub(super) fn greet(socket: &ProbeSocket, shared: &Shared) {
    let mut packets = Receiver::new(socket, 16);
    while !shared.ended.load(Ordering::Relaxed) {
        let deadline = clock::now_ns() + nanos(std::time::Duration::from_millis(LOOK_MILLIS.into()));
        if packets.receive(socket, deadline).unwrap_or(0) == 0 {
            continue;
        }
        for datagram in packets.iter() {
            // Stock clients send four octets, and servers of any version take any four.
            if let (Some(from), 4) = (datagram.from, datagram.payload_octets) {
                shared.greeted(from);
            }
        }
    }
}
