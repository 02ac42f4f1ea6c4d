//! Puts pulses together. A pulse belongs to the time at which it was sent.

use std::collections::BTreeMap;
use std::time::Duration;

use narrows_store::records::PulseMinute;
use narrows_units::{nanos, nanos_f64};
use narrows_watch::WallTime;
use narrows_watch::detect::PulseBlock;

/// What is complete.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Closed {
    /// Ten seconds.
    Block {
        /// Their end.
        at: WallTime,
        block: PulseBlock,
        /// How long nothing has been answered by then.
        silent: Duration,
    },
    /// A minute.
    Minute(PulseMinute),
}

/// Pulses that were sent lately.
#[derive(Debug, Default)]
pub(super) struct Collector {
    /// By number: when it was sent, and its answer.
    pulses: BTreeMap<u32, (WallTime, Option<Duration>)>,
    /// How many of a minute were left out beside jobs of ours.
    left_out: BTreeMap<i64, u32>,
    block: Option<i64>,
    minute: Option<i64>,
    last_answer: Option<WallTime>,
}

impl Collector {
    /// Numbers begin again; silence goes on.
    pub(super) fn restart(&mut self) {
        self.pulses.clear();
    }

    /// One was sent. Beside a job of ours it says nothing of the path, and is not counted.
    pub(super) fn sent(&mut self, number: u32, at: WallTime, loaded: bool) {
        self.last_answer.get_or_insert(at);
        self.block.get_or_insert(at.millis().div_euclid(BLOCK_MS));
        self.minute.get_or_insert(at.millis().div_euclid(MINUTE_MS));
        if loaded {
            *self.left_out.entry(at.millis().div_euclid(MINUTE_MS)).or_default() += 1;
        } else {
            self.pulses.insert(number, (at, None));
        }
    }

    /// One was answered.
    pub(super) fn answered(&mut self, number: u32, round_trip: Duration) {
        if let Some((at, answer)) = self.pulses.get_mut(&number) {
            *answer = Some(round_trip);
            self.last_answer = self.last_answer.max(Some(*at));
        }
    }

    /// What is complete at `now`: late answers are waited for.
    pub(super) fn close(&mut self, now: WallTime) -> Vec<Closed> {
        let mut closed = Vec::new();
        let settled = now.millis() - WAIT_MS;
        let block_now = settled.div_euclid(BLOCK_MS);
        if let Some(block) = self.block.filter(|block| is_over(*block, BLOCK_MS, now)) {
            closed.extend(self.block_of(block));
            self.block = Some(block_now);
        }
        let minute_now = settled.div_euclid(MINUTE_MS);
        if let Some(minute) = self.minute.filter(|minute| is_over(*minute, MINUTE_MS, now)) {
            closed.extend(self.minute_of(minute).map(Closed::Minute));
            self.minute = Some(minute_now);
            let (from, until) = (minute_now * MINUTE_MS, now.millis() + MINUTE_MS);
            // Also those of a time to which the clock was set back.
            self.pulses.retain(|_, (at, _)| (from..until).contains(&at.millis()));
            self.left_out.retain(|kept, _| *kept >= minute_now);
        }
        closed
    }

    fn within(&self, from_ms: i64, length_ms: i64) -> Vec<Option<Duration>> {
        let inside = |(at, _): &&(WallTime, Option<Duration>)| (from_ms..from_ms + length_ms).contains(&at.millis());
        self.pulses.values().filter(inside).map(|(_, answer)| *answer).collect()
    }

    fn block_of(&self, block: i64) -> Option<Closed> {
        let answers = self.within(block * BLOCK_MS, BLOCK_MS);
        if answers.is_empty() {
            return None;
        }
        let times: Vec<f64> = answers.iter().flatten().map(|time| nanos_f64(*time)).collect();
        let lost = u32::try_from(answers.len() - times.len()).unwrap_or(u32::MAX);
        let at = WallTime::from_millis((block + 1) * BLOCK_MS);
        Some(Closed::Block {
            at,
            block: PulseBlock { round_trip_ns: narrows_stat::quantile(&times, 0.95), lost },
            silent: self.last_answer.map_or(Duration::ZERO, |last| at.since(last)),
        })
    }

