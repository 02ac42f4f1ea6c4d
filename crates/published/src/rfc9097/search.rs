//! The load rate adjustment: a table of rates, and the two algorithms that walk over its rows.
//! Pure.

use std::time::Duration;

use narrows_units::{BitRate, to_u64};

/// Row of 1 Gbit/s: the search is never fast from here on (`hSpeedThresh` of the reference
/// program).
pub(super) const HIGH_SPEED: usize = 1000;
/// Row of 10 Gbit/s, from which rows are 1 Gbit/s apart.
const TEN_GIGABIT: usize = HIGH_SPEED + 90;
/// Last row: 100 Gbit/s (ours; the reference program's table ends at the payload that its buffers
/// hold).
pub(super) const LAST: usize = TEN_GIGABIT + 90;
/// Rows by which the reference program decreases at a time when it is fast: three of its fast
/// increases.
const FAST_DECREASE: usize = 3;
/// Retries of the linear search after which algorithm C is fast again, and by how much more it
/// takes each time.
const RETRIES: u32 = 5;

/// IP-layer rate of a row: 0.5 Mbit/s, then steps of 1 Mbit/s to 1 Gbit/s, of 100 Mbit/s to 10
/// Gbit/s, of 1 Gbit/s beyond.
pub(super) fn rate(row: usize) -> BitRate {
    match row {
        0 => BitRate::from_bps(500_000),
        row if row <= HIGH_SPEED => BitRate::from_mbps(to_u64(row)),
        row if row <= TEN_GIGABIT => BitRate::from_mbps(1000 + 100 * to_u64(row - HIGH_SPEED)),
        row => BitRate::from_gbps(10 + to_u64(row.min(LAST) - TEN_GIGABIT)),
    }
}

/// The highest row whose rate is at most this.
pub(super) fn row_of(most: BitRate) -> usize {
    let (mut low, mut high) = (0, LAST);
    while low < high {
        let middle = (low + high).div_ceil(2);
        if rate(middle) <= most {
            low = middle;
        } else {
            high = middle - 1;
        }
    }
    low
}

/// Which algorithm.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Algorithm {
    /// RFC 9097 Appendix A: ten rows at a time until the path has been congested often enough, then
    /// one.
    B,
    /// Multiply and retry: doubling every second time, and fast again after some linear steps.
    C,
}

/// Thresholds and steps of RFC 9097 §8.1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Tuning {
    pub(super) algorithm: Algorithm,
    /// Delay variation below which a trial is clear.
    pub(super) low: Duration,
    /// Delay variation above which a trial is congested.
    pub(super) upper: Duration,
    /// Sequence errors in a trial above which it is congested.
    pub(super) sequence_errors: u64,
    /// Rows of a fast increase.
    pub(super) fast_increase: usize,
    /// Congested trials that end the fast search.
    pub(super) slow_adjust_threshold: u32,
    /// The row that is never exceeded.
    pub(super) most: usize,
}

/// What the peer saw in one trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Trial {
    /// Packets lost (and, if they count, out of order and doubled).
    pub(super) sequence_errors: u64,
    /// Delay above the smallest; `None` if nothing arrived.
    pub(super) delay: Option<Duration>,
}

/// What a trial meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TrialVerdict {
    /// Room for more.
    Clear,
    /// Too much.
    Congested,
    /// Between the thresholds, or nothing was heard.
    Hold,
}

/// State of the search.
#[derive(Debug, Clone)]
pub(super) struct Search {
    tuning: Tuning,
    row: usize,
    /// Congested trials since the search was last fast.
    slow: u32,
    retries: u32,
    retries_wanted: u32,
    /// Algorithm C doubles every second time.
    doubles: bool,
}

impl Search {
    pub(super) fn new(tuning: Tuning, row: usize) -> Self {
        Self { row: row.min(tuning.most), tuning, slow: 0, retries: 0, retries_wanted: RETRIES, doubles: false }
    }

    /// The row to send at.
    pub(super) fn row(&self) -> usize {
        self.row
    }

