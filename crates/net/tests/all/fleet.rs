//! The client's world against a server of a fleet.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::time::Duration;

use narrows_net::client::{ConnectOptions, SocketWorld};
use narrows_net::error::{CallerError, Error};
use narrows_net::serve::{FleetKeys, Running, ServeOptions, host_facts, read_secret_file};
use narrows_probe::probes::{Probe, Then, Train, TrainId};
use narrows_probe::{Event, HostFacts, Refusal, World};
use narrows_wire::Direction;
use narrows_wire::fleet_key::{self, Lease, Secret};

use crate::loopback::{gap, options, segment, train};

const RUN: uuid::Uuid = uuid::Uuid::from_u128(7);

fn file(folder: &tempfile::TempDir, name: &str, content: &str) -> PathBuf {
    let path = folder.path().join(name);
    fs::write(&path, content).unwrap();
    fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
    path
}

/// No train, so it needs the load slot.
fn load(world: &mut SocketWorld) -> Event {
    world.send(Probe::Load(segment(10, Then::Finish))).unwrap()
}

#[test]
fn an_agent_measures_and_loads_with_its_key_and_its_lease() {
    let folder = tempfile::tempdir().unwrap();
    let server_key = fleet_key::server(&Secret::new([9; 32]), "far", 2951);
    let keys = serde_json::json!({
        "weeks": [{"week": 2951, "secret": server_key}], "denied": [], "holder": {"run": RUN, "revision": 3}
    });
    let mut serve = ServeOptions::loopback(host_facts(&HostFacts::ideal()));
    serve.fleet_keys = Some(FleetKeys::open_in(&file(&folder, "keys", &keys.to_string()), || 2951).unwrap());
    serve.limits.lease_time = Duration::ZERO;
    (serve.limits.session.light_rate_bps, serve.limits.session.light_burst_octets) = (40_000_000, 100_000);
    let server = Running::start(serve).unwrap();

    let plain = options(&server, Direction::Forward);
    let connect = |options: &ConnectOptions| SocketWorld::connect("127.0.0.1", options.clone());
    let Err(Error::Caller(CallerError::KeyRefused { reason, .. })) = connect(&plain) else { panic!("let in") };
    assert!(reason.contains("--key-name"), "{reason}");

    let secret = fleet_key::client(&server_key, "near", 2951).to_hex();
    let psk = Some(read_secret_file(&file(&folder, "near.key", &secret)).unwrap());
    let named = ConnectOptions { psk, key_name: Some("near@2951".parse().unwrap()), ..plain };
    let other = ConnectOptions { key_name: Some("other@2951".parse().unwrap()), ..named.clone() };
    assert!(matches!(connect(&other), Err(Error::Caller(CallerError::KeyRefused { .. }))));

    let mut light = connect(&named).unwrap();
    assert_eq!(light.version(), narrows_wire::VERSION);
    assert_eq!(train(&mut light, &Train::uniform(TrainId(1), 10, 1500, gap(100))).lost(), 0);
    // Each train has nearly all octets that are light at once, so the next one waits for its turn.
    for id in 2..5 {
        assert_eq!(train(&mut light, &Train::uniform(TrainId(id), 60, 1500, gap(20))).lost(), 0);
    }
    assert!(matches!(load(&mut light), Event::Refused(Refusal::ForbiddenByPeer)));
    assert!(light.refused_because().is_some_and(|text| text.contains("leased runs")), "{:?}", light.refused_because());

    let leased = ConnectOptions { lease: Some(Lease { run: RUN, fence: 3 }), ..named };
    let mut loading = connect(&leased).unwrap();
    assert!(matches!(load(&mut loading), Event::Load(_)));
    // Both directions at once: the second session shares what the first was granted.
    let mut reverse = connect(&ConnectOptions { direction: Direction::Reverse, ..leased }).unwrap();
    assert_eq!(loading.share_load_slot(&mut reverse).unwrap(), Ok(()));
    assert!(matches!(load(&mut reverse), Event::Load(_)));
}
