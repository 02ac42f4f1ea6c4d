//! From what the protocol says to what the estimators hear. The two vocabularies are alike by
//! design and apart by choice: the protocol's may not change without its version, the estimators'
//! may.

use std::time::Duration;

use narrows_probe::probes::{PacingCheck, TcpMarks, TcpSample, TcpState};
use narrows_probe::{HostFacts, StampSource};
use narrows_units::{BitRate, Stamp};

pub(super) fn stamp_source(source: narrows_wire::StampSource) -> StampSource {
    match source {
        narrows_wire::StampSource::Hardware => StampSource::Hardware,
        narrows_wire::StampSource::Kernel => StampSource::Kernel,
        narrows_wire::StampSource::User => StampSource::User,
    }
}

pub(super) fn pacing(pacing: narrows_wire::Pacing) -> PacingCheck {
    match pacing {
        narrows_wire::Pacing::Kept => PacingCheck::Kept,
        narrows_wire::Pacing::Broken { worst_ns } => PacingCheck::Broken { worst: Duration::from_nanos(worst_ns) },
        narrows_wire::Pacing::Unknown => PacingCheck::Unknown,
    }
}

pub(super) fn host(host: &narrows_wire::HostFacts) -> HostFacts {
    HostFacts {
        send_cost: Duration::from_nanos(host.send_cost_ns),
        receive_cost: Duration::from_nanos(host.receive_cost_ns),
        clock_resolution: Duration::from_nanos(host.clock_resolution_ns),
        stamp_error: Duration::from_nanos(host.stamp_error_ns),
        stamp_source: stamp_source(host.stamp_source),
        min_gap: Duration::from_nanos(host.min_gap_ns),
        max_send_rate: host.max_send_rate_bps.map(BitRate::from_bps),
        interface_rate: host.interface_rate_bps.map(BitRate::from_bps),
        virtual_interface: host.virtual_interface,
    }
}

pub(super) fn tcp_sample(sample: &narrows_wire::TcpSample) -> TcpSample {
    let duration = |nanos: Option<u64>| nanos.map(Duration::from_nanos);
    TcpSample {
        at: Stamp::from_nanos(sample.at_ns),
        state: match sample.state {
            narrows_wire::TcpState::Open => TcpState::Open,
            narrows_wire::TcpState::Disorder => TcpState::Disorder,
            narrows_wire::TcpState::Cwr => TcpState::Cwr,
            narrows_wire::TcpState::Recovery => TcpState::Recovery,
            narrows_wire::TcpState::Loss => TcpState::Loss,
        },
        rtt: Duration::from_nanos(sample.rtt_ns),
        rtt_var: Duration::from_nanos(sample.rtt_var_ns),
        min_rtt: duration(sample.min_rtt_ns),
        mss_octets: sample.mss_octets,
        cwnd_segments: sample.cwnd_segments,
        ssthresh_segments: sample.ssthresh_segments,
        in_flight_segments: sample.in_flight_segments,
        acked_octets: sample.acked_octets,
        sent_octets: sample.sent_octets,
        retransmitted_octets: sample.retransmitted_octets,
        retransmitted_segments: sample.retransmitted_segments,
        timeouts: sample.timeouts,
        delivery_rate: sample.delivery_rate_bps.map(|(bps, limited)| (BitRate::from_bps(bps), limited)),
        pacing_rate: sample.pacing_rate_bps.map(BitRate::from_bps),
        peer_window_octets: sample.peer_window_octets,
        unsent_octets: sample.unsent_octets,
        busy: duration(sample.busy_ns),
        limited_by_receive_window: duration(sample.limited_by_receive_window_ns),
        limited_by_send_buffer: duration(sample.limited_by_send_buffer_ns),
        bbr_pacing_gain: sample.bbr_pacing_gain,
        marks: TcpMarks {
            window_scaled: sample.window_scaled,
            reordered: sample.reordered,
            needless: sample.needless,
            path_mtu_octets: sample.path_mtu_octets,
        },
    }
}

/// Thousandths as a share of 0..1.
pub(super) fn share(permille: u16) -> f32 {
    f32::from(permille) / 1000.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_field_has_its_counterpart() {
        let facts = host(&narrows_wire::HostFacts {
            send_cost_ns: 1,
            receive_cost_ns: 2,
            clock_resolution_ns: 3,
            stamp_error_ns: 4,
            stamp_source: narrows_wire::StampSource::Kernel,
            min_gap_ns: 5,
            max_send_rate_bps: Some(6),
            interface_rate_bps: None,
            virtual_interface: true,
        });
        let times = [facts.send_cost, facts.receive_cost, facts.clock_resolution, facts.stamp_error, facts.min_gap];
        assert_eq!(times.map(|time| time.as_nanos()), [1, 2, 3, 4, 5]);
        assert_eq!((facts.max_send_rate, facts.interface_rate), (Some(BitRate::from_bps(6)), None));
        assert!(facts.virtual_interface && facts.stamp_source == StampSource::Kernel);
        let worst = Duration::from_micros(9);
        assert_eq!(pacing(narrows_wire::Pacing::Broken { worst_ns: 9_000 }), PacingCheck::Broken { worst });
        assert!((share(250) - 0.25).abs() < 1e-6);
    }
}
