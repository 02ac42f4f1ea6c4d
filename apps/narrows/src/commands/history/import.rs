//! Stored results as runs of the store.

use std::path::{Path, PathBuf};

use narrows_probe::BoundKind;
use narrows_report::readings::{QuantityUnit, Reading, readings, stored};
use narrows_store::Import;
use narrows_store::records::{Figure, Sample};
use narrows_units::Direction;
use narrows_watch::{Claim, Signal, WallTime};
use serde_json::Value;

use super::document::word;
use super::when::instant;
use crate::exit::{Exit, Failure};
use crate::output;

/// All or none: a file that is no result keeps the others out.
pub(super) fn run(files: &[PathBuf], target: Option<&str>, store: &Path) -> Result<Exit, Failure> {
    let all = files.iter().map(|file| read(file, target)).collect::<Result<Vec<Import>, Failure>>()?;
    let added = narrows_store::import(store, &all).map_err(super::failure)?;
    output::write(&format!("{added} of {} results are new\n", all.len()), None)?;
    Ok(Exit::Valid)
}

fn read(file: &Path, target: Option<&str>) -> Result<Import, Failure> {
    let wrong = |why: &dyn std::fmt::Display| Failure::usage(format!("{}: {why}", file.display()));
    let text = std::fs::read_to_string(file).map_err(|error| wrong(&error))?;
    let document = stored(&text).map_err(|error| wrong(&error))?;
    let found = readings(&document);
    if found.is_empty() {
        return Err(wrong(&"is no result of a measuring command"));
    }
    let began = document["started_at"].as_str().and_then(instant);
    let began = began.ok_or_else(|| wrong(&"does not say when it was measured (started_at)"))?;
    let named = document["target"]["name"].as_str().or_else(|| document["target"].as_str());
    let name = target.or(named).ok_or_else(|| wrong(&"names no target: --target does"))?;
    Ok(Import {
        // Of the document, not of the file: a page and its JSON are one result.
        text: document.to_string(),
        target: name.to_owned(),
        began,
        octets: document["cost"]["octets"].as_u64(),
        figures: found.iter().map(figure).collect(),
        samples: found.iter().filter_map(|reading| sample(reading, began)).collect(),
        document,
    })
}

/// The figures of a result document.
pub(crate) fn figures(document: &Value) -> Vec<Figure> {
    readings(document).iter().map(figure).collect()
}

fn figure(reading: &Reading) -> Figure {
    let unit = match reading.quantity.unit {
        QuantityUnit::BitPerSecond => "bit/s",
        QuantityUnit::Octet => "octets",
        QuantityUnit::Nanosecond => "ns",
        QuantityUnit::Count => "1",
        QuantityUnit::Ratio => "ratio",
    };
    Figure {
        metric: reading.quantity.name.to_owned(),
        direction: word(&reading.direction),
        unit: unit.to_owned(),
        value: reading.value,
        low: reading.low,
        high: reading.high,
        claim: claim(reading.claim),
    }
}

/// Those figures that are values of a signal. A test's round trips are not: pulses have the least
/// of a minute.
fn sample(reading: &Reading, at: WallTime) -> Option<(Signal, Sample)> {
    let signal = match (reading.quantity.name, reading.direction) {
        ("available_ip_capacity", Direction::Forward) => Signal::AvailableForward,
        ("available_ip_capacity", Direction::Reverse) => Signal::AvailableReverse,
        ("ip_capacity", Direction::Forward) => Signal::Capacity,
        _ => return None,
    };
    let Reading { value, low, high, .. } = *reading;
    let claim = claim(reading.claim);
    Some((signal, Sample { at, value, low, high, claim, loaded: false, host_busy: false, run: None }))
}

const fn claim(kind: BoundKind) -> Claim {
    match kind {
        BoundKind::Estimated => Claim::Estimate,
        BoundKind::LowerBound => Claim::AtLeast,
        BoundKind::UpperBound => Claim::AtMost,
        BoundKind::Inconclusive => Claim::Inconclusive,
    }
}
