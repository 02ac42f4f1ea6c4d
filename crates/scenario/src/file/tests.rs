use std::time::Duration;

use narrows_units::{BitRate, Octets};
use proptest::prelude::*;

use super::*;
use crate::{
    Aggregation, Arrivals, Channels, Cross, Dealing, Inside, Loss, Queue, Service, Slots, Source, TruthFrom, Workload,
};

const WHOLE: &str = r#"
name = "whole"
about = "every field once"
seed = 7
warm_up = "500 ms"
offloads = true

[[hop]]
name = "access"
rate = "1 Gbit/s"
delay = "1 ms"
framing = { vlan_tags = 1 }

[[hop]]
rate = "100 Mbit/s"
queue = "128 kB"
mtu = 9000
layer2 = [{ rate = "1 Gbit/s", queue = "64 packets" }]
shaper = { rate = "50 Mbit/s", burst = "64 kB", queue = "unlimited" }
loss = { ratio = 0.01, mean_burst = 3.0 }
jitter = { exponential = "10 us" }
reorder = { ratio = 0.001, by = "1 ms" }
schedule = [{ at = "5 s", rate = "10 Mbit/s" }, { at = "2 s", rate = "20 Mbit/s" }]
router = { icmp_delay = "50 us", icmp_per_second = 1.0, icmp_max_octets = 56 }
cross = [
  { arrivals = "poisson", rate = "30 Mbit/s", ip_octets = 1500 },
  { arrivals = "pareto", rate = "5 Mbit/s", mean_on = "10 ms", peak = "50 Mbit/s", ip_octets = "imix" },
  { elastic = "cubic", flows = 3, extra_rtt = "20 ms" },
]

[[cross]]
first_hop = 0
last_hop = 1
arrivals = "cbr"
rate = "1 Mbit/s"
ip_octets = [[40, 1], [1500, 3]]
until = "10 s"

[sender]
send_cost = "1 us"
copy_rate = "8 Gbit/s"
interface_rate = "10 Gbit/s"

[receiver]
clock = { offset = "-40 ms", skew_ppm = 20, granularity = "1 us", steps = [{ at = "1 s", by = "-3 ms" }] }
interrupt_cost = "30 us"
coalescing = { timer = "50 us", frames = 64 }
tcp_receive = "256 kB"
answers = { icmp_per_second = 1.0, icmp_delay = "3 us" }

[[expect]]
method = "pathload"
ratio = [0.9, 1.1]
params = { streams = 12, quick = true }

[[expect]]
method = "pathrate"
refused = 0.9
"#;

#[test]
fn every_field_is_read() {
    let scenario = Scenario::from_toml(WHOLE).unwrap();
    assert_eq!((scenario.seed, scenario.warm_up), (7, Duration::from_millis(500)));
    assert!(scenario.offloads);
    let hop = &scenario.forward[1];
    assert_eq!(hop.queue, Queue::Octets(Octets::new(128_000)));
    assert_eq!(hop.layer2[0].queue, Queue::Packets(64));
    assert_eq!(hop.bucket.unwrap().queue, Some(Queue::Unlimited));
    assert_eq!(hop.loss, Loss::Bursty { ratio: 0.01, mean_burst: 3.0 });
    assert_eq!(hop.schedule[0].at, Duration::from_secs(2), "the schedule is put in order");
    assert_eq!(hop.router.icmp_limit, Some((1.0, 6)));
    assert_eq!(scenario.cross.len(), 4);
    assert!(matches!(scenario.cross[1].source, Source::Open { arrivals: Arrivals::ParetoOnOff { .. }, .. }));
    assert_eq!((scenario.cross[3].first_hop, scenario.cross[3].last_hop), (0, 1));
    assert_eq!(scenario.receiver.clock.offset, Delta::from_nanos(-40_000_000));
    assert_eq!(scenario.receiver.tcp_receive_octets, 256_000);
    assert_eq!(scenario.receiver.answers.icmp_limit, Some((1.0, 6)));
    assert_eq!(scenario.receiver.answers.icmp_delay, Duration::from_micros(3));
    assert_eq!(scenario.sender.answers.icmp_limit, None);
    assert_eq!(scenario.sender.interface_rate, Some(BitRate::from_gbps(10)));
    // 1500 octets at 8 Gbit/s.
    assert_eq!(scenario.sender.send_time(1500), Duration::from_nanos(1000 + 1500));
    assert_eq!(scenario.receiver.interrupt_cost, Duration::from_micros(30));
    assert_eq!(
        scenario.expect[0].params,
        [("quick".to_owned(), "true".to_owned()), ("streams".to_owned(), "12".to_owned())]
    );
    assert_eq!(scenario.reverse.len(), 2, "the way back mirrors the way there");
    assert_eq!(scenario.reverse[0].rate, BitRate::from_mbps(100));
}

