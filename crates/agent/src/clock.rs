//! What the agent asks of its host's clocks. The program answers; tests do it in their own time.

use std::time::Duration;

use narrows_fleet::clock::Boot;
use narrows_units::Stamp;

/// The clocks of a host.
pub trait Clock: Send + Sync {
    /// `CLOCK_BOOTTIME`: leases run on it.
    fn boot(&self) -> Stamp<Boot>;

    /// Unix time in ms, by this host's own clock.
    fn unix_ms(&self) -> i64;

    /// How far [`Clock::unix_ms`] may be off; `None`: nobody disciplines this clock.
    fn error(&self) -> Option<Duration>;
}

/// The hub's time as this agent knows it.
///
/// The hub answers each status with its time: so this agent knows by how much its clock differs,
/// whatever the kernel says of it, and goes by the hub's time where that is more than 2 s. A hub of
/// before does not answer. Then a clock that is synchronised within a second is believed, else the
/// last plan that came while we listened says the time: it was on its way for less than a second.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct HubTime {
    answered: Option<Reading>,
    planned: Option<Reading>,
    /// The status that waits for its answer: what it said, and when.
    asked: Option<(i64, Stamp<Boot>)>,
    /// The difference that the complaint names.
    reported_ms: Option<i64>,
}

/// What the hub's clock showed, and when. Nobody sets `CLOCK_BOOTTIME`.
#[derive(Debug, Clone, Copy)]
struct Reading {
    hub_ms: i64,
    at: Stamp<Boot>,
}

impl Reading {
    fn now_ms(self, clock: &dyn Clock) -> i64 {
        self.hub_ms.saturating_add(self.age_ms(clock))
    }

    fn age_ms(self, clock: &dyn Clock) -> i64 {
        i64::try_from(clock.boot().since(self.at).as_millis()).unwrap_or(i64::MAX)
    }
}

impl HubTime {
    /// The hub made a plan at this time, and sent it just now.
    pub(crate) fn heard(&mut self, made_ms: i64, clock: &dyn Clock) {
        self.planned = Some(Reading { hub_ms: made_ms, at: clock.boot() });
    }

    /// A status leaves now, that says this of its time.
    pub(crate) fn ask(&mut self, at_ms: i64, clock: &dyn Clock) {
        self.asked = Some((at_ms, clock.boot()));
    }

    /// The hub answered the status of this time. The answer to an older one, or one that took long,
    /// says nothing.
    pub(crate) fn answered(&mut self, asked_ms: i64, hub_ms: i64, clock: &dyn Clock) {
        let Some((_, sent)) = self.asked.take_if(|(at_ms, _)| *at_ms == asked_ms) else { return };
        let took = clock.boot().since(sent);
        if took <= 2 * BELIEVED {
            let half_ms = i64::try_from(took.as_millis() / 2).unwrap_or(0);
            self.answered = Some(Reading { hub_ms: hub_ms.saturating_add(half_ms), at: clock.boot() });
        }
    }

    /// Unix time of the hub, in ms.
    pub(crate) fn now_ms(self, clock: &dyn Clock) -> i64 {
        let own_ms = clock.unix_ms();
        match (self.answered, self.planned) {
            (Some(reading), _) if !(synchronised(clock) && agrees(reading, clock)) => reading.now_ms(clock),
            (None, Some(reading)) if !synchronised(clock) => reading.now_ms(clock),
            _ => own_ms,
        }
    }

    /// Whether the hub said its time since this process began.
    pub(crate) fn is_compared(self) -> bool {
        self.answered.is_some()
    }

    /// Whether [`Self::now_ms`] is right within a second.
    pub(crate) fn is_known(self, clock: &dyn Clock) -> bool {
        self.answered.is_some() || self.planned.is_some() || synchronised(clock)
    }

    /// How far this host's clock is ahead of the hub's, in ms.
    pub(crate) fn ahead_ms(self, clock: &dyn Clock) -> Option<i64> {
        self.answered.map(|reading| clock.unix_ms() - reading.now_ms(clock))
    }

    /// What is to be said of a clock that differs, until it is set right. It changes when the
    /// difference does, by a second.
    pub(crate) fn complaint(&mut self, clock: &dyn Clock) -> Option<String> {
        let differs = self.answered.filter(|reading| !agrees(*reading, clock));
        let ahead_ms = differs.and_then(|_| self.ahead_ms(clock));
        let same = |before: i64| ahead_ms.is_some_and(|now| before.abs_diff(now) < 1_000);
        if !self.reported_ms.is_some_and(same) {
            self.reported_ms = ahead_ms;
        }
        let reported_ms = self.reported_ms?;
        let (seconds, way) =
            ((reported_ms.unsigned_abs() + 500) / 1_000, if reported_ms > 0 { "ahead of" } else { "behind" });
        let though = if synchronised(clock) { ", though its kernel calls it synchronised" } else { "" };
        Some(format!(
            "{} {way} the hub's{though}; runs go by the hub's time. Set it right: `timedatectl`, or `chronyc tracking`, \
             tells where it comes from. If many agents say this, it is the hub's clock",
            in_words(seconds)
        ))
    }
}

/// Whether this host's clock shows what the hub's does, as far as a reading of this age can tell.
/// `CLOCK_BOOTTIME` is off by 0.1 % at most.
fn agrees(reading: Reading, clock: &dyn Clock) -> bool {
    let most_ms = DIFFERS_MS.saturating_add(reading.age_ms(clock).unsigned_abs() / 1_000);
    clock.unix_ms().abs_diff(reading.now_ms(clock)) <= most_ms
}

