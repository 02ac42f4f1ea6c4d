//! What the API of `narrows watch` answers, from a store that this test writes: each kind of answer
//! keeps what it once had.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::thread::JoinHandle;

use narrows_store::{Options, Store};
use narrows_watch::WallTime;
use narrows_web::{Live, Server, Settings};
use serde_json::{Value, json};
use tokio::sync::oneshot;

use crate::common;
use crate::documents::keeps;
use crate::history::{at, stored};

/// Serves a store until it is dropped.
struct Site {
    address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// Ten minutes of that Monday have passed.
fn now() -> WallTime {
    at(10)
}

impl Site {
    fn of(store: &Store) -> Self {
        let local = Settings::local(SocketAddr::from(([127, 0, 0, 1], 0)));
        let server = Server::bind(Settings { now: || now().since(WallTime::default()), ..local })
            .expect("loopback has a free port");
        let (address, reader) = (server.address(), store.reader());
        let (stop, stopped) = oneshot::channel::<()>();
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
            let stop = async { drop(stopped.await) };
            runtime.block_on(server.run(Arc::new(reader), Live::new().0, stop)).expect("it serves");
        });
        Self { address, stop: Some(stop), thread: Some(thread) }
    }

    fn json(&self, path: &str) -> Value {
        let mut stream = TcpStream::connect(self.address).expect("the server listens");
        let request = format!("GET {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n", self.address);
        stream.write_all(request.as_bytes()).expect("the server reads");
        let mut reply = String::new();
        stream.read_to_string(&mut reply).expect("an answer is text");
        let (head, body) = reply.split_once("\r\n\r\n").expect("a head and a body");
        assert!(head.starts_with("HTTP/1.1 200 "), "{path}: {reply}");
        serde_json::from_str(body).unwrap_or_else(|error| panic!("{path}: {error}: {body}"))
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        drop(self.stop.take());
        let ended = self.thread.take().map(JoinHandle::join);
        assert!(std::thread::panicking() || ended.is_none_or(|ended| ended.is_ok()), "the server panicked");
    }
}

#[test]
fn every_kind_of_answer_keeps_its_keys() {
    let (_folder, path) = stored();
    let store = Store::open(&path, Options::new(now())).expect("it was written a moment ago");
    let site = Site::of(&store);
    let described = site.json("/api/openapi.json");
    let answer = |part: &str, question: &str| {
        let path = format!("/api/v1/{part}");
        let answer = site.json(&format!("{path}?{question}"));
        let named = &described["paths"][&path]["get"]["responses"]["200"]["content"]["application/json"]["schema"];
        assert!(named["$ref"].is_string(), "{path}: {named}");
        let schema = json!({ "$ref": named["$ref"], "components": described["components"] });
        common::validate(&schema.to_string(), &answer);
        answer
    };
    keeps("targets-1", &answer("targets", ""));
    keeps("series-1", &answer("series", "target=office&signal=available&since=1h"));
    keeps("heatmap-1", &answer("heatmap", "target=lab&since=1h&columns=1"));
    keeps("runs-1", &answer("runs", "target=office&since=1h"));
    keeps("paths-1", &answer("paths", "target=office&since=1h"));
    keeps("events-1", &answer("events", "target=office&since=1h"));
    keeps("incidents-1", &answer("incidents", "target=office&since=1h"));
    keeps("compare-1", &answer("compare", "target=office&a_since=10m&a_until=5m&b_since=5m&b_until=now"));
    keeps("alert-states-1", &answer("alerts", ""));
}
