//! A transfer as a report file.

use narrows_units::Octets;

use super::{Align, Cell, MetricSection, ReportFile, Spent, Table};
use crate::answer_line::AnswerLine;
use crate::document::Target;
use crate::picture::{Picture, Point, Series, TransferOverTime};

/// What a transfer shows, in figures and series.
#[derive(Debug, Clone, PartialEq)]
pub struct TransferFile {
    /// Against whom.
    pub target: Target,
    /// The program's version.
    pub version: String,
    /// When it began.
    pub started_at: Option<String>,
    /// What a busy reader wants first.
    pub answer: Vec<AnswerLine>,
    /// Payload octets that were sent.
    pub octets: u64,
    /// Over this time, seconds.
    pub seconds: f64,
    /// Every figure: name and value.
    pub results: Vec<(String, String)>,
    /// Rates over time: label, then nanoseconds and bit/s.
    pub rates: Vec<(String, Vec<(f64, f64)>)>,
    /// Congestion windows over time: label, then nanoseconds and octets.
    pub windows: Vec<(String, Vec<(f64, f64)>)>,
    /// The document as the command prints it.
    pub json: String,
}

/// Most points of a series.
const POINTS: usize = 2_000;

impl ReportFile {
    /// Of `throughput`.
    pub fn of_transfer(transfer: TransferFile, command: &str) -> Self {
        let picture = TransferOverTime {
            title: "Rate and congestion window over time".to_owned(),
            rates: transfer.rates.iter().map(series).collect(),
            windows: transfer.windows.iter().map(series).collect(),
            stop_ns: None,
            value_bps: None,
            truth_bps: None,
        };
        let rows = transfer.results.into_iter().map(|(name, value)| vec![Cell::from(name), Cell::from(value)]);
        let sent = Octets::new(transfer.octets);
        Self {
            title: super::title("throughput", &transfer.target),
            facts: [
                ("begun", transfer.started_at.unwrap_or_default()),
                ("took", format!("{:.1} s", transfer.seconds)),
                ("sent", sent.to_string()),
                ("by", format!("narrows {}", transfer.version)),
            ]
            .into_iter()
            .filter(|(_, value)| !value.is_empty())
            .collect(),
            notes: Vec::new(),
            answer: transfer.answer,
            path: None,
            results: Table { head: vec![("figure", Align::Left), ("value", Align::Left)], rows: rows.collect() },
            found: vec![MetricSection {
                what: "transfer".to_owned(),
                claim: format!("{sent} in {:.1} s", transfer.seconds),
                words: vec!["Counted by both hosts, interval by interval.".to_owned()],
                pictures: vec![("What arrived in each interval.", Picture::TransferOverTime(picture))],
                evidence: Vec::new(),
            }],
            spent: vec![Spent { what: "transfer".to_owned(), seconds: transfer.seconds, octets: transfer.octets }],
            cost: format!("{sent} of payload over {:.1} s", transfer.seconds),
            hosts: Table::default(),
            host_notes: Vec::new(),
            advice: Vec::new(),
            doubts: Vec::new(),
            command: command.to_owned(),
            json: transfer.json,
        }
    }
}

fn series((label, points): &(String, Vec<(f64, f64)>)) -> Series {
    let step = points.len().div_ceil(POINTS).max(1);
    Series::new(label.clone(), points.iter().step_by(step).map(|&(x, y)| Point::new(x, y)).collect())
}
