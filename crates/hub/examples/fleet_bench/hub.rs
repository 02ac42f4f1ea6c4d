//! The hub as its users see it: requests, and its process.

use std::fmt::Write as _;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use narrows_hub::HubFile;
use rustls::pki_types::ServerName;
use rustls::{ClientConnection, StreamOwned};
use serde_json::{Value, json};

use crate::agents::Fleet;
use crate::{figure, now, quantiles};

pub(crate) struct Hub {
    authority: String,
    pub(crate) key_hash: [u8; 32],
    pid: u32,
}

impl Hub {
    pub(crate) fn new(state: &Path, pid: u32) -> Self {
        let file = HubFile::read(state).unwrap();
        let authority = file.url.strip_prefix("https://").unwrap().trim_end_matches('/').to_owned();
        let digit = |at: usize| u8::from_str_radix(&file.key_hash[at..at + 2], 16).unwrap();
        Self { authority, key_hash: std::array::from_fn(|at| digit(2 * at)), pid }
    }

    pub(crate) fn bus(&self) -> String {
        format!("wss://{}/bus", self.authority)
    }

    async fn ask(&self, method: &'static str, path: String, body: Value) -> Vec<u8> {
        let (authority, key_hash) = (self.authority.clone(), self.key_hash);
        tokio::task::spawn_blocking(move || exchange(&authority, key_hash, method, &path, &body)).await.unwrap()
    }

    /// Sites of ten hosts, and loading runs within the first; says how long the answer and the
    /// plans took.
    pub(crate) async fn apply(&self, agents: usize, fleet: &Fleet) {
        let mut toml = "[groups]\nfirst = [\"s000-*\"]\n".to_owned();
        for site in 0..agents.div_ceil(10) {
            // Writing to a text cannot fail.
            let _ = write!(toml, "[sites.s{site:03}]\nhosts = [\"s{site:03}-*\"]\n");
        }
        toml += "[[test]]\npairs = \"all of first\"\nrun = \"throughput -t 10\"\nevery = \"6 h\"\n";
        fleet.planned(None).await;
        let began = now();
        let answer = self.ask("POST", "/api/v1/config".to_owned(), json!({ "toml": toml })).await;
        let took = began.elapsed();
        let text = String::from_utf8_lossy(&answer);
        assert!(text.starts_with("HTTP/1.1 200"), "{}", &text[..text.len().min(500)]);
        figure("configuration accepted", format!("{:.2} s", took.as_secs_f64()));
        let answer: Value = serde_json::from_str(text.split_once("\r\n\r\n").unwrap().1).unwrap();
        fleet.planned(answer["serial"].as_u64()).await;
        figure("its plans at all agents", format!("{:.1} s", began.elapsed().as_secs_f64()));
    }

    /// The page that everybody opens first.
    pub(crate) async fn matrix(&self) {
        for by in ["host", "site"] {
            let (mut times, mut octets) = (Vec::new(), 0);
            for _ in 0..QUERIES {
                let began = now();
                let answer = self.ask("GET", format!("/api/v1/matrix?metric=available&by={by}"), json!({})).await;
                times.push(began.elapsed());
                octets = answer.len();
            }
            let first = times.remove(0);
            let first = format!("the first {:.0} ms", first.as_secs_f64() * 1e3);
            figure(&format!("matrix by {by}"), format!("{}; {first}; {} kB", quantiles(times), octets / 1_000));
        }
    }

    /// What its threads have used of the processors so far.
    pub(crate) fn cpu(&self) -> Duration {
        let text = std::fs::read_to_string(format!("/proc/{}/stat", self.pid)).unwrap();
        let ticks: u64 = text
            .rsplit_once(')')
            .unwrap()
            .1
            .split_whitespace()
            .skip(11)
            .take(2)
            .map(|one| one.parse::<u64>().unwrap())
            .sum();
        // Linux counts for programs in hundredths of a second.
        Duration::from_millis(ticks * 10)
    }

    /// Its largest resident memory, in kB.
    pub(crate) fn memory(&self) -> u64 {
        let text = std::fs::read_to_string(format!("/proc/{}/status", self.pid)).unwrap();
        let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
        line.split_whitespace().next().unwrap().parse().unwrap()
    }

    /// Stops the process, or lets it go on.
    pub(crate) fn signal(&self, name: &str) {
        let done = std::process::Command::new("kill").args([name, &self.pid.to_string()]).status().unwrap();
        assert!(done.success());
    }
}

fn exchange(authority: &str, key_hash: [u8; 32], method: &str, path: &str, body: &Value) -> Vec<u8> {
    let name = ServerName::try_from("127.0.0.1").unwrap();
    let connection = ClientConnection::new(Arc::new(narrows_bus::pinned(key_hash)), name).unwrap();
    let mut stream = StreamOwned::new(connection, TcpStream::connect(authority).unwrap());
    let body = body.to_string();
    let length = body.len();
    let head = format!("{method} {path} HTTP/1.1\r\nhost: {authority}\r\ncontent-type: application/json\r\n");
    // In one piece: the second of two would wait until the first is acknowledged (RFC 896).
    let request = format!("{head}content-length: {length}\r\nconnection: close\r\n\r\n{body}");
    stream.write_all(request.as_bytes()).unwrap();
    let mut octets = Vec::new();
    // The server may close without TLS's farewell.
    drop(stream.read_to_end(&mut octets));
    octets
}

const QUERIES: usize = 20;
