use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use narrows_scenario::{Arrivals, Cross, Elastic, ElasticControl, SizeMix, Workload};
use narrows_units::{BitRate, Octets};

use super::*;
use crate::sink::{SessionEnd, Sink, SinkOptions};

const LOOPBACK: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

fn sink() -> Sink {
    Sink::start(SinkOptions::private(LOOPBACK)).unwrap()
}

fn model(arrivals: Arrivals, mbps: u64, sizes: SizeMix, index: usize) -> Flow {
    let cross = Cross::on_hop(0, arrivals, BitRate::from_mbps(mbps), sizes);
    Flow::from_cross(&cross, 5, index)
}

fn options(ms: u64, pacing: Pacing) -> SenderOptions {
    SenderOptions {
        duration: Some(Duration::from_millis(ms)),
        interval: Duration::from_millis(50),
        pacing,
        pin_to: None,
    }
}

/// What is planned leaves and arrives, every packet of every flow, however late this machine is.
#[test]
fn what_is_planned_arrives() {
    let sink = sink();
    let flows = vec![
        model(Arrivals::Cbr, 2, SizeMix::constant(1000), 0),
        model(Arrivals::Poisson, 2, SizeMix::imix(), 1),
        model(Arrivals::Poisson, 1, SizeMix::uniform(64, 1500).unwrap(), 2),
    ];
    let stop = AtomicBool::new(false);
    let sender = Sender::start(sink.addresses()[0], flows.clone(), options(200, Pacing::Sleep)).unwrap();
    let report = sender.wait(&stop);
    assert!(report.notes.is_empty() && !report.interrupted, "{report:#?}");
    assert!(report.same_clock, "one machine");
    for (flow, reported) in flows.iter().zip(&report.flows) {
        let FlowKind::Model { cross, seed, index } = &flow.kind else { panic!() };
        let packets = ArrivalStreamOf(cross, *seed, *index).octets(200_000_000);
        let received = reported.received.as_ref().unwrap();
        assert_eq!((reported.sent.packets, reported.sent.octets), packets);
        assert_eq!(reported.sent.planned_octets, Some(reported.sent.octets));
        assert_eq!((received.packets + received.lost, received.duplicates), (packets.0, 0));
        assert_eq!(received.lost, report.local_drops.unwrap());
        let delay = received.one_way_delay_ns.unwrap();
        assert!(delay.min > -1000 && delay.max < 10_000_000_000, "{delay:?}");
        assert_eq!(reported.sent.planned_windows.len(), 3);
        // The sizes sent are those received.
        assert_eq!(received.octets, reported.sent.octets);
    }
    let finished = sink.stop();
    assert_eq!((finished.len(), finished[0].ended), (1, SessionEnd::Complete));
}

struct ArrivalStreamOf<'a>(&'a Cross, u64, usize);

impl ArrivalStreamOf<'_> {
    fn octets(&self, until_ns: u64) -> (u64, u64) {
        narrows_sim::ArrivalStream::new(self.0, self.1, self.2)
            .unwrap()
            .take_while(|packet| packet.at_ns < until_ns)
            .fold((0, 0), |(packets, octets), packet| (packets + 1, octets + u64::from(packet.ip_octets)))
    }
}

#[test]
fn without_an_end_it_runs_until_stopped() {
    let sink = sink();
    let flow = model(Arrivals::Cbr, 5, SizeMix::constant(500), 0);
    let sender = Sender::start(sink.addresses()[0], vec![flow], SenderOptions::default()).unwrap();
    while sender.progress().packets < 20 {
        clock::sleep_until_ns(clock::now_ns() + 1_000_000);
    }
    assert!(!sender.finished());
    let report = sender.stop();
    assert!(report.interrupted);
    let flow = &report.flows[0];
    let received = flow.received.as_ref().unwrap();
    assert_eq!(received.packets + received.lost, flow.sent.packets);
    assert!(flow.sent.packets >= 20);
}

