//! News as they come.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use socket2::{Domain, Socket, Type};

use crate::site::{Site, read};
use crate::year::now;

fn follow(site: &Site) -> BufReader<TcpStream> {
    let mut stream = site.connect();
    write!(stream, "GET /api/v1/stream HTTP/1.1\r\nHost: {}\r\n\r\n", site.address).expect("the server reads");
    let mut reader = BufReader::new(stream);
    until(&mut reader, "event: resync");
    reader
}

/// Reads lines until one begins like this, and returns it.
fn until(reader: &mut BufReader<TcpStream>, begin: &str) -> String {
    let mut line = String::new();
    // Lines that keep the connection alive come for ever.
    for _ in 0..100_000 {
        line.clear();
        assert!(reader.read_line(&mut line).expect("it goes on") > 0, "it ended before {begin}");
        if line.starts_with(begin) {
            return line;
        }
    }
    panic!("no line begins with {begin}; the last is {line}");
}

#[test]
fn news_reach_a_reader() {
    let site = Site::start();
    let mut reader = follow(&site);
    site.live.pulse("office", now(), Some(Duration::from_millis(18)));
    until(&mut reader, "event: pulse");
    let data = until(&mut reader, "data: ");
    assert_eq!(data.trim(), r#"data: {"at_ms":1795551840000,"round_trip_ns":18000000,"target":"office"}"#);
}

/// Twenty thousand pulses are more than sockets hold, so a reader that waits has missed some.
#[test]
fn a_laggard_is_told_to_ask_again() {
    let site = Site::start();
    let mut reader = follow(&site);
    let name = "office".repeat(200);
    for _ in 0..20_000 {
        site.live.pulse(&name, now(), None);
    }
    until(&mut reader, "event: resync");
}

/// Asks for the stream from another of the host's addresses, each of which has a rate of its own.
fn ask_from(site: &Site, last: u8) -> (String, BufReader<TcpStream>) {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).expect("a socket");
    socket.bind(&SocketAddr::from(([127, 0, 0, last], 0)).into()).expect("an address of this host");
    socket.connect(&site.address.into()).expect("the server listens");
    let mut stream = TcpStream::from(socket);
    write!(stream, "GET /api/v1/stream HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n", site.address)
        .expect("the server reads");
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line).expect("it answers");
    (line, reader)
}

#[test]
fn no_more_than_256_follow() {
    let site = Site::start();
    let readers: Vec<_> = (0..=255u8).map(|n| ask_from(&site, 1 + n / 16)).collect();
    assert!(readers.iter().all(|(status, _)| status.contains("200")));
    let (status, mut full) = ask_from(&site, 100);
    assert!(status.contains("503"), "{status}");
    assert!(read(&mut full).body.contains("256 readers"));
}

/// Two hundred that follow and never read, while forty megabytes of news come: the process grows by
/// what a connection may hold, and goes on for others.
#[test]
#[ignore = "lab: measures its own memory, so alone"]
fn readers_that_do_not_read_cost_little() {
    let site = Site::start();
    let slow: Vec<_> = (0..200u8).map(|n| ask_from(&site, 1 + n / 16).1).collect();
    let before = resident();
    let name = "office".repeat(330);
    for _ in 0..20_000 {
        site.live.pulse(&name, now(), None);
    }
    let (_, mut one) = ask_from(&site, 100);
    until(&mut one, "event: resync");
    site.live.pulse("office", now(), None);
    until(&mut one, "data: {\"at_ms\"");
    let grown = resident().saturating_sub(before);
    assert!(grown < 20_000_000, "200 readers cost {grown} octets");
    drop(slow);
}

/// What the kernel holds for a reader that does not read is bounded too: it gets the news of some
/// hundred kilobytes, not of megabytes.
#[test]
fn the_kernel_holds_little_for_a_reader() {
    let site = Site::start();
    let (_, mut slow) = ask_from(&site, 1);
    let name = "office".repeat(330);
    // A message each time that the one before is on its way to a reader who reads.
    let (_, mut quick) = ask_from(&site, 2);
    for _ in 0..2000 {
        site.live.pulse(&name, now(), None);
        until(&mut quick, "event: pulse");
    }
    drop((site, quick));
    let mut all = Vec::new();
    // The server ends the connection in the middle of what it holds.
    let _ = std::io::Read::read_to_end(&mut slow, &mut all);
    assert!((10_000..2_000_000).contains(&all.len()), "{} octets of 4 million", all.len());
}

/// Octets of this process that are in memory.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux tells");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("it has memory");
    1024 * line.trim().trim_end_matches(" kB").parse::<u64>().expect("a number")
}
