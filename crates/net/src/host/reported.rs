//! Settings and counts as the protocol has them, from and to what advice goes by.

use narrows_diagnose::advice::{HostCounts, HostEnvironment};
use narrows_wire::{HostSettings, SettingsCounted};

/// As this host tells them: nothing that the protocol does not carry, so that the peer never meets
/// what it must refuse.
pub(crate) fn settings(environment: &HostEnvironment) -> HostSettings {
    let permille = |share: Option<f64>| {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped to what a permille is")]
        let whole = |share: f64| (share * 1000.0).round().clamp(0.0, 1000.0) as u16;
        share.filter(|share| share.is_finite()).map(whole)
    };
    let word = |text: &Option<String>| text.clone().filter(|text| HostSettings::may_say(text));
    let control = |text: &&String| HostSettings::is_control(text);
    let counted = &environment.counted;
    HostSettings {
        interface: word(&environment.interface),
        driver: word(&environment.driver),
        is_card: environment.is_card,
        qdisc: word(&environment.qdisc),
        interface_bps: environment.interface_bps,
        interface_most_bps: environment.interface_most_bps,
        bus_bps: environment.bus_bps,
        half_duplex: environment.half_duplex,
        wireless: environment.wireless,
        receive_gather_us: environment.receive_gather_us,
        ring_receive: environment.ring_receive,
        ring_receive_most: environment.ring_receive_most,
        send_offload: environment.send_offload,
        receive_offload: environment.receive_offload,
        cpus: environment.cpus,
        clock_source: word(&environment.clocksource),
        governor: word(&environment.governor),
        idle_exit_ns: environment.idle_exit_ns.map(|time| time.min(1_000_000_000)),
        virtual_machine: environment.virtual_machine,
        congestion_control: environment.congestion_control.as_ref().filter(control).cloned(),
        congestion_controls: environment
            .congestion_controls
            .iter()
            .filter(control)
            .take(HostSettings::MAX_CONTROLS)
            .cloned()
            .collect(),
        tcp_rmem_octets: environment.tcp_rmem_octets,
        tcp_wmem_octets: environment.tcp_wmem_octets,
        rmem_max_octets: environment.rmem_max_octets,
        wmem_max_octets: environment.wmem_max_octets,
        window_scaling: environment.window_scaling,
        receive_autotuning: environment.receive_autotuning,
        counted: SettingsCounted {
            steal_permille: permille(environment.steal_ratio),
            softirq_permille: permille(environment.softirq_share),
            fragments: counted.fragments,
            buffer_drops: counted.buffer_drops,
            ring_drops: counted.ring_drops,
            backlog_drops: counted.backlog_drops,
            damaged_frames: counted.damaged_frames,
        },
    }
}

/// What the remote host told. Its name, kernel, memory and costs it does not tell.
pub(crate) fn environment(reported: HostSettings) -> HostEnvironment {
    let share = |permille: Option<u16>| permille.map(|permille| f64::from(permille) / 1000.0);
    let counted = reported.counted;
    HostEnvironment {
        interface: reported.interface,
        driver: reported.driver,
        is_card: reported.is_card,
        qdisc: reported.qdisc,
        interface_bps: reported.interface_bps,
        interface_most_bps: reported.interface_most_bps,
        bus_bps: reported.bus_bps,
        half_duplex: reported.half_duplex,
        wireless: reported.wireless,
        receive_gather_us: reported.receive_gather_us,
        ring_receive: reported.ring_receive,
        ring_receive_most: reported.ring_receive_most,
        send_offload: reported.send_offload,
        receive_offload: reported.receive_offload,
        cpus: reported.cpus,
        clocksource: reported.clock_source,
        governor: reported.governor,
        idle_exit_ns: reported.idle_exit_ns,
        virtual_machine: reported.virtual_machine,
        congestion_control: reported.congestion_control,
        congestion_controls: reported.congestion_controls,
        tcp_rmem_octets: reported.tcp_rmem_octets,
        tcp_wmem_octets: reported.tcp_wmem_octets,
        rmem_max_octets: reported.rmem_max_octets,
        wmem_max_octets: reported.wmem_max_octets,
        window_scaling: reported.window_scaling,
        receive_autotuning: reported.receive_autotuning,
        steal_ratio: share(counted.steal_permille),
        softirq_share: share(counted.softirq_permille),
        counted: HostCounts {
            fragments: counted.fragments,
            buffer_drops: counted.buffer_drops,
            ring_drops: counted.ring_drops,
            backlog_drops: counted.backlog_drops,
            damaged_frames: counted.damaged_frames,
        },
        ..HostEnvironment::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host;

    /// What any host says of itself may be said, and comes back as it was, but for what is not
    /// told.
    #[test]
    fn there_and_back() {
        let mut own = host::environment(host::Interface::with_address([127, 0, 0, 1].into()));
        own.steal_ratio = Some(0.25);
        own.counted.ring_drops = Some(u64::MAX);
        let reported = settings(&own);
        let frame = narrows_wire::ServerMessage::HostReported(Box::new(reported.clone())).frame();
        let parsed = narrows_wire::ServerMessage::parse(&frame[narrows_wire::FRAME_HEADER_OCTETS..]);
        assert_eq!(parsed, Ok(narrows_wire::ServerMessage::HostReported(Box::new(reported.clone()))));
        let back = environment(reported);
        let expected =
            HostEnvironment { hostname: None, kernel: None, processor_mhz: None, memory_octets: None, ..own };
        assert_eq!(back, expected);
    }

    /// Whatever a driver calls itself, the peer need not refuse the answer for it.
    #[test]
    fn odd_names_are_left_out() {
        let odd = HostEnvironment {
            driver: Some("a driver; rm -rf /".to_owned()),
            interface: Some(String::new()),
            congestion_controls: vec!["../x".to_owned(), "cubic".to_owned()],
            idle_exit_ns: Some(u64::MAX),
            steal_ratio: Some(f64::NAN),
            softirq_share: Some(7.0),
            ..HostEnvironment::default()
        };
        let reported = settings(&odd);
        assert_eq!((&reported.driver, &reported.interface), (&None, &None));
        assert_eq!(reported.congestion_controls, ["cubic"]);
        assert_eq!((reported.counted.steal_permille, reported.counted.softirq_permille), (None, Some(1000)));
        let frame = narrows_wire::ServerMessage::HostReported(Box::new(reported)).frame();
        assert!(narrows_wire::ServerMessage::parse(&frame[narrows_wire::FRAME_HEADER_OCTETS..]).is_ok());
    }
}
