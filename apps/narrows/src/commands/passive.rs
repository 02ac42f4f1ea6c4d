//! `narrows passive FILE… | --interface IF`: capacity from traffic that passes anyway.

mod document;
mod files;
mod live;

use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use narrows_capture::decode::Endpoint;
use narrows_capture::filter::Filter;
use narrows_capture::flows::FlowLimits;
use narrows_capture::{Analysis, Options};
use narrows_diagnose::passive::{PASSIVE, PassiveMethod};
use narrows_probe::RawParams;

use crate::exit::{Exit, Failure};
use crate::output;

/// Estimate the capacity behind captured TCP traffic, flow by flow, without sending anything.
///
/// Reads pcap and pcapng, plain, gzip or zstd, of any size, in bounded memory; several files are
/// read one after the other, as one capture that was cut in pieces. Or listens on an interface,
/// which needs CAP_NET_RAW.
#[derive(Debug, clap::Args)]
#[expect(clippy::doc_markdown, reason = "clap prints it as it stands")]
pub(crate) struct PassiveArgs {
    /// Capture files; `-` is standard input
    #[arg(required_unless_present = "interface", value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Listen on this interface instead
    #[arg(long, short, value_name = "IF", conflicts_with = "files", add = crate::complete::interfaces())]
    interface: Option<String>,
    /// How long to listen, such as "30 s"; until Ctrl-C by default
    #[arg(long, short, requires = "interface", conflicts_with = "files", value_parser = narrows_units::parse_duration_or_seconds)]
    duration: Option<Duration>,
    /// Listen to packets for other stations, too (promiscuous mode)
    #[arg(long, requires = "interface", conflicts_with = "files")]
    promiscuous: bool,
    /// Write the captured packets to this file (pcap with nanoseconds, headers only)
    #[arg(long, value_name = "FILE.pcap", requires = "interface", conflicts_with = "files")]
    write: Option<PathBuf>,
    /// Only packets that match this expression, such as "tcp port 443 and net 10.0.0.0/8"
    #[arg(long, value_name = "EXPRESSION")]
    filter: Option<String>,
    /// Only connections with this end: ADDRESS, ADDRESS:PORT or `[ADDRESS]:PORT`; twice for both
    /// ends
    #[arg(long = "flow", value_name = "END", value_parser = end)]
    flows: Vec<Endpoint>,
    /// A capture of the same traffic nearer to the data's sender: when packets left, for methods
    /// that use both
    #[arg(long, value_name = "FILE", conflicts_with = "interface")]
    sent: Option<PathBuf>,
    /// Only this method; may be repeated
    #[arg(long = "method", short, add = crate::complete::methods())]
    methods: Vec<String>,
    /// Parameter, NAME=VALUE, for every method that has it, or METHOD.NAME=VALUE; may be repeated
    #[arg(long = "param", value_name = "NAME=VALUE")]
    params: Vec<String>,
    /// Packets with data that a flow needs to be shown
    #[arg(long, value_name = "N", default_value_t = FlowLimits::default().min_packets)]
    min_packets: u64,
    /// Flows to show at most: the largest
    #[arg(long, value_name = "N", default_value_t = 2_000, value_parser = clap::value_parser!(u16).range(1..=10_000))]
    most_flows: u16,
    /// Print one JSON object
    #[arg(long, short = 'J')]
    json: bool,
    /// Write the result to this file
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// No progress
    #[arg(long)]
    quiet: bool,
}

pub(crate) fn run(args: &PassiveArgs) -> Result<Exit, Failure> {
    output::check(args.output.as_ref())?;
    let filter =
        args.filter.as_deref().map(Filter::parse).transpose().map_err(|error| Failure::usage(error.to_string()))?;
    let analysis = Analysis::new(Options {
        methods: methods(args)?,
        limits: FlowLimits { min_packets: args.min_packets, ..FlowLimits::default() },
        most_flows: usize::from(args.most_flows),
        only: args.flows.clone(),
    })
    .map_err(|error| Failure::usage(error.to_string()))?;
    let read = match &args.interface {
        Some(interface) => live::listen(args, interface, filter.as_ref(), analysis)?,
        None => files::read(args, filter, analysis)?,
    };
    let document = document::document(&read);
    let text = if args.json { document.json() + "\n" } else { document.text() };
    output::write(&text, args.output.as_deref())?;
    if let Some(failure) = read.failure {
        return Err(failure);
    }
    Ok(if document.is_conclusive() { Exit::Valid } else { Exit::Inconclusive })
}

