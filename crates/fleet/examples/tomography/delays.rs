//! Delays through shared queues, and how well RFC 8382 groups the flows that met them.

use std::time::Duration;

use narrows_fleet::sharing::rfc8382::{Summary, group, summarise};
use rand::{RngExt, SeedableRng};
use rand_distr::{Distribution, Exp1};
use rand_pcg::Pcg64;

/// Pairs of flows over many trials.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Grouping {
    /// Share a bottleneck and a group.
    pub(crate) both: u64,
    /// Share a group only.
    pub(crate) wrong: u64,
    /// Share a bottleneck only.
    pub(crate) missed: u64,
    /// Flows behind a bottleneck, and those of them that were called free.
    pub(crate) behind: u64,
    pub(crate) unseen: u64,
    /// Free flows, and those of them that were put into a group.
    pub(crate) free: u64,
    pub(crate) grouped: u64,
}

impl Grouping {
    pub(crate) fn precision(&self) -> f64 {
        self.both as f64 / (self.both + self.wrong).max(1) as f64
    }

    pub(crate) fn recall(&self) -> f64 {
        self.both as f64 / (self.both + self.missed).max(1) as f64
    }

    /// Harmonic mean of precision and recall.
    pub(crate) fn f1(&self) -> f64 {
        2.0 * self.both as f64 / (2 * self.both + self.wrong + self.missed).max(1) as f64
    }
}

/// Four to ten flows over one to three bottlenecks or none, probed for 18 s every 20 ms.
pub(crate) fn trials(count: u64, seed: u64) -> Grouping {
    let mut grouping = Grouping::default();
    for trial in 0..count {
        let mut rng = Pcg64::seed_from_u64(seed + trial);
        let queues: Vec<Queue> = (0..rng.random_range(1..=3)).map(|_| Queue::run(&mut rng)).collect();
        let flows: Vec<(Option<usize>, Summary)> = (0..rng.random_range(4..=10))
            .filter_map(|_| {
                let behind = rng.random_bool(0.75).then(|| rng.random_range(0..queues.len()));
                let delays = probe(&mut rng, behind.map(|at| &queues[at]));
                Some((behind, summarise(&delays, PROBE_GAP)?))
            })
            .collect();
        count_pairs(&flows, &mut grouping);
    }
    grouping
}

fn count_pairs(flows: &[(Option<usize>, Summary)], grouping: &mut Grouping) {
    let summaries: Vec<Summary> = flows.iter().map(|(_, summary)| *summary).collect();
    let groups = group(&summaries, 0.0);
    let group_of = |flow: usize| groups.sharing.iter().position(|group| group.contains(&flow));
    for one in 0..flows.len() {
        let (behind, grouped) = (flows[one].0.is_some(), group_of(one).is_some());
        *(if behind { &mut grouping.behind } else { &mut grouping.free }) += 1;
        grouping.unseen += u64::from(behind && !grouped);
        grouping.grouped += u64::from(!behind && grouped);
        for other in one + 1..flows.len() {
            let shared = behind && flows[one].0 == flows[other].0;
            let together = grouped && group_of(one) == group_of(other);
            match (shared, together) {
                (true, true) => grouping.both += 1,
                (false, true) => grouping.wrong += 1,
                (true, false) => grouping.missed += 1,
                (false, false) => {}
            }
        }
    }
}

/// A queue that TCP connections fill, by milliseconds.
struct Queue {
    delay_ms: Vec<f64>,
    loss: Vec<f64>,
}

impl Queue {
    /// Windows grow by one packet a round trip, or by a fiftieth of themselves (as CUBIC's do
    /// about), and halve when the queue overflows. A quarter of the link is taken by bursts that do
    /// not yield.
    fn run(rng: &mut Pcg64) -> Self {
        let rate: f64 = super::network::log_uniform(rng, 2.0, 40.0);
        let limit = rate * super::network::log_uniform(rng, 20.0, 150.0);
        let mut flows: Vec<(f64, f64, f64)> = (0..rng.random_range(2..=12))
            .map(|_| (super::network::log_uniform(rng, 15.0, 150.0), rate * rng.random_range(2.0..20.0), 0.0))
            .collect();
        let burst_ms = super::network::log_uniform(rng, 5.0, 200.0);
        let (mut queue, mut bursting) = (0.0_f64, false);
        let mut run = Self { delay_ms: Vec::new(), loss: Vec::new() };
        for now in 0..RUN_MS {
            bursting ^= rng.random_bool(1.0 / burst_ms);
            let delay = queue / rate;
            let mut arriving = if bursting { 0.5 * rate } else { 0.0 };
            for (round_trip, window, _) in &flows {
                arriving += window / (round_trip + delay);
            }
            queue = (queue + arriving - rate).max(0.0);
            let overflow = (queue - limit).max(0.0);
            queue = queue.min(limit);
            for (round_trip, window, silent_until) in &mut flows {
                let share = *window / (*round_trip + delay) / arriving.max(f64::MIN_POSITIVE);
                let now = f64::from(now);
                if now >= *silent_until && overflow > 0.0 && rng.random_bool((share * overflow).min(1.0)) {
                    *window = (*window / 2.0).max(2.0);
                    *silent_until = now + *round_trip + delay;
                }
                *window += (0.02 * *window).max(1.0) / (*round_trip + delay);
            }
            if now >= WARM_UP_MS {
                run.delay_ms.push(delay);
                run.loss.push(overflow / arriving.max(f64::MIN_POSITIVE));
            }
        }
        run
    }
}

/// Delays of one flow in ms: the queue, if it meets one, and light queues elsewhere.
fn probe(rng: &mut Pcg64, queue: Option<&Queue>) -> Vec<Option<f64>> {
    let (way_ms, elsewhere_ms) = (rng.random_range(0..80), super::network::log_uniform(rng, 0.05, 1.0));
    (0..PROBES)
        .map(|at| {
            let elsewhere: f64 = Exp1.sample(rng);
            let light = f64::from(way_ms) + elsewhere_ms * elsewhere;
            let Some(queue) = queue else { return Some(light) };
            let at = at * 20 + way_ms as usize;
            (!rng.random_bool(queue.loss[at].min(1.0))).then_some(light + queue.delay_ms[at])
        })
        .collect()
}

const PROBE_GAP: Duration = Duration::from_millis(20);
/// 18 s.
const PROBES: usize = 900;
const WARM_UP_MS: u32 = 5_000;
const RUN_MS: u32 = WARM_UP_MS + 18_200;
