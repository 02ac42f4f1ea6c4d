use narrows_diagnose::host::{
    CardFacts, CoalescingSettings, HostVerdict, Offload, Pacer, PacingRow, Pcie, SleepRow, Spread, StampRow, fixes,
};

use super::*;

fn flat(ns: f64) -> Option<Spread> {
    Spread::of(&[ns])
}

fn facts() -> HostFacts {
    HostFacts {
        send_cost: Duration::from_micros(1),
        receive_cost: Duration::from_nanos(300),
        clock_resolution: Duration::from_nanos(25),
        stamp_error: Duration::from_micros(1),
        stamp_source: StampSource::Kernel,
        min_gap: Duration::from_micros(2),
        max_send_rate: Some(BitRate::from_gbps(20)),
        ..HostFacts::ideal()
    }
}

/// A host that tells nothing.
fn silent() -> HostFindings {
    HostFindings {
        version: "0".to_owned(),
        started_at: None,
        target: None,
        rate: None,
        ip_octets: 1500,
        inventory: Inventory::default(),
        costs: Costs::default(),
        near: facts(),
        remote: None,
        steal_ratio: None,
    }
}

/// A host with a card of 10 Gbit/s that holds interrupts back for 50 µs, towards a remote host.
fn talkative() -> HostFindings {
    let mut found = silent();
    found.inventory.hostname = Some("a".to_owned());
    found.inventory.card = Some(CardFacts {
        name: "eth0".to_owned(),
        driver: Some("ixgbe".to_owned()),
        rate_bps: Some(10_000_000_000),
        duplex: Some("full".to_owned()),
        coalescing: Some(CoalescingSettings { receive_us: 50, ..CoalescingSettings::default() }),
        offloads: vec![Offload { name: "gro", on: true }],
        pcie: Some(Pcie {
            transfers: "5.0 GT/s PCIe".to_owned(),
            width: "8".to_owned(),
            payload_bps: Some(29_000_000_000),
            ..Pcie::default()
        }),
        qdisc: Some("mq".to_owned()),
        ..CardFacts::default()
    });
    found.costs = Costs {
        memory_copy_octets_per_second: Some(11_500_000_000),
        send_segments: flat(60.0),
        receive_merged: flat(44.0),
        clock_gaps: flat(25.0),
        sleeps: vec![SleepRow { slack_ns: 50_000, requested_ns: 100_000, overshoot: flat(60_000.0).unwrap() }],
        pacing: vec![PacingRow {
            pacer: Pacer::Spin,
            gap_ns: Some(10_000),
            error: flat(300.0),
            kept: Some(true),
            unknown: None,
        }],
        stamps: vec![StampRow { source: "kernel", delay: flat(2_000.0), noise_ns: Some(1_000), unknown: None }],
        ..Costs::default()
    };
    found.target = Some(Target { name: "b".to_owned(), address: Some([192, 0, 2, 1].into()), port: Some(8620) });
    let seen = Coalescing { short_share: 0.8, batch_packets: 5.0, period_ns: Some(80_000) };
    found.remote = Some(RemoteFindings { facts: facts(), coalescing: Some(seen), settings: None });
    found
}

fn with_all(found: HostFindings) -> HostDocument {
    let mut document = HostDocument::new(found);
    document.fixes = Some(fixes(&document.near.inventory, None));
    document.capture = Some(CaptureRow {
        snap_octets: 96,
        ip_octets: 1500,
        rate_bps: Some(1),
        packets_per_second: Some(2.0),
        verdict: "at_most",
        measured: None,
        unknown: Some("needs CAP_NET_RAW".to_owned()),
        model: None,
        buffer_octets: Some(16 << 20),
    });
    document.notes.push(Note { id: "note", text: "A note.".to_owned() });
    document
}

#[test]
fn documents_follow_the_schema() {
    let schema = serde_json::from_str(schema::HOST).unwrap();
    let validator = jsonschema::draft202012::new(&schema).unwrap();
    for document in [HostDocument::new(silent()), with_all(silent()), with_all(talkative())] {
        let json = serde_json::from_str(&document.json()).unwrap();
        let errors: Vec<String> =
            validator.iter_errors(&json).map(|error| format!("{}: {error}", error.instance_path())).collect();
        assert!(errors.is_empty(), "{errors:?}");
    }
    let mut wrong: serde_json::Value = serde_json::from_str(&HostDocument::new(silent()).json()).unwrap();
    wrong["families"][0]["max_rate_bps"] = "much".into();
    assert!(!validator.is_valid(&wrong), "the schema must be able to refuse");
}

