//! Puts pulses together. A pulse belongs to the time at which it was sent.
//!
//! Pulses are remembered by the boot-time clock. Which minute of the wall clock they make up is
//! decided when it closes. So a step of the wall clock neither loses pulses nor counts any twice,
//! and is no silence.

use std::collections::BTreeMap;
use std::time::Duration;

use narrows_store::records::PulseMinute;
use narrows_units::{nanos, nanos_f64};
use narrows_watch::detect::PulseBlock;
use narrows_watch::{BootTime, Moment, WallTime};

/// What is complete.
#[derive(Debug, Clone, PartialEq)]
pub(in super::super) enum Closed {
    /// Ten seconds.
    Block {
        /// Their end.
        at: WallTime,
        block: PulseBlock,
        round_trips: Vec<Duration>,
        /// How long nothing has been answered by then.
        silent: Duration,
    },
    /// A minute.
    Minute(PulseMinute),
}

/// When a pulse was sent, and its round trip; `None` if it was lost.
pub(super) type One = (WallTime, Option<Duration>);

/// Pulses that were sent lately.
#[derive(Debug, Default)]
pub(in super::super) struct Collector {
    /// By number: when it was sent, and its answer.
    pulses: BTreeMap<u32, (BootTime, Option<Duration>)>,
    /// When those were sent that are left out beside jobs of ours.
    left_out: Vec<BootTime>,
    /// Blocks and minutes are closed up to here.
    blocks_until: BootTime,
    minutes_until: BootTime,
    last_answer: Option<BootTime>,
    /// Pulses that were sent by then are known to be answered or lost.
    known_until: BootTime,
}

/// Part of the wall clock: its number since 1970, and where it lies on the boot-time clock.
#[derive(Debug, Clone, Copy)]
struct Span {
    number: i64,
    from: BootTime,
    until: BootTime,
}

impl Collector {
    /// Numbers begin again; silence goes on.
    pub(super) fn restart(&mut self) {
        self.pulses.clear();
    }

    /// One was sent. Beside a job of ours it says nothing of the path, and is not counted.
    pub(in super::super) fn sent(&mut self, number: u32, at: BootTime, loaded: bool) {
        self.last_answer.get_or_insert(at);
        if loaded {
            self.left_out.push(at);
        } else {
            self.pulses.insert(number, (at, None));
        }
    }

    /// One was answered.
    pub(in super::super) fn answered(&mut self, number: u32, round_trip: Duration) {
        if let Some((at, answer)) = self.pulses.get_mut(&number) {
            *answer = Some(round_trip);
            self.last_answer = self.last_answer.max(Some(*at));
        }
    }

    /// When those were sent that no answer to has come in time, since it was asked before.
    pub(super) fn lost(&mut self, now: Moment) -> Vec<One> {
        let until = BootTime::from_millis(now.boot.millis().saturating_sub(nanos(WAIT) / 1_000_000));
        let gone =
            self.pulses.values().filter(|(at, answer)| answer.is_none() && (self.known_until..until).contains(at));
        let lost = gone.map(|(at, _)| (now.wall.before(now.boot.since(*at)), None)).collect();
        self.known_until = until.max(self.known_until);
        lost
    }

    /// What is complete at `now`: late answers are waited for.
    pub(in super::super) fn close(&mut self, now: Moment) -> Vec<Closed> {
        let mut closed = Vec::new();
        if let Some(span) = self.complete(self.blocks_until, BLOCK_MS, now) {
            closed.push(self.block_of(span));
            self.blocks_until = span.until;
        }
        if let Some(span) = self.complete(self.minutes_until, MINUTE_MS, now) {
            closed.extend(self.minute_of(span).map(Closed::Minute));
            self.minutes_until = span.until;
            let kept = self.minutes_until.min(self.blocks_until);
            self.pulses.retain(|_, (at, _)| *at >= kept);
            self.left_out.retain(|at| *at >= kept);
        }
        closed
    }

