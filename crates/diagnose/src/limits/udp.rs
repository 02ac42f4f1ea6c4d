//! Which limit explains a UDP stream's rate. Pure.

use super::LimitingFactor;

/// A rate this close to the one asked for is set by it.
const ASKED: f64 = 0.95;
/// Share of the packets lost from which they were the limit.
const LOST: f64 = 0.01;

/// What is known of streams of datagrams over an interval, all streams together.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct UdpStreamState {
    /// What was sent, bit/s of payload.
    pub sent_bps: f64,
    /// What was asked for; `None`: as much as goes.
    pub requested_bps: Option<f64>,
    /// Packets that this host's own queue refused.
    pub refused: u64,
    /// Packets sent.
    pub packets: u64,
    /// Of these, lost anywhere; zero while nobody has counted.
    pub lost: u64,
    /// Of these, dropped inside the receiving host.
    pub lost_in_host: u64,
    /// Share of the interval for which the busiest sending thread was on a processor.
    pub sender_cpu: f32,
}

/// What held it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UdpLimits {
    /// The rate that was asked for.
    Request,
    /// The path lost some.
    Path,
    /// The interface's queue refused some.
    InterfaceQueue,
    /// The receiving host dropped some.
    ReceivingHost,
    /// The sending host sent no more.
    SendingHost,
}

impl UdpLimits {
    /// What evidence calls it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Request => "asked rate",
            Self::Path => "path",
            Self::InterfaceQueue => "interface queue",
            Self::ReceivingHost => LimitingFactor::ReceivingHost.name(),
            Self::SendingHost => LimitingFactor::SendingHost.name(),
        }
    }
}

/// What was lost inside the receiving host is not the path's; what the sending host did not send
/// neither of both could carry.
pub fn udp_limits(seen: &UdpStreamState) -> UdpLimits {
    let share = |count: u64| count as f64 / seen.packets.max(1) as f64;
    let elsewhere = seen.lost.saturating_sub(seen.lost_in_host);
    let met = seen.requested_bps.is_some_and(|asked| asked > 0.0 && seen.sent_bps >= ASKED * asked);
    if share(seen.lost_in_host) > LOST && seen.lost_in_host >= elsewhere {
        UdpLimits::ReceivingHost
    } else if share(elsewhere) > LOST {
        UdpLimits::Path
    } else if met {
        UdpLimits::Request
    } else if seen.refused > 0 {
        UdpLimits::InterfaceQueue
    } else {
        UdpLimits::SendingHost
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_case_each() {
        let asked =
            UdpStreamState { sent_bps: 96e6, requested_bps: Some(100e6), packets: 10_000, ..UdpStreamState::default() };
        let slow = UdpStreamState { sent_bps: 90e6, ..asked };
        for (seen, expected) in [
            (asked, UdpLimits::Request),
            (slow, UdpLimits::SendingHost),
            (UdpStreamState { requested_bps: None, ..slow }, UdpLimits::SendingHost),
            (UdpStreamState { refused: 1, ..slow }, UdpLimits::InterfaceQueue),
            (UdpStreamState { lost: 101, ..asked }, UdpLimits::Path),
            (UdpStreamState { lost: 100, ..asked }, UdpLimits::Request),
            (UdpStreamState { lost: 200, lost_in_host: 150, ..asked }, UdpLimits::ReceivingHost),
            (UdpStreamState { lost: 400, lost_in_host: 150, ..asked }, UdpLimits::Path),
        ] {
            assert_eq!(udp_limits(&seen), expected, "{seen:?}");
        }
    }
}
