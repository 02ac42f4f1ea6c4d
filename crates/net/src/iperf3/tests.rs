use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, TcpStream};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use narrows_wire::iperf3::{Cookie, Counters, Flow, Parameters, State, Transport, frame};

use super::*;
use crate::client::IpVersion;
use crate::clock;
use crate::error::{Error, PeerError};

type Ends = Arc<Mutex<Vec<SessionSummary>>>;

fn server(change: impl FnOnce(&mut Iperf3Options)) -> (Iperf3Server, Ends) {
    let ends = Ends::default();
    let sink = Arc::clone(&ends);
    let mut options = Iperf3Options {
        listen: vec![IpAddr::V4(Ipv4Addr::LOCALHOST)],
        port: 0,
        on_end: Arc::new(move |summary| {
            sink.lock().unwrap_or_else(PoisonError::into_inner).push(summary.clone());
        }),
        ..Iperf3Options::default()
    };
    change(&mut options);
    (Iperf3Server::start(options).unwrap(), ends)
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

fn options(server: &Iperf3Server, parameters: Parameters) -> TestOptions {
    TestOptions {
        parameters,
        duration: Duration::from_millis(200),
        omit: Duration::ZERO,
        interval: Duration::from_millis(80),
        port: server.addresses()[0].port(),
        version: IpVersion::Any,
        near: None,
        near_port: None,
        timeout: Duration::from_secs(10),
        stop: Arc::new(AtomicBool::new(false)),
    }
}

fn test(options: &TestOptions) -> Result<Finished, Error> {
    run("127.0.0.1", options, &mut |_| {}, &mut |_| {})
}

fn end(ends: &Ends) -> SessionSummary {
    until(|| ends.lock().unwrap().pop())
}

#[test]
fn every_kind_of_test_counts_the_same_on_both_sides() {
    let (server, ends) = server(|_| {});
    let udp = |counters| Parameters {
        transport: Transport::Udp(counters),
        block_octets: 1_000,
        rate_bps: 4_000_000,
        ..Parameters::default()
    };
    for base in [Parameters::default(), udp(Counters::Bits32), udp(Counters::Bits64)] {
        for flow in [Flow::Forward, Flow::Reverse, Flow::Both] {
            for streams in [1, 4] {
                let parameters = Parameters { flow, streams, ..base.clone() };
                let what = format!("{parameters:?}");
                let finished = test(&options(&server, parameters)).unwrap_or_else(|error| panic!("{what}: {error}"));
                assert_eq!(finished.ours.streams.len(), finished.theirs.streams.len(), "{what}");
                assert!(finished.parts.len() >= 2, "{what}");
                let summary = end(&ends);
                assert_eq!(summary.end, SessionEnd::Complete, "{what}");
                let mut sums = (0, 0);
                for connected in &finished.outline.streams {
                    let ours = finished.ours.stream(connected.id).unwrap();
                    let theirs = finished.theirs.stream(connected.id).unwrap();
                    assert!(ours.octets > 0, "{what}");
                    let (sent, received) = if connected.sends { (ours, theirs) } else { (theirs, ours) };
                    let lost = received.lost * u64::from(base.block_octets);
                    assert!(received.octets <= sent.octets && sent.octets <= received.octets + lost.max(1), "{what}");
                    let side = if connected.sends { &mut sums.1 } else { &mut sums.0 };
                    *side += theirs.octets;
                }
                assert_eq!((summary.sent_octets, summary.received_octets), sums, "{what}");
            }
        }
    }
    assert_eq!(server.sessions(), 0);
}

#[test]
fn an_amount_is_sent_to_the_octet_and_a_rate_is_held() {
    let (server, ends) = server(|_| {});
    let parameters = Parameters { octets: 3_000_001, streams: 3, ..Parameters::default() };
    let finished = test(&options(&server, parameters)).unwrap();
    let summary = end(&ends);
    assert_eq!(summary.received_octets, 3_000_001);
    assert_eq!(finished.ours.streams.iter().map(|stream| stream.octets).sum::<u64>(), 3_000_001);
    let parameters = Parameters {
        blocks: 37,
        transport: Transport::Udp(Counters::Bits64),
        block_octets: 500,
        rate_bps: 10_000_000,
        ..Parameters::default()
    };
    let finished = test(&options(&server, parameters)).unwrap();
    assert_eq!(finished.ours.streams[0].datagrams, 37);
    let (_, spacing) = &finished.spacing[0];
    assert_eq!(spacing.planned(), Duration::from_micros(400));
    assert!(spacing.quantile(0.5).unwrap() > Duration::ZERO && spacing.most() >= spacing.quantile(0.5).unwrap() / 2);
    // What the network carries is bounded by the rate from above, however late this host is.
    let parameters = Parameters { rate_bps: 8_000_000, block_octets: 10_000, zero_copy: true, ..Parameters::default() };
    let finished = test(&options(&server, parameters)).unwrap();
    let octets = finished.ours.streams[0].octets;
    let most = 1_000_000.0 * finished.span.1.as_secs_f64() + 10_001.0;
    assert!(octets > 20_000 && (octets as f64) < most, "{octets} {most}");
}

#[test]
fn omitted_octets_do_not_count() {
    let (server, _) = server(|_| {});
    let mut wanted = options(&server, Parameters { rate_bps: 8_000_000, block_octets: 1_000, ..Parameters::default() });
    wanted.omit = Duration::from_secs(1);
    let finished = test(&wanted).unwrap();
    assert!(finished.parts.iter().any(|part| part.omitted) && finished.parts.iter().any(|part| !part.omitted));
    let counted = finished.ours.streams[0].octets;
    let all = finished.parts.last().unwrap().streams[0].to.octets;
    assert!(counted * 2 < all && counted > 0, "{counted} of {all}");
}

#[test]
fn several_tests_at_once_and_no_more_than_may() {
    let (server, ends) = server(|options| options.limits.sessions = 3);
    let port = server.addresses()[0].port();
    let parameters = |transport| Parameters {
        transport,
        flow: Flow::Both,
        streams: 2,
        rate_bps: 2_000_000,
        block_octets: 1_000,
        ..Parameters::default()
    };
    let kinds = [Transport::Tcp, Transport::Udp(Counters::Bits32), Transport::Udp(Counters::Bits64)];
    let mut three: Vec<_> = kinds.map(|kind| options(&server, parameters(kind))).into();
    for one in &mut three {
        one.duration = Duration::from_millis(1_500);
    }
    std::thread::scope(|scope| {
        let running: Vec<_> = three.iter().map(|one| scope.spawn(|| test(one))).collect();
        until(|| (server.sessions() == 3).then_some(()));
        let refused = test(&options(&server, Parameters::default()));
        assert!(matches!(refused, Err(Error::Peer(PeerError::Refused { .. }))), "{refused:?}");
        for one in running {
            let finished = one.join().unwrap().unwrap();
            assert_eq!(finished.theirs.streams.len(), 4);
            assert!(finished.theirs.streams.iter().all(|stream| stream.octets > 0));
        }
    });
    assert_eq!(port, server.addresses()[0].port());
    for _ in 0..3 {
        assert_eq!(end(&ends).end, SessionEnd::Complete);
    }
}

#[test]
fn limits_are_reported_and_held() {
    let (server, ends) = server(|options| {
        options.limits.rate = Some(narrows_units::BitRate::from_mbps(10));
        options.limits.duration = Duration::from_secs(5);
        options.limits.streams = 4;
        options.limits.octets = Some(300_000);
    });
    let refused = |parameters: Parameters, change: &dyn Fn(&mut TestOptions)| {
        let mut options = options(&server, parameters);
        change(&mut options);
        let error = test(&options).unwrap_err().to_string();
        (error, end(&ends).end)
    };
    let same = |_: &mut TestOptions| {};
    let fast = Parameters { rate_bps: 6_000_000, streams: 2, ..Parameters::default() };
    assert!(refused(fast, &same).0.contains("(iperf3 error 27)"));
    let (error, why) = refused(Parameters::default(), &|options| {
        options.duration = Duration::from_secs(6);
    });
    assert!(error.contains("(iperf3 error 5)") && matches!(why, SessionEnd::Refused(_)), "{error}");
    let wide = Parameters { streams: 5, ..Parameters::default() };
    assert!(refused(wide, &same).0.contains("(iperf3 error 6)"));
    // More octets than a test may have.
    let (_, why) = refused(Parameters { flow: Flow::Reverse, ..Parameters::default() }, &|options| {
        options.duration = Duration::from_secs(4);
    });
    assert_eq!(why, SessionEnd::Limit);
}

/// A client by hand: cookie, parameters, and one data connection that nobody reads.
fn by_hand(server: &Iperf3Server, parameters: &Parameters) -> (TcpStream, TcpStream) {
    let address = server.addresses()[0];
    let cookie = Cookie::new([9; 36]);
    let mut control = TcpStream::connect(address).unwrap();
    control.write_all(cookie.octets()).unwrap();
    let mut state = [0];
    control.read_exact(&mut state).unwrap();
    assert_eq!(state[0], State::ParameterExchange.octet());
    control.write_all(&frame(&parameters.to_json())).unwrap();
    control.read_exact(&mut state).unwrap();
    assert_eq!(state[0], State::CreateStreams.octet());
    let mut data = TcpStream::connect(address).unwrap();
    data.write_all(cookie.octets()).unwrap();
    let mut states = [0; 2];
    control.read_exact(&mut states).unwrap();
    assert_eq!(states, [1, 2]);
    (control, data)
}

#[test]
fn a_client_that_goes_away_stops_the_traffic() {
    let (server, ends) = server(|_| {});
    let reverse = Parameters { flow: Flow::Reverse, ..Parameters::default() };
    let (control, mut data) = by_hand(&server, &reverse);
    data.read_exact(&mut vec![0; 1 << 16]).unwrap();
    let gone = clock::now_ns();
    drop(control);
    // The data connection ends within a second, though this side still has it open.
    data.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    let mut room = vec![0; 1 << 20];
    while !matches!(data.read(&mut room), Ok(0) | Err(_)) {}
    assert_eq!(end(&ends).end, SessionEnd::Vanished);
    assert!(clock::now_ns() - gone < 8_000_000_000, "it took too long to notice");
    // Still serves.
    assert!(test(&options(&server, Parameters::default())).is_ok());
}

#[test]
fn nonsense_and_silence_leave_the_server_as_it_was() {
    let (server, ends) = server(|options| options.limits.half_open = 8);
    let address = server.addresses()[0];
    let silent: Vec<_> = (0..40).map(|_| TcpStream::connect(address).unwrap()).collect();
    let cookie = *Cookie::new([1; 36]).octets();
    let nonsense: [&[u8]; 5] = [
        &[0xff; 4],
        &[0, 0, 0, 2, b'[', b']'],
        &[0, 0, 0x21, 0],
        &[0, 0, 0, 4, b'n', b'u', b'l', b'l'],
        b"GET / HTTP/1.0\r\n\r\n",
    ];
    for octets in nonsense {
        let mut control = TcpStream::connect(address).unwrap();
        control.write_all(&cookie).unwrap();
        control.read_exact(&mut [0]).unwrap();
        control.write_all(octets).unwrap();
        let mut answer = Vec::new();
        control.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
        // Whether the close is hard does not matter.
        let _ = control.read_to_end(&mut answer);
        assert_eq!(answer.first(), Some(&State::ServerError.octet()), "{octets:?}");
        assert!(matches!(end(&ends).end, SessionEnd::Refused(_)));
    }
    let mut wrong = TcpStream::connect(address).unwrap();
    wrong.write_all(&[0; 37]).unwrap();
    assert!(test(&options(&server, Parameters::default())).is_ok());
    drop(silent);
}

#[test]
fn nobody_there_is_said_so() {
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let (server, _) = server(|_| {});
    let mut options = options(&server, Parameters::default());
    options.port = port;
    assert!(matches!(test(&options), Err(Error::Peer(PeerError::NoIperf3 { .. }))));
}

#[test]
fn a_server_that_ends_ends_its_tests() {
    let (server, _) = server(|_| {});
    let mut long = options(&server, Parameters::default());
    long.duration = Duration::from_secs(30);
    std::thread::scope(|scope| {
        let (began, begins) = std::sync::mpsc::channel();
        let long = &long;
        let running = scope.spawn(move || run("127.0.0.1", long, &mut |_| began.send(()).unwrap(), &mut |_| {}));
        begins.recv().unwrap();
        drop(server);
        let ended = running.join().unwrap();
        assert!(matches!(ended, Err(Error::Peer(PeerError::Closed { .. }))), "{ended:?}");
    });
}

#[cfg(feature = "tls")]
#[test]
fn a_server_with_a_gate_lets_in_whom_it_knows() {
    let (public, gate) = token::tests::pair();
    let (server, ends) = server(|options| options.gate = Some(Arc::new(gate)));
    let unix_seconds = u64::try_from(clock::wall_ns() / 1_000_000_000).unwrap();
    let with = |password: &str, padding| Parameters {
        auth_token: Some(public.seal(&token::tests::alice(password, unix_seconds), padding).unwrap()),
        ..Parameters::default()
    };
    for padding in [Padding::Pkcs1, Padding::Oaep] {
        let parameters = with("open sesame", padding);
        assert!(test(&options(&server, parameters.clone())).is_ok(), "{padding:?}");
        assert_eq!(end(&ends).end, SessionEnd::Complete);
        // Somebody heard it.
        let again = test(&options(&server, parameters));
        assert!(matches!(again, Err(Error::Peer(PeerError::NotAdmitted { .. }))), "{again:?}");
        assert!(matches!(end(&ends).end, SessionEnd::Refused(_)));
    }
    for parameters in [Parameters::default(), with("open barley", Padding::Oaep)] {
        let began_ns = clock::now_ns();
        let refused = test(&options(&server, parameters));
        assert!(matches!(refused, Err(Error::Peer(PeerError::NotAdmitted { .. }))), "{refused:?}");
        assert!(clock::now_ns() - began_ns >= clock::nanos(REFUSED_AFTER), "it told too early");
        assert!(matches!(end(&ends).end, SessionEnd::Refused(_)));
    }
}
