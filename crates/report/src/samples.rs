//! What an answer rests on.

use std::borrow::Cow;
use std::collections::BTreeMap;

use narrows_probe::Samples;
use narrows_probe::outcome::SampleCounts;
use serde::Serialize;

/// Probes and packets behind a result, and what the method made of them.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct SamplesRow {
    /// Trains sent.
    pub trains: u64,
    /// Load segments sent.
    pub loads: u64,
    /// Transfer segments sent.
    pub transfers: u64,
    /// Captures taken.
    pub captures: u64,
    /// Packets of trains and loads sent; of captures, seen.
    pub sent: u64,
    /// Of these, packets received, echoed or answered.
    pub answered: u64,
    /// Packets lost on the path.
    pub lost: u64,
    /// Packets that reached a host which dropped them or did not answer.
    pub dropped_by_host: u64,
    /// Packets that came out of order.
    pub reordered: u64,
    /// What the method kept, by name (`round_trips`, `pairs`), where it tells.
    pub kept: BTreeMap<Cow<'static, str>, u64>,
    /// What was left out, by reason; always `refused_probes` (never sent), and `unpaced_trains`
    /// (their departures left the plan), of which a method may have used those whose shape did not
    /// matter to it.
    pub rejected: BTreeMap<Cow<'static, str>, u64>,
}

impl SamplesRow {
    /// Of a run's count and its method's.
    pub fn new(samples: Samples, counts: &SampleCounts) -> Self {
        let mut rejected = counts.rejected.clone();
        rejected.insert("refused_probes".into(), samples.refused);
        rejected.insert("unpaced_trains".into(), samples.pacing_broken);
        Self {
            trains: samples.trains,
            loads: samples.loads,
            transfers: samples.transfers,
            captures: samples.captures,
            sent: samples.packets,
            answered: samples.answered,
            lost: samples.lost,
            dropped_by_host: samples.dropped_by_host,
            reordered: samples.reordered,
            kept: counts.kept.clone(),
            rejected,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_row_says_what_was_kept_and_why_not() {
        let counts = SampleCounts::default().kept("pairs", 40u32).rejected("out_of_order", 2u32);
        let samples =
            Samples { trains: 43, pacing_broken: 3, packets: 86, answered: 84, lost: 2, ..Samples::default() };
        let row = SamplesRow::new(samples, &counts);
        let text = serde_json::to_string(&row).unwrap();
        assert_eq!(
            text,
            r#"{"trains":43,"loads":0,"transfers":0,"captures":0,"sent":86,"answered":84,"lost":2,"dropped_by_host":0,"reordered":0,"kept":{"pairs":40},"rejected":{"out_of_order":2,"refused_probes":0,"unpaced_trains":3}}"#
        );
    }
}
