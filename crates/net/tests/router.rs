//! The client's world over a real router: network namespaces joined by virtual Ethernet. Needs root and the `ip` tool:
//! `cargo test -p narrows-net --test router -- --ignored --test-threads=1`.

#![expect(clippy::unwrap_used, reason = "a test's helpers fail as its assertions do")]

use std::fs::File;
use std::num::NonZeroU8;
use std::process::Command;
use std::time::Duration;

use estimate::probe::{Fate, HopReplyKind, Load, Probe, Then, Train, TrainId, TrainReport};
use estimate::{Event, HostFacts, Refusal, StampSource, World};
use net::client::{ConnectOptions, SocketWorld};
use net::error::{Error, PathError, PeerError};
use net::serve::{Running, ServeOptions, host_facts};
use nix::sched::{CloneFlags, setns};
use units::BitRate;

const PORT: u16 = 8620;

/// client - router - server, each in a namespace of its own, gone when dropped.
struct Lab {
    names: [String; 3],
}

fn run(command: &str) {
    let mut words = command.split_whitespace();
    let status = Command::new(words.next().unwrap()).args(words).status().unwrap();
    assert!(status.success(), "{command}");
}

impl Lab {
    fn new(label: &str) -> Self {
        let names = ["c", "r", "s"].map(|role| format!("nw{role}-{label}-{}", std::process::id()));
        for name in &names {
            run(&format!("ip netns add {name}"));
            run(&format!("ip -n {name} link set lo up"));
        }
        let lab = Self { names };
        let [client, router, server] = &lab.names;
        run(&format!(
            "ip -n {client} link add near0 type veth peer name left netns {router}"
        ));
        run(&format!(
            "ip -n {server} link add near0 type veth peer name right netns {router}"
        ));
        for (name, link, v4, v6) in [
            (client, "near0", "10.87.1.2/24", "fd87:1::2/64"),
            (router, "left", "10.87.1.1/24", "fd87:1::1/64"),
            (router, "right", "10.87.2.1/24", "fd87:2::1/64"),
            (server, "near0", "10.87.2.2/24", "fd87:2::2/64"),
        ] {
            run(&format!("ip -n {name} addr add {v4} dev {link}"));
            run(&format!("ip -n {name} addr add {v6} dev {link} nodad"));
            run(&format!("ip -n {name} link set {link} up"));
        }
        run(&format!("ip -n {client} route add default via 10.87.1.1"));
        run(&format!("ip -n {client} -6 route add default via fd87:1::1"));
        run(&format!("ip -n {server} route add default via 10.87.2.1"));
        run(&format!("ip -n {server} -6 route add default via fd87:2::1"));
        run(&format!(
            "ip netns exec {router} sysctl -qw net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1 net.ipv4.icmp_ratelimit=0 \
             net.ipv6.icmp.ratelimit=0"
        ));
        lab
    }

    /// Moves the calling thread, and those that it will start.
    fn enter(&self, role: usize) {
        let file = File::open(format!("/run/netns/{}", self.names[role])).unwrap();
        setns(file, CloneFlags::CLONE_NEWNET).unwrap();
    }

    fn world(&self, target: &str) -> (Running, SocketWorld) {
        self.enter(2);
        let mut options = ServeOptions::new(host_facts(&HostFacts::ideal()));
        options.port = PORT;
        let server = Running::start(options).unwrap();
        self.enter(0);
        (server, SocketWorld::connect(target, ConnectOptions::default()).unwrap())
    }

    fn in_router(&self, command: &str) {
        run(&format!("ip -n {} {command}", self.names[1]));
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        for name in &self.names {
            // Best effort: a namespace that is left behind holds nothing but itself.
            let _ = Command::new("ip").args(["netns", "del", name]).status();
        }
    }
}

fn train(world: &mut SocketWorld, train: Train) -> TrainReport {
    match world.send(Probe::Train(train)).unwrap() {
        Event::Train(report) => report,
        other => panic!("{other:?}"),
    }
}

