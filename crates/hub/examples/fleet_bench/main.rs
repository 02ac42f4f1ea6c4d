//! The load of `cargo xtask bench fleet`: agents that are clients of the bus and nothing else, and
//! what a hub in another process does with their results.
//!
//! * `fleet_bench members STORE SEEDS COUNT` makes that many agents members of a record that no hub
//!   uses yet, and writes the seeds of their keys.
//! * `fleet_bench load STATE SEEDS BUS SECONDS PID` connects them, and prints one figure a line:
//!   name, tab, text. `STATE` is the hub's folder, `PID` its process, `BUS` the address of NATS or
//!   `embedded`.

#![allow(clippy::print_stdout, reason = "that is what it is for")]
#![allow(clippy::unwrap_used, reason = "a benchmark that cannot go on ends")]

mod agents;
mod hub;
mod leases;
mod results;

use std::sync::Arc;
use std::time::{Duration, Instant};

use narrows_record::{NewAgent, Token};

use crate::agents::Fleet;
use crate::hub::Hub;

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    match args[..] {
        ["members", store, seeds, count] => runtime.block_on(members(store, seeds, count.parse().unwrap())),
        ["load", state, seeds, bus, seconds, pid] => {
            let hub = Hub::new(state.as_ref(), pid.parse().unwrap());
            runtime.block_on(load(hub, seeds, bus, Duration::from_secs(seconds.parse().unwrap())));
        }
        _ => panic!("fleet_bench members STORE SEEDS COUNT | load STATE SEEDS BUS SECONDS PID"),
    }
}

/// Ten hosts a site: `s000-0` to `s000-9`.
fn name(number: usize) -> String {
    format!("s{:03}-{}", number / 10, number % 10)
}

fn figure(name: &str, text: impl std::fmt::Display) {
    println!("{name}\t{text}");
}

#[expect(clippy::disallowed_methods, reason = "a benchmark measures real time")]
fn now() -> Instant {
    Instant::now()
}

async fn members(store: &str, seeds: &str, count: usize) {
    let record = narrows_record::open(store).await.unwrap();
    let now_ms = i64::try_from(narrows_hub::wall_clock().as_millis()).unwrap();
    let uses = u32::try_from(count).unwrap();
    let token = Token { hash: [7; 32], made_ms: now_ms, not_after_ms: now_ms + 3_600_000, uses };
    record.add_token(&token).await.unwrap();
    let mut text = String::new();
    for number in 0..count {
        let key = narrows_bus::Key::new();
        let agent = NewAgent {
            name: name(number).parse().unwrap(),
            public_key: key.public(),
            labels: std::collections::BTreeMap::new(),
            address: format!("10.{}.{}.{}:8620", number / 60_000, number / 250 % 240, number % 250),
        };
        record.join(&token.hash, &agent, now_ms).await.unwrap();
        text += &(key.seed() + "\n");
    }
    std::fs::write(seeds, text).unwrap();
}

async fn load(hub: Hub, seeds: &str, bus: &str, time: Duration) {
    let seeds = std::fs::read_to_string(seeds).unwrap();
    let began = now();
    let fleet = Fleet::connect(&seeds, &hub, bus).await;
    figure("agents connected", format!("{} in {:.1} s", fleet.agents.len(), began.elapsed().as_secs_f64()));
    hub.apply(fleet.agents.len(), &fleet).await;
    fleet.plans();
    let signer = narrows_bus::Key::from_seed(seeds.lines().next().unwrap()).unwrap();
    let ends = [0, 1].map(|at| Arc::clone(&fleet.agents[at]));
    let leases = tokio::spawn(leases::takes(ends, signer, time));
    let cpu = hub.cpu();
    fleet.steady(time).await;
    let used = hub.cpu().saturating_sub(cpu);
    figure("hub processor, steady", format!("{:.2} of a core", used.as_secs_f64() / time.as_secs_f64()));
    let leases = leases.await.unwrap();
    assert_eq!(leases.backed_off, 0, "somebody took a key of the bench");
    leases.figures();
    fleet.backlog(&hub, bus == "embedded", (time.as_secs() * 300).clamp(2_000, 20_000)).await;
    hub.matrix().await;
    figure("hub memory, highest", format!("{} MB", hub.memory() / 1_000));
}

/// The median and the 99th of a hundred, in ms.
fn quantiles(mut times: Vec<Duration>) -> String {
    times.sort();
    let ms = |percent: usize| times.get(times.len() * percent / 100).map_or(f64::NAN, |time| time.as_secs_f64() * 1e3);
    format!("p50 {:.0} ms, p99 {:.0} ms, of {}", ms(50), ms(99), times.len())
}
