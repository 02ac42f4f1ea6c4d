//! A server on loopback, and a client made of bare sockets.

mod client;
mod fleet;
mod hostile;
mod traffic;
mod transfers;

use std::net::Ipv6Addr;
use std::time::Duration;

use narrows_wire::{ClientMessage, Nonce, Psk, RefusalCode, ServerMessage, SlotKind};

use super::*;
use client::Client;

pub(super) fn host() -> narrows_wire::HostFacts {
    narrows_wire::HostFacts {
        send_cost_ns: 1000,
        receive_cost_ns: 1000,
        clock_resolution_ns: 1,
        stamp_error_ns: 1000,
        stamp_source: narrows_wire::StampSource::Kernel,
        min_gap_ns: 2000,
        max_send_rate_bps: None,
        interface_rate_bps: None,
        virtual_interface: true,
    }
}

fn start(change: impl FnOnce(&mut ServeOptions)) -> Running {
    let mut options = ServeOptions::loopback(host());
    change(&mut options);
    Running::start(options).unwrap()
}

/// Waits for what must come soon; `false` if it does not.
fn soon(mut holds: impl FnMut() -> bool) -> bool {
    let deadline = crate::clock::now_ns() + 3_000_000_000;
    while crate::clock::now_ns() < deadline {
        if holds() {
            return true;
        }
        crate::clock::sleep_until_ns(crate::clock::now_ns() + 5_000_000);
    }
    false
}

fn key(text: &str) -> Psk {
    Psk::from_file_content(text.as_bytes()).unwrap()
}

fn refusal(message: &ServerMessage) -> RefusalCode {
    match message {
        ServerMessage::Refused { code, text, .. } => {
            assert!(!text.is_empty());
            *code
        }
        other => panic!("not refused: {other:?}"),
    }
}

#[test]
fn a_session_opens_on_both_versions_and_ends_with_its_connection() {
    let server = start(|options| options.listen.push(Ipv6Addr::LOCALHOST.into()));
    assert_eq!(server.addresses().len(), 2);
    assert_eq!(server.addresses()[0].port(), server.addresses()[1].port());
    for address in server.addresses() {
        let client = Client::enter(*address, None).unwrap();
        assert_eq!(client.host, host());
        assert!(client.limits.max_load_rate_bps > 0);
        assert_eq!(server.sessions(), 1);
        drop(client);
        assert!(soon(|| server.sessions() == 0));
    }
    server.stop().unwrap();
}

#[test]
fn keys() {
    let server = start(|options| options.psk = Some(key("the right key, long enough")));
    let address = server.addresses()[0];
    let right = key("the right key, long enough");
    assert!(Client::enter(address, Some(&right)).is_ok());
    let wrong = key("the wrong key, long enough");
    assert_eq!(refusal(&Client::enter(address, Some(&wrong)).unwrap_err()), RefusalCode::Key);
    // A client that has no key and goes on regardless.
    let mut rude = Client::dial(address);
    rude.hello();
    assert!(matches!(rude.hear(), ServerMessage::Welcome { auth: narrows_wire::Auth::Psk, .. }));
    rude.say(&ClientMessage::slot(SlotKind::Load));
    assert_eq!(refusal(&rude.hear()), RefusalCode::Protocol);
    assert!(rude.is_closed());
}

/// A client that speaks nothing that we do is told who must upgrade.
#[test]
fn a_version_that_was_unrecovered_is_reported_so() {
    let server = start(|_| ());
    let mut client = Client::dial(server.addresses()[0]);
    client.say(&ClientMessage::Hello {
        version: narrows_wire::OLDEST_VERSION - 1,
        nonce: Nonce::new([0; 16]),
        key_name: None,
    });
    let refused = client.hear();
    assert_eq!(refusal(&refused), RefusalCode::Version);
    let ServerMessage::Refused { text, .. } = refused else {
        panic!("refused");
    };
    assert!(text.contains("upgrade narrows where the client runs"), "{text}");
    assert!(client.is_closed());
}

