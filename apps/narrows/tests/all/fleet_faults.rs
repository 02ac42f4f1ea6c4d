//! Each part of a fleet is killed, stopped and filled: what was sent is stored once, no two runs
//! load one host, and what is lost is counted.

#![expect(clippy::disallowed_methods, reason = "processes in real time, with their deadlines")]

pub(crate) mod bridge;
pub(crate) mod fleet;
pub(crate) mod postgres;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use narrows_agent::{Bounds, Spool};
use narrows_stat::SplitMix64;
use nix::sys::signal::Signal;

use self::fleet::{Fleet, Part, agent_name, fill, waited, within};
use crate::common::text;

/// Kills of each part; the design asks for 100.
fn kills() -> usize {
    std::env::var("NARROWS_TEST_KILLS").ok().and_then(|text| text.parse().ok()).unwrap_or(100)
}

/// Light runs without end: each of these commands, over each pair, once a minute.
pub(crate) fn busy(commands: usize) -> String {
    let test = |number: usize| {
        format!("[[test]]\npairs = \"all of every\"\nrun = \"rtt --budget={}MB\"\nevery = \"1 min\"\n", number + 1)
    };
    "[groups]\nevery = [\"h*\"]\n".to_owned() + &(0..commands).map(test).collect::<String>()
}

/// A round trip an hour over each pair, and nothing else.
pub(crate) const QUIET: &str =
    "[groups]\nall = [\"h*\"]\n[[test]]\npairs = \"all of all\"\nrun = \"rtt\"\nevery = \"1 h\"\n";

/// Until all agents are there, and go by a plan.
pub(crate) fn ready(fleet: &Fleet, agents: usize) {
    within("all agents", Duration::from_secs(180), || {
        fleet.online() == agents && (0..agents).all(|agent| fleet.own(agent)["plan_serial"].as_u64() > Some(0))
    });
}

fn pause(random: &mut SplitMix64, longest_ms: u64) {
    std::thread::sleep(Duration::from_millis(random.next_u64() % longest_ms));
}