    /// Takes the peer's word on one trial.
    pub(super) fn note(&mut self, trial: Trial) -> TrialVerdict {
        let verdict = self.judge(trial);
        match verdict {
            TrialVerdict::Clear => self.clear(),
            TrialVerdict::Congested => self.congested(),
            TrialVerdict::Hold => {}
        }
        self.row = self.row.min(self.tuning.most);
        verdict
    }

    fn judge(&self, trial: Trial) -> TrialVerdict {
        let lost = trial.sequence_errors > self.tuning.sequence_errors;
        match trial.delay {
            _ if lost => TrialVerdict::Congested,
            Some(delay) if delay > self.tuning.upper => TrialVerdict::Congested,
            Some(delay) if delay < self.tuning.low => TrialVerdict::Clear,
            Some(_) | None => TrialVerdict::Hold,
        }
    }

    fn is_fast(&self) -> bool {
        self.row < HIGH_SPEED && self.slow < self.tuning.slow_adjust_threshold
    }

    fn clear(&mut self) {
        match (self.tuning.algorithm, self.is_fast()) {
            (Algorithm::B, true) => {
                self.row = (self.row + self.tuning.fast_increase).min(HIGH_SPEED);
                self.slow = 0;
            }
            (Algorithm::B, false) => self.row = (self.row + 1).min(self.tuning.most),
            (Algorithm::C, true) => {
                self.multiply();
                self.slow = 0;
            }
            (Algorithm::C, false) => {
                if self.row < self.tuning.most {
                    self.row += 1;
                    self.retries += 1;
                }
                if self.retries >= self.retries_wanted {
                    (self.slow, self.retries) = (0, 0);
                    self.retries_wanted += RETRIES;
                }
            }
        }
    }

    fn multiply(&mut self) {
        if 2 * self.row > HIGH_SPEED {
            self.row = HIGH_SPEED;
            return;
        }
        self.row = self.row.max(1);
        if self.doubles {
            self.row *= 2;
        }
        self.doubles = !self.doubles;
    }

