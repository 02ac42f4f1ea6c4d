//! Everything that a probe can say goes to the file and comes back; and the format is what its
//! version says.

use std::io::Write;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::num::NonZeroU8;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use narrows_probe::probes::{
    Arrival, Capture, CaptureReport, CapturedPacket, Congestion, Fate, HopReply, HopReplyKind, Load, LoadReport,
    LoadStatus, PacingCheck, PacketPlan, PeerKind, Place, Probe, StreamReport, TcpFields, TcpMarks, TcpSample,
    TcpState, Then, Train, TrainId, TrainReport, Transfer, TransferReport, Transport,
};
use narrows_probe::{Budget, Event, Order, Outcome, PathFacts, RawParams, Reason, Refusal, StampSource, World};
use narrows_trace::{Answer, Recorder, Recording, Request, Setting, WorldKind, WriteError, Writer};
use narrows_units::{BitRate, Metric, Sender, Stamp};
use proptest::prelude::*;

/// A world that answers from a list.
struct Scripted {
    answers: std::vec::IntoIter<Result<Event, String>>,
    now: i64,
}

impl World for Scripted {
    type Fault = String;

    fn now(&self) -> Stamp<Sender> {
        Stamp::from_nanos(self.now)
    }

    fn facts(&self) -> PathFacts {
        PathFacts::ideal(1500, Duration::from_millis(10))
    }

    fn send(&mut self, _: Probe) -> Result<Event, String> {
        self.now += 1_000_000;
        self.answers.next().expect("the script is long enough")
    }

    fn wait(&mut self, until: Stamp<Sender>) -> Result<(), String> {
        self.now = until.nanos();
        Ok(())
    }
}

fn begin<S: Write>(recorder: &mut Recorder<Scripted, S>) {
    let rtt = narrows_methods::find("rtt").expect("it is registered");
    let params = RawParams::new();
    recorder.begins(&Order {
        metric: Metric::IpCapacity,
        method: "scripted",
        ..Order::new(rtt, &params, Budget::default()).expect("defaults")
    });
}

fn recorded(exchanges: &[(Probe, Result<Event, String>)]) -> Vec<u8> {
    let answers: Vec<_> = exchanges.iter().map(|(_, answer)| answer.clone()).collect();
    let world = Scripted { answers: answers.into_iter(), now: 0 };
    let writer = Writer::new(Vec::new()).expect("memory");
    let mut recorder = Recorder::new(world, writer, Setting::new(WorldKind::Lab));
    begin(&mut recorder);
    for (probe, answer) in exchanges {
        recorder.now();
        assert_eq!(recorder.send(probe.clone()), answer.clone());
    }
    recorder.now();
    recorder.wait(Stamp::from_nanos(1 << 40)).expect("it waits");
    let measured = narrows_probe::Measured {
        outcome: Outcome::inconclusive(Reason::WorldBroke),
        cost: narrows_probe::Cost::default(),
    };
    recorder.concluded(&measured, Some(&Reason::WorldBroke));
    let (_, writer, fault) = recorder.into_parts();
    assert!(fault.is_none());
    writer.expect("nothing failed").finish().expect("memory")
}

