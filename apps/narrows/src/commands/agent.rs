//! `narrows agent`: this host as an agent of a fleet.

mod child;
mod clocks;
mod place;
mod running;
mod server;

use std::collections::BTreeMap;
use std::path::PathBuf;

use narrows_agent::{Error, HubAddress, Membership, Rejoined, State, Token};
use narrows_fleet::keys::Name;
use narrows_fleet::message::{Join, Status};
use narrows_wire::DEFAULT_PORT;

use crate::exit::{Exit, Failure};
use crate::output;

/// Make this host an agent of a fleet: it measures towards the other hosts by the plans of a hub
#[derive(Debug, clap::Args)]
pub(crate) struct AgentArgs {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    Join(JoinArgs),
    Run(running::RunArgs),
    /// Leave the fleet; results that wait stay in the spool
    Leave(place::StateArgs),
    Status(StatusArgs),
}

/// Join the fleet of a hub with a token that `narrows hub` or `narrows hub token` printed
#[derive(Debug, clap::Args)]
struct JoinArgs {
    /// The hub: `https://HOST:8622`, HOST:PORT or HOST
    #[arg(value_name = "URL")]
    hub: String,
    /// The join token: nw1.…
    token: String,
    /// Name in the fleet; the hub adds a number if another agent has it [default: the host's name]
    #[arg(long)]
    name: Option<String>,
    /// A label by which groups find this host, KEY=VALUE; may be repeated
    #[arg(long = "label", value_name = "KEY=VALUE")]
    labels: Vec<String>,
    /// Name or address by which other agents reach this host, if it is not the one from which it
    /// joins
    #[arg(long, value_name = "HOST")]
    address: Option<String>,
    /// The port of this host's server
    #[arg(long, short, default_value_t = DEFAULT_PORT)]
    port: u16,
    #[command(flatten)]
    state: place::StateArgs,
}

/// Show what this agent does, what waits, and what is wrong
#[derive(Debug, clap::Args)]
struct StatusArgs {
    /// Print one JSON object
    #[arg(long, short = 'J')]
    json: bool,
    #[command(flatten)]
    state: place::StateArgs,
}

pub(crate) fn run(args: &AgentArgs) -> Result<Exit, Failure> {
    match &args.action {
        Action::Join(args) => join(args),
        Action::Run(args) => running::run(args),
        Action::Leave(args) => running::leave(args),
        Action::Status(args) => status(args),
    }
}

fn join(args: &JoinArgs) -> Result<Exit, Failure> {
    let hub: HubAddress = args.hub.parse().map_err(failure)?;
    let token: Token = args.token.parse().map_err(failure)?;
    let name = match &args.name {
        Some(name) => name.clone(),
        None => place::host_name(),
    };
    let name: Name = name.parse().map_err(|error| Failure::usage(format!("--name: {error}")))?;
    let label = |text: &String| {
        let (key, value) = text.split_once('=').ok_or_else(|| Failure::usage(format!("--label {text}: KEY=VALUE")))?;
        Ok((key.to_owned(), value.to_owned()))
    };
    let state = args.state.open()?;
    let _lock = state.lock().map_err(failure)?;
    let wanted = name.clone();
    let wish = Join {
        token: String::new(),
        name,
        public_key: String::new(),
        labels: args.labels.iter().map(label).collect::<Result<BTreeMap<_, _>, Failure>>()?,
        address: args.address.as_deref().map(|host| place::server_address(host, args.port)),
        port: args.port,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        again: None,
    };
    let (before, key) = (state.membership().map_err(failure)?, state.key().map_err(failure)?);
    let runtime = running::runtime()?;
    let Some(before) = before else {
        let joined = runtime.block_on(narrows_agent::join(&hub, &token, wish, &key)).map_err(failure)?;
        state.join(&joined).map_err(failure)?;
        return greet(&joined, &wanted);
    };
    // Whoever starts a container need not know whether its host has joined before.
    let agent = &before.joined.agent;
    match runtime.block_on(narrows_agent::rejoin(&hub, &token, wish, &key, &before)).map_err(failure)? {
        Rejoined::Still => output::complain(&format!("{agent} belongs to the fleet of {hub} already")),
        Rejoined::Unheard(why) => {
            output::complain(&format!("{agent} belongs to the fleet of {hub} already; the hub does not answer: {why}"));
        }
        Rejoined::Anew(now) => {
            state.join_anew(&now).map_err(failure)?;
            output::complain(&format!("the hub did not know {agent} any more"));
            return greet(&now, &wanted);
        }
    }
    Ok(Exit::Valid)
}

