//! What Prometheus' own tool says of the files in `dist/` and of the metrics. Without it, each test
//! says that it judged nothing: the tool's package is too large to be installed for this.

use std::io::Write as _;
use std::process::{Command, Stdio};
use std::time::Duration;

use narrows_store::records::Sample;
use narrows_watch::{Claim, Signal};
use narrows_web::TargetLabels;

use crate::site::Site;
use crate::year::now;

#[expect(clippy::print_stdout, reason = "what was not judged is said")]
/// Runs it with `input`; whether it was content, and what it said.
fn promtool(args: &[&str], input: &str) -> Option<(bool, String)> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../dist");
    let piped = Stdio::piped;
    let started =
        Command::new("promtool").args(args).current_dir(folder).stdin(piped()).stdout(piped()).stderr(piped()).spawn();
    let Ok(mut child) = started else {
        println!("NOT JUDGED: promtool {}: it is not there", args.join(" "));
        return None;
    };
    child.stdin.take().expect("it is piped").write_all(input.as_bytes()).expect("it reads");
    let ended = child.wait_with_output().expect("it ends");
    let said = [ended.stdout, ended.stderr].concat();
    Some((ended.status.success(), String::from_utf8_lossy(&said).into_owned()))
}

#[track_caller]
fn content(args: &[&str], input: &str) {
    if let Some((content, said)) = promtool(args, input) {
        assert!(content, "{said}");
    }
}

#[test]
fn rules_are_sound_and_fire_where_they_should() {
    content(&["check", "rules", "rules.yml"], "");
    content(&["test", "rules", "rules-test.yml"], "");
}

#[test]
fn metrics_are_named_as_prometheus_wants() {
    let site = Site::start();
    let cadence = Duration::from_secs(60);
    let of = TargetLabels { source: "here".to_owned(), target: "office".to_owned(), ip_version: 4, cadence };
    let metrics = site.live.metrics();
    let (value, low, high) = (Some(6e7), Some(5e7), Some(7e7));
    let sample =
        Sample { at: now(), value, low, high, claim: Claim::Estimate, loaded: false, host_busy: false, run: None };
    metrics.pulse(&of, Some(Duration::from_millis(18)));
    metrics.sample(&of, Signal::AvailableForward, "slope", &sample);
    metrics.path(&of, Some(1500), 8, now());
    metrics.path_changed(&of);
    metrics.follow(&of, &["change"]);
    metrics.up(&of, Some(true), Some(false), now());
    metrics.event(&of, "change");
    metrics.host_event("here", "woke");
    metrics.sent(&of, "slice", 243_800);
    metrics.budget_left(&of, 1_000_000, now());
    metrics.alert(&of, "uplink-low", true, now());
    metrics.store(43_000_000, false, now());
    metrics.host_busy(0.01, now());
    for path in ["/metrics", "/probe?target=office"] {
        let Some((_, said)) = promtool(&["check", "metrics"], &site.get(path).body) else { return };
        // Networks are rated in bit/s: the one rule that we break.
        let others: Vec<&str> = said.lines().filter(|line| !line.is_empty() && !line.ends_with(BITS)).collect();
        assert!(others.is_empty(), "{path}: {others:#?}");
    }
}

const BITS: &str = "use base unit \"bytes\" instead of \"bits\"";

#[test]
fn a_web_config_file_is_one_of_prometheus_too() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("web.yml");
    let hash = bcrypt::hash("secret", 4).expect("a hash");
    std::fs::write(&file, format!("basic_auth_users:\n  anna: {hash}\n")).expect("a file");
    content(&["check", "web-config", file.to_str().expect("a plain name")], "");
}
