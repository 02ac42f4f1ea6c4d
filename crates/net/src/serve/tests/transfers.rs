//! Transfers and their ends.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::thread;
use std::time::Duration;

use narrows_wire::{
    ClientMessage, DataHello, Direction, RefusalCode, ServerMessage, SlotKind, TransferPlan, TransferSegment,
};

use super::client::Client;
use super::{refusal, soon, start};
use crate::clock;

fn transfer(id: u32, direction: Direction, max_streams: u16) -> ClientMessage {
    ClientMessage::TransferBegin(TransferPlan {
        id,
        direction,
        max_streams,
        max_duration_ns: 10_000_000_000,
        congestion: Some("cubic".to_owned()),
        window_octets: None,
        pacing_bps: Some(80_000_000),
        tuning: None,
    })
}

fn data(client: &Client, transfer: u32, stream: u16) -> TcpStream {
    let mut tcp = TcpStream::connect(client.address).unwrap();
    tcp.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    let hello = DataHello { token: client.token, transfer, stream };
    tcp.write_all(&hello.encode()).unwrap();
    tcp
}

#[test]
fn a_forward_transfer_counts_every_octet() {
    let server = start(|_| ());
    let mut client = Client::enter(server.addresses()[0], None).unwrap();
    client.take_slot(SlotKind::Load);
    client.say(&transfer(1, Direction::Forward, 2));
    assert_eq!(client.hear(), ServerMessage::TransferReady { id: 1 });
    // Neither another transfer's connection nor another session's is let in.
    let mut unmatched_reply = data(&client, 2, 0);
    assert!(!matches!(unmatched_reply.read(&mut [0; 1]), Ok(count) if count > 0));
    let mut streams = [data(&client, 1, 0), data(&client, 1, 1)];
    // For longer than a silence may last, nothing but data comes.
    for _ in 0..25 {
        for stream in &mut streams {
            stream.write_all(&vec![7; 40_000]).unwrap();
        }
        clock::sleep_until_ns(clock::now_ns() + 50_000_000);
    }
    drop(streams);
    client.say(&ClientMessage::TransferEnd { id: 1 });
    let mut last = None;
    loop {
        match client.hear() {
            ServerMessage::TransferReceived(received) => last = Some(received),
            ServerMessage::TransferDone { id: 1 } => break,
            other => panic!("{other:?}"),
        }
        client.say(&ClientMessage::Alive);
    }
    let last = last.unwrap();
    assert_eq!(last.octets, 2_000_000);
    let (first_ns, last_ns) = last.span_ns.unwrap();
    assert!(last_ns > first_ns);
}

