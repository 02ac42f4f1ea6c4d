//! Made-up fleets: who is in them, and what their paths carry. The same numbers each time.
#![expect(clippy::cast_possible_truncation, reason = "made-up numbers are small")]

use std::sync::atomic::{AtomicBool, Ordering};

/// Where the made-up clock stands: 2026-11-23 12:00 UTC.
pub(crate) const NOW: i64 = 1_795_435_200_000;
pub(crate) const MINUTE: i64 = 60_000;
pub(crate) const HOUR: i64 = 60 * MINUTE;

const YOUNG: &str = "measuring-host-in-frankfurt-am-main";

/// A fleet of sites with equally many hosts.
pub(crate) struct Fleet {
    pub(crate) sites: Vec<&'static str>,
    pub(crate) hosts_per_site: usize,
    /// Whether the run came by which the first pair has 123 Mbit/s available.
    pub(crate) news: AtomicBool,
}

/// What is known of a pair and metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    Value,
    AtLeast,
    Inconclusive,
    Inferred,
    Failed,
    Unknown,
}

/// A value with half of its relative interval.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Known {
    pub(crate) state: State,
    pub(crate) value: f64,
    pub(crate) width: f64,
    pub(crate) age_ms: i64,
}

impl Fleet {
    pub(crate) fn empty() -> Self {
        Self::of(Vec::new(), 0)
    }

    /// One host.
    pub(crate) fn alone() -> Self {
        Self::of(vec!["ams"], 1)
    }

    /// Three hosts that have just joined, with long names.
    pub(crate) fn young() -> Self {
        Self::of(vec![YOUNG], 3)
    }

    /// Whether nothing was measured or planned yet.
    pub(crate) fn idle(&self) -> bool {
        matches!(self.sites[..], [] | ["ams" | YOUNG])
    }

    /// Twelve hosts.
    pub(crate) fn small() -> Self {
        Self::of(vec!["ams", "fra", "lon"], 4)
    }

    /// A hundred hosts.
    pub(crate) fn large() -> Self {
        let sites = vec!["ams", "fra", "lon", "par", "mad", "mil", "sto", "waw", "nyc", "sin"];
        Self::of(sites, 10)
    }

    fn of(sites: Vec<&'static str>, hosts_per_site: usize) -> Self {
        Self { sites, hosts_per_site, news: AtomicBool::new(false) }
    }

    pub(crate) fn hosts(&self) -> Vec<String> {
        let of_site = |site: &&str| (1..=self.hosts_per_site).map(|n| format!("{site}-{n}")).collect::<Vec<_>>();
        self.sites.iter().flat_map(of_site).collect()
    }

    pub(crate) fn site_of(&self, host: usize) -> usize {
        host / self.hosts_per_site.max(1)
    }

    /// What `metric` is from one host to another.
    pub(crate) fn known(&self, source: usize, target: usize, metric: &str) -> Known {
        let chance = chance(source, target, metric.len());
        let state = match (if self.idle() { 98.0 } else { chance * 100.0 }, self.hosts_per_site > 4) {
            (0.0..3.0, _) => State::Inconclusive,
            (3.0..5.0, _) => State::Failed,
            (5.0..9.0, _) if metric != "rtt" => State::AtLeast,
            (9.0..16.0, false) | (9.0..60.0, true) if metric != "rtt" => State::Inferred,
            (97.5..100.0, false) | (92.0..100.0, true) => State::Unknown,
            _ => State::Value,
        };
        if self.news.load(Ordering::Relaxed) && (source, target, metric) == (0, 1, "available") {
            return Known { state: State::Value, value: 123e6, width: 0.01, age_ms: 2000 };
        }
        let width = 0.008 + 0.02 * chance;
        let age = (chance * chance * 7.0 * HOUR as f64) as i64 + 40_000;
        Known { state, value: self.truth(source, target, metric), width, age_ms: age }
    }

    /// Sites are on a line: the further apart, the longer. The first one has a slow uplink.
    fn truth(&self, source: usize, target: usize, metric: &str) -> f64 {
        let (from, to) = (self.site_of(source), self.site_of(target));
        let host = |n: usize| -> f64 { if n % 7 == 5 { 1e9 } else { 10e9 } };
        let uplink = |site: usize| [940e6, 4.7e9, 9.4e9, 2.4e9][site % 4];
        let inner = host(source).min(host(target)) * 0.942;
        let capacity = if from == to { inner } else { inner.min(uplink(from)).min(uplink(to + 1)) };
        let chance = chance(target, source, 3);
        match metric {
            "rtt" if from == to => 180e3 + 200e3 * chance,
            "rtt" => 1e6 * (4.0 + 5.5 * from.abs_diff(to) as f64 + chance),
            "capacity" => capacity * (1.0 + 0.004 * (chance - 0.5)),
            "path_mtu" => [1500.0, 9000.0][usize::from(from == to)],
            "throughput" => capacity * (0.55 + 0.3 * chance),
            _ => capacity * (0.25 + 0.7 * chance),
        }
    }
}

/// A number from 0 to 1 that these three always give (the finaliser of `SplitMix64`).
pub(crate) fn chance(one: usize, two: usize, three: usize) -> f64 {
    let mut z = (one as u64) << 40 ^ (two as u64) << 20 ^ three as u64;
    z = z.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    ((z ^ (z >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
}
