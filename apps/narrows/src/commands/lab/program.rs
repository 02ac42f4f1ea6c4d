//! `narrows lab run`: a lab for one program.

use std::process::Command;

use narrows_lab::{Addresses, Lab, LabError};

use super::{BuildArgs, failure};
use crate::commands::{serve, simulate};
use crate::exit::{Exit, Failure};
use crate::program::Program;
use crate::{interrupt, output};

/// The program finds the lab in its environment: `NARROWS_LAB` (name), `NARROWS_SENDER` and
/// `NARROWS_RECEIVER` (IPv4 addresses), `NARROWS_SENDER_IPV6` and `NARROWS_RECEIVER_IPV6` (where
/// the path has IPv6).
#[derive(Debug, clap::Args)]
pub(crate) struct RunArgs {
    #[command(flatten)]
    build: BuildArgs,
    /// Node to run the program in
    #[arg(long, default_value = "sender")]
    node: String,
    /// Run `narrows serve` at the receiver meanwhile
    #[arg(long)]
    serve: bool,
    /// Program to run
    #[arg(last = true, required = true, value_name = "PROGRAM")]
    program: Vec<String>,
}

pub(super) fn run(args: &RunArgs) -> Result<Exit, Failure> {
    let scenario = simulate::load(&args.build.scenario)?;
    let (program, arguments) = args.program.split_first().ok_or_else(|| Failure::usage("an empty command"))?;
    let stop = interrupt::flag()?;
    let wrong = |error: LabError| failure(&error);
    let lab = Lab::up(&scenario, args.build.options(false)?).map_err(wrong)?;
    let Some(node) = lab.node(&args.node) else {
        return Err(failure(&LabError::NoSuchNode {
            id: lab.id().to_string(),
            node: args.node.clone(),
            nodes: lab.nodes().iter().map(|node| node.name().to_owned()).collect(),
        }));
    };
    let server = args.serve.then(|| server(&lab)).transpose()?;
    let flows = super::flows::start(&lab)?;
    let mut command = Command::new(program);
    command.args(arguments).env("NARROWS_LAB", lab.id().as_str());
    for (name, addresses) in
        [("NARROWS_SENDER", lab.sender().addresses()), ("NARROWS_RECEIVER", lab.receiver().addresses())]
    {
        tell(&mut command, name, addresses);
    }
    let exit = node.spawn(&mut command).map(Program::beside).map_err(wrong)?.wait(stop)?;
    drop(server);
    for line in flows.end() {
        output::complain(&line);
    }
    let timing_report = lab.down().map_err(wrong)?;
    output::complain(&format!("the links: {timing_report}"));
    Ok(exit)
}

fn server(lab: &Lab) -> Result<narrows_net::serve::Running, Failure> {
    let receiver = lab.receiver();
    let Some(addresses) = receiver.addresses() else {
        return Err(Failure::host("the receiver has no address"));
    };
    receiver
        .run(|| serve::start_at(addresses.ipv4.into(), narrows_wire::DEFAULT_PORT))
        .map_err(|error| failure(&error))?
}

fn tell(command: &mut Command, name: &str, addresses: Option<Addresses>) {
    let Some(addresses) = addresses else { return };
    command.env(name, addresses.ipv4.to_string());
    if let Some(ipv6) = addresses.ipv6 {
        command.env(format!("{name}_IPV6"), ipv6.to_string());
    }
}
