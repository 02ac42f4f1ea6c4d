//! The client's world over a real router: network namespaces joined by virtual Ethernet. Needs root
//! and the `ip` tool: `cargo test -p narrows-net router:: -- --ignored --test-threads=1`.

use crate::namespaces;

use std::num::NonZeroU8;
use std::time::Duration;

use narrows_net::client::{ConnectOptions, SocketWorld};
use narrows_net::error::{Error, PathError, PeerError};
use narrows_net::serve::{Running, ServeOptions, host_facts};
use narrows_probe::probes::{Fate, HopReplyKind, Load, Probe, Then, Train, TrainId, TrainReport};
use narrows_probe::{Event, HostFacts, Refusal, StampSource, World};
use narrows_units::BitRate;

use namespaces::{NEAR, Namespaces, REMOTE, REMOTE_ADDRESSES, ROUTER, ROUTER_ADDRESSES, run};

const PORT: u16 = 8620;

fn world(path: &Namespaces, target: &str) -> (Running, SocketWorld) {
    path.enter(REMOTE);
    let mut options = ServeOptions::new(host_facts(&HostFacts::ideal()));
    options.port = PORT;
    let server = Running::start(options).unwrap();
    path.enter(NEAR);
    (server, SocketWorld::connect(target, ConnectOptions::default()).unwrap())
}

fn in_router(path: &Namespaces, command: &str) {
    run(&format!("{} {command}", path.ip(ROUTER)));
}

fn train(world: &mut SocketWorld, train: Train) -> TrainReport {
    match world.send(Probe::Train(train)).unwrap() {
        Event::Train(report) => report,
        other => panic!("{other:?}"),
    }
}

#[test]
#[ignore = "lab: needs namespaces"]
fn routers_answer_packets_whose_hops_run_out() {
    let path = Namespaces::new("ttl");
    for ((target, router), reply_octets) in REMOTE_ADDRESSES.into_iter().zip(ROUTER_ADDRESSES).zip([28 + 100, 48 + 100])
    {
        let (_server, mut world) = world(&path, target);
        for echoed in [false, true] {
            let mut wanted = Train::uniform(TrainId(1), 6, 100, Duration::from_millis(5));
            for (packet, limit) in wanted.packets.iter_mut().zip([1, 2, 1, 64, 1]) {
                packet.hop_limit = NonZeroU8::new(limit);
            }
            let wanted = if echoed { wanted.echoed() } else { wanted };
            let report = train(&mut world, wanted);
            assert_eq!((report.lost(), report.departed_by), (0, StampSource::Kernel), "{report:?}");
            for (row, answered) in report.arrivals.iter().zip([true, false, true, false, true, false]) {
                match row.fate {
                    Fate::Answered(reply) => {
                        assert!(answered, "{row:?}");
                        assert_eq!((reply.from, reply.kind), (router.parse().unwrap(), HopReplyKind::TimeExceeded));
                        // Linux quotes the whole of a short packet behind the ICMP header.
                        assert_eq!(reply.reply_ip_octets, reply_octets);
                        assert!(reply.returned > row.departed);
                    }
                    Fate::Received(_) => assert!(!answered && !echoed, "{row:?}"),
                    Fate::Echoed { .. } => assert!(!answered && echoed, "{row:?}"),
                    Fate::Lost => panic!("{row:?}"),
                }
            }
        }
    }
}

#[test]
#[ignore = "lab: needs namespaces"]
fn a_smaller_link_on_the_way_is_found() {
    let path = Namespaces::new("mtu");
    for target in REMOTE_ADDRESSES {
        in_router(&path, "link set right mtu 1500");
        let (_server, mut world) = world(&path, target);
        assert_eq!(world.facts().path_mtu, 1500);
        assert_eq!(train(&mut world, Train::uniform(TrainId(1), 3, 1500, Duration::from_millis(5))).lost(), 0);
        in_router(&path, "link set right mtu 1300");
        let report = train(&mut world, Train::uniform(TrainId(1), 3, 1500, Duration::from_millis(5)));
        let mtu = Some(1300);
        assert!(
            report.arrivals.iter().any(|row| matches!(row.fate,
            Fate::Answered(reply) if reply.kind == HopReplyKind::PacketTooBig { mtu })),
            "{report:?}"
        );
        assert_eq!(world.facts().path_mtu, 1300);
        let again = world.send(Probe::Train(Train::uniform(TrainId(1), 3, 1500, Duration::from_millis(5)))).unwrap();
        assert_eq!(again, Event::Refused(Refusal::TooLarge { max_ip_octets: 1300 }));
        assert_eq!(train(&mut world, Train::uniform(TrainId(1), 3, 1300, Duration::from_millis(5))).lost(), 0);
    }
}

fn endless(rate: BitRate) -> Probe {
    Probe::Load(Load {
        rate,
        ip_octets: 1200,
        burst: 1,
        streams: 1,
        duration: Duration::from_secs(20),
        status_every: Duration::from_millis(50),
        then: Then::Finish,
    })
}

#[test]
#[ignore = "lab: needs namespaces"]
fn a_cut_path_ends_the_measurement() {
    let path = Namespaces::new("cut");
    let slow_train = Probe::Train(Train::uniform(TrainId(1), 200, 100, Duration::from_millis(100)));
    for probe in [endless(BitRate::from_mbps(10)), slow_train] {
        let (_server, mut world) = world(&path, REMOTE_ADDRESSES[0]);
        let router = path.ip(ROUTER);
        let cut = std::thread::spawn(move || {
            narrows_net::clock::sleep_until_ns(narrows_net::clock::now_ns() + 500_000_000);
            run(&format!("{router} link set right down"));
        });
        let begun = world.now();
        let error = world.send(probe).unwrap_err();
        let lasted = world.now().since(begun);
        cut.join().unwrap();
        assert!(
            matches!(error, Error::Path(PathError::Silent { .. }) | Error::Peer(PeerError::Closed { .. })),
            "{error}"
        );
        assert!(lasted < Duration::from_secs(15), "{lasted:?} {error}");
        let begun = narrows_net::clock::now_ns();
        drop(world);
        assert!(narrows_net::clock::now_ns() - begun < 15_000_000_000);
        in_router(&path, "link set right up");
    }
}

#[test]
#[ignore = "lab: needs namespaces"]
fn nobody_home() {
    let path = Namespaces::new("home");
    path.enter(NEAR);
    let begun = narrows_net::clock::now_ns();
    // No such host on the far network: the router says so, after its own search of three seconds.
    let error = SocketWorld::connect("10.88.2.9", ConnectOptions::default()).unwrap_err();
    assert!(matches!(error, Error::Path(_)), "{error}");
    // No such network at all.
    in_router(&path, "route add unreachable 10.99.0.0/16");
    let error = SocketWorld::connect("10.99.1.1", ConnectOptions::default()).unwrap_err();
    assert!(matches!(error, Error::Path(PathError::Unreachable { .. })), "{error}");
    assert!(narrows_net::clock::now_ns() - begun < 60_000_000_000);
}
