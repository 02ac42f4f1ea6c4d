//! What the bus keeps, and for how long.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// The stream that keeps results.
pub const STREAM: &str = "results";

/// Everything that the hub needs of a bus.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Settings {
    /// How the stream [`STREAM`] keeps results.
    pub stream: Stream,
    /// Who takes them.
    pub sinks: Sinks,
    /// Keyed values.
    pub buckets: Vec<Bucket>,
}

/// How results are kept. What does not fit is refused: no result makes room for another one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stream {
    /// Pattern of the subjects whose messages are kept.
    pub subjects: String,
    /// Octets at most.
    pub max_octets: u64,
    /// Messages are deleted after this time, taken or not.
    pub max_age: Duration,
    /// A message with an id that the stream got within this time is acknowledged, and not kept
    /// again.
    pub duplicate_window: Duration,
}

/// Who takes results. Each sink gets every result at least once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sinks {
    /// Their names.
    pub names: Vec<String>,
    /// A result is delivered again if it was not acknowledged within this time.
    pub ack_wait: Duration,
    /// No more are delivered while this many are not acknowledged.
    pub max_pending: u32,
}

/// A set of keyed values. Nobody can delete in it: values are only written over.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bucket {
    /// Its name: letters, digits, `_` and `-`.
    pub name: String,
    /// How many values of a key are kept. Only the last one can be read through [`crate::Bus`].
    pub history: u8,
    /// Each value that is written to the key `k` is also sent to the subject `<this>.k`.
    pub republish: Option<String>,
    /// Octets at most.
    pub max_octets: u64,
}

impl Settings {
    /// What a fleet needs; leases are in the bucket `lease_<generation>`.
    ///
    /// All numbers are ours. A week of 1 000 hosts' results takes less than 20 GB. An agent that
    /// lost its connection sends again within 10 minutes, or later with an id that the record
    /// knows. A sink that does not commit within a minute is gone; its 5 000 results wait in it.
    pub fn fleet(generation: u32) -> Self {
        Self {
            stream: Stream {
                subjects: "result.>".to_owned(),
                max_octets: 20_000_000_000,
                max_age: Duration::from_secs(7 * 86_400),
                duplicate_window: Duration::from_secs(600),
            },
            sinks: Sinks { names: vec!["ingest".to_owned()], ack_wait: Duration::from_secs(60), max_pending: 5_000 },
            buckets: vec![
                // A plan has 140 kB in a fleet of 1 000 hosts, and 191 kB in one of 10 000.
                Bucket { max_octets: 4_000_000_000, ..Bucket::new("plan", "plan") },
                Bucket::new(&format!("lease_{generation}"), "lease"),
            ],
        }
    }

    /// The same for a bus that may keep so many octets of results, and has less room for the rest
    /// if these are few.
    #[must_use]
    pub fn within(mut self, octets: u64) -> Self {
        self.stream.max_octets = octets;
        for bucket in &mut self.buckets {
            let part = if bucket.name == "plan" { octets / 5 } else { octets / 20 };
            bucket.max_octets = bucket.max_octets.min(part);
        }
        self
    }

    /// What all of it may take of a disk.
    pub fn max_octets(&self) -> u64 {
        self.stream.max_octets + self.buckets.iter().map(|bucket| bucket.max_octets).sum::<u64>()
    }
}

impl Bucket {
    /// A bucket that keeps the last value of each key and republishes it.
    pub fn new(name: &str, republish: &str) -> Self {
        Self { name: name.to_owned(), history: 1, republish: Some(republish.to_owned()), max_octets: 1_000_000_000 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_plans_of_a_fleet_have_room() {
        // Hosts, octets of a plan, and the size of the bus that the guide names for them.
        for (hosts, plan, octets) in [(1_000, 140_000, 2_000_000_000), (10_000, 191_000, 20_000_000_000)] {
            let settings = Settings::fleet(1).within(octets);
            let bucket = &settings.buckets[0];
            // Twice, as plans grow.
            assert!(2 * hosts * plan * u64::from(bucket.history) <= bucket.max_octets, "{hosts} hosts: {bucket:?}");
            assert_eq!(settings.max_octets(), octets + octets / 4);
        }
    }
}
