//! The server: TLS of its own key, the API, the bus behind an upgrade.

use std::sync::Arc;

use narrows_bus::embedded::{Address, Client, Limits};
use narrows_bus::{Bus, Key, pinned};
use narrows_fleet::message::{BusAddress, Exit, Joined, Plan, Signed};
use narrows_hub::{Channels, HubFile, JoinToken, Server, Settings};
use narrows_units::Metric;
use narrows_watch::Zone;
use rustls::pki_types::ServerName;
use rustls::{ClientConnection, StreamOwned};
use serde_json::{Value, json};
use tokio::sync::oneshot;

use crate::world::{Agent, name, request, soon, stored, until};

/// A hub that serves, on loopback.
pub(crate) struct Served {
    pub(crate) url: String,
    key_hash: [u8; 32],
    pub(crate) token: JoinToken,
    pub(crate) folder: tempfile::TempDir,
    pub(crate) stop: oneshot::Sender<()>,
    pub(crate) serving: tokio::task::JoinHandle<narrows_hub::Result<()>>,
}

impl Served {
    pub(crate) async fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let record = narrows_record::open(&format!("sqlite:{}/hub.db", folder.path().display())).await.unwrap();
        let settings = Settings {
            listen: "127.0.0.1:0".parse().unwrap(),
            hosts: Vec::new(),
            state: folder.path().to_owned(),
            nats: Vec::new(),
            bus_octets: 1_000_000_000,
            tenant: name("default"),
            channels: Channels::default(),
            zone: Zone::fixed(0),
        };
        let server = Server::bind(&settings, record).await.unwrap();
        let token = server.hub().token(3, "test").await.unwrap();
        let (stop, stopped) = oneshot::channel();
        let url = server.url().to_owned();
        let serving = tokio::spawn(server.run(async move { drop(stopped.await) }));
        Self { url, key_hash: token.key_hash, token, folder, stop, serving }
    }

    pub(crate) async fn ask(&self, method: &'static str, path: &str, body: Value) -> (u16, Value) {
        let (status, text) = self.text(method, path, body).await;
        (status, serde_json::from_str(&text).unwrap_or_else(|_| panic!("{path}: {text}")))
    }

    /// Agents of these names, connected to the bus.
    pub(crate) async fn agents(&self, names: [&str; 2]) -> Vec<Agent> {
        let mut agents = Vec::new();
        for wanted in names {
            let key = Key::new();
            let join = request(wanted, &self.token.to_string(), &key, &[]);
            let (_, joined) = self.ask("POST", "/api/v1/join", serde_json::to_value(&join).unwrap()).await;
            let joined: Joined = serde_json::from_value(joined).unwrap();
            let BusAddress::Embedded { url } = joined.bus.clone() else { panic!("{joined:?}") };
            let bus = Client::connect(
                Address { url, tls: Some(Arc::new(pinned(self.key_hash))) },
                key.clone(),
                Limits::default(),
            );
            until(&bus, |now| now.server.is_some()).await;
            agents.push(Agent::new(joined, bus, key));
        }
        agents
    }

    /// An answer; not before the server takes one more from this address, which it counts.
    async fn text(&self, method: &'static str, path: &str, body: Value) -> (u16, String) {
        loop {
            let (authority, key_hash) = (self.url.strip_prefix("https://").unwrap().to_owned(), self.key_hash);
            let (path, body) = (path.to_owned(), body.clone());
            let asked = tokio::task::spawn_blocking(move || exchange(&authority, key_hash, method, &path, &body));
            let answer = soon(asked).await.unwrap();
            let (head, body) = answer.split_once("\r\n\r\n").unwrap();
            let status = head.split(' ').nth(1).unwrap().parse().unwrap();
            if status != 429 {
                return (status, body.to_owned());
            }
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
    }
}

fn exchange(authority: &str, key_hash: [u8; 32], method: &str, path: &str, body: &Value) -> String {
    use std::io::{Read as _, Write as _};
    let name = ServerName::try_from("127.0.0.1").unwrap();
    let connection = ClientConnection::new(Arc::new(pinned(key_hash)), name).unwrap();
    let mut stream = StreamOwned::new(connection, std::net::TcpStream::connect(authority).unwrap());
    let body = body.to_string();
    let length = body.len();
    let head = format!("{method} {path} HTTP/1.1\r\nhost: {authority}\r\ncontent-type: application/json\r\n");
    write!(stream, "{head}content-length: {length}\r\nconnection: close\r\n\r\n{body}").unwrap();
    let mut octets = Vec::new();
    // The server may close without TLS's farewell.
    drop(stream.read_to_end(&mut octets));
    String::from_utf8(octets).unwrap()
}

