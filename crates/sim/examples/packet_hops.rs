//! How fast the simulator serves open-loop traffic: million packet-hops per second on a path of
//! three hops, each loaded to 80 % by Poisson traffic of its own, with probes across all three. Run
//! with `--release`.

use std::time::{Duration, Instant};

use narrows_scenario::{Arrivals, Cross, Hop, PathDirection, Scenario, SizeMix};
use narrows_sim::{Packet, Path};
use narrows_units::{BitRate, Framing};

const SECONDS: u64 = 10;

#[expect(
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "an example that times the simulator and prints what it took"
)]
fn main() {
    for (name, sizes) in [("1500", SizeMix::constant(1500)), ("imix", SizeMix::imix())] {
        let mut path = Path::new(&scenario(&sizes), 1);
        let cross_hops = 3.0 * 8e9 * SECONDS as f64 / (8.0 * sizes.mean_ip_octets());
        let mut probe_hops = 0u64;
        let mut out = Vec::new();
        let begin = Instant::now();
        for at in (0..SECONDS * 1_000_000_000).step_by(100_000) {
            let packet = Packet { ip_octets: 1500, hop_limit: 64, flow: 0, payload: at };
            path.send(at, PathDirection::Forward, packet);
            path.advance(at, &mut out);
            probe_hops += 3;
            out.clear();
        }
        let seconds = begin.elapsed().as_secs_f64();
        let hops = cross_hops + probe_hops as f64;
        println!("{name:>5}: {hops:.0} packet-hops in {seconds:.3} s: {:.1} million per second", hops / seconds * 1e-6);
    }
}

fn scenario(sizes: &SizeMix) -> Scenario {
    let hop = Hop::rate(BitRate::from_gbps(10)).framing(Framing::BARE).delay(Duration::from_millis(1));
    let mut scenario = Scenario::new("packet hops");
    for index in 0..3 {
        let cross = Cross::on_hop(index, Arrivals::Poisson, BitRate::from_gbps(8), sizes.clone());
        scenario = scenario.hop(hop.clone()).cross(cross);
    }
    scenario.validate().expect("a plain path is valid")
}
