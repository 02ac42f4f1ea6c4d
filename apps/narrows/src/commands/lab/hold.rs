//! `narrows lab hold`: the process behind `narrows lab up`. It keeps the lab until it is asked to
//! end.

use std::sync::atomic::Ordering;
use std::time::Duration;

use narrows_lab::Lab;

use super::{BuildArgs, failure};
use crate::commands::simulate;
use crate::exit::{Exit, Failure};
use crate::{interrupt, output};

#[derive(Debug, clap::Args)]
pub(crate) struct HoldArgs {
    #[command(flatten)]
    build: BuildArgs,
}

/// How often it looks whether it should end, and every how many looks it tells how its links do.
const POLL: Duration = Duration::from_millis(50);
const POLLS_PER_STATUS: u32 = 40;

pub(super) fn run(args: &HoldArgs) -> Result<Exit, Failure> {
    let stop = interrupt::flag()?;
    // A session of its own, so that the terminal's interrupts and hang-ups are not its.
    nix::unistd::setsid().map_err(|error| Failure::host(format!("leaving the terminal's session: {error}")))?;
    let scenario = simulate::load(&args.build.scenario)?;
    let mut lab = Lab::up(&scenario, args.build.options(true)?).map_err(|error| failure(&error))?;
    let mut flows = super::flows::start(&lab)?;
    lab.publish_ready().map_err(|error| failure(&error))?;
    let mut polls = 0;
    while !stop.load(Ordering::Relaxed) {
        interrupt::nap(POLL);
        polls += 1;
        if polls % POLLS_PER_STATUS == 0 {
            lab.publish_status(flows.status()).map_err(|error| failure(&error))?;
        }
    }
    for line in flows.end() {
        output::complain(&line);
    }
    let timing_report = lab.down().map_err(|error| failure(&error))?;
    output::complain(&format!("the links: {timing_report}"));
    Ok(Exit::Valid)
}
