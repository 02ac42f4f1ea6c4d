use std::fs::Permissions;
use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, Ipv4Addr, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use narrows_wire::ndt7::{FIRST_OCTETS, Measurement, SUBPROTOCOL, Subtest};
use nix::poll::PollFlags;
use rustls::pki_types::ServerName;
use rustls::{ClientConnection, ServerConnection, StreamOwned};
use tungstenite::client::ClientRequestBuilder;
use tungstenite::{Message, WebSocket};

use super::socket::Carrier;
use super::*;
use crate::client::IpVersion;
use crate::clock;
use crate::error::{Error, PeerError};

type Ends = Arc<Mutex<Vec<SessionSummary>>>;

fn server(change: impl FnOnce(&mut Ndt7Options)) -> (Ndt7Server, Ends) {
    let ends = Ends::default();
    let sink = Arc::clone(&ends);
    let mut options = Ndt7Options {
        listen: vec![IpAddr::V4(Ipv4Addr::LOCALHOST)],
        on_end: Arc::new(move |summary| {
            sink.lock().unwrap_or_else(PoisonError::into_inner).push(summary.clone());
        }),
        ..Ndt7Options::default()
    };
    change(&mut options);
    (Ndt7Server::start(options).unwrap(), ends)
}

fn options(server: &Ndt7Server, subtest: Subtest) -> TestOptions {
    TestOptions {
        host: "127.0.0.1".to_owned(),
        port: server.addresses()[0].port(),
        target: format!("{}?client_name=tests", subtest.path()),
        subtest,
        trust: None,
        duration: Duration::from_millis(700),
        version: IpVersion::Any,
        timeout: Duration::from_secs(20),
        stop: Arc::new(AtomicBool::new(false)),
    }
}

fn until<T>(mut found: impl FnMut() -> Option<T>) -> T {
    let deadline = clock::now_ns() + 20_000_000_000;
    loop {
        if let Some(found) = found() {
            return found;
        }
        assert!(clock::now_ns() < deadline, "it never came");
        clock::sleep_until_ns(clock::now_ns() + 2_000_000);
    }
}

/// A certificate that vouches for this host, and its key.
struct Vouched {
    chain: PathBuf,
    key: PathBuf,
    _directory: tempfile::TempDir,
}

fn vouched() -> Vouched {
    let made = rcgen::generate_simple_self_signed(vec!["127.0.0.1".to_owned()]).unwrap();
    let directory = tempfile::tempdir().unwrap();
    let (chain, key) = (directory.path().join("chain.pem"), directory.path().join("key.pem"));
    std::fs::write(&chain, made.cert.pem()).unwrap();
    std::fs::write(&key, made.signing_key.serialize_pem()).unwrap();
    std::fs::set_permissions(&key, Permissions::from_mode(0o640)).unwrap();
    Vouched { chain, key, _directory: directory }
}

fn end(ends: &Ends) -> SessionSummary {
    until(|| ends.lock().unwrap().pop())
}

/// Both tests, as both sides count them.
fn both_ways(server: &Ndt7Server, ends: &Ends, trust: Option<&Trust>) {
    for subtest in [Subtest::Download, Subtest::Upload] {
        let mut ticks = 0;
        let wanted = TestOptions {
            trust: trust.cloned(),
            // The server tells what it counts every 625 ms at the latest, and a busy machine later
            // than that.
            duration: Duration::from_secs(2),
            ..options(server, subtest)
        };
        let began_ns = clock::now_ns();
        let finished = run(&wanted, &mut |_| ticks += 1).unwrap_or_else(|error| panic!("{subtest:?}: {error}"));
        // A client whose good-bye has not been read within its timeout goes: the server is that
        // busy with what came before.
        let took_ns = clock::now_ns() - began_ns;
        let abandoned = subtest == Subtest::Upload && took_ns >= 2_000_000_000 + client::ENDING_NS;
        let summary = end(ends);
        assert_eq!(summary.subtest, Some(subtest));
        assert!(
            summary.end == SessionEnd::Complete || abandoned && summary.end == SessionEnd::Vanished,
            "{summary:?} after {took_ns} ns"
        );
        assert!(finished.octets > 0 && finished.elapsed > Duration::ZERO, "{finished:?}");
        assert!(ticks >= 1 && ticks == finished.ticks.len(), "{finished:?}");
        assert!(finished.received_bps() > Some(0), "{finished:?}");
        let theirs = finished.theirs.as_ref().expect("servers tell what they measure");
        assert_eq!((theirs.test, theirs.origin.as_deref()), (Some(subtest), Some("server")));
        assert!(theirs.tcp_info.is_some_and(|tcp| tcp.rtt > Some(0)), "{theirs:?}");
        match subtest {
            // What the client had not read when it closed the server had sent all the same.
            Subtest::Download => assert!(summary.octets >= finished.octets, "{summary:?} {finished:?}"),
            Subtest::Upload => {
                assert!(summary.octets <= finished.octets && summary.octets > 0, "{summary:?} {finished:?}");
                let incoming = theirs.app_info.unwrap().num_bytes;
                assert!(u64::try_from(incoming).unwrap() <= finished.octets);
            }
        }
    }
}

