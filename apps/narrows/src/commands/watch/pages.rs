//! The web side: a thread that serves pages, and one that takes what people post.

use std::net::{AddrParseError, IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::thread;

use narrows_store::records::Event;
use narrows_store::{Reader, Writer};
use narrows_watch::alert::Silence;
use narrows_web::{Accepted, Live, Order, Post, Refusal, ServeError, Server, Settings, WebConfigError};
use tokio::sync::{mpsc, oneshot};

use super::engine::Message;
use super::events;
use crate::exit::Failure;
use crate::output;

/// Where to serve, and to whom.
#[derive(Debug, Clone, clap::Args)]
pub(super) struct PagesArgs {
    /// Serve pages, the API and /metrics at this address, or "none" for no page [default:
    /// 127.0.0.1:8621, where that port is free]
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<Listen>,
    /// TLS and users for the pages, in the format of Prometheus exporters
    #[arg(long = "web.config.file", id = "web-config", value_name = "FILE", requires = "listen")]
    web_config: Option<PathBuf>,
    /// A file with a token that whoever asks must show; other machines need it, or TLS and users
    #[arg(long, value_name = "FILE", requires = "listen")]
    token_file: Option<PathBuf>,
    /// A further name under which browsers reach the pages; may be repeated
    #[arg(long = "host-name", value_name = "NAME", requires = "listen")]
    host_names: Vec<String>,
}

/// What `--listen` says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Listen {
    Nowhere,
    At(SocketAddr),
}

impl FromStr for Listen {
    type Err = AddrParseError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text == "none" { Ok(Self::Nowhere) } else { text.parse().map(Self::At) }
    }
}

/// Pages are served while it is there. A timer that looks for the end would be most of what idle
/// pages cost.
pub(super) struct Serving(#[expect(dead_code, reason = "its end is the message")] oneshot::Sender<()>);

impl PagesArgs {
    /// Somebody named an address.
    pub(super) const fn is_asked(&self) -> bool {
        matches!(self.listen, Some(Listen::At(_)))
    }

    /// Binds the address; refuses one that others could use unasked. Where nobody named one and the
    /// usual one is taken, there are no pages.
    pub(super) fn bind(&self) -> Result<Option<Server>, Failure> {
        let listen = match self.listen {
            Some(Listen::Nowhere) => return Ok(None),
            Some(Listen::At(address)) => address,
            None => USUAL,
        };
        let settings = Settings {
            hosts: self.host_names.clone(),
            web_config: self.web_config.clone(),
            token_file: self.token_file.clone(),
            credentials: std::env::var_os("CREDENTIALS_DIRECTORY").map(PathBuf::from),
            ..Settings::local(listen)
        };
        let error = match Server::bind(settings) {
            Ok(server) => return Ok(Some(server)),
            Err(error) => error,
        };
        if !self.is_asked() && matches!(error, ServeError::Listen { .. }) {
            output::complain(&format!("no page: {error}; --listen gives it another address"));
            return Ok(None);
        }
        Err(match error {
            ServeError::Listen { .. } | ServeError::Random(_) => Failure::host(error.to_string()),
            ServeError::WebConfig { error: WebConfigError::WithoutTls, .. } => Failure::lacking(&error, "tls"),
            ServeError::Exposed(_) if cfg!(not(feature = "tls")) => {
                Failure::lacking(&format!("{error}; this build has no TLS"), "tls")
            }
            _ => Failure::usage(error.to_string()),
        })
    }
}

/// Where the packaged service has its pages, and everybody looks for them.
const USUAL: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 8621);

/// Threads that ask the store, which answers two questions at once. More of them would wait, and
/// each keeps memory of its own.
const READING: usize = 2;

/// Serves until what is returned is dropped.
pub(super) fn serve(server: Server, reader: Reader, live: Live) -> Result<Serving, Failure> {
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    let runtime = runtime.worker_threads(1).max_blocking_threads(READING).enable_all().build();
    let runtime = runtime.map_err(|error| Failure::host(format!("cannot serve pages: {error}")))?;
    let (serving, ended) = oneshot::channel();
    // Nothing is ever sent: the other end goes.
    let asked = async { drop(ended.await) };
    let run = move || {
        if let Err(error) = runtime.block_on(server.run(Arc::new(reader), live, asked)) {
            tracing::error!(%error, "pages are no longer served");
        }
    };
    thread::Builder::new()
        .name("pages".to_owned())
        .spawn(run)
        .map(|_| Serving(serving))
        .map_err(|error| Failure::host(format!("cannot start a thread: {error}")))
}

/// Takes what people post until nobody can post any more. The scheduler answers for runs.
pub(super) fn take_posts(
    mut posts: mpsc::Receiver<Post>,
    writer: Writer,
    scheduler: Sender<Message>,
) -> Result<(), Failure> {
    let run = move || {
        while let Some(Post { order, answer }) = posts.blocking_recv() {
            // Who asked may have gone, and the scheduler at the end.
            if let Order::Run { target, kind } = order {
                let _ = scheduler.send(Message::Asked(target, kind, answer));
            } else {
                let _ = answer.send(carry_out(order, &writer));
            }
        }
    };
    thread::Builder::new()
        .name("posts".to_owned())
        .spawn(run)
        .map(drop)
        .map_err(|error| Failure::host(format!("cannot start a thread: {error}")))
}

fn carry_out(order: Order, writer: &Writer) -> Result<Accepted, Refusal> {
    let unavailable = |error: narrows_store::Error| Refusal::Unavailable(error.to_string());
    match order {
        Order::Run { .. } => Err(Refusal::Unavailable("the scheduler answers for runs".to_owned())),
        Order::Silence { rule, target, began, ends, note } => {
            let silence = Silence { rule, target, begins: began, ends };
            let id = writer.silence(&silence, note.as_deref()).map_err(unavailable)?;
            Ok(Accepted { text: format!("silence {id} is in force within five seconds") })
        }
        Order::Note { target, at, text } => {
            let mut event: Event = events::now(target, "note", at, text);
            writer.event(&mut event).map_err(unavailable)?;
            Ok(Accepted { text: "the note is among the events".to_owned() })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_asked_for_or_none_is() {
        let args = |listen: Option<&str>| PagesArgs {
            listen: listen.map(|text| text.parse().unwrap()),
            web_config: None,
            token_file: None,
            host_names: Vec::new(),
        };
        assert!(args(None).listen.is_none() && !args(None).is_asked());
        assert!(args(Some("none")).bind().unwrap().is_none() && !args(Some("none")).is_asked());
        let asked = args(Some("127.0.0.1:0"));
        let server = asked.bind().unwrap().unwrap();
        assert_eq!(server.links().overview(), format!("http://{}/", server.address()));
        let taken = args(Some(&server.address().to_string()));
        assert!(taken.is_asked() && taken.bind().unwrap_err().text.contains("cannot listen"));
        assert!("no".parse::<Listen>().is_err());
    }
}
