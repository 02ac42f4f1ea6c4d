//! `narrows fleet run A B -- throughput -t 10`.

use std::fmt::Write as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use narrows_net::clock;
use serde_json::{Value, json};

use super::client::{Client, Unanswered};
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
    let mut hub = Patient {
        ask: |path: &str| client.try_get(path),
        nap: || interrupt::nap(ASK_EVERY),
        now: || Duration::from_nanos(clock::now_ns().unsigned_abs()),
        complain: output::complain,
        stop: interrupt::flag()?,
        complained: false,
    };
    let run = hub.run_of(&id, source)?;
    print(&hub.get(&format!("/api/v1/runs/{run}"))?, as_json)
}

/// A hub that may start again, or have too much to do, while somebody waits for a run.
struct Patient<'a, Ask, Nap, Now, Complain> {
    ask: Ask,
    nap: Nap,
    /// Since any instant.
    now: Now,
    complain: Complain,
    stop: &'a AtomicBool,
    complained: bool,
}

impl<Ask, Nap, Now, Complain> Patient<'_, Ask, Nap, Now, Complain>
where
    Ask: Fn(&str) -> Result<Value, Unanswered>,
    Nap: Fn(),
    Now: Fn() -> Duration,
    Complain: Fn(&str),
{
    /// Waits until an order has a run, and returns its id.
    fn run_of(&mut self, id: &str, source: &str) -> Result<String, Failure> {
        let mut waited = 0;
        loop {
            (self.nap)();
            let orders = self.get("/api/v1/orders")?;
            let mut all = orders["orders"].as_array().into_iter().flatten();
            let missing = || Failure::host("the hub has another record now, without this order".to_owned());
            let order = all.find(|order| order["id"] == id).ok_or_else(missing)?;
            if let Some(run) = order["run"].as_str() {
                return Ok(run.to_owned());
            }
            // What the agent says of an order may overtake the result.
            waited += u32::from(order["said"].is_string());
            if order["state"] == "lost" || waited > ASKED_WITHOUT_RESULT {
                let said = order["said"].as_str().unwrap_or("the agent said nothing of it");
                return Err(Failure { exit: Exit::Refused, who: "peer", text: format!("{source}: {said}") });
            }
        }
    }

    /// An answer; asks again for some minutes if the hub cannot give it now.
    fn get(&mut self, path: &str) -> Result<Value, Failure> {
        let began = (self.now)();
        loop {
            if self.stop.load(Ordering::Relaxed) {
                return Err(Failure::host("not waited for: the order stays given".to_owned()));
            }
            let Unanswered { mut failure, passes } = match (self.ask)(path) {
                Ok(answer) => return Ok(answer),
                Err(unanswered) => unanswered,
            };
            if !passes {
                return Err(failure);
            }
            let minutes = ASKED_FOR.as_secs() / 60;
            if (self.now)().saturating_sub(began) >= ASKED_FOR {
                // Writing to a text cannot fail.
                let _ = write!(failure.text, ": no answer for {minutes} minutes; the order stays given");
                return Err(failure);
            }
            if !std::mem::replace(&mut self.complained, true) {
                (self.complain)(&format!("{failure}: the order stays given, and is asked for {minutes} minutes more"));
            }
            (self.nap)();
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
/// Ours: longer than a hub takes to start again, also with a record to bring to a new version.
const ASKED_FOR: Duration = Duration::from_secs(300);

#[cfg(test)]
mod tests {
    use std::cell::{Cell, RefCell};

    use super::*;

    /// Asks a hub that gives these answers, the last one for ever, and takes no time but naps.
    /// Returns the run, what was said meanwhile, and how many seconds it took.
    fn waited(answers: &[Result<Value, (Exit, bool)>]) -> (Result<String, Failure>, Vec<String>, u64) {
        let (asked, naps, stop) = (Cell::new(0), Cell::new(0), AtomicBool::new(false));
        let said = RefCell::new(Vec::new());
        let mut hub = Patient {
            ask: |_: &str| {
                let answer = &answers[asked.replace(asked.get() + 1).min(answers.len() - 1)];
                answer.clone().map_err(|(exit, passes)| {
                    let failure = Failure { exit, who: "peer", text: "no answer".to_owned() };
                    Unanswered { failure, passes }
                })
            },
            nap: || naps.set(naps.get() + 1),
            now: || naps.get() * ASK_EVERY,
            complain: |text: &str| said.borrow_mut().push(text.to_owned()),
            stop: &stop,
            complained: false,
        };
        let run = hub.run_of("7", "a");
        (run, said.into_inner(), (naps.get() * ASK_EVERY).as_secs())
    }

    #[test]
    fn a_hub_that_starts_again_or_is_busy_is_asked_again() {
        let orders = |run: Option<&str>| Ok(json!({ "orders": [{ "id": "7", "state": "waits", "run": run }] }));
        let (away, busy) = (Err((Exit::Unreachable, true)), Err((Exit::Refused, true)));
        let answers = [orders(None), away.clone(), away.clone(), orders(None), busy.clone(), orders(Some("9"))];
        let (run, said, _) = waited(&answers);
        assert_eq!(run.unwrap(), "9");
        assert_eq!(said, ["no answer: the order stays given, and is asked for 5 minutes more"]);
        // Not for ever, and not if the hub would say the same again.
        let (run, said, took) = waited(&[orders(None), away]);
        let why = run.unwrap_err();
        assert_eq!((why.exit, said.len()), (Exit::Unreachable, 1));
        assert!(why.text.ends_with("the order stays given") && (300..=302).contains(&took), "{why}, {took} s");
        let (run, said, took) = waited(&[Err((Exit::Refused, false))]);
        assert_eq!((run.unwrap_err().exit, said.len(), took), (Exit::Refused, 0, 0));
        let (run, ..) = waited(&[Ok(json!({ "orders": [] }))]);
        assert!(run.unwrap_err().text.contains("another record"));
    }

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
