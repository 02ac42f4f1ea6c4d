//! The rate of the next fleet, from the verdicts so far.
//!
//! The rules are those of pathload 1.3.2; `up`, `down`, `grey_up` and `grey_down` call one another
//! as its functions do, under a limit of depth, because marks that both sides carry can send them
//! round for ever.

/// What a fleet says of its rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FleetVerdict {
    Increasing,
    NoTrend,
    Grey,
}

/// What comes next.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Next {
    /// A fleet at this rate, bit/s.
    Rate(f64),
    /// The same rate once more.
    Repeat,
    Stop(Stop),
}

/// Why the search ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stop {
    /// The range is as narrow as asked for.
    Resolution,
    /// The grey region's two edges are as sharp as asked for.
    GreyResolution,
    /// The sender's timer gives no rate in between.
    Timer,
    /// The sender cannot go faster.
    MaxRate,
    /// The rules lead nowhere.
    Stuck,
}

/// Bounds of the search, bit/s.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Search {
    /// Highest rate without trend; zero while there is none, as in the tool.
    pub(super) low: f64,
    /// Lowest rate with increasing trend.
    pub(super) high: Option<f64>,
    pub(super) grey_low: Option<f64>,
    pub(super) grey_high: Option<f64>,
    pub(super) resolution: f64,
    pub(super) grey_resolution: f64,
    pub(super) min_rate: f64,
    pub(super) max_rate: f64,
    /// Rates double until the first change of verdict.
    exponential: bool,
    last: Option<FleetVerdict>,
    by_timer: ByTimer,
    at_max: u32,
}

/// What the sender's timer gives no rates for.
#[derive(Debug, Clone, PartialEq, Default)]
struct ByTimer {
    /// Between the grey region and the lowest rate with a trend.
    upper: bool,
    /// Between the highest rate without a trend and the grey region.
    lower: bool,
    /// Between those two rates, without a grey region.
    range: bool,
}

/// How often the rules may call one another.
const DEPTH: u32 = 8;

impl Search {
    pub(super) fn new(resolution: f64, grey_resolution: f64, min_rate: f64, max_rate: f64) -> Self {
        Self {
            low: 0.0,
            high: None,
            grey_low: None,
            grey_high: None,
            resolution,
            grey_resolution,
            min_rate,
            max_rate,
            exponential: true,
            last: None,
            by_timer: ByTimer::default(),
            at_max: 0,
        }
    }

    /// A fleet asked for `wanted` and ran at `actual`, which is not near it: marks what the
    /// sender's timer makes unreachable.
    pub(super) fn missed(&mut self, wanted: f64, actual: f64) {
        let Some(high) = self.high else { return };
        if self.grey_high.is_none() && self.grey_low.is_none() {
            self.by_timer.range |= self.low > 0.0 && !(self.low < actual && actual < high);
        }
        if let Some(grey) = self.grey_high {
            let inside = |rate: f64| grey < rate && rate < high;
            self.by_timer.upper |= inside(wanted) && !inside(actual);
        }
        if let Some(grey) = self.grey_low {
            let inside = |rate: f64| self.low < rate && rate < grey;
            self.by_timer.lower |= inside(wanted) && !inside(actual);
        }
    }

    /// Takes a verdict at `rate`.
    pub(super) fn next(&mut self, verdict: FleetVerdict, rate: f64) -> Next {
        if verdict != FleetVerdict::Grey {
            self.exponential &= self.last.is_none_or(|last| last == verdict);
            self.last = Some(verdict);
        }
        let next = match verdict {
            FleetVerdict::Increasing => self.increasing(rate),
            FleetVerdict::NoTrend => self.no_trend(rate),
            FleetVerdict::Grey => self.grey(rate),
        };
        // Twice at the highest rate without an increasing trend: the path has more than the sender
        // can ask for.
        if verdict != FleetVerdict::Increasing && rate >= 0.999 * self.max_rate {
            self.at_max += 1;
            return if self.at_max >= 2 { Next::Stop(Stop::MaxRate) } else { Next::Repeat };
        }
        next
    }

    fn increasing(&mut self, rate: f64) -> Next {
        self.at_max = 0;
        if self.grey_high.is_some_and(|grey| grey >= rate) {
            (self.grey_low, self.grey_high) = (None, None);
        }
        self.high = Some(rate);
        if self.by_timer.upper {
            self.exponential = false;
        }
        let way = if self.by_timer.upper { Self::up } else { Self::down };
        self.unless_converged(|search| way(search, rate, 0))
    }

