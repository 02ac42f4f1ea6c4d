use std::net::TcpListener;
use std::thread::JoinHandle;

use super::*;

/// A server of another age: for each connection in turn, what it answers to the hello, and what it
/// heard.
fn server(answers: Vec<fn(&str) -> String>) -> (u16, JoinHandle<Vec<String>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let serving = std::thread::spawn(move || {
        let mut incoming = Vec::new();
        for answer in answers {
            let (mut stream, _) = listener.accept().unwrap();
            let mut reader = FrameReader::new(FrameCaps::HANDSHAKE);
            let mut octets = [0; 512];
            let hello = loop {
                if let Some(frame) = reader.next_frame().unwrap() {
                    break String::from_utf8(frame.body).unwrap();
                }
                let count = stream.read(&mut octets).unwrap();
                assert!(count > 0, "the client left without a hello");
                reader.push(&octets[..count]);
            };
            for words in answer(&hello).lines() {
                let frame = narrows_wire::encode_frame(FrameKind::Json, words.as_bytes()).unwrap();
                stream.write_all(&frame).unwrap();
            }
            incoming.push(hello);
        }
        incoming
    });
    (port, serving)
}

fn call(port: u16) -> Result<Opened, Error> {
    call_as(port, None)
}

fn call_as(port: u16, key_name: Option<&str>) -> Result<Opened, Error> {
    let psk = key_name.map(|_| Psk::from_file_content(&[7; 32]).unwrap());
    let key_name = key_name.map(|name| name.parse().unwrap());
    open("127.0.0.1", &ConnectOptions { port, psk, key_name, ..ConnectOptions::default() })
}

/// What servers of version 1 say, octet for octet.
const SESSION: &str = r#"{"session":{"session":7,"token":"01010101010101010101010101010101","proof":null,"limits":{"max_duration_ns":60000000000,"max_load_rate_bps":1000,"transfers":true,"max_octets":1000,"max_streams":8,"max_train_packets":65536,"light_rate_bps":20000000,"light_burst_octets":4000000},"host":{"send_cost_ns":1000,"receive_cost_ns":900,"clock_resolution_ns":20,"stamp_error_ns":4000,"stamp_source":"kernel","min_gap_ns":2000,"max_send_rate_bps":null,"interface_rate_bps":null,"virtual_interface":true}}}"#;
const WELCOME: &str = r#"{"welcome":{"version":1,"nonce":"02020202020202020202020202020202","auth":"none"}}"#;
const REFUSED: &str = r#"{"refused":{"code":"version","id":null,"text":"this server speaks version 1, not 2"}}"#;

/// A server of version 1 refuses whatever is newer, and gets a hello that it understands, with
/// nothing else in it.
#[test]
fn an_older_server_is_spoken_to_in_its_version() {
    let (port, serving) = server(vec![|_| REFUSED.to_owned(), |_| format!("{WELCOME}\n{SESSION}")]);
    let opened = call(port).unwrap();
    assert_eq!((opened.version, opened.session), (1, 7));
    let incoming = serving.join().unwrap();
    assert!(incoming[0].starts_with(r#"{"hello":{"version":4,"nonce":""#), "{}", incoming[0]);
    assert!(incoming[1].starts_with(r#"{"hello":{"version":1,"nonce":""#), "{}", incoming[1]);
    assert_eq!(incoming[1].len(), r#"{"hello":{"version":1,"nonce":""}}"#.len() + 32);
}

/// A newer one answers in our version; fields of which we know nothing change nothing.
#[test]
fn a_newer_server_answers_in_our_version() {
    let (port, serving) = server(vec![|_| {
        let welcome = WELCOME.replace(r#""version":1"#, r#""version":4,"colour":["blue",{"deep":{}}]"#);
        let session = SESSION.replace(r#""host":{"#, r#""mood":"good","host":{"smell":9,"#);
        format!("{welcome}\n{session}")
    }]);
    let opened = call(port).unwrap();
    assert_eq!((opened.version, opened.host.send_cost_ns), (4, 1000));
    serving.join().unwrap();
}

/// One that has abandoned what we speak, or answers in what we did not offer: who must upgrade is
/// said.
#[test]
fn a_server_of_no_common_version_is_left() {
    let words = |_: &str| {
        r#"{"refused":{"code":"version","id":null,"text":"this server speaks versions 8 to 9, the client none above 4: upgrade narrows where the client runs"}}"#
            .to_owned()
    };
    let (port, serving) = server(vec![words, words]);
    let Err(error) = call(port) else { panic!("it was let in") };
    let said = error.to_string();
    assert!(said.contains("versions 8 to 9") && said.contains("this narrows speaks 1 to 4"), "{said}");
    assert!(matches!(error, Error::Peer(PeerError::Version { .. })));
    serving.join().unwrap();

    let welcome = |_: &str| WELCOME.replace(r#""version":1"#, r#""version":5"#);
    let (port, serving) = server(vec![welcome, welcome]);
    let Err(error) = call(port) else { panic!("it was let in") };
    assert!(error.to_string().contains("it answers in version 5"), "{error}");
    serving.join().unwrap();
}

/// A server that knows no names of keys would take the key for its own: it gets no proof, and the
/// caller learns which side is to be upgraded.
#[test]
fn an_older_server_gets_no_proof_by_a_named_key() {
    let words = |_: &str| {
        r#"{"refused":{"code":"protocol","id":null,"text":"not a message: unknown field `key_name`, expected `version` or `nonce`"}}"#
            .to_owned()
    };
    let welcome = |_: &str| WELCOME.replace(r#""version":1"#, r#""version":3"#).replace("none", "psk");
    for (answer, version) in [(welcome as fn(&str) -> String, 3), (words, 1)] {
        let (port, serving) = server(vec![answer]);
        let Err(error) = call_as(port, Some("near@2951")) else { panic!("it was let in") };
        let said = error.to_string();
        assert!(said.contains(&format!("answers in version {version}")), "{said}");
        assert!(said.contains("upgrade narrows where the server runs"), "{said}");
        assert!(matches!(error, Error::Peer(PeerError::Version { .. })));
        let heard = serving.join().unwrap();
        assert!(heard[0].ends_with(r#","key_name":"near@2951"}}"#), "{}", heard[0]);
    }
}