    fn minute_of(&self, minute: i64) -> Option<PulseMinute> {
        let answers = self.within(minute * MINUTE_MS, MINUTE_MS);
        let left_out = self.left_out.get(&minute).copied().unwrap_or(0);
        let sent = u32::try_from(answers.len()).unwrap_or(u32::MAX);
        let round_trips_ns: Vec<u64> = answers.iter().flatten().map(|time| nanos(*time)).collect();
        let lost = sent - u32::try_from(round_trips_ns.len()).unwrap_or(sent);
        (sent >= LEAST).then(|| PulseMinute {
            minute: WallTime::from_millis(minute * MINUTE_MS),
            sent,
            lost,
            // So little is left that it is not the minute.
            loaded: left_out > sent,
            round_trips_ns,
        })
    }
}

/// Its end is past, and the wait for late answers; or the clock was set back before it.
const fn is_over(number: i64, length_ms: i64, now: WallTime) -> bool {
    now.millis() >= (number + 1) * length_ms + WAIT_MS || now.millis() < number * length_ms
}

const BLOCK_MS: i64 = 10_000;
const MINUTE_MS: i64 = 60_000;

/// Answers that take longer are none.
const WAIT_MS: i64 = 3_000;

/// Fewest pulses that stand for a minute, as after a start within it.
const LEAST: u32 = 10;

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(second: i64) -> WallTime {
        WallTime::from_millis(second * 1000)
    }

    /// A pulse a second from `from` on, of which `answer` says the round trip in ms.
    fn run(
        collector: &mut Collector,
        seconds: std::ops::Range<i64>,
        answer: impl Fn(i64) -> Option<u64>,
    ) -> Vec<Closed> {
        let mut closed = Vec::new();
        for second in seconds {
            let number = u32::try_from(second).unwrap();
            collector.sent(number, at(second), false);
            if let Some(ms) = answer(second) {
                collector.answered(number, Duration::from_millis(ms));
            }
            closed.extend(collector.close(at(second)));
        }
        closed
    }

    #[test]
    fn blocks_and_minutes_close_when_late_answers_are_in() {
        let mut collector = Collector::default();
        let closed = run(&mut collector, 600..724, |second| (second != 615).then_some(20));
        let blocks: Vec<_> = closed
            .iter()
            .filter_map(|closed| match closed {
                Closed::Block { at, block, silent } => Some((at.millis() / 1000, block.lost, *silent)),
                Closed::Minute(_) => None,
            })
            .collect();
        assert_eq!(blocks.len(), 12);
        assert_eq!(blocks[1], (620, 1, Duration::ZERO), "answers of later pulses are in");
        let minutes: Vec<_> = closed
            .iter()
            .filter_map(|closed| match closed {
                Closed::Minute(minute) => Some((minute.minute, minute.sent, minute.lost, minute.round_trips_ns.len())),
                Closed::Block { .. } => None,
            })
            .collect();
        assert_eq!(minutes, [(at(600), 60, 1, 59), (at(660), 60, 0, 60)]);
    }

    #[test]
    fn silence_is_counted_and_a_short_rest_of_a_minute_is_none() {
        let mut collector = Collector::default();
        let closed = run(&mut collector, 655..724, |second| (second < 665).then_some(20));
        let silent: Vec<u64> = closed
            .iter()
            .filter_map(|closed| match closed {
                Closed::Block { silent, .. } => Some(silent.as_secs()),
                Closed::Minute(_) => None,
            })
            .collect();
        assert_eq!(silent, [0, 6, 16, 26, 36, 46, 56]);
        let minutes = closed.iter().filter(|closed| matches!(closed, Closed::Minute(_))).count();
        assert_eq!(minutes, 1, "five pulses are no minute");
    }

    #[test]
    fn pulses_beside_our_jobs_do_not_count() {
        let mut collector = Collector::default();
        for second in 600_u32..664 {
            collector.sent(second, at(second.into()), second < 645);
            collector.answered(second, Duration::from_millis(9));
        }
        let closed = collector.close(at(664));
        let minute = closed.iter().find_map(|closed| match closed {
            Closed::Minute(minute) => Some(minute),
            Closed::Block { .. } => None,
        });
        assert!(matches!(minute, Some(PulseMinute { sent: 15, loaded: true, .. })), "{closed:?}");
    }

    #[test]
    fn a_clock_that_is_set_back_loses_no_more_than_its_minute() {
        let mut collector = Collector::default();
        run(&mut collector, 600..630, |_| Some(20));
        let closed = run(&mut collector, 100..190, |_| Some(20));
        let minutes: Vec<i64> = closed
            .iter()
            .filter_map(|closed| match closed {
                Closed::Minute(minute) => Some(minute.minute.millis() / 1000),
                Closed::Block { .. } => None,
            })
            .collect();
        assert_eq!(minutes, [600, 60, 120]);
    }
}