    /// The part of the wall clock in which the oldest pulse since `from` was sent, once it is over
    /// and late answers are in.
    fn complete(&self, from: BootTime, length_ms: i64, now: Moment) -> Option<Span> {
        let first = self.pulses.values().map(|(at, _)| *at).filter(|at| *at >= from).min()?;
        let wall_ms = |at: BootTime| now.wall.millis() - millis(now.boot.since(at));
        let number = wall_ms(first).div_euclid(length_ms);
        let left = (number + 1) * length_ms - wall_ms(first);
        let until = first.after(Duration::from_millis(left.unsigned_abs()));
        (now.boot >= until.after(WAIT)).then_some(Span { number, from, until })
    }

    fn within(&self, span: Span) -> Vec<Option<Duration>> {
        let inside = |(at, _): &&(BootTime, Option<Duration>)| (span.from..span.until).contains(at);
        self.pulses.values().filter(inside).map(|(_, answer)| *answer).collect()
    }

    fn block_of(&self, span: Span) -> Closed {
        let answers = self.within(span);
        let round_trips: Vec<Duration> = answers.iter().flatten().copied().collect();
        let times: Vec<f64> = round_trips.iter().map(|time| nanos_f64(*time)).collect();
        let lost = u32::try_from(answers.len() - times.len()).unwrap_or(u32::MAX);
        Closed::Block {
            at: WallTime::from_millis((span.number + 1) * BLOCK_MS),
            block: PulseBlock { round_trip_ns: narrows_stat::quantile(&times, 0.95), lost },
            round_trips,
            silent: self.last_answer.map_or(Duration::ZERO, |last| span.until.since(last)),
        }
    }

    fn minute_of(&self, span: Span) -> Option<PulseMinute> {
        let answers = self.within(span);
        let left_out = self.left_out.iter().filter(|at| (span.from..span.until).contains(at)).count();
        let round_trips_ns: Vec<u64> = answers.iter().flatten().map(|time| nanos(*time)).collect();
        let count = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        (answers.len() >= LEAST).then(|| PulseMinute {
            minute: WallTime::from_millis(span.number * MINUTE_MS),
            sent: count(answers.len()),
            lost: count(answers.len() - round_trips_ns.len()),
            // So little is left that it is not the minute.
            loaded: left_out > answers.len(),
            round_trips_ns,
        })
    }
}

fn millis(time: Duration) -> i64 {
    i64::try_from(time.as_millis()).unwrap_or(i64::MAX)
}

const BLOCK_MS: i64 = 10_000;
/// The wall clock that a block covers.
pub(in super::super) const BLOCK: Duration = Duration::from_secs(10);
const MINUTE_MS: i64 = 60_000;

/// Answers that take longer are none.
const WAIT: Duration = Duration::from_secs(3);

/// Fewest pulses that stand for a minute, as after a start within it.
const LEAST: usize = 10;

#[cfg(test)]
mod tests {
    use super::*;

    /// When the wall clock shows so many seconds, as long as nobody sets it.
    fn at(second: u64) -> Moment {
        Moment { boot: boot(second), wall: WallTime::from_millis(i64::try_from(second).unwrap() * 1000) }
    }

    const fn boot(second: u64) -> BootTime {
        BootTime::from_millis(second * 1000)
    }

    /// A pulse a second, of which `answer` says the round trip in ms; `step_s` is how far the clock
    /// was set at that time.
    fn run_with_steps(
        collector: &mut Collector,
        seconds: std::ops::Range<u64>,
        answer: impl Fn(u64) -> Option<u64>,
        step_s: impl Fn(u64) -> i64,
    ) -> Vec<Closed> {
        let mut closed = Vec::new();
        for second in seconds {
            let number = u32::try_from(second).unwrap();
            collector.sent(number, boot(second), false);
            if let Some(ms) = answer(second) {
                collector.answered(number, Duration::from_millis(ms));
            }
            let wall = WallTime::from_millis(at(second).wall.millis() + step_s(second) * 1000);
            closed.extend(collector.close(Moment { wall, ..at(second) }));
        }
        closed
    }

    fn run(
        collector: &mut Collector,
        seconds: std::ops::Range<u64>,
        answer: impl Fn(u64) -> Option<u64>,
    ) -> Vec<Closed> {
        run_with_steps(collector, seconds, answer, |_| 0)
    }

