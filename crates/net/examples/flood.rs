//! As much UDP as this host can send and the remote host can receive:
//! `flood HOST STREAMS BURST SECONDS`, against a running server.
//!
//! Packets of 1500 IP octets. Prints one JSON object; the rate is the receiver's, at the IP layer,
//! from the begin of its first status interval in which packets came to the end of the last.

use std::time::Duration;

use narrows_net::client::{ConnectOptions, SocketWorld};
use narrows_probe::probes::{Load, LoadStatus, Probe, Then};
use narrows_probe::{Event, World};
use narrows_units::BitRate;
use serde_json::json;

#[expect(clippy::print_stdout, reason = "an example prints its result")]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [host, streams, burst, seconds] = args.as_slice() else {
        return Err("flood HOST STREAMS BURST SECONDS".into());
    };
    let load = Load {
        rate: BitRate::from_bps(u64::MAX),
        ip_octets: 1500,
        burst: burst.parse()?,
        streams: streams.parse()?,
        duration: Duration::try_from_secs_f64(seconds.parse()?)?,
        status_every: Duration::from_millis(20),
        then: Then::Finish,
    };
    let mut world = SocketWorld::connect(host, ConnectOptions::default())?;
    let report = match world.send(Probe::Load(load))? {
        Event::Load(report) => report,
        other => return Err(format!("no report: {other:?}").into()),
    };
    let came: Vec<&LoadStatus> = report.statuses.iter().filter(|status| status.packets > 0).collect();
    let (Some(begin), Some(end)) = (came.first(), came.last()) else {
        return Err("nothing arrived".into());
    };
    let (packets, ip_octets, lost, local_drops) = report.totals();
    let received = BitRate::over(ip_octets, end.to.since(begin.from)).ok_or("no time passed")?;
    let result = json!({
        "received_bps": received.bps(),
        "packets": packets,
        "lost": lost,
        "local_drops": local_drops,
        "sent_packets": report.sent_packets,
        "send_failures": report.send_failures,
    });
    println!("{result}");
    Ok(())
}
