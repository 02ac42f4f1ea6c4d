//! A plan that is cut off and taken up again gives what an unbroken one gives, octet by octet.

use std::collections::BTreeSet;
use std::io::Write;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use narrows_evaluate::{Cell, ExternalRunner, Judged, Options, Order, Plan, Progress, Run, RunFault, Store, carry_out};
use narrows_probe::BoundKind;
use narrows_report::picture::Picture;
use narrows_report::{Status, World};

const PLAN: &str = r#"
name = "p"
worlds = ["simulator", "lab"]
runs = { simulator = 200, lab = 4 }
keep = "lab"
[[scenario]]
template = "t.toml"
with = { rate = ["10 Mbit/s", "20 Mbit/s"] }
[[method]]
name = "rtt"
params = { probes = [4, 8] }
[[method]]
name = "delphi"
metric = "available_ip_capacity"
[[published]]
scenario = "t-10Mbit-s"
method = "rtt"
metric = "round_trip_time"
value = "3 ms"
[[published]]
scenario = "t-10Mbit-s"
method = "nettimer"
metric = "ip_capacity"
value = "9 Mbit/s"
"#;

const SCENARIO: &str = "name = \"t\"\n[[hop]]\nrate = \"{{rate}}\"\ndelay = \"1 ms\"\ncross = [{ arrivals = \"poisson\", rate = \"3 Mbit/s\", ip_octets = 1500 }]\n";

fn plan(folder: &Path) -> Plan {
    std::fs::write(folder.join("t.toml"), SCENARIO).expect("the template");
    Plan::from_toml(PLAN, Path::new("p.toml"), folder).expect("a plan")
}

/// Answers from the seed alone; breaks after so many runs.
struct Fake {
    left: usize,
    seen: Vec<(String, u64)>,
}

impl ExternalRunner for Fake {
    fn world(&self) -> World {
        World::Lab
    }

    fn run(&mut self, cell: &Cell, order: Order<'_>) -> Result<Run, RunFault> {
        let broke = || RunFault::Broke { why: "the machine is gone".to_owned() };
        self.left = self.left.checked_sub(1).ok_or_else(broke)?;
        self.seen.push((format!("{} {}", cell.scenario.name, cell.subject.label()), order.seed));
        let value = 1_000_000 * order.seed;
        Ok(Run {
            path: Judged {
                hop: None,
                truth: Some(2_000_000),
                value: Some(value),
                low: Some(value),
                high: Some(value),
                verdict: BoundKind::Estimated,
            },
            truth_basis: narrows_report::TruthBasis::Scenario,
            long_run_truth: None,
            truth_deviation: None,
            hops: Vec::new(),
            octets: 64,
            packets: 1,
            time_ns: 1_000,
            peak_rate_bps: 51_200,
            confidence: None,
            caveats: Vec::new(),
            reason: None,
            measured_before: 0,
            not_judged: (order.seed == 2).then(|| "late".to_owned()),
            external_tool_version: None,
            recording: None,
            tracking: None,
        })
    }
}

/// Sets the flag after so many runs.
struct StopAfter<'a> {
    left: u32,
    stop: &'a AtomicBool,
}

impl Progress for StopAfter<'_> {
    fn begins(&mut self, _: u64, _: u64) {}
    fn at(&mut self, _: &Cell) {}
    fn note(&mut self, _: &str) {}
    fn one_more(&mut self) {
        self.left = self.left.saturating_sub(1);
        self.stop.store(self.left == 0, Ordering::Relaxed);
    }
}

/// Carries the plan out as far as it goes; returns the JSON of what there is.
fn go(plan: &Plan, folder: &Path, runner: &mut Fake, after: u32) -> String {
    let cells = plan.cells();
    let mut store = Store::open(folder).expect("a store");
    let stop = AtomicBool::new(false);
    let mut progress = StopAfter { left: after, stop: &stop };
    let options = Options { jobs: 3, stop: &stop };
    let shortfalls = carry_out(&cells, &mut store, &mut [runner], options, &mut progress).expect("room on the disk");
    narrows_evaluate::document(plan, &cells, &store, &shortfalls).json()
}

fn fake(left: usize) -> Fake {
    Fake { left, seen: Vec::new() }
}

#[test]
fn a_resumed_plan_gives_the_same_octets() {
    let folder = tempfile::tempdir().unwrap();
    let plan = plan(folder.path());
    let mut whole_bench = fake(100);
    let whole = go(&plan, &folder.path().join("whole"), &mut whole_bench, u32::MAX);
    let broken = folder.path().join("broken");
    let mut seen = Vec::new();
    // In the simulator by a stop; in the lab by a fault, twice; each time a line that a kill has
    // torn.
    for (after, runs) in [(7, 100), (u32::MAX, 5), (u32::MAX, 2)] {
        let mut runner = fake(runs);
        let partial = go(&plan, &broken, &mut runner, after);
        assert!(partial != whole);
        seen.extend(runner.seen);
        let mut log = std::fs::File::options().append(true).open(broken.join("runs.jsonl")).unwrap();
        log.write_all(b"{\"key\":\"0123456789abcdef01234567").unwrap();
    }
    let mut runner = fake(100);
    assert!(go(&plan, &broken, &mut runner, u32::MAX) == whole);
    seen.extend(runner.seen);
    // No run was lost, and none was made twice.
    assert_eq!(seen.len(), 2 * 2 * 4);
    assert_eq!(seen.iter().collect::<BTreeSet<_>>(), whole_bench.seen.iter().collect());
    let mut idle = fake(0);
    assert_eq!(go(&plan, &broken, &mut idle, u32::MAX), whole);
    let lines = std::fs::read_to_string(broken.join("runs.jsonl")).unwrap().lines().count();
    assert_eq!(lines, 2 * 2 * (200 + 4));
}

