//! `narrows serve`: the peer of a measurement.
//!
//! | part | file | runs on |
//! |---|---|---|
//! | control connections: handshake, order of messages, keep-alive | `control.rs` | tokio |
//! | keys, and which run of a fleet may load | `fleet_keys.rs`, `key_file.rs` | - |
//! | who may test now, and who waits | `slots.rs` | - |
//! | address validation on the public UDP port | `listen_socket.rs` | a thread per address |
//! | one validated flow: echo, receive | `flow.rs`, `listen.rs`, `collect.rs` | a thread per flow |
//! | trains, loads, transfers, one after the other | `conduct.rs`, `conductor.rs`, `train.rs`, `load.rs`, `bulk.rs` | a thread per session |
//!
//! **Invariant:** a session's conductor is never away from its orders and from
//! `ServedSession::must_stop` for longer than 50 ms while something of its own sends towards the
//! client, so that traffic ends within a second of the client's last sign of life, whatever
//! happened to the control connection.

mod bulk;
mod collect;
mod conduct;
mod conductor;
mod control;
mod convert;
mod fleet_keys;
mod flow;
pub(crate) mod key_file;
mod listen;
mod listen_socket;
mod load;
mod options;
mod orders;
mod session;
mod slots;
mod train;

use std::future::Future;
use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use socket2::Socket;
use tokio::sync::oneshot;
use tokio::task::JoinSet;

pub use convert::host_facts;
pub use fleet_keys::FleetKeys;
pub use key_file::{KeyFileError, read_psk_file, read_secret_file, read_token_file};
pub use options::{Limits, ServeError, ServeOptions, is_private};

use crate::pending_connections;
use session::Server;

/// Connections that the kernel holds for us until we accept them.
const BACKLOG: i32 = 128;
/// How often a free port is looked for that is free for both TCP and UDP.
const PORT_TRIES: u32 = 16;

/// A server whose sockets are open, in the network namespace of the thread that opened them.
#[derive(Debug)]
pub struct Listening {
    server: Arc<Server>,
    tcp: Vec<TcpListener>,
    udp: Vec<Socket>,
    addresses: Vec<SocketAddr>,
}

impl Listening {
    /// Opens all sockets.
    pub fn bind(options: ServeOptions) -> Result<Self, ServeError> {
        let mut tries = 0;
        let (tcp, udp, addresses) = loop {
            tries += 1;
            match open_all(&options.listen, options.port) {
                Err(ServeError::Listen { source, .. })
                    if options.port == 0 && tries < PORT_TRIES && source.kind() == io::ErrorKind::AddrInUse => {}
                done => break done?,
            }
        };
        let server = Server::new(options).map_err(host("draw random numbers"))?;
        Ok(Self { server: Arc::new(server), tcp, udp, addresses })
    }

    /// Where it listens, TCP and UDP alike.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// Serves until `shutdown`. Must be polled in the network namespace in which the sockets were
    /// opened: its threads open more.
    pub async fn run(self, shutdown: impl Future<Output = ()>) -> Result<(), ServeError> {
        let mut listen_sockets = Vec::new();
        for socket in self.udp {
            let server = Arc::clone(&self.server);
            let listen_socket = thread::Builder::new().name("listen_socket".to_owned());
            listen_sockets.push(
                listen_socket.spawn(move || listen_socket::attend(&socket, &server)).map_err(host("start a thread"))?,
            );
        }
        let mut listeners = JoinSet::new();
        for listener in self.tcp {
            let listener = tokio::net::TcpListener::from_std(listener).map_err(host("watch a socket"))?;
            listeners.spawn(accept(listener, Arc::clone(&self.server)));
        }
        shutdown.await;
        self.server.ended.store(true, Ordering::Relaxed);
        // Ends every connection; what each held is freed as it is dropped.
        listeners.shutdown().await;
        for listen_socket in listen_sockets {
            // One that panicked has ended too.
            let _ = listen_socket.join();
        }
        Ok(())
    }
}

