//! When packets of a constant rate are due. Pure: times are arguments.
//!
//! **Catch-up policy**: where a rate is a mean, what a stalled host did not send in time it sends
//! later; but never as a flood. What a scheduler's hiccup made late leaves at once; beyond that
//! late packets follow one another at three quarters of their planned distance (ours) until the
//! plan is kept again. So at no moment has more left than the plan allows, and over any time no
//! more than the hiccup's worth beyond four thirds of the rate. Time lost beyond a limit is
//! abandoned.

use std::time::Duration;

use narrows_units::nanos;

const MOST_LEAD_NS: i64 = 100_000_000;

/// What may be made up for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slack {
    /// Time lost beyond this is abandoned.
    pub most_debt: Duration,
    /// What was lost of time up to this is made up for at once.
    pub at_once: Duration,
}

impl Slack {
    /// Half a millisecond, several times what timers of hosts overshoot by (ours).
    pub const PROMPT: Self = Self { most_debt: Duration::from_micros(500), at_once: Duration::from_micros(500) };

    /// Of a load whose mean rate is what was asked for: debts of up to half of its segment are made
    /// up for, a fortieth of it at once. Ours: at least 5 ms, what a scheduler's preemption costs;
    /// at most a second, and 25 ms at once.
    pub fn mean_rate(segment: Duration) -> Self {
        let least = Duration::from_millis(5);
        Self {
            most_debt: (segment / 2).clamp(least, Duration::from_secs(1)),
            at_once: (segment / 40).clamp(least, 5 * least),
        }
    }
}

fn signed(time: Duration) -> i64 {
    i64::try_from(nanos(time)).unwrap_or(i64::MAX)
}

/// Departures at a rate.
#[derive(Debug, Clone)]
pub struct Timetable {
    begin_ns: i64,
    rate_bps: u64,
    /// Bits of what has left, since `begin_ns`.
    bits: u128,
    /// The next must not leave before, planned or late.
    earliest_ns: i64,
    slack: Slack,
    unrecovered_ns: u64,
}

impl Timetable {
    /// From `begin_ns` on; `rate_bps` zero: everything is due at once.
    pub fn new(begin_ns: i64, rate_bps: u64, slack: Slack) -> Self {
        Self { begin_ns, rate_bps, bits: 0, earliest_ns: i64::MIN, slack, unrecovered_ns: 0 }
    }

    /// When the first of what leaves every `gap` leaves: after half of it (at most a tenth of a
    /// second, ours), so that the number that leaves in a given time is the one nearest to the
    /// rate.
    pub fn first_ns(begin_ns: i64, gap: Duration) -> i64 {
        begin_ns.saturating_add(i64::try_from((gap / 2).as_nanos()).map_or(MOST_LEAD_NS, |half| half.min(MOST_LEAD_NS)))
    }

    /// How long so many bits take at the rate; nothing without one.
    pub fn lasts_ns(rate_bps: u64, bits: u128) -> i64 {
        bits.saturating_mul(1_000_000_000)
            .checked_div(u128::from(rate_bps))
            .map_or(0, |nanos| i64::try_from(nanos).unwrap_or(i64::MAX))
    }

    /// When the next is due.
    pub fn next_ns(&self) -> i64 {
        self.planned_ns().max(self.earliest_ns)
    }

    fn planned_ns(&self) -> i64 {
        self.begin_ns.saturating_add(Self::lasts_ns(self.rate_bps, self.bits))
    }

    /// So many bits leave now.
    pub fn leaves(&mut self, now_ns: i64, bits: u128) {
        if self.rate_bps == 0 {
            return;
        }
        let due = self.next_ns();
        let beyond = now_ns.saturating_sub(self.planned_ns()).saturating_sub(signed(self.slack.most_debt));
        if beyond > 0 {
            self.begin_ns = self.begin_ns.saturating_add(beyond);
            self.unrecovered_ns = self.unrecovered_ns.saturating_add(beyond.unsigned_abs());
        }
        let gap = Self::lasts_ns(self.rate_bps, bits);
        self.bits = self.bits.saturating_add(bits);
        let hiccup = now_ns.saturating_sub(signed(self.slack.at_once));
        self.earliest_ns = due.min(now_ns).max(hiccup).saturating_add(gap - gap / 4);
    }

