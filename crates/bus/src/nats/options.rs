//! How to reach a NATS server.

use std::time::Duration;

use async_nats::{Auth, AuthError, ConnectOptions, Event};
use tokio::sync::mpsc;

use crate::bus::Subscription;
use crate::key::Key;
use crate::permissions::inbox;

/// How to reach a NATS server, and as whom.
#[derive(Clone)]
pub struct Options {
    /// `nats://host:4222` or `tls://host:4222`.
    pub server: String,
    /// Who this client is, in subjects; answers arrive at `_INBOX_<id>.>`.
    pub id: String,
    /// The client's key.
    pub key: Option<Key>,
    /// What the operator's server wants beside the key: the user's JWT.
    pub jwt: Option<String>,
    /// How to know the server.
    pub tls: Option<rustls::ClientConfig>,
    /// No answer within this time is [`crate::Error::Unanswered`].
    pub timeout: Duration,
}

impl Options {
    /// A client without a key and without TLS, which waits for answers for 5 s.
    pub fn new(server: &str, id: &str) -> Self {
        let timeout = Duration::from_secs(5);
        Self { server: server.to_owned(), id: id.to_owned(), key: None, jwt: None, tls: None, timeout }
    }
}

/// The same for the library, which sends its events there.
pub(super) fn connect_options(options: &Options, events: mpsc::Sender<Event>) -> ConnectOptions {
    let (key, jwt) = (options.key.clone(), options.jwt.clone());
    let signed = move |nonce: Vec<u8>| {
        let mut auth = Auth::new();
        if let Some(key) = &key {
            auth.nkey = Some(key.public());
            auth.signature = Some(key.sign(&nonce));
            auth.jwt.clone_from(&jwt);
        }
        async move { Ok::<_, AuthError>(auth) }
    };
    let mut connect = ConnectOptions::with_auth_callback(signed)
        .name(&options.id)
        .custom_inbox_prefix(inbox(&options.id))
        .ping_interval(Duration::from_secs(5))
        .request_timeout(Some(options.timeout))
        .subscription_capacity(Subscription::WAITING)
        .reconnect_delay_callback(crate::embedded::backoff)
        .retry_on_initial_connect()
        .event_callback(move |event| {
            let events = events.clone();
            // Nobody listens any more when the client is closed.
            async move { drop(events.send(event).await) }
        });
    if let Some(tls) = &options.tls {
        connect = connect.tls_client_config(tls.clone()).require_tls(true);
    }
    connect
}