/// Watches which hosts are loaded: how many runs did, and those at once that have a host in common.
fn watch(home: &Path, ports: &[String], stop: &AtomicBool) -> (usize, Vec<String>) {
    let (mut seen, mut overlaps) = (BTreeSet::new(), Vec::new());
    while !stop.load(Ordering::Relaxed) {
        let loads = fleet::loads(home);
        let mut hosts = BTreeSet::new();
        for (process, source, port) in &loads {
            let target = ports.iter().position(|one| one == port).map(agent_name).unwrap_or_default();
            seen.insert(*process);
            if !hosts.insert(source.clone()) || !hosts.insert(target) {
                overlaps.push(format!("{loads:?}"));
            }
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    (seen.len(), overlaps)
}

const AGENTS: usize = 3;

#[test]
#[ignore = "soak: needs nats-server, postgres"]
fn every_part_is_killed_and_nothing_is_lost_or_doubled() {
    let seed = std::env::var("NARROWS_TEST_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or(1);
    println!("NARROWS_TEST_SEED={seed}, {} kills of each part", kills());
    let mut random = SplitMix64::new(seed);
    let mut fleet = Fleet::large(AGENTS);
    ready(&fleet, AGENTS);
    fleet.apply_what_fits(&busy(8));
    let mut turns: Vec<usize> = (0..4 * kills()).map(|turn| turn % 4).collect();
    for last in (1..turns.len()).rev() {
        turns.swap(last, usize::try_from(random.next_u64() % (last as u64 + 1)).expect("a place"));
    }
    let stop = AtomicBool::new(false);
    let mut orders: Vec<Part> = Vec::new();
    let (home, ports) = (fleet.home.path().to_owned(), (0..AGENTS).map(|agent| fleet.port(agent)).collect::<Vec<_>>());
    let (loads, overlaps) = std::thread::scope(|scope| {
        let watching = scope.spawn(|| watch(&home, &ports, &stop));
        for (turn, part) in turns.into_iter().enumerate() {
            if turn % 6 == 0 {
                let source = turn / 6 % AGENTS;
                orders.push(fleet.order(source, (source + 1) % AGENTS, "throughput -t 2"));
            }
            pause(&mut random, 3_000);
            let agent = usize::try_from(random.next_u64()).unwrap_or(turn) % AGENTS;
            kill_one(&mut fleet, part, agent, &mut random);
            fleet.tend();
        }
        // It works again by itself. Whoever watches is told to stop before anything is judged: a
        // scope waits for its threads.
        let mut last = fleet.order(0, 1, "throughput -t 2");
        let after = waited(Duration::from_secs(240), || {
            fleet.tend();
            last.tend_failed();
            last.ended() == Some(true)
        });
        stop.store(true, Ordering::Relaxed);
        assert!(after.is_some(), "no load in 240 s after all kills: {}", last.said());
        watching.join().expect("it only looks")
    });
    drop(orders);
    println!("{loads} loading runs were seen");
    assert!(overlaps.is_empty(), "{} of {loads}: {}", overlaps.len(), overlaps[0]);
    assert!(loads > 0, "no run loaded anything");
    fleet.apply("");
    let took = settle(&mut fleet);
    println!("all spools empty after {:.0} s", took.as_secs_f64());
    let all = same(&mut fleet);
    println!("{all} results sent, {all} stored, each once");
}

fn kill_one(fleet: &mut Fleet, part: usize, agent: usize, random: &mut SplitMix64) {
    match part {
        0 => {
            fleet.hub.kill();
            pause(random, 2_000);
            fleet.hub.start();
        }
        1 => {
            fleet.agents[agent].kill();
            pause(random, 2_000);
            fleet.agents[agent].start();
        }
        2 => {
            let nats = fleet.nats.as_mut().expect("there is NATS");
            nats.kill();
            pause(random, 2_000);
            nats.start();
        }
        _ => {
            let postgres = fleet.postgres.as_mut().expect("there is PostgreSQL");
            postgres.kill();
            pause(random, 2_000);
            postgres.start();
        }
    }
}

/// Until every spool is empty.
pub(crate) fn settle(fleet: &mut Fleet) -> Duration {
    within("all results are stored", Duration::from_secs(240), || {
        fleet.tend();
        (0..fleet.agents.len()).all(|agent| fleet.own(agent)["spool_runs"] == 0)
    })
}

/// What the agents sent is what the record has, every number once; how many those are.
pub(crate) fn same(fleet: &mut Fleet) -> u64 {
    let mut all = 0;
    for agent in 0..fleet.agents.len() {
        fleet.agents[agent].end();
        let spool = Spool::open(&fleet.path(&agent_name(agent)).join("spool.db"), Bounds::default()).expect("a spool");
        let (waiting, newest) = (spool.waiting().expect("read"), spool.newest().expect("read"));
        assert_eq!((waiting.runs, waiting.lost), (0, 0), "{}", agent_name(agent));
        let asked = format!(
            "select count(*), count(distinct run.seq), min(run.seq), max(run.seq) from run \
             join pair on pair.id = run.pair where pair.source = '{}'",
            agent_name(agent)
        );
        let stored = fleet.postgres.as_ref().expect("there is PostgreSQL").sql("fleet", &asked);
        assert_eq!(stored, format!("{newest}|{newest}|1|{newest}"), "{}", agent_name(agent));
        all += newest;
    }
    let refused = fleet.postgres.as_ref().expect("there is PostgreSQL").sql("fleet", "select count(*) from refused");
    assert_eq!(refused, "0");
    all
}

/// Starts a load of a minute, and says how long after `fault` it went on.
fn stops_after(fleet: &mut Fleet, fault: impl FnOnce(&mut Fleet)) -> Duration {
    let order = fleet.order(0, 1, "throughput -t 60");
    let loading = |fleet: &Fleet| !fleet::loads(fleet.home.path()).is_empty();
    within("the load begins", Duration::from_secs(90), || loading(fleet));
    std::thread::sleep(Duration::from_secs(4));
    fault(fleet);
    let began = Instant::now();
    within("the load ends", Duration::from_secs(30), || !loading(fleet));
    drop(order);
    began.elapsed()
}

#[test]
#[ignore = "soak: a minute of each fault"]
fn loading_stops_when_the_bus_is_gone_or_says_nothing() {
    let mut fleet = Fleet::embedded(2);
    ready(&fleet, 2);
    let gone = stops_after(&mut fleet, |fleet| fleet.hub.kill());
    fleet.hub.start();
    within("the hub is back", Duration::from_secs(60), || fleet.status().is_some());
    // The bus in the hub is a new one: the order waits until leases are given again.
    let stopped = stops_after(&mut fleet, |fleet| fleet.hub.signal(Signal::SIGSTOP));
    fleet.hub.signal(Signal::SIGCONT);
    println!(
        "loading ended {:.1} s after the bus was killed, {:.1} s after it was stopped",
        gone.as_secs_f64(),
        stopped.as_secs_f64()
    );
    // A lease of 10 s, and the time of our own look.
    for lasted in [gone, stopped] {
        assert!(lasted < Duration::from_millis(10_300), "{lasted:?}");
    }
    within("its results are stored", Duration::from_secs(120), || {
        (0..2).all(|agent| fleet.own(agent)["spool_runs"] == 0)
    });
}

#[test]
#[ignore = "soak: needs root"]
fn a_full_disk_costs_what_is_counted() {
    // The hub's disk: results wait with the agents.
    let mut fleet = Fleet::embedded(2);
    ready(&fleet, 2);
    fleet.hub.end();
    let disk = Tmpfs::over(&fleet.path("hub"), 24);
    fleet.hub.start();
    within("the hub answers", Duration::from_secs(60), || fleet.status().is_some());
    fleet.apply_what_fits(&busy(8));
    let ballast = fill(&fleet.path("hub").join("ballast"));
    within("results wait", Duration::from_secs(180), || fleet.own(0)["spool_runs"].as_u64() > Some(0));
    drop(ballast);
    std::fs::remove_file(fleet.path("hub").join("ballast")).expect("it is ours");
    within("they are stored", Duration::from_secs(180), || {
        fleet.hub.tend();
        (0..2).all(|agent| fleet.own(agent)["spool_runs"] == 0)
    });
    assert_eq!(fleet.own(0)["spool_lost"], 0);
    // An agent's disk: what it cannot keep is lost, and counted.
    fleet.agents[0].end();
    let state = fleet.path("h0");
    let own = Tmpfs::over(&state, 4);
    fleet.agents[0].start();
    within("it is back", Duration::from_secs(60), || fleet.own(0)["plan_serial"].as_u64() > Some(0));
    let ballast = fill(&state.join("ballast"));
    let lost = || {
        let status = fleet.status().unwrap_or_default();
        let agents = status["agents"].as_array().cloned().unwrap_or_default();
        agents.iter().find(|agent| agent["name"] == "h0").and_then(|agent| agent["spool_lost"].as_u64()).unwrap_or(0)
    };
    within("losses are counted", Duration::from_secs(180), || lost() > 0);
    assert!(fleet.agents[0].said().contains("spool"), "{}", fleet.agents[0].said());
    drop(ballast);
    std::fs::remove_file(state.join("ballast")).expect("it is ours");
    let before = newest(&state);
    within("it keeps results again", Duration::from_secs(180), || newest(&state) > before);
    println!("{} results were lost, and counted", lost());
    fleet.agents[0].end();
    fleet.hub.end();
    drop((disk, own));
}

#[test]
#[ignore = "soak: needs root, nats-server, postgres"]
fn full_disks_of_nats_and_postgresql_cost_nothing_but_time() {
    let mut fleet = Fleet::large(2);
    ready(&fleet, 2);
    let waits = |fleet: &Fleet| (0..2).all(|agent| fleet.own(agent)["spool_runs"].as_u64() > Some(2));
    // The record's disk.
    let files = fleet.postgres.as_ref().expect("there is PostgreSQL").files();
    fleet.postgres.as_mut().expect("there is PostgreSQL").kill();
    let disk = Tmpfs::over(&files, 128);
    fleet.postgres.as_mut().expect("there is PostgreSQL").start();
    fleet.apply_what_fits(&busy(8));
    let ballast = fill(&files.join("ballast"));
    within("results wait", Duration::from_secs(300), || waits(&fleet));
    drop(ballast);
    std::fs::remove_file(files.join("ballast")).expect("it is ours");
    // It ends itself where it cannot write its log; an operator starts it again.
    fleet.postgres.as_mut().expect("there is PostgreSQL").kill();
    fleet.postgres.as_mut().expect("there is PostgreSQL").start();
    println!("PostgreSQL: all stored after {:.0} s", settle(&mut fleet).as_secs_f64());
    // The bus's. NATS switches its streams off until it is started again. It ends with 1 when it is
    // asked to.
    let nats = fleet.path("nats");
    fleet.nats.as_mut().expect("there is NATS").kill();
    let own = Tmpfs::over(&nats, 600);
    fleet.nats.as_mut().expect("there is NATS").start();
    within("the bus is back", Duration::from_secs(240), || (0..2).all(|agent| fleet.own(agent)["spool_runs"] == 0));
    let ballast = fill(&nats.join("ballast"));
    within("results wait", Duration::from_secs(300), || waits(&fleet));
    assert!(fleet::loads(fleet.home.path()).is_empty());
    drop(ballast);
    std::fs::remove_file(nats.join("ballast")).expect("it is ours");
    fleet.nats.as_mut().expect("there is NATS").kill();
    fleet.nats.as_mut().expect("there is NATS").start();
    println!("NATS: all stored after {:.0} s", settle(&mut fleet).as_secs_f64());
    fleet.apply("");
    settle(&mut fleet);
    println!("{} results sent and stored, each once", same(&mut fleet));
    fleet.nats.as_mut().expect("there is NATS").kill();
    fleet.postgres.as_mut().expect("there is PostgreSQL").kill();
    drop((disk, own));
}

fn newest(state: &Path) -> u64 {
    Spool::open(&state.join("spool.db"), Bounds::default()).and_then(|spool| spool.newest()).unwrap_or(0)
}

/// A small disk over a folder, with what was in it.
struct Tmpfs(PathBuf);

impl Tmpfs {
    fn over(folder: &Path, mebibytes: usize) -> Self {
        let script = format!(
            "set -e; owner=$(stat -c %u:%g \"$0\"); cp -a \"$0\" \"$0.copy\"; mount -t tmpfs -o size={mebibytes}m,mode=700 tmpfs \"$0\"; cp -a \"$0.copy/.\" \"$0/\"; chown $owner \"$0\""
        );
        let done = std::process::Command::new("sh").args(["-c", &script, text(folder)]).output().expect("a shell");
        assert!(done.status.success(), "{done:?}");
        Self(folder.to_owned())
    }
}

impl Drop for Tmpfs {
    fn drop(&mut self) {
        // Also if a part of the fleet still has it open.
        let _ = std::process::Command::new("umount").arg("-l").arg(&self.0).status();
    }
}
