//! What bursts have told.

use std::time::Duration;

use narrows_units::BitRate;

use super::analyse::{Cut, Delays, ObservedBurst, Turn, together};
use super::queue::{CurvePoint, Rated};
use narrows_probe::probes::TrainReport;
use narrows_train::bucket;
use narrows_train::bucket::Course;

/// Everything that bursts have told.
#[derive(Debug, Clone, Default)]
pub(super) struct Ledger {
    /// Departure rates of bursts, bit/s.
    pub(super) departures: Vec<f64>,
    /// Rates at which bursts arrived.
    pub(super) arrivals: Vec<f64>,
    /// The slowest of them.
    pub(super) slowest_arrival: Option<BitRate>,
    /// No packet leaves this host faster, where that is known.
    pub(super) fastest_bps: Option<f64>,
    /// Shares of the expected queueing delay that cut bursts showed.
    pub(super) queueing: Vec<f64>,
    /// Largest delay growth in a burst without loss.
    pub(super) growth: Duration,
    pub(super) local_drops: u64,
    pub(super) spoilt: u32,
    /// Packets that the last cut burst of the search let through.
    pub(super) last_cut: Option<usize>,
    /// The back-to-back bursts of the sample.
    pub(super) sample: Rated,
    pub(super) small: Rated,
    pub(super) line: Vec<Rated>,
    /// Delays and courses of back-to-back bursts, for what drops.
    pub(super) delays: Vec<Delays>,
    pub(super) courses: Vec<Course>,
    /// How rates of bursts changed at their first loss.
    pub(super) turns: Vec<Turn>,
    /// First and longest delay of the last bursts, nanoseconds.
    pub(super) recent: Vec<(i64, i64)>,
}

/// Bursts that the receiving host spoils before the method takes it for the limit (ours).
const SPOILT_BURSTS: u32 = 3;
/// Share of the expected queueing delay below which a cut burst met a policer.
const POLICED_BELOW: f64 = 0.3;
/// Bursts whose delays are kept, and slopes of trains that count as bends.
const KEPT_BURSTS: usize = 64;
const BEND: f64 = 1.1;
/// Bursts over which left-over queues are looked for.
const RECENT: usize = 4;

impl Ledger {
    /// Takes in a paced burst for what it says of what drops.
    pub(super) fn note_long(&mut self, seen: &ObservedBurst) {
        if seen.spoilt_by_receiver {
            return;
        }
        self.queueing.extend(seen.queueing);
        self.delays.extend(seen.delays.clone());
    }

    /// Takes in a burst; `usual`: back to back, of the main packets' length.
    pub(super) fn note(&mut self, seen: &ObservedBurst, usual: bool) {
        self.local_drops += u64::from(seen.local_drops);
        // Few packets make poor rates: a single gap would decide.
        if usual && seen.arrived >= 4 {
            self.departures.extend(seen.departure.map(BitRate::as_f64));
            self.arrivals.extend(seen.arrival.map(BitRate::as_f64));
            // A bucket fills again at the rate behind the first loss, less what others take.
            let behind = seen.turn.and_then(|turn| BitRate::from_bps_f64(turn.behind_bps));
            self.slowest_arrival = [self.slowest_arrival, seen.arrival, behind].into_iter().flatten().min();
        }
        if self.turns.len() < KEPT_BURSTS {
            self.turns.extend(seen.turn);
        }
        if seen.first_loss.is_none() && !seen.spoilt_by_receiver {
            self.growth = self.growth.max(seen.delay_growth);
        }
        if let Some(delays) = &seen.delays {
            self.recent.push((delays.first, delays.most));
            if self.recent.len() > 2 * RECENT {
                self.recent.remove(0);
            }
        }
        if !usual || seen.spoilt_by_receiver {
            return;
        }
        self.queueing.extend(seen.queueing);
        if seen.first_loss.is_some() {
            self.sample.departures.extend(seen.departure.map(BitRate::as_f64));
            self.sample.through.extend(seen.ahead_bps);
            self.sample.growth.push(seen.delay_growth.as_secs_f64() * 1e9);
        }
        if let Some(delays) = seen.delays.as_ref().filter(|_| self.delays.len() < KEPT_BURSTS) {
            self.delays.push(delays.clone());
        }
    }