fn greet(membership: &Membership, wanted: &Name) -> Result<Exit, Failure> {
    let (agent, hub) = (&membership.joined.agent, &membership.hub);
    if agent != wanted {
        output::complain(&format!("the name {wanted} is of another agent, now or before: its results stay its own"));
    }
    let next = "next: narrows agent run, or: systemctl enable --now narrows-agent";
    output::write(&format!("{agent} joined the fleet of {hub}\n{next}\n"), None)?;
    Ok(Exit::Valid)
}

fn status(args: &StatusArgs) -> Result<Exit, Failure> {
    let state = args.state.open()?;
    let Some(membership) = state.membership().map_err(failure)? else { return Err(failure(Error::NotJoined)) };
    let runs = match state.lock() {
        Ok(_) => false,
        Err(Error::Running(_)) => true,
        Err(error) => return Err(failure(error)),
    };
    let status = state.status().map_err(failure)?;
    let text = if args.json {
        let agent = &membership.joined.agent;
        format!("{}\n", serde_json::json!({ "agent": agent, "hub": membership.hub, "runs": runs, "status": status }))
    } else {
        let runs = if runs { "runs" } else { "does not run: narrows agent run" };
        format!(
            "{} of {}: {runs}\n{}",
            membership.joined.agent,
            membership.hub,
            status.as_ref().map_or_else(String::new, table)
        )
    };
    output::write(&text, None)?;
    Ok(Exit::Valid)
}

fn table(status: &Status) -> String {
    let clock = if status.clock_synchronised {
        format!("synchronised, {} ms", status.clock_error_ms)
    } else {
        "not synchronised".to_owned()
    };
    let spool = format!("{} results, {} octets, {} lost", status.spool_runs, status.spool_octets, status.spool_lost);
    let faults = if status.faults.is_empty() { "none".to_owned() } else { status.faults.join("\n         ") };
    let running = status.running.map_or_else(|| "nothing now".to_owned(), |run| run.to_string());
    let declined = status.declined.iter().map(|what| format!("\n         without: {what}"));
    let plan = status.plan_serial.to_string() + &declined.collect::<String>();
    format!("plan     {plan}\nruns     {running}\nspool    {spool}\nclock    {clock}\nfaults   {faults}\n")
}

/// What the user sees of the agent's errors.
#[expect(clippy::needless_pass_by_value, reason = "as `map_err` hands it over")]
fn failure(error: Error) -> Failure {
    let (exit, who) = match &error {
        Error::Unreachable { .. } | Error::Bus(_) => (Exit::Unreachable, "path"),
        Error::Refused(_) => (Exit::Refused, "peer"),
        Error::OtherKey(_) => (Exit::Refused, "caller"),
        Error::Protocol(_) => (Exit::Protocol, "peer"),
        Error::File { .. } | Error::Spool(_) | Error::Task(_) => (Exit::Failure, "host"),
        _ => (Exit::Usage, "caller"),
    };
    Failure { exit, who, text: error.to_string() }
}

/// What the host's owner allows: `/etc/narrows/agent.toml`, if it is there.
fn limits(config: Option<&PathBuf>) -> Result<narrows_agent::Limits, Failure> {
    let usual = PathBuf::from("/etc/narrows/agent.toml");
    match config.or_else(|| usual.exists().then_some(&usual)) {
        Some(path) => narrows_agent::Limits::open(path).map_err(|error| Failure::usage(error.to_string())),
        None => Ok(narrows_agent::Limits::default()),
    }
}

/// The state of an agent that has joined.
fn member(state: &State) -> Result<Membership, Failure> {
    state.membership().map_err(failure)?.ok_or_else(|| failure(Error::NotJoined))
}
