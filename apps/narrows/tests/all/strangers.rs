//! Servers that speak something else, stop in the middle, or refuse.

#![expect(clippy::disallowed_methods, reason = "a program under test runs in real time, and so do its deadlines")]

use std::io::Write;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

use narrows_wire::{RefusalCode, ServerMessage};

use crate::common::{ProgramResult, Running, client};
use crate::refusals::run_client;

/// A listener that answers every connection with `answer`, and keeps it open if so asked.
fn hostile(answer: impl Fn(&mut TcpStream) + Send + 'static) -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
    let port = listener.local_addr().expect("it is bound").port();
    thread::spawn(move || {
        while let Ok((mut stream, _)) = listener.accept() {
            answer(&mut stream);
        }
    });
    port
}

/// Sends, and holds the line until the client leaves.
fn says(octets: Vec<u8>) -> impl Fn(&mut TcpStream) + Send + 'static {
    move |stream| {
        // The client may have left already.
        let _ = stream.write_all(&octets);
        let _ = std::io::copy(stream, &mut std::io::sink());
    }
}

/// Sends, and hangs up.
fn says_and_leaves(octets: Vec<u8>) -> impl Fn(&mut TcpStream) + Send + 'static {
    move |stream| {
        // As above.
        let _ = stream.write_all(&octets);
    }
}

fn frame(length: u32, kind: u8, body: &[u8]) -> Vec<u8> {
    let mut frame = length.to_be_bytes().to_vec();
    frame.push(kind);
    frame.extend_from_slice(body);
    frame
}

#[track_caller]
fn meets(port: u16, code: i32, words: &[&str]) {
    is_met(&run_client("test", port, &["--json"]), code, words);
}

#[track_caller]
fn is_met(ended: &ProgramResult, code: i32, words: &[&str]) {
    ended.refused(code, words);
    assert!(ended.took < Duration::from_secs(30), "{ended:?}");
}

#[test]
fn servers_that_speak_something_else() {
    for octets in [
        b"HTTP/1.1 400 Bad Request\r\n\r\n".to_vec(),
        b"SSH-2.0-OpenSSH_9.2\r\n".to_vec(),
        frame(u32::MAX, 0, b"{}"),
        frame(2, 9, b"{}"),
        frame(2, 0, b"{}"),
        frame(7, 0, b"\"alive\""),
        frame(16, 1, &[0; 16]),
        frame(5, 0, b"[[[[["),
        frame(3, 0, &[0xff, 0xfe, 0x00]),
    ] {
        meets(hostile(says(octets)), 6, &["protocol"]);
    }
}

#[test]
fn servers_that_stop_in_the_middle() {
    let welcome = ServerMessage::Welcome {
        version: narrows_wire::VERSION,
        nonce: narrows_wire::Nonce::new([1; 16]),
        auth: narrows_wire::Auth::None,
    }
    .frame();
    let half = welcome[..welcome.len() / 2].to_vec();
    let mut waiting = Vec::new();
    for octets in [Vec::new(), frame(4000, 0, b"{\"welcome\""), half, welcome] {
        meets(hostile(says_and_leaves(octets.clone())), 3, &["closed"]);
        waiting.push(Running::start(&mut client("test", hostile(says(octets)), &["--json"])));
    }
    for running in waiting {
        is_met(&running.end(), 3, &["no answer"]);
    }
}

#[test]
fn a_server_that_dribbles() {
    let port = hostile(|stream| {
        let endless = frame(4000, 0, &[b' '; 4000]);
        for octet in endless {
            if stream.write_all(&[octet]).is_err() {
                return;
            }
            thread::sleep(Duration::from_millis(50));
        }
    });
    meets(port, 3, &["no answer"]);
}

#[test]
fn refusals_during_the_handshake() {
    for (code, exit) in [
        (RefusalCode::Version, 6),
        (RefusalCode::Key, 4),
        (RefusalCode::Full, 4),
        (RefusalCode::Protocol, 6),
        (RefusalCode::Expired, 4),
    ] {
        let refused = ServerMessage::Refused { code, id: None, text: "for this reason".to_owned() };
        let words: &[&str] = if code == RefusalCode::Key { &["key"] } else { &["for this reason"] };
        meets(hostile(says(refused.frame())), exit, words);
    }
}
