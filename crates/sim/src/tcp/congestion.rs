//! The congestion window, and what a congestion control does with it.

use std::fmt::Debug;

use narrows_probe::probes::{Congestion, TcpState};

use super::bbr::Bbr;
use super::cubic::Cubic;
use super::rate::RateSample;
use super::reno::Reno;

/// The congestion window, in segments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Window {
    pub(super) segments: u32,
    /// Slow-start threshold; `None` until it is first set.
    pub(super) threshold: Option<u32>,
    /// Acknowledgements counted towards the next segment.
    credit: u32,
}

/// RFC 6928.
const INITIAL_WINDOW: u32 = 10;

impl Window {
    pub(super) fn initial() -> Self {
        Self { segments: INITIAL_WINDOW, threshold: None, credit: 0 }
    }

    /// Halves for each timeout of a pause, but not below the initial window; what it was stays
    /// the aim of slow start, less a quarter.
    pub(super) fn restart(&mut self, timeouts: u64) {
        let initial = INITIAL_WINDOW.min(self.segments);
        self.threshold = self.threshold.map(|threshold| threshold.max(self.segments / 2 + self.segments / 4));
        let halvings = u32::try_from(timeouts).unwrap_or(u32::MAX);
        self.segments = self.segments.checked_shr(halvings).unwrap_or(0).max(initial);
    }

    pub(super) fn in_slow_start(&self) -> bool {
        self.threshold.is_none_or(|threshold| self.segments < threshold)
    }

    /// One segment per segment acknowledged, up to the threshold; returns the acknowledgements left
    /// over.
    pub(super) fn slow_start(&mut self, acked: u32) -> u32 {
        let room = self.threshold.map_or(acked, |threshold| threshold.saturating_sub(self.segments));
        let used = acked.min(room);
        self.segments = self.segments.saturating_add(used);
        acked - used
    }

    /// One segment per `acks` acknowledgements (Linux `tcp_cong_avoid_ai`).
    pub(super) fn creep(&mut self, acks: u32, acked: u32) {
        let acks = acks.max(1);
        if self.credit >= acks {
            self.credit = 0;
            self.segments = self.segments.saturating_add(1);
        }
        self.credit += acked;
        let grown = self.credit / acks;
        self.credit -= grown * acks;
        self.segments = self.segments.saturating_add(grown);
    }
}

/// A round-trip time and where it was seen.
#[derive(Debug, Clone, Copy)]
pub(super) struct RttNews {
    pub(super) now: u64,
    /// The least ambiguous sample: of the segment sent last.
    pub(super) rtt: u64,
    /// The first unacknowledged segment.
    pub(super) first: u64,
    /// The next new segment.
    pub(super) next: u64,
    /// Departures are paced.
    pub(super) paced: bool,
}

/// What the loss recovery asks of a congestion control.
pub(super) trait CongestionControl: Debug {
    /// A round-trip time was measured.
    fn on_rtt(&mut self, _news: &RttNews, _window: &mut Window) {}

    /// Segments were delivered while the window was the limit.
    fn on_ack(&mut self, now: u64, acked: u32, window: &mut Window);

    /// Segments were lost, by duplicate acknowledgements or timeout: the new slow-start threshold,
    /// if there is one.
    fn on_loss(&mut self, window: &Window) -> Option<u32>;

    /// The retransmission timer ran out.
    fn on_timeout(&mut self) {}

    /// Nothing was sent for this time.
    fn on_idle(&mut self, _idle: u64) {}

    /// It sets the window itself, in recoveries too.
    fn steers(&self) -> bool {
        false
    }

    /// An acknowledgement has been worked off, for those that steer; true while what is sent says
    /// nothing of the path's rate.
    fn steer(&mut self, _reported: &AckNews, _window: &mut Window) -> bool {
        false
    }

    /// The rate to which it paces departures.
    fn segments_per_second(&self) -> Option<f64> {
        None
    }

    /// Its pacing gain in 1/256, as Linux tells it of BBR.
    fn gain_256(&self) -> Option<u32> {
        None
    }
}

/// All that one acknowledgement told.
#[derive(Debug, Clone, Copy)]
pub(super) struct AckNews {
    pub(super) now: u64,
    /// Segments delivered since the beginning: by now, and when the newest of those left that this
    /// acknowledgement told of.
    pub(super) delivered: u64,
    pub(super) delivered_before: u64,
    pub(super) sample: Option<RateSample>,
    /// Round-trip time of the segment sent last, where it is unambiguous.
    pub(super) rtt: Option<u64>,
    /// In flight after and before it.
    pub(super) in_flight: u32,
    pub(super) in_flight_before: u32,
    /// Segments newly known to have arrived, and newly believed lost.
    pub(super) acked: u32,
    pub(super) lost: u32,
    pub(super) state: TcpState,
}

/// Those that the simulator has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Control {
    /// RFC 5681.
    Reno,
    /// RFC 9438, with HyStart.
    Cubic,
    /// BBR's first version.
    Bbr,
}

impl Control {
    /// The one asked for; what the simulator does not have is answered with CUBIC, Linux's default.
    pub(crate) fn granted(asked: Option<&Congestion>) -> Self {
        match asked {
            Some(Congestion::Reno) => Self::Reno,
            Some(Congestion::Bbr) => Self::Bbr,
            Some(Congestion::Cubic | Congestion::Other(_)) | None => Self::Cubic,
        }
    }

    /// As reports name it.
    pub(crate) fn named(self) -> Congestion {
        match self {
            Self::Reno => Congestion::Reno,
            Self::Cubic => Congestion::Cubic,
            Self::Bbr => Congestion::Bbr,
        }
    }

    /// At `now`, after a handshake that took so long.
    pub(super) fn begin(self, now: u64, handshake: u64) -> Box<dyn CongestionControl> {
        match self {
            Self::Reno => Box::new(Reno),
            Self::Cubic => Box::new(Cubic::new(now)),
            Self::Bbr => Box::new(Bbr::new(now, handshake)),
        }
    }
}
