//! How fast a bus is: `cargo run --release -p narrows-bus --example rates [nats://127.0.0.1:4222]`.
//! Without an argument, it is the embedded one, over a WebSocket on loopback and a file in the
//! folder for temporary files.
#![expect(clippy::print_stdout, reason = "a table is its purpose")]
#![expect(clippy::unwrap_used, reason = "what cannot be prepared cannot be measured")]

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::StreamExt;
use narrows_bus::embedded::{Address, Client, Limits, Server};
use narrows_bus::{Bus, Key, Permissions, Settings, nats};
use tokio::time::Instant;

/// As many results as an agent's spool may have of a day.
const RESULTS: usize = 20_000;

/// Octets of a result, as a run of a fleet has them.
const OCTETS: usize = 1_500;

/// Calls under way at once.
const AT_ONCE: usize = 64;

/// Conditional writes, one after the other: a lease cannot be renewed in parallel.
const WRITES: u64 = 500;

#[tokio::main]
async fn main() {
    let folder = tempfile::tempdir().unwrap();
    let bus: Arc<dyn Bus> = match std::env::args().nth(1) {
        Some(server) => Arc::new(nats::Client::connect(nats::Options::new(&server, "hub")).await.unwrap()),
        None => Arc::new(embedded(&folder.path().join("bus.db")).await),
    };
    bus.condition().wait_for(|now| now.server.is_some()).await.unwrap();
    bus.provide(&Settings::fleet(1)).await.unwrap();

    let began = Instant::now();
    let ids: Vec<String> = (0..RESULTS).map(|number| format!("{:?} {number}", Instant::now())).collect();
    let payload = Bytes::from(vec![b'x'; OCTETS]);
    let publishes = futures_util::stream::iter(&ids).map(|id| bus.publish("result.a.rtt", id, payload.clone()));
    let kept = publishes.buffer_unordered(AT_ONCE).filter(|kept| std::future::ready(kept.is_ok())).count().await;
    row("acknowledged publishes", kept, began);

    let began = Instant::now();
    let mut taken = 0;
    while taken < kept {
        let batch = bus.fetch("ingest", 500, Duration::from_secs(5)).await.unwrap();
        bus.ack("ingest", &batch).await.unwrap();
        taken += batch.len();
    }
    row("results taken and acknowledged", taken, began);

    let began = Instant::now();
    let mut revision = bus.read("lease_1", "host.a").await.unwrap().map_or(0, |entry| entry.revision);
    for _ in 0..WRITES {
        revision = bus.write("lease_1", "host.a", "holder".into(), revision).await.unwrap();
    }
    row("conditional writes, one by one", usize::try_from(WRITES).unwrap(), began);
}

async fn embedded(file: &std::path::Path) -> Client {
    let server = Server::open(file, Arc::new(|_| Some(Permissions::all())), Limits::default()).unwrap();
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let url = format!("ws://{}/bus", listener.local_addr().unwrap());
    tokio::spawn(async move { server.serve(listener, None).await });
    Client::connect(Address { url, tls: None }, Key::new(), Limits::default())
}

fn row(what: &str, number: usize, began: Instant) {
    let seconds = began.elapsed().as_secs_f64();
    println!("{what}: {number} in {seconds:.2} s, {:.0}/s", number as f64 / seconds);
}