fn row(rows: &[FamilyRow], family: HostFamily) -> &FamilyRow {
    rows.iter().find(|row| row.family == family).unwrap()
}

/// Each direction is judged by its own receiver: 80 µs there by probes, 50 µs here by the driver.
#[test]
fn each_way_has_its_own_receiver() {
    let document = HostDocument::new(talkative());
    assert_eq!((document.rate_bps, document.rate_from), (Some(10_000_000_000), RateFrom::Links));
    let remote = row(&document.families, HostFamily::Pairs);
    assert_eq!((remote.max_rate_bps, remote.verdict), (Some(15_000_000), HostVerdict::Unusable));
    let here = row(document.reverse_families.as_ref().unwrap(), HostFamily::Pairs);
    assert_eq!(here.max_rate_bps, Some(24_000_000));
    let trains = row(&document.families, HostFamily::Trains);
    assert_eq!((trains.max_rate_bps, trains.verdict), (Some(10_000_000_000), HostVerdict::Degraded));
    // Ten times 80 µs of packets of 1.2 µs.
    assert_eq!(trains.sub_train_packets, Some(667));
    // A card of 10 Gbit/s is what holds this host back, on a link of as much.
    assert_eq!(document.ceiling_bps, Some(10_000_000_000));
    assert_eq!(document.is_bottleneck, Some(true));
}

/// What probes saw outweighs what the driver is set to.
#[test]
fn probes_outweigh_settings() {
    let mut found = talkative();
    found.inventory.card.as_mut().unwrap().seen_coalescing =
        Some(Coalescing { short_share: 0.7, batch_packets: 3.0, period_ns: Some(100_000) });
    let document = HostDocument::new(found);
    let here = row(document.reverse_families.as_ref().unwrap(), HostFamily::Pairs);
    assert_eq!(here.max_rate_bps, Some(12_000_000));
}

#[test]
fn what_is_not_known_is_said() {
    let document = HostDocument::new(silent());
    assert_eq!((document.rate_bps, document.rate_from), (None, RateFrom::Unknown));
    assert_eq!((document.ceiling_bps, document.is_bottleneck), (None, None));
    assert!(document.ceilings.iter().all(|ceiling| ceiling.bounds.iter().all(|bound| bound.rate_bps.is_none())));
    let judged = document.families.iter().filter(|row| row.family != HostFamily::RoundTrips);
    assert!(judged.into_iter().all(|row| row.verdict == HostVerdict::Unknown));
    let text = document.text();
    for word in ["unknown", "frequency governor", "no interface", "a path of unknown rate"] {
        assert!(text.contains(word), "no {word:?} in {text}");
    }
}

#[test]
fn people_are_reported() {
    let text = with_all(talkative()).text();
    for word in [
        "interface eth0: driver ixgbe, link 10 Gbit/s",
        "held back 50 µs",
        "slot 5.0 GT/s PCIe x8",
        "in batches of 5.0, every 80 µs",
        "sub-trains of 667 packets",
        "and from there to here",
        "The hosts are the bottleneck",
        "needs CAP_NET_RAW",
        "ethtool -C eth0 adaptive-rx off rx-usecs 0",
        "undo: ethtool -C eth0 adaptive-rx off rx-usecs 50",
        "nothing was changed",
        "A note.",
    ] {
        assert!(text.contains(word), "no {word:?} in {text}");
    }
}

/// The user's word on the path goes before that of the links.
#[test]
fn a_given_rate_counts() {
    let mut found = talkative();
    found.rate = Some(BitRate::from_mbps(10));
    let document = HostDocument::new(found);
    assert_eq!((document.rate_bps, document.rate_from), (Some(10_000_000), RateFrom::Given));
    assert_eq!(row(&document.families, HostFamily::Pairs).verdict, HostVerdict::Ok);
    assert_eq!(document.is_bottleneck, Some(false));
}
