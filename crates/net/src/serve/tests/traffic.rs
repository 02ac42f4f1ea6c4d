//! Trains and loads, and their ends.

use std::io::Write;
use std::net::UdpSocket;
use std::thread;
use std::time::Duration;

use narrows_wire::{
    ClientMessage, Datagram, Direction, LoadPlan, LoadSegment, PlanRow, ProbeKind, RefusalCode, Rows, ServerMessage,
    SlotKind, StampSource, Table, TrainExpectation,
};

use super::client::Client;
use super::{refusal, soon, start};
use crate::clock;

pub(super) fn expect(id: u32, packets: u32) -> ClientMessage {
    ClientMessage::ExpectTrain(TrainExpectation {
        id,
        flow: 0,
        packets,
        ip_octets: u64::from(packets) * 1500,
        duration_ns: 1_000_000,
        quiet_ns: 300_000_000,
    })
}

pub(super) fn load(id: u32, direction: Direction, streams: u16) -> ClientMessage {
    ClientMessage::LoadBegin(LoadPlan {
        id,
        direction,
        streams,
        ip_octets: 1500,
        max_rate_bps: Some(50_000_000),
        max_duration_ns: 20_000_000_000,
        status_every_ns: 50_000_000,
        quiet_ns: 200_000_000,
        tuning: None,
    })
}

fn segment(id: u32, duration_ms: u64, continues: bool) -> ClientMessage {
    ClientMessage::LoadSegment(LoadSegment {
        id,
        rate_bps: Some(12_000_000),
        burst: 1,
        duration_ns: duration_ms * 1_000_000,
        continues,
    })
}

#[test]
fn a_forward_train_with_a_loss_and_a_repeat() {
    let server = start(|_| ());
    let mut client = Client::enter(server.addresses()[0], None).unwrap();
    let socket = client.flow(0);
    client.take_slot(SlotKind::Light);
    for id in 1..4 {
        client.say(&expect(id, 5));
        assert_eq!(client.hear(), ServerMessage::Armed { id });
        for seq in [0, 1, 3, 3, 2] {
            let probe = client.probe(ProbeKind::Train, id, seq);
            socket.send(&Client::datagram(&probe, 1472)).unwrap();
        }
        client.say(&ClientMessage::TrainSent { id, packets: 5 });
        let ServerMessage::TrainResult(result) = client.hear() else { panic!("no result") };
        assert_eq!((result.id, result.reordered, result.duplicates, result.local_drops), (id, 1, 1, 0));
        assert_eq!(result.stamps, StampSource::Kernel);
        let Table::Arrivals(rows) = client.hear_rows().table else { panic!("no arrivals") };
        let seqs: Vec<_> = rows.iter().map(|row| row.seq).collect();
        assert_eq!(seqs, [0, 1, 3, 2]);
        assert!(rows.iter().all(|row| row.ip_octets == 1500 && row.hop_limit == 64));
        assert!(rows.windows(2).all(|pair| pair[0].stamp_ns <= pair[1].stamp_ns));
    }
}

#[test]
fn an_echo_turns_at_once() {
    let server = start(|options| options.listen = vec![std::net::Ipv6Addr::LOCALHOST.into()]);
    let client = Client::enter(server.addresses()[0], None).unwrap();
    let socket = client.flow(0);
    for seq in 0..10 {
        let request = client.probe(ProbeKind::EchoRequest { reply_octets: None }, 9, seq);
        socket.send(&Client::datagram(&request, 100)).unwrap();
        let mut octets = [0; 2048];
        assert_eq!(socket.recv(&mut octets).unwrap(), 100);
        let Ok(Datagram::Probe(reply)) = Datagram::parse(&octets[..100]) else { panic!("no probe") };
        assert_eq!((reply.id, reply.seq, reply.stamp_ns), (9, seq, request.stamp_ns));
        let ProbeKind::EchoReply { turned_ns } = reply.kind else { panic!("no reply") };
        // One host, one clock; the kernel's stamps carry the error of the clocks' crossing.
        assert!(turned_ns > request.stamp_ns - 10_000_000 && turned_ns < clock::now_ns() + 10_000_000);
    }
}