#[test]
fn a_rate_of_zero_is_no_traffic_and_sizes_may_be_uniform() {
    let text = r#"
name = "x"
[[hop]]
rate = "5 Mbit/s"
cross = [
  { arrivals = "poisson", rate = "0 Mbit/s" },
  { arrivals = "pareto", rate = "0", mean_on = "1 ms", peak = "1 Mbit/s" },
  { arrivals = "cbr", rate = "1 Mbit/s", ip_octets = { uniform = [64, 1500] }, generated_by = "hosts" },
]
[[cross]]
first_hop = 0
last_hop = 0
arrivals = "cbr"
rate = "0 bit/s"
"#;
    let scenario = Scenario::from_toml(text).unwrap();
    let [cross] = &scenario.cross[..] else { panic!("{:?}", scenario.cross) };
    let Source::Open { sizes, .. } = &cross.source else { panic!("{cross:?}") };
    assert_eq!(sizes.uniform_range(), Some((64, 1500)));
    assert_eq!(cross.generated_by, Some(crate::GeneratedBy::Hosts));
    let load = scenario.truth(PathDirection::Forward).utilisation(0).unwrap();
    // 38 octets of framing beside each packet of 782 on average.
    assert!((load - 0.2 * (782.0 + 38.0) / 782.0).abs() < 1e-9, "{load}");
    let odd = text.replace("[64, 1500]", "[1500, 64]");
    assert!(Scenario::from_toml(&odd).unwrap_err().to_string().contains("uniform"));
}

#[test]
fn flows_are_written_as_cross_traffic_is() {
    let flows = Cross::list_from_toml(
        "[[cross]]\narrivals = 'cbr'\nrate = '1 Mbit/s'\n[[cross]]\nelastic = 'cubic'\nflows = 2\n[[cross]]\narrivals = 'cbr'\nrate = '0'",
    )
    .unwrap();
    assert_eq!(flows.len(), 2);
    for (text, word) in [
        ("[[cross]]\narrivals = 'cbr'\nrate = '1 M'\nfirst_hop = 1", "first_hop"),
        ("[[cross]]\nelastic = 'cubic'\nflows = 0", "at least one flow"),
        ("[[cross]]\narrivals = 'pareto'\nrate = '2 M'\npeak = '1 M'\nmean_on = '1 ms'", "peak above"),
        ("name = 'x'", "name"),
    ] {
        let error = Cross::list_from_toml(text).unwrap_err().to_string();
        assert!(error.contains(word), "{error}");
    }
}

#[test]
fn connections_carry_what_is_written() {
    let flows = Cross::list_from_toml(
        "cross = [{ elastic = 'cubic', flows = 4, pacing = '5 Mbit/s' },
          { elastic = 'cubic', web = { rate = '10 Mbit/s', mean = '60 kB' } },
          { elastic = 'bbr', flows = 2, video = { rate = '4 Mbit/s', chunk = '4 s' } },
          { elastic = 'reno', backup = '20 MB', from = '2 s' }]",
    );
    let elastic = |cross: &Cross| match &cross.source {
        Source::Elastic(elastic) => (elastic.pacing, elastic.workload),
        Source::Open { .. } => panic!("{cross:?}"),
    };
    let found: Vec<_> = flows.unwrap().iter().map(elastic).collect();
    let (mbps, film) = (BitRate::from_mbps, Duration::from_secs(4));
    let expected = [
        (Some(mbps(5)), Workload::Greedy),
        (None, Workload::Web { rate: mbps(10), mean: Octets::new(60_000), sigma: 1.5 }),
        (None, Workload::Video { rate: mbps(4), chunk: film }),
        (None, Workload::Backup { payload: Octets::new(20_000_000) }),
    ];
    assert_eq!(found, expected);
    for (text, word) in [
        ("elastic = 'cubic'\nbackup = '1 MB'\nvideo = { rate = '1 M', chunk = '4 s' }", "one of"),
        ("elastic = 'cubic'\nflows = 2\nweb = { rate = '1 M', mean = '1 kB' }", "flows"),
        ("elastic = 'cubic'\nweb = { rate = '1 M', mean = '1 kB', shape = 2 }", "shape"),
        ("arrivals = 'cbr'\nrate = '1 M'\npacing = '1 M'", "elastic"),
    ] {
        let error = Cross::list_from_toml(&format!("[[cross]]\n{text}")).unwrap_err().to_string();
        assert!(error.contains(word), "{text}: {error}");
    }
}

