//! What the sink does with peers that do not keep to the protocol.

use std::io::{Read, Write};
use std::net::{TcpStream, UdpSocket};

use super::*;
use crate::packet::Header;

fn sink(limits: Limits) -> Sink {
    let options = SinkOptions { limits, ..SinkOptions::private(Ipv4Addr::LOCALHOST.into()) };
    Sink::start(options).unwrap()
}

fn hasty() -> Limits {
    Limits { first_line_time: Duration::from_millis(100), ..Limits::default() }
}

fn connected(sink: &Sink) -> TcpStream {
    let stream = TcpStream::connect(sink.addresses()[0]).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    stream
}

/// Says something, and returns the first line of the answer; empty if the sink closed without one.
fn answer(stream: &TcpStream, text: &[u8]) -> String {
    let mut stream = stream;
    stream.write_all(text).unwrap();
    let mut line = Vec::new();
    let mut octet = [0];
    while stream.read(&mut octet).is_ok_and(|read| read == 1) && octet[0] != b'\n' {
        line.push(octet[0]);
    }
    String::from_utf8(line).unwrap()
}

fn announcement(flows: usize) -> String {
    let flows = vec!["\"udp\""; flows].join(",");
    format!(
        "{{\"announce\":{{\"protocol\":\"narrows.traffic/1\",\"clock\":1,\"interval_ns\":1,\"flows\":[{flows}]}}}}\n"
    )
}

fn cookies(answer: &str) -> Vec<u32> {
    let answer: serde_json::Value = serde_json::from_str(answer).unwrap();
    serde_json::from_value(answer["accepted"]["cookies"].clone()).unwrap()
}

#[test]
fn nonsense_is_refused_in_words() {
    let sink = sink(hasty());
    for (text, word) in [
        ("hello\n", "narrows.traffic/1"),
        ("{}\n", "narrows.traffic/1"),
        ("{\"end\":{\"sent\":[]}}\n", "nothing was announced"),
        (&announcement(0), "1 to 1024 flows"),
        (&announcement(1025), "1 to 1024 flows"),
        (&announcement(1).replace("traffic/1", "traffic/2"), "narrows.traffic/1"),
        (&announcement(1).replace("udp", "sctp"), "narrows.traffic/1"),
        (&("[".repeat(60_000) + "\n"), "narrows.traffic/1"),
        (&"x".repeat(100_000), "too long"),
    ] {
        let said = answer(&connected(&sink), text.as_bytes());
        assert!(said.contains("refused") && said.contains(word), "{said}");
    }
    // Data for a session that there is not, silence, and a line without end: closed without a word.
    for text in ["{\"data\":{\"token\":7,\"flow\":0}}\n", "", "{\"announce\""] {
        assert_eq!(answer(&connected(&sink), text.as_bytes()), "", "{text}");
    }
    assert!(sink.stop().is_empty());
}

#[test]
fn sessions_and_flows_have_limits_and_make_room() {
    let sink = sink(Limits { sessions: 2, flows: 5, ..hasty() });
    let first = connected(&sink);
    assert_eq!(cookies(&answer(&first, announcement(3).as_bytes())).len(), 3);
    assert!(answer(&connected(&sink), announcement(3).as_bytes()).contains("busy"));
    let second = connected(&sink);
    assert!(answer(&second, announcement(2).as_bytes()).contains("accepted"));
    assert!(answer(&connected(&sink), announcement(1).as_bytes()).contains("busy"));
    drop(first);
    let give_up = clock::now_ns() + 5_000_000_000;
    while !answer(&connected(&sink), announcement(1).as_bytes()).contains("accepted") {
        assert!(clock::now_ns() < give_up);
    }
    let ended: Vec<SessionEnd> = sink.stop().iter().map(|report| report.ended).collect();
    assert!(ended.contains(&SessionEnd::BrokenOff) && ended.contains(&SessionEnd::SinkStopped), "{ended:?}");
}

#[test]
fn only_announced_packets_count_and_nothing_is_answered() {
    let sink = sink(hasty());
    let control = connected(&sink);
    let cookie = cookies(&answer(&control, announcement(1).as_bytes()))[0];
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.connect(sink.addresses()[0]).unwrap();
    let mut packet = [0; 40];
    for (cookie, number) in [(cookie ^ 1, 0), (cookie, 0), (cookie, u64::from(u32::MAX)), (cookie, 1), (cookie, 0)] {
        Header::new(cookie, number, clock::now_ns()).write(&mut packet);
        socket.send(&packet).unwrap();
    }
    for length in [0, 1, 11] {
        socket.send(&packet[..length]).unwrap();
    }
    let said = answer(&control, b"{\"end\":{\"sent\":[3]}}\n");
    let said: serde_json::Value = serde_json::from_str(&said).unwrap();
    let flow = &said["statistics"]["flows"][0];
    // A number just below zero is none.
    assert_eq!((&flow["octets"], &flow["lost"]), (&serde_json::json!(2 * 68), &serde_json::json!(1)), "{flow:#}");
    socket.set_nonblocking(true).unwrap();
    assert!(socket.recv(&mut packet).is_err(), "the sink sends nothing by UDP");
}

#[test]
fn an_end_of_the_wrong_length_ends_the_session() {
    let sink = sink(hasty());
    for end in ["{\"end\":{\"sent\":[1,2]}}\n", "{\"end\":{\"sent\":[-1]}}\n", "what\n"] {
        let control = connected(&sink);
        assert!(answer(&control, announcement(1).as_bytes()).contains("accepted"));
        assert_eq!(answer(&control, end.as_bytes()), "");
    }
    let ended: Vec<SessionEnd> = sink.stop().iter().map(|report| report.ended).collect();
    assert_eq!(ended, [SessionEnd::BrokenOff; 3]);
}

#[test]
fn a_session_ends_with_its_time() {
    let sink = sink(Limits { session_time: Duration::from_millis(50), ..hasty() });
    let control = connected(&sink);
    assert!(answer(&control, announcement(1).as_bytes()).contains("accepted"));
    assert!(answer(&control, b"").contains("statistics"));
    assert_eq!(sink.stop()[0].ended, SessionEnd::TimeLimit);
}
