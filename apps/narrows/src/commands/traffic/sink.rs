//! `narrows traffic sink`.

use std::net::IpAddr;
use std::sync::atomic::Ordering;
use std::time::Duration;

use narrows_traffic::{DEFAULT_PORT, SessionReport, Sink, SinkOptions};
use narrows_units::BitRate;

use super::failure;
use crate::exit::{Exit, Failure};
use crate::{interrupt, output};

/// Count what `narrows traffic send` sends here. Serves only clients on this host and in private
/// networks, unless told otherwise; sends nothing but answers to them.
#[derive(Debug, clap::Args)]
pub(super) struct SinkArgs {
    /// TCP and UDP port; 0 lets the system choose one
    #[arg(long, short, default_value_t = DEFAULT_PORT, env = "NARROWS_TRAFFIC_PORT")]
    port: u16,
    /// Address to listen on; may be repeated; all addresses by default
    #[arg(long, short = 'B', value_name = "ADDRESS")]
    bind: Vec<IpAddr>,
    /// Serve clients from anywhere
    #[arg(long)]
    allow_any: bool,
    /// Longest session, such as "1 h"; four hours by default
    #[arg(long, value_name = "TIME", value_parser = narrows_units::parse_duration_or_seconds)]
    max_duration: Option<Duration>,
    /// Sessions at a time
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    max_sessions: Option<u16>,
    /// Print what arrived of every session as one JSON object per line
    #[arg(long, short = 'J')]
    json: bool,
}

pub(super) fn run(args: &SinkArgs) -> Result<Exit, Failure> {
    let mut options = SinkOptions { port: args.port, allow_any: args.allow_any, ..SinkOptions::default() };
    if !args.bind.is_empty() {
        options.listen.clone_from(&args.bind);
    }
    if let Some(time) = args.max_duration {
        options.limits.session_time = time;
    }
    if let Some(sessions) = args.max_sessions {
        options.limits.sessions = usize::from(sessions);
        options.limits.sessions_per_address = usize::from(sessions);
    }
    let stop = interrupt::flag()?;
    let sink = Sink::start(options).map_err(|error| failure(&error))?;
    for address in sink.addresses() {
        output::complain(&format!("listening on {address}, TCP and UDP"));
    }
    while !stop.load(Ordering::Relaxed) {
        interrupt::nap(Duration::from_millis(50));
        show(&sink.take_finished(), args.json)?;
    }
    show(&sink.stop(), args.json)?;
    Ok(Exit::Valid)
}

fn show(reports: &[SessionReport], json: bool) -> Result<(), Failure> {
    for report in reports {
        let text = if json { as_json(report)? } else { as_text(report) };
        output::write(&text, None)?;
    }
    Ok(())
}

fn as_json(report: &SessionReport) -> Result<String, Failure> {
    #[derive(serde::Serialize)]
    struct Document<'a> {
        schema: &'static str,
        #[serde(flatten)]
        session: &'a SessionReport,
    }
    let document = Document { schema: narrows_traffic::SCHEMA_NAME, session: report };
    serde_json::to_string(&document)
        .map(|text| text + "\n")
        .map_err(|error| Failure::host(format!("the report cannot be written: {error}")))
}

fn as_text(report: &SessionReport) -> String {
    let sum = |count: fn(&narrows_traffic::Received) -> u64| report.flows.iter().map(count).sum::<u64>();
    let rate: BitRate = report.flows.iter().filter_map(narrows_traffic::Received::rate).sum();
    let ended = match report.ended {
        narrows_traffic::SessionEnd::Complete => "complete",
        narrows_traffic::SessionEnd::BrokenOff => "broken off by the sender",
        narrows_traffic::SessionEnd::TimeLimit => "ended by the time limit",
        narrows_traffic::SessionEnd::SinkStopped => "ended here",
    };
    format!(
        "{}: {} flow(s), {ended}: {} packets, {} octets, {rate}; lost {}, duplicates {}, out of order {}, dropped here {}\n",
        report.client,
        report.flows.len(),
        sum(|flow| flow.packets),
        sum(|flow| flow.octets),
        sum(|flow| flow.lost),
        sum(|flow| flow.duplicates),
        sum(|flow| flow.reordering.packets),
        report.local_drops,
    )
}
