//! The result document of `test` and `demo`.

use std::net::IpAddr;

use narrows_diagnose::advice::{Advice, Findings, HostEnvironment};
use narrows_diagnose::host::{Ends, FamilyRow};
use narrows_methods::job::JobReport;
use narrows_probe::{BoundKind, Cost, HostFacts, PathFacts};
use narrows_units::{BitRate, Direction, Metric};
use serde::Serialize;

use crate::answer_line::{AnswerLine, answer_text};
use crate::findings::{Environments, findings};
use crate::rows::MetricRow;
use crate::schema;
use crate::timing::TimingReport;

/// Everything that one run found.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Document {
    /// Name and version of the schema that this document follows.
    pub schema: &'static str,
    /// The program.
    pub tool: &'static str,
    /// Its version.
    pub version: String,
    /// The command: `test`, `demo`, or that of a single metric.
    pub kind: &'static str,
    /// When it began, RFC 3339; `null` in a simulated world.
    pub started_at: Option<String>,
    /// Against whom.
    pub target: Target,
    /// What a busy reader wants first, by [`Document::conclude`].
    pub answer: Vec<AnswerLine>,
    /// What was asked for, defaults included.
    pub params: std::collections::BTreeMap<String, String>,
    /// One row per metric and direction.
    pub metrics: Vec<MetricRow>,
    /// Both hosts.
    pub host: HostReport,
    /// What to do about it.
    pub advice: Vec<Advice>,
    /// What advice is built from, one per direction.
    #[serde(skip)]
    pub findings: Vec<Findings>,
    /// What the run imposed.
    pub cost: CostRow,
    /// How well the path that was played had valid timing; only where the path was ours.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timing: Option<TimingReport>,
    /// What the reader must know first (for example, that the run was simulated).
    pub notes: Vec<Note>,
    /// What went wrong on the way; the metrics say what was known by then.
    pub error: Option<Problem>,
}

/// The peer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Target {
    /// As the user typed it.
    pub name: String,
    /// What it resolved to.
    pub address: Option<IpAddr>,
    /// Control port.
    pub port: Option<u16>,
}

/// Both hosts: what they can do, and what that means for the methods.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct HostReport {
    /// What the host can do that sends in the first direction: this one, unless only the reverse
    /// was measured.
    pub sender: HostFacts,
    /// The same of the one that receives.
    pub receiver: HostFacts,
    /// Settings of the sender; nothing is known in them if it did not tell.
    pub sender_environment: HostEnvironment,
    /// Settings of the receiver.
    pub receiver_environment: HostEnvironment,
    /// Which families of methods the hosts can carry at this path's rate.
    pub verdicts: Vec<FamilyRow>,
    /// The hosts are what limits the result.
    pub is_bottleneck: bool,
}

/// What a run imposed.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct CostRow {
    /// IP octets sent.
    pub octets: u64,
    /// Packets sent.
    pub packets: u64,
    /// Time taken.
    pub seconds: f64,
    /// Highest IP-layer rate over 100 ms, bit/s.
    pub peak_bps: u64,
}

/// Something the reader must know.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Note {
    /// Machine name.
    pub id: &'static str,
    /// For people.
    pub text: String,
}

/// Id of the note that says that only this end measured.
pub const SINGLE_ENDED: &str = "single_ended";

/// What went wrong.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Problem {
    /// Exit code that goes with it.
    pub code: u8,
    /// Who can mend it: `caller`, `host`, `peer`, `path`.
    pub who: &'static str,
    /// What happened and what to do.
    pub text: String,
}

/// One metric with its answer.
#[derive(Serialize)]
struct AnsweredRow<'a> {
    #[serde(flatten)]
    row: &'a MetricRow,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    answer: &'a [AnswerLine],
}

impl From<Cost> for CostRow {
    fn from(cost: Cost) -> Self {
        Self { octets: cost.octets, packets: cost.packets, seconds: cost.time.as_secs_f64(), peak_bps: cost.peak_bps }
    }
}

impl Document {
    /// The document of one or more main jobs (one per direction) over the same hosts, whose
    /// environments come in the same order; of a job without any nothing is known.
    pub fn new<F>(
        kind: &'static str,
        version: String,
        target: Target,
        jobs: &[JobReport<F>],
        environments: &[Environments],
    ) -> Self {
        let metrics: Vec<MetricRow> = jobs.iter().flat_map(|job| &job.entries).map(MetricRow::new).collect();
        let cost = jobs.iter().fold(Cost::default(), |sum, job| sum.then(job.cost));
        let nothing_known = PathFacts::ideal(0, std::time::Duration::ZERO);
        let facts = jobs.first().map_or(&nothing_known, |job| &job.facts);
        let findings = findings(jobs, environments);
        let direction = jobs.first().and_then(|job| Some(job.entries.first()?.direction));
        let environments = environments.first().cloned().unwrap_or_default();
        let host = HostReport::new(facts, &metrics, environments, direction);
        Self {
            schema: schema::REPORT_NAME,
            tool: "narrows",
            version,
            kind,
            started_at: None,
            target,
            answer: Vec::new(),
            params: std::collections::BTreeMap::new(),
            metrics,
            host,
            advice: Vec::new(),
            findings,
            cost: cost.into(),
            timing: None,
            notes: Vec::new(),
            error: None,
        }
    }

