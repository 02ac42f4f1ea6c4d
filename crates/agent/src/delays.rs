//! Every delay of a long train of echoes, summed up: the hub groups paths by a few numbers
//! (RFC 8382), and a thousand delays would make a result ten times as large.

use narrows_fleet::sharing::{DELAY_SERIES, DELAY_SUMMARY, delay_summary};
use serde_json::Value as Json;

/// The document with a summary in the place of the delays, if it has any.
pub(crate) fn summed_up(mut document: Json) -> Json {
    let Some(evidence) = document.get_mut("evidence").and_then(Json::as_object_mut) else { return document };
    let Some(summary) = delay_summary(evidence) else { return document };
    // The round trips are as many as the delays, and their percentiles stay.
    for name in DELAY_SERIES.into_iter().chain(["round_trips_ns"]) {
        evidence.remove(name);
    }
    evidence.extend(serde_json::to_value(summary).ok().map(|summary| (DELAY_SUMMARY.to_owned(), summary)));
    document
}

#[cfg(test)]
mod tests {
    use narrows_fleet::sharing::rfc8382::DelaySummary;
    use serde_json::json;

    use super::*;

    #[test]
    fn a_thousand_delays_become_a_few_numbers() {
        let delay = |at: usize| if at % 40 == 7 { Json::Null } else { json!(1e6 * (at % 40) as f64) };
        let forward: Vec<Json> = (0..920).map(delay).collect();
        let reverse: Vec<Json> = (0..920).map(|_| json!(5.0)).collect();
        let evidence = json!({"delay_spacing_ns": 20_000_000, "forward_delays_ns": forward, "reverse_delays_ns": reverse,
            "round_trips_ns": reverse, "median_ns": 5});
        let document = summed_up(json!({"metric": "round_trip_time", "evidence": evidence}));
        assert!(document.to_string().len() < 600, "{document}");
        assert_eq!(document["evidence"]["median_ns"], 5);
        let said: DelaySummary = serde_json::from_value(document["evidence"][DELAY_SUMMARY].clone()).unwrap();
        let (forward, reverse) = (said.forward.unwrap(), said.reverse.unwrap());
        assert!((forward.loss - 1.0 / 40.0).abs() < 0.005 && forward.variability > 5e6, "{forward:?}");
        assert_eq!((reverse.loss, reverse.variability), (0.0, 0.0));
    }

    #[test]
    fn other_documents_stay_as_they_are() {
        for document in [json!({"metrics": []}), json!({"evidence": {"round_trips_ns": [1, 2]}}), json!(null)] {
            assert_eq!(summed_up(document.clone()), document);
        }
        // Too short for a summary: what is left says so.
        let short = json!({"evidence": {"delay_spacing_ns": 20_000_000, "forward_delays_ns": [1.0, 2.0]}});
        let said = &summed_up(short)["evidence"][DELAY_SUMMARY];
        assert_eq!(*said, json!({"forward": null, "reverse": null}));
    }
}
