//! BBR, first version (`[BBR16]`; draft-cardwell-iccrg-bbr-congestion-control-00): a model of the
//! path, its bottleneck's rate and its empty round trip, paces the sender; losses do not.
//!
//! Structure and constants are recalled from the paper, the draft and Linux's `tcp_bbr.c`, whose
//! text was not at hand: gains of 2.885, the largest delivery rate of ten round trips, the smallest
//! round trip of ten seconds, eight phases of 1.25, 0.75 and six of 1, a full pipe after three
//! rounds without a quarter more, 200 ms at four segments, one per cent of margin below the model's
//! rate, and room for three of the bursts that a host makes of its segments. Not modelled:
//! detection of token-bucket policers (`lt_bw`), the allowance for aggregated acknowledgements,
//! restart after idling.

use std::collections::VecDeque;

use narrows_probe::probes::TcpState;

use super::congestion::{AckNews, CongestionControl, Window};
use crate::rng::scatter;

/// What the flow is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    /// Doubling until the rate grows no more.
    Startup,
    /// Letting the queue of start-up run empty.
    Drain,
    /// Around the model's rate.
    ProbeRate,
    /// Letting every queue run empty, to see the round trip.
    ProbeRtt,
}

/// The model and its state.
#[derive(Debug)]
pub(super) struct Bbr {
    mode: Mode,
    /// Segments per second.
    rates: Largest,
    pacing: f64,
    /// Smallest round trip and when it was seen, nanoseconds.
    rtt: u64,
    rtt_at: u64,
    /// Round trips by count of deliveries.
    rounds: u64,
    round_end: u64,
    /// The full pipe: best rate, rounds without a better one.
    full_rate: f64,
    full_rounds: u32,
    /// Place in the cycle of gains, and since when.
    phase: usize,
    phase_began: u64,
    /// When the look at the empty round trip may end, once the window has been reached; whether a
    /// round has passed in it.
    probed_at: Option<u64>,
    probed_round: bool,
    /// The window before a recovery or a look at the empty round trip.
    before: u32,
    /// In the first round of a recovery, what has left the path is replaced.
    conserving: bool,
    state: TcpState,
}

/// 2 / ln 2: doubles the delivery rate each round.
const HIGH_GAIN: f64 = 2.885;
const CYCLE: [f64; 8] = [1.25, 0.75, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0];
const WINDOW_GAIN: f64 = 2.0;
/// Round trips that the largest rate is remembered.
const RATE_ROUNDS: u64 = 10;
const RTT_NS: u64 = 10_000_000_000;
const FULL_GROWTH: f64 = 1.25;
const FULL_ROUNDS: u32 = 3;
const LEAST_WINDOW: u32 = 4;
const PROBE_RTT_NS: u64 = 200_000_000;
/// Pacing stays this share below the model's rate (Linux `bbr_pacing_margin_percent`).
const MARGIN: f64 = 0.99;
const INITIAL_WINDOW: f64 = 10.0;
/// A host hands over a millisecond of its rate at a time, from two segments (one below 1.2 Mbit/s)
/// to 64 kB (Linux `bbr_tso_segs_goal`); the window has room for three such bursts.
const BURSTS: f64 = 3.0;
const BURST_PER_SECOND: f64 = 1024.0;
const MOST_BURST: f64 = 45.0;
const SLOW_SEGMENTS_PER_SECOND: f64 = 100.0;

impl Bbr {
    /// After a handshake that took so long.
    pub(super) fn new(now: u64, handshake: u64) -> Self {
        let rtt = handshake.max(1);
        Self {
            mode: Mode::Startup,
            rates: Largest::default(),
            pacing: HIGH_GAIN * INITIAL_WINDOW / seconds(rtt),
            rtt,
            rtt_at: now,
            rounds: 0,
            round_end: 0,
            full_rate: 0.0,
            full_rounds: 0,
            phase: 0,
            phase_began: now,
            probed_at: None,
            probed_round: false,
            before: 0,
            conserving: false,
            state: TcpState::Open,
        }
    }

    fn is_full(&self) -> bool {
        self.full_rounds >= FULL_ROUNDS
    }

    fn pacing_gain(&self) -> f64 {
        match self.mode {
            Mode::Startup => HIGH_GAIN,
            Mode::Drain => 1.0 / HIGH_GAIN,
            Mode::ProbeRate => CYCLE[self.phase],
            Mode::ProbeRtt => 1.0,
        }
    }

    fn window_gain(&self) -> f64 {
        match self.mode {
            Mode::Startup | Mode::Drain => HIGH_GAIN,
            Mode::ProbeRate => WINDOW_GAIN,
            Mode::ProbeRtt => 1.0,
        }
    }