    /// Takes in how a back-to-back burst arrived, for buckets.
    pub(super) fn note_course(&mut self, report: &TrainReport, clock_step: Duration) {
        if self.courses.len() < KEPT_BURSTS && report.local_drops == 0 {
            self.courses.extend(bucket::course(report, BEND, clock_step));
        }
    }

    /// Whether the last bursts found a queue that the ones before had left: their first packets
    /// waited for more than this share of the longest delay.
    pub(super) fn finds_left_over(&mut self, share: f64) -> bool {
        let (Some(least), Some(most)) =
            (self.recent.iter().map(|(first, _)| *first).min(), self.recent.iter().map(|(_, most)| *most).max())
        else {
            return false;
        };
        let longest = most.saturating_sub(least) as f64;
        let newest = self.recent.iter().rev().take(RECENT);
        let waited = newest.filter(|(first, _)| first.saturating_sub(least) as f64 > share * longest).count();
        let left_over = self.recent.len() >= 2 * RECENT && waited * 2 > RECENT;
        if left_over {
            self.recent.clear();
        }
        left_over
    }

    /// One more burst with drops by the receiving host; true if there have been too many.
    pub(super) fn receiver_spoils(&mut self) -> bool {
        self.spoilt += 1;
        self.spoilt >= SPOILT_BURSTS
    }

    pub(super) fn sample(&mut self, cut: Cut) {
        self.sample.cuts.push(cut);
    }

    /// A burst of small packets.
    pub(super) fn small(&mut self, cut: Cut, seen: &ObservedBurst) {
        add(&mut self.small, cut, seen);
    }

    /// A burst at the rate of this index.
    pub(super) fn at_rate(&mut self, index: usize, cut: Cut, seen: &ObservedBurst) {
        if self.line.len() <= index {
            self.line.resize_with(index + 1, Rated::default);
        }
        add(&mut self.line[index], cut, seen);
    }

    /// Median of the sample, packets.
    pub(super) fn usual(&self) -> Option<u64> {
        together(&self.sample.cuts).map(|all| all.median)
    }

    /// Rate at which cut bursts come through, bit/s.
    pub(super) fn rate_through(&self) -> Option<f64> {
        narrows_stat::median(&self.sample.through)
    }

    /// Rate at which back-to-back bursts leave, bit/s; `None` where stamps resolve no time between
    /// packets and nothing bounds it.
    pub(super) fn burst_rate(&self) -> Option<f64> {
        let seen = narrows_stat::median(&self.departures);
        [seen, self.fastest_bps].into_iter().flatten().min_by(f64::total_cmp)
    }

    pub(super) fn policed(&self) -> Option<bool> {
        Some(narrows_stat::median(&self.queueing)? < POLICED_BELOW)
    }

    /// The sample with the rate that it may have left at.
    pub(super) fn rated_sample(&self) -> Rated {
        Rated { departures: self.burst_rate().into_iter().collect(), ..self.sample.clone() }
    }

    /// Curve, slowest rate first.
    pub(super) fn curve(&self) -> Vec<CurvePoint> {
        let slower = self.line.iter().filter_map(Rated::point);
        let mut curve: Vec<CurvePoint> = slower.chain(self.rated_sample().point()).collect();
        curve.sort_by(|a, b| a.rate_bps.total_cmp(&b.rate_bps));
        curve
    }
}

fn add(rated: &mut Rated, cut: Cut, seen: &ObservedBurst) {
    rated.departures.extend(seen.departure.map(BitRate::as_f64));
    rated.through.extend(seen.ahead_bps);
    if !cut.whole {
        rated.growth.push(seen.delay_growth.as_secs_f64() * 1e9);
    }
    rated.cuts.push(cut);
}