    fn no_trend(&mut self, rate: f64) -> Next {
        if self.grey_low.is_some_and(|grey| grey < rate) {
            self.grey_low = None;
        }
        if self.grey_high.is_some_and(|grey| grey < rate) {
            (self.grey_low, self.grey_high) = (None, None);
        }
        self.low = self.low.max(rate);
        if self.by_timer.lower {
            return Next::Stop(Stop::Timer);
        }
        self.unless_converged(|search| search.up(rate, 0))
    }

    fn grey(&mut self, rate: f64) -> Next {
        if self.grey_low.is_none() && self.grey_high.is_none() {
            (self.grey_low, self.grey_high) = (Some(rate), Some(rate));
        }
        if self.grey_high.is_none_or(|grey| rate >= grey) {
            self.grey_high = Some(rate);
            if self.by_timer.upper {
                self.exponential = false;
                return self.unless_converged(|search| search.up(rate, 0));
            }
            return self.unless_converged(|search| search.grey_up(rate, 0));
        }
        if self.grey_low.is_none_or(|grey| rate < grey) {
            self.grey_low = Some(rate);
            return self.unless_converged(|search| search.grey_down(rate, 0));
        }
        Next::Repeat
    }

    fn unless_converged(&mut self, then: impl FnOnce(&mut Self) -> Next) -> Next {
        match self.converged() {
            Some(stop) => Next::Stop(stop),
            None => then(self),
        }
    }

    fn converged(&self) -> Option<Stop> {
        if self.by_timer.range || (self.by_timer.upper && self.by_timer.lower) {
            return Some(Stop::Timer);
        }
        let high = self.high?;
        if high - self.low <= self.resolution {
            return Some(Stop::Resolution);
        }
        let (grey_low, grey_high) = (self.grey_low?, self.grey_high?);
        let sharp = high - grey_high <= self.grey_resolution && grey_low - self.low <= self.grey_resolution;
        sharp.then_some(Stop::GreyResolution)
    }

    fn up(&mut self, rate: f64, depth: u32) -> Next {
        let Some(high) = self.high.filter(|_| !self.exponential) else {
            return self.at(self.max_rate.min(2.0 * rate));
        };
        match self.grey_low.filter(|grey| *grey <= high) {
            Some(grey) if grey - self.low <= self.grey_resolution => self.deeper(depth, rate, Self::down),
            Some(grey) => self.at(f64::midpoint(self.low, grey)),
            None => self.at(f64::midpoint(self.low, high)),
        }
    }

    fn down(&mut self, rate: f64, depth: u32) -> Next {
        let high = self.high.unwrap_or(rate);
        match self.grey_high.filter(|grey| *grey >= self.low) {
            Some(grey) if high - grey <= self.grey_resolution => {
                self.exponential = false;
                if self.grey_low.is_some() || self.low > 0.0 {
                    return self.deeper(depth, rate, Self::up);
                }
                self.at(grey / 2.0)
            }
            Some(grey) => self.at(f64::midpoint(high, grey)),
            None => self.at(f64::midpoint(self.low, high)),
        }
    }

    fn grey_up(&mut self, rate: f64, depth: u32) -> Next {
        let grey = self.grey_high.unwrap_or(rate);
        match self.high {
            None => self.at(self.max_rate.min(1.5 * rate)),
            Some(high) if high - grey <= self.grey_resolution => self.deeper(depth, rate, Self::grey_down),
            Some(high) => self.at(f64::midpoint(high, grey)),
        }
    }

    fn grey_down(&mut self, rate: f64, depth: u32) -> Next {
        let grey = self.grey_low.unwrap_or(rate);
        if grey - self.low <= self.grey_resolution {
            self.deeper(depth, rate, Self::grey_up)
        } else {
            self.at(f64::midpoint(self.low, grey))
        }
    }

    fn deeper(&mut self, depth: u32, rate: f64, rule: fn(&mut Self, f64, u32) -> Next) -> Next {
        if depth >= DEPTH {
            return Next::Stop(Stop::Stuck);
        }
        rule(self, rate, depth + 1)
    }