#[test]
fn both_tests_run_over_tcp() {
    let (server, ends) = server(|_| {});
    both_ways(&server, &ends, None);
    assert_eq!(server.sessions(), 0);
}

#[test]
fn both_tests_run_over_tls_with_a_certificate_that_is_believed() {
    let Vouched { chain, key, .. } = &vouched();
    let identity = Identity::read(chain, key).unwrap();
    let (server, ends) = server(|options| options.identity = Some(identity));
    both_ways(&server, &ends, Some(&Trust::read(chain).unwrap()));
    // Nobody else vouches for it.
    let doubting = TestOptions { trust: Some(Trust::public()), ..options(&server, Subtest::Download) };
    let refused = run(&doubting, &mut |_| {});
    assert!(matches!(refused, Err(Error::Peer(PeerError::Protocol { .. }))), "{refused:?}");
    assert!(!matches!(end(&ends).end, SessionEnd::Complete));
    for (chain, key) in [(key, key), (chain, chain)] {
        assert!(matches!(Identity::read(chain, key), Err(TlsError::Nothing { .. })));
    }
    for mode in [0o644, 0o604, 0o660] {
        std::fs::set_permissions(key, Permissions::from_mode(mode)).unwrap();
        assert!(matches!(Identity::read(chain, key), Err(TlsError::Open { mode: found, .. }) if found == mode));
    }
    assert!(matches!(Trust::read(std::path::Path::new("/nowhere")), Err(TlsError::Read { .. })));
}

/// A word of the server in the middle of a write that waits for room once was taken for the end of
/// the connection.
#[test]
fn a_word_while_a_write_waits_for_room_ends_nothing() {
    let Vouched { chain, key, .. } = &vouched();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (remote, _) = listener.accept().unwrap();
    let handle = near.try_clone().unwrap();
    for stream in [&near, &remote] {
        stream.set_nonblocking(true).unwrap();
    }
    let trust = Trust::read(chain).unwrap();
    let tls = ClientConnection::new(Arc::clone(&trust.0), ServerName::try_from("127.0.0.1").unwrap()).unwrap();
    let mut near = Carrier::Client(Box::new(StreamOwned::new(tls, near)));
    let tls = ServerConnection::new(Arc::clone(&Identity::read(chain, key).unwrap().0)).unwrap();
    let mut remote = StreamOwned::new(tls, remote);
    let Carrier::Client(shaking) = &mut near else { unreachable!() };
    until(|| {
        let _ = (shaking.conn.complete_io(&mut shaking.sock), remote.conn.complete_io(&mut remote.sock));
        (!shaking.conn.is_handshaking() && !remote.conn.is_handshaking()).then_some(())
    });
    let octets = vec![7; 100_000];
    let mut written = 0;
    let blocked = until(|| match near.write(&octets) {
        Ok(0) => panic!("nothing was taken after {written} octets"),
        Ok(count) => {
            written += count;
            None
        }
        Err(error) => Some(error.kind()),
    });
    assert_eq!(blocked, ErrorKind::WouldBlock);
    for round in 0..8 {
        remote.write_all(b"word").unwrap();
        remote.flush().unwrap();
        socket::wait(&handle, PollFlags::POLLIN, clock::now_ns() + 20_000_000_000);
        match near.write(&octets) {
            Ok(count) => assert!(count > 0, "round {round}"),
            Err(error) => assert_eq!(error.kind(), ErrorKind::WouldBlock, "round {round}"),
        }
        let mut word = [0; 4];
        near.read_exact(&mut word).unwrap();
        assert_eq!(&word, b"word");
    }
    // What has left in part is not said to have left.
    let mut room = vec![0; 10_000];
    until(|| {
        let _ = remote.read(&mut room);
        let flushed = near.flush();
        let Carrier::Client(stream) = &near else { unreachable!() };
        let waits = stream.conn.wants_write();
        assert!(flushed.is_err() || !waits, "something waits after a flush");
        (!waits).then_some(())
    });
}

