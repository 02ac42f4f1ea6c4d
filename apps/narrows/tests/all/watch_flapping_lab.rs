//! A host with two ways out that take turns, between namespaces: people hear of it twice, whatever
//! it does for an hour.

#![expect(clippy::disallowed_methods, reason = "routes that flap in real time")]

use std::collections::BTreeMap;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::common::directory;
use crate::fleet_faults::fleet::{Part, within};
use crate::watch_faults::{Watch, program_in, target_at};

/// Two namespaces with two links between them; gone when dropped.
struct TwoDoors {
    here: String,
    far: String,
}

fn ip(arguments: &str) {
    let ended = Command::new("ip").args(arguments.split_whitespace()).output().expect("there is `ip`");
    assert!(ended.status.success(), "ip {arguments}: {ended:?}");
}

impl TwoDoors {
    fn new() -> Self {
        let name = |role: &str| format!("nww{role}-{}", std::process::id());
        let doors = Self { here: name("h"), far: name("f") };
        let (here, far) = (&doors.here, &doors.far);
        for name in [here, far] {
            ip(&format!("netns add {name}"));
            ip(&format!("-n {name} link set lo up"));
        }
        for way in [1, 2] {
            ip(&format!("-n {here} link add eth{way} type veth peer name eth{way} netns {far}"));
            ip(&format!("-n {here} addr add 10.98.{way}.1/24 dev eth{way}"));
            ip(&format!("-n {far} addr add 10.98.{way}.2/24 dev eth{way}"));
            ip(&format!("-n {here} link set eth{way} up"));
            ip(&format!("-n {far} link set eth{way} up"));
        }
        ip(&format!("-n {far} addr add 10.99.0.1/32 dev lo"));
        doors.leave_by(1);
        doors
    }

    fn leave_by(&self, way: u64) {
        ip(&format!("-n {} route replace 10.99.0.1/32 via 10.98.{way}.2 dev eth{way}", self.here));
    }
}

impl Drop for TwoDoors {
    fn drop(&mut self) {
        for name in [&self.here, &self.far] {
            // Best effort: a namespace that is left behind holds nothing but itself.
            let _ = Command::new("ip").args(["netns", "del", name]).status();
        }
    }
}

/// An hour, unless somebody asks for less.
fn minutes() -> u64 {
    std::env::var("NARROWS_TEST_MINUTES").ok().and_then(|text| text.parse().ok()).unwrap_or(60)
}

#[test]
#[ignore = "soak: needs root"]
fn an_hour_of_flapping_doors_is_told_twice() {
    let (home, doors) = (directory(), TwoDoors::new());
    let far = doors.far.clone();
    let server = Part::new("server", home.path(), move || program_in(&far, &crate::common::narrows(["serve"])));
    let rule = "[[alert]]\nname = \"route\"\nwhen = \"route_changed\"\n";
    let here = doors.here.clone();
    let settings = format!("{}{rule}", target_at("office", "10.99.0.1", "8620"));
    let watch = Watch::start(&home, &settings, move |program| program_in(&here, &program));
    within("a minute of pulses", Duration::from_secs(200), || watch.values("office", "least_round_trip") > 0);
    let began = Instant::now();
    for turn in 0.. {
        if began.elapsed() > Duration::from_secs(60 * minutes()) {
            println!("{turn} turns");
            break;
        }
        doors.leave_by(1 + turn % 2);
        std::thread::sleep(Duration::from_secs(7));
    }
    let mut reported: BTreeMap<String, usize> = BTreeMap::new();
    for line in watch.printed().iter().filter(|line| line["kind"] != "value") {
        let kind = line["event"].as_str().or_else(|| line["rule"].as_str()).unwrap_or_default();
        *reported.entry(format!("{} {kind}", line["kind"].as_str().unwrap_or_default())).or_default() += 1;
    }
    println!("{reported:?}");
    let of = |kind: &str| reported.get(kind).copied().unwrap_or(0);
    assert!(of("event egress") > 0, "nothing of it was noticed: {reported:?}");
    for kind in ["event egress", "event route", "event mtu", "event address", "alert route"] {
        assert!(of(kind) <= 2, "{kind}: {reported:?}");
    }
    for kind in ["event silent", "event server_gone", "event clock_step"] {
        assert_eq!(of(kind), 0, "{reported:?}");
    }
    drop(server);
}
