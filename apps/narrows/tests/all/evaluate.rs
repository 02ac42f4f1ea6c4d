//! `narrows evaluate` as a program: what is printed, what is refused, and that a kill loses
//! nothing.

use crate::common;

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use common::{run, text, validate};
use serde_json::Value;

const SCENARIO: &str = "name = \"t\"\n[[hop]]\nrate = \"{{rate}}\"\ndelay = \"1 ms\"\ncross = [{ arrivals = \"poisson\", rate = \"3 Mbit/s\", ip_octets = 1500 }]\n";

const PLAN: &str = r#"
name = "small"
about = "two rates"
source = "[Key] table 1"
runs = { simulator = 1000 }
[[scenario]]
template = "t.toml"
with = { rate = ["10 Mbit/s", "20 Mbit/s"] }
[[method]]
name = "rtt"
label = "rtt"
params = { probes = 60 }
[[published]]
scenario = "t-10Mbit-s"
method = "rtt"
value = "2.5 ms"
"#;

fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("t.toml"), SCENARIO).expect("the template");
    std::fs::write(folder.path().join("small.toml"), PLAN).expect("the plan");
    folder
}

fn lines(log: &Path) -> usize {
    let octets = std::fs::read(log).unwrap_or_default();
    octets.split_inclusive(|octet| *octet == b'\n').count()
}

/// Everything that an evaluation can write.
const WRITTEN: [(&str, &str); 6] = [
    ("-o", ".json"),
    ("--csv", ".csv"),
    ("--parquet", ".parquet"),
    ("--runs-parquet", "-runs.parquet"),
    ("--runs-csv", "-runs.csv"),
    ("--html", ".html"),
];

fn files(folder: &Path, name: &str) -> Vec<std::path::PathBuf> {
    let of = |(_, suffix): &(&str, &str)| folder.join(format!("{name}{suffix}"));
    WRITTEN.iter().map(of).collect()
}

fn call(folder: &Path, name: &str) -> Vec<String> {
    let (plan, runs) = (folder.join("small.toml"), folder.join(format!("{name}.runs")));
    let call = ["evaluate", text(&plan), "--json", "--quiet", "--runs-dir", text(&runs)];
    let mut call: Vec<String> = call.map(str::to_owned).into();
    for ((flag, _), file) in WRITTEN.iter().zip(files(folder, name)) {
        call.extend([(*flag).to_owned(), text(&file).to_owned()]);
    }
    call
}

/// 2 000 runs, killed half-way: the resumed evaluation makes the same files, octet by octet, and
/// makes no run twice.
#[test]
#[cfg_attr(not(feature = "parquet"), ignore = "needs --features parquet")]
fn a_killed_evaluation_goes_on() {
    let folder = folder();
    let files = |name: &str| files(folder.path(), name);
    let call = |name: &str| call(folder.path(), name);
    let whole: Vec<String> = call("whole");
    let ended = run(&whole.iter().map(String::as_str).collect::<Vec<_>>());
    assert_eq!(ended.status.code(), Some(0), "{ended:?}");

    let log = folder.path().join("broken.runs/runs.jsonl");
    let mut child = Command::new(env!("CARGO_BIN_EXE_narrows"))
        .args(call("broken"))
        .args(["--jobs", "1"])
        .stderr(Stdio::null())
        .spawn()
        .expect("the program");
    for _ in 0..20_000 {
        if lines(&log) >= 300 {
            break;
        }
        #[expect(clippy::disallowed_methods, reason = "waits for another program")]
        std::thread::sleep(Duration::from_millis(1));
    }
    child.kill().expect("it runs or has ended");
    child.wait().expect("its end");
    let held = lines(&log);
    assert!((300..2000).contains(&held), "killed at {held} runs of 2000: too early or too late to show anything");
    let resumed = call("broken");
    let ended = run(&resumed.iter().map(String::as_str).collect::<Vec<_>>());
    assert_eq!(ended.status.code(), Some(0), "{ended:?}");
    assert_eq!(lines(&log), 2000);
    for (one, other) in files("whole").iter().zip(&files("broken")) {
        let (one, other) = (std::fs::read(one).expect("a file"), std::fs::read(other).expect("a file"));
        assert!(!one.is_empty() && one == other, "{} and {} octets", one.len(), other.len());
    }
    let json = std::fs::read_to_string(&files("whole")[0]).expect("the document");
    let document: Value = serde_json::from_str(&json).expect("JSON");
    validate(narrows_report::schema::EVALUATION, &document);
    assert_eq!(document["rows"][0]["runs"], 1000);
    assert_eq!(document["rows"][0]["published"]["value_bps"], 2.5e6);
}

#[test]
fn check_runs_nothing() {
    let folder = folder();
    let plan = folder.path().join("small.toml");
    let ended = run(&["evaluate", text(&plan), "--check"]);
    assert_eq!(ended.status.code(), Some(0), "{ended:?}");
    assert!(ended.stdout.contains("2 rows, 2000 runs, 1 published numbers"), "{}", ended.stdout);
    assert!(!Path::new("small.runs").exists());
}

#[test]
fn nonsense_is_refused() {
    let folder = folder();
    let plan = folder.path().join("small.toml");
    let bad = folder.path().join("bad.toml");
    std::fs::write(&bad, PLAN.replace("rtt", "rttt")).expect("a plan");
    for (call, word) in [
        (vec!["evaluate", text(&bad), "--check"], "rttt"),
        (vec!["evaluate", "/nowhere/plan.toml"], "/nowhere/plan.toml"),
        (vec!["evaluate", text(&plan), "--only", "nothing-of-it"], "nothing-of-it"),
        (vec!["evaluate", text(&plan), "--world", "moon"], "simulator"),
        (vec!["evaluate", text(&plan), "--csv", "/nowhere/x.csv"], "/nowhere/x.csv"),
        (vec!["evaluate", text(&plan), "--runs", "0"], "--runs"),
    ] {
        let ended = run(&call);
        assert_eq!(ended.status.code(), Some(2), "{call:?}: {ended:?}");
        assert!(ended.stderr.contains(word), "{call:?}: {}", ended.stderr);
    }
}
