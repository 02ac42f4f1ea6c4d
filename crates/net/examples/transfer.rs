//! As much TCP as the host's defaults carry: `transfer HOST STREAMS SECONDS`, against a running
//! server.
//!
//! Prints one JSON object; the rate is the payload that the far application read, over its own time
//! from the first octet to the last.

use std::time::Duration;

use narrows_net::client::{ConnectOptions, SocketWorld};
use narrows_probe::probes::{Probe, Then, Transfer};
use narrows_probe::{Event, World};
use narrows_units::BitRate;
use serde_json::json;

#[expect(clippy::print_stdout, reason = "an example prints its result")]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [host, streams, seconds] = args.as_slice() else {
        return Err("transfer HOST STREAMS SECONDS".into());
    };
    let transfer = Transfer {
        streams: streams.parse()?,
        congestion: None,
        window_octets: None,
        pacing: None,
        duration: Duration::try_from_secs_f64(seconds.parse()?)?,
        sample_every: Duration::from_millis(100),
        then: Then::Finish,
    };
    let mut world = SocketWorld::connect(host, ConnectOptions::default())?;
    let report = match world.send(Probe::Transfer(transfer))? {
        Event::Transfer(report) => report,
        other => return Err(format!("no report: {other:?}").into()),
    };
    let (payload_octets, time) = report.remote_read.ok_or("the server did not report what it read")?;
    let received = BitRate::over(payload_octets, time).ok_or("no time passed")?;
    let congestion: Vec<&str> = report.streams.iter().map(|stream| stream.congestion.name()).collect();
    let result = json!({
        "received_payload_bps": received.bps(),
        "payload_octets": payload_octets,
        "nanos": u64::try_from(time.as_nanos())?,
        "congestion": congestion,
    });
    println!("{result}");
    Ok(())
}