    fn at(&self, rate: f64) -> Next {
        Next::Rate(rate.clamp(self.min_rate, self.max_rate))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn search() -> Search {
        Search::new(2e6, 5e6, 1e4, 1e9)
    }

    #[test]
    fn doubles_then_halves() {
        let mut search = search();
        assert_eq!(search.next(FleetVerdict::NoTrend, 20e6), Next::Rate(40e6));
        assert_eq!(search.next(FleetVerdict::NoTrend, 40e6), Next::Rate(80e6));
        assert_eq!(search.next(FleetVerdict::Increasing, 80e6), Next::Rate(60e6));
        assert_eq!(search.next(FleetVerdict::NoTrend, 60e6), Next::Rate(70e6));
        assert_eq!(search.next(FleetVerdict::Increasing, 61.9e6), Next::Stop(Stop::Resolution));
    }

    #[test]
    fn the_grey_region_is_edged_from_above_then_from_below() {
        let mut search = search();
        assert_eq!(search.next(FleetVerdict::Increasing, 80e6), Next::Rate(40e6));
        assert_eq!(search.next(FleetVerdict::Grey, 40e6), Next::Rate(60e6));
        assert_eq!(search.next(FleetVerdict::Increasing, 60e6), Next::Rate(50e6));
        assert_eq!(search.next(FleetVerdict::Increasing, 50e6), Next::Rate(45e6));
        // 45 - 40 is the grey resolution: the upper edge is sharp, and the lower one is next,
        // half-way to zero.
        assert_eq!(search.next(FleetVerdict::Increasing, 45e6), Next::Rate(20e6));
        assert_eq!(search.next(FleetVerdict::NoTrend, 20e6), Next::Rate(30e6));
        assert_eq!(search.next(FleetVerdict::Grey, 30e6), Next::Rate(25e6));
        assert_eq!(search.next(FleetVerdict::NoTrend, 25e6), Next::Stop(Stop::GreyResolution));
        assert_eq!((search.grey_low, search.grey_high), (Some(30e6), Some(40e6)));
    }

    #[test]
    fn the_highest_rate_is_asked_twice() {
        let mut search = search();
        assert_eq!(search.next(FleetVerdict::NoTrend, 1e9), Next::Repeat);
        assert_eq!(search.next(FleetVerdict::NoTrend, 1e9), Next::Stop(Stop::MaxRate));
    }

    #[test]
    fn a_timer_without_a_rate_in_between_ends_the_search() {
        let mut search = search();
        search.next(FleetVerdict::NoTrend, 500e6);
        search.next(FleetVerdict::Increasing, 600e6);
        search.missed(550e6, 600e6);
        assert_eq!(search.next(FleetVerdict::Increasing, 600e6), Next::Stop(Stop::Timer));
    }

    proptest! {
        /// Whatever the verdicts, every rate is finite, in range, and the search needs no more than
        /// a bounded number of fleets when the verdicts follow a turning point with a grey band.
        #[test]
        fn ends(turning_point in 1e5f64..9e8, band in 0.0f64..0.3, start in 1e5f64..9e8) {
            let mut search = Search::new(turning_point * 0.02, turning_point * 0.05, 1e4, 1e9);
            let (mut rate, mut repeats) = (start, 0);
            for _ in 0..80 {
                let verdict = if rate > turning_point * (1.0 + band) {
                    FleetVerdict::Increasing
                } else if rate > turning_point * (1.0 - band) {
                    FleetVerdict::Grey
                } else {
                    FleetVerdict::NoTrend
                };
                match search.next(verdict, rate) {
                    Next::Rate(next) => { prop_assert!((1e4..=1e9).contains(&next)); rate = next; }
                    Next::Repeat => { repeats += 1; if repeats > 3 { return Ok(()); } }
                    Next::Stop(_) => {
                        let high = search.high.unwrap_or(1e9);
                        prop_assert!(search.low <= turning_point && turning_point <= high * (1.0 + 1e-9));
                        return Ok(());
                    }
                }
            }
            prop_assert!(false, "{search:?}");
        }

        #[test]
        fn any_verdicts_give_sane_rates(verdicts in prop::collection::vec(0u8..3, 1..60), start in 1e5f64..9e8) {
            let mut search = search();
            let mut rate = start;
            for verdict in verdicts {
                let verdict = [FleetVerdict::Increasing, FleetVerdict::NoTrend, FleetVerdict::Grey][usize::from(verdict)];
                match search.next(verdict, rate) {
                    Next::Rate(next) => { prop_assert!((1e4..=1e9).contains(&next)); rate = next; }
                    Next::Repeat => {}
                    Next::Stop(_) => return Ok(()),
                }
            }
        }
    }
}
