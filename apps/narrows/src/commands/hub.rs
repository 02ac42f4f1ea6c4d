//! `narrows hub`: the hub of a fleet, and what its owner does with it.

mod moves;
mod place;
mod run;
mod store;

use std::path::PathBuf;

use narrows_units::Octets;
use serde_json::json;

use self::moves::MoveArgs;
use self::place::PlaceArgs;
use self::run::RunArgs;
use super::fleet::client::{Client, HubArgs as WhereArgs};
use crate::exit::{Exit, Failure};
use crate::output;

/// Run the hub of a fleet: agents join it, measure by its plans, and send it what they find
///
/// Prints where it is, and the line by which hosts join. Everything that it needs is inside, for up
/// to 50 hosts. Pages and API are under the address that it prints; from other machines they ask
/// for a token of the state directory: read.token for reading alone, view.token for everything.
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct HubArgs {
    #[command(subcommand)]
    command: Option<HubCommand>,
    #[command(flatten)]
    run: RunArgs,
}

#[derive(Debug, clap::Subcommand)]
enum HubCommand {
    /// Run the hub: what `narrows hub` alone does
    Run(RunArgs),
    /// Print a line by which hosts join within a day
    Token {
        /// How many hosts may join by it
        #[arg(long, value_name = "N", default_value_t = 1)]
        uses: u32,
        #[command(flatten)]
        hub: WhereArgs,
    },
    /// Throw an agent out: its connections end at once
    Revoke {
        /// The agent
        name: String,
        #[command(flatten)]
        hub: WhereArgs,
    },
    /// Move the record, the bus, or both, while no hub runs
    ///
    /// Start the hub there afterwards, with the same state directory. The record is copied. Agents
    /// that come to the bus of before are told where the new one is by a signed plan, look whether
    /// they get their plan there, and follow: nobody joins again.
    Move(MoveArgs),
    /// Copy the record to a new file, as it is now
    ///
    /// The hub goes on meanwhile if its record is a file. A record in PostgreSQL is copied while no
    /// hub runs; `pg_dump` copies it at any time.
    Backup {
        /// The file
        file: PathBuf,
        #[command(flatten)]
        place: PlaceArgs,
    },
    /// Make the keys of an operator of NATS, and print what the file of its servers needs
    ///
    /// Servers in operator mode take in whoever joined, by a token that the hub signs: nobody edits
    /// a list of users, and a revoked agent is cut at once. Put the text into the file of each
    /// server, start them, and then the hub with --bus and the same state directory.
    Operator {
        /// Where the servers keep tokens
        #[arg(long, value_name = "DIR", default_value = "/var/lib/nats/jwt")]
        tokens: PathBuf,
        /// What the hub's --bus-size is
        #[arg(long, value_name = "OCTETS", default_value = "20 GB")]
        bus_size: Octets,
        #[command(flatten)]
        place: PlaceArgs,
    },
    /// Look whether state directory and record are sound; change nothing
    Check {
        #[command(flatten)]
        place: PlaceArgs,
    },
}

pub(crate) fn run(args: &HubArgs) -> Result<Exit, Failure> {
    match &args.command {
        None => run::run(&args.run),
        Some(HubCommand::Run(args)) => run::run(args),
        Some(HubCommand::Token { uses, hub }) => {
            let client = Client::new(hub)?;
            let answer = client.post("/api/v1/tokens", &json!({ "uses": uses }))?;
            let token = answer["join"].as_str().unwrap_or_default();
            output::write(&format!("narrows agent join {} {token}\n", client.url()), None)?;
            Ok(Exit::Valid)
        }
        Some(HubCommand::Revoke { name, hub }) => {
            let client = Client::new(hub)?;
            let answer = client.post(&format!("/api/v1/agents/{name}/revoke"), &json!({}))?;
            output::write(&format!("revoked {}\n", answer["revoked"].as_str().unwrap_or(name)), None)?;
            Ok(Exit::Valid)
        }
        Some(HubCommand::Move(args)) => moves::run(args),
        Some(HubCommand::Backup { file, place }) => store::backup(place, file),
        Some(HubCommand::Operator { tokens, bus_size, place }) => {
            let (tenant, tokens) = (run::tenant(), tokens.display().to_string());
            let text = narrows_hub::operator_settings(&place.state(), &tenant, bus_size.count(), &tokens);
            output::write(&text.map_err(|error| store::failure(&error))?, None)?;
            Ok(Exit::Valid)
        }
        Some(HubCommand::Check { place }) => store::check(place),
    }
}