/// What was read, and how that ended.
struct Read {
    inputs: Vec<String>,
    findings: narrows_capture::Findings,
    /// Of each input.
    damages: Vec<(String, narrows_capture::damage::Damages)>,
    matched: u64,
    /// What broke on the way: what was read by then is a result too.
    failure: Option<Failure>,
}

type Chosen = Vec<(&'static dyn PassiveMethod, RawParams)>;

/// The methods asked for, each with the parameters that are its own.
fn methods(args: &PassiveArgs) -> Result<Chosen, Failure> {
    let known = || PASSIVE.iter().map(|method| method.info().name).collect::<Vec<_>>().join(", ");
    let unknown = |name: &str| Failure::usage(format!("there is no passive method \"{name}\"; there are: {}", known()));
    if let Some(name) = args.methods.iter().find(|name| find(name).is_none()) {
        return Err(unknown(name));
    }
    let wanted = |method: &dyn PassiveMethod| {
        let name = method.info().name;
        args.methods.is_empty() || args.methods.iter().any(|wanted| wanted == name)
    };
    let mut chosen: Chosen =
        PASSIVE.iter().filter(|method| wanted(**method)).map(|method| (*method, RawParams::new())).collect();
    for (name, value) in super::simulate::split(&args.params)? {
        let (of, name) = match name.split_once('.') {
            Some((of, name)) => (Some(of), name),
            None => (None, name.as_str()),
        };
        if let Some(of) = of
            && find(of).is_none()
        {
            return Err(unknown(of));
        }
        let mut taken = false;
        for (method, params) in &mut chosen {
            let info = method.info();
            let has = info.parameter(name).is_some();
            if has && of.is_none_or(|of| of == info.name) {
                params.set(name, value.clone());
                taken = true;
            }
        }
        if !taken {
            let chosen: Vec<&str> = chosen.iter().map(|(method, _)| method.info().name).collect();
            return Err(Failure::usage(format!("--param {name}: none of {} has it", chosen.join(", "))));
        }
    }
    Ok(chosen)
}

fn find(name: &str) -> Option<&'static dyn PassiveMethod> {
    PASSIVE.iter().copied().find(|method| method.info().name == name)
}

/// One end of a connection, as the user writes it.
fn end(text: &str) -> Result<Endpoint, String> {
    let of = |address: IpAddr, port| {
        let address = match address {
            IpAddr::V4(address) => address.to_ipv6_mapped(),
            IpAddr::V6(address) => address,
        };
        Endpoint { address: address.to_bits(), port }
    };
    if let Ok(whole) = text.parse::<std::net::SocketAddr>() {
        return Ok(of(whole.ip(), whole.port()));
    }
    let bare = text.trim_start_matches('[').trim_end_matches(']');
    let address = bare.parse::<IpAddr>();
    address
        .map(|address| of(address, 0))
        .map_err(|_| "write ADDRESS, ADDRESS:PORT or [ADDRESS]:PORT, in numbers".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_are_addresses_with_or_without_a_port() {
        let v4 = 0xFFFF_0A00_0001;
        assert_eq!(end("10.0.0.1").unwrap(), Endpoint { address: v4, port: 0 });
        assert_eq!(end("10.0.0.1:80").unwrap(), Endpoint { address: v4, port: 80 });
        assert_eq!(end("[::1]:80").unwrap(), Endpoint { address: 1, port: 80 });
        assert_eq!(end("::1").unwrap(), end("[::1]").unwrap());
        assert!(end("host:80").is_err());
    }
}
