//! A server on loopback and a client made of bare sockets.
pub(super) fn host() -> wire::HostFacts {
    wire::HostFacts {
        send_cost_ns: 1000,
        receive_cost_ns: 1000,
        clock_resolution_ns: 1,
        stamp_error_ns: 1000,
        stamp_source: wire::StampSource::Kernel,
        min_gap_ns: 2000,
        max_send_rate_bps: None,
        interface_rate_bps: None,
        virtual_interface: true,
    }
}
