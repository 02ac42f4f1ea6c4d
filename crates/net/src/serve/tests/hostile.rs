//! Peers that do not mean well.

use std::io::Write;
use std::net::UdpSocket;
use std::time::Duration;

use narrows_wire::{ClientMessage, Handshake, ProbeKind, RefusalCode, ServerMessage, SlotKind};

use super::client::{Client, NONCE};
use super::{refusal, soon, start};
use crate::clock;

#[test]
fn malformed_and_disordered_messages_end_the_connection_only() {
    let server = start(|_| ());
    let address = server.addresses()[0];
    let hello = ClientMessage::Hello { version: narrows_wire::VERSION, nonce: NONCE, key_name: None }.frame();
    let mut wild: Vec<Vec<u8>> = vec![
        b"GET / HTTP/1.1\r\n\r\n".to_vec(),
        vec![0xFF; 100],
        [&[0, 0, 0, 5, 9][..], b"hello"].concat(),
        [&[0, 0, 0, 5, 0][..], b"hello"].concat(),
        [&[0, 1, 0, 0, 0][..], &[b'['; 4096]].concat(),
        ClientMessage::Alive.frame(),
    ];
    wild.push([hello.clone(), ClientMessage::slot(SlotKind::Load).frame(), hello.clone()].concat());
    wild.push([hello.clone(), ClientMessage::LoadEnd { id: 1 }.frame()].concat());
    for octets in wild {
        let mut client = Client::dial(address);
        client.tcp.write_all(&octets).unwrap();
        assert!(client.is_closed());
    }
    assert!(soon(|| server.sessions() == 0));
    assert!(Client::enter(address, None).is_ok());
}

/// A session's requests with one octet changed, or cut short: whatever the server makes of them, it
/// lets go of the connection and attends to the next.
#[test]
fn mutated_requests_do_not_hold_the_server_up() {
    let server = start(|_| ());
    let address = server.addresses()[0];
    let requests = [
        ClientMessage::slot(SlotKind::Light).frame(),
        super::traffic::expect(1, 10).frame(),
        ClientMessage::TrainSent { id: 1, packets: 10 }.frame(),
        super::traffic::load(2, narrows_wire::Direction::Reverse, 1).frame(),
        ClientMessage::SendTrain { id: 3, flow: 0 }.frame(),
        narrows_wire::Rows {
            id: 3,
            table: narrows_wire::Table::Plan(vec![
                narrows_wire::PlanRow {
                    gap_ns: u64::MAX,
                    ip_octets: 1,
                    hop_limit: 255
                };
                20
            ]),
        }
        .frame()
        .unwrap(),
        super::transfers::tuned(4).frame(),
        ClientMessage::Release { kind: SlotKind::Light }.frame(),
    ]
    .concat();
    let mut random = narrows_stat::SplitMix64::new(1);
    let mut draw = |below: usize| usize::try_from(random.next_u64() >> 33).unwrap() % below;
    for _ in 0..150 {
        let mut octets = requests.clone();
        let at = draw(octets.len());
        if draw(2) == 0 {
            octets.truncate(at);
        } else {
            octets[at] = u8::try_from(draw(256)).unwrap();
        }
        let mut client = Client::enter(address, None).unwrap();
        // The server may hang up before it has read all.
        let _ = client.tcp.write_all(&octets);
        let _ = client.tcp.shutdown(std::net::Shutdown::Write);
        assert!(client.is_closed());
        drop(client);
        assert!(soon(|| server.sessions() == 0));
    }
}

#[test]
fn the_last_word_is_last_received() {
    let server = start(|_| ());
    let mut client = Client::enter(server.addresses()[0], None).unwrap();
    client.say(&ClientMessage::LoadEnd { id: 1 });
    assert_eq!(refusal(&client.hear()), RefusalCode::Protocol);
    assert!(client.is_closed());
}

#[test]
fn every_truncation_of_a_hello_is_cut_off_in_time() {
    let server = start(|options| options.limits.handshake_time = Duration::from_millis(300));
    let address = server.addresses()[0];
    let hello = ClientMessage::Hello { version: narrows_wire::VERSION, nonce: NONCE, key_name: None }.frame();
    let begun = clock::now_ns();
    let mut clients: Vec<_> = (0..hello.len())
        .map(|cut| {
            let mut client = Client::dial(address);
            client.tcp.write_all(&hello[..cut]).unwrap();
            client
        })
        .collect();
    for client in &mut clients {
        assert!(client.is_closed());
    }
    assert!(clock::now_ns() - begun < 30_000_000_000);
    assert!(Client::enter(address, None).is_ok());
}