/// A client of version 1 takes no field that it does not know: it hears exactly what servers of
/// version 1 said.
#[test]
fn an_older_client_hears_nothing_new() {
    let server = start(|_| ());
    let mut client = Client::dial(server.addresses()[0]);
    client.say_text(r#"{"hello":{"version":1,"nonce":"05050505050505050505050505050505"}}"#);
    let fields = |value: &serde_json::Value| {
        let mut names: Vec<String> = value.as_object().unwrap().keys().cloned().collect();
        names.sort_unstable();
        names.join(" ")
    };
    let welcome = client.hear_value();
    assert_eq!(fields(&welcome["welcome"]), "auth nonce version");
    assert_eq!(welcome["welcome"]["version"], 1);
    let session = client.hear_value();
    let session = &session["session"];
    assert_eq!(fields(session), "host limits proof session token");
    assert_eq!(
        fields(&session["limits"]),
        "light_burst_octets light_rate_bps max_duration_ns max_load_rate_bps max_octets max_streams max_train_packets transfers"
    );
    assert_eq!(
        fields(&session["host"]),
        "clock_resolution_ns interface_rate_bps max_send_rate_bps min_gap_ns receive_cost_ns send_cost_ns stamp_error_ns stamp_source virtual_interface"
    );
    client.take_slot(SlotKind::Light);
}

/// A newer one is answered in our version, and its fields of which we know nothing change nothing.
#[test]
fn a_newer_client_is_answered_in_our_version() {
    let server = start(|_| ());
    let mut client = Client::dial(server.addresses()[0]);
    client.say_text(r#"{"hello":{"version":9,"nonce":"05050505050505050505050505050505","colour":{"deep":[1,{}]}}}"#);
    assert!(matches!(client.hear(), ServerMessage::Welcome { version, .. } if version == narrows_wire::VERSION));
    assert!(matches!(client.hear(), ServerMessage::Session { .. }));
    client.say_text(r#"{"slot":{"kind":"light","mood":"good"}}"#);
    assert_eq!(client.hear(), ServerMessage::GrantedScheduling { kind: SlotKind::Light });
    // A message of which we know nothing has no place in a session of our version.
    client.say_text(r#""sing""#);
    assert_eq!(refusal(&client.hear()), RefusalCode::Protocol);
}

/// The server says how its host is set up; the second time, what was counted in between. Answers
/// are at least a tenth of a second apart.
#[test]
fn the_host_is_reported_to_whoever_asks() {
    let server = start(|_| ());
    let mut client = Client::enter(server.addresses()[0], None).unwrap();
    let mut ask = || {
        client.say(&ClientMessage::AskHost);
        match client.hear() {
            ServerMessage::HostReported(settings) => *settings,
            other => panic!("{other:?}"),
        }
    };
    let first = ask();
    assert_eq!(first.interface.as_deref(), Some("lo"));
    assert!(first.tcp_rmem_octets.unwrap()[2] > 0 && first.cpus.unwrap() > 0);
    assert!(first.congestion_controls.contains(&first.congestion_control.unwrap()));
    // Loopback is only software: nothing that a card does is told of it.
    assert_eq!(
        (first.send_offload, first.receive_offload, first.interface_bps, first.half_duplex),
        (None, None, None, None)
    );
    assert_eq!(first.counted, narrows_wire::SettingsCounted::default());
    let begun = crate::clock::now_ns();
    let second = ask();
    assert!(crate::clock::now_ns() - begun > 50_000_000, "no faster than ten a second");
    assert!(second.counted.fragments.is_some() && second.counted.buffer_drops.is_some());
    assert_eq!(second.interface, first.interface);
}

/// Not in the middle of a test, and one at a time.
#[test]
fn the_host_is_not_asked_at_any_time() {
    let server = start(|_| ());
    let mut client = Client::enter(server.addresses()[0], None).unwrap();
    client.say(&ClientMessage::AskHost);
    client.say(&ClientMessage::AskHost);
    let first = client.hear();
    assert!(matches!(first, ServerMessage::HostReported(_)), "{first:?}");
    // The second came either after the answer, or too early.
    match client.hear() {
        ServerMessage::HostReported(_) => {}
        early => assert_eq!(refusal(&early), RefusalCode::Protocol),
    }
}

#[test]
fn a_full_server_says_so() {
    let server = start(|options| options.limits.sessions = 1);
    let address = server.addresses()[0];
    let first = Client::enter(address, None).unwrap();
    assert_eq!(refusal(&Client::enter(address, None).unwrap_err()), RefusalCode::Full);
    drop(first);
    assert!(soon(|| server.sessions() == 0));
    assert!(Client::enter(address, None).is_ok());

    let server = start(|options| options.limits.sessions_per_address = 1);
    let _first = Client::enter(server.addresses()[0], None).unwrap();
    assert_eq!(refusal(&Client::enter(server.addresses()[0], None).unwrap_err()), RefusalCode::Full);
}

#[test]
fn the_load_slot_has_a_queue_and_everyone_knows_their_place() {
    let kind = SlotKind::Load;
    let server = start(|options| options.limits.queue = 2);
    let mut clients: Vec<_> = (0..4).map(|_| Client::enter(server.addresses()[0], None).unwrap()).collect();
    for (client, place) in clients.iter_mut().zip(0u32..) {
        client.say(&ClientMessage::slot(kind));
        match (place, client.hear()) {
            (0, ServerMessage::GrantedScheduling { kind: SlotKind::Load }) => {}
            (1..=2, ServerMessage::Queued { place: reported, .. }) => assert_eq!(reported, place),
            (3, refused) => assert_eq!(refusal(&refused), RefusalCode::Busy),
            (_, other) => panic!("{place}: {other:?}"),
        }
    }
    // A light test does not wait for loads.
    clients[3].say(&ClientMessage::slot(SlotKind::Light));
    assert_eq!(clients[3].hear(), ServerMessage::GrantedScheduling { kind: SlotKind::Light });
    // The holder is killed, the first in the queue gives up: the second gets it.
    clients.remove(0);
    assert_eq!(clients[0].hear(), ServerMessage::GrantedScheduling { kind });
    assert_eq!(clients[1].hear(), ServerMessage::Queued { kind, place: 1 });
    clients[0].say(&ClientMessage::Release { kind });
    assert_eq!(clients[0].hear(), ServerMessage::Released { kind });
    assert_eq!(clients[1].hear(), ServerMessage::GrantedScheduling { kind });
}

#[test]
fn many_clients_side_by_side_each_have_their_own_flows() {
    let server = start(|_| ());
    let address = server.addresses()[0];
    let threads: Vec<_> = (0..8)
        .map(|_| {
            thread::spawn(move || {
                let client = Client::enter(address, None).unwrap();
                let flows: Vec<_> = (0..4).map(|number| client.flow(number)).collect();
                for seq in 0..20 {
                    for socket in &flows {
                        let request = client.probe(narrows_wire::ProbeKind::EchoRequest { reply_octets: None }, 1, seq);
                        socket.send(&Client::datagram(&request, 200)).unwrap();
                        let mut octets = [0; 400];
                        // A repeated `Started` may still wait.
                        while socket.recv(&mut octets).unwrap() != 200 {}
                        let Ok(narrows_wire::Datagram::Probe(reply)) = narrows_wire::Datagram::parse(&octets[..200])
                        else {
                            panic!("no probe");
                        };
                        assert_eq!((reply.tag, reply.seq), (client.token.tag(), seq));
                    }
                }
            })
        })
        .collect();
    for thread in threads {
        thread.join().unwrap();
    }
    assert!(soon(|| server.sessions() == 0 && server.server.flows.load(Ordering::Relaxed) == 0));
}

#[test]
fn a_slot_held_for_nothing_is_taken_back() {
    let server = start(|options| options.limits.slot_idle_time = Duration::from_millis(200));
    let mut client = Client::enter(server.addresses()[0], None).unwrap();
    client.take_slot(SlotKind::Load);
    assert_eq!(refusal(&client.hear()), RefusalCode::Expired);
    assert!(client.is_closed());
    assert!(soon(|| server.sessions() == 0));
}

#[test]
fn the_server_ends_while_clients_are_there() {
    let server = start(|_| ());
    let mut client = Client::enter(server.addresses()[0], None).unwrap();
    server.stop().unwrap();
    assert!(client.is_closed());
}

#[test]
fn an_address_in_use_is_named() {
    let server = start(|_| ());
    let mut options = ServeOptions::loopback(host());
    options.port = server.addresses()[0].port();
    let error = Running::start(options).unwrap_err();
    assert!(error.to_string().contains(&server.addresses()[0].to_string()), "{error}");
}
