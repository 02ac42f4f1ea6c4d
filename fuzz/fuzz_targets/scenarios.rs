//! Any text is a scenario or an error, and the truth of a scenario can be asked for.
#![no_main]

use libfuzzer_sys::fuzz_target;
use narrows_scenario::{Scenario, PathDirection};

fuzz_target!(|text: &str| {
    let Ok(scenario) = Scenario::from_toml(text) else { return };
    for way in [PathDirection::Forward, PathDirection::Reverse] {
        let truth = scenario.truth(way);
        let mtu = truth.path_mtu();
        let capacity = truth.capacity(mtu);
        if let Some(available) = truth.available(mtu) {
            assert!(available <= capacity, "{available} of {capacity}");
        }
        let _ = (truth.base_rtt(64, 64), truth.udp_achievable(mtu, 0.01), truth.tight_hop(mtu));
    }
});
