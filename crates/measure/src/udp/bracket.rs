//! The search for the highest rate that passes. Pure.

use narrows_units::BitRate;

use super::trial::Trial;

/// The rates between which the answer lies.
#[derive(Debug, Clone)]
pub(super) struct Bracket {
    max_loss: f64,
    /// Width of the final bracket, as a share.
    pub(super) resolution: f64,
    /// Highest rate worth asking for.
    cap: BitRate,
    /// The best trial that passed.
    pub(super) passed: Option<Trial>,
    /// Lowest rate that the answer cannot exceed.
    pub(super) ceiling: Option<BitRate>,
    /// What failed, for the line of `R / D` over `R`, in order of time.
    failed: Vec<(f64, f64)>,
    /// The receiving host, not the path, made the lowest rate fail.
    pub(super) receiver_limits: bool,
    /// The sender could not offer more than what passed.
    pub(super) sender_limits: bool,
    /// IP-layer rate at which the receiving program takes packets, where its stamps depend on that.
    receiver: Option<BitRate>,
    /// Failures since the last trial that passed.
    in_row: i32,
    /// Factor from one rate that passes to the next.
    step: f64,
}

/// What to do next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Next {
    /// Try this rate.
    Try(BitRate),
    /// No rate above can be tried: the sender or the cap forbids it.
    Capped,
    /// The bracket is narrow enough.
    Narrow,
}

/// First step upward (ours: a path measured for its available rate beforehand is seldom off by
/// more), and the largest; each step is the square of the one before.
const FIRST_STEP_UP: f64 = 1.25;
const LARGEST_STEP_UP: f64 = 3.0;
/// What is delivered at this share of the rate at which the receiving program takes packets is what
/// it takes (ours).
const AT_RECEIVER: f64 = 0.95;
/// Rates closer than this share give no line worth following (ours).
const APART: f64 = 0.05;
/// The line is followed below the delivered rate by at most so many times what was lost (ours).
const MOST_STEPS_DOWN: f64 = 4.0;

impl Bracket {
    pub(super) fn new(max_loss: f64, resolution: f64, cap: BitRate) -> Self {
        Self {
            max_loss,
            resolution,
            cap,
            passed: None,
            ceiling: None,
            failed: Vec::new(),
            receiver_limits: false,
            sender_limits: false,
            receiver: None,
            in_row: 0,
            step: FIRST_STEP_UP,
        }
    }

    /// The same, for a receiving program that takes packets no faster than at `rate` and stamps
    /// them then.
    pub(super) fn with_receiver(self, rate: Option<BitRate>) -> Self {
        Self { receiver: rate, ..self }
    }

    /// Whether what arrived is all that the receiving program can take. A queue in front of it
    /// delays as one on the path does, in the program's own stamps.
    fn at_receivers_rate(&self, trial: &Trial) -> bool {
        self.receiver.is_some_and(|most| trial.delivered.as_f64() >= AT_RECEIVER * most.as_f64())
    }

    /// Whether that trial would go on for ever with no more loss than allowed, at either end.
    pub(super) fn passes(&self, trial: &Trial) -> bool {
        trial.arrived > 0 && trial.sustained_loss() <= self.max_loss && trial.local <= self.max_loss
    }

    /// Takes in a trial.
    pub(super) fn note(&mut self, trial: &Trial) -> Next {
        if self.passes(trial) {
            if self.passed.is_none_or(|best| best.delivered < trial.delivered) {
                self.passed = Some(*trial);
            }
            self.in_row = 0;
            self.sender_limits = trial.sender_limited;
            if trial.sender_limited || trial.asked >= self.cap {
                return Next::Capped;
            }
        } else {
            self.fail(trial);
        }
        self.next(trial)
    }

    /// Forgets what passed: the same rate failed when it was confirmed.
    pub(super) fn retract(&mut self, trial: &Trial) -> Next {
        self.passed = None;
        self.fail(trial);
        self.next(trial)
    }

    fn fail(&mut self, trial: &Trial) {
        self.in_row += 1;
        let at_its_rate = self.at_receivers_rate(trial);
        let by_receiver = at_its_rate || trial.sustained_loss() <= self.max_loss;
        let mut ceiling = trial.sent.min(trial.asked);
        // What a drop-tail queue delivers grows with what is offered, so that no lower rate gets
        // more through.
        let through = trial.delivered.scaled(1.0 / (1.0 - self.max_loss));
        let one_queue = at_its_rate || (!by_receiver && trial.local <= self.max_loss);
        if let Some(through) = through.filter(|_| one_queue && trial.arrived > 0) {
            ceiling = ceiling.min(through);
        }
        if self.ceiling.is_none_or(|old| ceiling < old) {
            self.ceiling = Some(ceiling);
            self.receiver_limits = by_receiver;
        }
        if trial.delivered > BitRate::ZERO {
            let rate = trial.sent.as_f64();
            self.failed.push((rate, rate / trial.delivered.as_f64()));
        }
    }

