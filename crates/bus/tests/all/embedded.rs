//! The suite over the embedded server, and what only this one has.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use futures_util::{SinkExt, StreamExt};
use narrows_bus::embedded::{Address, Admission, Client, Limits, Server};
use narrows_bus::{Bus, Error, Key, Permissions, Settings};
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio_rustls::TlsAcceptor;

use crate::suite::cases;
use crate::world::{Keys, Process, World, free_address, ready, soon, until};

/// Makes of this program a server: its file, its address, and the keys it knows.
const CHILD: [&str; 3] = ["NARROWS_BUS_FILE", "NARROWS_BUS_ADDRESS", "NARROWS_BUS_KEYS"];

fn admission(keys: Keys) -> Admission {
    Arc::new(move |public| {
        if public == keys.hub.public() {
            return Some(Permissions::all());
        }
        keys.agents.iter().find(|(key, _)| key.public() == public).map(|(_, may)| may.clone())
    })
}

fn address(server: SocketAddr) -> Address {
    Address { url: format!("ws://{server}/bus"), tls: None }
}

/// Serves if this process was started to do that.
pub(crate) async fn child() {
    if std::env::var_os(CHILD[0]).is_none() {
        return;
    }
    let [file, address, keys] = CHILD.map(|name| std::env::var(name).unwrap());
    let server = Server::open(Path::new(&file), admission(Keys::from_seeds(&keys)), Limits::default()).unwrap();
    let listener = TcpListener::bind(&address).await.unwrap();
    println!("the bus is ready");
    server.serve(listener, None).await;
}

/// `test` is the one that calls: the child is the same program, and begins with it.
pub(crate) async fn world(test: &'static str, folder: &Path, settings: &Settings) -> World {
    let (listen, keys, file) = (free_address(), Keys::new(), folder.join("bus.db"));
    let seeds = keys.seeds();
    let server = Process::new(move || {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", test, "--nocapture", "--include-ignored"]);
        command.env(CHILD[0], &file).env(CHILD[1], listen.to_string()).env(CHILD[2], &seeds);
        ready(&mut command, "the bus is ready")
    });
    let [(a, _), (b, _)] = &keys.agents;
    let client =
        |key: &Key| -> Arc<dyn Bus> { Arc::new(Client::connect(address(listen), key.clone(), Limits::default())) };
    World::new(server, [client(&keys.hub), client(a), client(b)], settings).await
}

#[tokio::test]
async fn one_suite_holds_over_the_embedded_bus() {
    child().await;
    join_all(cases().into_iter().map(|case| async move {
        let began = tokio::time::Instant::now();
        let folder = tempfile::tempdir().unwrap();
        let mut world = world("embedded::one_suite_holds_over_the_embedded_bus", folder.path(), &case.settings).await;
        (case.run)(&mut world).await;
        println!("{}: {} ms", case.name, began.elapsed().as_millis());
    }))
    .await;
}

/// A server in this process.
struct Here {
    server: Server,
    keys: Keys,
    file: PathBuf,
    folder: tempfile::TempDir,
}

impl Here {
    fn new(limits: Limits) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (keys, file) = (Keys::new(), folder.path().join("bus.db"));
        let known = admission(Keys::from_seeds(&keys.seeds()));
        let server = Server::open(&file, known, limits).unwrap();
        Self { server, keys, file, folder }
    }

    async fn listen(&self, tls: Option<TlsAcceptor>) -> SocketAddr {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let server = self.server.clone();
        tokio::spawn(async move { server.serve(listener, tls).await });
        address
    }
}

#[tokio::test]
async fn a_client_of_the_same_process_needs_no_key() {
    let here = Here::new(Limits::default());
    let hub = here.server.local();
    let condition = until(&hub, |now| now.server.is_some()).await;
    assert_eq!(condition.server.as_deref(), Some(here.server.id()));
    assert!(matches!(hub.read("plan", "a").await, Err(Error::Missing(_))));
    hub.provide(&Settings::fleet(1)).await.unwrap();
    assert_eq!(hub.write("plan", "a", "x".into(), 0).await, Ok(1));
}

#[tokio::test]
async fn one_server_has_the_file_at_a_time() {
    let here = Here::new(Limits::default());
    let second = Server::open(&here.file, Arc::new(|_| None), Limits::default());
    assert!(matches!(second, Err(Error::Storage(_))), "{second:?}");
    let (file, folder, first) = (here.file, here.folder, here.server.id().to_owned());
    drop(here.server);
    let third = Server::open(&file, Arc::new(|_| None), Limits::default()).unwrap();
    assert_ne!(third.id(), first);
    drop(folder);
}

#[tokio::test]
async fn an_unknown_or_revoked_key_is_told_so() {
    let here = Here::new(Limits::default());
    let listen = here.listen(None).await;
    let stranger = Client::connect(address(listen), Key::new(), Limits::default());
    let trouble = |text: &'static str| {
        move |now: &narrows_bus::Condition| now.trouble.as_deref().is_some_and(|trouble| trouble.contains(text))
    };
    until(&stranger, trouble("its key is not known")).await;
    assert!(matches!(stranger.read("plan", "a").await, Err(Error::Disconnected(_))));
    let key = here.keys.agents[0].0.clone();
    let agent = Client::connect(address(listen), key.clone(), Limits::default());
    until(&agent, |now| now.server.is_some()).await;
    assert_eq!(here.server.cut(&key.public()), 1);
    until(&agent, |now| now.connections == 2).await;
    assert_eq!(here.server.cut(&Key::new().public()), 0);
}

