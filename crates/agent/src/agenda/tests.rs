use narrows_fleet::message::{Directed, Peer, PlannedRun, Stored};

use super::*;

const BEGAN: i64 = 1_000_000_000_000;

fn name(text: &str) -> Name {
    text.parse().unwrap()
}

fn words(text: &str) -> Vec<String> {
    text.split(' ').map(ToOwned::to_owned).collect()
}

fn plan(hosts: u32) -> Plan {
    let peers = (0..hosts).map(|host| Peer {
        name: name(&format!("h{host}")),
        address: format!("192.0.2.{host}:8620"),
        place: None,
        site: None,
        keys: Vec::new(),
    });
    Plan {
        schema: Plan::SCHEMA.to_owned(),
        tenant: name("t"),
        agent: name("h0"),
        serial: 1,
        made_ms: BEGAN,
        not_after_ms: BEGAN + 1_000_000_000,
        lease_generation: 1,
        certificate: String::new(),
        bus: None,
        seed: 7,
        mesh_began_ms: BEGAN,
        place: 0,
        mesh_hosts: None,
        peers: peers.collect(),
        mesh: vec![words("rtt"), words("available")],
        directed: Vec::new(),
        begin_ms: BEGAN,
        length_ms: 86_400_000,
        runs: Vec::new(),
        server_keys: Vec::new(),
        denied: Vec::new(),
        stored: Stored::default(),
    }
}

fn agenda(now_ms: i64) -> Agenda {
    Agenda::new(BTreeMap::new(), 3, now_ms)
}

fn text(job: &Job) -> String {
    format!("{} {}", job.words.join(" "), job.target)
}

/// Does every job at its time, each in 3 s, until then.
fn work(agenda: &mut Agenda, plan: &Plan, mut now_ms: i64, until_ms: i64) -> Vec<(i64, String)> {
    let mut done = Vec::new();
    while let Some(job) = agenda.next(plan, now_ms) {
        now_ms = now_ms.max(job.at_ms);
        if now_ms >= until_ms {
            break;
        }
        done.push((now_ms, text(&job)));
        now_ms += 3_000;
        agenda.ended(&job, Ended::Measured, now_ms);
    }
    done
}

#[test]
fn peers_that_were_never_measured_have_their_turn_at_once() {
    let (plan, now) = (plan(3), BEGAN + 1_800_000);
    let mut agenda = agenda(now);
    let first = work(&mut agenda, &plan, now, now + 60_000);
    let mut runs: Vec<&str> = first.iter().map(|(_, run)| run.as_str()).collect();
    runs.sort_unstable();
    assert_eq!(runs, ["available h1", "available h2", "rtt h1", "rtt h2"]);
    assert!(first.windows(2).all(|two| (3_000..5_001).contains(&(two[1].0 - two[0].0))), "{first:?}");
    // The next ones are those of the next epoch, at its own times.
    let next = agenda.next(&plan, now + 60_000).unwrap();
    assert!(next.at_ms >= BEGAN + 3_600_000, "{next:?}");
    let day = work(&mut agenda, &plan, now + 60_000, BEGAN + 3 * 3_600_000);
    assert_eq!(day.len(), 8, "{day:?}");
}

#[test]
fn a_failure_is_tried_again_later_each_time() {
    let plan = plan(2);
    let mut agenda = agenda(BEGAN);
    let mut waits = Vec::new();
    let mut now = BEGAN;
    for _ in 0..26 {
        let job = agenda.next(&plan, now).unwrap();
        if job.words == ["rtt"] {
            waits.push((job.at_ms.max(now) - now) / 1000);
        }
        now = now.max(job.at_ms);
        agenda.ended(&job, Ended::Failed, now);
    }
    let longest = waits.iter().max().unwrap();
    assert!(waits[0] == 0 && *longest <= 3_600 && *longest > 1_000, "{waits:?}");
    // Another plan: the peer may be there now.
    let renewed = Plan { serial: 2, ..plan };
    assert!(agenda.next(&renewed, now).unwrap().at_ms <= now + 2_000);
}

