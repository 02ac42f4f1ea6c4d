//! What Prometheus' own tool says of the files in `dist/` and of the metrics.

use std::fmt::Write as _;
use std::io::Write as _;
use std::process::{Command, Stdio};

use crate::monitoring::everything;

/// Runs it with `input`; whether it was content, and what it said.
fn promtool(args: &[&str], input: &str) -> (bool, String) {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../dist");
    let piped = Stdio::piped;
    let started =
        Command::new("promtool").args(args).current_dir(folder).stdin(piped()).stdout(piped()).stderr(piped()).spawn();
    let mut child = started.expect("it is installed");
    child.stdin.take().expect("it is piped").write_all(input.as_bytes()).expect("it reads");
    let ended = child.wait_with_output().expect("it ends");
    let said = [ended.stdout, ended.stderr].concat();
    (ended.status.success(), String::from_utf8_lossy(&said).into_owned())
}

#[track_caller]
fn content(args: &[&str], input: &str) {
    let (content, said) = promtool(args, input);
    assert!(content, "{said}");
}

#[test]
#[ignore = "lab: needs promtool"]
fn rules_are_sound_and_fire_where_they_should() {
    content(&["check", "rules", "rules.yml"], "");
    content(&["test", "rules", "rules-test.yml"], "");
}

#[test]
#[ignore = "lab: needs promtool"]
fn metrics_are_named_as_prometheus_wants() {
    let site = everything();
    for path in ["/metrics", "/probe?target=office"] {
        let (_, said) = promtool(&["check", "metrics"], &site.get(path).body);
        // Networks are rated in bit/s: the one rule that we break.
        let others: Vec<&str> = said.lines().filter(|line| !line.is_empty() && !line.ends_with(BITS)).collect();
        assert!(others.is_empty(), "{path}: {others:#?}");
    }
}

const BITS: &str = "use base unit \"bytes\" instead of \"bits\"";

#[test]
#[ignore = "lab: needs promtool"]
fn a_web_config_file_is_one_of_prometheus_too() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("web.yml");
    let hash = bcrypt::hash("secret", 4).expect("a hash");
    std::fs::write(&file, format!("basic_auth_users:\n  anna: {hash}\n")).expect("a file");
    content(&["check", "web-config", file.to_str().expect("a plain name")], "");
}

/// Grafana's own variables, as Grafana would put values for them.
const VARIABLES: [(&str, &str); 3] = [("$__rate_interval", "5m"), ("$__interval", "1m"), ("$target", "office|lab")];

/// Each expression of the dashboard, as a rule.
#[test]
#[ignore = "lab: needs promtool"]
fn what_the_dashboard_asks_is_promql() {
    let mut rules = "groups:\n  - name: dashboard\n    rules:\n".to_owned();
    let expressions = crate::grafana::expressions();
    for (n, expression) in expressions.iter().enumerate() {
        let mut plain = expression.clone();
        for (name, value) in VARIABLES {
            plain = plain.replace(name, value);
        }
        assert!(!plain.contains('$'), "a variable that nobody fills: {plain}");
        let text = serde_json::Value::String(plain);
        writeln!(rules, "      - record: panel:{n}\n        expr: {text}").expect("a string takes it");
    }
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("dashboard.yml");
    std::fs::write(&file, rules).expect("a file");
    let (content, said) = promtool(&["check", "rules", file.to_str().expect("a plain name")], "");
    assert!(content && said.contains(&format!("{} rules found", expressions.len())), "{said}");
}
