//! The web side: a thread that serves pages, and one that takes what people post.

use std::net::SocketAddr;
use std::path::PathBuf;
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

/// Where to serve, and to whom.
#[derive(Debug, Clone, clap::Args)]
pub(super) struct PagesArgs {
    /// Serve pages, the API and /metrics at this address, such as 127.0.0.1:8621
    #[arg(long, value_name = "ADDRESS")]
    pub(super) listen: Option<SocketAddr>,
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

/// Pages are served while it is there. A timer that looks for the end would be most of what idle
/// pages cost.
pub(super) struct Serving(#[expect(dead_code, reason = "its end is the message")] oneshot::Sender<()>);

impl PagesArgs {
    /// Binds the address; refuses one that others could use unasked.
    pub(super) fn bind(&self) -> Result<Option<Server>, Failure> {
        let Some(listen) = self.listen else { return Ok(None) };
        let settings = Settings {
            hosts: self.host_names.clone(),
            web_config: self.web_config.clone(),
            token_file: self.token_file.clone(),
            credentials: std::env::var_os("CREDENTIALS_DIRECTORY").map(PathBuf::from),
            ..Settings::local(listen)
        };
        Server::bind(settings).map(Some).map_err(|error| match error {
            ServeError::Listen { .. } | ServeError::Random(_) => Failure::host(error.to_string()),
            ServeError::WebConfig { error: WebConfigError::WithoutTls, .. } => Failure::lacking(&error, "tls"),
            ServeError::Exposed(_) if cfg!(not(feature = "tls")) => {
                Failure::lacking(&format!("{error}; this build has no TLS"), "tls")
            }
            _ => Failure::usage(error.to_string()),
        })
    }
}

/// Serves until what is returned is dropped.
pub(super) fn serve(server: Server, reader: Reader, live: Live) -> Result<Serving, Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
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
