//! `narrows fleet status`.

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::client::Client;
use crate::exit::{Exit, Failure};
use crate::output;

pub(super) fn run(client: &Client, metric: &str, as_json: bool) -> Result<Exit, Failure> {
    let agents = client.get("/api/v1/agents")?;
    let matrix = client.get(&format!("/api/v1/matrix?metric={metric}&by=host"))?;
    let plan = client.get("/api/v1/plan")?;
    let metrics = client.text("/metrics")?;
    let is_member = |agent: &&Value| ["online", "late", "gone"].iter().any(|state| agent["state"] == *state);
    let members = agents["agents"].as_array().into_iter().flatten().filter(is_member);
    let unconfirmed = members.filter(|agent| agent["plan_current"] != true).count();
    let lag = metrics.lines().find_map(|line| line.strip_prefix("narrows_hub_ingest_lag_seconds "));
    let lag: f64 = lag.and_then(|text| text.trim().parse().ok()).unwrap_or(0.0);
    let hosts = matrix["sources"].as_array().map_or(0, Vec::len);
    let count = |states: &[&str]| {
        let cells = matrix["cells"].as_array().into_iter().flatten();
        cells.filter(|cell| states.iter().any(|state| cell["state"] == *state)).count()
    };
    let cells = matrix["cells"].as_array().into_iter().flatten();
    let failing = cells.filter(|cell| !cell["value"].is_null() && !cell["failing"].is_null()).count();
    let document = json!({
        "schema": "narrows.fleet-status/1", "url": client.url(), "agents": agents["agents"],
        "matrix": {
            "metric": metric, "pairs": hosts * hosts.saturating_sub(1),
            "with_value": count(&["value", "at_least", "at_most"]),
            "inconclusive": count(&["inconclusive"]), "failed": count(&["failed"]), "failing": failing,
        },
        "ingest_lag_seconds": lag, "plan_serial": plan["serial"],
        "plans": { "unwritten": plan["unwritten"], "unconfirmed": unconfirmed },
    });
    let text = if as_json { document.to_string() + "\n" } else { text(&document) };
    output::write(&text, None)?;
    Ok(Exit::Valid)
}

fn text(document: &Value) -> String {
    let mut text = String::new();
    let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    // Writing to a text cannot fail.
    let _ = writeln!(text, "{}", word(&document["url"]));
    for agent in document["agents"].as_array().into_iter().flatten() {
        let [name, state, address] = ["name", "state", "address"].map(|key| word(&agent[key]));
        let plan = if agent["plan_current"] == true { "" } else { "  has an older plan" };
        let _ = writeln!(text, "{name:<20} {state:<8} {address}{plan}");
        for fault in agent["faults"].as_array().into_iter().flatten() {
            let _ = writeln!(text, "  {}", word(fault));
        }
        for what in agent["declined"].as_array().into_iter().flatten() {
            let _ = writeln!(text, "  left out of its plan: {}", word(what));
        }
    }
    let (serial, plans) = (&document["plan_serial"], &document["plans"]);
    let _ = writeln!(
        text,
        "plan {serial}: {} newer ones are still to be written, {} agents have not confirmed theirs",
        plans["unwritten"], plans["unconfirmed"]
    );
    let matrix = &document["matrix"];
    let (metric, with_value, pairs) = (word(&matrix["metric"]), &matrix["with_value"], &matrix["pairs"]);
    let lag = document["ingest_lag_seconds"].as_f64().unwrap_or(0.0);
    let _ = write!(text, "{metric}: {with_value} of {pairs} paths");
    for state in ["inconclusive", "failed"] {
        if matrix[state] != 0 {
            let _ = write!(text, ", {} {state}", matrix[state]);
        }
    }
    if matrix["failing"].as_u64().is_some_and(|count| count > 0) {
        let _ = write!(text, ", {} with an old value that fail now", matrix["failing"]);
    }
    let _ = writeln!(text, "; results come {lag:.1} s late");
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_without_a_value_are_told_apart() {
        let last = |inconclusive: u32, failed: u32| {
            let matrix = json!({
                "metric": "available", "pairs": 6, "with_value": 3, "inconclusive": inconclusive, "failed": failed,
            });
            let document = json!({ "matrix": matrix, "ingest_lag_seconds": 0.4 });
            text(&document).lines().last().map(str::to_owned)
        };
        assert_eq!(last(0, 0).as_deref(), Some("available: 3 of 6 paths; results come 0.4 s late"));
        assert_eq!(
            last(2, 1).as_deref(),
            Some("available: 3 of 6 paths, 2 inconclusive, 1 failed; results come 0.4 s late")
        );
        let matrix =
            json!({ "metric": "available", "pairs": 6, "with_value": 6, "inconclusive": 0, "failed": 0, "failing": 2 });
        let text = text(&json!({ "matrix": matrix, "ingest_lag_seconds": 0.4 }));
        let last = "available: 6 of 6 paths, 2 with an old value that fail now; results come 0.4 s late";
        assert_eq!(text.lines().last(), Some(last));
    }
}