#[test]
fn a_truth_can_be_counted() {
    let text = |truth: &str| {
        format!("name = 'x'\n[[hop]]\nrate = '5 M'\n[[expect]]\nmethod = 'm'\nratio = [0.9, 1.1]\n{truth}")
    };
    let truth = |line: &str| Scenario::from_toml(&text(line)).unwrap().expect[0].truth;
    assert_eq!((truth(""), truth("truth = 'counted'")), (TruthFrom::Undisturbed, TruthFrom::Counted));
    assert!(Scenario::from_toml(&text("truth = 'guessed'")).unwrap_err().to_string().contains("guessed"));
}

/// What is wrong, and a word of the message that tells where.
#[test]
fn nonsense_is_refused_with_its_place() {
    for (text, word) in [
        ("name = 'x'", "no hop"),
        ("name = 'x'\n[[hop]]\nrate = '-5 Mbit/s'", "hop 0: rate"),
        ("name = 'x'\n[[hop]]\nrate = '0'", "hop 0: rate"),
        ("name = 'x'\n[[hop]]\nrate = '5 MB/s'", "MB/s"),
        ("name = 'x'\n[[hop]]\nrate = '5 M'\nspeed = 3", "speed"),
        ("name = 'a b'\n[[hop]]\nrate = '5 M'", "name"),
        ("name = 'x'\n[[hop]]\nrate = '5 M'\nloss = { ratio = 1.5 }", "loss"),
        ("name = 'x'\n[[hop]]\nrate = '5 M'\nqueue = '100 octets'", "queue"),
        ("name = 'x'\n[[hop]]\nrate = '5 M'\nmtu = 20", "mtu"),
        (
            "name = 'x'\n[[hop]]\nrate = '5 M'\n[[cross]]\nfirst_hop = 1\nlast_hop = 0\narrivals = 'cbr'\nrate = '1 M'",
            "loop",
        ),
        (
            "name = 'x'\n[[hop]]\nrate = '5 M'\n[[cross]]\nfirst_hop = 0\nlast_hop = 3\narrivals = 'cbr'\nrate = '1 M'",
            "no hop 3",
        ),
        ("name = 'x'\n[[hop]]\nrate = '5 M'\ncross = [{ arrivals = 'cbr' }]", "rate"),
        ("name = 'x'\n[[hop]]\nrate = '5 M'\ncross = [{ elastic = 'reno', rate = '1 M' }]", "elastic"),
        ("name = 'x'\n[[hop]]\nrate = '5 M'\n[[expect]]\nmethod = 'm'", "exactly one"),
        ("name = 'x'\n[[hop]]\nrate = '5 M'\n[[expect]]\nmethod = 'm'\nratio = [1.1, 0.9]", "low <= high"),
        ("name = 'x'\n[[hop]]\nrate = '5 M'\npolicer = { rate = '1 M', burst = '9 kB', queue = '9 kB' }", "no queue"),
        ("\u{0}", "cannot be read"),
    ] {
        let error = Scenario::from_toml(text).expect_err(text).to_string();
        assert!(error.contains(word), "{text:?} gave {error:?}, which lacks {word:?}");
    }
}

