//! Over loopback: measurements that end early, and peers that are not there.

use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use narrows_net::client::{ConnectOptions, SocketWorld};
use narrows_net::error::{Error, PathError, PeerError};
use narrows_probe::World;
use narrows_probe::probes::{Load, Probe, Then, Train, TrainId, Transfer};
use narrows_wire::Direction;

use crate::loopback::{bulk, gap, options, segment, server, train, world};

#[test]
fn the_stop_flag_ends_what_is_under_way() {
    let server = server();
    for direction in [Direction::Forward, Direction::Reverse] {
        let long_load = Load { duration: Duration::from_secs(20), ..segment(12, Then::Finish) };
        let long_transfer = Transfer { duration: Duration::from_secs(20), ..bulk(1, Then::Finish) };
        let mut probes = vec![Probe::Load(long_load), Probe::Transfer(long_transfer)];
        if direction == Direction::Forward {
            // In reverse the remote host sends the whole train: it cannot be told to stop in the
            // middle.
            probes.push(Probe::Train(Train::uniform(TrainId(1), 20, 100, Duration::from_secs(1))));
        }
        for probe in probes {
            let stop = Arc::new(AtomicBool::new(false));
            let mut asked = options(&server, direction);
            asked.stop = Arc::clone(&stop);
            let mut world = SocketWorld::connect("127.0.0.1", asked).unwrap();
            let begun = world.now();
            let timer = std::thread::spawn(move || {
                narrows_net::clock::sleep_until_ns(narrows_net::clock::now_ns() + 300_000_000);
                stop.store(true, Ordering::Relaxed);
            });
            world.send(probe.clone()).unwrap();
            let lasted = world.now().since(begun);
            assert!(lasted < Duration::from_secs(15), "{direction:?} {probe:?} {lasted:?}");
            assert!(world.stop_requested());
            timer.join().unwrap();
        }
    }
}

/// Hands every connection to `port` on to another port, and no datagram.
fn tcp_only(to: u16) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for near in listener.incoming() {
            let near = near.unwrap();
            let remote = TcpStream::connect(("127.0.0.1", to)).unwrap();
            for (mut from, mut into) in [(near.try_clone().unwrap(), remote.try_clone().unwrap()), (remote, near)] {
                std::thread::spawn(move || std::io::copy(&mut from, &mut into));
            }
        }
    });
    port
}

#[test]
fn a_firewall_that_lets_only_tcp_pass_is_named() {
    let server = server();
    let mut asked = options(&server, Direction::Forward);
    asked.port = tcp_only(asked.port);
    asked.timeout = Duration::from_secs(1);
    let begun = narrows_net::clock::now_ns();
    let error = SocketWorld::connect("127.0.0.1", asked).unwrap_err();
    assert!(matches!(error, Error::Path(PathError::UdpBlocked { .. })), "{error}");
    assert!(narrows_net::clock::now_ns() - begun < 30_000_000_000);
}

#[test]
fn nobody_there_is_reported_at_once() {
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let asked = ConnectOptions { port, ..ConnectOptions::default() };
    let refused = SocketWorld::connect("127.0.0.1", asked).unwrap_err();
    assert!(matches!(refused, Error::Peer(PeerError::NotListening { .. })), "{refused}");
}

#[test]
fn a_listener_that_says_nothing_is_unrecovered() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let asked = ConnectOptions {
        port: silent.local_addr().unwrap().port(),
        timeout: Duration::from_millis(300),
        ..ConnectOptions::default()
    };
    let begun = narrows_net::clock::now_ns();
    let error = SocketWorld::connect("127.0.0.1", asked).unwrap_err();
    assert!(matches!(error, Error::Path(PathError::Silent { .. })), "{error}");
    assert!(narrows_net::clock::now_ns() - begun < 30_000_000_000);
}

#[test]
fn a_server_that_goes_away_ends_the_measurement() {
    let server = server();
    let mut world = world(&server, Direction::Forward);
    assert_eq!(train(&mut world, &Train::uniform(TrainId(1), 10, 100, gap(100))).lost(), 0);
    let timer = std::thread::spawn(move || {
        narrows_net::clock::sleep_until_ns(narrows_net::clock::now_ns() + 300_000_000);
        server.stop().unwrap();
    });
    let begun = world.now();
    let long = Load { duration: Duration::from_secs(20), ..segment(12, Then::Finish) };
    let error = world.send(Probe::Load(long)).unwrap_err();
    assert!(matches!(error, Error::Peer(PeerError::Closed { .. }) | Error::Path(PathError::Silent { .. })), "{error}");
    assert!(world.now().since(begun) < Duration::from_secs(15));
    timer.join().unwrap();
    drop(world);
}
