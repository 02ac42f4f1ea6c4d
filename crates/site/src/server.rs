//! Binds, refuses unsafe settings, serves, and re-reads the files of TLS and users.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use axum::Router;
use axum::extract::DefaultBodyLimit;

use crate::accept::{self, Shared};
use crate::auth::{Auth, Known, read_token};
use crate::guard::Guard;
use crate::settings::{ServeError, Settings};
use crate::site::Site;
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

    /// What it is called in a browser: the first name under which they reach it, else its address.
    pub fn base(&self) -> String {
        base(self.config.tls.is_some(), &self.settings.hosts, self.address)
    }

    /// Serves `routes` until `stop` is ready. `shell` is the page whose script lets people sign in;
    /// `fault` hears whether the files of TLS and users are wrong now (`Some`) or right again.
    pub async fn run(
        self,
        shell: String,
        routes: impl FnOnce(Site) -> Router,
        fault: impl Fn(Option<String>) + Send + Sync,
        stop: impl Future<Output = ()> + Send,
    ) -> Result<(), ServeError> {
        let guard = Guard::new(Auth::new(self.known), self.config.tls.is_some(), &self.settings);
        let site = Site::new(guard, &self.settings, shell);
        let service = routes(site.clone())
            .layer(DefaultBodyLimit::max(self.settings.largest_body))
            .layer(axum::middleware::from_fn_with_state(site.clone(), crate::admission::check));
        let tls = Arc::new(Shared::new(self.config.tls.clone()));
        let watch = watch_files(self.settings, self.config, site, fault, Arc::clone(&tls));
        tokio::select! {
            ended = accept::serve(self.listener, service, tls) => ended.map_err(ServeError::Ended),
            () = watch => Ok(()),
            () = stop => Ok(()),
        }
    }
}

/// What the files say, if it is safe with this address.
fn read(settings: &Settings) -> Result<(WebConfig, Known), ServeError> {
    let config = match &settings.web_config {
        None => WebConfig::default(),
        Some(path) => WebConfig::read(path).map_err(|error| ServeError::WebConfig { path: path.clone(), error })?,
    };
    let config = match &settings.own_tls {
        None => config,
        Some(own) => config.or(own).map_err(|error| ServeError::WebConfig { path: own.certificate.clone(), error })?,
    };
    let token = |path: &Option<PathBuf>| {
        let read = path.as_ref().map(|path| {
            read_token(path, settings.credentials.as_deref())
                .map_err(|why| ServeError::TokenFile { path: path.clone(), why })
        });
        read.transpose()
    };
    let [token, read_token] = [token(&settings.token_file)?, token(&settings.read_token_file)?];
    let known = Known { users: config.users.clone(), token, read_token };
    let safe = settings.listen.ip().to_canonical().is_loopback() || (config.tls.is_some() && !known.nobody());
    if safe { Ok((config, known)) } else { Err(ServeError::Exposed(settings.listen)) }
}

/// Re-reads what changed. A wrong file keeps what was right, and the pages say so.
async fn watch_files(
    settings: Settings,
    config: WebConfig,
    site: Site,
    fault: impl Fn(Option<String>),
    tls: Arc<Shared>,
) {
    let files: Vec<PathBuf> =
        config.files.iter().chain(&settings.token_file).chain(&settings.read_token_file).cloned().collect();
    let mut seen = changed(files.clone()).await;
    loop {
        tokio::time::sleep(REREAD).await;
        site.guard().tidy();
        let now = changed(files.clone()).await;
        if now == seen {
            continue;
        }
        seen = now;
        let of = settings.clone();
        let wrong = match tokio::task::spawn_blocking(move || read(&of)).await {
            Ok(Ok((config, known))) => {
                let same = tls.replace(config.tls);
                if same {
                    site.guard().auth.replace(known);
                }
                (!same).then(|| "TLS begins or ends with the next start".to_owned())
            }
            Ok(Err(error)) => Some(error.to_string()),
            Err(_) => None,
        };
        if let Some(text) = &wrong {
            tracing::error!("settings of the pages, which stay as they were: {text}");
        }
        fault(wrong);
    }
}

fn base(is_tls: bool, names: &[String], address: SocketAddr) -> String {
    let scheme = if is_tls { "https" } else { "http" };
    match names.first() {
        Some(name) => format!("{scheme}://{name}:{}", address.port()),
        None => format!("{scheme}://{}", SocketAddr::new(reachable(address.ip()), address.port())),
    }
}

/// "All addresses" is none that a browser can open; this machine's own is.
const fn reachable(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(Ipv4Addr::UNSPECIFIED) => IpAddr::V4(Ipv4Addr::LOCALHOST),
        IpAddr::V6(Ipv6Addr::UNSPECIFIED) => IpAddr::V6(Ipv6Addr::LOCALHOST),
        other => other,
    }
}

async fn changed(files: Vec<PathBuf>) -> Vec<Option<(SystemTime, u64)>> {
    if files.is_empty() {
        return Vec::new();
    }
    let look = move || {
        let of = |path: &PathBuf| std::fs::metadata(path).ok().and_then(|of| Some((of.modified().ok()?, of.len())));
        files.iter().map(of).collect()
    };
    tokio::task::spawn_blocking(look).await.unwrap_or_default()
}

/// Octets that the kernel holds for a reader: enough for 10 Mbit/s over 100 ms.
const SEND_BUFFER: usize = 128 * 1024;
const REREAD: Duration = Duration::from_secs(2);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_can_be_opened_from_where_it_is_read() {
        let at = |address: &str| base(false, &[], address.parse().unwrap());
        assert_eq!(at("127.0.0.1:8621"), "http://127.0.0.1:8621");
        assert_eq!(at("0.0.0.0:80"), "http://127.0.0.1:80");
        assert_eq!(at("[::]:8621"), "http://[::1]:8621");
        let named = base(true, &["watch.example".to_owned()], "[::]:443".parse().unwrap());
        assert_eq!(named, "https://watch.example:443");
    }
}
