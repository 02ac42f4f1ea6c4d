//! Both sides of an iperf3 control connection, and UDP datagrams: any octets are orders, counts or
//! an error; and what parses prints back.
#![no_main]

use std::time::Duration;

use libfuzzer_sys::fuzz_target;
use narrows_wire::iperf3::auth::{Credentials, Users};
use narrows_wire::iperf3::{Arrivals, ClientSide, Counters, Parameters, Results, ServerSide};

fuzz_target!(|octets: &[u8]| {
    let (mut client, mut server) = (ClientSide::new(), ServerSide::new());
    let (mut client_runs, mut server_runs) = (true, true);
    for part in octets.chunks(61) {
        client.push(part);
        while client_runs {
            match client.order() {
                Ok(Some(_)) => {}
                Ok(None) => break,
                Err(_) => client_runs = false,
            }
        }
        server.push(part);
        while server_runs {
            match server.order() {
                Ok(Some(_)) => {}
                Ok(None) => break,
                Err(_) => server_runs = false,
            }
        }
    }
    let _ = client.closed();
    // The bodies alone reach the parsers sooner than whole frames do.
    if let Ok(parameters) = Parameters::parse(octets) {
        assert!(Parameters::parse(parameters.to_json().as_bytes()).is_ok());
    }
    if let Ok(results) = Results::parse(octets) {
        assert!(Results::parse(results.to_json().as_bytes()).is_ok());
    }
    for counters in [Counters::Bits32, Counters::Bits64] {
        let mut arrivals = Arrivals::new(counters);
        for part in octets.chunks(16) {
            arrivals.datagram(part, part.len() as u64, Duration::ZERO);
        }
        let counts = arrivals.counts();
        assert!(counts.distinct <= counts.highest);
    }
    if let Ok(text) = std::str::from_utf8(octets) {
        let users = Users::parse(text);
        if let Some(credentials) = Credentials::parse(text) {
            let _ = users.admit(&credentials, 0, 10);
        }
    }
});
