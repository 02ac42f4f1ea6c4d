//! `narrows traffic send | sink`: cross traffic between two hosts, with the models of the
//! scenarios.

mod flows;
mod send;
mod sink;

use narrows_traffic::TrafficError;

use crate::exit::{Exit, Failure};

/// Send traffic with the scenarios' models, and count what arrives.
#[derive(Debug, clap::Args)]
pub(crate) struct TrafficArgs {
    #[command(subcommand)]
    role: Role,
}

#[derive(Debug, clap::Subcommand)]
enum Role {
    Sink(sink::SinkArgs),
    Send(Box<send::SendArgs>),
}

pub(crate) fn run(args: &TrafficArgs) -> Result<Exit, Failure> {
    match &args.role {
        Role::Sink(args) => sink::run(args),
        Role::Send(args) => send::run(args),
    }
}

/// The exit code and the party that go with an error.
pub(crate) fn failure(error: &TrafficError) -> Failure {
    let (exit, who) = match error {
        TrafficError::Caller(_) | TrafficError::Capture(_) => (Exit::Usage, "caller"),
        TrafficError::Listen { source, .. } | TrafficError::Host { source, .. }
            if source.kind() == std::io::ErrorKind::PermissionDenied =>
        {
            (Exit::Privilege, "host")
        }
        TrafficError::NotListening { .. } | TrafficError::Closed { .. } => (Exit::Unreachable, "peer"),
        TrafficError::Silent { .. } | TrafficError::Unreachable { .. } => (Exit::Unreachable, "path"),
        TrafficError::Refused { .. } => (Exit::Refused, "peer"),
        TrafficError::Protocol { .. } => (Exit::Protocol, "peer"),
        _ => (Exit::Failure, "host"),
    };
    Failure { exit, who, text: error.to_string() }
}
