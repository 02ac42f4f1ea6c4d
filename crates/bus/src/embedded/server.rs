//! The server.

use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use tokio_tungstenite::accept_async_with_config;
use tokio_tungstenite::tungstenite::protocol::Role;

use super::client::Client;
use super::connect::{Octets, Socket, Way, config};
use super::keeper::Keeper;
use super::limits::Limits;
use super::router::Router;
use super::session;
use super::shared::{Admission, Shared};
use crate::error::{Error, Result};

/// After an error of the listener, which mostly means that the process has too many files open.
const ACCEPT_AGAIN: Duration = Duration::from_millis(100);

/// Octets on their way between the server and a client of the same process.
const PIPE_OCTETS: usize = 64 << 10;

/// A bus in this process.
#[derive(Clone)]
pub struct Server {
    shared: Arc<Shared>,
    admission: Admission,
}

impl Server {
    /// Opens the file, or makes it. One server at a time can have it open.
    pub fn open(path: &Path, admission: Admission, limits: Limits) -> Result<Self> {
        let mut random = [0; 16];
        getrandom::fill(&mut random).map_err(|error| Error::Storage(format!("no random octets: {error}")))?;
        let id = format!("{:032x}", u128::from_be_bytes(random));
        let router = Arc::new(Router::new(limits.clone()));
        let keeper = Keeper::open(path, Arc::clone(&router))?;
        let room = Arc::new(Semaphore::new(limits.clients));
        Ok(Self { shared: Arc::new(Shared { id, keeper, router, limits, room }), admission })
    }

    /// What clients see as [`crate::Condition::server`]: another one after each start.
    pub fn id(&self) -> &str {
        &self.shared.id
    }

    /// Serves whoever connects, until the future is dropped.
    pub async fn serve(&self, listener: TcpListener, tls: Option<TlsAcceptor>) {
        let mut sessions = JoinSet::new();
        loop {
            while sessions.try_join_next().is_some() {}
            let Ok((tcp, _)) = listener.accept().await else {
                tokio::time::sleep(ACCEPT_AGAIN).await;
                continue;
            };
            // Without room the connection is closed, and the client tries again later.
            if let Ok(room) = Arc::clone(&self.shared.room).try_acquire_owned() {
                let (server, tls) = (self.clone(), tls.clone());
                sessions.spawn(async move {
                    let greeting = server.shared.limits.greeting;
                    if let Ok(Some(socket)) = tokio::time::timeout(greeting, server.accept(tcp, tls)).await {
                        session::run(server.shared, socket, Some(server.admission)).await;
                    }
                    drop(room);
                });
            }
        }
    }

    /// Serves one client on a stream that another HTTP server has upgraded to a WebSocket.
    pub async fn upgraded(&self, stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static) {
        let Ok(_room) = self.shared.room.try_acquire() else { return };
        let stream: Box<dyn Octets> = Box::new(stream);
        let socket = Socket::from_raw_socket(stream, Role::Server, Some(config(&self.shared.limits))).await;
        session::run(Arc::clone(&self.shared), socket, Some(Arc::clone(&self.admission))).await;
    }

    /// A client of the same process, which may do everything.
    pub fn local(&self) -> Client {
        let (shared, config) = (Arc::downgrade(&self.shared), config(&self.shared.limits));
        let open = move || {
            let shared = shared.upgrade()?;
            let (ours, theirs) = tokio::io::duplex(PIPE_OCTETS);
            let theirs: Box<dyn Octets> = Box::new(theirs);
            tokio::spawn(async move {
                session::run(shared, Socket::from_raw_socket(theirs, Role::Server, Some(config)).await, None).await;
            });
            Some(Box::new(ours) as Box<dyn Octets>)
        };
        Client::new(Way::Local(Box::new(open)), None, self.shared.limits.clone())
    }

    /// Disconnects whoever has this public key, and returns how many connections that were. Whether
    /// it may come back, `admission` says.
    pub fn cut(&self, public_key: &str) -> usize {
        self.shared.router.cut(public_key)
    }

    /// How many clients are connected.
    pub fn connected(&self) -> usize {
        self.shared.router.connected()
    }

    /// `None`: whatever it is, it speaks no WebSocket.
    async fn accept(&self, tcp: TcpStream, tls: Option<TlsAcceptor>) -> Option<Socket> {
        tcp.set_nodelay(true).ok()?;
        let stream: Box<dyn Octets> = match tls {
            Some(tls) => Box::new(tls.accept(tcp).await.ok()?),
            None => Box::new(tcp),
        };
        accept_async_with_config(stream, Some(config(&self.shared.limits))).await.ok()
    }
}

impl fmt::Debug for Server {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Server").field("id", &self.shared.id).finish_non_exhaustive()
    }
}
