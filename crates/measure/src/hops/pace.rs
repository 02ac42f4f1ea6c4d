//! How fast a router answers: learned from what it leaves unanswered.

use std::collections::VecDeque;
use std::time::Duration;

use narrows_units::{Sender, Stamp};

/// The pace at which one hop limit is asked.
///
/// A router that answers some probes and then few has a limit, most likely a token bucket (Linux: 6
/// answers, then one per second). It is then asked at the pace of the commonest limit, faster while
/// it answers all, slower when it answers few. A path that loses packets loses them at any pace:
/// such a router answers most probes at a quick pace for longer than any bucket lasts, and is no
/// longer held back.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Pace {
    /// Between probes; `None`: as others are.
    every: Option<Duration>,
    /// The quickest pace at which too much stayed unanswered.
    too_fast: Option<Duration>,
    next_at: Option<Stamp<Sender>>,
    /// The last probes at this pace: answered or not.
    last: VecDeque<bool>,
    in_row: u32,
    /// Probes at this pace, and answers to them.
    reported: u32,
    answered: u32,
    /// Answers before the first that was missing.
    burst: u32,
    missed: bool,
}

/// What Linux allows per second and destination (`icmp_ratelimit`).
const USUAL: Duration = Duration::from_secs(1);
/// What a pace is longer than the limit by, so that tokens are there.
const MARGIN: f64 = 1.04;
const QUICKEST: Duration = Duration::from_millis(100);
const SLOWEST: Duration = Duration::from_secs(8);
/// Probes that are looked back on; how many of them must be missing for a limit (a world that waits
/// for each missing answer lets a bucket fill meanwhile, so that every second is answered), and for
/// a slower pace.
const LOOK_BACK: usize = 6;
const MISSING: usize = 3;
const FEW: usize = 4;
/// Probes at the quickest pace, and twice as many as come at once, of which this share must be
/// answered where there is no limit.
const NO_LIMIT: (u32, f64) = (8, 0.6);
/// Answers in a row after which a limited router is asked faster; below the usual pace after as
/// many more as it gives at once, for so long it may live on what it saved.
const TRY_FASTER: u32 = 4;
const MOST_SAVED: u32 = 20;

impl Pace {
    pub(super) fn new() -> Self {
        Self {
            every: None,
            too_fast: None,
            next_at: None,
            last: VecDeque::new(),
            in_row: 0,
            reported: 0,
            answered: 0,
            burst: 0,
            missed: false,
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

    /// Something is missing, and it is not clear yet whether that is a limit.
    pub(super) fn is_suspect(&self) -> bool {
        self.every.is_none() && self.missing(LOOK_BACK) >= 2 && self.burst > 0
    }

    /// The limit as it looks: answers at once, and the time between those at this pace.
    pub(super) fn limit(&self) -> Option<(u32, Duration)> {
        let every = self.every?.div_f64(MARGIN);
        let share = if self.reported >= 3 && self.answered > 0 {
            f64::from(self.answered) / f64::from(self.reported)
        } else {
            1.0
        };
        let millis = every.div_f64(share).as_millis();
        Some((self.burst.max(1), Duration::from_millis(u64::try_from(millis).ok()?)))
    }

    pub(super) fn sent(&mut self, at: Stamp<Sender>) {
        self.next_at = self.every.map(|every| at + every);
    }

    /// Another probe was answered, or not.
    pub(super) fn reported(&mut self, answered: bool) {
        self.reported = self.reported.saturating_add(1);
        self.answered = self.answered.saturating_add(u32::from(answered));
        self.last.push_back(answered);
        if self.last.len() > LOOK_BACK {
            self.last.pop_front();
        }
        if answered {
            self.in_row = self.in_row.saturating_add(1);
            self.burst = self.burst.saturating_add(u32::from(!self.missed));
        } else {
            self.missed = true;
            self.in_row = 0;
        }
        match self.every {
            None if !answered && self.missing(LOOK_BACK) >= MISSING && self.burst > 0 => {
                self.set(Some(USUAL.mul_f64(MARGIN)));
            }
            None => {}
            Some(every) => self.adapt(every),
        }
    }

    /// Of the last so many.
    fn missing(&self, last: usize) -> usize {
        self.last.iter().rev().take(last).filter(|answered| !**answered).count()
    }

    fn adapt(&mut self, every: Duration) {
        let saved = self.burst.min(MOST_SAVED);
        let lasted = every <= QUICKEST && self.reported >= NO_LIMIT.0 + 2 * saved;
        if lasted && f64::from(self.answered) > NO_LIMIT.1 * f64::from(self.reported) {
            self.set(None);
        } else if every < USUAL && self.missing(3) >= 2 {
            self.too_fast = Some(self.too_fast.map_or(every, |fast| fast.max(every)));
            let slower = if every <= QUICKEST { USUAL.mul_f64(MARGIN) } else { every * 2 };
            self.set(Some(slower));
        } else if self.missing(LOOK_BACK) >= FEW {
            self.set(Some((every * 2).min(SLOWEST)));
        } else if self.in_row >= TRY_FASTER + if every < USUAL { saved } else { 0 } {
            // Far faster first: if that holds there was no limit.
            let faster = self.too_fast.map_or(QUICKEST, |_| every / 2);
            if faster < every && self.too_fast.is_none_or(|fast| faster > fast) {
                self.set(Some(faster.max(QUICKEST)));
            }
        }
    }

    fn set(&mut self, every: Option<Duration>) {
        self.every = every;
        (self.in_row, self.reported, self.answered) = (0, 0, 0);
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
            pace.reported(answered);
        }
        (pace, answers)
    }

    #[test]
    fn the_usual_limit_is_learned() {
        let (pace, answers) = against(6, Duration::from_secs(1), 40);
        let (burst, every) = pace.limit().unwrap();
        assert_eq!(burst, 6);
        assert_eq!(every, Duration::from_secs(1));
        assert!(answers >= 30, "{answers}");
    }

    #[test]
    fn quicker_and_slower_limits_are_met() {
        let (pace, answers) = against(5, Duration::from_millis(400), 60);
        let (_, every) = pace.limit().unwrap();
        assert!(every >= Duration::from_millis(300) && every <= Duration::from_millis(600), "{every:?}");
        assert!(answers >= 36, "{answers}");
        let (pace, answers) = against(3, Duration::from_secs(3), 40);
        let (_, every) = pace.limit().unwrap();
        assert!(every >= Duration::from_millis(2500) && every <= Duration::from_secs(5), "{every:?}");
        assert!(answers >= 20, "{answers}");
    }

    #[test]
    fn who_answers_all_is_not_limited() {
        let (pace, answers) = against(1000, Duration::from_millis(1), 100);
        assert_eq!((pace.limit(), answers), (None, 100));
    }

    /// An outage is no limit in the end.
    #[test]
    fn an_outage_is_forgotten() {
        let mut pace = Pace::new();
        for probe in 0..150 {
            pace.reported(!(10..16).contains(&probe));
        }
        assert_eq!(pace.limit(), None);
    }

    /// One in ten lost, here and there: no limit.
    #[test]
    fn scattered_losses_are_no_limit() {
        let mut pace = Pace::new();
        for probe in 0..100 {
            pace.reported(probe % 10 != 7);
        }
        assert_eq!(pace.limit(), None);
    }
}
