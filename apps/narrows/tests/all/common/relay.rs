//! A path that can be cut: a relay between a client and a server on loopback, for TCP and UDP at
//! one port.
//!
//! It passes bytes on without looking at them. Cut, it passes nothing more and closes nothing, as a
//! pulled cable does.

use std::collections::BTreeMap;
use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

const POLL: Duration = Duration::from_millis(20);

#[derive(Debug, Default)]
struct State {
    cut: AtomicBool,
    mute: AtomicBool,
    accepted: AtomicUsize,
    /// The server shall think that the client is of version 2 of the protocol, and the client the
    /// same of the server.
    older: AtomicBool,
    over: AtomicBool,
}

/// The relay; its threads end with it.
#[derive(Debug)]
pub(crate) struct Relay {
    pub(crate) port: u16,
    state: Arc<State>,
}

impl Relay {
    pub(crate) fn start(server: SocketAddr) -> Self {
        let state = Arc::new(State::default());
        // Both kinds of port are drawn from one range: the same number is nearly always free.
        let (listener, udp) = (0..20)
            .find_map(|_| {
                let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).ok()?;
                let udp = UdpSocket::bind(listener.local_addr().ok()?).ok()?;
                Some((listener, udp))
            })
            .expect("a port that is free for TCP and UDP");
        let port = listener.local_addr().expect("it is bound").port();
        listener.set_nonblocking(true).expect("a socket's mode");
        let shared = Arc::clone(&state);
        std::thread::spawn(move || accept(&listener, server, &shared));
        let shared = Arc::clone(&state);
        std::thread::spawn(move || datagrams(&udp, server, &shared));
        Self { port, state }
    }

    /// Holds back what the server says on the control connection, as a lost segment behind a long
    /// queue does.
    pub(crate) fn mute(&self, mute: bool) {
        self.state.mute.store(mute, Ordering::SeqCst);
    }

    /// From now on sessions are of version 2 of the protocol.
    pub(crate) fn age(&self) {
        self.state.older.store(true, Ordering::SeqCst);
    }

    /// Waits for so many connections, the control connection included.
    #[track_caller]
    pub(crate) fn wait_for_connections(&self, count: usize) {
        let deadline = Instant::now() + super::TIMEOUT;
        while self.state.accepted.load(Ordering::SeqCst) < count {
            assert!(Instant::now() < deadline, "no {count} connections");
            std::thread::sleep(POLL);
        }
    }

    /// From now on nothing passes.
    pub(crate) fn cut(&self) {
        self.state.cut.store(true, Ordering::SeqCst);
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.state.over.store(true, Ordering::SeqCst);
    }
}

impl State {
    fn is_over(&self) -> bool {
        self.over.load(Ordering::SeqCst)
    }

    fn is_cut(&self) -> bool {
        self.cut.load(Ordering::SeqCst)
    }
}

fn accept(listener: &TcpListener, server: SocketAddr, state: &Arc<State>) {
    while !state.is_over() {
        let Ok((near, _)) = listener.accept() else {
            std::thread::sleep(Duration::from_millis(2));
            continue;
        };
        near.set_nonblocking(false).expect("a socket's mode");
        let remote = TcpStream::connect(server).expect("the server listens");
        for stream in [&near, &remote] {
            stream.set_nodelay(true).expect("an option");
        }
        let is_control = state.accepted.fetch_add(1, Ordering::SeqCst) == 0;
        for (from, to, answers) in [(&near, &remote, false), (&remote, &near, true)] {
            let muted = is_control && answers;
            let (from, to) = (from.try_clone().expect("a copy"), to.try_clone().expect("a copy"));
            let state = Arc::clone(state);
            std::thread::spawn(move || octets(from, to, muted, &state));
        }
    }
}

fn octets(mut from: TcpStream, mut to: TcpStream, may_be_muted: bool, state: &State) {
    from.set_read_timeout(Some(POLL)).expect("a timeout");
    let mut buffer = vec![0; 64 << 10];
    while !state.is_over() {
        if may_be_muted && state.mute.load(Ordering::SeqCst) {
            std::thread::sleep(POLL);
            continue;
        }
        match from.read(&mut buffer) {
            _ if state.is_cut() => std::thread::sleep(POLL),
            Ok(0) => break,
            Ok(count) if state.older.load(Ordering::SeqCst) && age(&mut buffer[..count], &to) => {}
            Ok(count) if to.write_all(&buffer[..count]).is_ok() => {}
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
            _ => break,
        }
    }
    // Either side may have closed it already.
    let _ = to.shutdown(Shutdown::Write);
}

/// Passes a client's hello on as one of version 2; `false`: it is none.
fn age(octets: &mut [u8], mut to: &TcpStream) -> bool {
    let newest = format!(r#"{{"hello":{{"version":{}"#, narrows_wire::VERSION);
    let at = octets.windows(newest.len()).position(|octets| octets == newest.as_bytes());
    let Some(at) = at else { return false };
    octets[at + newest.len() - 1] = b'2';
    to.write_all(octets).is_ok()
}

/// One socket towards the server for each of the client's.
fn datagrams(near: &UdpSocket, server: SocketAddr, state: &Arc<State>) {
    near.set_read_timeout(Some(POLL)).expect("a timeout");
    let mut flows: BTreeMap<SocketAddr, UdpSocket> = BTreeMap::new();
    let mut buffer = vec![0; 64 << 10];
    while !state.is_over() {
        let Ok((count, from)) = near.recv_from(&mut buffer) else {
            continue;
        };
        if state.is_cut() {
            continue;
        }
        let remote = flows.entry(from).or_insert_with(|| {
            let remote = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
            remote.connect(server).expect("an address");
            let (back, near) = (remote.try_clone().expect("a copy"), near.try_clone().expect("a copy"));
            let state = Arc::clone(state);
            std::thread::spawn(move || answers(&back, &near, from, &state));
            remote
        });
        // What the kernel refuses is lost, as on any path.
        let _ = remote.send(&buffer[..count]);
    }
}

fn answers(remote: &UdpSocket, near: &UdpSocket, to: SocketAddr, state: &State) {
    remote.set_read_timeout(Some(POLL)).expect("a timeout");
    let mut buffer = vec![0; 64 << 10];
    while !state.is_over() {
        if let Ok(count) = remote.recv(&mut buffer)
            && !state.is_cut()
        {
            // As above.
            let _ = near.send_to(&buffer[..count], to);
        }
    }
}
