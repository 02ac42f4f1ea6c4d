//! Echoes of the trains, with and without the peer's stamps, over an idle and over a loaded
//! reverse direction.

use narrows_methods as methods;
use narrows_probe::{BoundKind, Caveat, Outcome};
use narrows_scenario::{PathDirection, Scenario};

use super::{measured, median, read, truth};

/// 100 Mbit/s each way, of which others take so much there and so much back.
fn path(there: u32, back: u32) -> Scenario {
    let cross = |mbps: u32| match mbps {
        0 => String::new(),
        mbps => format!("cross = [{{ arrivals = \"poisson\", rate = \"{mbps} Mbit/s\", ip_octets = 1500 }}]"),
    };
    read(&format!(
        r#"
name = "both-ways"
about = "a link that is loaded each way"
seed = 5

[[hop]]
name = "access"
rate = "1 Gbit/s"
delay = "1 ms"

[[hop]]
name = "busy"
rate = "100 Mbit/s"
delay = "4 ms"
queue = "1000 packets"
{}

[[reverse]]
name = "busy back"
rate = "100 Mbit/s"
delay = "4 ms"
queue = "1000 packets"
{}

[[reverse]]
name = "access back"
rate = "1 Gbit/s"
delay = "1 ms"
"#,
        cross(there),
        cross(back)
    ))
}

fn warns_of_the_way_back(outcome: &Outcome) -> bool {
    outcome.caveats().contains(&Caveat::ReverseInfluence { reply_ip_octets: 1500 })
}

fn by_remote_stamps(outcome: &Outcome) -> Option<bool> {
    Some(outcome.estimate()?.details.stamped_by_remote)
}

/// With the peer's stamps the reverse direction is of no account; without, the answer is the
/// lesser of both ways, and says so.
#[test]
fn what_comes_back_tells_of_both_ways_or_of_one() {
    for name in ["fac2", "pathload"] {
        let method = methods::find(name).expect("a method");
        for (there, back) in [(40, 0), (30, 70), (70, 20)] {
            let scenario = path(there, back);
            let (forward, capacity) = truth(&scenario, PathDirection::Forward);
            let (reverse, _) = truth(&scenario, PathDirection::Reverse);
            for (peer_kind, expected) in [("reflector", forward), ("echo", forward.min(reverse))] {
                let mut errors = Vec::new();
                for seed in 0..5 {
                    let outcome = measured(&scenario, method, &[("peer_kind", peer_kind)], seed);
                    assert_eq!(by_remote_stamps(&outcome), Some(peer_kind == "reflector"), "{name} {outcome:?}");
                    assert_eq!(warns_of_the_way_back(&outcome), peer_kind == "echo", "{name} {outcome:?}");
                    let estimate = outcome.estimate().expect("an answer");
                    assert_eq!(estimate.verdict(), BoundKind::Estimated, "{name} {outcome:?}");
                    errors.push((estimate.in_unit().value as f64 - expected) / capacity);
                }
                let error = median(errors.clone());
                assert!(error.abs() < 0.08, "{name} {there} {back} {peer_kind}: {errors:?}");
            }
        }
    }
}

/// The same rows read again give the same answer.
#[test]
fn who_answers_is_checked() {
    for name in ["fac2", "pathload"] {
        let method = methods::find(name).expect("a method");
        for bad in ["closed_port", "syn", "pigeon"] {
            let raw = [("peer_kind", bad)].into_iter().collect();
            let error = method.begin(&raw).err().expect("refused");
            assert!(error.to_string().contains("peer_kind"), "{error}");
        }
    }
}

/// The automatic choice where nobody but echoes answers can do with echoes.
#[test]
fn the_automatic_choice_can_do_with_what_answers() {
    use narrows_probe::Answering;
    let metric = narrows_units::Metric::AvailableIpCapacity;
    for answering in [Answering::Server, Answering::Reflector, Answering::Echo] {
        let method = methods::automatic_for(metric, answering).expect("a method");
        assert!(method.answered_by().contains(&answering), "{answering:?}");
    }
    for answering in [Answering::ClosedPort, Answering::TcpSyn] {
        assert!(methods::automatic_for(metric, answering).is_none(), "{answering:?}");
    }
}