#[tokio::test]
async fn a_host_joins_and_connects_by_one_port() {
    let served = Served::new().await;
    let key = Key::new();
    let join = request("a", &served.token.to_string(), &key, &[("role", "edge")]);
    let (status, joined) = served.ask("POST", "/api/v1/join", serde_json::to_value(&join).unwrap()).await;
    assert_eq!(status, 200, "{joined}");
    let joined: Joined = serde_json::from_value(joined).unwrap();
    let BusAddress::Embedded { url } = joined.bus else { panic!("{joined:?}") };
    assert_eq!(url, format!("{}/bus", served.url.replace("https", "wss")));
    let tls = Some(Arc::new(pinned(served.key_hash)));
    let client = Client::connect(Address { url, tls }, key, Limits::default());
    until(&client, |now| now.server.is_some()).await;
    // The plan comes by itself, and is signed.
    let mut plans = client.subscribe("plan.a").await.unwrap();
    let octets = match client.read("plan", "a").await.unwrap() {
        Some(entry) => entry.value,
        None => soon(plans.next()).await.unwrap().payload,
    };
    let signed: Signed = serde_json::from_slice(&octets).unwrap();
    let plan: Plan = serde_json::from_str(&signed.message).unwrap();
    assert_eq!((plan.agent, plan.peers.len()), (name("a"), 1));
    let (status, agents) = served.ask("GET", "/api/v1/agents", json!({})).await;
    assert_eq!((status, &agents["agents"][0]["name"]), (200, &json!("a")));
    assert_eq!(agents["agents"][0]["labels"]["role"], "edge");
    // A token that is not known.
    let other = JoinToken::new(served.key_hash).unwrap();
    let join = request("b", &other.to_string(), &Key::new(), &[]);
    let (status, problem) = served.ask("POST", "/api/v1/join", serde_json::to_value(&join).unwrap()).await;
    assert_eq!((status, &problem["status"]), (403, &json!(403)), "{problem}");
    served.stop.send(()).unwrap();
    soon(served.serving).await.unwrap().unwrap();
    let file = HubFile::read(served.folder.path()).unwrap();
    assert_eq!(file.url, served.url);
}

#[tokio::test]
async fn every_question_has_an_answer_or_says_what_is_wrong() {
    let served = Served::new().await;
    for wanted in ["a", "b"] {
        let join = request(wanted, &served.token.to_string(), &Key::new(), &[]);
        served.ask("POST", "/api/v1/join", serde_json::to_value(&join).unwrap()).await;
    }
    for path in [
        "agents",
        "sites",
        "matrix",
        "matrix?metric=rtt&by=site",
        "pairs?source=a&target=b",
        "series?source=a&target=b&metric=capacity&since=7d",
        "runs?since=1h",
        "links",
        "bottlenecks?metric=capacity",
        "plan",
        "config",
        "orders",
        "audit?limit=2",
        "alerts",
        "silences",
    ] {
        let (status, answer) = served.ask("GET", &format!("/api/v1/{path}"), json!({})).await;
        assert_eq!(status, 200, "{path}: {answer}");
        assert!(answer["now_ms"].is_i64(), "{path}: {answer}");
    }
    for (path, wanted) in [
        ("matrix?metric=speed", 400),
        ("pairs?source=a", 400),
        ("pairs?source=a&target=x", 404),
        ("runs/x", 404),
        ("runs?since=yesterday", 400),
        ("nothing", 404),
        ("silences/x", 404),
    ] {
        let (status, answer) = served.ask("GET", &format!("/api/v1/{path}"), json!({})).await;
        assert_eq!((status, &answer["status"]), (wanted, &json!(wanted)), "{path}");
    }
    let (status, order) =
        served.ask("POST", "/api/v1/orders", json!({ "source": "a", "target": "b", "command": "rtt" })).await;
    assert_eq!((status, &order["state"]), (200, &json!("waits")), "{order}");
    let (status, made) = served.ask("POST", "/api/v1/tokens", json!({ "uses": 2 })).await;
    assert!(status == 200 && made["join"].as_str().unwrap().parse::<JoinToken>().is_ok(), "{made}");
    let toml = "[[test]]\npairs = [[\"a\", \"b\"]]\nrun = \"throughput\"\nevery = \"6 h\"\n";
    let (_, tried) = served.ask("POST", "/api/v1/config", json!({ "toml": toml, "dry_run": true })).await;
    assert_eq!(tried["changes"][0], "a to b: throughput: 0 -> 4 runs a day");
    let (status, revoked) = served.ask("POST", "/api/v1/agents/b/revoke", json!({})).await;
    assert_eq!(status, 200, "{revoked}");
    let (_, metrics) = served.text("GET", "/metrics", json!({})).await;
    for line in ["narrows_hub_ingest_lag_seconds 0", "narrows_agents{state=\"revoked\"} 1"] {
        assert!(metrics.lines().any(|one| one == line), "{metrics}");
    }
    let (status, _) = served.text("GET", "/bus", json!({})).await;
    assert_eq!(status, 426);
}

