//! The suite over a real NATS server.

use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use futures_util::future::join_all;
use narrows_bus::nats::{Client, Options};
use narrows_bus::{Bus, Key, Permissions, Settings};

use crate::suite::cases;
use crate::world::{AGENTS, Keys, Process, World, free_address, ready};

/// A server that knows the hub, which may do all, and the agents. `disk` is in octets.
fn config(folder: &Path, address: SocketAddr, keys: &Keys, disk: u64) -> String {
    let list = |patterns: &[String]| patterns.iter().map(|one| format!("\"{one}\"")).collect::<Vec<_>>().join(", ");
    let agent = |(key, may): &(Key, Permissions)| {
        let (publish, subscribe) = (list(&may.publish), list(&may.subscribe));
        format!("{{nkey: {}, permissions: {{publish: [{publish}], subscribe: [{subscribe}]}}}}", key.public())
    };
    let agents: Vec<String> = keys.agents.iter().map(agent).collect();
    format!(
        "listen: \"{address}\"\njetstream {{store_dir: \"{}\", max_file_store: {disk}}}\n\
         authorization {{users: [{{nkey: {}}}, {}]}}\n",
        folder.display(),
        keys.hub.public(),
        agents.join(", ")
    )
}

pub(crate) async fn world(folder: &Path, settings: &Settings) -> World {
    world_within(folder, settings, DISK).await
}

async fn world_within(folder: &Path, settings: &Settings, disk: u64) -> World {
    let (address, keys) = (free_address(), Keys::new());
    let file = folder.join("nats.conf");
    std::fs::write(&file, config(folder, address, &keys, disk)).unwrap();
    let server = Process::new(move || ready(Command::new("nats-server").arg("-c").arg(&file), "Server is ready"));
    let mut clients: Vec<Arc<dyn Bus>> = Vec::new();
    let agents = AGENTS.iter().zip(&keys.agents).map(|(id, (key, _))| (*id, key));
    for (id, key) in [("hub", &keys.hub)].into_iter().chain(agents) {
        let options = Options { key: Some(key.clone()), ..Options::new(&format!("nats://{address}"), id) };
        clients.push(Arc::new(Client::connect(options).await.unwrap()));
    }
    World::new(server, clients.try_into().ok().unwrap(), settings).await
}

#[test]
#[ignore = "lab: needs nats-server"]
fn one_suite_holds_over_nats() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(join_all(cases().into_iter().map(|case| async move {
        let began = tokio::time::Instant::now();
        let folder = tempfile::tempdir().unwrap();
        let mut world = world(folder.path(), &case.settings).await;
        (case.run)(&mut world).await;
        println!("{}: {} ms", case.name, began.elapsed().as_millis());
    })));
}

/// What the hub made before plans of large fleets had room.
fn earlier(mut settings: Settings) -> Settings {
    let most = settings.stream.max_octets / 20;
    for bucket in &mut settings.buckets {
        bucket.max_octets = most.min(1_000_000_000);
        // Of plans.
        bucket.history = if bucket.name == "plan" { 2 } else { 1 };
    }
    settings
}

#[test]
#[ignore = "lab: needs nats-server"]
fn a_bus_of_an_earlier_version_grows_and_keeps_what_it_has() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let wanted = Settings::fleet(1).within(2_000_000_000);
        let folder = tempfile::tempdir().unwrap();
        let world = world(folder.path(), &earlier(wanted.clone())).await;
        assert_eq!(world.hub.write("plan", "a", "of before".into(), 0).await, Ok(1));
        world.a.publish("result.a.rtt", "1", "of before".into()).await.unwrap();
        assert_eq!(world.hub.provide(&wanted).await, Ok(()));
        assert_eq!(world.hub.read("plan", "a").await.unwrap().unwrap().value, "of before");
        let taken = world.hub.fetch("ingest", 9, std::time::Duration::from_secs(5)).await.unwrap();
        assert_eq!(taken.len(), 1);
        // 140 plans of 1 MB are more than the 100 MB of before.
        for host in 0..140 {
            let plan = vec![b'x'; 1_000_000];
            world.hub.write("plan", &format!("h{host}"), plan.into(), 0).await.unwrap();
        }
    });
}

#[test]
#[ignore = "lab: needs nats-server"]
fn a_server_without_room_to_grow_goes_on_as_it_was() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let wanted = Settings::fleet(1).within(2_000_000_000);
        let before = earlier(wanted.clone());
        let folder = tempfile::tempdir().unwrap();
        let world = world_within(folder.path(), &before, before.max_octets() + 1_000_000).await;
        assert!(before.max_octets() < wanted.max_octets());
        assert_eq!(world.hub.provide(&wanted).await, Ok(()));
        assert_eq!(world.hub.write("plan", "a", "x".into(), 0).await, Ok(1));
        // A stream that is missing still needs its room.
        let next = Settings::fleet(2).within(2_000_000_000);
        let refused = world.hub.provide(&next).await;
        assert!(matches!(&refused, Err(narrows_bus::Error::Storage(why)) if why.contains("lease_2")), "{refused:?}");
    });
}

/// More than any test needs.
const DISK: u64 = 100_000_000_000;
