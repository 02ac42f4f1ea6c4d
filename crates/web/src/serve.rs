//! Binds, refuses unsafe settings, serves, and re-reads the files of TLS and users.

use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use axum_server::Handle;
use axum_server::tls_rustls::{RustlsAcceptor, RustlsConfig};

use crate::app::App;
use crate::auth::{Auth, Known, read_token};
use crate::connection::Limit;
use crate::guard::Guard;
use crate::links::Links;
use crate::live::Live;
use crate::settings::{ServeError, Settings};
use crate::source::Source;
use crate::web_config::WebConfig;

/// A bound address, not served yet.
#[derive(Debug)]
pub struct Server {
    settings: Settings,
    listener: TcpListener,
    address: SocketAddr,
    config: WebConfig,
    known: Known,
}

/// Binds and serves until `stop` is ready.
pub async fn serve(
    settings: Settings,
    source: Arc<dyn Source>,
    live: Live,
    stop: impl Future<Output = ()> + Send,
) -> Result<(), ServeError> {
    Server::bind(settings)?.run(source, live, stop).await
}

impl Server {
    /// Reads the files and binds the address, unless others could use it without being asked.
    pub fn bind(settings: Settings) -> Result<Self, ServeError> {
        let (config, known) = read(&settings)?;
        let failed = |error| ServeError::Listen { address: settings.listen, error };
        let listener = TcpListener::bind(settings.listen).map_err(failed)?;
        // Connections inherit it. Else the kernel holds megabytes for a reader that does not read.
        socket2::SockRef::from(&listener).set_send_buffer_size(SEND_BUFFER).map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        Ok(Self { settings, listener, address, config, known })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The addresses of its pages.
    pub fn links(&self) -> Links {
        Links::new(self.config.tls.is_some(), &self.settings.hosts, self.address)
    }

    /// Serves until `stop` is ready.
    pub async fn run(
        self,
        source: Arc<dyn Source>,
        live: Live,
        stop: impl Future<Output = ()> + Send,
    ) -> Result<(), ServeError> {
        let guard = Guard::new(Auth::new(self.known), self.config.tls.is_some(), self.settings.hosts.clone());
        let (router, open_api) = crate::api::router();
        let app = App::new(source, live, guard, self.settings.now, open_api);
        let service = crate::pages::add(router)
            .layer(axum::middleware::from_fn_with_state(app.clone(), crate::admission::check))
            .with_state(app.clone())
            .into_make_service_with_connect_info::<SocketAddr>();
        let handle = Handle::new();
        let limit = Limit::new(CONNECTIONS);
        let mut server = axum_server::from_tcp(self.listener).map_err(ServeError::Ended)?.http1_only();
        server.http_builder().http1().header_read_timeout(HEADERS).max_buf_size(BUFFER);
        let server = server.handle(handle.clone());
        let tls = self.config.tls.clone().map(RustlsConfig::from_config);
        let watch = watch_files(self.settings, self.config, app, tls.clone());
        let ended = async {
            match tls {
                None => server.acceptor(limit).serve(service).await,
                Some(tls) => {
                    let acceptor = RustlsAcceptor::new(tls).handshake_timeout(HEADERS).acceptor(limit);
                    server.acceptor(acceptor).serve(service).await
                }
            }
        };
        tokio::select! {
            ended = ended => ended.map_err(ServeError::Ended),
            () = watch => Ok(()),
            () = stop => {
                handle.shutdown();
                Ok(())
            }
        }
    }
}

/// What the files say, if it is safe with this address.
fn read(settings: &Settings) -> Result<(WebConfig, Known), ServeError> {
    let config = match &settings.web_config {
        None => WebConfig::default(),
        Some(path) => WebConfig::read(path).map_err(|error| ServeError::WebConfig { path: path.clone(), error })?,
    };
    let token = settings
        .token_file
        .as_ref()
        .map(|path| read_token(path).map_err(|why| ServeError::TokenFile { path: path.clone(), why }));
    let known = Known { users: config.users.clone(), token: token.transpose()? };
    let safe = settings.listen.ip().to_canonical().is_loopback() || (config.tls.is_some() && !known.nobody());
    if safe { Ok((config, known)) } else { Err(ServeError::Exposed(settings.listen)) }
}

/// Re-reads what changed. A wrong file keeps what was right, and the pages say so.
async fn watch_files(settings: Settings, config: WebConfig, app: App, tls: Option<RustlsConfig>) {
    let files: Vec<PathBuf> = config.files.iter().chain(&settings.token_file).cloned().collect();
    let mut seen = changed(files.clone()).await;
    loop {
        tokio::time::sleep(REREAD).await;
        app.guard().tidy();
        let now = changed(files.clone()).await;
        if now == seen {
            continue;
        }
        seen = now;
        let of = settings.clone();
        let fault = match tokio::task::spawn_blocking(move || read(&of)).await {
            Ok(Ok((config, known))) => match (&tls, config.tls) {
                (Some(running), Some(new)) => {
                    running.reload_from_config(new);
                    app.guard().auth.replace(known);
                    None
                }
                (None, None) => {
                    app.guard().auth.replace(known);
                    None
                }
                _ => Some("TLS begins or ends with the next start".to_owned()),
            },
            Ok(Err(error)) => Some(error.to_string()),
            Err(_) => None,
        };
        app.live().fault("web_config", fault);
    }
}

async fn changed(files: Vec<PathBuf>) -> Vec<Option<(SystemTime, u64)>> {
    let look = move || {
        let of = |path: &PathBuf| std::fs::metadata(path).ok().and_then(|of| Some((of.modified().ok()?, of.len())));
        files.iter().map(of).collect()
    };
    tokio::task::spawn_blocking(look).await.unwrap_or_default()
}

const CONNECTIONS: usize = 512;
/// How long a client may take for its headers, and for a TLS handshake.
const HEADERS: Duration = Duration::from_secs(5);
/// Octets of a request's head.
const BUFFER: usize = 16 * 1024;
/// Octets that the kernel holds for a reader: enough for 10 Mbit/s over 100 ms.
const SEND_BUFFER: usize = 128 * 1024;
const REREAD: Duration = Duration::from_secs(2);
