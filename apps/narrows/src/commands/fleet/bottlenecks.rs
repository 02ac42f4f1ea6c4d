//! `narrows fleet bottlenecks`: which links hold paths back.

use std::fmt::Write as _;

use narrows_units::BitRate;
use serde_json::{Value, json};

use super::client::Client;
use crate::exit::{Exit, Failure};
use crate::output;

pub(super) fn run(client: &Client, metric: &str, prove: Option<&str>, as_json: bool) -> Result<Exit, Failure> {
    if let Some(id) = prove {
        client.post(&format!("/api/v1/bottlenecks/{id}/prove"), &json!({}))?;
        output::complain(
            "ordered: two loading runs over one path, while another one is watched; it takes some minutes",
        );
    }
    let found = client.get(&format!("/api/v1/bottlenecks?metric={metric}"))?;
    let text = if as_json { found.to_string() + "\n" } else { text(&found) };
    output::write(&text, None)?;
    Ok(Exit::Valid)
}

fn text(found: &Value) -> String {
    let mut text = String::new();
    let (measured, located) = (&found["measured_pairs"], &found["located_pairs"]);
    // Writing to a text cannot fail.
    let _ = writeln!(
        text,
        "{}: {measured} paths measured; a located link holds back {located}, {} have several candidates",
        word(&found["metric"]),
        rows(found, "undecided").len()
    );
    for one in rows(found, "bottlenecks") {
        bottleneck(&mut text, one);
    }
    let suspects = rows(found, "suspects");
    if !suspects.is_empty() {
        let _ = writeln!(text, "fewest links that would explain all paths with several candidates: {}", suspects.len());
    }
    for one in suspects {
        let also = if one["located"] == true { ", and holds others back" } else { "" };
        let paths = pairs(rows(one, "paths"));
        let _ = writeln!(text, "  {} explains {paths}{also}{}", word(&one["name"]), delays(&one["delays"]));
    }
    let next = rows(found, "next");
    if !next.is_empty() {
        let _ = writeln!(text, "would tell most, and are measured next: {}", pairs(next));
    }
    text
}

fn bottleneck(text: &mut String, one: &Value) {
    let rate =
        |key: &str| one[key].as_f64().and_then(BitRate::from_bps_f64).map_or_else(String::new, |r| r.to_string());
    let [value, low, high] = ["value", "low", "high"].map(rate);
    let sure = (100.0 * one["confidence"].as_f64().unwrap_or(0.0)).round();
    let paths = rows(one, "paths");
    let _ = writeln!(
        text,
        "{}: {value} ({low} to {high}), holds back {} of {} paths, {sure} % sure; number {}",
        word(&one["name"]),
        paths.len(),
        one["of"],
        word(&one["id"])
    );
    let _ = writeln!(text, "  {}: {}", proof(&one["proof"]), pairs(paths));
}

/// Whether it was proved by load that its paths share it.
fn proof(proof: &Value) -> String {
    let state = match proof["state"].as_str() {
        Some("running") => "is being proved",
        Some("shared") => "proved: shared",
        Some("not_shared") => "disproved: not shared",
        Some("inconclusive") => "not decided by the proof",
        _ => "not proved",
    };
    let odds = proof["ratio"].as_f64().map(|ratio| {
        if ratio >= 1.0 { format!(" ({ratio:.0} to 1)") } else { format!(" (1 to {:.0})", 1.0 / ratio.max(1e-9)) }
    });
    let why = proof["why"].as_str().map(|why| format!(" ({why})"));
    state.to_owned() + odds.or(why).as_deref().unwrap_or_default()
}

/// Whether delays of paths move together, if they were compared.
fn delays(row: &Value) -> &'static str {
    match row["state"].as_str() {
        Some("running") => "; delays are being compared",
        Some("together") => "; delays move together",
        Some("apart") => "; delays do not move together",
        Some("no_queue") => "; no queue seen",
        Some("inconclusive") => "; delays could not be compared",
        _ => "",
    }
}

fn rows<'a>(of: &'a Value, key: &str) -> &'a [Value] {
    of[key].as_array().map_or(&[], Vec::as_slice)
}

fn word(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn pairs(paths: &[Value]) -> String {
    let pair = |path: &Value| format!("{} to {}", word(&path["source"]), word(&path["target"]));
    paths.iter().map(pair).collect::<Vec<String>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_suspects_and_what_is_next_have_a_line_each() {
        let path = |source: &str, target: &str| json!({ "source": source, "target": target });
        let found = json!({
            "metric": "available", "measured_pairs": 12, "located_pairs": 2,
            "bottlenecks": [{
                "id": "4f1c", "name": "10.0.0.1 to 10.0.0.2", "value": 97.5e6, "low": 95e6, "high": 99e6,
                "confidence": 0.98, "of": 3, "paths": [path("a", "c"), path("b", "c")],
                "proof": { "state": "shared", "ratio": 38.2, "why": null },
            }],
            "undecided": [{ "source": "a", "target": "d", "candidates": ["x", "y"] }],
            "suspects": [{
                "id": "77", "name": "x", "located": false, "paths": [path("a", "d")],
                "delays": { "state": "together" },
            }],
            "next": [path("c", "d")],
        });
        assert_eq!(
            text(&found),
            "available: 12 paths measured; a located link holds back 2, 1 have several candidates\n\
             10.0.0.1 to 10.0.0.2: 97.5 Mbit/s (95 Mbit/s to 99 Mbit/s), holds back 2 of 3 paths, 98 % sure; number 4f1c\n  \
             proved: shared (38 to 1): a to c, b to c\n\
             fewest links that would explain all paths with several candidates: 1\n  \
             x explains a to d; delays move together\n\
             would tell most, and are measured next: c to d\n"
        );
    }

    #[test]
    fn a_proof_says_how_likely_or_what_it_lacked() {
        assert_eq!(proof(&json!({ "state": "not_shared", "ratio": 0.02 })), "disproved: not shared (1 to 50)");
        assert_eq!(
            proof(&json!({ "state": "inconclusive", "ratio": null, "why": "no value" })),
            "not decided by the proof (no value)"
        );
        assert_eq!(proof(&Value::Null), "not proved");
    }
}
