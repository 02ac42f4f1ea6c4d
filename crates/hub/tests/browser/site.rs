//! A server of a made-up fleet.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;

use narrows_site::{Feed, Server, Settings};
use serde_json::json;
use tokio::sync::oneshot;

use crate::api;
use crate::made_up::Fleet;

/// A running server; it ends when this is dropped.
pub(crate) struct Site {
    address: SocketAddr,
    fleet: Arc<Fleet>,
    feed: Feed,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// For this machine alone, on a free port.
pub(crate) fn local() -> Settings {
    api::settings(SocketAddr::from(([127, 0, 0, 1], 0)))
}

impl Site {
    pub(crate) fn of(fleet: Fleet) -> Self {
        Self::with(local(), fleet)
    }

    pub(crate) fn with(settings: Settings, fleet: Fleet) -> Self {
        let server = Server::bind(settings).expect("these settings are safe");
        let (address, fleet, feed) = (server.address(), Arc::new(fleet), Feed::default());
        let (stop, stopped) = oneshot::channel::<()>();
        let ours = (Arc::clone(&fleet), feed.clone());
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
            let stop = async { drop(stopped.await) };
            runtime.block_on(api::serve(server, ours.0, ours.1, stop)).expect("it serves");
        });
        Self { address, fleet, feed, stop: Some(stop), thread: Some(thread) }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// A run comes in by which the first pair has 123 Mbit/s available.
    pub(crate) fn news(&self) {
        self.fleet.news.store(true, Ordering::Relaxed);
        self.feed.say("run", &json!({ "agent": "ams-1", "target": "ams-2", "kind": "available" }));
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        drop(self.stop.take());
        let ended = self.thread.take().map(JoinHandle::join);
        assert!(std::thread::panicking() || ended.is_none_or(|ended| ended.is_ok()), "the server panicked");
    }
}
