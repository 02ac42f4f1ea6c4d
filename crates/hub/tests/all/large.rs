//! A thousand hosts that nobody runs: what the hub makes of so many.

use std::collections::{BTreeMap, BTreeSet};

use narrows_bus::Bus;
use narrows_fleet::keys::Name;
use narrows_fleet::message::{Plan, Signed};
use narrows_record::NewAgent;

use crate::world::{BEGIN, World, name};

/// All members of a fleet of this size, `host-0000` with a key that the test has.
async fn fleet(hosts: usize) -> (World, narrows_bus::Key) {
    let mut world = World::new().await;
    let token = world.hub.token(1_000, "test").await.unwrap();
    let key = narrows_bus::Key::new();
    for number in 0..hosts {
        let public_key = if number == 0 { key.public() } else { narrows_bus::Key::new().public() };
        let address = format!("198.51.100.{}:8620", number % 250);
        let labels = BTreeMap::new();
        let agent = NewAgent { name: name(&format!("host-{number:04}")), public_key, labels, address };
        world.record.join(&token.hash(), &agent, BEGIN).await.unwrap();
    }
    world.restart().await;
    (world, key)
}

/// The plans of all hosts that are on the bus.
async fn plans(world: &World, hosts: usize) -> Vec<Plan> {
    let mut plans = Vec::new();
    for number in 0..hosts {
        let Some(entry) = world.bus.read("plan", &format!("host-{number:04}")).await.unwrap() else { continue };
        let signed: Signed = serde_json::from_slice(&entry.value).unwrap();
        plans.push(serde_json::from_str(&signed.message).unwrap());
    }
    plans
}

/// A test that gives each host a light run to `host-0000`, or to `host-0001`.
fn configuration(command: &str) -> String {
    format!(
        "[groups]\nall = [\"host-*\"]\nfirst = [\"host-0000\", \"host-0001\"]\n\
         [[test]]\npairs = \"all to first\"\nrun = \"{command}\"\nevery = \"6 h\"\n"
    )
}

fn with(plans: &[Plan], command: &str) -> usize {
    let words: Vec<&str> = command.split(' ').collect();
    plans.iter().filter(|plan| plan.directed.iter().any(|one| one.command == words)).count()
}

/// The site gives up a request after ten seconds, and takes its work with it.
#[tokio::test(flavor = "multi_thread")]
async fn a_configuration_is_accepted_at_once_and_its_plans_follow() {
    const HOSTS: usize = 1_000;
    let (world, _) = fleet(HOSTS).await;
    let first = world.hub.apply(&configuration("rtt -c 11"), "test").await.unwrap();
    assert_eq!((first.agents, world.hub.unwritten().await), (1_000, 1_000));
    assert!(plans(&world, HOSTS).await.is_empty(), "nobody waited for a plan");
    // Another one comes while the plans of the first are being written.
    let hub = std::sync::Arc::clone(&world.hub);
    let making = tokio::spawn(async move { hub.plan().await.unwrap() });
    while (world.bus.read("plan", "host-0000").await.unwrap(), world.bus.read("plan", "host-0001").await.unwrap())
        == (None, None)
    {
        tokio::task::yield_now().await;
    }
    let second = world.hub.apply(&configuration("rtt -c 12"), "test").await.unwrap();
    assert!(second.serial > first.serial && world.hub.unwritten().await > 0);
    assert_eq!(making.await.unwrap(), first.serial);
    assert_eq!(with(&plans(&world, HOSTS).await, "rtt -c 11"), HOSTS);
    assert_eq!(world.hub.plan().await.unwrap(), second.serial);
    let last = plans(&world, HOSTS).await;
    assert_eq!((with(&last, "rtt -c 11"), with(&last, "rtt -c 12")), (0, HOSTS));
    assert!(last.iter().all(|plan| plan.serial == second.serial));
    assert_eq!(world.hub.unwritten().await, 0);
}

#[test]
#[ignore = "soak: a thousand hosts"]
fn plans_of_a_large_fleet_fit_a_message() {
    tokio::runtime::Runtime::new().unwrap().block_on(thousand());
}

#[expect(clippy::print_stdout, reason = "the figures are worth reading")]
async fn thousand() {
    const HOSTS: usize = 1_000;
    let (world, key) = fleet(HOSTS).await;
    for what in ["new", "unchanged"] {
        let began = tokio::time::Instant::now();
        world.hub.plan().await.unwrap();
        println!("{HOSTS} plans, {what}: {} ms", began.elapsed().as_millis());
    }
    let bus = world.connect(&key);
    crate::world::until(&bus, |now| now.server.is_some()).await;
    let entry = bus.read("plan", "host-0000").await.unwrap().unwrap();
    let signed: Signed = serde_json::from_slice(&entry.value).unwrap();
    let plan: Plan = serde_json::from_str(&signed.message).unwrap();
    println!("a plan has {} octets, and {} peers", entry.value.len(), plan.peers.len());
    assert!(entry.value.len() < 500_000 && plan.hosts() == 1_000);
    // Two days of the mesh, and the fifty whose capacity is measured daily.
    let mesh = narrows_fleet::mesh::Mesh::new(1_000, plan.seed);
    let visits = (0..48).flat_map(|epoch| mesh.visits(plan.place, epoch)).map(|visit| visit.target);
    let place = |name: &Name| plan.peers.iter().find(|peer| peer.name == *name).and_then(|peer| peer.place).unwrap();
    let near: BTreeSet<u32> = visits.chain(plan.directed.iter().map(|one| place(&one.target))).collect();
    let with_keys = plan.peers.iter().filter(|peer| !peer.keys.is_empty()).filter_map(|peer| peer.place);
    assert_eq!((plan.directed.len(), with_keys.collect::<BTreeSet<u32>>()), (50, near));
    // And the host itself.
    assert_eq!(plan.peer_at(plan.place).map(|peer| &peer.name), Some(&plan.agent));
    assert!(plan.peers.iter().all(|peer| peer.keys.is_empty() == (peer.name == plan.agent)));
}