#[test]
fn tcp_flows_are_read_to_their_end() {
    let sink = sink();
    let elastic = Flow::elastic(ElasticFlow { window_octets: Some(64_000), ..ElasticFlow::greedy(2, "reno") });
    let mut late = elastic.clone();
    late.from = Duration::from_millis(50);
    let sender = Sender::start(sink.addresses()[0], vec![elastic, late], options(120, Pacing::Sleep)).unwrap();
    let report = sender.wait(&AtomicBool::new(false));
    assert_eq!((report.flows.len(), &report.notes[..]), (4, &[][..]));
    for flow in &report.flows {
        let (sent, received) = (&flow.sent, flow.received.as_ref().unwrap());
        assert_eq!(flow.layer, "tcp_payload");
        assert_eq!(sent.tcp.as_ref().unwrap().congestion, "reno");
        assert!(sent.octets > 10_000 && !sent.intervals.is_empty(), "{sent:?}");
        // What was on its way at the end still arrived; the first line is no data.
        assert!(received.octets + 200 > sent.octets, "{} {}", received.octets, sent.octets);
        assert!(!received.intervals.is_empty());
    }
    let unknown = Flow::elastic(ElasticFlow::greedy(1, "nonesuch"));
    let error = Sender::start(sink.addresses()[0], vec![unknown], options(10, Pacing::Sleep)).unwrap_err();
    assert!(error.to_string().contains("reno"), "{error}");
}

/// A backup of 200 kB ends by itself. Films of 8 Mbit/s in chunks of 50 ms hand over 50 kB at the
/// begin. Short transfers of 1 kB each add up.
#[test]
fn connections_carry_what_they_are_told() {
    let sink = sink();
    let workload = |workload| Elastic { workload, ..Elastic::greedy(1, ElasticControl::Cubic) };
    let start = |workload| {
        let flow = Flow::from(&Cross::elastic_on_hop(0, workload));
        Sender::start(sink.addresses()[0], vec![flow], options(100_000, Pacing::Sleep)).unwrap()
    };
    let report = start(workload(Workload::Backup { payload: Octets::new(200_000) })).wait(&AtomicBool::new(false));
    let flow = &report.flows[0];
    assert!(!report.interrupted && report.notes.is_empty(), "{report:?}");
    assert_eq!((flow.name.as_str(), flow.received.as_ref().unwrap().octets), ("backup (cubic)", 200_000));

    let chunk = Duration::from_millis(50);
    let sender = start(workload(Workload::Video { rate: BitRate::from_mbps(8), chunk }));
    let reach = |sender: &Sender, octets: u64| {
        while sender.progress().tcp_octets < octets {
            assert!(sender.alive() && !sender.finished());
            clock::sleep_until_ns(clock::now_ns() + 1_000_000);
        }
    };
    reach(&sender, 50_000);
    assert!(sender.stop().flows[0].received.as_ref().unwrap().octets >= 50_000);

    let web = Workload::Web { rate: BitRate::from_mbps(1), mean: Octets::new(1000), sigma: 0.0 };
    let sender = start(workload(web));
    reach(&sender, 20_000);
    let report = sender.stop();
    let received = report.flows[0].received.as_ref().unwrap();
    assert!(received.octets >= 20_000 && report.notes.is_empty(), "{report:?}");
}

#[test]
fn captures_are_sent_again() {
    let sink = sink();
    let capture = crate::replay::testing::capture(&[(0, 1500), (1_000, 40), (20_000, 600), (40_000, 30)]);
    let replay = crate::Replay::open(capture.path(), crate::Filter::default(), 2.0).unwrap();
    let sender = Sender::start(sink.addresses()[0], vec![Flow::replay(replay)], SenderOptions::default()).unwrap();
    let report = sender.wait(&AtomicBool::new(false));
    let sent = &report.flows[0].sent;
    assert_eq!((sent.packets, sent.octets, sent.raised_packets), (4, 1500 + 40 + 600 + 40, 1));
    // The last one leaves at half of 40 ms at the earliest.
    assert!(sent.span_ns >= 20_000_000 && !report.interrupted, "{report:?}");
    assert_eq!(report.flows[0].received.as_ref().unwrap().octets, sent.octets);
}

