//! Takes connections and serves each: HTTP/1.1, which may be upgraded, over TLS or not.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use axum::Router;
use axum::extract::{ConnectInfo, Request};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service as _, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

use crate::connection::{Limit, Watched};
use crate::tls::Tls;

/// The TLS of connections to come, which may be replaced while others are served.
#[derive(Debug)]
pub(crate) struct Shared {
    tls: RwLock<Option<Tls>>,
}

impl Shared {
    pub(crate) fn new(tls: Option<Tls>) -> Self {
        Self { tls: RwLock::new(tls) }
    }

    /// `false`, and nothing is changed: it would begin or end.
    pub(crate) fn replace(&self, new: Option<Tls>) -> bool {
        let mut tls = self.tls.write().unwrap_or_else(PoisonError::into_inner);
        let same = tls.is_some() == new.is_some();
        if same {
            *tls = new;
        }
        same
    }

    fn now(&self) -> Option<Tls> {
        self.tls.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Serves all who connect. Dropped, it ends their connections.
pub(crate) async fn serve(listener: TcpListener, routes: Router, tls: Arc<Shared>) -> io::Result<()> {
    listener.set_nonblocking(true)?;
    let listener = tokio::net::TcpListener::from_std(listener)?;
    let limit = Limit::new(CONNECTIONS);
    let mut served = JoinSet::new();
    loop {
        let accepted = listener.accept().await;
        while served.try_join_next().is_some() {}
        match accepted {
            // Too many connections: this one is closed at once.
            Ok((stream, from)) => {
                // What is small is sent at once: else each answer waits until the client has
                // acknowledged the one before, which it puts off by 40 ms (RFC 896, RFC 1122
                // §4.2.3.2). A connection that ended already says so itself.
                let _ = stream.set_nodelay(true);
                if let Some(stream) = limit.admit(stream) {
                    served.spawn(one(stream, from, tls.now(), routes.clone()));
                }
            }
            Err(error) if is_of_connection(&error) => {}
            // As a rule there are no descriptors left; a connection that ends gives one back.
            Err(error) => {
                tracing::warn!(%error, "no connection can be accepted now");
                tokio::time::sleep(NO_DESCRIPTORS).await;
            }
        }
    }
}

async fn one(stream: Watched<TcpStream>, from: SocketAddr, tls: Option<Tls>, routes: Router) {
    let Some(tls) = tls else { return http(stream, from, routes).await };
    if let Ok(Ok(stream)) = tokio::time::timeout(HEADERS, tls.accept(stream)).await {
        http(stream, from, routes).await;
    }
}

async fn http<S>(stream: S, from: SocketAddr, routes: Router)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let routes = TowerToHyperService::new(routes);
    let service = service_fn(move |mut request: Request<Incoming>| {
        request.extensions_mut().insert(ConnectInfo(from));
        routes.call(request)
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADERS)
        .max_buf_size(BUFFER)
        .serve_connection(TokioIo::new(stream), service);
    // What a client does wrong ends its connection, and concerns nobody else. The bus of a fleet
    // goes by upgraded connections.
    let _ = connection.with_upgrades().await;
}

/// Whether the next connection may be accepted all the same.
fn is_of_connection(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionRefused | io::ErrorKind::ConnectionAborted | io::ErrorKind::ConnectionReset
    )
}

const CONNECTIONS: usize = 512;
/// How long a client may take for its headers, and for a TLS handshake.
const HEADERS: Duration = Duration::from_secs(5);
/// Octets of a request's head.
const BUFFER: usize = 16 * 1024;
const NO_DESCRIPTORS: Duration = Duration::from_millis(500);