#[test]
fn a_reverse_train_follows_its_plan() {
    let server = start(|_| ());
    let mut client = Client::enter(server.addresses()[0], None).unwrap();
    let socket = client.flow(0);
    client.take_slot(SlotKind::Light);
    let plan: Vec<_> =
        (0..8u16).map(|k| PlanRow { gap_ns: 2_000_000, ip_octets: 100 + 10 * k, hop_limit: 0 }).collect();
    client.say(&ClientMessage::SendTrain { id: 4, flow: 0 });
    let table = Table::Plan(plan);
    client.tcp.write_all(&Rows { id: 4, table }.frame().unwrap()).unwrap();
    let mut seen = Vec::new();
    while seen.len() < 8 {
        let mut octets = [0; 2048];
        let count = socket.recv(&mut octets).unwrap();
        let Ok(Datagram::Probe(probe)) = Datagram::parse(&octets[..count]) else { panic!("no probe") };
        if probe.kind == ProbeKind::Train {
            assert_eq!((probe.id, probe.tag), (4, client.token.tag()));
            assert_eq!(count + 28, 100 + 10 * probe.seq as usize);
            seen.push(probe.seq);
        }
    }
    assert_eq!(seen, [0, 1, 2, 3, 4, 5, 6, 7]);
    assert!(matches!(client.hear(), ServerMessage::TrainLeft { id: 4, send_failures: 0, .. }));
    let Table::Departures(rows) = client.hear_rows().table else { panic!("no departures") };
    assert_eq!(rows.len(), 8);
    let span = rows[7].stamp_ns - rows[0].stamp_ns;
    assert!((13_500_000..500_000_000).contains(&span), "{span}");
}

#[test]
fn a_forward_load_is_accounted_for() {
    let server = start(|_| ());
    let mut client = Client::enter(server.addresses()[0], None).unwrap();
    let flows = [client.flow(0), client.flow(1)];
    client.take_slot(SlotKind::Load);
    client.say(&load(6, Direction::Forward, 2));
    assert_eq!(client.hear(), ServerMessage::LoadReady { id: 6 });
    for seq in (0..100).filter(|seq| *seq != 50) {
        for socket in &flows {
            let probe = client.probe(ProbeKind::Load, 6, seq);
            socket.send(&Client::datagram(&probe, 1472)).unwrap();
        }
        if seq % 20 == 0 {
            client.say(&ClientMessage::Alive);
            clock::sleep_until_ns(clock::now_ns() + 20_000_000);
        }
    }
    client.say(&ClientMessage::LoadEnd { id: 6 });
    let (mut packets, mut octets, mut lost, mut statuses, mut last_ns) = (0, 0, 0, 0, None);
    loop {
        match client.hear() {
            ServerMessage::LoadStatus(status) => {
                packets += status.packets;
                octets += status.ip_octets;
                lost += status.lost;
                statuses += 1;
                assert!(last_ns.is_none_or(|last| last == status.from_ns), "intervals join");
                last_ns = Some(status.to_ns);
            }
            ServerMessage::LoadDone { id: 6 } => break,
            other => panic!("{other:?}"),
        }
        client.say(&ClientMessage::Alive);
    }
    assert_eq!((packets, octets, lost), (198, 198 * 1500, 2));
    assert!(statuses >= 3, "{statuses}");
    client.say(&ClientMessage::Release { kind: SlotKind::Load });
    assert_eq!(client.hear(), ServerMessage::Released { kind: SlotKind::Load });
}

/// Packets that come until none has come for 300 ms, and when the last one came.
fn drain(socket: &UdpSocket) -> (u64, i64) {
    socket.set_read_timeout(Some(Duration::from_millis(300))).unwrap();
    let (mut packets, mut last_ns) = (0, clock::now_ns());
    while socket.recv(&mut [0; 2048]).is_ok() {
        packets += 1;
        last_ns = clock::now_ns();
    }
    (packets, last_ns)
}

