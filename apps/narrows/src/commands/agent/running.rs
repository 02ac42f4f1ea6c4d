//! `narrows agent run` and `leave`.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use narrows_agent::{Agent, Bounds, Clock, Departure, Former, Membership, Parts, State, connect};
use narrows_bus::{Bus, Key};
use tokio::runtime::Runtime;

use super::child::Children;
use super::clocks::Clocks;
use super::place::StateArgs;
use super::{failure, limits, member, server};
use crate::exit::{Exit, Failure};
use crate::{interrupt, output, service};

/// Work as an agent until Ctrl-C or SIGTERM: serve the other agents, and measure towards them
#[derive(Debug, clap::Args)]
pub(crate) struct RunArgs {
    /// What the owner of this host allows: rate, octets a day, targets, kinds [default:
    /// /etc/narrows/agent.toml, if it is there]
    #[arg(long = "config", id = "settings", value_name = "FILE")]
    config: Option<PathBuf>,
    #[command(flatten)]
    state: StateArgs,
}

pub(super) fn run(args: &RunArgs) -> Result<Exit, Failure> {
    let stop = interrupt::flag()?;
    let limits = limits(args.config.as_ref())?;
    let state = args.state.open()?;
    let _lock = state.lock().map_err(failure)?;
    let mut membership = member(&state)?;
    let key = state.key().map_err(failure)?;
    let program = std::env::current_exe();
    let program = program.map_err(|error| Failure::host(format!("where this program lies: {error}")))?;
    runtime()?.block_on(async {
        let folder = state.folder().to_owned();
        let measure = Arc::new(Children { program: program.clone(), folder, stop: Arc::clone(stop) });
        let serve = server::Serve { program, port: membership.port };
        loop {
            let Some(bus) = reached(&membership, key.clone(), stop).await? else { return Ok(Exit::Valid) };
            output::complain(&format!("agent {} of {}", membership.joined.agent, membership.hub));
            let parts = Parts {
                state: state.clone(),
                membership,
                limits: limits.clone(),
                version: env!("CARGO_PKG_VERSION").to_owned(),
                bus,
                clock: Arc::new(Clocks),
                measure: measure.clone(),
                bounds: Bounds::default(),
            };
            let agent = Agent::start(parts).map_err(failure)?;
            service::is_ready();
            let next = tokio::select! {
                () = serve.keep(&agent) => Next::Stop,
                () = stopped(stop) => Next::Stop,
                moved = agent.moved() => Next::Move(moved),
                error = agent.failed() => Next::Fail(error),
            };
            if !matches!(next, Next::Move(_)) {
                service::is_stopping();
            }
            // A part that failed may be the one that others wait for.
            let _ = tokio::time::timeout(FAREWELL, agent.stop()).await;
            membership = match next {
                Next::Move(moved) => moved,
                Next::Stop => return Ok(Exit::Valid),
                Next::Fail(error) => return Err(failure(error)),
            };
            output::complain("the bus has moved");
        }
    })
}

/// Why an agent ends.
enum Next {
    Stop,
    Move(Membership),
    Fail(narrows_agent::Error),
}

pub(super) fn leave(args: &StateArgs) -> Result<Exit, Failure> {
    let state: State = args.open()?;
    let _lock = state.lock().map_err(failure)?;
    let membership = member(&state)?;
    let key = state.key().map_err(failure)?;
    let left = runtime()?.block_on(async {
        let bus = connect(&membership, key).await?;
        let version = env!("CARGO_PKG_VERSION");
        narrows_agent::leave(&state, &membership, &*bus, version, Clocks.unix_ms()).await
    });
    let Departure { heard, former } = left.map_err(failure)?;
    if !heard {
        let agent = &membership.joined.agent;
        output::complain(&format!("the hub did not answer: revoke {agent} there"));
    }
    if let Some(Former { path, runs }) = former {
        let path = path.display();
        output::complain(&format!("the hub's record lacks {runs} results of this host, and gets them no more: {path}"));
    }
    Ok(Exit::Valid)
}

/// Two threads: one may wait for the disk while the other renews a lease.
pub(super) fn runtime() -> Result<Runtime, Failure> {
    let built = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    built.map_err(|error| Failure::host(format!("cannot start: {error}")))
}

/// The bus, as soon as it can be reached at all; `None`: we were asked to end.
async fn reached(membership: &Membership, key: Key, stop: &AtomicBool) -> Result<Option<Arc<dyn Bus>>, Failure> {
    loop {
        match connect(membership, key.clone()).await {
            Ok(bus) => return Ok(Some(bus)),
            Err(narrows_agent::Error::Bus(error)) => output::complain(&format!("{error}; trying again")),
            Err(error) => return Err(failure(error)),
        }
        tokio::select! {
            () = tokio::time::sleep(AGAIN) => {}
            () = stopped(stop) => return Ok(None),
        }
    }
}

async fn stopped(stop: &AtomicBool) {
    while !stop.load(Ordering::Relaxed) {
        tokio::time::sleep(LOOK).await;
    }
}

/// Longer than an agent takes to say farewell, while its bus answers.
const FAREWELL: Duration = Duration::from_secs(15);
const AGAIN: Duration = Duration::from_secs(5);
const LOOK: Duration = Duration::from_millis(50);