    /// Segments in flight that the model and a gain want.
    fn wanted(&self, gain: f64) -> u32 {
        let product = (self.rates.value() * seconds(self.rtt) * gain).ceil();
        let least = if self.pacing < SLOW_SEGMENTS_PER_SECOND { 1.0 } else { 2.0 };
        let burst = (self.pacing / BURST_PER_SECOND).floor().clamp(least, MOST_BURST);
        let probing = self.mode == Mode::ProbeRate && self.phase == 0;
        let even = whole(product + BURSTS * burst).next_multiple_of(2);
        even.saturating_add(if probing { 2 } else { 0 })
    }

    /// Counts round trips; true at the begin of one.
    fn count_round(&mut self, reported: &AckNews) -> bool {
        if reported.delivered_before < self.round_end {
            return false;
        }
        self.round_end = reported.delivered;
        self.rounds += 1;
        self.conserving = false;
        true
    }

    fn note_rate(&mut self, reported: &AckNews) {
        let Some(sample) = &reported.sample else { return };
        let rate = sample.segments as f64 / seconds(sample.interval);
        if !sample.app_limited || rate >= self.rates.value() {
            self.rates.note(self.rounds, rate);
        }
    }

    fn turn_cycle(&mut self, reported: &AckNews) {
        if self.mode != Mode::ProbeRate {
            return;
        }
        let passed = reported.now.saturating_sub(self.phase_began) > self.rtt;
        let gain = CYCLE[self.phase];
        let over = if gain > 1.0 {
            passed && (reported.lost > 0 || reported.in_flight_before >= self.wanted(gain))
        } else if gain < 1.0 {
            passed || reported.in_flight_before <= self.wanted(1.0)
        } else {
            passed
        };
        if over {
            self.phase = (self.phase + 1) % CYCLE.len();
            self.phase_began = reported.now;
        }
    }

    fn check_full(&mut self, reported: &AckNews, begins: bool) {
        if self.is_full() || !begins || reported.sample.is_some_and(|sample| sample.app_limited) {
            return;
        }
        if self.rates.value() >= FULL_GROWTH * self.full_rate {
            (self.full_rate, self.full_rounds) = (self.rates.value(), 0);
        } else {
            self.full_rounds += 1;
        }
    }

    fn check_drain(&mut self, reported: &AckNews, window: &mut Window) {
        if self.mode == Mode::Startup && self.is_full() {
            self.mode = Mode::Drain;
            window.threshold = Some(self.wanted(1.0));
        }
        if self.mode == Mode::Drain && reported.in_flight <= self.wanted(1.0) {
            self.cruise(reported.now);
        }
    }

    /// Begins the cycle at any phase but that of 0.75; the low digits of the time are the dice.
    fn cruise(&mut self, now: u64) {
        let place = scatter(now) % (CYCLE.len() as u64 - 1);
        self.mode = Mode::ProbeRate;
        self.phase = match usize::try_from(place).unwrap_or(0) {
            0 => 0,
            later => later + 1,
        };
        self.phase_began = now;
    }

    /// Looks for the empty round trip; true while what is sent says nothing of the path's rate.
    fn watch_rtt(&mut self, reported: &AckNews, begins: bool, window: &mut Window) -> bool {
        let expired = reported.now > self.rtt_at.saturating_add(RTT_NS);
        if let Some(rtt) = reported.rtt.filter(|rtt| expired || *rtt <= self.rtt) {
            (self.rtt, self.rtt_at) = (rtt.max(1), reported.now);
        }
        if expired && self.mode != Mode::ProbeRtt {
            self.remember(window);
            self.mode = Mode::ProbeRtt;
            self.probed_at = None;
        }
        if self.mode != Mode::ProbeRtt {
            return false;
        }
        match self.probed_at {
            None if reported.in_flight <= LEAST_WINDOW => {
                self.probed_at = Some(reported.now.saturating_add(PROBE_RTT_NS));
                self.probed_round = false;
                self.round_end = reported.delivered;
            }
            None => {}
            Some(until) => {
                self.probed_round |= begins;
                if self.probed_round && reported.now > until {
                    self.rtt_at = reported.now;
                    window.segments = window.segments.max(self.before);
                    if self.is_full() {
                        self.cruise(reported.now);
                    } else {
                        self.mode = Mode::Startup;
                    }
                }
            }
        }
        true
    }

    fn remember(&mut self, window: &Window) {
        let calm = !in_recovery(self.state) && self.mode != Mode::ProbeRtt;
        self.before = if calm { window.segments } else { self.before.max(window.segments) };
    }

    fn set_pacing(&mut self) {
        let rate = self.rates.value() * self.pacing_gain() * MARGIN;
        if self.is_full() || rate > self.pacing {
            self.pacing = rate;
        }
    }