#[test]
fn a_restart_does_not_begin_the_first_round_again() {
    let (plan, now) = (plan(3), BEGAN + 1_800_000);
    let mut first = agenda(now);
    work(&mut first, &plan, now, now + 60_000);
    let mut second = Agenda::new(first.measured, 4, now + 90_000);
    assert!(second.next(&plan, now + 90_000).unwrap().at_ms >= BEGAN + 3_600_000);
}

#[test]
fn a_loading_run_comes_before_light_ones_and_once() {
    let mut plan = plan(3);
    plan.runs = vec![PlannedRun {
        id: Uuid::from_u128(1),
        at_ms: BEGAN + 8_000,
        length_ms: 15_000,
        target: name("h1"),
        command: words("throughput -t 5"),
        keys: ["host.h0", "host.h1"].map(|key| key.parse().unwrap()).to_vec(),
        octets: 1_000,
    }];
    let mut agenda = agenda(BEGAN);
    let job = agenda.next(&plan, BEGAN).unwrap();
    assert_eq!((text(&job).as_str(), job.at_ms, job.origin), ("throughput -t 5 h1", BEGAN + 8_000, Origin::Planned));
    assert_eq!(job.until_ms, BEGAN + 23_000);
    agenda.ended(&job, Ended::Failed, BEGAN + 9_000);
    assert_eq!(agenda.next(&plan, BEGAN + 9_000).unwrap().origin, Origin::Mesh);
    // The timetable repeats after its length.
    let tomorrow = agenda.planned(&plan).unwrap();
    assert_eq!((tomorrow.at_ms, tomorrow.origin), (BEGAN + 8_000 + 86_400_000, Origin::Repeated));
}

#[test]
fn directed_runs_come_after_the_mesh_as_often_as_asked() {
    let mut plan = plan(2);
    let directed = |command: &str, every_ms| Directed { target: name("h1"), command: words(command), every_ms };
    plan.directed = vec![directed("capacity", Some(7_200_000)), directed("rtt --method x", None)];
    let mut agenda = agenda(BEGAN);
    let done = work(&mut agenda, &plan, BEGAN, BEGAN + 60_000);
    let runs: Vec<&str> = done.iter().map(|(_, run)| run.as_str()).collect();
    assert_eq!(runs, ["rtt h1", "available h1", "capacity h1", "rtt --method x h1"]);
    let later = work(&mut agenda, &plan, BEGAN + 60_000, BEGAN + 5 * 3_600_000);
    let count = |run: &str| later.iter().filter(|(_, one)| one == run).count();
    assert_eq!([count("capacity h1"), count("rtt --method x h1"), count("rtt h1")], [2, 0, 4]);
}

#[test]
fn what_is_postponed_lets_others_pass() {
    let plan = plan(3);
    let mut agenda = agenda(BEGAN);
    let first = agenda.next(&plan, BEGAN).unwrap();
    agenda.ended(&first, Ended::Postponed { until_ms: BEGAN + 3_000 }, BEGAN);
    let second = agenda.next(&plan, BEGAN).unwrap();
    assert!(text(&second) != text(&first) && second.at_ms <= BEGAN);
}

/// A large fleet's plan names those whose turn comes, by their places.
#[test]
fn the_mesh_is_the_same_when_a_plan_names_few_of_its_hosts() {
    let whole = plan(300);
    let mesh = Mesh::new(300, whole.seed);
    let near: Vec<u32> = (0..2).flat_map(|epoch| mesh.visits(0, epoch)).map(|visit| visit.target).collect();
    let named = |place: u32| place == 0 || near.contains(&place);
    let peers = (0..).zip(whole.peers.clone()).filter(|(place, _)| named(*place));
    let peers = peers.map(|(place, peer)| Peer { place: Some(place), ..peer }).collect();
    let few = Plan { mesh_hosts: Some(300), peers, ..whole.clone() };
    assert!(few.peers.len() < 30 && few.hosts() == 300);
    let [all, some] = [&whole, &few].map(|plan| work(&mut agenda(BEGAN), plan, BEGAN, BEGAN + 2 * 3_600_000));
    assert!(all.len() > 40 && all == some, "{} runs, {} runs", all.len(), some.len());
}