#[test]
fn what_cannot_be_sent_is_refused_first() {
    let sink = sink();
    let to = sink.addresses()[0];
    let small = model(Arrivals::Cbr, 1, SizeMix::constant(30), 0);
    let error = Sender::start(to, vec![small], SenderOptions::default()).unwrap_err();
    assert!(matches!(error, TrafficError::Caller(CallerError::TooShort { least: 40, .. })), "{error}");
    assert!(matches!(
        Sender::start(to, vec![], SenderOptions::default()),
        Err(TrafficError::Caller(CallerError::NoFlow))
    ));
    let many = model(Arrivals::Cbr, 1, SizeMix::imix(), 0).split(2000);
    assert!(matches!(
        Sender::start(to, many, SenderOptions::default()),
        Err(TrafficError::Caller(CallerError::TooManyFlows { flows: 2000, .. }))
    ));
    drop(sink);
    let flow = model(Arrivals::Cbr, 1, SizeMix::imix(), 0);
    assert!(matches!(Sender::start(to, vec![flow], SenderOptions::default()), Err(TrafficError::NotListening { .. })));
}

#[test]
fn ipv6_has_longer_headers() {
    let Ok(sink) = Sink::start(SinkOptions::private(Ipv6Addr::LOCALHOST.into())) else {
        return; // This host has no IPv6.
    };
    let imix = model(Arrivals::Cbr, 1, SizeMix::imix(), 0);
    let error = Sender::start(sink.addresses()[0], vec![imix], SenderOptions::default()).unwrap_err();
    assert!(matches!(error, TrafficError::Caller(CallerError::TooShort { least: 60, .. })), "{error}");
    let flow = model(Arrivals::Cbr, 5, SizeMix::constant(100), 0);
    let sender = Sender::start(sink.addresses()[0], vec![flow], options(20, Pacing::Spin)).unwrap();
    let report = sender.wait(&AtomicBool::new(false));
    let flow = &report.flows[0];
    assert_eq!(flow.received.as_ref().unwrap().octets, flow.sent.octets);
    assert_eq!(flow.sent.octets, flow.sent.packets * 100);
}

#[test]
fn a_sink_that_goes_away_ends_the_run() {
    let sink = sink();
    let flow = model(Arrivals::Cbr, 1, SizeMix::constant(500), 0);
    let sender = Sender::start(sink.addresses()[0], vec![flow], SenderOptions::default()).unwrap();
    while sender.progress().packets < 3 {
        clock::sleep_until_ns(clock::now_ns() + 1_000_000);
    }
    let finished = sink.stop();
    assert_eq!(finished[0].ended, SessionEnd::SinkStopped);
    let report = sender.wait(&AtomicBool::new(false));
    assert!(report.interrupted);
    // Its last word is heard.
    assert!(report.flows[0].received.as_ref().unwrap().packets > 0, "{report:?}");
}

#[test]
fn documents_are_one_line_and_tables_rectangular() {
    let sink = sink();
    let flow = model(Arrivals::Poisson, 2, SizeMix::imix(), 0);
    let sender = Sender::start(sink.addresses()[0], flow.split(2), options(60, Pacing::Sleep)).unwrap();
    let report = sender.wait(&AtomicBool::new(false));
    let json: serde_json::Value = serde_json::from_str(&report.json()).unwrap();
    assert_eq!(
        (&json["schema"], &json["totals"][0]["requested_bps"]),
        (&"narrows.traffic/1".into(), &2_000_000.into())
    );
    let csv = report.csv();
    let columns: Vec<usize> = csv.lines().map(|line| line.split(',').count()).collect();
    assert!(columns.len() > 3 && columns.iter().all(|count| *count == columns[0]), "{csv}");
    let text = report.text();
    assert!(text.contains("one-way delay") && text.contains("total of 2 flow(s)"), "{text}");
}
