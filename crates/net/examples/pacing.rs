//! How well a stream of 1500-octet packets keeps its planned gaps: `pacing HOST RATE_MBPS SECONDS`,
//! against a running server.
//!
//! Trains at the rate, one after the other; prints one JSON object: the planned gap, and quantiles
//! of how far the gaps of the actual departures are from their plan, both in nanoseconds, with the
//! source of the stamps.

use std::time::Duration;

use narrows_net::client::{ConnectOptions, SocketWorld};
use narrows_probe::probes::{PacingCheck, Probe, Train, TrainId, TrainReport};
use narrows_probe::{Event, World};
use narrows_units::BitRate;
use serde_json::json;

const IP_OCTETS: u16 = 1500;
/// Packets of one train: as many kernel stamps as the socket's error queue surely holds.
const MOST_PACKETS: u64 = 10_000;

#[expect(clippy::print_stdout, reason = "an example prints its result")]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [host, mbps, seconds] = args.as_slice() else {
        return Err("pacing HOST RATE_MBPS SECONDS".into());
    };
    let rate = BitRate::from_mbps(mbps.parse()?);
    let time = Duration::try_from_secs_f64(seconds.parse()?)?;
    let packets = (rate.octets_in(time) / u64::from(IP_OCTETS)).max(2);
    let mut world = SocketWorld::connect(host, ConnectOptions::default())?;
    let (mut errors, mut sources, mut kept, mut lost) = (Vec::new(), Vec::new(), 0u32, 0);
    let wanted = packets.div_ceil(MOST_PACKETS);
    let count = usize::try_from(packets.div_ceil(wanted))?;
    for id in 1..=u32::try_from(wanted)? {
        let train = Train::at_rate(TrainId(id), count, IP_OCTETS, rate);
        let report = match world.send(Probe::Train(train.clone()))? {
            Event::Train(report) => report,
            other => return Err(format!("no report: {other:?}").into()),
        };
        errors.extend(gap_errors(&train, &report));
        sources.push(format!("{:?}", report.departed_by));
        kept += u32::from(report.pacing == PacingCheck::Kept);
        lost += report.lost();
    }
    errors.sort_unstable();
    sources.sort_unstable();
    sources.dedup();
    let quantile = |percent: usize| errors[(errors.len() * percent / 100).min(errors.len() - 1)];
    let result = json!({
        "planned_gap_ns": rate.time_for(IP_OCTETS.into()).ok_or("a rate of nothing")?.as_nanos(),
        "gaps": errors.len(),
        "error_p50_ns": quantile(50),
        "error_p99_ns": quantile(99),
        "error_max_ns": quantile(100),
        "departed_by": sources.join(" or "),
        "trains": wanted,
        "kept": kept,
        "lost": lost,
    });
    println!("{result}");
    Ok(())
}

/// How far each gap is from its plan, either way.
fn gap_errors(train: &Train, report: &TrainReport) -> Vec<i128> {
    report
        .arrivals
        .windows(2)
        .zip(&train.packets[1..])
        .map(|(pair, plan)| {
            let gap = i128::from(pair[1].departed.nanos()) - i128::from(pair[0].departed.nanos());
            (gap - plan.gap.as_nanos().cast_signed()).abs()
        })
        .collect()
}