    fn next(&mut self, last: &Trial) -> Next {
        let Some(ceiling) = self.ceiling else {
            let rate = last.asked.scaled(self.step).unwrap_or(self.cap);
            self.step = (self.step * self.step).min(LARGEST_STEP_UP);
            return Next::Try(rate.min(self.cap));
        };
        let (low, high) = (self.floor(), ceiling.as_f64());
        if self.passed.is_some() && high <= low * (1.0 + self.resolution) {
            return Next::Narrow;
        }
        // Where cross traffic varies, rates at the edge fail by chance: each failure in a row steps
        // further back.
        let margin = 1.0 + self.resolution / 4.0 * f64::from(1 << (self.in_row - 1).clamp(0, 8));
        let guess = self.by_line().or_else(|| {
            let delivered = last.delivered.as_f64();
            (delivered > 0.0).then_some(delivered)
        });
        let rate = match guess {
            Some(rate) if low * margin < rate && rate * margin <= high => rate,
            Some(rate) if low < rate / margin && rate < high => rate / margin,
            Some(rate) if rate >= high && low * margin < high / margin => high / margin,
            _ if low > 0.0 => (low * high).sqrt(),
            _ => high / 4.0,
        };
        BitRate::from_bps_f64(rate.max(1.0)).map_or(Next::Capped, |rate| Next::Try(rate.min(self.cap)))
    }

    /// The best rate that passed, bit/s; zero if none did.
    fn floor(&self) -> f64 {
        self.passed.map_or(0.0, |trial| trial.sent.min(trial.asked).as_f64())
    }

    /// `R / D = (R + X) / C` behind a FIFO queue (`[TOPP00]`): the line through the last two
    /// failures, at the loss allowed.
    fn by_line(&self) -> Option<f64> {
        let &[.., earlier, later] = self.failed.as_slice() else {
            return None;
        };
        if (earlier.0 - later.0).abs() < APART * later.0 {
            return None;
        }
        let line = narrows_stat::Line::through(earlier, later)?;
        let rate = line.crossing(1.0 / (1.0 - self.max_loss / 2.0))?;
        // Noise bends the line; what the last trial lost bounds how far it is followed.
        let delivered = later.0 / later.1;
        let nearest = delivered - MOST_STEPS_DOWN * (later.0 - delivered);
        let rate = rate.max(nearest);
        (line.slope > 0.0 && rate > 0.0).then_some(rate)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use proptest::prelude::*;

    use super::*;

    /// A FIFO queue that has long been full: C, X and R in bit/s.
    fn trial(capacity: f64, cross: f64, rate: BitRate) -> Trial {
        let offered = rate.as_f64();
        let share = (capacity / (offered + cross)).min(1.0);
        Trial {
            asked: rate,
            sent: rate,
            held_up: 0.0,
            delivered: BitRate::from_bps_f64(offered * share).unwrap(),
            loss: 1.0 - share,
            local: 0.0,
            growth: 0.0,
            arrived: 1000,
            local_drops: 0,
            reordered: 0.0,
            sender_limited: false,
            sender_cpu: None,
            delay: Duration::ZERO,
            lasted: Duration::from_millis(500),
        }
    }

    fn search(capacity: f64, cross: f64, start: f64) -> (f64, u32) {
        let mut bracket = Bracket::new(0.01, 0.02, BitRate::from_gbps(100));
        let mut rate = BitRate::from_bps_f64(start).unwrap();
        for tries in 1..40 {
            match bracket.note(&trial(capacity, cross, rate)) {
                Next::Try(next) => rate = next,
                Next::Narrow => return (bracket.passed.unwrap().delivered.as_f64(), tries),
                Next::Capped => panic!("nothing caps this"),
            }
        }
        panic!("no end: {bracket:?}");
    }

    #[test]
    fn an_idle_path_takes_three_trials() {
        let (rate, tries) = search(100e6, 0.0, 95e6);
        assert!((99e6..=100e6).contains(&rate), "{rate}");
        assert!(tries <= 4, "{tries}");
    }

    proptest! {
        /// The truth is `C / (1 - loss) - X`; delivered at it, `(C / (1 - loss) - X) (1 - loss)`.
        #[test]
        fn the_answer_is_within_its_resolution(capacity in 1e6..1e10f64, load in 0.0..0.95f64, start in 0.05..3.0f64) {
            let cross = capacity * load;
            let (rate, tries) = search(capacity, cross, (capacity - cross) * start);
            let truth = (capacity / 0.99 - cross) * 0.99;
            prop_assert!(rate <= truth * 1.001 && rate >= truth * 0.96, "{rate} of {truth}");
            prop_assert!(tries <= 24, "{tries}");
        }
    }
}
