//! When has the ramp ended? One poll in, one answer out. Pure.

use std::time::Duration;

use narrows_probe::probes::{Congestion, TcpSample, TcpState};
use narrows_train::bulk::series;

/// The rule by which the ramp's end is recognised.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rule {
    /// `[QuickMode03]`: the window moved less than in slow start since the poll before.
    Seed003,
    /// Ours: the same relative to the window, twice; or a plateau of the rate; or what BBR says of
    /// itself.
    Composite,
}

/// How the ramp ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RampEnd {
    /// The congestion window stands still.
    SteadyWindow,
    /// Slow start was left without a loss (HyStart, or a cached threshold).
    WithoutLoss,
    /// Slow start ended with a loss.
    Loss,
    /// The peer's window holds the rate.
    PeerWindow,
    /// The rate grows no more.
    Plateau,
    /// BBR has filled the pipe.
    PipeFull,
}

impl RampEnd {
    /// What evidence calls it.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::SteadyWindow => "steady window",
            Self::WithoutLoss => "slow start left without loss",
            Self::Loss => "loss",
            Self::PeerWindow => "peer window",
            Self::Plateau => "plateau",
            Self::PipeFull => "pipe full",
        }
    }
}

/// State between polls.
#[derive(Debug, Clone)]
pub(super) struct Ramp {
    rule: Rule,
    first: Option<TcpSample>,
    last: Option<TcpSample>,
    /// Successive polls at which the window stood still.
    still: u32,
    /// Goodput of each poll, bit/s.
    rates: Vec<f64>,
}

/// Window movements: absolute of `[QuickMode03]`, relative ours (HyStart++'s conservative slow
/// start moves 27 % and more, CUBIC's concave phase up to some per cent).
const FEW_SEGMENTS: u32 = 4;
const STILL_SEGMENTS: u32 = 3;
const STILL_SHARE: f64 = 0.10;
const STILL_POLLS: u32 = 2;
/// Round-trip times further apart than this make two windows incomparable; `[QuickMode03]` checks
/// it, the number is ours.
const RTT_CHANGE: f64 = 0.30;
/// No ramp ends before so many round trips and acknowledged segments (ours).
const FEWEST_RTTS: u32 = 6;
const FEWEST_SEGMENTS: u64 = 10;
/// BBR's own rule on any rate: growth below this factor for three rounds is a full pipe.
const PLATEAU_GROWTH: f64 = 1.25;
const PLATEAU_POLLS: usize = 3;
/// BBR's gains in 1/256: start-up 739 (709 in v3), drain 88, else 192 to 320.
const BBR_STARTUP: u32 = 600;
const BBR_DRAIN: u32 = 128;

impl Ramp {
    pub(super) fn new(rule: Rule) -> Self {
        Self { rule, first: None, last: None, still: 0, rates: Vec::new() }
    }

    /// How long to wait for the next poll: two round trips, within what timers and timeout allow.
    pub(super) fn poll_every(&self, rtt: Duration) -> Duration {
        let rtt = self.last.map_or(rtt, |sample| sample.rtt);
        match self.rule {
            Rule::Seed003 if rtt.is_zero() => Duration::from_millis(20),
            Rule::Seed003 => (2 * rtt).max(Duration::from_millis(2)),
            Rule::Composite => (2 * rtt).max(Duration::from_millis(50)),
        }
    }

    /// The threshold that slow start began with, if a cache of the kernel had set one.
    pub(super) fn threshold_at_start(&self) -> Option<u32> {
        self.first.and_then(|sample| sample.ssthresh_segments)
    }

    /// Whether slow start is still on as far as the kernel knows, with a window that has only
    /// grown.
    pub(super) fn still_growing(&self) -> bool {
        self.last.is_some_and(|sample| sample.ssthresh_segments.is_none())
    }

    /// The connection's state before the first poll.
    pub(super) fn begin(&mut self, sample: &TcpSample) {
        if self.first.is_none() {
            self.first = Some(*sample);
        }
    }

    /// Takes in the sample at a poll.
    pub(super) fn poll(&mut self, sample: &TcpSample, congestion: &Congestion) -> Option<RampEnd> {
        let end = match self.rule {
            Rule::Seed003 => self.seed_003(sample),
            Rule::Composite => self.composite(sample, congestion),
        };
        self.last = Some(*sample);
        end
    }

    fn seed_003(&self, sample: &TcpSample) -> Option<RampEnd> {
        let last = self.last.as_ref()?;
        if sample.rtt.is_zero() || rtt_changed(last, sample) {
            return None;
        }
        let moved = sample.cwnd_segments.abs_diff(last.cwnd_segments);
        let still = (last.cwnd_segments >= FEW_SEGMENTS && moved < STILL_SEGMENTS)
            || (last.cwnd_segments < FEW_SEGMENTS && moved == 0);
        still.then_some(RampEnd::SteadyWindow)
    }