    /// The whole main job stands behind it, not one metric alone.
    pub fn is_whole_job(&self) -> bool {
        matches!(self.kind, "test" | "demo")
    }

    /// The first row of a metric.
    pub fn row(&self, metric: Metric) -> Option<&MetricRow> {
        self.metrics.iter().find(|row| row.metric == metric)
    }

    /// Sets the truth of a metric, in its unit, in every row of it.
    pub fn set_truth(&mut self, metric: Metric, truth: u64) {
        for row in self.metrics.iter_mut().filter(|row| row.metric == metric) {
            row.truth = Some(truth);
        }
    }

    /// Only this end measured.
    pub(crate) fn is_single_ended(&self) -> bool {
        self.notes.iter().any(|note| note.id == SINGLE_ENDED)
    }

    /// The two metrics that a path is known by have no value, or were not timed validly.
    pub fn is_inconclusive(&self) -> bool {
        let open = |row: &MetricRow| row.verdict == BoundKind::Inconclusive || row.timing_invalid;
        [Metric::IpCapacity, Metric::AvailableIpCapacity].iter().any(|&metric| self.row(metric).is_some_and(open))
    }

    /// Says how the path that was played kept its time, and marks the rows that rest on stages
    /// under which it did not.
    pub fn set_timing(&mut self, timing: TimingReport) {
        for row in &mut self.metrics {
            row.timing_invalid = timing.is_invalid_for(row.metric);
        }
        self.timing = Some(timing);
    }

    /// The first metric alone, with the answer, as one line of JSON: what a command for one metric
    /// prints.
    pub fn row_json(&self) -> String {
        let row = self.metrics.first().map(|row| AnsweredRow { row, answer: &self.answer });
        serde_json::to_string(&row).unwrap_or_else(|error| format!("{{\"error\":\"{error}\"}}"))
    }

    /// The same as text: the answer, then the metric's row, and that of the path MTU where larger
    /// packets vanish.
    pub fn row_text(&self) -> String {
        let size = self.metrics.iter().skip(1).filter(|row| row.metric == Metric::PathMtu);
        let rows: String = self.metrics.first().into_iter().chain(size).map(MetricRow::text).collect();
        if self.answer.is_empty() { rows } else { format!("{}\n{rows}", answer_text(&self.answer)) }
    }

    /// As one line of JSON.
    pub fn json(&self) -> String {
        serde_json::to_string(self).unwrap_or_else(|error| format!("{{\"error\":\"{error}\"}}"))
    }
}

impl Document {
    /// As CSV: a header line and one line per metric. Nothing in it needs quoting but remarks,
    /// which are quoted.
    pub fn csv(&self) -> String {
        let mut out = String::from(
            "metric,value,low,high,unit,layer,direction,method,octets,seconds,limited_by,verdict,confidence,caveats,truth\n",
        );
        let number = |value: Option<u64>| value.map_or_else(String::new, |value| value.to_string());
        for row in &self.metrics {
            let word = |value: serde_json::Value| value.as_str().unwrap_or_default().to_owned();
            let json = serde_json::to_value(row).unwrap_or_default();
            let field = |name: &str| word(json.get(name).cloned().unwrap_or_default());
            let caveats: Vec<&str> = row.caveats.iter().map(|caveat| caveat.id.as_str()).collect();
            let cells = [
                field("metric"),
                number(row.value),
                number(row.low),
                number(row.high),
                field("unit"),
                field("layer"),
                field("direction"),
                row.method.clone(),
                row.octets.to_string(),
                format!("{:.3}", row.seconds),
                field("limited_by"),
                field("verdict"),
                field("confidence"),
                format!("\"{}\"", caveats.join(" ")),
                number(row.truth),
            ];
            out.push_str(&cells.join(","));
            out.push('\n');
        }
        out
    }
}

impl HostReport {
    fn new(facts: &PathFacts, metrics: &[MetricRow], environments: Environments, direction: Option<Direction>) -> Self {
        let value = |metric: Metric| metrics.iter().find(|row| row.metric == metric).and_then(|row| row.value);
        let rate = value(Metric::IpCapacity).map(BitRate::from_bps);
        let limited_by_host = |row: &MetricRow| {
            use narrows_probe::Limit;
            matches!(row.limited_by, Some(Limit::Sender | Limit::Receiver | Limit::Clock))
        };
        let Environments { here, remote } = environments;
        let (sender_environment, receiver_environment) = match direction {
            Some(Direction::Reverse) => (remote, here),
            _ => (here, remote),
        };
        Self {
            sender: facts.sender.clone(),
            receiver: facts.receiver.clone(),
            sender_environment,
            receiver_environment,
            verdicts: Ends::of_path(facts).families(rate),
            is_bottleneck: metrics
                .iter()
                .filter(|row| {
                    matches!(row.metric, Metric::IpCapacity | Metric::AvailableIpCapacity | Metric::UdpAchievable)
                })
                .any(limited_by_host),
        }
    }
}
