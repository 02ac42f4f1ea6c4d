//! A NATS server in operator mode: who is a member says a signed token, and no list of the server.

#![expect(clippy::disallowed_methods, reason = "a server in real time, and tokens with their times")]

use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use futures_util::future::join_all;
use narrows_bus::nats::{Account, Client, Operator, Options, Validity, tell_account};
use narrows_bus::{Bus, Error, Key, Permissions, Settings};

use crate::suite::cases;
use crate::world::{AGENTS, Keys, LEASES, Process, World, free_address, ready, until};

fn now_s() -> u64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).expect("after 1970").as_secs()
}

fn day() -> Validity {
    Validity { from_s: now_s(), until_s: Some(now_s() + 86_400) }
}

fn account(revoked: &[(String, u64)]) -> Account {
    Account { name: "default".to_owned(), disk_octets: 4_000_000_000, revoked: revoked.to_vec() }
}

fn server(folder: &Path, address: SocketAddr, operator: &Operator, more: &str) -> Process {
    let file = folder.join("nats.conf");
    let tokens = folder.join("jwt");
    let signed = operator.server_settings(&account(&[]), tokens.to_str().expect("text"), now_s());
    let text = format!("listen: \"{address}\"\njetstream {{store_dir: \"{}\"}}\n{signed}{more}", folder.display());
    std::fs::write(&file, text).expect("a temporary folder");
    Process::new(move || ready(Command::new("nats-server").arg("-c").arg(&file), "Server is ready"))
}

async fn client(address: SocketAddr, operator: &Operator, (id, key): (&str, &Key), may: &Permissions) -> Arc<dyn Bus> {
    let jwt = operator.user(&key.public(), id, may, day());
    let options = Options { key: Some(key.clone()), jwt: Some(jwt), ..Options::new(&format!("nats://{address}"), id) };
    Arc::new(Client::connect(options).await.expect("options that can be right"))
}

async fn world(folder: &Path, settings: &Settings) -> World {
    let (address, keys, operator) = (free_address(), Keys::new(), Operator::new());
    let server = server(folder, address, &operator, "");
    let hub = client(address, &operator, ("hub", &keys.hub), &Permissions::all()).await;
    let mut clients = vec![hub];
    for (id, (key, may)) in AGENTS.iter().zip(&keys.agents) {
        clients.push(client(address, &operator, (id, key), may).await);
    }
    World::new(server, clients.try_into().ok().expect("three"), settings).await
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime")
}

/// The suite has what an agent may not: other agents' subjects, delete, purge, roll-up.
#[test]
#[ignore = "lab: needs nats-server"]
fn one_suite_holds_over_nats_in_operator_mode() {
    runtime().block_on(join_all(cases().into_iter().map(|case| async move {
        let folder = tempfile::tempdir().expect("a folder");
        let mut world = world(folder.path(), &case.settings).await;
        (case.run)(&mut world).await;
        println!("{}", case.name);
    })));
}

/// A revoked agent is cut at once and comes back no more; another one goes on. So it stays after a
/// restart of the server.
#[test]
#[ignore = "lab: needs nats-server"]
fn whom_the_account_revokes_is_cut_and_stays_out() {
    runtime().block_on(async {
        let folder = tempfile::tempdir().expect("a folder");
        let (address, operator) = (free_address(), Operator::from_seeds(&Operator::new().seeds()).expect("seeds"));
        let mut process = server(folder.path(), address, &operator, "");
        let [a, b] = [Key::new(), Key::new()];
        let may = |id: &str| Permissions::agent(id, LEASES);
        let revoked = client(address, &operator, ("a", &a), &may("a")).await;
        let other = client(address, &operator, ("b", &b), &may("b")).await;
        for one in [&revoked, &other] {
            until(&**one, |now| now.server.is_some()).await;
        }
        let system = Key::new();
        let options = Options {
            jwt: Some(operator.system_user(&system.public(), day())),
            key: Some(system),
            ..Options::new(&format!("nats://{address}"), "system")
        };
        let began = Instant::now();
        let without_a = operator.account(&account(&[(a.public(), now_s())]), now_s() + 1);
        tell_account(&options, without_a).await.expect("the server takes it");
        until(&*revoked, |now| now.server.is_none()).await;
        let cut = began.elapsed();
        println!("cut {} ms after the hub began to tell the server", cut.as_millis());
        assert!(cut < Duration::from_secs(1), "{cut:?}");
        assert!(other.condition().borrow().server.is_some());
        process.kill();
        until(&*other, |now| now.connections > 1).await;
        tokio::time::sleep(Duration::from_secs(3)).await;
        assert!(revoked.condition().borrow().server.is_none(), "{:?}", revoked.condition().borrow());
    });
}

/// Two fleets on one server do not see each other, and neither sees the system's subjects.
#[test]
#[ignore = "lab: needs nats-server"]
fn fleets_of_one_operator_do_not_see_each_other() {
    runtime().block_on(async {
        let folder = tempfile::tempdir().expect("a folder");
        let (address, operator) = (free_address(), Operator::new());
        let second = operator.another_account();
        let _process = server(folder.path(), address, &operator, "");
        let (system, at) = (Key::new(), now_s());
        let options = Options {
            jwt: Some(operator.system_user(&system.public(), day())),
            key: Some(system),
            ..Options::new(&format!("nats://{address}"), "system")
        };
        tell_account(&options, second.account(&account(&[]), at)).await.expect("the server takes it");
        let [one, two] = [Key::new(), Key::new()];
        let first = client(address, &operator, ("hub", &one), &Permissions::all()).await;
        let foreign = client(address, &second, ("hub", &two), &Permissions::all()).await;
        for hub in [&first, &foreign] {
            until(&**hub, |now| now.server.is_some()).await;
        }
        first.provide(&Settings::fleet(1).within(100_000_000)).await.expect("streams");
        first.write("plan", "a", "secret".into(), 0).await.expect("a plan");
        let mut heard = foreign.subscribe("plan.>").await.expect("its own subjects");
        first.write("plan", "a", "secret 2".into(), 1).await.expect("a plan");
        first.publish("result.a.rtt", "1", "{}".into()).await.expect("a result");
        let read = foreign.read("plan", "a").await;
        assert!(!matches!(read, Ok(Some(_))), "{read:?}");
        assert!(matches!(foreign.fetch("ingest", 1, Duration::ZERO).await, Err(Error::Missing(_) | Error::Unanswered)));
        foreign.send("plan.own", "mine".into()).await.expect("sent");
        let first_heard = heard.next().await.expect("its own");
        assert_eq!(first_heard.subject, "plan.own", "nothing of the other fleet came before");
        // An account that nobody of this operator signed is none.
        let stranger = client(address, &Operator::new(), ("hub", &Key::new()), &Permissions::all()).await;
        tokio::time::sleep(Duration::from_secs(2)).await;
        assert!(stranger.condition().borrow().server.is_none());
    });
}
