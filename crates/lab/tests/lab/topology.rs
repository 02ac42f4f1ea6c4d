//! Labs of real routers, switches and shapers.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use lab::{Lab, LabOptions, Node};
use scenario::{Burst, Hop, Link, Queue, Scenario};
use units::{BitRate, Octets};

use crate::bench::{MS, alone};

fn up(scenario: &Scenario) -> Lab {
    let options = LabOptions {
        uncalibrated: true,
        ..LabOptions::default()
    };
    Lab::up(scenario, options).unwrap()
}

fn shaped() -> Scenario {
    let tbf = Hop::rate(BitRate::from_mbps(20)).link(Link::Tbf(Burst::OnePacket));
    let htb = Hop::rate(BitRate::from_mbps(50)).link(Link::Htb(Burst::Octets(Octets::new(6_000))));
    Scenario::new("shaped")
        .hop(Hop::rate(BitRate::from_gbps(1)).link(Link::Veth))
        .hop(tbf.queue(Queue::Packets(100)))
        .hop(htb.queue(Queue::Octets(Octets::new(150_000))))
        .validate()
        .unwrap()
}

#[test]
#[ignore = "lab: needs namespaces and tc; run by cargo xtask lab"]
fn shapers_are_calibrated() {
    let _alone = alone();
    let lab = Lab::up(&shaped(), LabOptions::default()).unwrap();
    let description = lab.description();
    println!("{}", serde_json::to_string_pretty(&description).unwrap());
}