fn in_words(seconds: u64) -> String {
    let parts = [(seconds / 86_400, "d"), (seconds / 3_600 % 24, "h"), (seconds / 60 % 60, "min"), (seconds % 60, "s")];
    let words = parts.iter().filter(|(count, _)| *count > 0).map(|(count, unit)| format!("{count} {unit}"));
    words.collect::<Vec<_>>().join(" ")
}

pub(crate) fn synchronised(clock: &dyn Clock) -> bool {
    clock.error().is_some_and(|error| error <= BELIEVED)
}

const BELIEVED: Duration = Duration::from_secs(1);
/// Twice what an answer may be wrong by.
const DIFFERS_MS: u64 = 2_000;

#[cfg(test)]
mod tests {
    use super::*;

    /// Time that passed since the beginning, how far the wall clock was set, and what the kernel
    /// says.
    #[derive(Debug, Clone, Copy)]
    struct At(i64, i64, Option<Duration>);

    const BEGAN_MS: i64 = 1_800_000_000_000;
    const HOUR_MS: i64 = 3_600_000;
    const GOOD: Option<Duration> = Some(Duration::from_millis(1));

    impl Clock for At {
        fn boot(&self) -> Stamp<Boot> {
            Stamp::from_nanos(self.0 * 1_000_000)
        }

        fn unix_ms(&self) -> i64 {
            BEGAN_MS + self.0 + self.1
        }

        fn error(&self) -> Option<Duration> {
            self.2
        }
    }

    /// A status that left at 0, and was answered when 100 ms had passed.
    fn compared(ahead_ms: i64, error: Option<Duration>) -> HubTime {
        let (mut time, asked) = (HubTime::default(), At(0, ahead_ms, error));
        time.ask(asked.unix_ms(), &asked);
        time.answered(asked.unix_ms(), BEGAN_MS + 50, &At(100, ahead_ms, error));
        time
    }

    #[test]
    fn the_hub_is_believed_where_this_clock_differs_whatever_the_kernel_says() {
        for ahead_ms in [HOUR_MS, -HOUR_MS, 2_500] {
            for error in [GOOD, None] {
                let (mut time, later) = (compared(ahead_ms, error), At(5_100, ahead_ms, error));
                assert_eq!(time.now_ms(&later), BEGAN_MS + 5_100);
                assert_eq!(time.ahead_ms(&later), Some(ahead_ms));
                assert_eq!(time.complaint(&later).unwrap().contains("its kernel calls it"), error == GOOD);
            }
        }
        // As far as an answer can tell, this one is right: the kernel knows better by how much.
        let (mut time, later) = (compared(1_500, GOOD), At(5_100, 1_500, GOOD));
        assert_eq!((time.now_ms(&later), time.complaint(&later)), (later.unix_ms(), None));
        assert_eq!(compared(1_500, None).now_ms(&At(5_100, 1_500, None)), BEGAN_MS + 5_100);
    }

    #[test]
    fn a_clock_that_is_set_is_noticed_at_once() {
        let mut time = compared(0, GOOD);
        assert_eq!(time.complaint(&At(10_000, 0, GOOD)), None);
        let set = At(11_000, -HOUR_MS, GOOD);
        assert_eq!(time.now_ms(&set), BEGAN_MS + 11_000);
        assert!(time.complaint(&set).unwrap().starts_with("1 h behind the hub's"));
        let right = At(12_000, 0, GOOD);
        assert_eq!((time.now_ms(&right), time.complaint(&right)), (right.unix_ms(), None));
    }

    #[test]
    fn a_complaint_stays_the_same_until_the_clock_moves_by_a_second() {
        let mut time = compared(HOUR_MS, GOOD);
        let first = time.complaint(&At(200, HOUR_MS, GOOD)).unwrap();
        assert!(first.starts_with("1 h ahead of the hub's"), "{first}");
        assert_eq!(time.complaint(&At(300, HOUR_MS + 900, GOOD)).unwrap(), first);
        let moved = time.complaint(&At(400, HOUR_MS + 1_100, GOOD)).unwrap();
        assert!(moved.starts_with("1 h 1 s ahead of the hub's"), "{moved}");
    }

    /// Who keeps an answer of the hub and repeats it later sets no clock, nor does a slow way.
    #[test]
    fn only_a_quick_answer_to_the_last_status_counts() {
        let (mut time, asked) = (HubTime::default(), At(0, 0, None));
        time.ask(asked.unix_ms(), &asked);
        time.answered(asked.unix_ms() - 30_000, BEGAN_MS - HOUR_MS, &At(10, 0, None));
        assert!(!time.is_compared());
        time.answered(asked.unix_ms(), BEGAN_MS - HOUR_MS, &At(2_001, 0, None));
        assert!(!time.is_compared());
        let again = At(30_000, 0, None);
        time.ask(again.unix_ms(), &again);
        time.answered(again.unix_ms(), BEGAN_MS + 30_000, &At(30_020, 0, None));
        time.answered(again.unix_ms(), BEGAN_MS - HOUR_MS, &At(30_030, 0, None));
        // Of 20 ms half was the way back.
        assert_eq!(time.now_ms(&At(30_040, 0, None)), BEGAN_MS + 30_030);
    }

    /// Without the hub for days the reading is as good as `CLOCK_BOOTTIME`: not good enough to call
    /// a synchronised clock wrong.
    #[test]
    fn an_old_answer_blames_no_clock_for_the_drift_of_another() {
        const WEEK_MS: i64 = 7 * 24 * HOUR_MS;
        let mut time = compared(0, GOOD);
        let later = At(WEEK_MS, WEEK_MS / 2_000, GOOD);
        assert_eq!((time.now_ms(&later), time.complaint(&later)), (later.unix_ms(), None));
        let wrong = At(WEEK_MS, HOUR_MS, GOOD);
        assert_eq!(time.now_ms(&wrong), BEGAN_MS + WEEK_MS);
    }
}
