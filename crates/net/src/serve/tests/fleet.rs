//! A server of a fleet: keys by name, and the load slot for leased runs.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;

use narrows_wire::fleet_key::{self, Lease, Secret};
use narrows_wire::{Auth, ClientMessage, Proof, Psk, RefusalCode, ServerMessage, SlotKind};

use super::client::{Client, NONCE};
use super::{Running, key, refusal, start};
use crate::serve::FleetKeys;

const WEEK: u32 = 2951;
const RUN: u128 = 0x0192_0000_0000_7000_8000_0000_0000_0001;
const TENANT: Secret = Secret::new([9; 32]);

fn run(number: u128) -> uuid::Uuid {
    uuid::Uuid::from_u128(number)
}

/// As the fleet's agent writes it.
fn write(path: &Path, denied: &str, holder: Option<(u128, u64)>) {
    let weeks: Vec<serde_json::Value> = (WEEK - 2..=WEEK + 2)
        .map(|week| serde_json::json!({"week": week, "secret": fleet_key::server(&TENANT, "far", week)}))
        .collect();
    let holder = holder.map(|(number, revision)| serde_json::json!({"run": run(number), "revision": revision}));
    let denied: Vec<&str> = denied.split_whitespace().collect();
    let next = path.with_extension("next");
    fs::write(&next, serde_json::json!({"weeks": weeks, "denied": denied, "holder": holder}).to_string()).unwrap();
    fs::set_permissions(&next, Permissions::from_mode(0o600)).unwrap();
    fs::rename(&next, path).unwrap();
}

/// What the hub gives to an agent for this server.
fn key_of(agent: &str, week: u32) -> Psk {
    Psk::from_secret(&fleet_key::client(&fleet_key::server(&TENANT, "far", week), agent, week))
}

struct Fleet {
    folder: tempfile::TempDir,
    server: Running,
}

impl Fleet {
    fn start(denied: &str, holder: Option<(u128, u64)>, lease_time: Duration) -> Self {
        let folder = tempfile::tempdir().unwrap();
        write(&folder.path().join("keys"), denied, holder);
        let keys = FleetKeys::open_in(&folder.path().join("keys"), || WEEK).unwrap();
        let server = start(|options| {
            options.fleet_keys = Some(keys);
            options.limits.lease_time = lease_time;
        });
        Self { folder, server }
    }

    fn write(&self, denied: &str, holder: Option<(u128, u64)>) {
        write(&self.folder.path().join("keys"), denied, holder);
    }

    fn enter(&self, name: &str, psk: &Psk) -> Result<Client, Box<ServerMessage>> {
        Client::enter_as(self.server.addresses()[0], Some(name), Some(psk))
    }

    fn agent(&self, agent: &str) -> Client {
        self.enter(&format!("{agent}@{WEEK}"), &key_of(agent, WEEK)).unwrap()
    }

    /// The refusal of a key, in words.
    fn refused(&self, name: &str, psk: &Psk) -> String {
        words(&self.enter(name, psk).unwrap_err(), RefusalCode::Key)
    }
}

fn words(message: &ServerMessage, code: RefusalCode) -> String {
    assert_eq!(refusal(message), code, "{message:?}");
    let ServerMessage::Refused { text, .. } = message else { unreachable!("it was refused") };
    text.clone()
}

fn ask(client: &mut Client, lease: Option<Lease>) -> ServerMessage {
    client.say(&ClientMessage::Slot { kind: SlotKind::Load, beside: None, lease });
    client.hear()
}

#[test]
fn a_client_enters_by_its_own_key_of_this_week_or_one_beside_it() {
    let fleet = Fleet::start("evil", None, Duration::ZERO);
    for week in [WEEK - 1, WEEK, WEEK + 1] {
        assert!(fleet.enter(&format!("near@{week}"), &key_of("near", week)).is_ok());
    }
    for week in [WEEK - 2, WEEK + 2] {
        let text = fleet.refused(&format!("near@{week}"), &key_of("near", week));
        assert!(text.contains(&format!("week {WEEK} here")), "{text}");
    }
    // Another agent's key, another week's, and the server's own.
    let own = Psk::from_secret(&fleet_key::server(&TENANT, "far", WEEK));
    for wrong in [key_of("other", WEEK), key_of("near", WEEK - 1), own] {
        assert_eq!(fleet.refused(&format!("near@{WEEK}"), &wrong), "wrong key");
    }
    assert!(fleet.refused("near", &key_of("near", WEEK)).contains("AGENT@WEEK"));
}

/// Only who has the key of a denied agent learns that it is denied.
#[test]
fn a_denied_client_stays_out() {
    let fleet = Fleet::start("evil", None, Duration::ZERO);
    let name = format!("evil@{WEEK}");
    assert_eq!(fleet.refused(&name, &key_of("evil", WEEK)), "this client is denied here");
    assert_eq!(fleet.refused(&name, &key_of("near", WEEK)), "wrong key");
}