    /// Time that was lost and will not be made up for.
    pub fn unrecovered_ns(&self) -> u64 {
        self.unrecovered_ns
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const GAP: i64 = 120_000;
    const BITS: u128 = 12_000;
    const RATE: u64 = 100_000_000;

    const NONE: Slack = Slack { most_debt: Duration::ZERO, at_once: Duration::ZERO };

    #[test]
    fn what_is_on_time_stays_on_the_plan() {
        let mut table = Timetable::new(500, RATE, NONE);
        for k in 0..1_000 {
            assert_eq!(table.next_ns(), 500 + k * GAP);
            table.leaves(500 + k * GAP, BITS);
        }
        assert_eq!(table.unrecovered_ns(), 0);
    }

    /// What leaves after a stall of 120 ms until the plan is kept again: packets, and those of them
    /// at once.
    fn after_a_stall(slack: Slack) -> (i64, i64, Timetable) {
        let mut table = Timetable::new(0, RATE, slack);
        table.leaves(0, BITS);
        let mut now = GAP + 120_000_000;
        let (mut late, mut at_once) = (0, 0);
        while table.planned_ns() < table.earliest_ns.max(now) {
            at_once += i64::from(table.next_ns() <= now);
            now = table.next_ns().max(now);
            table.leaves(now, BITS);
            late += 1;
            assert!(late < 10_000);
        }
        (late, at_once, table)
    }

    #[test]
    fn a_stall_is_made_up_for_without_a_flood() {
        let slack = Slack { most_debt: Duration::from_millis(50), at_once: Duration::ZERO };
        let (late, at_once, table) = after_a_stall(slack);
        // 70 ms are abandoned, and the rest is caught up with at four thirds of the rate: a quarter
        // of a gap per packet.
        assert_eq!(table.unrecovered_ns(), 70_000_000);
        let expected = 50_000_000 / (GAP / 4);
        assert!((late - expected).abs() <= 2, "{late} {expected}");
        assert_eq!(at_once, 1);
    }

    #[test]
    fn a_hiccup_s_worth_leaves_at_once() {
        let slack = Slack { most_debt: Duration::from_secs(1), at_once: Duration::from_millis(12) };
        let (_, at_once, table) = after_a_stall(slack);
        assert_eq!(table.unrecovered_ns(), 0);
        // 12 ms at three quarters of a gap.
        let expected = 12_000_000 / (GAP - GAP / 4);
        assert!((at_once - expected).abs() <= 2, "{at_once} {expected}");
    }

    #[test]
    fn a_host_that_always_comes_late_keeps_the_rate() {
        let slack = Slack { most_debt: Duration::from_secs(1), at_once: Duration::from_millis(5) };
        let mut table = Timetable::new(0, RATE, slack);
        let (mut now, mut sent) = (0, 0);
        while now < 1_000_000_000 {
            // Every sleep ends 3 ms late.
            if table.next_ns() > now {
                now = table.next_ns() + 3_000_000;
            }
            table.leaves(now, BITS);
            sent += 1;
        }
        assert!((1_000_000_000 / GAP - sent).abs() <= 1 + 3_000_000 / GAP, "{sent}");
    }

    #[test]
    fn without_a_rate_all_is_due() {
        let mut table = Timetable::new(0, 0, NONE);
        for now in [0, 0, 5] {
            table.leaves(now, BITS);
            assert_eq!(table.next_ns(), 0);
        }
        assert_eq!(table.unrecovered_ns(), 0);
    }

    proptest! {
        #[test]
        fn never_ahead_of_the_plan_and_never_a_flood(
            stalls in prop::collection::vec(0i64..3_000_000, 1..200),
            debt in 0i64..20_000_000,
            hiccup in 0i64..2_000_000,
        ) {
            let duration = |nanos: i64| Duration::from_nanos(nanos.unsigned_abs());
            let slack = Slack { most_debt: duration(debt), at_once: duration(hiccup) };
            let mut table = Timetable::new(0, RATE, slack);
            let (mut now, mut left) = (0i64, Vec::new());
            for stall in stalls {
                now = table.next_ns().max(now) + stall;
                let sent = i64::try_from(left.len()).unwrap();
                prop_assert!(sent * GAP <= now);
                table.leaves(now, BITS);
                left.push(now);
                // Either it was sent in time, or the debt is within its limit, or it was abandoned.
                let unrecovered = i64::try_from(table.unrecovered_ns()).unwrap();
                prop_assert!(now - sent * GAP <= debt + unrecovered);
            }
            for (k, begin) in left.iter().enumerate() {
                for (packets, end) in (1..).zip(&left[k..]) {
                    let most = (end - begin + hiccup) / (GAP - GAP / 4) + 1;
                    prop_assert!(packets <= most, "{packets} in {}", end - begin);
                }
            }
        }
    }
}