#[test]
fn a_trickled_hello_does_not_outlive_the_handshake_time() {
    let server = start(|options| options.limits.handshake_time = Duration::from_millis(300));
    let mut client = Client::dial(server.addresses()[0]);
    let begun = clock::now_ns();
    let trickle = ClientMessage::Hello { version: narrows_wire::VERSION, nonce: NONCE, key_name: None }.frame();
    for octet in trickle.iter().cycle() {
        clock::sleep_until_ns(clock::now_ns() + 20_000_000);
        if client.tcp.write_all(&[*octet]).is_err() {
            break;
        }
        assert!(clock::now_ns() - begun < 30_000_000_000, "still open");
    }
}

#[test]
fn half_open_connections_do_not_keep_others_out_for_long() {
    let server = start(|options| {
        options.limits.handshakes = 10;
        options.limits.handshake_time = Duration::from_millis(300);
    });
    let address = server.addresses()[0];
    let _idle: Vec<_> = (0..40).map(|_| Client::dial(address)).collect();
    assert!(soon(|| {
        let mut client = Client::dial(address);
        let frame = ClientMessage::Hello { version: narrows_wire::VERSION, nonce: NONCE, key_name: None }.frame();
        client.tcp.write_all(&frame).is_ok() && !client.is_closed_at_once()
    }));
}

impl Client {
    /// The server hangs up instead of answering.
    fn is_closed_at_once(&mut self) -> bool {
        use std::io::Read;
        !matches!(self.tcp.read(&mut [0; 64]), Ok(count) if count > 0)
    }
}

#[test]
fn a_load_faster_than_allowed_is_broken_off() {
    let server = start(|options| options.limits.session.max_load_rate_bps = 100_000);
    let mut client = Client::enter(server.addresses()[0], None).unwrap();
    let socket = client.flow(0);
    client.take_slot(SlotKind::Load);
    let ClientMessage::LoadBegin(mut plan) = super::traffic::load(1, narrows_wire::Direction::Forward, 1) else {
        panic!("no load");
    };
    client.say(&ClientMessage::LoadBegin(plan.clone()));
    assert_eq!(refusal(&client.hear()), RefusalCode::Limit);
    // Announced slower than it is.
    plan.max_rate_bps = Some(100_000);
    client.say(&ClientMessage::LoadBegin(plan));
    assert_eq!(client.hear(), ServerMessage::LoadReady { id: 1 });
    for seq in 0..100 {
        socket.send(&Client::datagram(&client.probe(ProbeKind::Load, 1, seq), 1472)).unwrap();
    }
    let ended = loop {
        match client.hear() {
            ServerMessage::LoadStatus(_) => {}
            other => break other,
        }
    };
    assert_eq!(refusal(&ended), RefusalCode::Limit);
}

#[test]
fn a_flood_of_requests_ends_the_session() {
    let server = start(|_| ());
    let mut client = Client::enter(server.addresses()[0], None).unwrap();
    let _flow = client.flow(0);
    client.take_slot(SlotKind::Load);
    client.say(&super::traffic::load(1, narrows_wire::Direction::Reverse, 1));
    assert_eq!(client.hear(), ServerMessage::LoadReady { id: 1 });
    let segment = ClientMessage::LoadSegment(narrows_wire::LoadSegment {
        id: 1,
        rate_bps: Some(1_000_000),
        burst: 1,
        duration_ns: 0,
        continues: false,
    });
    let flood = segment.frame().repeat(5_000);
    // The server may hang up before it has read all.
    let _ = client.tcp.write_all(&flood);
    assert!(client.is_closed());
    assert!(soon(|| server.sessions() == 0));
}

/// Octets that come back on a socket within a while.
fn answered(socket: &UdpSocket) -> usize {
    let mut total = 0;
    while let Ok(count) = socket.recv(&mut [0; 2048]) {
        total += count;
    }
    total
}

