//! What each method promises of the fluid path, and what it cannot see by its nature.

/// One method's law.
pub(super) struct Law {
    /// Its name.
    pub(super) method: &'static str,
    /// Parameters with which the law holds.
    pub(super) params: &'static [(&'static str, &'static str)],
    /// It needs the capacity, and is told it (`capacity`).
    pub(super) reported_capacity: bool,
    /// What it finds, of capacity and cross traffic, bit/s.
    pub(super) expects: fn(f64, f64) -> f64,
    /// To this share of the capacity.
    pub(super) within: f64,
    /// Its answer is a range, which holds what it finds; the value in its middle may be further
    /// off.
    pub(super) range: bool,
    /// It bounds from above, and no more.
    pub(super) bounds_above: bool,
    /// Fastest path for which the law holds.
    pub(super) up_to_mbps: u64,
    /// It may say nothing from this utilisation on.
    pub(super) silent_above: f64,
    /// Cases in which nothing betrays to it that it is wrong; `docs/guide/limitations.md` says so.
    pub(super) blind: &'static [&'static str],
}

fn available(capacity: f64, cross: f64) -> f64 {
    capacity - cross
}

const LAW: Law = Law {
    method: "",
    params: &[],
    reported_capacity: false,
    expects: available,
    within: 0.02,
    range: false,
    bounds_above: false,
    up_to_mbps: 100_000,
    silent_above: 1.0,
    blind: &[],
};

/// By name; a method of the registry without a line here fails `every_method_has_its_law`.
pub(super) const LAWS: &[Law] = &[
    Law { method: "fac2", within: 0.005, ..LAW },
    Law { method: "pathload", within: 0.0105, range: true, ..LAW },
    Law { method: "fac2 and pathload", within: 0.01, ..LAW },
    Law { method: "available", blind: UNSEEN_BUCKETS, ..LAW },
    Law { method: "slope", blind: UNSEEN_BUCKETS, ..LAW },
    Law { method: "track", params: &[("duration", "10 s")], blind: UNSEEN_BUCKETS, ..LAW },
    Law { method: "bart", blind: UNSEEN_BUCKETS, ..LAW },
    // The published stop leaves it above by what it tolerates: at most this.
    Law { method: "yaz", blind: UNSEEN_BUCKETS, ..LAW },
    Law { method: "kite", blind: UNSEEN_BUCKETS, ..LAW },
    Law { method: "kite2", silent_above: 0.8, blind: UNSEEN_BUCKETS, ..LAW },
    // It locates: a rate that the path let through bounds what is available from above.
    Law {
        method: "pathneck",
        // The fluid path wraps no packets; fast ones let a train through in less than the tool's
        // step.
        params: &[("framing", "bare"), ("step", "1 us")],
        bounds_above: true,
        within: 0.03,
        // Batches whose packets the reading host spaces apart look like a train.
        blind: &["bucket", "batching"],
        ..LAW
    },
    // In a fluid, the turning point to the step of the gaps.
    Law {
        method: "igi",
        // The fluid path wraps no packets.
        params: &[("framing", "bare")],
        // At 100 Gbit/s whole nanoseconds are 2 % of a gap.
        range: true,
        within: 0.03,
        silent_above: 0.9,
        blind: UNSEEN_BUCKETS,
        ..LAW
    },
    Law { method: "ptr", within: 0.03, silent_above: 0.9, blind: UNSEEN_BUCKETS, ..LAW },
    // Exact for any gap in which the queue does not empty.
    Law {
        method: "spruce",
        reported_capacity: true,
        // Pairs that come as they left are those of a free link.
        blind: &["bucket", "all delays are equal"],
        ..LAW
    },
    Law { method: "topp", blind: UNSEEN_BUCKETS, ..LAW },
    Law { method: "diettopp", blind: UNSEEN_BUCKETS, ..LAW },
    Law { method: "wbest", within: 0.05, blind: UNSEEN_BUCKETS, ..LAW },
    // Known to one step of the rates, spread by 1.05 by default.
    Law { method: "pathchirp", within: 0.06, blind: UNSEEN_BUCKETS, ..LAW },
    Law { method: "assolo", within: 0.1, blind: UNSEEN_BUCKETS, ..LAW },
    Law { method: "rapid", within: 0.06, blind: UNSEEN_BUCKETS, ..LAW },
    Law {
        // No pair of a fluid passes with nothing between: its spacings do not show the capacity.
        method: "abing",
        reported_capacity: true,
        within: 0.05,
        blind: UNSEEN_BUCKETS,
        ..LAW
    },
    Law {
        // Trains that leave at once divide the law by nothing.
        method: "cprobe",
        reported_capacity: true,
        bounds_above: true,
        within: 0.05,
        blind: UNSEEN_BUCKETS,
        ..LAW
    },
];

/// Its trains fit into the bucket, and it does not say how deep one would have gone unseen.
const UNSEEN_BUCKETS: &[&str] = &["bucket"];