/// Rows are in the plan's order; what does not exist yet is there with its status, and so is what
/// only a paper knows.
#[test]
fn every_row_is_there() {
    let folder = tempfile::tempdir().unwrap();
    let plan = plan(folder.path());
    let cells = plan.cells();
    let mut store = Store::open(&folder.path().join("runs")).unwrap();
    let stop = AtomicBool::new(false);
    let options = Options { jobs: 2, stop: &stop };
    let shortfalls = carry_out(&cells, &mut store, &mut [&mut fake(100)], options, &mut ()).unwrap();
    let document = narrows_evaluate::document(&plan, &cells, &store, &shortfalls);
    let rows: Vec<(&str, Status, usize)> =
        document.rows.iter().map(|row| (row.method.as_str(), row.status, row.summary.runs)).collect();
    let of_one = |own: &[(&'static str, Status, usize)]| own.to_vec();
    let both = of_one(&[
        ("rtt probes=4", Status::Measured, 200),
        ("rtt probes=4", Status::Measured, 3),
        ("rtt probes=8", Status::Measured, 200),
        ("rtt probes=8", Status::Measured, 3),
        ("delphi", Status::NotYet, 0),
        ("delphi", Status::NotYet, 0),
    ]);
    let mut expected = both.clone();
    expected.push(("nettimer", Status::PublishedOnly, 0));
    expected.extend(both);
    assert_eq!(rows, expected);
    let lab = &document.rows[1];
    assert_eq!((lab.judged_runs, lab.not_judged_runs), (Some(3), Some(1)));
    // By hand: seeds 1, 3 and 4 are judged; the truth is 2 M; round trips are relative to the
    // truth.
    assert_eq!(lab.summary.median_error_ratio, Some(0.5));
    assert_eq!(lab.summary.wrong_confident_ratio, Some(1.0));
    assert_eq!(document.rows[0].published.as_ref().and_then(|published| published.value_bps), Some(3e6));
    let schema: serde_json::Value = serde_json::from_str(narrows_report::schema::EVALUATION).unwrap();
    let json: serde_json::Value = serde_json::from_str(&document.json()).unwrap();
    assert!(jsonschema::validator_for(&schema).unwrap().is_valid(&json));
    let csv = document.csv();
    let lines: Vec<&str> = csv.lines().collect();
    assert_eq!(lines.len(), 1 + document.rows.len());
    assert!(lines.iter().all(|line| line.matches(',').count() == lines[0].matches(',').count()));
    assert!(document.text().contains("not yet") && document.text().contains("3 ms"));
}

/// Observations that the simulator kept give the same numbers again, and those of other parameters
/// where the method can.
#[test]
fn recordings_are_analysed_again() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("t.toml"), SCENARIO).unwrap();
    let text = "name = \"r\"\nworlds = [\"simulator\", \"recording\"]\nruns = { simulator = 2, recording = 3 }\nkeep = \"all\"\n[[scenario]]\ntemplate = \"t.toml\"\nwith = { rate = \"10 Mbit/s\" }\n[[method]]\nname = \"capacity\"\n";
    let plan = Plan::from_toml(text, Path::new("r.toml"), folder.path()).unwrap();
    let cells = plan.cells();
    let mut store = Store::open(&folder.path().join("runs")).unwrap();
    let stop = AtomicBool::new(false);
    let options = Options { jobs: 2, stop: &stop };
    let shortfalls = carry_out(&cells, &mut store, &mut [], options, &mut ()).unwrap();
    let document = narrows_evaluate::document(&plan, &cells, &store, &shortfalls);
    let [simulated, recorded] = &document.rows[..] else { panic!("{} rows", document.rows.len()) };
    assert_eq!((simulated.status, recorded.status), (Status::Measured, Status::Partial));
    assert_eq!(recorded.summary, simulated.summary);
    assert!(recorded.why.as_ref().unwrap().contains("no observations"), "{:?}", recorded.why);
}

/// Says something of the second hop in every other run.
struct Hops;

impl ExternalRunner for Hops {
    fn world(&self) -> World {
        World::Lab
    }

