//! Round trips by time and size.

use std::collections::BTreeSet;

use narrows_watch::WallTime;
use narrows_watch::schedule::TargetId;

use super::Reader;
use super::series::pulse_origins;
use crate::codec::{Sketch, upper_ns};
use crate::error::Result;
use crate::records::{Heatmap, Span};
use crate::roll_up::MINUTES;
use crate::summary::{Summary, by_interval};

impl Reader {
    /// Round trips by time and size, in at most `columns` columns of a minute or more.
    pub fn heatmap(&self, target: TargetId, span: Span, columns: usize) -> Result<Heatmap> {
        // Pulses are kept by the minute: columns hold whole ones, and lie where they were.
        let minutes = |ms: i64| ms.div_euclid(MINUTES.interval);
        let (since, until) = (minutes(span.since.millis()), span.until.millis());
        let columns = i64::try_from(columns.max(1)).unwrap_or(i64::MAX);
        let interval = ((minutes(until.saturating_sub(1)).saturating_sub(since)) / columns + 1) * MINUTES.interval;
        let since = since.saturating_mul(MINUTES.interval);
        self.ask(|connection| {
            let mut parts = Vec::new();
            for origin in pulse_origins(connection, target)? {
                parts.extend(origin.parts(connection, since, until, interval)?);
            }
            parts.sort_by_key(|part| part.at);
            Ok(heatmap(&by_interval(&parts, since, interval)))
        })
    }
}

fn heatmap(columns: &[Summary]) -> Heatmap {
    let none = Sketch::default();
    let sketches: Vec<&Sketch> = columns.iter().map(|column| column.sketch.as_ref().unwrap_or(&none)).collect();
    let used: BTreeSet<u16> = sketches.iter().flat_map(|sketch| sketch.classes().map(|(class, _)| class)).collect();
    // All classes between the first and the last: a gap is part of the picture.
    let classes: Vec<u16> = match (used.first(), used.last()) {
        (Some(&first), Some(&last)) => (first..=last).collect(),
        _ => Vec::new(),
    };
    let counts = sketches.iter().map(|sketch| {
        let mut counts = vec![0; classes.len()];
        for (class, count) in sketch.classes() {
            counts[usize::from(class - classes[0])] = count;
        }
        counts
    });
    let lost = columns.iter().map(|column| {
        let sent = column.n.saturating_add(column.lost);
        if sent > 0 { f64::from(column.lost) / f64::from(sent) } else { 0.0 }
    });
    Heatmap {
        times: columns.iter().map(|column| WallTime::from_millis(column.at)).collect(),
        upper_ns: classes.iter().map(|&class| upper_ns(class)).collect(),
        counts: counts.collect(),
        lost: lost.collect(),
    }
}