#[test]
fn before_validation_no_address_gets_more_than_it_sent() {
    let server = start(|_| ());
    let client = Client::enter(server.addresses()[0], None).unwrap();
    let (session, nonce) = (client.session, NONCE);
    let socket = client.socket();
    let Handshake::Cookie { cookie, .. } = Client::ask(&socket, Handshake::Hello { session, nonce }) else {
        panic!("no cookie");
    };
    let start = |token, cookie| Handshake::Start { session, nonce, cookie, token, flow: 0 };
    let wrong_token = narrows_wire::Token::new([0; 16]);
    let wrong_cookie = narrows_wire::Cookie::new([0; 16]);
    let remote_flow = Handshake::Start { session, nonce, cookie, token: client.token, flow: u16::MAX };
    let echo = ProbeKind::EchoRequest { reply_octets: None };
    let silent: Vec<Vec<u8>> = vec![
        vec![],
        vec![0; 1000],
        Handshake::Hello { session, nonce }.encode()[..63].to_vec(),
        Handshake::Hello { session: !session, nonce }.encode(),
        start(wrong_token, cookie).encode(),
        start(client.token, wrong_cookie).encode(),
        remote_flow.encode(),
        Client::datagram(&client.probe(echo, 1, 0), 1000),
        Client::datagram(&client.probe(ProbeKind::Load, 1, 0), 1000),
    ];
    // The right token and cookie from another port than the cookie was made for.
    let other = client.socket();
    other.send(&start(client.token, cookie).encode()).unwrap();
    assert_eq!(answered(&other), 0);
    for octets in &silent {
        socket.send(octets).unwrap();
    }
    assert_eq!(answered(&socket), 0);
    let hello = Handshake::Hello { session, nonce }.encode();
    socket.send(&hello).unwrap();
    let back = answered(&socket);
    assert!(back > 0 && back <= hello.len(), "{back}");
}

#[test]
fn a_validated_flow_echoes_only_its_own_and_never_more_than_it_got() {
    let server = start(|_| ());
    let client = Client::enter(server.addresses()[0], None).unwrap();
    let socket = client.flow(0);
    let mut foreign = client.probe(ProbeKind::EchoRequest { reply_octets: None }, 1, 0);
    foreign.tag = narrows_wire::Tag::new([0; 8]);
    socket.send(&Client::datagram(&foreign, 500)).unwrap();
    let greedy = ProbeKind::EchoRequest { reply_octets: Some(501) };
    socket.send(&Client::datagram(&client.probe(greedy, 1, 0), 500)).unwrap();
    assert_eq!(answered(&socket), 0);
    let modest = ProbeKind::EchoRequest { reply_octets: Some(40) };
    socket.send(&Client::datagram(&client.probe(modest, 1, 0), 500)).unwrap();
    assert_eq!(answered(&socket), 40);
}

#[test]
fn echoes_beyond_the_light_limits_are_not_answered() {
    let server = start(|options| {
        options.limits.session.light_burst_octets = 8_000;
        options.limits.session.light_rate_bps = 8;
    });
    let client = Client::enter(server.addresses()[0], None).unwrap();
    let socket = client.flow(0);
    let echo = ProbeKind::EchoRequest { reply_octets: None };
    for seq in 0..20 {
        socket.send(&Client::datagram(&client.probe(echo, 1, seq), 972)).unwrap();
    }
    // Ten of 1000 IP octets fit 8000 and a quarter more.
    assert_eq!(answered(&socket), 10 * 972);
}

#[test]
fn unpermitted_tests_are_refused_and_the_session_goes_on() {
    let server = start(|options| options.limits.session.max_load_rate_bps = 0);
    let mut client = Client::enter(server.addresses()[0], None).unwrap();
    let load = |id| super::traffic::load(id, narrows_wire::Direction::Reverse, 1);
    client.say(&load(1));
    assert_eq!(refusal(&client.hear()), RefusalCode::Limit);
    client.say(&ClientMessage::SendTrain { id: 2, flow: 0 });
    assert_eq!(refusal(&client.hear()), RefusalCode::Limit);
    client.take_slot(SlotKind::Light);
    client.say(&super::traffic::expect(3, 10));
    let refused = client.hear();
    assert!(
        matches!(&refused, ServerMessage::Refused { id: Some(3), text, .. } if text.contains("flow")),
        "{refused:?}"
    );
}