proptest! {
    /// Any damage to a good file is an error or another good scenario, never a panic.
    #[test]
    fn damaged_files_do_not_panic(at in 0usize..WHOLE.len(), with in any::<u8>(), cut in any::<bool>()) {
        let mut bytes = WHOLE.as_bytes().to_vec();
        if cut { bytes.truncate(at) } else { bytes[at] = with }
        if let Ok(scenario) = Scenario::from_toml(&String::from_utf8_lossy(&bytes)) {
            let truth = scenario.truth(PathDirection::Forward);
            let _ = (truth.capacity(1500), truth.available(1500), truth.base_rtt(100, 100));
        }
    }
}

fn with_hop(fields: &str) -> Result<Scenario, ScenarioError> {
    Scenario::from_toml(&format!("name = \"links\"\n[[hop]]\nrate = \"100 Mbit/s\"\n{fields}"))
}

#[test]
fn links_have_four_kinds() {
    use crate::{Burst, Link};
    let kind = |fields: &str| with_hop(fields).unwrap().forward[0].link;
    assert_eq!(kind(""), Link::RealTime);
    assert_eq!(kind("link = \"real_time\""), Link::RealTime);
    assert_eq!(kind("link = \"veth\""), Link::Veth);
    assert_eq!(kind("link = \"htb\""), Link::Htb(Burst::OnePacket));
    let burst = Burst::Octets(Octets::new(3_000));
    assert_eq!(kind("link = \"tbf\"\nburst = \"3 kB\""), Link::Tbf(burst));
    // The reverse direction is the same cable.
    let scenario = with_hop("link = \"tbf\"\nburst = \"3 kB\"").unwrap();
    assert_eq!(scenario.reverse[0].link, Link::Tbf(burst));
    for link in [Link::RealTime, Link::Tbf(burst), Link::Htb(Burst::OnePacket), Link::Veth] {
        let text = format!("link = {:?}", link.name());
        assert_eq!(std::mem::discriminant(&kind(&text)), std::mem::discriminant(&link), "{text}");
    }
}

#[test]
fn bursts_are_checked() {
    // 1500 octets on Ethernet are 1538.
    assert!(with_hop("link = \"htb\"\nburst = \"1538 B\"").is_ok());
    let refused = [
        ("link = \"htb\"\nburst = \"1537 B\"", "hop 0: burst: must hold at least one packet"),
        ("burst = \"3 kB\"", "hop 0: burst: belongs to links of the kinds tbf and htb"),
        ("link = \"veth\"\nburst = \"3 kB\"", "hop 0: burst: belongs to links of the kinds"),
        (
            "link = \"tbf\"\nburst = \"3 kB\"\nshaper = { rate = \"10 Mbit/s\", burst = \"5 kB\" }",
            "hop 0: burst: a hop with a shaper has the shaper's burst",
        ),
        ("link = \"netem\"", "unknown variant `netem`"),
    ];
    for (fields, why) in refused {
        let error = with_hop(fields).unwrap_err().to_string();
        assert!(error.contains(why), "{fields}: {error}");
    }
}

fn hop(lines: &str) -> Result<Scenario, ScenarioError> {
    Scenario::from_toml(&format!("name = \"x\"\n[[hop]]\nrate = \"100 Mbit/s\"\n{lines}\n"))
}

#[test]
fn links_that_do_not_send_one_packet_after_the_other() {
    let service = |lines: &str| hop(lines).unwrap().forward[0].service;
    assert_eq!(service(""), Service::Single);
    assert_eq!(
        service("channels = { count = 4, by = \"flow\" }"),
        Service::Channels(Channels { count: 4, by: Dealing::Flow })
    );
    assert_eq!(
        service("aggregation = { contention = \"200 us\", jitter = \"150 us\", inside = \"at_once\" }"),
        Service::Aggregation(Aggregation {
            frames: 64,
            octets: Octets::new(65_535),
            contention: Duration::from_micros(200),
            jitter: Duration::from_micros(150),
            inside: Inside::AtOnce,
        })
    );
    assert_eq!(
        service("slots = { period = \"1 ms\", grant = \"8 ms\" }"),
        Service::Slots(Slots { period: Duration::from_millis(1), grant: Duration::from_millis(8) })
    );
}

