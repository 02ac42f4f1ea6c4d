//! Plays a small path and runs a program in the sender:
//! `cargo run -p narrows-lab --example emulate -- ping -c 3 10.77.3.1`.

use std::process::Command;
use std::time::Duration;

use narrows_lab::{RealTimePath, Side, StartOptions};
use narrows_scenario::{Arrivals, Cross, Hop, Scenario, SizeMix};
use narrows_units::BitRate;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    narrows_lab::enter_user_namespace_if_needed()?;
    let ms = Duration::from_millis(1);
    let cross = Cross::on_hop(2, Arrivals::Poisson, BitRate::from_mbps(130), SizeMix::constant(1500));
    let scenario = Scenario::new("three hops")
        .hop(Hop::rate(BitRate::from_gbps(1)).delay(ms))
        .hop(Hop::rate(BitRate::from_mbps(100)).delay(ms))
        .hop(Hop::rate(BitRate::from_mbps(200)).delay(ms))
        .cross(cross)
        .validate()?;
    let path = RealTimePath::start(&scenario, StartOptions::default())?;
    let mut words = std::env::args().skip(1);
    if let Some(program) = words.next() {
        let mut command = Command::new(program);
        path.host(Side::Sender).spawn(command.args(words))?.wait()?;
    }
    let timing_report = path.stop()?;
    #[expect(clippy::print_stdout, reason = "this is what the example is for")]
    {
        println!("{timing_report}\n{timing_report:?}");
    }
    Ok(())
}
