//! A server of the generated year, and a plain client.

use std::io::Write as _;
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use narrows_watch::WallTime;
use narrows_web::{Live, Post, Server, Settings, Source};
use serde_json::Value;
use tokio::sync::{mpsc, oneshot};

use crate::year::{Year, now};

/// A running server; it ends when this is dropped.
pub(crate) struct Site {
    pub(crate) address: SocketAddr,
    pub(crate) live: Live,
    pub(crate) posts: Option<mpsc::Receiver<Post>>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// What was answered.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

/// For this machine alone, on a free port.
pub(crate) fn local() -> Settings {
    Settings { now: || now().since(WallTime::default()), ..Settings::local(SocketAddr::from(([127, 0, 0, 1], 0))) }
}

impl Site {
    pub(crate) fn start() -> Self {
        Self::with(local())
    }

    pub(crate) fn with(settings: Settings) -> Self {
        Self::of(settings, Arc::new(Year))
    }

    pub(crate) fn of(settings: Settings, source: Arc<dyn Source>) -> Self {
        let server = Server::bind(settings).expect("these settings are safe");
        let address = server.address();
        let (live, posts) = Live::new();
        let (stop, stopped) = oneshot::channel::<()>();
        let ours = live.clone();
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
            let stop = async { drop(stopped.await) };
            runtime.block_on(server.run(source, ours, stop)).expect("it serves");
        });
        Self { address, live, posts: Some(posts), stop: Some(stop), thread: Some(thread) }
    }

    pub(crate) fn get(&self, path: &str) -> Reply {
        self.get_with(path, "")
    }

    /// With further header lines, each ended by CR LF.
    pub(crate) fn get_with(&self, path: &str, headers: &str) -> Reply {
        let host = if headers.contains("Host:") { String::new() } else { format!("Host: {}\r\n", self.address) };
        self.send(&format!("GET {path} HTTP/1.1\r\n{host}{headers}Connection: close\r\n\r\n"))
    }

    pub(crate) fn post(&self, path: &str, headers: &str, body: &str) -> Reply {
        let kind = if headers.contains("Content-Type") { "" } else { "Content-Type: application/json\r\n" };
        let length = body.len();
        let host = self.address;
        self.send(&format!(
            "POST {path} HTTP/1.1\r\nHost: {host}\r\n{kind}{headers}Content-Length: {length}\r\nConnection: close\r\n\r\n{body}"
        ))
    }

    pub(crate) fn json(&self, path: &str) -> Value {
        let reply = self.get(path);
        assert_eq!(reply.status, 200, "{path}: {reply:?}");
        reply.json()
    }

    pub(crate) fn send(&self, request: &str) -> Reply {
        let mut stream = self.connect();
        stream.write_all(request.as_bytes()).expect("the server reads");
        read(&mut stream)
    }

    pub(crate) fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).expect("the server listens");
        stream.set_read_timeout(Some(Duration::from_secs(60))).expect("a socket has a timeout");
        stream
    }
}

/// Reads an answer to its end.
pub(crate) fn read(stream: &mut impl std::io::Read) -> Reply {
    let mut bytes = Vec::new();
    // A server that refuses a body may reset the connection after its answer.
    let _ = stream.read_to_end(&mut bytes);
    let text = String::from_utf8_lossy(&bytes).into_owned();
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
    Reply { status, head: head.to_lowercase(), body: body.to_owned() }
}

impl Reply {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// A refusal says what it is as RFC 9457 wants.
    #[track_caller]
    pub(crate) fn refused(&self, status: u16, words: &str) {
        assert_eq!(self.status, status, "{self:?}");
        assert!(self.head.contains("content-type: application/problem+json"), "{self:?}");
        let problem = self.json();
        assert_eq!(problem["status"], status);
        assert!(problem["detail"].as_str().is_some_and(|detail| detail.contains(words)), "{words}: {problem}");
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        drop(self.stop.take());
        let ended = self.thread.take().map(JoinHandle::join);
        assert!(std::thread::panicking() || ended.is_none_or(|ended| ended.is_ok()), "the server panicked");
    }
}