    fn composite(&mut self, sample: &TcpSample, congestion: &Congestion) -> Option<RampEnd> {
        let first = *self.first.get_or_insert(*sample);
        let last = self.last.unwrap_or(first);
        let seconds = sample.at.since(last.at).as_secs_f64();
        if seconds > 0.0 {
            let octets = sample.acked_octets.saturating_sub(last.acked_octets);
            self.rates.push(octets as f64 * 8.0 / seconds);
        }
        let calm = sample.state == TcpState::Open && sample.retransmitted_segments == last.retransmitted_segments;
        let moved = f64::from(sample.cwnd_segments.abs_diff(last.cwnd_segments));
        let allowed = f64::from(STILL_SEGMENTS).max(STILL_SHARE * f64::from(last.cwnd_segments));
        let comparable = self.last.is_some() && !rtt_changed(&last, sample);
        self.still = if calm && comparable && moved < allowed { self.still + 1 } else { 0 };
        let began = sample.at.since(first.at) >= FEWEST_RTTS * sample.rtt
            && sample.acked_octets >= FEWEST_SEGMENTS * u64::from(sample.mss_octets);
        if !began || matches!(sample.state, TcpState::Recovery | TcpState::Loss) || window_moves(&last, sample) {
            return None;
        }
        if let (Congestion::Bbr, Some(gain)) = (congestion, sample.bbr_pacing_gain) {
            return (gain > BBR_DRAIN && gain < BBR_STARTUP).then_some(RampEnd::PipeFull);
        }
        let by_window = *congestion != Congestion::Bbr && self.still >= STILL_POLLS;
        if !by_window && !self.plateau() {
            return None;
        }
        Some(how(sample, by_window))
    }

    /// The last three polls brought no rate a quarter above the best before.
    fn plateau(&self) -> bool {
        let Some(split) = self.rates.len().checked_sub(PLATEAU_POLLS).filter(|split| *split > 0) else {
            return false;
        };
        let best = |rates: &[f64]| rates.iter().copied().fold(0.0, f64::max);
        best(&self.rates[split..]) < PLATEAU_GROWTH * best(&self.rates[..split])
    }
}

fn how(sample: &TcpSample, by_window: bool) -> RampEnd {
    let held = series::peer_window_used(sample).is_some_and(|share| share >= series::WINDOW_FULL);
    match sample.ssthresh_segments {
        Some(_) if sample.retransmitted_segments > 0 => RampEnd::Loss,
        Some(_) => RampEnd::WithoutLoss,
        None if held => RampEnd::PeerWindow,
        None if by_window => RampEnd::SteadyWindow,
        None => RampEnd::Plateau,
    }
}

fn rtt_changed(last: &TcpSample, sample: &TcpSample) -> bool {
    let (old, new) = (last.rtt.as_secs_f64(), sample.rtt.as_secs_f64());
    (new - old).abs() > RTT_CHANGE * old
}

/// The peer's window is the limit and still moves: receive-side autotuning lags behind.
fn window_moves(last: &TcpSample, sample: &TcpSample) -> bool {
    let (Some(old), Some(new)) = (last.peer_window_octets, sample.peer_window_octets) else {
        return false;
    };
    let in_flight = f64::from(sample.in_flight_segments) * f64::from(sample.mss_octets);
    let held = in_flight >= 0.8 * f64::from(old);
    held && old.abs_diff(new) > old / 10
}

#[cfg(test)]
mod tests {
    use narrows_units::Stamp;

    use super::*;

    pub(super) fn sample(ms: i64, cwnd: u32) -> TcpSample {
        TcpSample {
            at: Stamp::from_nanos(ms * 1_000_000),
            state: TcpState::Open,
            rtt: Duration::from_millis(20),
            rtt_var: Duration::ZERO,
            min_rtt: None,
            mss_octets: 1448,
            cwnd_segments: cwnd,
            ssthresh_segments: None,
            in_flight_segments: cwnd,
            acked_octets: 0,
            sent_octets: None,
            retransmitted_octets: None,
            retransmitted_segments: 0,
            timeouts: None,
            delivery_rate: None,
            pacing_rate: None,
            peer_window_octets: None,
            unsent_octets: None,
            busy: None,
            limited_by_receive_window: None,
            limited_by_send_buffer: None,
            bbr_pacing_gain: None,
            marks: narrows_probe::probes::TcpMarks::default(),
        }
    }