#[expect(clippy::too_many_lines, reason = "a list of everything that a probe can say")]
fn every_kind() -> Vec<(Probe, Result<Event, String>)> {
    let at = Stamp::<Sender>::from_nanos;
    let router = IpAddr::V4(Ipv4Addr::new(10, 0, 1, 1));
    let fates = [
        Fate::Received(Stamp::from_nanos(-77)),
        Fate::Echoed { returned: at(9000), turned: Some(Stamp::from_nanos(3_000_000_000_000_000_000)) },
        Fate::Echoed { returned: at(9000), turned: None },
        Fate::Answered(HopReply {
            from: router,
            returned: at(5),
            reply_ip_octets: 56,
            kind: HopReplyKind::PacketTooBig { mtu: Some(1400) },
        }),
        Fate::Answered(HopReply {
            from: "2001:db8::1".parse().expect("an address"),
            returned: at(6),
            reply_ip_octets: 1280,
            kind: HopReplyKind::Unreachable { code: 13 },
        }),
        Fate::Lost,
        Fate::Received(Stamp::from_nanos(-3_000_000_000_000_000_000)),
    ];
    let train = Train {
        id: TrainId(7),
        packets: (0u16..7)
            .map(|k| PacketPlan {
                gap: Duration::from_micros(u64::from(k)),
                ip_octets: 64 + 200 * k,
                hop_limit: NonZeroU8::new(u8::try_from(k).expect("small")),
            })
            .collect(),
        peer_kind: PeerKind::EchoSized(64),
    };
    let report = TrainReport {
        id: TrainId(7),
        arrivals: (0u32..)
            .zip(fates)
            .map(|(seq, fate)| Arrival { seq, departed: at(i64::from(seq) * 1000), ip_octets: 64, fate })
            .collect(),
        reordered: 1,
        duplicates: 2,
        local_drops: 3,
        departed_by: StampSource::User,
        arrived_by: StampSource::Hardware,
        pacing: PacingCheck::Broken { worst: Duration::from_nanos(5001) },
    };
    let load = Load {
        rate: BitRate::from_bps(u64::MAX),
        ip_octets: 1500,
        burst: 4,
        streams: 2,
        duration: Duration::from_millis(500),
        status_every: Duration::from_millis(50),
        then: Then::Continue,
    };
    let load_report = LoadReport {
        began: at(1),
        ended: at(2),
        sent_packets: 10,
        sent_ip_octets: 15_000,
        send_failures: 1,
        sender_cpu: Some(0.25),
        held_up: Duration::ZERO,
        statuses: vec![LoadStatus {
            from: Stamp::from_nanos(-5),
            to: Stamp::from_nanos(5),
            packets: 9,
            ip_octets: 13_500,
            lost: 1,
            reordered: 2,
            duplicates: 3,
            local_drops: 4,
            delay_above_min: Some((Duration::ZERO, Duration::from_nanos(1), Duration::from_secs(2))),
        }],
    };
    let capture = Capture {
        duration: Duration::from_secs(1),
        max_packets: 100,
        remote_host: Some(router),
        places: vec![Place::Here, Place::Node(3)],
    };
    let socket = |port| SocketAddr::new(router, port);
    let packet = |transport| CapturedPacket {
        at: at(12),
        source: socket(1),
        destination: socket(2),
        ip_octets: 1500,
        place: 1,
        ip_id: Some(7),
        transport,
    };
    let captured = CaptureReport {
        packets: vec![
            packet(Transport::Tcp(TcpFields {
                sequence: u32::MAX,
                acknowledgement: Some(1),
                payload_octets: 1448,
                syn: false,
                fin: true,
                rst: false,
                window: 501,
                timestamps: Some((7, u32::MAX)),
            })),
            packet(Transport::Udp),
            packet(Transport::Other(89)),
        ],
        dropped: 5,
    };
    let (transfer, transfer_report) = transfers();
    vec![
        (Probe::Train(train.clone()), Ok(Event::Train(report))),
        (Probe::Load(load), Ok(Event::Load(load_report))),
        (Probe::Transfer(transfer), Ok(Event::Transfer(transfer_report))),
        (Probe::Capture(capture), Ok(Event::Capture(captured))),
        (Probe::Train(train.clone()), Ok(Event::Refused(Refusal::TooLarge { max_ip_octets: 1400 }))),
        (Probe::Train(train), Err("the cable was pulled".to_owned())),
    ]
}

fn transfers() -> (Transfer, TransferReport) {
    let sample = TcpSample {
        at: Stamp::from_nanos(3),
        state: TcpState::Recovery,
        rtt: Duration::from_millis(20),
        rtt_var: Duration::from_micros(7),
        min_rtt: Some(Duration::from_millis(19)),
        mss_octets: 1448,
        cwnd_segments: 10,
        ssthresh_segments: None,
        in_flight_segments: 9,
        acked_octets: 1 << 40,
        sent_octets: Some(1 << 41),
        retransmitted_octets: None,
        retransmitted_segments: 3,
        timeouts: Some(1),
        delivery_rate: Some((BitRate::from_mbps(90), true)),
        pacing_rate: None,
        peer_window_octets: Some(65_535),
        unsent_octets: None,
        busy: Some(Duration::from_secs(1)),
        limited_by_receive_window: None,
        limited_by_send_buffer: Some(Duration::ZERO),
        bbr_pacing_gain: Some(739),
        marks: TcpMarks::default(),
    };
    let transfer = Transfer {
        streams: 2,
        congestion: Some(Congestion::Other("scalable".to_owned())),
        window_octets: Some(100_000),
        pacing: Some(BitRate::from_mbps(5)),
        duration: Duration::from_secs(1),
        sample_every: Duration::from_millis(100),
        then: Then::Finish,
    };
    let report = TransferReport {
        began: Stamp::from_nanos(1),
        ended: Stamp::from_nanos(2),
        streams: vec![StreamReport {
            congestion: Congestion::Cubic,
            granted_send_buffer_octets: Some(200_000),
            samples: vec![sample; 2],
        }],
        remote_read: Some((1 << 33, Duration::from_millis(999))),
        sender_cpu: None,
        receiver_cpu: Some(1.0),
    };
    (transfer, report)
}

