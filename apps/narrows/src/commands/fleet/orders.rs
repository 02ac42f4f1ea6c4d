//! `narrows fleet run A B -- throughput -t 10`.

use std::fmt::Write as _;
use std::sync::atomic::Ordering;
use std::time::Duration;

use serde_json::{Value, json};

use super::client::Client;
use crate::exit::{Exit, Failure};
use crate::{interrupt, output};

pub(super) fn run(client: &Client, pair: [&String; 2], command: &str, as_json: bool) -> Result<Exit, Failure> {
    let [source, target] = pair;
    let given = client.post("/api/v1/orders", &json!({ "source": source, "target": target, "command": command }))?;
    let id = given["id"].as_str().unwrap_or_default().to_owned();
    let at = narrows_units::format_rfc_3339(given["at_ms"].as_i64().unwrap_or(0) / 1_000);
    output::complain(&format!("{source} to {target}: {command}, at {at}"));
    if let Some(note) = given["note"].as_str() {
        output::complain(note);
    }
    let stop = interrupt::flag()?;
    let mut waited = 0;
    loop {
        if stop.load(Ordering::Relaxed) {
            return Err(Failure::host("not waited for: the order stays given".to_owned()));
        }
        interrupt::nap(ASK_EVERY);
        let orders = client.get("/api/v1/orders")?;
        let mut all = orders["orders"].as_array().into_iter().flatten();
        let missing = || Failure::host("the hub started again, and knows nothing of this order".to_owned());
        let order = all.find(|order| order["id"] == id.as_str()).ok_or_else(missing)?;
        if let Some(run) = order["run"].as_str() {
            return print(&client.get(&format!("/api/v1/runs/{run}"))?, as_json);
        }
        // What the agent says of an order may overtake the result.
        waited += u32::from(order["said"].is_string());
        if order["state"] == "lost" || waited > ASKED_WITHOUT_RESULT {
            let said = order["said"].as_str().unwrap_or("the agent said nothing of it");
            return Err(Failure { exit: Exit::Refused, who: "peer", text: format!("{source}: {said}") });
        }
    }
}

fn print(run: &Value, as_json: bool) -> Result<Exit, Failure> {
    let text = if as_json { run.to_string() + "\n" } else { text(run) };
    output::write(&text, None)?;
    Ok(match run["exit"].as_str().unwrap_or_default() {
        "done" => Exit::Valid,
        "inconclusive" | "void" => Exit::Inconclusive,
        "peer_failed" => Exit::Unreachable,
        _ => Exit::Refused,
    })
}

fn text(run: &Value) -> String {
    let mut text = String::new();
    // Writing to a text cannot fail.
    for value in run["values"].as_array().into_iter().flatten() {
        let word = |key: &str| value[key].as_str().unwrap_or_default().to_owned();
        let number = |key: &str| value[key].as_f64().unwrap_or(0.0);
        let (metric, direction, unit) = (word("metric"), word("direction"), word("unit"));
        let found = match word("claim").as_str() {
            // Its 0 is no value; the last line says why there is none.
            "inconclusive" => continue,
            "at_least" => format!("at least {:.0} {unit}", number("value")),
            "at_most" => format!("at most {:.0} {unit}", number("value")),
            _ => format!("{:.0} {unit} ({:.0} to {:.0})", number("value"), number("low"), number("high")),
        };
        let _ = writeln!(text, "{metric} {direction}: {found}");
    }
    let [exit, reason] = ["exit", "reason"].map(|key| run[key].as_str().unwrap_or_default());
    text + format!("{exit} {reason}").trim_end() + "\n"
}

/// Ten seconds.
const ASKED_WITHOUT_RESULT: u32 = 20;
const ASK_EVERY: Duration = Duration::from_millis(500);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bound_says_so_and_what_is_inconclusive_has_no_value() {
        let run = |claim: &str, exit: &str, reason: Option<&str>| {
            let value = json!({
                "metric": "available_ip_capacity", "direction": "forward", "unit": "bit/s",
                "claim": claim, "value": 12e6, "low": 11e6, "high": 13e6,
            });
            text(&json!({ "values": [value], "exit": exit, "reason": reason }))
        };
        let estimate = "available_ip_capacity forward: 12000000 bit/s (11000000 to 13000000)\ndone\n";
        assert_eq!(run("estimate", "done", None), estimate);
        assert_eq!(run("at_least", "done", None), "available_ip_capacity forward: at least 12000000 bit/s\ndone\n");
        assert_eq!(run("at_most", "done", None), "available_ip_capacity forward: at most 12000000 bit/s\ndone\n");
        assert_eq!(run("inconclusive", "inconclusive", Some("too short")), "inconclusive too short\n");
    }
}