    /// Polls every 40 ms with these windows; the poll at which the seed's rule ends, counted from
    /// zero.
    fn seed(windows: &[u32]) -> Option<usize> {
        let mut ramp = Ramp::new(Rule::Seed003);
        (0..).zip(windows).find_map(|(k, &cwnd)| {
            ramp.poll(&sample(40 * k, cwnd), &Congestion::Reno)?;
            usize::try_from(k).ok()
        })
    }

    #[test]
    fn the_rule_of_quick_iperf() {
        // Doubling twice per poll, then at most two segments per two round trips.
        assert_eq!(seed(&[2, 8, 32, 128, 100, 102]), Some(5));
        assert_eq!(seed(&[2, 8, 32, 128, 131, 134]), None);
        // Four segments and more: fewer than three of movement; below: none at all.
        assert_eq!(seed(&[4, 6]), Some(1));
        assert_eq!(seed(&[4, 7]), None);
        assert_eq!(seed(&[3, 4, 4]), Some(2));
        assert_eq!(seed(&[3, 3]), Some(1));
        assert_eq!(seed(&[2]), None);
    }

    #[test]
    fn windows_at_different_round_trips_do_not_compare() {
        let mut ramp = Ramp::new(Rule::Seed003);
        ramp.poll(&sample(0, 100), &Congestion::Reno);
        let mut slower = sample(40, 100);
        slower.rtt = Duration::from_millis(27);
        assert_eq!(ramp.poll(&slower, &Congestion::Reno), None);
        slower.at = Stamp::from_nanos(90_000_000);
        assert_eq!(ramp.poll(&slower, &Congestion::Reno), Some(RampEnd::SteadyWindow));
    }

    #[test]
    fn the_seed_polls_every_two_round_trips() {
        let ramp = Ramp::new(Rule::Seed003);
        assert_eq!(ramp.poll_every(Duration::ZERO), Duration::from_millis(20));
        assert_eq!(ramp.poll_every(Duration::from_millis(140)), Duration::from_millis(280));
        assert_eq!(ramp.poll_every(Duration::from_micros(50)), Duration::from_millis(2));
    }

    /// Feeds `(cwnd, acked octets)` every 50 ms.
    fn composite(polls: &[(u32, u64)], congestion: &Congestion, gain: Option<u32>) -> Option<usize> {
        let mut ramp = Ramp::new(Rule::Composite);
        ramp.begin(&sample(0, 10));
        (1..).zip(polls).find_map(|(k, &(cwnd, acked_octets))| {
            let poll = TcpSample { acked_octets, bbr_pacing_gain: gain, ..sample(50 * k, cwnd) };
            ramp.poll(&poll, congestion)?;
            usize::try_from(k).ok()
        })
    }

    #[test]
    fn the_window_must_stand_still_twice() {
        let polls = [(40, 80_000), (160, 400_000), (620, 1_700_000), (640, 4_000_000), (660, 9_000_000)];
        assert_eq!(composite(&polls, &Congestion::Cubic, None), Some(5));
        let growing = [(40, 80_000), (160, 400_000), (620, 1_700_000), (740, 4_000_000), (900, 9_000_000)];
        assert_eq!(composite(&growing, &Congestion::Cubic, None), None);
    }

    #[test]
    fn bbr_says_when_the_pipe_is_full_or_shows_it_by_its_rate() {
        let flat: Vec<_> = (1..12).map(|k| (500, 600_000 * k)).collect();
        assert_eq!(composite(&flat, &Congestion::Bbr, Some(739)), None);
        assert_eq!(composite(&flat, &Congestion::Bbr, Some(88)), None);
        assert_eq!(composite(&flat, &Congestion::Bbr, Some(320)), Some(3));
        assert_eq!(composite(&flat, &Congestion::Bbr, None), Some(4));
    }

    #[test]
    fn no_end_in_recovery_nor_while_autotuning_goes_on() {
        let mut ramp = Ramp::new(Rule::Composite);
        for k in 1i64..20 {
            let poll = TcpSample {
                state: TcpState::Recovery,
                acked_octets: 600_000 * k.unsigned_abs(),
                ..sample(50 * k, 100)
            };
            assert_eq!(ramp.poll(&poll, &Congestion::Cubic), None);
        }
        let mut ramp = Ramp::new(Rule::Composite);
        for k in 1i64..10 {
            let poll = TcpSample {
                acked_octets: 600_000 * k.unsigned_abs(),
                peer_window_octets: Some(144_800 << k),
                in_flight_segments: 100 << k,
                ..sample(50 * k, 100)
            };
            assert_eq!(ramp.poll(&poll, &Congestion::Cubic), None);
        }
    }
}
