//! How fast a router answers: learned from what it leaves unanswered.

use std::collections::VecDeque;
use std::time::Duration;

use units::{Sender, Stamp};

/// The pace at which one hop limit is asked.
///
/// A router that answers some probes and then few has a limit, most likely a token bucket (Linux: 6 answers, then one per second). It is
/// then asked at the pace of the commonest limit, faster while it answers all, and slower when it does not. A path that loses packets
/// does so at any pace: what stays unanswered at the slow one was lost.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Pace {
    /// Between probes; `None`: as others are.
    every: Option<Duration>,
    /// The quickest pace at which something stayed unanswered since it was found to be limited.
    too_fast: Option<Duration>,
    next_at: Option<Stamp<Sender>>,
    /// The last probes: answered or not.
    last: VecDeque<bool>,
    answered_in_row: u32,
    /// Answers before the first that was missing.
    pub(super) burst: u32,
    missed: u32,
}

/// What Linux allows per second and destination (`icmp_ratelimit`).
const USUAL: Duration = Duration::from_millis(1000);
/// What a pace is longer than the limit by, so that tokens are there.
const MARGIN: f64 = 1.04;
const QUICKEST: Duration = Duration::from_millis(100);
const SLOWEST: Duration = Duration::from_secs(8);
/// Probes that are looked back on, and how many of them must be missing.
const LOOK_BACK: usize = 6;
const MISSING: usize = 3;
/// Answers in a row after which a limited router is asked faster.
const TRY_FASTER: u32 = 4;

impl Pace {
    pub(super) fn new() -> Self {
        Self {
            every: None,
            too_fast: None,
            next_at: None,
            last: VecDeque::new(),
            answered_in_row: 0,
            burst: 0,
            missed: 0,
        }
    }

    /// Whether it may be asked now.
    pub(super) fn is_due(&self, now: Stamp<Sender>) -> bool {
        self.next_at.is_none_or(|at| at <= now)
    }

    pub(super) fn due_at(&self) -> Option<Stamp<Sender>> {
        self.next_at
    }

    /// Time between probes, if the router limits its answers.
    pub(super) fn every(&self) -> Option<Duration> {
        self.every
    }

    /// The limit as it looks: the pace that it kept.
    pub(super) fn limit(&self) -> Option<(u32, Duration)> {
        let every = self.every?.div_f64(MARGIN);
        Some((self.burst.max(1), Duration::from_millis(u64::try_from(every.as_millis()).ok()?)))
    }

    pub(super) fn sent(&mut self, at: Stamp<Sender>) {
        self.next_at = self.every.map(|every| at + every);
    }

    /// Another probe was answered, or not.
    pub(super) fn told(&mut self, answered: bool) {
        self.last.push_back(answered);
        if self.last.len() > LOOK_BACK {
            self.last.pop_front();
        }
        if answered {
            self.answered_in_row += 1;
            if self.missed == 0 {
                self.burst += 1;
            }
        } else {
            self.missed += 1;
            self.answered_in_row = 0;
        }
        match self.every {
            None => self.look(),
            Some(every) => self.adapt(every, answered),
        }
    }

    fn look(&mut self) {
        let missing = self.last.iter().filter(|answered| !**answered).count();
        if missing >= MISSING && self.burst > 0 {
            self.set(USUAL.mul_f64(MARGIN));
        }
    }

    fn adapt(&mut self, every: Duration, answered: bool) {
        if !answered {
            self.too_fast = Some(self.too_fast.map_or(every, |fast| fast.max(every)));
            // Two of the last three, or the attempt to go faster failed.
            let recent = self.last.iter().rev().take(3).filter(|answered| !**answered).count();
            if every < USUAL || recent >= 2 {
                self.set((every * 2).min(SLOWEST));
            }
        } else if self.answered_in_row >= TRY_FASTER {
            let faster = every / 2;
            let untried = self.too_fast.is_none_or(|fast| faster > fast);
            if untried && faster >= QUICKEST {
                self.set(faster);
            }
        }
    }

    fn set(&mut self, every: Duration) {
        self.every = Some(every);
        self.answered_in_row = 0;
        self.last.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A bucket of `burst`, one more per `every`: how the pace comes to terms with it.
    fn against(burst: u32, every: Duration, probes: u32) -> (Pace, u32) {
        let mut pace = Pace::new();
        let mut tokens = f64::from(burst);
        let (mut now, mut refilled) = (Stamp::<Sender>::from_nanos(0), Stamp::from_nanos(0));
        let mut answers = 0;
        for _ in 0..probes {
            now = pace.due_at().map_or(now, |at| at.max(now)) + Duration::from_millis(50);
            tokens = (tokens + now.since(refilled).as_secs_f64() / every.as_secs_f64()).min(f64::from(burst));
            refilled = now;
            let answered = tokens >= 1.0;
            tokens -= f64::from(u8::from(answered));
            answers += u32::from(answered);
            pace.sent(now);
            pace.told(answered);
        }
        (pace, answers)
    }

    #[test]
    fn the_usual_limit_is_learned() {
        let (pace, answers) = against(6, Duration::from_secs(1), 40);
        let (burst, every) = pace.limit().unwrap();
        assert_eq!(burst, 6);
        assert_eq!(every, Duration::from_secs(1));
        assert!(answers >= 33, "{answers}");
    }

    #[test]
    fn quicker_and_slower_limits_are_met() {
        let (pace, answers) = against(5, Duration::from_millis(400), 60);
        let (_, every) = pace.limit().unwrap();
        assert!(every >= Duration::from_millis(400) && every <= Duration::from_millis(600), "{every:?}");
        assert!(answers >= 48, "{answers}");
        let (pace, answers) = against(3, Duration::from_secs(3), 40);
        let (_, every) = pace.limit().unwrap();
        assert!(every >= Duration::from_secs(3), "{every:?}");
        assert!(answers >= 28, "{answers}");
    }

    #[test]
    fn who_answers_all_is_not_limited() {
        let (pace, answers) = against(1000, Duration::from_millis(1), 100);
        assert_eq!((pace.limit(), answers), (None, 100));
    }

    /// One in ten lost, here and there: no limit.
    #[test]
    fn scattered_losses_are_no_limit() {
        let mut pace = Pace::new();
        for probe in 0..100 {
            pace.told(probe % 10 != 7);
        }
        assert_eq!(pace.limit(), None);
    }
}