#[test]
#[ignore = "needs root: network namespaces"]
fn routers_answer_packets_whose_hops_run_out() {
    let lab = Lab::new("ttl");
    for (target, router, reply_octets) in [
        ("10.87.2.2", "10.87.1.1", 28 + 100),
        ("fd87:2::2", "fd87:1::1", 48 + 100),
    ] {
        let (_server, mut world) = lab.world(target);
        for echoed in [false, true] {
            let mut wanted = Train::uniform(TrainId(1), 6, 100, Duration::from_millis(5));
            for (packet, limit) in wanted.packets.iter_mut().zip([1, 2, 1, 64, 1]) {
                packet.hop_limit = NonZeroU8::new(limit);
            }
            let wanted = if echoed { wanted.echoed() } else { wanted };
            let report = train(&mut world, wanted);
            assert_eq!((report.lost(), report.departed_by), (0, StampSource::Kernel));
            for (row, answered) in report.arrivals.iter().zip([true, false, true, false, true, false]) {
                match row.fate {
                    Fate::Answered(reply) => {
                        assert!(answered, "{row:?}");
                        assert_eq!(
                            (reply.from, reply.kind),
                            (router.parse().unwrap(), HopReplyKind::TimeExceeded)
                        );
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
#[ignore = "needs root: network namespaces"]
fn a_smaller_link_on_the_way_is_found() {
    let lab = Lab::new("mtu");
    for target in ["10.87.2.2", "fd87:2::2"] {
        lab.in_router("link set right mtu 1500");
        let (_server, mut world) = lab.world(target);
        assert_eq!(world.facts().path_mtu, 1500);
        assert_eq!(
            train(
                &mut world,
                Train::uniform(TrainId(1), 3, 1500, Duration::from_millis(5))
            )
            .lost(),
            0
        );
        lab.in_router("link set right mtu 1300");
        let report = train(
            &mut world,
            Train::uniform(TrainId(1), 3, 1500, Duration::from_millis(5)),
        );
        let mtu = Some(1300);
        assert!(
            report.arrivals.iter().any(|row| matches!(row.fate,
            Fate::Answered(reply) if reply.kind == HopReplyKind::PacketTooBig { mtu })),
            "{report:?}"
        );
        assert_eq!(world.facts().path_mtu, 1300);
        let again = world
            .send(Probe::Train(Train::uniform(
                TrainId(1),
                3,
                1500,
                Duration::from_millis(5),
            )))
            .unwrap();
        assert_eq!(again, Event::Refused(Refusal::TooLarge { max_ip_octets: 1300 }));
        assert_eq!(
            train(
                &mut world,
                Train::uniform(TrainId(1), 3, 1300, Duration::from_millis(5))
            )
            .lost(),
            0
        );
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
#[ignore = "needs root: network namespaces"]
fn a_cut_path_ends_the_measurement() {
    let lab = Lab::new("cut");
    let slow_train = Probe::Train(Train::uniform(TrainId(1), 200, 100, Duration::from_millis(100)));
    for probe in [endless(BitRate::from_mbps(10)), slow_train] {
        let (_server, mut world) = lab.world("10.87.2.2");
        let router = lab.names[1].clone();
        let cut = std::thread::spawn(move || {
            net::clock::sleep_until_ns(net::clock::now_ns() + 500_000_000);
            run(&format!("ip -n {router} link set right down"));
        });
        let begun = world.now();
        let error = world.send(probe).unwrap_err();
        let lasted = world.now().since(begun);
        cut.join().unwrap();
        assert!(
            matches!(
                error,
                Error::Path(PathError::Silent { .. }) | Error::Peer(PeerError::Closed { .. })
            ),
            "{error}"
        );
        assert!(lasted < Duration::from_secs(4), "{lasted:?} {error}");
        let begun = net::clock::now_ns();
        drop(world);
        assert!(net::clock::now_ns() - begun < 4_000_000_000);
        lab.in_router("link set right up");
    }
}

#[test]
#[ignore = "needs root: network namespaces"]
fn nobody_home() {
    let lab = Lab::new("home");
    lab.enter(0);
    let begun = net::clock::now_ns();
    // No such host on the far network: the router says so, after its own search of three seconds.
    let error = SocketWorld::connect("10.87.2.9", ConnectOptions::default()).unwrap_err();
    assert!(matches!(error, Error::Path(_)), "{error}");
    // No such network at all.
    lab.in_router("route add unreachable 10.88.0.0/16");
    let error = SocketWorld::connect("10.88.1.1", ConnectOptions::default()).unwrap_err();
    assert!(matches!(error, Error::Path(PathError::Unreachable { .. })), "{error}");
    assert!(net::clock::now_ns() - begun < 8_000_000_000);
}