#[test]
fn a_reverse_transfer_is_sampled_and_ends_when_reported() {
    let server = start(|_| ());
    let mut client = Client::enter(server.addresses()[0], None).unwrap();
    client.take_slot(SlotKind::Load);
    client.say(&transfer(3, Direction::Reverse, 2));
    assert_eq!(client.hear(), ServerMessage::TransferReady { id: 3 });
    let readers: Vec<_> = (0..2)
        .map(|stream| {
            let mut tcp = data(&client, 3, stream);
            thread::spawn(move || {
                let (mut total, mut block) = (0, vec![0; 65_536]);
                while let Ok(count @ 1..) = tcp.read(&mut block) {
                    total += count as u64;
                }
                total
            })
        })
        .collect();
    client.say(&ClientMessage::TransferSegment(TransferSegment {
        id: 3,
        streams: 2,
        duration_ns: 400_000_000,
        sample_every_ns: 50_000_000,
        continues: false,
    }));
    let mut acked = [Vec::new(), Vec::new()];
    let sent = loop {
        client.say(&ClientMessage::Alive);
        match client.hear() {
            ServerMessage::TransferSamples { stream, samples, .. } => {
                acked[usize::from(stream)].extend(samples.iter().map(|sample| (sample.at_ns, sample.acked_octets)));
            }
            ServerMessage::TransferSent(sent) => break sent,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(sent.streams.len(), 2);
    for samples in &acked {
        assert!(samples.len() >= 3, "{samples:?}");
        assert!(samples.is_sorted());
        assert!(samples.last().unwrap().0 - samples[0].0 >= 350_000_000);
    }
    let received: u64 = readers.into_iter().map(|reader| reader.join().unwrap()).sum();
    let counted: u64 = acked.iter().map(|samples| samples.last().unwrap().1).sum();
    assert!(received >= counted && counted > 0, "{received} {counted}");
    client.say(&ClientMessage::TransferEnd { id: 3 });
    assert_eq!(client.hear(), ServerMessage::TransferDone { id: 3 });
}

#[test]
fn a_client_killed_in_a_transfer_leaves_nothing() {
    for direction in [Direction::Forward, Direction::Reverse] {
        let server = start(|_| ());
        let mut client = Client::enter(server.addresses()[0], None).unwrap();
        client.take_slot(SlotKind::Load);
        client.say(&transfer(1, direction, 1));
        assert_eq!(client.hear(), ServerMessage::TransferReady { id: 1 });
        let mut bulk = data(&client, 1, 0);
        if direction == Direction::Reverse {
            client.say(&ClientMessage::TransferSegment(TransferSegment {
                id: 1,
                streams: 1,
                duration_ns: 5_000_000_000,
                sample_every_ns: 50_000_000,
                continues: true,
            }));
            bulk.read_exact(&mut [0; 1000]).unwrap();
        } else {
            bulk.write_all(&[0; 1000]).unwrap();
        }
        let begun = clock::now_ns();
        drop(client);
        // The data connection ends too: read its end or its reset.
        while matches!(bulk.read(&mut [0; 8192]), Ok(count) if count > 0) {}
        assert!(clock::now_ns() - begun < 4_500_000_000);
        assert!(soon(|| server.sessions() == 0));
        // The slot is free again.
        Client::enter(server.addresses()[0], None).unwrap().take_slot(SlotKind::Load);
    }
}

/// A reverse transfer that ends with its last octet, and with everything else that can be asked
/// for.
pub(super) fn tuned(id: u32) -> ClientMessage {
    ClientMessage::TransferBegin(TransferPlan {
        id,
        direction: Direction::Reverse,
        max_streams: 1,
        max_duration_ns: 5_000_000_000,
        congestion: None,
        window_octets: None,
        pacing_bps: Some(80_000_000),
        tuning: Some(narrows_wire::TransferTuning {
            payload_octets: Some(100_001),
            block_octets: Some(1_000),
            burst_blocks: Some(2),
            no_delay: true,
            zero_copy: true,
            traffic_class: 0xb8,
        }),
    })
}

/// An amount ends a reverse transfer, whose sockets stand as they were asked to.
#[test]
fn a_reverse_transfer_ends_with_its_last_octet() {
    let server = start(|_| ());
    let mut client = Client::enter(server.addresses()[0], None).unwrap();
    client.take_slot(SlotKind::Load);
    client.say(&tuned(4));
    assert_eq!(client.hear(), ServerMessage::TransferReady { id: 4 });
    let mut stream = data(&client, 4, 0);
    client.say(&ClientMessage::TransferSegment(TransferSegment {
        id: 4,
        streams: 1,
        duration_ns: 4_000_000_000,
        sample_every_ns: 10_000_000,
        continues: true,
    }));
    // All of it, and then the end, though the segment's time is not over and it was to continue.
    let mut octets = Vec::new();
    stream.read_to_end(&mut octets).unwrap();
    assert_eq!(octets.len(), 100_001);
    let sent = loop {
        match client.hear() {
            ServerMessage::TransferSent(sent) => break sent,
            ServerMessage::TransferSamples { .. } => {}
            other => panic!("{other:?}"),
        }
    };
    let stands = narrows_wire::SocketStands { traffic_class: 0xb8, no_delay: true };
    assert!(sent.spent && sent.streams.iter().all(|stream| stream.stands == Some(stands)), "{sent:?}");
    client.say(&ClientMessage::TransferEnd { id: 4 });
    assert_eq!(client.hear(), ServerMessage::TransferDone { id: 4 });
}

/// What a server does not allow is not begun: too much, or a mark of network control for a
/// stranger.
#[test]
fn tunings_have_bounds() {
    let server = start(|options| {
        options.limits.session.max_octets = 1_000_000;
        options.limits.session.max_load_rate_bps = 0;
    });
    let mut client = Client::enter(server.addresses()[0], None).unwrap();
    client.take_slot(SlotKind::Load);
    for (payload_octets, traffic_class, word) in [(Some(1_000_001), 0, "1000000"), (None, 48 << 2, "network control")] {
        let ClientMessage::TransferBegin(mut plan) = transfer(7, Direction::Reverse, 1) else {
            panic!("no transfer");
        };
        plan.tuning = Some(narrows_wire::TransferTuning {
            payload_octets,
            traffic_class,
            ..narrows_wire::TransferTuning::default()
        });
        client.say(&ClientMessage::TransferBegin(plan));
        let refused = client.hear();
        assert_eq!(refusal(&refused), RefusalCode::Limit);
        assert!(
            matches!(&refused, ServerMessage::Refused { id: Some(7), text, .. } if text.contains(word)),
            "{refused:?}"
        );
    }
}

/// Two sessions of one client hold the load slot together, if one shows the other's token; nobody
/// else does.
#[test]
fn the_load_slot_is_shared_by_who_knows_its_holder() {
    let kind = SlotKind::Load;
    let server = start(|_| ());
    let mut clients: Vec<_> = (0..3).map(|_| Client::enter(server.addresses()[0], None).unwrap()).collect();
    clients[0].take_slot(kind);
    let beside = |token| ClientMessage::Slot { kind, beside: Some(token), lease: None };
    let (holder, idle) = (clients[0].token, clients[2].token);
    for wrong in [narrows_wire::Token::new([0; 16]), idle] {
        clients[1].say(&beside(wrong));
        assert_eq!(refusal(&clients[1].hear()), RefusalCode::Limit);
    }
    clients[1].say(&beside(holder));
    assert_eq!(clients[1].hear(), ServerMessage::GrantedScheduling { kind });
    clients[2].say(&beside(holder));
    assert_eq!(refusal(&clients[2].hear()), RefusalCode::Limit);
    // Who waits, waits for both.
    clients[2].say(&ClientMessage::slot(kind));
    assert_eq!(clients[2].hear(), ServerMessage::Queued { kind, place: 1 });
    clients[0].say(&ClientMessage::Release { kind });
    assert_eq!(clients[0].hear(), ServerMessage::Released { kind });
    clients[1].say(&transfer(8, Direction::Forward, 1));
    assert_eq!(clients[1].hear(), ServerMessage::TransferReady { id: 8 });
    drop(clients.remove(1));
    assert_eq!(clients[1].hear(), ServerMessage::GrantedScheduling { kind });
}
