//! Rows and runs as tables for other programs: Parquet (by the `parquet` crate, without Arrow) and
//! CSV.

#[cfg(feature = "parquet")]
mod columns;
#[cfg(feature = "parquet")]
mod tables;

use std::fmt::Write as _;

use narrows_scenario::PathDirection;

use crate::cell::{Cell, Run};
use crate::simulated;
#[cfg(feature = "parquet")]
pub use tables::{rows_parquet, runs_parquet};

/// One line per finished run.
pub fn runs_csv<'a>(runs: impl Iterator<Item = (&'a Cell, u64, &'a Run)>) -> String {
    let mut out = String::from(
        "scenario,method,world,seed,verdict,truth_bps,value_bps,low_bps,high_bps,octets,packets,time_ns,peak_rate_bps,confidence,caveats,reason,not_judged,recording,truth_basis,long_run_truth_bps,scale_bps\r\n",
    );
    for (cell, seed, run) in runs {
        let number = |value: Option<u64>| value.map_or_else(String::new, |value| value.to_string());
        let text = |text: &str| {
            if text.contains([',', '"', '\n', '\r']) {
                format!("\"{}\"", text.replace('"', "\"\""))
            } else {
                text.to_owned()
            }
        };
        let _ = write!(
            out,
            "{},{},{},{seed},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{}\r\n",
            text(&cell.scenario.name),
            text(cell.subject.label()),
            cell.world.name(),
            word(&run.path.verdict).unwrap_or_default(),
            number(run.path.truth),
            number(run.path.value),
            number(run.path.low),
            number(run.path.high),
            run.octets,
            run.packets,
            run.time_ns,
            run.peak_rate_bps,
            run.confidence.as_ref().and_then(word).unwrap_or_default(),
            run.caveats.join(" "),
            run.reason.as_deref().unwrap_or_default(),
            text(run.not_judged.as_deref().unwrap_or_default()),
            run.recording.as_deref().unwrap_or_default(),
            word(&run.truth_basis).unwrap_or_default(),
            number(run.long_run_truth),
            number(scale(cell)),
        );
    }
    out
}

/// What errors of this row are relative to, in whole units; `None`: to each run's truth.
fn scale(cell: &Cell) -> Option<u64> {
    let scale = simulated::scale(&cell.scenario.scenario, PathDirection::Forward, cell.subject.metric()?)?;
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "rates are whole and positive")]
    let whole = scale.round() as u64;
    Some(whole)
}

/// A machine name, as in JSON.
fn word<T: serde::Serialize>(value: &T) -> Option<String> {
    let value = serde_json::to_value(value).ok()?;
    value.as_str().map(ToOwned::to_owned)
}