/// An order is seen to run: an agent's run has a number of its own, and names its order beside.
#[tokio::test]
async fn an_order_that_is_carried_out_runs() {
    let served = Served::new().await;
    let agents = served.agents(["a", "b"]).await;
    let asked = json!({ "source": "a", "target": "b", "command": "rtt" });
    let (_, order) = served.ask("POST", "/api/v1/orders", asked).await;
    let id: uuid::Uuid = order["id"].as_str().unwrap().parse().unwrap();
    let mut status = agents[0].status(1);
    (status.running, status.order) = (Some(uuid::Uuid::from_u128(7)), Some(id));
    agents[0].say(&status).await;
    let runs = async {
        loop {
            let (_, orders) = served.ask("GET", "/api/v1/orders", json!({})).await;
            if orders["orders"].as_array().unwrap().iter().any(|one| one["state"] == "running") {
                return;
            }
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
    };
    soon(runs).await;
}

#[tokio::test]
async fn what_agents_find_is_in_the_matrix() {
    let served = Served::new().await;
    let mut agents = served.agents(["a", "b"]).await;
    let now = served.ask("GET", "/api/v1/agents", json!({})).await.1["now_ms"].as_i64().unwrap();
    let mut kept = agents[0].subscribe("stored").await;
    let available = agents[0].run(&name("b"), "available", Metric::AvailableIpCapacity, 100.0, now - 5_000);
    agents[0].publish(&available).await;
    let mut failed = agents[0].run(&name("b"), "rtt", Metric::RoundTripTime, 1.0, now - 4_000);
    (failed.exit, failed.reason) = (Exit::PeerFailed, Some("it does not answer".to_owned()));
    failed.values.clear();
    agents[0].publish(&failed).await;
    while !stored(&soon(kept.next()).await.unwrap()).has(2) {}
    let (_, matrix) = served.ask("GET", "/api/v1/matrix?metric=available", json!({})).await;
    let cell = &matrix["cells"][0];
    assert_eq!((&matrix["sources"], matrix["cells"].as_array().unwrap().len()), (&json!(["a", "b"]), 1));
    assert_eq!((&cell["state"], &cell["value"], &cell["run"]), (&json!("value"), &json!(1e8), &json!(available.id)));
    let (_, matrix) = served.ask("GET", "/api/v1/matrix?metric=rtt", json!({})).await;
    let cell = &matrix["cells"][0];
    assert_eq!((&cell["state"], &cell["reason"]), (&json!("failed"), &json!("it does not answer")));
    let (_, pair) = served.ask("GET", "/api/v1/pairs?source=a&target=b", json!({})).await;
    assert_eq!((pair["values"].as_array().unwrap().len(), pair["runs"].as_array().unwrap().len()), (1, 2), "{pair}");
    let (_, run) = served.ask("GET", &format!("/api/v1/runs/{}", available.id), json!({})).await;
    assert_eq!(run["values"][0]["value"], 1e8);
    let (_, runs) = served.ask("GET", "/api/v1/runs?kind=rtt&since=1h", json!({})).await;
    assert_eq!(runs["runs"][0]["exit"], "peer_failed");
    // What comes later is after the cursor of this answer, whenever it ran.
    assert_eq!(runs["after"], 2);
    let mut late = agents[0].run(&name("b"), "available", Metric::AvailableIpCapacity, 90.0, now - 20 * 86_400_000);
    late.octets = 7;
    agents[0].publish(&late).await;
    while !stored(&soon(kept.next()).await.unwrap()).has(3) {}
    let (_, next) = served.ask("GET", "/api/v1/runs?after=2", json!({})).await;
    assert_eq!((&next["runs"][0]["id"], &next["after"]), (&json!(late.id), &json!(3)), "{next}");
    for (path, wanted) in [("after=9", 410), ("after=2&since=1h", 400), ("after=x", 400)] {
        let (status, answer) = served.ask("GET", &format!("/api/v1/runs?{path}"), json!({})).await;
        assert_eq!((status, &answer["status"]), (wanted, &json!(wanted)), "{path}");
    }
    let (_, metrics) = served.text("GET", "/metrics", json!({})).await;
    assert!(metrics.lines().any(|line| line == "narrows_hub_runs_total{outcome=\"done\"} 2"), "{metrics}");
}
