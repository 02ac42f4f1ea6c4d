//! The reflector on loopback, and the world that uses it there.

use std::time::Duration;

use narrows_probe::probes::{Fate, PeerKind, Probe, Train, TrainId, TrainReport};
use narrows_probe::{Answering as Answers, Event, Refusal, StampSource, World};
use narrows_wire::stamp::{ReflectedPacket, SessionPacket, StampTime};

use super::*;
use crate::error::{Error, PathError, PeerError};
use crate::single_ended::{SingleEndedOptions, SingleEndedWorld};
use crate::via::Via;

fn start(change: impl FnOnce(&mut ReflectorOptions)) -> Reflector {
    let mut options = ReflectorOptions::new(vec![[127, 0, 0, 1].into()], 0);
    change(&mut options);
    Reflector::start(&options).expect("loopback has free ports")
}

fn key() -> Psk {
    Psk::from_file_content(b"sixteen octets!!").expect("long enough")
}

fn world(reflector: &Reflector, psk: Option<Psk>) -> Result<SingleEndedWorld, Error> {
    let port = reflector.addresses()[0].port();
    SingleEndedWorld::connect(
        "127.0.0.1",
        &SingleEndedOptions {
            psk,
            timeout: Duration::from_millis(500),
            ..SingleEndedOptions::new(Via::Stamp { port })
        },
    )
}

