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

/// A server that knows the hub, which may do all, and the agents.
fn config(folder: &Path, address: SocketAddr, keys: &Keys) -> String {
    let list = |patterns: &[String]| patterns.iter().map(|one| format!("\"{one}\"")).collect::<Vec<_>>().join(", ");
    let agent = |(key, may): &(Key, Permissions)| {
        let (publish, subscribe) = (list(&may.publish), list(&may.subscribe));
        format!("{{nkey: {}, permissions: {{publish: [{publish}], subscribe: [{subscribe}]}}}}", key.public())
    };
    let agents: Vec<String> = keys.agents.iter().map(agent).collect();
    format!(
        "listen: \"{address}\"\njetstream {{store_dir: \"{}\"}}\n\
         authorization {{users: [{{nkey: {}}}, {}]}}\n",
        folder.display(),
        keys.hub.public(),
        agents.join(", ")
    )
}

pub(crate) async fn world(folder: &Path, settings: &Settings) -> World {
    let (address, keys) = (free_address(), Keys::new());
    let file = folder.join("nats.conf");
    std::fs::write(&file, config(folder, address, &keys)).unwrap();
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
