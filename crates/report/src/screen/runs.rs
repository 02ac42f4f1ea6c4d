//! Recorded runs of which the guide has pictures.

/// Name, events, how many per cent of them have come, and rows of the screen.
pub(crate) const RUNS: [(&str, &str, usize, u16); 4] = [
    ("test", include_str!("runs/test.jsonl"), 88, 28),
    ("throughput", include_str!("runs/throughput.jsonl"), 100, 28),
    ("hops", include_str!("runs/hops.jsonl"), 100, 21),
    ("available", include_str!("runs/available.jsonl"), 100, 28),
];
