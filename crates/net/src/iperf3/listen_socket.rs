//! Who comes: connections that say by their first octets which test they belong to, and UDP
//! greetings.

use std::io::{self, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc;

use narrows_wire::iperf3::{COOKIE_OCTETS, Cookie, MOST_STREAMS, State};

use super::session;
use super::shared::{Entry, Shared};
use crate::clock::{self, nanos};
use crate::pending_connections;
use crate::receive::Receiver;
use crate::socket::{ProbeSocket, SocketOptions};

/// Connections that the kernel holds for us until we accept them.
const BACKLOG: i32 = 256;
/// How long a connection may take to say what it is.
const GREETING_NS: i64 = 5_000_000_000;
/// How often a free port is looked for that is free for both TCP and UDP.
const PORT_TRIES: u32 = 16;

/// One address.
pub(super) struct ListenSocket {
    pub(super) tcp: TcpListener,
    pub(super) udp: ProbeSocket,
}

/// Opens every address. A host without IPv6 is served by IPv4 alone.
pub(super) fn open_all(listen: &[IpAddr], port: u16) -> io::Result<(Vec<ListenSocket>, Vec<SocketAddr>)> {
    let mut tries = 0;
    loop {
        tries += 1;
        match pending_connections::open_all(listen, port, open) {
            Err(error) if port == 0 && tries < PORT_TRIES && error.kind() == io::ErrorKind::AddrInUse => {}
            done => return done,
        }
    }
}

fn open(address: SocketAddr) -> io::Result<(ListenSocket, SocketAddr)> {
    let tcp = pending_connections::listen(address, BACKLOG)?;
    let address = tcp.local_addr()?;
    let options = SocketOptions {
        // Greetings are four octets long.
        receive_buffer_octets: 1 << 20,
        reuse_port: true,
        ..SocketOptions::default()
    };
    let udp = ProbeSocket::bind(address, &options)?;
    Ok((ListenSocket { tcp, udp }, address))
}

/// What a connection has said of its cookie so far.
#[derive(Debug)]
struct Said {
    octets: [u8; COOKIE_OCTETS],
    got: usize,
}

impl Default for Said {
    fn default() -> Self {
        Self { octets: [0; COOKIE_OCTETS], got: 0 }
    }
}

type Pending = pending_connections::Pending<Said>;

enum Progress {
    Waits,
    Said(Cookie),
    Gone,
}

fn read(one: &mut Pending) -> Progress {
    let said = &mut one.said;
    match one.stream.read(&mut said.octets[said.got..]) {
        Ok(0) => Progress::Gone,
        Ok(read) => {
            said.got += read;
            if said.got < COOKIE_OCTETS {
                return Progress::Waits;
            }
            Cookie::parse(said.octets).map_or(Progress::Gone, Progress::Said)
        }
        Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => Progress::Waits,
        Err(_) => Progress::Gone,
    }
}

/// Takes connections until the server ends.
pub(super) fn attend(listener: &TcpListener, shared: &Arc<Shared>) {
    let most = shared.options.limits.half_open.max(1);
    let mut pending: Vec<Pending> = Vec::new();
    while !shared.ended.load(Ordering::Relaxed) {
        let ready = pending_connections::wait(listener, &pending);
        if ready.first().copied().unwrap_or(false) {
            pending_connections::accept(listener, &mut pending, most, std::convert::identity);
        }
        let now = clock::now_ns();
        let mut ready = ready.into_iter().skip(1);
        pending = pending
            .into_iter()
            .filter_map(|mut one| {
                let progress = if ready.next().unwrap_or(true) { read(&mut one) } else { Progress::Waits };
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
    sessions.insert(cookie, Entry { peer: address, streams: sender });
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
        let deadline =
            clock::now_ns() + nanos(std::time::Duration::from_millis(pending_connections::POLL_MILLIS.into()));
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