#[test]
fn a_proof_is_worth_nothing_in_another_session() {
    let fleet = Fleet::start("", None, Duration::ZERO);
    let greet = || {
        let mut client = Client::dial(fleet.server.addresses()[0]);
        client.hello_as(Some(&format!("near@{WEEK}")));
        match client.hear() {
            ServerMessage::Welcome { nonce, auth: Auth::Psk, .. } => (client, nonce),
            other => panic!("{other:?}"),
        }
    };
    let (mut first, ours) = greet();
    let proof: Proof = key_of("near", WEEK).client_proof(&NONCE, &ours);
    first.say(&ClientMessage::Prove { proof });
    assert!(matches!(first.hear(), ServerMessage::Session { .. }));
    let (mut second, _) = greet();
    second.say(&ClientMessage::Prove { proof });
    assert_eq!(refusal(&second.hear()), RefusalCode::Key);
    assert!(second.is_closed());
}

#[test]
fn the_load_slot_is_for_the_leased_run() {
    let fleet = Fleet::start("", Some((RUN, 7)), Duration::ZERO);
    let mut client = fleet.agent("near");
    client.take_slot(SlotKind::Light);
    let lease = |number, fence| Some(Lease { run: run(number), fence });
    let other = run(RUN + 1).to_string();
    for (asked, word) in [
        (None, "the client named none"),
        (lease(RUN + 1, 7), other.as_str()),
        (lease(RUN, 8), "at revision 7, and not yet at 8"),
    ] {
        let text = words(&ask(&mut client, asked), RefusalCode::Limit);
        assert!(text.contains(word), "{text}");
    }
    let granted = ServerMessage::GrantedScheduling { kind: SlotKind::Load };
    assert_eq!(ask(&mut client, lease(RUN, 7)), granted);
    client.say(&ClientMessage::Release { kind: SlotKind::Load });
    assert_eq!(client.hear(), ServerMessage::Released { kind: SlotKind::Load });
    // The run renewed its lease; then it ended.
    fleet.write("", Some((RUN, 12)));
    assert_eq!(ask(&mut client, lease(RUN, 7)), granted);
    client.say(&ClientMessage::Release { kind: SlotKind::Load });
    assert_eq!(client.hear(), ServerMessage::Released { kind: SlotKind::Load });
    fleet.write("", None);
    let text = words(&ask(&mut client, lease(RUN, 12)), RefusalCode::Limit);
    assert!(text.contains("leased to nobody"), "{text}");
}

/// The run may be here before the news of its lease.
#[test]
fn a_lease_that_is_not_known_yet_is_waited_for() {
    let fleet = Fleet::start("", None, Duration::from_secs(60));
    let mut client = fleet.agent("near");
    let lease = Some(Lease { run: run(RUN), fence: 7 });
    client.say(&ClientMessage::Slot { kind: SlotKind::Load, beside: None, lease });
    fleet.write("", Some((RUN, 7)));
    assert_eq!(client.hear(), ServerMessage::GrantedScheduling { kind: SlotKind::Load });
}

#[test]
fn a_file_that_changes_while_sessions_run_counts_for_them() {
    let fleet = Fleet::start("", None, Duration::ZERO);
    let (mut near, mut other) = (fleet.agent("near"), fleet.agent("other"));
    fleet.write("near", Some((RUN, 7)));
    // Whoever asks to load makes the server look at once.
    let granted = ask(&mut other, Some(Lease { run: run(RUN), fence: 7 }));
    assert_eq!(granted, ServerMessage::GrantedScheduling { kind: SlotKind::Load });
    assert!(words(&near.hear(), RefusalCode::Expired).contains("from now on"));
    assert!(near.is_closed());
    assert_eq!(fleet.refused(&format!("near@{WEEK}"), &key_of("near", WEEK)), "this client is denied here");
    // A file of no use changes nothing.
    fs::write(fleet.folder.path().join("keys"), "{").unwrap();
    assert!(fleet.enter(&format!("third@{WEEK}"), &key_of("third", WEEK)).is_ok());
}

/// What a client of version 3 says and hears.
#[test]
fn a_client_of_version_3_works_where_no_names_are_needed() {
    let right = key("the right key, long enough");
    let server = start(|options| options.psk = Some(right.clone()));
    let mut client = Client::dial(server.addresses()[0]);
    client.say_text(r#"{"hello":{"version":3,"nonce":"05050505050505050505050505050505"}}"#);
    let ServerMessage::Welcome { version: 3, nonce, auth: Auth::Psk } = client.hear() else { panic!("no welcome") };
    client.say(&ClientMessage::Prove { proof: right.client_proof(&NONCE, &nonce) });
    assert!(matches!(client.hear(), ServerMessage::Session { .. }));
    client.say_text(r#"{"slot":{"kind":"load"}}"#);
    assert_eq!(client.hear(), ServerMessage::GrantedScheduling { kind: SlotKind::Load });

    let fleet = Fleet::start("", None, Duration::ZERO);
    let mut client = Client::dial(fleet.server.addresses()[0]);
    client.say_text(r#"{"hello":{"version":3,"nonce":"05050505050505050505050505050505"}}"#);
    let text = words(&client.hear(), RefusalCode::Key);
    assert!(text.contains("upgrade narrows where the client runs"), "{text}");
    assert!(client.is_closed());
}

/// A client that names its key may do so where there is but one.
#[test]
fn a_name_is_ignored_where_keys_have_none() {
    let right = key("the right key, long enough");
    let server = start(|options| options.psk = Some(right.clone()));
    assert!(Client::enter_as(server.addresses()[0], Some("near@2951"), Some(&right)).is_ok());
}