#[test]
fn what_no_such_link_can_be_is_refused() {
    let channels = "channels = { count = 2, by = \"packet\" }";
    for lines in [
        "channels = { count = 0, by = \"packet\" }".to_owned(),
        "channels = { count = 2, by = \"colour\" }".to_owned(),
        "channels = { count = 2 }".to_owned(),
        "slots = { period = \"0 ms\" }".to_owned(),
        "aggregation = { contention = \"2 s\" }".to_owned(),
        "aggregation = { contention = \"0 us\", octets = \"1 kB\" }".to_owned(),
        "aggregation = { contention = \"0 us\", frames = 0 }".to_owned(),
        format!("{channels}\nslots = {{ period = \"1 ms\" }}"),
        format!("{channels}\nschedule = [{{ at = \"1 s\", rate = \"1 Mbit/s\" }}]"),
        format!("{channels}\nlayer2 = [{{ rate = \"1 Gbit/s\" }}]"),
        format!("{channels}\nlink = \"tbf\""),
    ] {
        assert!(hop(&lines).is_err(), "{lines}");
    }
}

const PLAIN: &str = "name = \"plain\"\n[[hop]]\nrate = \"1 Gbit/s\"\n";
const ONE: &str = include_str!("../../../../hosts/busy.toml");
const BOTH: &str = include_str!("../../../../hosts/busy-both-ends.toml");

fn with_profiles(text: &str) -> Result<Scenario, String> {
    let read = |name: &str| match name {
        "one.toml" => Ok(ONE.to_owned()),
        "both.toml" => Ok(BOTH.to_owned()),
        "old.toml" => Ok(ONE.replace("host-profile/1", "host-profile/0")),
        _ => Err("no such file".to_owned()),
    };
    Scenario::from_toml_with(text, read).map_err(|error| error.to_string())
}

/// Both hosts, or one of them; clocks and the rest stay.
#[test]
fn hosts_play_profiles() {
    let played = |host: &crate::Host| host.profile.as_ref().map(|profile| profile.name.clone());
    let both = with_profiles(&format!("hosts = \"both.toml\"\n{PLAIN}")).unwrap();
    assert_eq!(
        (played(&both.sender), played(&both.receiver)),
        (Some("busy-both-ends".to_owned()), Some("busy-both-ends".to_owned()))
    );
    let text =
        format!("{PLAIN}[receiver]\nprofile = \"one.toml\"\nclock = {{ skew_ppm = 3 }}\ntcp_receive = \"1 MB\"\n");
    let one = with_profiles(&text).unwrap();
    assert_eq!((played(&one.sender), played(&one.receiver)), (None, Some("busy".to_owned())));
    assert!((one.receiver.clock.skew_ppm - 3.0).abs() < 1e-9);
    let profile = one.receiver.profile.clone().unwrap();
    let slow =
        Scenario::from_toml(&format!("{PLAIN}[sender]\nsend_cost = \"3 us\"\ntcp_receive = \"1 MB\"\n")).unwrap();
    let over = slow.hosts(&profile).validate().unwrap();
    assert_eq!((over.sender.send_cost, over.sender.tcp_receive_octets), (Duration::ZERO, 1_000_000));
    assert_eq!(played(&over.sender), Some("busy".to_owned()));
}

/// Errors name the place, the file and the key.
#[test]
fn profiles_that_cannot_be_played() {
    let host = |name: &str| format!("{PLAIN}[sender]\nprofile = \"{name}\"\n");
    for (text, words) in [
        (host("none.toml"), &["sender: profile", "none.toml", "no such file"][..]),
        (host("old.toml"), &["sender: profile", "old.toml", "host-profile/0"]),
        (host("both.toml"), &["sender: profile", "one machine", "hosts ="]),
        (host("one.toml") + "send_cost = \"1 us\"\n", &["sender: profile", "send_cost"]),
        (host("one.toml") + "coalescing = { timer = \"1 us\", frames = 2 }\n", &["sender: profile", "coalescing"]),
        (format!("hosts = \"one.toml\"\n{}", host("one.toml")), &["hosts", "write one"]),
        (format!("hosts = 7\n{PLAIN}"), &["hosts"]),
    ] {
        let error = with_profiles(&text).expect_err(words[0]);
        assert!(words.iter().all(|word| error.contains(word)), "{words:?} are not in: {error}");
    }
    let alone = Scenario::from_toml(&host("one.toml")).unwrap_err().to_string();
    assert!(alone.contains("give the scenario as a file"), "{alone}");
}
