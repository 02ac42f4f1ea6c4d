//! How a client gets to its server, and how long it waits before it tries again.

use std::sync::Arc;
use std::time::Duration;

use futures_util::{Stream, StreamExt};
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::http::Uri;
use tokio_tungstenite::tungstenite::protocol::{Role, WebSocketConfig};
use tokio_tungstenite::{WebSocketStream, client_async_with_config};

use super::limits::Limits;
use crate::error::{Error, Result};

/// Where a server is.
#[derive(Debug, Clone)]
pub struct Address {
    /// `wss://host:port/path`, or `ws://..` without TLS.
    pub url: String,
    /// How to know the server; needed for `wss`.
    pub tls: Option<Arc<rustls::ClientConfig>>,
}

/// Octets both ways.
pub(super) trait Octets: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Octets for T {}

/// A WebSocket over whatever carries it.
pub(super) type Socket = WebSocketStream<Box<dyn Octets>>;

/// Where the server is: somewhere, or in this process.
pub(super) enum Way {
    Network(Address),
    /// The server's end is served already; `None`: it is gone.
    Local(Box<dyn Fn() -> Option<Box<dyn Octets>> + Send + Sync>),
}

impl Way {
    pub(super) async fn connect(&self, limits: &Limits) -> Result<Socket> {
        match self {
            Self::Network(address) => network(address, limits).await,
            Self::Local(open) => {
                let stream = open().ok_or(Error::Closed)?;
                Ok(Socket::from_raw_socket(stream, Role::Client, Some(config(limits))).await)
            }
        }
    }
}

async fn network(address: &Address, limits: &Limits) -> Result<Socket> {
    let wrong = || Error::Subject(address.url.clone());
    let uri: Uri = address.url.parse().map_err(|_| wrong())?;
    let host = uri.host().ok_or_else(wrong)?.trim_matches(['[', ']']);
    let secure = match uri.scheme_str() {
        Some("wss") => true,
        Some("ws") => false,
        _ => return Err(wrong()),
    };
    let port = uri.port_u16().unwrap_or(if secure { 443 } else { 80 });
    let lost = |error: std::io::Error| Error::Disconnected(format!("{}: {error}", address.url));
    let tcp = TcpStream::connect((host, port)).await.map_err(lost)?;
    tcp.set_nodelay(true).map_err(lost)?;
    let stream: Box<dyn Octets> = match (&address.tls, secure) {
        (Some(tls), true) => {
            let name = ServerName::try_from(host.to_owned()).map_err(|_| wrong())?;
            Box::new(TlsConnector::from(Arc::clone(tls)).connect(name, tcp).await.map_err(lost)?)
        }
        (None, true) => return Err(Error::Disconnected(format!("{}: no TLS settings", address.url))),
        (_, false) => Box::new(tcp),
    };
    let refused = |error| Error::Disconnected(format!("{}: {error}", address.url));
    let (socket, _) = client_async_with_config(&address.url, stream, Some(config(limits))).await.map_err(refused)?;
    Ok(socket)
}

/// No frame is larger than the largest that we send.
pub(super) fn config(limits: &Limits) -> WebSocketConfig {
    let octets = Some(limits.frame_octets());
    WebSocketConfig::default().max_message_size(octets).max_frame_size(octets)
}

/// The next binary message. Pings and pongs show that the other end lives, and are not returned.
pub(super) async fn next<S>(stream: &mut S, silence: Duration) -> Result<Vec<u8>>
where
    S: Stream<Item = tokio_tungstenite::tungstenite::Result<Message>> + Unpin,
{
    loop {
        let silent = |_| Error::Disconnected(format!("nothing was heard for {silence:?}"));
        match tokio::time::timeout(silence, stream.next()).await.map_err(silent)? {
            Some(Ok(Message::Binary(octets))) => return Ok(octets.into()),
            Some(Ok(Message::Ping(_) | Message::Pong(_) | Message::Frame(_))) => {}
            Some(Ok(Message::Text(_))) => return Err(Error::Protocol("text instead of a frame".to_owned())),
            Some(Ok(Message::Close(_))) | None => {
                return Err(Error::Disconnected("closed by the other end".to_owned()));
            }
            Some(Err(error)) => return Err(Error::lost(error)),
        }
    }
}

/// How long to wait after so many attempts that failed: 0.25 s, doubled each time up to 8 s, and a
/// random part of that off, so that the clients of a server that restarts do not come together.
pub fn backoff(failures: usize) -> Duration {
    let full = 250 << failures.saturating_sub(1).min(5);
    let mut random = [0; 2];
    // Without random octets everyone waits longest.
    let share = getrandom::fill(&mut random).map_or(0, |()| u64::from(u16::from_le_bytes(random)));
    Duration::from_millis(full - full * share / (2 << 16))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_eight_seconds() {
        for (failures, most) in [(0, 250), (1, 250), (2, 500), (6, 8_000), (60, 8_000)] {
            for _ in 0..100 {
                let wait = backoff(failures).as_millis();
                assert!((most / 2..=most).contains(&wait), "{failures}: {wait}");
            }
        }
    }
}
