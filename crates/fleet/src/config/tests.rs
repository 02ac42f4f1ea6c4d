use std::collections::BTreeMap;
use std::time::Duration;

use narrows_units::{BitRate, Octets};

use super::{Agent, Command, Config, ConfigError};
use crate::keys::Name;

const TEXT: &str = r#"
[sites.ams]
hosts = ["ams-*"]
access = { down = "1 Gbit/s", up = "200 Mbit/s", budget = "50 GB/day" }
[sites.fra]
hosts = ["fra-1"]
[groups]
core = ["ams-1", "fra-1"]
edge = { label = "role=edge", except = ["edge-9"] }
[[test]]
pairs = "core to edge"
run = "throughput -P 4 -t 10"
every = "6 h"
[[test]]
pairs = "all of core"
run = "rtt"
every = "5 min"
[[test]]
pairs = [["ams-1", "edge-9"]]
run = "available"
every = "1 h"
"#;

fn name(text: &str) -> Name {
    text.parse().unwrap()
}

fn agents() -> Vec<Agent> {
    let agent = |text: &&str| {
        let labels = if text.starts_with("edge") { vec![("role".to_owned(), "edge".to_owned())] } else { Vec::new() };
        Agent { name: name(text), labels: labels.into_iter().collect() }
    };
    ["ams-1", "ams-2", "fra-1", "edge-1", "edge-2", "edge-9"].iter().map(agent).collect()
}

fn resolve(text: &str) -> Result<super::Fleet, ConfigError> {
    Config::read(text)?.resolve(&agents(), 5, 0)
}

fn error(text: &str) -> String {
    resolve(text).unwrap_err().to_string()
}