#[test]
fn everything_comes_back() {
    let exchanges = every_kind();
    let recording = Recording::read(recorded(&exchanges).as_slice()).expect("it is one");
    assert_eq!(recording.damage, None);
    let run = &recording.runs[0];
    assert_eq!(run.exchanges.len(), exchanges.len() + 1);
    for (held, (probe, answer)) in run.exchanges.iter().zip(&exchanges) {
        assert_eq!(held.asked, Request::Probe(probe.clone()));
        match answer {
            Ok(event) => assert_eq!(held.answer.event(), Ok(event.clone())),
            Err(text) => assert_eq!(held.answer, Answer::Fault(text.clone())),
        }
    }
    assert_eq!(run.exchanges[6].answer, Answer::TimerFired);
    assert_eq!(run.end.as_ref().and_then(|end| end.stopped.clone()), Some(Reason::WorldBroke));
}

/// What a sender did not make up for follows its exchange, where readers of before do not look.
#[test]
fn loads_keep_how_long_they_were_held_up() {
    let mut all = every_kind();
    let held_up = Duration::from_micros(3_500);
    let loads = all.iter_mut().filter_map(|(_, answer)| match answer {
        Ok(Event::Load(report)) => Some(report),
        _ => None,
    });
    assert_eq!(loads.map(|report| report.held_up = held_up).count(), 1);
    let recording = Recording::read(recorded(&all).as_slice()).expect("it is one");
    let run = &recording.runs[0];
    let kept = run.exchanges.iter().filter_map(|held| match &held.answer {
        Answer::Load(report) => Some(report.held_up),
        _ => None,
    });
    assert_eq!(kept.collect::<Vec<_>>(), [held_up]);
}

/// Files of version 1 stay readable: the content of one, inflated and summed. If this fails the
/// format has changed, and so must its version.
#[test]
fn version_1_is_this() {
    let octets = recorded(&every_kind());
    assert_eq!(octets[..10], *b"NARROWSR\x01\x00");
    let mut content = Vec::new();
    let mut rest = &octets[10..];
    while let Some((head, after)) = rest.split_at_checked(12) {
        let stored = u32::from_le_bytes([head[0], head[1], head[2], head[3]]) as usize;
        let mut inflater = flate2::read::DeflateDecoder::new(&after[..stored]);
        std::io::Read::read_to_end(&mut inflater, &mut content).expect("it inflates");
        rest = &after[stored..];
    }
    // Heads and ends are JSON, which may grow; exchanges may not change.
    let mut exchanges = Vec::new();
    let mut rest = content.as_slice();
    while let Some((head, after)) = rest.split_at_checked(5) {
        let length = u32::from_le_bytes([head[1], head[2], head[3], head[4]]) as usize;
        if head[0] == 2 {
            exchanges.extend_from_slice(&after[..length]);
        }
        rest = &after[length..];
    }
    let mut sum = flate2::Crc::new();
    sum.update(&exchanges);
    assert_eq!((exchanges.len(), sum.sum()), VERSION_1);
}

const VERSION_1: (usize, u32) = (680, 4_029_424_309);

/// A sink that others can see, and that may fill up.
#[derive(Clone)]
struct Shared {
    octets: Arc<Mutex<Vec<u8>>>,
    room: usize,
}