/// Carries octets to a server and back, until it is told not to take any more from the server.
async fn proxy(listener: TcpListener, server: SocketAddr, stop: Arc<Notify>) {
    loop {
        let (client, _) = listener.accept().await.unwrap();
        let (mut from_client, mut to_client) = client.into_split();
        let (mut from_server, mut to_server) = TcpStream::connect(server).await.unwrap().into_split();
        let stop = Arc::clone(&stop);
        tokio::spawn(async move {
            // Both ends may close whenever they like.
            let there = tokio::io::copy(&mut from_client, &mut to_server);
            let back = async {
                tokio::select! {
                    _ = tokio::io::copy(&mut from_server, &mut to_client) => {}
                    () = stop.notified() => std::future::pending().await,
                }
            };
            tokio::select! { _ = there => {}, () = back => {} }
        });
    }
}

#[tokio::test]
async fn a_client_that_does_not_read_is_disconnected_and_comes_back() {
    let here = Here::new(Limits::default());
    let (server, stop) = (here.listen(None).await, Arc::new(Notify::new()));
    let listener = TcpListener::bind(free_address()).await.unwrap();
    let between = listener.local_addr().unwrap();
    tokio::spawn(proxy(listener, server, Arc::clone(&stop)));
    let hub = here.server.local();
    // A ping finds out that the server has closed.
    let limits = Limits { ping: Duration::from_millis(50), ..Limits::default() };
    let agent = Client::connect(address(between), here.keys.agents[0].0.clone(), limits);
    until(&hub, |now| now.server.is_some()).await;
    until(&agent, |now| now.server.is_some()).await;
    let mut orders = agent.subscribe("order.a").await.unwrap();
    stop.notify_one();
    // Kernels keep some megabytes on the way, and the server eight.
    let megabyte = bytes::Bytes::from(vec![0; 1_000_000]);
    let mut sent = 0;
    while here.server.connected() == 2 {
        assert!(sent < 100, "the server keeps {sent} MB for a client that does not read");
        hub.send("order.a", megabyte.clone()).await.unwrap();
        // The hub's own question is answered when the server has routed the message.
        assert!(hub.read("plan", "a").await.is_err());
        sent += 1;
    }
    println!("disconnected after {sent} MB");
    assert!(sent >= 8, "{sent}");
    until(&agent, |now| now.connections == 2).await;
    hub.send("order.a", "again".into()).await.unwrap();
    while &soon(orders.next()).await.unwrap().payload[..] != b"again" {}
}

#[tokio::test]
async fn a_silent_end_is_left() {
    let never = Duration::from_secs(3_600);
    let mute = Limits { ping: never, ..Limits::default() };
    let impatient = Limits { silence: Duration::from_millis(100), ..mute.clone() };
    for (server, client, trouble) in
        [(&mute, &impatient, "nothing was heard"), (&impatient, &mute, "without closing handshake")]
    {
        let here = Here::new(server.clone());
        let listen = here.listen(None).await;
        let agent = Client::connect(address(listen), here.keys.agents[0].0.clone(), client.clone());
        let condition = until(&agent, |now| now.connections == 2).await;
        assert!(condition.trouble.as_deref().is_some_and(|text| text.contains(trouble)), "{condition:?}");
    }
}

#[tokio::test]
async fn frames_beyond_the_limit_end_the_connection_not_the_server() {
    let here = Here::new(Limits { message_octets: 10_000, ..Limits::default() });
    let listen = here.listen(None).await;
    let agent = Client::connect(address(listen), here.keys.agents[0].0.clone(), Limits::default());
    until(&agent, |now| now.server.is_some()).await;
    let refused = agent.publish("result.a.rtt", "1", vec![0; 10_001].into()).await;
    assert_eq!(refused, Err(Error::TooLarge { octets: 10_001, most: 10_000 }));
    // A client that does not know the limit sends more than the server's largest frame.
    let other = tokio_tungstenite::client_async(format!("ws://{listen}/"), TcpStream::connect(listen).await.unwrap());
    let (mut raw, _) = other.await.unwrap();
    let large = tokio_tungstenite::tungstenite::Message::Binary(vec![0; 4 << 20].into());
    // The server may close before all is written.
    let _ = raw.send(large).await;
    while let Some(Ok(_)) = raw.next().await {}
    until(&agent, |now| now.server.is_some() && now.connections == 1).await;
    assert!(matches!(agent.read("plan", "a").await, Err(Error::Missing(_))));
}

#[tokio::test]
async fn tls_is_the_callers() {
    let here = Here::new(Limits::default());
    let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
    let secret = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(made.signing_key.serialize_der()));
    let config = rustls::ServerConfig::builder()
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], secret)
        .unwrap();
    let listen = here.listen(Some(TlsAcceptor::from(Arc::new(config)))).await;
    let client = |roots: rustls::RootCertStore| {
        let tls = rustls::ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
        let address = Address { url: format!("wss://{listen}/"), tls: Some(Arc::new(tls)) };
        Client::connect(address, here.keys.hub.clone(), Limits::default())
    };
    let mut roots = rustls::RootCertStore::empty();
    roots.add(made.cert.der().clone()).unwrap();
    let knows = client(roots);
    until(&knows, |now| now.server.is_some()).await;
    let other = client(rustls::RootCertStore::empty());
    until(&other, |now| now.trouble.as_deref().is_some_and(|trouble| trouble.contains("certificate"))).await;
}
