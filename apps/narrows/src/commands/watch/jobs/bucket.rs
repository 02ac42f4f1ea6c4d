//! What is known of a token bucket, which slices have to empty first.

use narrows_probe::{BoundKind, Caveat, Entry, Finding};

/// What a measurement of the capacity says of a token bucket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) enum Bucket {
    /// It lets so many octets through at once.
    Octets(u64),
    /// There is one, and its depth did not show.
    Unmeasured,
    /// There is none that hides anything.
    Absent,
    /// A host stood still, or the measurement was cut short.
    Unsaid,
}

impl Bucket {
    /// What an answer says.
    pub(super) fn of(entry: &Entry) -> Self {
        if let Finding::Bucket(bucket) = &entry.outcome.details().finding {
            return Self::Octets(bucket.depth.count());
        }
        if entry.outcome.caveats().contains(&Caveat::Shaped) {
            return Self::Unmeasured;
        }
        let bound = entry.outcome.estimate().is_none_or(|estimate| estimate.verdict() != BoundKind::Estimated);
        let doubtful = |caveat: &Caveat| matches!(caveat, Caveat::HostStall | Caveat::StoppedEarly);
        if bound || entry.outcome.caveats().iter().any(doubtful) { Self::Unsaid } else { Self::Absent }
    }

    /// What is known after it. A host that stands still hides buckets, and makes deep ones shallow.
    pub(in super::super) fn after(self, known: Option<u64>) -> Option<u64> {
        match self {
            Self::Octets(octets) => known.max(Some(octets)),
            Self::Unmeasured => known.or(Some(UNMEASURED_BUCKET)),
            Self::Absent => None,
            Self::Unsaid => known,
        }
    }
}

/// Octets of a bucket whose depth nobody knows (ours: twice that of most; intervals are as right
/// behind one of a tenth as they are behind one of half, and less than twice as wide).
const UNMEASURED_BUCKET: u64 = 60_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_is_known_until_a_whole_measurement_shows_none() {
        assert_eq!(Bucket::Octets(30_000).after(None), Some(30_000));
        assert_eq!(Bucket::Octets(5000).after(Some(30_000)), Some(30_000));
        assert_eq!(Bucket::Unmeasured.after(Some(30_000)), Some(30_000));
        assert_eq!(Bucket::Unmeasured.after(None), Some(UNMEASURED_BUCKET));
        assert_eq!(Bucket::Unsaid.after(Some(30_000)), Some(30_000));
        assert_eq!(Bucket::Absent.after(Some(30_000)), None);
    }
}