impl Write for Shared {
    fn write(&mut self, octets: &[u8]) -> std::io::Result<usize> {
        let mut held = self.octets.lock().expect("one thread");
        if held.len() + octets.len() > self.room {
            return Err(std::io::ErrorKind::StorageFull.into());
        }
        held.extend_from_slice(octets);
        Ok(octets.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// An answer of `count` rows that do not compress, `k` milliseconds after the begin.
fn rows(k: u32, count: u32) -> (Probe, Event) {
    let train = Train::uniform(TrainId(k), count as usize, 1500, Duration::ZERO);
    let report = TrainReport {
        id: TrainId(k),
        arrivals: (0..count)
            .map(|seq| Arrival { seq, departed: Stamp::from_nanos(noise(seq, k)), ip_octets: 1500, fate: Fate::Lost })
            .collect(),
        reordered: 0,
        duplicates: 0,
        local_drops: 0,
        departed_by: StampSource::User,
        arrived_by: StampSource::User,
        pacing: PacingCheck::Unknown,
    };
    (Probe::Train(train), Event::Train(report))
}

/// Numbers that look random.
fn noise(seq: u32, k: u32) -> i64 {
    let mixed = (u64::from(seq) << 32 | u64::from(k)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    i64::try_from((mixed ^ mixed >> 29).wrapping_mul(0xBF58_476D_1CE4_E5B9) >> 3).unwrap_or_default()
}

/// The writer never ends, as if it had been killed: all but the last second is there.
#[test]
fn a_killed_writer_loses_a_second_at_most() {
    let script: Vec<_> = (0..5000).map(|k| rows(k, 3)).collect();
    let answers: Vec<_> = script.iter().map(|(_, event)| Ok(event.clone())).collect();
    let sink = Shared { octets: Arc::default(), room: usize::MAX };
    let world = Scripted { answers: answers.into_iter(), now: 0 };
    let writer = Writer::new(sink.clone()).expect("memory");
    let mut recorder = Recorder::new(world, writer, Setting::new(WorldKind::Sockets));
    begin(&mut recorder);
    for (count, (probe, _)) in script.into_iter().enumerate() {
        recorder.now();
        recorder.send(probe).expect("no fault");
        if count % 500 == 0 {
            let held = sink.octets.lock().expect("one thread").clone();
            let recording = Recording::read(held.as_slice()).expect("it is one");
            assert_eq!(recording.damage, None);
            // One answer takes a millisecond here.
            assert!(recording.runs[0].exchanges.len() + 1001 > count, "{count}");
        }
    }
    std::mem::forget(recorder);
}

#[test]
fn a_full_disk_does_not_end_the_measurement() {
    let script: Vec<_> = (0..50).map(|k| rows(k, 1000)).collect();
    let answers: Vec<_> = script.iter().map(|(_, event)| Ok(event.clone())).collect();
    let sink = Shared { octets: Arc::default(), room: 20_000 };
    let world = Scripted { answers: answers.into_iter(), now: 0 };
    let writer = Writer::new(sink.clone()).expect("there is room for the head");
    let mut recorder = Recorder::new(world, writer, Setting::new(WorldKind::Sockets));
    begin(&mut recorder);
    for (probe, event) in script {
        recorder.now();
        assert_eq!(recorder.send(probe), Ok(event));
    }
    let (_, writer, fault) = recorder.into_parts();
    assert!(writer.is_none() && matches!(fault, Some(WriteError::Host(_))), "{fault:?}");
    let held = sink.octets.lock().expect("one thread").clone();
    let recording = Recording::read(held.as_slice()).expect("it is one");
    assert!(recording.runs[0].end.is_none() && recording.damage.is_none());
}

const CENTURY: i64 = 3_200_000_000_000_000_000;

proptest! {
    /// Any rows, however far apart: differences wrap, and come back.
    #[test]
    fn any_stamps_come_back(values in proptest::collection::vec((any::<u32>(), -CENTURY..CENTURY, 20u16.., -CENTURY..CENTURY, 0u8..4), 1..50)) {
        let probe = Probe::Train(Train::uniform(TrainId(0), values.len(), 1500, Duration::ZERO));
        let (_, event) = rows(0, 0);
        let Event::Train(mut report) = event else { unreachable!() };
        report.arrivals = values
            .into_iter()
            .map(|(seq, departed, ip_octets, other, fate)| Arrival {
                seq,
                departed: Stamp::from_nanos(departed),
                ip_octets,
                fate: match fate {
                    0 => Fate::Received(Stamp::from_nanos(other)),
                    1 => Fate::Echoed { returned: Stamp::from_nanos(other), turned: None },
                    2 => Fate::Echoed { returned: Stamp::from_nanos(other), turned: Some(Stamp::from_nanos(departed)) },
                    _ => Fate::Lost,
                },
            })
            .collect();
        let event = Event::Train(report);
        let octets = recorded(&[(probe, Ok(event.clone()))]);
        let recording = Recording::read(octets.as_slice()).expect("it is one");
        prop_assert_eq!(recording.runs[0].exchanges[0].answer.event(), Ok(event));
    }

    /// No octets behind a good head make the reader panic, and none that it did not write make an
    /// exchange.
    #[test]
    fn any_octets_are_survived(octets in proptest::collection::vec(any::<u8>(), 0..300)) {
        let mut file = b"NARROWSR\x01\x00".to_vec();
        file.extend(octets);
        let recording = Recording::read(file.as_slice()).expect("its head is good");
        prop_assert!(recording.runs.is_empty());
    }
}