/// Sends a request by hand; the answer's first line.
fn request(server: &Ndt7Server, text: &str) -> String {
    let mut stream = TcpStream::connect(server.addresses()[0]).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    stream.write_all(text.as_bytes()).unwrap();
    let mut answer = Vec::new();
    // Whether the close is hard does not matter.
    let _ = stream.read_to_end(&mut answer);
    String::from_utf8_lossy(&answer).lines().next().unwrap_or("").to_owned()
}

#[test]
fn requests_for_something_else_are_refused() {
    let (server, ends) = server(|_| {});
    let upgrade = |path: &str, protocol: &str| {
        format!(
            "GET {path} HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
             Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: DOdm+5/Cm3WwvhfcAlhJoQ==\r\n{protocol}\r\n"
        )
    };
    let named = format!("Sec-WebSocket-Protocol: {SUBPROTOCOL}\r\n");
    for (text, status) in [
        (upgrade("/ndt/v7/download", ""), "400"),
        (upgrade("/ndt/v7/download", "Sec-WebSocket-Protocol: other\r\n"), "400"),
        (upgrade("/ndt/v7/sideways", &named), "404"),
        (upgrade("/ndt/v7/upload?a=1&a=2", &named), "400"),
        (upgrade(&format!("/ndt/v7/upload?{}", "a".repeat(4_097)), &named), "400"),
        ("GET /ndt/v7/download HTTP/1.1\r\nHost: h\r\n\r\n".to_owned(), "400"),
        ("\u{16}\u{3}\u{1}nonsense\r\n\r\n".to_owned(), "400"),
    ] {
        let answer = request(&server, &text);
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{text:.60}: {answer}");
        assert!(!matches!(end(&ends).end, SessionEnd::Complete));
    }
    // A request that never ends.
    let endless = format!("GET /ndt/v7/download HTTP/1.1\r\nX: {}", "x".repeat(70_000));
    request(&server, &endless);
    assert!(matches!(end(&ends).end, SessionEnd::Refused(_)));
}

/// A client that speaks WebSocket and nothing else.
fn by_hand(server: &Ndt7Server, subtest: Subtest) -> WebSocket<TcpStream> {
    let stream = TcpStream::connect(server.addresses()[0]).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    stream.set_write_timeout(Some(Duration::from_secs(10))).unwrap();
    let uri = format!("ws://127.0.0.1{}", subtest.path()).parse().unwrap();
    let request = ClientRequestBuilder::new(uri).with_sub_protocol(SUBPROTOCOL);
    let (socket, response) = tungstenite::client(request, stream).unwrap();
    assert_eq!(response.headers()["Sec-WebSocket-Protocol"], SUBPROTOCOL);
    socket
}