#[test]
fn a_reverse_load_in_segments() {
    let server = start(|_| ());
    let mut client = Client::enter(server.addresses()[0], None).unwrap();
    let socket = client.flow(0);
    client.take_slot(SlotKind::Load);
    client.say(&load(7, Direction::Reverse, 1));
    assert_eq!(client.hear(), ServerMessage::LoadReady { id: 7 });
    let counter = thread::spawn(move || drain(&socket));
    let (mut sent, mut lasted) = (0, 0);
    for continues in [true, true, false] {
        client.say(&segment(7, 100, continues));
        let ServerMessage::LoadSent(report) = client.hear() else { panic!("no report") };
        assert!(report.ended_ns - report.began_ns >= 100_000_000);
        assert_eq!((report.send_failures, report.ip_octets), (0, report.packets * 1500));
        // 12 Mbit/s are one packet per millisecond; a busy host may send fewer, and make up for
        // them at four thirds of the rate.
        let time = (report.ended_ns - report.began_ns).unsigned_abs();
        assert!(report.packets > 5 && report.packets <= 9 + time / 750_000, "{report:?}");
        (sent, lasted) = (sent + report.packets, lasted + time);
        assert!(sent <= 2 + lasted / 1_000_000, "{sent} in {lasted}");
    }
    client.say(&ClientMessage::LoadEnd { id: 7 });
    assert_eq!(client.hear(), ServerMessage::LoadDone { id: 7 });
    let (received, _) = counter.join().unwrap();
    // What left between two segments is in the report of the second.
    assert_eq!(received, sent);
}

#[test]
fn a_reverse_load_stops_within_a_second_of_the_clients_silence_or_death() {
    for dies in [false, true] {
        let server = start(|_| ());
        let mut client = Client::enter(server.addresses()[0], None).unwrap();
        let socket = client.flow(0);
        client.take_slot(SlotKind::Load);
        client.say(&load(8, Direction::Reverse, 1));
        assert_eq!(client.hear(), ServerMessage::LoadReady { id: 8 });
        client.say(&segment(8, 10_000, true));
        let last_word_ns = clock::now_ns();
        socket.recv(&mut [0; 2048]).unwrap();
        if dies {
            client.tcp.shutdown(std::net::Shutdown::Both).unwrap();
        }
        let (_, last_ns) = drain(&socket);
        let after_ns = last_ns - last_word_ns;
        assert!(after_ns < 8_000_000_000, "traffic went on for {after_ns} ns");
        if dies {
            assert!(soon(|| server.sessions() == 0));
        } else {
            // The session goes on, the load does not.
            let refused = client.hear();
            assert_eq!(refusal(&refused), RefusalCode::Internal);
            assert!(matches!(refused, ServerMessage::Refused { id: Some(8), .. }));
            client.say(&ClientMessage::LoadEnd { id: 8 });
            client.say(&ClientMessage::Release { kind: SlotKind::Load });
            assert_eq!(client.hear(), ServerMessage::Released { kind: SlotKind::Load });
        }
    }
}

/// So does an amount of packets a load; they bear the mark that was asked for, and the next load's
/// bear none.
#[test]
fn a_reverse_load_ends_with_its_last_packet() {
    let server = start(|_| ());
    let mut client = Client::enter(server.addresses()[0], None).unwrap();
    let socket = client.flow(0);
    client.take_slot(SlotKind::Load);
    for (id, packets, class) in [(5, 7, 0xb8), (6, 3, 0)] {
        let ClientMessage::LoadBegin(mut plan) = load(id, Direction::Reverse, 1) else {
            panic!("no load");
        };
        plan.tuning = Some(narrows_wire::LoadTuning { packets: Some(packets), traffic_class: class, mean_rate: true });
        client.say(&ClientMessage::LoadBegin(plan));
        assert_eq!(client.hear(), ServerMessage::LoadReady { id });
        client.say(&segment(id, 10_000, true));
        let sent = match client.hear() {
            ServerMessage::LoadSent(sent) => sent,
            other => panic!("{other:?}"),
        };
        assert!(sent.spent && sent.packets == packets, "{sent:?}");
        // A second segment has nothing left to send.
        client.say(&segment(id, 20, false));
        assert!(matches!(client.hear(), ServerMessage::LoadSent(sent) if sent.packets == 0));
        client.say(&ClientMessage::LoadEnd { id });
        assert_eq!(client.hear(), ServerMessage::LoadDone { id });
        for _ in 0..packets {
            assert_eq!(socket.recv(&mut [0; 2_048]).unwrap(), 1_472);
        }
    }
}