#[test]
fn the_example_of_the_manual_means_these_pairs() {
    let fleet = resolve(TEXT).unwrap();
    let pairs = |test: usize| {
        fleet.tests[test].pairs.iter().map(|(from, to)| format!("{from}>{to}")).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(pairs(0), "ams-1>edge-1 ams-1>edge-2 fra-1>edge-1 fra-1>edge-2");
    assert_eq!(pairs(1), "ams-1>fra-1 fra-1>ams-1");
    assert_eq!(pairs(2), "ams-1>edge-9");
    let loads: Vec<_> = fleet.tests.iter().map(|test| (test.command.loads(), test.every)).collect();
    let minutes = |count: u64| Duration::from_secs(60 * count);
    assert_eq!(loads, [(true, minutes(360)), (false, minutes(5)), (false, minutes(60))]);
    assert_eq!(fleet.tests[0].command.words(), ["throughput", "-P", "4", "-t", "10"]);
    let access = fleet.sites[&name("ams")].access.unwrap();
    assert_eq!((access.down, access.up), (BitRate::from_gbps(1), BitRate::from_mbps(200)));
    assert_eq!(access.per_day, Some(Octets::new(50_000_000_000)));
    assert_eq!(fleet.site_of(&name("ams-2")), Some(&name("ams")));
    assert_eq!(fleet.site_of(&name("edge-1")), None);
}

#[test]
fn samples_change_with_the_epoch_and_come_round() {
    let text = "[groups]\nall = [\"h*\"]\n[[test]]\npairs = \"sample of all\"\nrun = \"available\"\nevery = \"1 h\"";
    let config = Config::read(text).unwrap();
    let agents: Vec<_> =
        (0..20).map(|number| Agent { name: name(&format!("h{number}")), labels: BTreeMap::new() }).collect();
    let pairs = |epoch| config.resolve(&agents, 5, epoch).unwrap().tests.remove(0).pairs;
    assert_eq!(pairs(0).len(), 20 * 6);
    assert_ne!(pairs(0), pairs(1));
    let mut all: Vec<_> = (0..4).flat_map(pairs).collect();
    all.sort();
    all.dedup();
    assert_eq!(all.len(), 20 * 19);
}

#[test]
fn unknown_names_are_said_where_they_stand() {
    for (from, to, message) in [
        ("\"core to edge\"", "\"cors to edge\"", "test 1: there is no group \"cors\"; did you mean \"core\"?"),
        ("\"all of core\"", "\"all of everything\"", "test 2: there is no group \"everything\""),
        ("[\"ams-1\", \"fra-1\"]", "[\"asm-11\"]", "groups.core: there is no host \"asm-11\""),
        ("[\"fra-1\"]", "[\"fra-2\"]", "sites.fra.hosts: there is no host \"fra-2\"; did you mean \"fra-1\"?"),
        (
            "except = [\"edge-9\"]",
            "except = [\"edge-8\"]",
            "groups.edge.except: there is no host \"edge-8\"; did you mean \"edge-1\"?",
        ),
        ("[[\"ams-1\", \"edge-9\"]]", "[[\"ams-1\", \"x\"]]", "test 3: there is no host \"x\""),
        (
            "\"throughput -P",
            "\"throughputs -P",
            "test 1: there is no kind of run \"throughputs\"; did you mean \"throughput\"?",
        ),
    ] {
        assert!(TEXT.contains(from), "{from}");
        assert_eq!(error(&TEXT.replace(from, to)), message);
    }
}

#[test]
fn what_cannot_be_is_refused() {
    for (from, to, message) in [
        ("[\"fra-1\"]", "[\"*-1\"]", "host \"ams-1\" belongs to the sites \"ams\" and \"fra\"; it can belong to one"),
        (
            "role=edge",
            "role=",
            "groups.edge: \"role=\" selects nothing; write \"KEY=VALUE\", \"KEY!=VALUE\" or \"KEY\", with commas between",
        ),
        ("50 GB/day", "50 GB", "sites.ams.access: a budget is like \"50 GB/day\""),
        ("\"200 Mbit/s\"", "\"0\"", "sites.ams.access: a link without capacity"),
        ("\"5 min\"", "\"5 s\"", "test 2: every: from 1 min to 840 h (35 days)"),
        ("role=edge", "role=none", "test 1: \"core to edge\" is no pair of different hosts"),
        (
            "[\"ams-1\", \"edge-9\"]",
            "[\"ams-1\", \"ams-1\"]",
            "test 3: \"ams-1 to ams-1\" is no pair of different hosts",
        ),
        (
            "\"ams-*\"",
            "\"ams *\"",
            "sites.ams.hosts: \"ams \" is no name: 1 to 64 of the letters a-z, A-Z, 0-9, \"-\" and \"_\"",
        ),
    ] {
        assert!(TEXT.contains(from), "{from}");
        assert_eq!(error(&TEXT.replace(from, to)), message);
    }
    assert!(
        error(&TEXT.replace("all of core", "core with core"))
            .starts_with("test 2: \"core with core\" are no pairs; write")
    );
    for (from, to, part) in [
        ("every = \"1 h\"", "often = \"1 h\"", "unknown field `often`"),
        ("edge = {", "edge = { labels = \"x\",", "a group is a list of hosts"),
        ("pairs = \"core to edge\"", "pairs = 3", "pairs are \"A to B\""),
    ] {
        let message = error(&TEXT.replace(from, to));
        assert!(message.contains(part), "{message}");
    }
}

#[test]
fn all_of_a_large_group_is_refused_and_a_sample_is_not() {
    let agent = |number| Agent { name: name(&format!("h{number}")), labels: BTreeMap::new() };
    let agents: Vec<_> = (0..3_001).map(agent).collect();
    let resolve = |pairs: &str| {
        let text =
            format!("[groups]\nall = [\"*\"]\n[[test]]\npairs = \"{pairs} of all\"\nrun = \"rtt\"\nevery = \"1 h\"");
        Config::read(&text).unwrap().resolve(&agents, 5, 0).map(|fleet| fleet.tests[0].pairs.len())
    };
    let refused = "test 1: \"all of all\" are more than nine million pairs; use \"sample of\"";
    assert_eq!(resolve("all").unwrap_err().to_string(), refused);
    assert_eq!(resolve("sample"), Ok(3_001 * 17));
}

const ALERTS: &str = r#"
[[alert]]
name = "core-low"
when = "available < 20 Mbit/s"
clear = "> 22 Mbit/s"
notify = ["chat"]
of = "core to edge"
[[alert]]
name = "silent"
when = "silent > 5 min"
"#;

#[test]
fn alerts_are_about_the_paths_that_they_name() {
    let fleet = resolve(&format!("{TEXT}{ALERTS}")).unwrap();
    let [low, silent] = &fleet.alerts[..] else { panic!("{:?}", fleet.alerts) };
    let is_about = |source: &str, target: &str| low.is_about(&name(source), &name(target));
    assert!(is_about("ams-1", "edge-1") && !is_about("edge-1", "ams-1") && !is_about("ams-1", "edge-9"));
    assert!(silent.is_about(&name("edge-1"), &name("ams-1")));
    assert_eq!((low.rule.for_values, low.rule.clear_for, &low.rule.notify[..]), (2, 3, &["chat".to_owned()][..]));
}

#[test]
fn an_alert_that_makes_no_sense_is_named() {
    for (was, is, said) in [
        ("< 20 Mbit/s", "< 20 ms", "alert \"core-low\": when: \"available < 20 ms\" is no condition"),
        ("available <", "queueing <", "alert \"core-low\": when: \"queueing < 20 Mbit/s\" is no condition"),
        ("available < 20 Mbit/s\"\nclear = \"> 22 Mbit/s", "loss > 1 %", "alert \"core-low\": when: runs have no loss"),
        ("core to edge", "core to egde", "alert \"core-low\": of: there is no group \"egde\""),
        ("core to edge", "sample of edge", "alert \"core-low\": of: a sample"),
        ("clear =", "claer =", "alert \"core-low\": unknown field `claer`"),
        ("\"silent\"", "\"core-low\"", "alert \"core-low\": is there twice"),
    ] {
        let found = error(&format!("{TEXT}{}", ALERTS.replacen(was, is, 1)));
        assert!(found.starts_with(said), "{found}");
    }
}

#[test]
fn what_an_alert_changes_is_said() {
    let alerts = |text: &str| resolve(&format!("{TEXT}{text}")).unwrap().alerts;
    let (none, both) = (alerts(""), alerts(ALERTS));
    let new = super::alert_changes(&none, &both);
    assert_eq!(
        new[0],
        "alert core-low: new: when = available < 20 Mbit/s, for = 2, clear = > 22 Mbit/s, clear_for = 3, \
         repeat = never, notify = chat, of = core to edge; 4 paths"
    );
    assert!(new.len() == 2 && new[1].ends_with("of = every path; every path"), "{new:?}");
    assert_eq!(super::alert_changes(&both, &none), ["alert core-low: gone", "alert silent: gone"]);
    assert_eq!(super::alert_changes(&both, &both), [""; 0]);
    let other = ALERTS.replace("20 Mbit/s", "10 Mbit/s").replace("core to edge", "all of core");
    assert_eq!(
        super::alert_changes(&both, &alerts(&other)),
        [
            "alert core-low: when: available < 20 Mbit/s -> available < 10 Mbit/s",
            "alert core-low: of: core to edge -> all of core",
            "alert core-low: about 4 paths -> 2 paths",
        ]
    );
}

#[test]
fn a_budget_beyond_a_light_run_makes_a_run_load() {
    let read = |text: &str| Command::read("command", text);
    for (text, words, loads) in [
        ("available", 1, false),
        ("available --budget 4MB", 3, false),
        ("available --budget 4 MB, 20 Mbit/s -R", 4, false),
        ("available --budget 30s", 3, false),
        ("available --budget 4000001", 3, true),
        ("available -R --budget 100 MB, 10 s", 4, true),
        ("capacity --budget=1GB", 2, true),
        ("throughput -t 5", 3, true),
    ] {
        let command = read(text).unwrap();
        assert_eq!((command.words().len(), command.loads()), (words, loads), "{text}");
    }
    for text in ["available --budget", "available --budget -R", "available --budget much", "available --budget 1MB,2MB"]
    {
        assert!(read(text).is_err(), "{text}");
    }
}
