//! Who was thrown out is cut off, and what the hub did not sign is refused and known.

#![expect(clippy::disallowed_methods, reason = "what is due, by the clock")]

use std::process::Command;
use std::time::Duration;

use narrows_bus::{Bus as _, Key, nats};
use narrows_fleet::message::{Plan, PlannedRun, Signed};

use crate::common::run;
use crate::fleet_faults::QUIET;
use crate::fleet_faults::fleet::{Fleet, loads, within};

/// Whether a process has a connection to a port of this machine.
fn is_connected(process: u32, port: &str) -> bool {
    let asked = Command::new("ss").args(["-tnpH", "state", "established", "dport", "=", &format!(":{port}")]).output();
    let said = asked.expect("there is `ss`").stdout;
    String::from_utf8_lossy(&said).contains(&format!("pid={process},"))
}

#[test]
#[ignore = "lab: processes in real time"]
fn a_revoked_agent_is_cut_within_a_second() {
    let fleet = Fleet::embedded(2);
    let (url, _) = fleet.announced();
    let port = url.rsplit(':').next().expect("a port");
    let process = fleet.agents[1].process();
    within("it is connected", Duration::from_secs(60), || is_connected(process, port));
    within("it is heard", Duration::from_secs(60), || fleet.own(1)["plan_serial"].as_u64() > Some(0));
    let revoked = fleet.ask(&["hub", "revoke", "h1"]);
    assert_eq!(revoked.status.code(), Some(0), "{revoked:?}");
    // It tries again and again, and gets nowhere.
    let cut = within("it is cut", Duration::from_secs(1), || !is_connected(process, port));
    println!("cut {:.1} s after the command that revoked it", cut.as_secs_f64());
    assert!(fleet.audit().iter().any(|(what, _)| what == "agent.revoked"), "{:?}", fleet.audit());
}

/// Nobody edits a list for a host that joins, and none for one that is thrown out.
#[test]
#[ignore = "lab: needs nats-server"]
fn a_revoked_agent_is_cut_from_nats_in_operator_mode() {
    let fleet = Fleet::with_operator(3);
    let server = fleet.bus.clone().expect("there is NATS");
    let port = server.rsplit(':').next().expect("a port");
    within("all have plans", Duration::from_secs(60), || {
        (0..3).all(|agent| fleet.own(agent)["plan_serial"].as_u64() > Some(0))
    });
    let [other, process] = [0, 1].map(|agent| fleet.agents[agent].process());
    assert!(is_connected(process, port) && is_connected(other, port));
    let revoked = fleet.ask(&["hub", "revoke", "h1"]);
    assert_eq!(revoked.status.code(), Some(0), "{revoked:?}");
    let cut = within("it is cut", Duration::from_secs(1), || !is_connected(process, port));
    println!("cut {:.1} s after the command that revoked it", cut.as_secs_f64());
    assert!(is_connected(other, port), "the others stay");
    let state = fleet.path("hub");
    let ended = run(&["fleet", "run", "h0", "h2", "--state", crate::common::text(&state), "--", "rtt"]);
    assert_eq!(ended.status.code(), Some(0), "{ended:?}");
}

#[test]
#[ignore = "lab: needs nats-server"]
fn plans_that_the_hub_did_not_sign_for_this_agent_are_refused_and_audited() {
    let fleet = Fleet::on_nats(2);
    within("both have plans", Duration::from_secs(60), || {
        (0..2).all(|agent| fleet.own(agent)["plan_serial"].as_u64() > Some(0))
    });
    let runtime = tokio::runtime::Runtime::new().expect("threads");
    let server = fleet.bus.clone().expect("there is NATS");
    let options = nats::Options { key: Some(Key::new()), ..nats::Options::new(&server, "liar") };
    let bus = runtime.block_on(nats::Client::connect(options)).expect("options that can be right");
    let read = |key: &str| {
        let entry = runtime.block_on(async {
            let mut condition = bus.condition();
            condition.wait_for(|now| now.server.is_some()).await.expect("it lives");
            bus.read("plan", key).await
        });
        entry.expect("NATS answers").expect("there is a plan")
    };
    let plan_of = |octets: &[u8]| -> Plan {
        let signed: Signed = serde_json::from_slice(octets).expect("signed");
        serde_json::from_str(&signed.message).expect("a plan")
    };
    let old = read("h0").value;
    // A third host makes newer plans for all.
    fleet.apply(QUIET);
    let serial = |agent: usize| fleet.own(agent)["plan_serial"].as_u64().unwrap_or(0);
    within("a newer plan", Duration::from_secs(60), || serial(0) > plan_of(&old).serial);
    let good = serial(0);
    // A load that is due at once: whoever believed it would send.
    let now_ms = i64::try_from(
        std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("it is past 1970").as_millis(),
    )
    .expect("a time");
    let poison = |plan: &mut Plan| {
        plan.serial += 1_000;
        plan.begin_ms = now_ms;
        plan.runs = vec![PlannedRun {
            id: uuid::Uuid::from_u128(1),
            at_ms: now_ms + 20_000,
            length_ms: 3_600_000,
            target: "h1".parse().expect("a name"),
            command: vec!["throughput".to_owned(), "-t".to_owned(), "5".to_owned()],
            keys: ["host.h0", "host.h1"].map(|key| key.parse().expect("a key")).to_vec(),
            octets: 1_000_000,
        }];
    };
    let signed: Signed = serde_json::from_slice(&read("h0").value).expect("signed");
    let mut plan = plan_of(&read("h0").value);
    poison(&mut plan);
    let message = plan.to_text();
    let poisoned = Signed { message: message.clone(), signature: signed.signature }.to_octets();
    let signature = narrows_units::hex::to_text(&Key::new().sign(message.as_bytes()));
    let forged = Signed { message, signature }.to_octets();
    let foreign = read("h1").value.to_vec();
    let lies = [
        (poisoned, "not signed by the hub"),
        (forged, "not signed by the hub"),
        (foreign, "for the agent h1"),
        (old.to_vec(), "is not above"),
    ];
    for (lie, why) in lies {
        let entry = read("h0");
        runtime.block_on(bus.write("plan", "h0", lie.into(), entry.revision)).expect("nobody keeps it from that");
        within(why, Duration::from_secs(10), || fleet.own(0)["faults"].to_string().contains(why));
        assert_eq!(serial(0), good, "it goes by the plan that it had");
    }
    nothing_is_sent(&fleet, Duration::from_secs(30));
    let audited = || fleet.audit().into_iter().filter(|(what, _)| what == "plan.refused").count();
    within("the audit says so", Duration::from_secs(60), || audited() > 0);
    // The agent works on.
    let state = fleet.path("hub");
    let ended = run(&["fleet", "run", "h0", "h1", "--state", crate::common::text(&state), "--", "rtt"]);
    assert_eq!(ended.status.code(), Some(0), "{ended:?}");
}

/// Nobody loads, long after it was due.
fn nothing_is_sent(fleet: &Fleet, time: Duration) {
    let began = std::time::Instant::now();
    while began.elapsed() < time {
        let loads = loads(fleet.home.path());
        assert!(loads.is_empty(), "{loads:?}");
        std::thread::sleep(Duration::from_millis(50));
    }
}
