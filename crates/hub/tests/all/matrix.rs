//! What stands in a cell of the matrix.

use narrows_fleet::message::{Claim, Exit};
use narrows_units::Metric;
use serde_json::{Value, json};

use crate::api::Served;
use crate::world::{Agent, name, soon, stored};

/// Two hosts at two sites, with a plan that says so.
async fn two_sites() -> (Served, Vec<Agent>, i64) {
    let served = Served::new().await;
    let agents = served.agents(["a", "b"]).await;
    let toml = "[sites.ams]\nhosts = [\"a\"]\n[sites.fra]\nhosts = [\"b\"]\n";
    let (status, answer) = served.ask("POST", "/api/v1/config", json!({ "toml": toml })).await;
    assert_eq!(status, 200, "{answer}");
    let now_ms = answer["now_ms"].as_i64().unwrap();
    while served.ask("GET", "/api/v1/matrix?by=site", json!({})).await.1["sources"] != json!(["ams", "fra"]) {}
    (served, agents, now_ms)
}

/// Runs of a towards b, so many ms ago: what measures, what, its value in Mbit/s if it has one.
async fn measured(agent: &mut Agent, now_ms: i64, runs: &[(&str, Metric, i64, Option<f64>)]) {
    let mut kept = agent.subscribe("stored").await;
    let mut last = 0;
    for (kind, metric, ago_ms, mbps) in runs {
        let mut run = agent.run(&name("b"), kind, *metric, mbps.unwrap_or(0.0), now_ms - ago_ms);
        if mbps.is_none() {
            (run.exit, run.reason) = (Exit::PeerFailed, Some("it does not answer".to_owned()));
            run.values.clear();
        }
        agent.publish(&run).await;
        last = run.seq;
    }
    while !stored(&soon(kept.next()).await.unwrap()).has(last) {}
}

async fn cell(served: &Served, metric: &str, by: &str) -> Value {
    let (_, matrix) = served.ask("GET", &format!("/api/v1/matrix?metric={metric}&by={by}"), json!({})).await;
    matrix["cells"].as_array().unwrap().first().cloned().unwrap_or_default()
}

#[tokio::test]
async fn a_value_of_before_says_since_when_runs_fail() {
    let (served, mut agents, now_ms) = two_sites().await;
    let metric = Metric::AvailableIpCapacity;
    let of = |ago_ms, mbps| ("available", metric, ago_ms, mbps);
    measured(&mut agents[0], now_ms, &[of(90_000, Some(100.0))]).await;
    for by in ["host", "site"] {
        let fresh = cell(&served, "available", by).await;
        assert_eq!((&fresh["state"], &fresh["failing"]), (&json!("value"), &Value::Null), "{fresh}");
    }
    measured(&mut agents[0], now_ms, &[of(60_000, None), of(30_000, None)]).await;
    let old = cell(&served, "available", "host").await;
    assert_eq!((&old["state"], &old["value"], &old["at_ms"]), (&json!("value"), &json!(1e8), &json!(now_ms - 90_000)));
    let failing = &old["failing"];
    assert_eq!((&failing["since_ms"], &failing["at_ms"]), (&json!(now_ms - 60_000), &json!(now_ms - 30_000)), "{old}");
    assert_eq!((&failing["state"], &failing["reason"]), (&json!("failed"), &json!("it does not answer")));
    assert_ne!(failing["run"], old["run"]);
    let site = cell(&served, "available", "site").await;
    assert_eq!(
        (&site["state"], &site["pairs"], &site["failing_pairs"]),
        (&json!("value"), &json!(1), &json!(1)),
        "{site}"
    );
    assert_eq!(site["failing"]["since_ms"], now_ms - 60_000);
    // The next value ends that.
    measured(&mut agents[0], now_ms, &[of(10_000, Some(90.0))]).await;
    for by in ["host", "site"] {
        let fresh = cell(&served, "available", by).await;
        assert_eq!((&fresh["value"], &fresh["failing"]), (&json!(9e7), &Value::Null), "{fresh}");
    }
}

#[tokio::test]
async fn hosts_and_sites_show_the_same_of_each_metric() {
    let (served, mut agents, now_ms) = two_sites().await;
    // No value at all; a run of another kind says nothing of UDP.
    measured(&mut agents[0], now_ms, &[("rtt", Metric::RoundTripTime, 50_000, None)]).await;
    for by in ["host", "site"] {
        assert_eq!(cell(&served, "udp_achievable", by).await, Value::Null, "{by}");
        let failed = cell(&served, "rtt", by).await;
        assert_eq!((&failed["state"], &failed["reason"]), (&json!("failed"), &json!("it does not answer")), "{failed}");
        assert_eq!(failed["failing"]["since_ms"], now_ms - 50_000);
    }
    // TCP is TCP, by one connection or several, and a bound is one.
    let of = |metric, ago_ms, mbps| ("throughput", metric, ago_ms, Some(mbps));
    let both = [of(Metric::TcpAchievableSingle, 40_000, 70.0), of(Metric::TcpAchievableParallel, 30_000, 80.0)];
    measured(&mut agents[0], now_ms, &both).await;
    for by in ["host", "site"] {
        let tcp = cell(&served, "throughput", by).await;
        assert_eq!((&tcp["state"], &tcp["value"]), (&json!("value"), &json!(8e7)), "{by}: {tcp}");
    }
    let mut bound = agents[0].run(&name("b"), "capacity", Metric::IpCapacity, 500.0, now_ms - 20_000);
    bound.values[0].claim = Claim::AtLeast;
    let mut kept = agents[0].subscribe("stored").await;
    agents[0].publish(&bound).await;
    while !stored(&soon(kept.next()).await.unwrap()).has(bound.seq) {}
    for by in ["host", "site"] {
        assert_eq!(cell(&served, "capacity", by).await["state"], "at_least", "{by}");
    }
}