#[test]
fn a_server_keeps_to_the_specification() {
    let (server, ends) = server(|_| {});
    let mut socket = by_hand(&server, Subtest::Download);
    let (mut texts, mut pings, mut lengths, mut first) = (0u32, 0u32, Vec::new(), None);
    let began = clock::now_ns();
    while clock::now_ns() - began < 1_500_000_000 {
        match socket.read().unwrap() {
            Message::Binary(octets) => {
                if lengths.last() != Some(&octets.len()) {
                    lengths.push(octets.len());
                }
            }
            Message::Text(text) => {
                let said = Measurement::parse(text.as_str()).expect("it is one");
                first.get_or_insert_with(|| said.connection_info.clone());
                assert_eq!((said.origin.as_deref(), said.test), (Some("server"), Some(Subtest::Download)));
                texts += 1;
            }
            Message::Ping(_) => pings += 1,
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(lengths[0], FIRST_OCTETS);
    assert!(lengths.windows(2).all(|pair| pair[1] == 2 * pair[0]), "{lengths:?}");
    assert!(*lengths.last().unwrap() <= 1 << 20);
    // Four a second on average, at most ten.
    assert!((1..=20).contains(&texts) && (1..=20).contains(&pings), "{texts} {pings}");
    assert!(first.flatten().is_some_and(|ends| !ends.uuid.is_empty()), "the first says whose connection it is");
    socket.close(None).unwrap();
    while socket.read().is_ok() {}
    assert_eq!(end(&ends).end, SessionEnd::Complete);
}

#[test]
fn what_goes_the_wrong_way_or_too_often_ends_the_test() {
    let (server, ends) = server(|_| {});
    let mut socket = by_hand(&server, Subtest::Download);
    socket.send(Message::Binary(vec![0; 100].into())).unwrap();
    while socket.read().is_ok() {}
    assert!(matches!(end(&ends).end, SessionEnd::Refused(_)));
    let mut socket = by_hand(&server, Subtest::Upload);
    // Fails as soon as the server has had enough.
    while socket.send(Message::Text("{}".into())).is_ok() {}
    assert!(matches!(end(&ends).end, SessionEnd::Refused(_)));
    // A message longer than any, announced and never sent.
    let mut socket = by_hand(&server, Subtest::Upload);
    let head = [0x82, 0xff, 0, 0, 0, 0, 0x01, 0, 0, 1, 1, 2, 3, 4];
    socket.get_mut().write_all(&head).unwrap();
    while socket.read().is_ok() {}
    assert!(matches!(end(&ends).end, SessionEnd::Refused(_)));
    assert!(run(&options(&server, Subtest::Upload), &mut |_| {}).is_ok());
}

#[test]
fn who_goes_away_or_says_nothing_holds_no_place() {
    let (server, ends) = server(|options| {
        options.limits.half_open = 8;
        options.limits.sessions_per_address = 2;
    });
    let silent: Vec<_> = (0..40).map(|_| TcpStream::connect(server.addresses()[0]).unwrap()).collect();
    // Two that read nothing, and one too many.
    let slow: Vec<_> = (0..2).map(|_| by_hand(&server, Subtest::Download)).collect();
    let refused = run(&options(&server, Subtest::Download), &mut |_| {});
    assert!(
        matches!(&refused, Err(Error::Peer(PeerError::Refused { reason, .. })) if reason.contains("503")),
        "{refused:?}"
    );
    let gone = clock::now_ns();
    drop(slow);
    for _ in 0..2 {
        assert!(matches!(end(&ends).end, SessionEnd::Vanished | SessionEnd::Refused(_)));
    }
    assert!(clock::now_ns() - gone < 8_000_000_000, "it took too long to notice");
    assert!(run(&options(&server, Subtest::Download), &mut |_| {}).is_ok());
    drop(silent);
}

#[test]
fn a_server_that_ends_or_is_none_is_said_so() {
    let (server, _) = server(|_| {});
    let mut long = options(&server, Subtest::Upload);
    long.duration = Duration::from_secs(9);
    let port = long.port;
    std::thread::scope(|scope| {
        let running = scope.spawn(|| run(&long, &mut |_| {}));
        until(|| (server.sessions() == 1).then_some(()));
        clock::sleep_until_ns(clock::now_ns() + 100_000_000);
        drop(server);
        // What was measured until then is a result, and an incomplete one.
        match running.join().unwrap() {
            Ok(finished) => assert!(!finished.complete),
            Err(error) => assert!(matches!(error, Error::Peer(PeerError::Closed { .. })), "{error}"),
        }
    });
    let mut nobody = long.clone();
    nobody.port = port;
    let refused = run(&nobody, &mut |_| {});
    assert!(matches!(refused, Err(Error::Peer(PeerError::NoNdt7 { .. }))), "{refused:?}");
}