async fn accept(listener: tokio::net::TcpListener, server: Arc<Server>) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, peer)) => {
                    connections.spawn(control::attend(stream, peer, Arc::clone(&server)));
                }
                Err(error) => {
                    // Out of descriptors, most likely: it passes when connections end.
                    tracing::warn!(%error, "cannot accept");
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
            },
            Some(ended) = connections.join_next() => {
                if let Err(error) = ended {
                    tracing::error!(%error, "a connection's task failed");
                }
            }
        }
    }
}

type Sockets = (Vec<TcpListener>, Vec<Socket>, Vec<SocketAddr>);

fn open_all(listen: &[IpAddr], port: u16) -> Result<Sockets, ServeError> {
    let (mut tcp, mut udp, mut addresses) = (Vec::new(), Vec::new(), Vec::new());
    let mut port = port;
    let mut missing = None;
    for address in listen {
        let wanted = SocketAddr::new(*address, port);
        let failed = |protocol| move |source| ServeError::Listen { address: wanted, protocol, source };
        let listener = match pending_connections::listen(wanted, BACKLOG) {
            // "All addresses" includes a version that this host may not have.
            Err(error) if address.is_unspecified() && pending_connections::is_absent(&error) => {
                missing = Some(failed("TCP")(error));
                continue;
            }
            opened => opened.map_err(failed("TCP"))?,
        };
        let local = listener.local_addr().map_err(failed("TCP"))?;
        udp.push(listen_socket::open(local).map_err(failed("UDP"))?);
        tcp.push(listener);
        addresses.push(local);
        port = local.port();
    }
    if addresses.is_empty() {
        return Err(missing.unwrap_or(ServeError::NoAddress));
    }
    Ok((tcp, udp, addresses))
}

fn host(doing: &'static str) -> impl FnOnce(io::Error) -> ServeError {
    move |source| ServeError::Host { doing, source }
}

/// Serves until `shutdown`, in the network namespace of the thread that polls it.
pub async fn serve(options: ServeOptions, shutdown: impl Future<Output = ()>) -> Result<(), ServeError> {
    Listening::bind(options)?.run(shutdown).await
}

/// A server on a thread of its own. Dropping it ends the server and waits for that.
#[derive(Debug)]
pub struct Running {
    server: Arc<Server>,
    addresses: Vec<SocketAddr>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<Result<(), ServeError>>>,
}

impl Running {
    /// Starts a server in the network namespace of the calling thread.
    pub fn start(options: ServeOptions) -> Result<Self, ServeError> {
        let listening = Listening::bind(options)?;
        let addresses = listening.addresses().to_vec();
        let server = Arc::clone(&listening.server);
        let (stop, stopped) = oneshot::channel();
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(host("start an event loop"))?;
        let thread = thread::Builder::new()
            .name("serve".to_owned())
            .spawn(move || {
                runtime.block_on(listening.run(async {
                    // An error says that the handle was dropped, which means the same.
                    let _ = stopped.await;
                }))
            })
            .map_err(host("start a thread"))?;
        Ok(Self { server, addresses, stop: Some(stop), thread: Some(thread) })
    }

    /// Where it listens, TCP and UDP alike.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// Sessions that are open now.
    pub fn sessions(&self) -> usize {
        self.server.sessions()
    }

    /// Ends the server and waits for that.
    pub fn stop(mut self) -> Result<(), ServeError> {
        self.end()
    }

    fn end(&mut self) -> Result<(), ServeError> {
        self.stop.take();
        match self.thread.take().map(JoinHandle::join) {
            Some(Ok(done)) => done,
            Some(Err(_)) => Err(host("keep the server running")(io::Error::other("its thread panicked"))),
            None => Ok(()),
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Whoever wants to know why it ended calls `stop`.
        let _ = self.end();
    }
}

#[cfg(test)]
mod tests;
