//! Hops that answer, between network namespaces.

use std::num::NonZeroU8;
use std::time::Duration;

use narrows_net::single_ended::{SingleEndedOptions, SingleEndedWorld};
use narrows_net::via::Via;
use narrows_probe::World;
use narrows_probe::probes::{Fate, HopReplyKind, PeerKind};

use crate::namespaces::{NEAR, Namespaces, REMOTE, REMOTE_ADDRESSES, ROUTER_ADDRESSES, run};
use crate::single_ended::{send, train};

fn per_hop(path: &Namespaces, target: &str, via: Via) -> SingleEndedWorld {
    path.enter(NEAR);
    let options = SingleEndedOptions { per_hop: true, ..SingleEndedOptions::new(via) };
    SingleEndedWorld::connect(target, &options).unwrap()
}

/// Both hops answer each protocol, whichever IP version, in one train with packets to both under
/// way.
#[test]
#[ignore = "lab: needs namespaces"]
fn hops_answer_packets_of_one_flow() {
    let path = Namespaces::new("hops");
    for via in [Via::Udp { port: 33_434 }, Via::Icmp, Via::Tcp { port: 9 }] {
        for (remote, router) in REMOTE_ADDRESSES.into_iter().zip(ROUTER_ADDRESSES) {
            // Neighbours are found before the first packet, which would else wait for longer than a
            // round trip of the first hop.
            path.enter(NEAR);
            SingleEndedWorld::connect(remote, &SingleEndedOptions::new(Via::Icmp)).unwrap();
            let mut world = per_hop(&path, remote, via);
            let mut wanted = train(via.answering().peer_kind(), 8, 200, Duration::from_millis(5));
            for (packet, limit) in wanted.packets.iter_mut().zip([1, 2].into_iter().cycle()) {
                packet.hop_limit = NonZeroU8::new(limit);
            }
            let report = send(&mut world, wanted);
            let mut responders = [0, 0];
            for row in &report.arrivals {
                match row.fate {
                    Fate::Answered(reply) if reply.kind == HopReplyKind::TimeExceeded => {
                        assert_eq!(reply.from.to_string(), router, "{via}");
                        responders[0] += 1;
                    }
                    Fate::Answered(_) | Fate::Echoed { .. } => responders[1] += 1,
                    Fate::Received(_) | Fate::Lost => {}
                }
            }
            assert!(responders[0] == 4 && responders[1] >= 1, "{via} {remote}: {report:?}");
            assert_eq!(
                (world.responders().unmatched_replies.foreign, world.responders().unmatched_replies.short),
                (0, 0),
                "{via} {remote}"
            );
        }
    }
}

/// A remote host that drops everything keeps nobody from measuring what lies before it.
#[test]
#[ignore = "lab: needs namespaces"]
fn a_silent_remote_host_does_not_hide_the_routers() {
    let path = Namespaces::new("silent");
    run(&format!("{} route replace blackhole 10.88.1.0/24", path.ip(REMOTE)));
    let mut world = per_hop(&path, REMOTE_ADDRESSES[0], Via::Udp { port: 33_434 });
    let mut wanted = train(PeerKind::ClosedPort, 2, 100, Duration::from_millis(5));
    wanted.packets[0].hop_limit = NonZeroU8::new(1);
    wanted.packets[1].hop_limit = NonZeroU8::new(2);
    let report = send(&mut world, wanted);
    assert!(matches!(report.arrivals[0].fate, Fate::Answered(_)), "{report:?}");
    assert_eq!(report.arrivals[1].fate, Fate::Lost);
    assert!(world.facts().rtt < Duration::from_secs(1), "learned from the router");
}