    fn congested(&mut self) {
        self.slow = self.slow.saturating_add(1);
        if self.row < HIGH_SPEED && self.slow == self.tuning.slow_adjust_threshold {
            self.row = self.row.saturating_sub(FAST_DECREASE * self.tuning.fast_increase);
        } else if self.row > 0 {
            self.row -= 1;
            if self.tuning.algorithm == Algorithm::C {
                self.retries += 1;
                if self.retries >= self.retries_wanted {
                    (self.slow, self.retries) = (0, 0);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLEAR: Trial = Trial { sequence_errors: 0, delay: Some(Duration::from_millis(1)) };
    const LOST: Trial = Trial { sequence_errors: 11, delay: Some(Duration::from_millis(1)) };

    fn tuning(algorithm: Algorithm) -> Tuning {
        Tuning {
            algorithm,
            low: Duration::from_millis(30),
            upper: Duration::from_millis(90),
            sequence_errors: 10,
            fast_increase: 10,
            slow_adjust_threshold: 3,
            most: LAST,
        }
    }

    fn search(algorithm: Algorithm, row: usize) -> Search {
        Search::new(tuning(algorithm), row)
    }

    fn rows(search: &mut Search, trials: &[Trial]) -> Vec<usize> {
        trials
            .iter()
            .map(|trial| {
                search.note(*trial);
                search.row()
            })
            .collect()
    }

    /// Rows are Mbit/s up to a gigabit; the table of the standard goes on in steps of 100 Mbit/s
    /// and 1 Gbit/s.
    #[test]
    fn the_table_of_rates() {
        assert_eq!(rate(0), BitRate::from_bps(500_000));
        for (row, mbps) in [(1, 1), (1000, 1000), (1001, 1100), (1090, 10_000), (1091, 11_000), (LAST, 100_000)] {
            assert_eq!(rate(row), BitRate::from_mbps(mbps), "{row}");
            assert_eq!(row_of(BitRate::from_mbps(mbps)), row);
        }
        assert_eq!(row_of(BitRate::from_bps(1)), 0);
        assert_eq!(row_of(BitRate::from_bps(u64::MAX)), LAST);
        assert!((0..LAST).all(|row| rate(row) < rate(row + 1)));
    }

    /// B takes a hundred trials of 50 ms, 5 s, to 1 Gbit/s; C nineteen, 1 s.
    #[test]
    fn the_ramps() {
        let trials = |algorithm| {
            let mut search = search(algorithm, 0);
            (1..1000).find(|_| {
                search.note(CLEAR);
                search.row() == HIGH_SPEED
            })
        };
        assert_eq!(trials(Algorithm::B), Some(100));
        assert_eq!(trials(Algorithm::C), Some(19));
        let mut search = search(Algorithm::C, 0);
        assert_eq!(rows(&mut search, &[CLEAR; 7]), [1, 2, 2, 4, 4, 8, 8]);
    }

    /// The third congested trial in a row takes thirty rows back; from then on B goes by single
    /// rows for good.
    #[test]
    fn algorithm_b_slows_down_for_good() {
        let mut search = search(Algorithm::B, 100);
        assert_eq!(rows(&mut search, &[CLEAR, LOST, LOST, LOST, LOST]), [110, 109, 108, 78, 77]);
        assert_eq!(rows(&mut search, &[CLEAR; 4]), [78, 79, 80, 81]);
        assert_eq!(rows(&mut search, &[LOST; 3]), [80, 79, 78]);
    }

    /// A clear trial before the third congested one makes the search fast again.
    #[test]
    fn algorithm_b_forgives_two() {
        let mut search = search(Algorithm::B, 100);
        assert_eq!(rows(&mut search, &[LOST, LOST, CLEAR, LOST, LOST]), [99, 98, 108, 107, 106]);
    }

    /// Between the thresholds, and without news, nothing moves; loss counts also where nothing
    /// arrived.
    #[test]
    fn thresholds() {
        let at = |ms| Trial { sequence_errors: 10, delay: Some(Duration::from_millis(ms)) };
        let silent = Trial { sequence_errors: 0, delay: None };
        let mut search = search(Algorithm::B, 100);
        assert_eq!(search.note(at(30)), TrialVerdict::Hold);
        assert_eq!(search.note(at(90)), TrialVerdict::Hold);
        assert_eq!(search.note(silent), TrialVerdict::Hold);
        assert_eq!(search.row(), 100);
        assert_eq!(search.note(at(29)), TrialVerdict::Clear);
        assert_eq!(search.note(at(91)), TrialVerdict::Congested);
        let gone = Trial { sequence_errors: 50, delay: None };
        assert_eq!(search.note(gone), TrialVerdict::Congested);
        assert_eq!(search.row(), 108);
    }

    /// Five linear steps after the slow-down C multiplies again; the next time it takes ten.
    #[test]
    fn algorithm_c_retries() {
        let mut search = search(Algorithm::C, 100);
        assert_eq!(rows(&mut search, &[LOST; 3]), [99, 98, 68]);
        // Two of the retries were the single rows down.
        assert_eq!(rows(&mut search, &[CLEAR; 3]), [69, 70, 71]);
        assert_eq!(rows(&mut search, &[CLEAR; 2]), [71, 142]);
        assert_eq!(rows(&mut search, &[LOST; 3]), [141, 140, 110]);
        assert_eq!(rows(&mut search, &[CLEAR; 8])[7], 118);
        assert_eq!(rows(&mut search, &[CLEAR; 2]), [118, 236]);
    }

    /// Above a gigabit the search is linear, and ends at the row that was allowed.
    #[test]
    fn ends_of_the_table() {
        let mut search = search(Algorithm::B, HIGH_SPEED);
        assert_eq!(rows(&mut search, &[CLEAR, CLEAR, LOST]), [1001, 1002, 1001]);
        let mut low = Search::new(tuning(Algorithm::B), 2);
        assert_eq!(rows(&mut low, &[LOST; 4]), [1, 0, 0, 0]);
        let mut capped = Search::new(Tuning { most: 45, ..tuning(Algorithm::B) }, 0);
        assert_eq!(rows(&mut capped, &[CLEAR; 7])[6], 45);
    }
}