fn send(world: &mut SingleEndedWorld, train: Train) -> TrainReport {
    match world.send(Probe::Train(train)) {
        Ok(Event::Train(report)) => report,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_session_has_stamps_of_both_ends() {
    for (psk, stateful, format) in [(None, true, StampFormat::Ntp), (Some(key()), false, StampFormat::Ptp)] {
        let reflector = start(|options| {
            options.key.clone_from(&psk);
            options.stateful = stateful;
            options.format = format;
        });
        let mut world = world(&reflector, psk).expect("it answers");
        let facts = world.facts();
        assert_eq!((facts.answering, facts.answer_limit), (Answers::Reflector, None));
        assert!(facts.rtt > Duration::ZERO && facts.rtt < Duration::from_millis(50), "{facts:?}");
        let wall_ns = clock::wall_ns();
        for (peer_kind, octets) in [(PeerKind::Echo, 200), (PeerKind::Receiver, 1400)] {
            let mut train = Train::uniform(TrainId(7), 30, octets, Duration::from_millis(1));
            train.peer_kind = peer_kind;
            let report = send(&mut world, train);
            assert_eq!((report.id, report.lost(), report.arrivals.len()), (TrainId(7), 0, 30));
            let mut last = i64::MIN;
            for row in &report.arrivals {
                let turned = match row.fate {
                    Fate::Received(at) => at,
                    Fate::Echoed { returned, turned } => {
                        assert!(returned > row.departed);
                        turned.expect("every reply has it")
                    }
                    Fate::Answered(_) | Fate::Lost => panic!("{row:?}"),
                };
                assert!(turned.nanos() > last && turned.nanos().abs_diff(wall_ns) < 10_000_000_000, "{row:?}");
                last = turned.nanos();
            }
            if peer_kind == PeerKind::Receiver {
                assert_eq!(report.arrived_by, StampSource::User, "nothing tells who stamps there");
            }
        }
        assert_eq!(reflector.counts().refused, 0);
        assert!(reflector.counts().answered >= 66);
    }
}

#[test]
fn what_a_reflector_cannot_is_refused() {
    let reflector = start(|_| ());
    let mut world = world(&reflector, None).expect("it answers");
    let mut event = |peer_kind, octets| {
        let mut train = Train::uniform(TrainId(1), 1, octets, Duration::ZERO);
        train.peer_kind = peer_kind;
        world.send(Probe::Train(train)).expect("the machine is well")
    };
    assert_eq!(event(PeerKind::EchoSized(80), 1000), Event::Refused(Refusal::NotOffered));
    assert_eq!(event(PeerKind::ClosedPort, 1000), Event::Refused(Refusal::NotOffered));
    assert_eq!(event(PeerKind::TcpSyn, 1000), Event::Refused(Refusal::NotOffered));
    assert_eq!(event(PeerKind::Echo, 71), Event::Refused(Refusal::TooSmall { min_ip_octets: 72 }));
    assert!(matches!(event(PeerKind::EchoSized(72), 72), Event::Train(_)));
}

#[test]
fn the_wrong_key_is_silence_and_no_reflector_is_said_so() {
    let reflector = start(|options| options.key = Some(key()));
    let other = Psk::from_file_content(b"another sixteen!").expect("long enough");
    for psk in [None, Some(other)] {
        let error = world(&reflector, psk).expect_err("it must not answer");
        assert!(matches!(error, Error::Path(PathError::NoAnswer { .. })), "{error}");
    }
    assert_eq!(reflector.counts().answered, 0);
    let port = reflector.addresses()[0].port();
    drop(reflector);
    let error = SingleEndedWorld::connect("127.0.0.1", &SingleEndedOptions::new(Via::Stamp { port }))
        .expect_err("nobody is there");
    assert!(matches!(error, Error::Peer(PeerError::NoReflector { .. })), "{error}");
}

/// A raw sender: hostile packets get nothing, honest ones no more than they sent.
#[test]
fn garbage_is_met_with_silence_and_floods_are_limited() {
    let reflector = start(|options| {
        options.burst = 50;
        options.per_source = 10;
    });
    let near = ProbeSocket::connected(reflector.addresses()[0], &SocketOptions::default()).expect("loopback");
    let mut receiver = Receiver::new(&near, 2_000);
    let packet = SessionPacket {
        seq: 0,
        time: StampTime::from_unix_ns(clock::wall_ns(), StampFormat::Ptp),
        error: ErrorEstimate::new(1, false, StampFormat::Ptp),
        ssid: 5,
    };
    let mut whole = [0; 60];
    packet.write(&mut whole, None).expect("it fits");
    let mut corrupt = whole;
    corrupt[13] = 0;
    for hostile in [&whole[..0], &whole[..40], &corrupt[..]] {
        near.send(hostile).expect("loopback");
    }
    assert_eq!(receiver.receive(&near, clock::now_ns() + 100_000_000).expect("the socket is well"), 0);
    // 47 are left of the burst, and a few more come in meanwhile.
    for seq in 0..200u32 {
        let mut next = whole;
        SessionPacket { seq, ..packet }.write(&mut next, None).expect("it fits");
        near.send(&next).expect("loopback");
    }
    // A stall anywhere lets more of the flood pass, so the test counts what passed. How many pass
    // in which time is tested beside `Allowance`, with a clock of its own.
    let deadline_ns = clock::now_ns() + 10_000_000_000;
    let mut answered = 0;
    let counts = loop {
        let counts = reflector.counts();
        if counts.answered + counts.limited + counts.refused == 203 && answered == counts.answered {
            break counts;
        }
        assert!(clock::now_ns() < deadline_ns, "{answered} answers came of {counts:?}");
        receiver.receive(&near, clock::now_ns() + 20_000_000).expect("the socket is well");
        for datagram in receiver.iter() {
            assert_eq!(datagram.payload_octets, 60);
            let reply = ReflectedPacket::parse(datagram.payload, None).expect("its own format");
            assert_eq!((u64::from(reply.seq), reply.ssid), (answered, 5), "answers count answers");
            assert!(reply.sender_seq >= reply.seq, "{reply:?}");
            assert_eq!(reply.sender_time, packet.time.wire());
            // The kernel's own default, for this socket sets none.
            assert_eq!(reply.sender_ttl, 64);
            assert!(reply.transmitted.unix_ns() >= reply.received.unix_ns());
            answered += 1;
        }
    };
    assert_eq!(counts.refused, 3);
    assert!(counts.answered >= 47 && counts.limited > 0, "{counts:?}");
}