    fn run(&mut self, cell: &Cell, order: Order<'_>) -> Result<Run, RunFault> {
        let mut run = fake(1).run(cell, order)?;
        run.not_judged = None;
        run.external_tool_version = Some("tool 1.2".to_owned());
        let hop = Judged { hop: Some(2), truth: Some(4_000_000), value: Some(5_000_000), ..run.path };
        run.hops.extend((order.seed % 2 == 1).then_some(hop));
        Ok(run)
    }
}

/// What a method says of a hop has a row of its own behind the path's, with the paper's number for
/// that hop; a run that says nothing of the hop is inconclusive there.
#[test]
fn hops_have_rows() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("t.toml"), SCENARIO).unwrap();
    let text = "name = \"h\"\nworlds = [\"lab\"]\nruns = { lab = 4 }\nseed = 1\nkeep = \"none\"\n[[scenario]]\ntemplate = \"t.toml\"\nwith = { rate = \"10 Mbit/s\" }\n[[method]]\nname = \"capacity\"\n[[published]]\nscenario = \"t-10Mbit-s\"\nmethod = \"capacity\"\nhop = 2\nvalue = \"4.5 Mbit/s\"\n";
    let plan = Plan::from_toml(text, Path::new("h.toml"), folder.path()).unwrap();
    let cells = plan.cells();
    let mut store = Store::open(&folder.path().join("runs")).unwrap();
    let stop = AtomicBool::new(false);
    let options = Options { jobs: 1, stop: &stop };
    let shortfalls = carry_out(&cells, &mut store, &mut [&mut Hops], options, &mut ()).unwrap();
    let document = narrows_evaluate::document(&plan, &cells, &store, &shortfalls);
    let json: serde_json::Value = serde_json::from_str(&document.json()).unwrap();
    let schema: serde_json::Value = serde_json::from_str(narrows_report::schema::EVALUATION).unwrap();
    assert!(jsonschema::validator_for(&schema).unwrap().is_valid(&json));
    let rows = json["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 2);
    let (path, hop) = (&rows[0], &rows[1]);
    assert!(path.get("hop").is_none() && path.get("published").is_none());
    assert_eq!(path["external_tool_version"], "tool 1.2");
    assert_eq!((&hop["hop"], &hop["runs"]), (&2.into(), &4.into()));
    assert_eq!(hop["published"]["value_bps"], 4.5e6);
    // By hand: two of four runs speak of the hop, and say 5 M where 4 M are true.
    assert_eq!((&hop["truth_bps"], &hop["median_value_bps"]), (&4e6.into(), &5e6.into()));
    assert_eq!((&hop["median_error_ratio"], &hop["inconclusive_ratio"]), (&0.25.into(), &0.5.into()));
}

/// A plan that says nothing keeps the first run of each row, and its page shows what that run saw.
#[test]
fn the_first_run_is_kept_and_drawn() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("t.toml"), SCENARIO).unwrap();
    let text = "name = \"r\"\nruns = { simulator = 3 }\n[[scenario]]\ntemplate = \"t.toml\"\nwith = { rate = \"10 Mbit/s\" }\n[[method]]\nname = \"pathload\"\n[[method]]\nname = \"capacity\"\n";
    let plan = Plan::from_toml(text, Path::new("r.toml"), folder.path()).unwrap();
    let cells = plan.cells();
    let mut store = Store::open(&folder.path().join("runs")).unwrap();
    let stop = AtomicBool::new(false);
    let options = Options { jobs: 2, stop: &stop };
    carry_out(&cells, &mut store, &mut [], options, &mut ()).unwrap();
    let kept = narrows_evaluate::each_run(&cells, &store).map(|(_, _, run)| run.recording.is_some());
    assert_eq!(kept.collect::<Vec<_>>(), [true, false, false, true, false, false]);
    let figures = narrows_evaluate::pictures::of_runs(&cells, &store);
    let has = |fits: &dyn Fn(&Picture) -> bool| figures.iter().any(|figure| fits(&figure.picture));
    assert!(has(&|picture| matches!(picture, Picture::ResponseCurve(curve) if curve.series[0].points.len() >= 3)));
    assert!(has(
        &|picture| matches!(picture, Picture::DelayTrend(trend) if trend.trend.is_some() && trend.groups.len() > 4)
    ));
    assert!(has(&|picture| matches!(picture, Picture::DispersionHistogram(bins) if !bins.modes.is_empty())));
}

/// One store, one evaluation at a time; what is not ours is left as it is.
#[test]
fn a_store_is_one_evaluations_alone() {
    let folder = tempfile::tempdir().unwrap();
    let first = Store::open(folder.path()).unwrap();
    let second = Store::open(folder.path()).unwrap_err().to_string();
    assert!(second.contains("another evaluation"), "{second}");
    drop(first);
    assert!(Store::open(folder.path()).unwrap().is_empty());
    let log = folder.path().join("runs.jsonl");
    std::fs::write(&log, "somebody's notes").unwrap();
    let strange = Store::open(folder.path()).unwrap_err().to_string();
    assert!(strange.contains("line 1 is no run"), "{strange}");
    assert_eq!(std::fs::read_to_string(&log).unwrap(), "somebody's notes");
}