    fn minutes<'a>(closed: &'a [Closed]) -> Vec<&'a PulseMinute> {
        let minute = |closed: &'a Closed| if let Closed::Minute(minute) = closed { Some(minute) } else { None };
        closed.iter().filter_map(minute).collect()
    }

    /// End in s of the wall clock, losses, and seconds of silence.
    fn blocks(closed: &[Closed]) -> Vec<(i64, u32, u64)> {
        let block = |closed: &Closed| match closed {
            Closed::Block { at, block, silent, .. } => Some((at.millis() / 1000, block.lost, silent.as_secs())),
            Closed::Minute(_) => None,
        };
        closed.iter().filter_map(block).collect()
    }

    #[test]
    fn blocks_and_minutes_close_when_late_answers_are_in() {
        let mut collector = Collector::default();
        let closed = run(&mut collector, 600..724, |second| (second != 615).then_some(20));
        let blocks = blocks(&closed);
        assert_eq!(blocks.len(), 12);
        assert_eq!(blocks[1], (620, 1, 0), "answers of later pulses are in");
        let minutes: Vec<_> = minutes(&closed)
            .into_iter()
            .map(|minute| (minute.minute.millis() / 1000, minute.sent, minute.lost, minute.round_trips_ns.len()))
            .collect();
        assert_eq!(minutes, [(600, 60, 1, 59), (660, 60, 0, 60)]);
    }

    #[test]
    fn each_lost_pulse_is_said_once() {
        let mut collector = Collector::default();
        let mut lost = Vec::new();
        for second in 600_u32..664 {
            collector.sent(second, boot(second.into()), second == 620);
            if second % 10 != 0 {
                collector.answered(second, Duration::from_millis(9));
            }
            lost.extend(collector.lost(at(second.into())));
        }
        let seconds: Vec<_> = lost.iter().map(|(at, round_trip)| (at.millis() / 1000, *round_trip)).collect();
        // The one beside a job says nothing; the last one, of three seconds ago, may be answered
        // now.
        assert_eq!(seconds, [600, 610, 630, 640, 650].map(|second| (second, None)));
    }

    #[test]
    fn silence_is_counted_and_a_short_rest_of_a_minute_is_none() {
        let mut collector = Collector::default();
        let closed = run(&mut collector, 655..724, |second| (second < 665).then_some(20));
        let silent: Vec<u64> = blocks(&closed).into_iter().map(|(_, _, silent)| silent).collect();
        assert_eq!(silent, [0, 6, 16, 26, 36, 46, 56]);
        assert_eq!(minutes(&closed).len(), 1, "five pulses are no minute");
    }

    #[test]
    fn pulses_beside_our_jobs_do_not_count() {
        let mut collector = Collector::default();
        for second in 600_u32..664 {
            collector.sent(second, boot(second.into()), second < 645);
            collector.answered(second, Duration::from_millis(9));
        }
        let closed = collector.close(at(664));
        assert!(matches!(minutes(&closed)[..], [PulseMinute { sent: 15, loaded: true, .. }]), "{closed:?}");
    }

    /// The clock is set in the middle of a block: by an hour, and so that minutes begin elsewhere.
    #[test]
    fn a_step_of_the_clock_is_no_silence_and_counts_each_pulse_once() {
        for step_s in [3600, -3600, 3617, -29, 31_536_000] {
            let mut collector = Collector::default();
            let step = |second| if second < 754 { 0 } else { step_s };
            let closed = run_with_steps(&mut collector, 600..1264, |second| (second % 50 != 7).then_some(20), step);
            assert!(blocks(&closed).iter().all(|(_, _, silent)| *silent <= 1), "{step_s}: {closed:?}");
            let all = minutes(&closed);
            let (sent, lost): (u32, u32) = all.iter().fold((0, 0), |sum, one| (sum.0 + one.sent, sum.1 + one.lost));
            let end_s = all.last().unwrap().minute.millis() / 1000 + 60 - step_s;
            assert_eq!(i64::from(sent), end_s - 600, "{step_s}: {all:?}");
            assert_eq!(usize::try_from(lost), Ok((600..end_s).filter(|second| second % 50 == 7).count()));
            assert!((1200..=1261).contains(&end_s), "{step_s}: {end_s}");
        }
    }
}