    fn set_window(&mut self, reported: &AckNews, window: &mut Window) {
        let (was, is) = (in_recovery(self.state), in_recovery(reported.state));
        window.segments = window.segments.saturating_sub(reported.lost).max(1);
        if reported.state == TcpState::Recovery && self.state != TcpState::Recovery {
            self.conserving = true;
            self.round_end = reported.delivered;
            window.segments = reported.in_flight + reported.acked;
        } else if was && !is {
            window.segments = window.segments.max(self.before);
            self.conserving = false;
        }
        self.state = reported.state;
        if self.conserving {
            window.segments = window.segments.max(reported.in_flight + reported.acked);
        } else {
            let target = self.wanted(self.window_gain());
            if self.is_full() {
                window.segments = window.segments.saturating_add(reported.acked).min(target);
            } else if window.segments < target || (reported.delivered as f64) < INITIAL_WINDOW {
                window.segments = window.segments.saturating_add(reported.acked);
            }
        }
        window.segments = window.segments.max(LEAST_WINDOW);
        if self.mode == Mode::ProbeRtt {
            window.segments = window.segments.min(LEAST_WINDOW);
        }
    }
}

impl CongestionControl for Bbr {
    fn on_ack(&mut self, _now: u64, _acked: u32, _window: &mut Window) {}

    fn on_loss(&mut self, window: &Window) -> Option<u32> {
        self.remember(window);
        window.threshold
    }

    fn on_timeout(&mut self) {
        // All that was in flight is taken for lost: what a full pipe is must be learnt anew.
        self.state = TcpState::Loss;
        self.full_rate = 0.0;
        self.conserving = false;
    }

    fn steers(&self) -> bool {
        true
    }

    fn steer(&mut self, reported: &AckNews, window: &mut Window) -> bool {
        let begins = reported.acked > 0 && self.count_round(reported);
        self.note_rate(reported);
        self.turn_cycle(reported);
        self.check_full(reported, begins);
        self.check_drain(reported, window);
        let limited = self.watch_rtt(reported, begins, window);
        self.set_pacing();
        if reported.acked > 0 {
            self.set_window(reported, window);
        }
        limited
    }

    fn segments_per_second(&self) -> Option<f64> {
        Some(self.pacing)
    }

    fn gain_256(&self) -> Option<u32> {
        let extra = u32::from(self.mode == Mode::Startup);
        Some(whole(self.pacing_gain() * 256.0) + extra)
    }
}

fn in_recovery(state: TcpState) -> bool {
    matches!(state, TcpState::Recovery | TcpState::Loss)
}

fn seconds(ns: u64) -> f64 {
    ns.max(1) as f64 * 1e-9
}

/// The largest of the newest rounds.
#[derive(Debug, Default)]
struct Largest {
    /// Falling values in rising rounds: the first is the largest.
    kept: VecDeque<(u64, f64)>,
}

impl Largest {
    fn note(&mut self, round: u64, value: f64) {
        while self.kept.back().is_some_and(|(_, last)| *last <= value) {
            self.kept.pop_back();
        }
        self.kept.push_back((round, value));
        while self.kept.front().is_some_and(|(first, _)| first + RATE_ROUNDS < round) {
            self.kept.pop_front();
        }
    }

    fn value(&self) -> f64 {
        self.kept.front().map_or(0.0, |(_, value)| *value)
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "float casts saturate, which is what is wanted here"
)]
fn whole(value: f64) -> u32 {
    value.min(1e9) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_of_ten_rounds() {
        let mut largest = Largest::default();
        for (round, value, expected) in [
            (1, 5.0, 5.0),
            (2, 9.0, 9.0),
            (3, 7.0, 9.0),
            (12, 1.0, 9.0),
            (13, 2.0, 7.0),
            (14, 1.0, 2.0),
            (25, 0.5, 0.5),
        ] {
            largest.note(round, value);
            assert!((largest.value() - expected).abs() < 1e-12, "{round}");
        }
    }

    /// 1000 segments per second over 100 ms are 100 segments, 200 with the window's gain, and room
    /// for three bursts of two.
    #[test]
    fn windows_of_the_model() {
        let mut bbr = Bbr::new(0, 100_000_000);
        assert!((bbr.pacing - 288.5).abs() < 1e-9);
        bbr.rates.note(0, 1000.0);
        assert_eq!((bbr.wanted(1.0), bbr.wanted(WINDOW_GAIN)), (106, 206));
        bbr.cruise(0);
        bbr.phase = 0;
        assert_eq!(bbr.wanted(1.25), 134, "two more while it probes");
        bbr.pacing = 10_240.0;
        bbr.phase = 2;
        assert_eq!(bbr.wanted(1.0), 130, "three times ten");
    }

    /// Any phase but the second.
    #[test]
    fn where_the_cycle_begins() {
        let mut bbr = Bbr::new(0, 1);
        let mut seen = [0; 8];
        for now in 0..1000 {
            bbr.cruise(now);
            seen[bbr.phase] += 1;
        }
        assert_eq!(seen[1], 0);
        assert!(seen.iter().filter(|count| **count > 100).count() == 7, "{seen:?}");
    }
}
