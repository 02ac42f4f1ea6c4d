//! Between the estimators' types and the protocol's.

use narrows_probe::HostFacts;
use narrows_probe::probes::{PacingCheck, TcpSample, TcpState};
use narrows_units::nanos;
use narrows_wire::Pacing;

/// This host's facts as the server tells them.
pub fn host_facts(facts: &HostFacts) -> narrows_wire::HostFacts {
    narrows_wire::HostFacts {
        send_cost_ns: nanos(facts.send_cost),
        receive_cost_ns: nanos(facts.receive_cost),
        clock_resolution_ns: nanos(facts.clock_resolution),
        stamp_error_ns: nanos(facts.stamp_error),
        stamp_source: stamp_source(facts.stamp_source),
        min_gap_ns: nanos(facts.min_gap),
        max_send_rate_bps: facts.max_send_rate.map(narrows_units::BitRate::bps),
        interface_rate_bps: facts.interface_rate.map(narrows_units::BitRate::bps),
        virtual_interface: facts.virtual_interface,
    }
}

pub(super) fn pacing(check: PacingCheck) -> Pacing {
    match check {
        PacingCheck::Kept => Pacing::Kept,
        PacingCheck::Broken { worst } => Pacing::Broken { worst_ns: nanos(worst) },
        PacingCheck::Unknown => Pacing::Unknown,
    }
}

pub(super) fn sample(sample: &TcpSample) -> narrows_wire::TcpSample {
    narrows_wire::TcpSample {
        at_ns: sample.at.nanos(),
        state: match sample.state {
            TcpState::Open => narrows_wire::TcpState::Open,
            TcpState::Disorder => narrows_wire::TcpState::Disorder,
            TcpState::Cwr => narrows_wire::TcpState::Cwr,
            TcpState::Recovery => narrows_wire::TcpState::Recovery,
            TcpState::Loss => narrows_wire::TcpState::Loss,
        },
        rtt_ns: nanos(sample.rtt),
        rtt_var_ns: nanos(sample.rtt_var),
        min_rtt_ns: sample.min_rtt.map(nanos),
        mss_octets: sample.mss_octets,
        cwnd_segments: sample.cwnd_segments,
        ssthresh_segments: sample.ssthresh_segments,
        in_flight_segments: sample.in_flight_segments,
        acked_octets: sample.acked_octets,
        sent_octets: sample.sent_octets,
        retransmitted_octets: sample.retransmitted_octets,
        retransmitted_segments: sample.retransmitted_segments,
        timeouts: sample.timeouts,
        delivery_rate_bps: sample.delivery_rate.map(|(rate, limited)| (rate.bps(), limited)),
        pacing_rate_bps: sample.pacing_rate.map(narrows_units::BitRate::bps),
        peer_window_octets: sample.peer_window_octets,
        unsent_octets: sample.unsent_octets,
        busy_ns: sample.busy.map(nanos),
        limited_by_receive_window_ns: sample.limited_by_receive_window.map(nanos),
        limited_by_send_buffer_ns: sample.limited_by_send_buffer.map(nanos),
        bbr_pacing_gain: sample.bbr_pacing_gain,
        window_scaled: sample.marks.window_scaled,
        reordered: sample.marks.reordered,
        needless: sample.marks.needless,
        path_mtu_octets: sample.marks.path_mtu_octets,
    }
}

/// A share of 0..1 in thousandths.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped to 0..=1000 before the cast")]
pub(super) fn permille(share: Option<f32>) -> Option<u16> {
    share.map(|share| (share * 1000.0).round().clamp(0.0, 1000.0) as u16)
}

/// The protocol's name of a stamp source; sockets never say `Simulated`.
pub(super) fn stamp_source(source: narrows_probe::StampSource) -> narrows_wire::StampSource {
    match source {
        narrows_probe::StampSource::Hardware => narrows_wire::StampSource::Hardware,
        narrows_probe::StampSource::Kernel => narrows_wire::StampSource::Kernel,
        narrows_probe::StampSource::User | narrows_probe::StampSource::Simulated => narrows_wire::StampSource::User,
    }
}
