//! How well a stream of 1500-octet packets keeps its planned gaps: `pacing HOST RATE_MBPS SECONDS`, against a running server.
//!
//! One train at the rate; prints one JSON object: the planned gap, and quantiles of how far the gaps of the actual departures
//! are from their plan, both in nanoseconds, with the source of the stamps.

use std::time::Duration;

use estimate::probe::{PacingCheck, Probe, Train, TrainId};
use estimate::{Event, World};
use net::client::{ConnectOptions, SocketWorld};
use serde_json::json;
use units::BitRate;

const IP_OCTETS: u16 = 1500;
/// Below what a server takes in one train.
const MOST_PACKETS: u64 = 60_000;

#[expect(clippy::print_stdout, reason = "an example prints its result")]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [host, mbps, seconds] = args.as_slice() else {
        return Err("pacing HOST RATE_MBPS SECONDS".into());
    };
    let rate = BitRate::from_mbps(mbps.parse()?);
    let time = Duration::try_from_secs_f64(seconds.parse()?)?;
    let packets = (rate.octets_in(time) / u64::from(IP_OCTETS)).clamp(2, MOST_PACKETS);
    let train = Train::at_rate(TrainId(1), usize::try_from(packets)?, IP_OCTETS, rate);
    let mut world = SocketWorld::connect(host, ConnectOptions::default())?;
    let report = match world.send(Probe::Train(train.clone()))? {
        Event::Train(report) => report,
        other => return Err(format!("no report: {other:?}").into()),
    };
    let mut errors: Vec<i128> = report
        .arrivals
        .windows(2)
        .zip(&train.packets[1..])
        .map(|(pair, plan)| {
            let gap = i128::from(pair[1].departed.nanos()) - i128::from(pair[0].departed.nanos());
            (gap - plan.gap.as_nanos().cast_signed()).abs()
        })
        .collect();
    errors.sort_unstable();
    let quantile = |percent: usize| errors[(errors.len() * percent / 100).min(errors.len() - 1)];
    let result = json!({
        "packets": packets,
        "planned_gap_ns": train.packets[1].gap.as_nanos(),
        "error_p50_ns": quantile(50),
        "error_p99_ns": quantile(99),
        "error_max_ns": quantile(100),
        "departed_by": format!("{:?}", report.departed_by),
        "kept": report.pacing == PacingCheck::Kept,
        "lost": report.lost(),
    });
    println!("{result}");
    Ok(())
}
