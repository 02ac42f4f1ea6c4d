//! Where a demonstration runs: between two kernels, or in the simulator and why.

use std::io;

use narrows_lab::{StartOptions, WhyNot};
use narrows_scenario::{PathDirection, Scenario};

use super::DemoArgs;
use crate::exit::Failure;
use crate::progress::Progress;

/// Where it runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Place {
    /// Over real sockets.
    BetweenKernels,
    /// Played in virtual time, for this reason.
    Simulator(String),
}

impl Place {
    /// Of this machine, now. Unless the user insists, it must be able to play the path in time.
    pub(super) fn choose(
        args: &DemoArgs,
        scenario: &Scenario,
        start: StartOptions,
        progress: &Progress,
    ) -> Result<Self, Failure> {
        if args.simulate {
            return Ok(Self::Simulator("asked for with --simulate".to_owned()));
        }
        match narrows_lab::available() {
            Ok(()) if args.real => return Ok(Self::BetweenKernels),
            Ok(()) => {}
            Err(why) if args.real => return Err(super::super::emulate::failure(&why.into())),
            Err(why) => return Ok(Self::Simulator(missing(&why, nix::unistd::Uid::effective().is_root()))),
        }
        if !narrows_lab::has_processors() {
            return Ok(Self::Simulator("one processor cannot both play the path and measure it.".to_owned()));
        }
        progress.say("checking whether this machine can keep time");
        let fitness = narrows_lab::check_fitness(scenario, start);
        match fitness.map_err(|error| super::super::emulate::failure(&error))? {
            Ok(()) => Ok(Self::BetweenKernels),
            Err(unfit) => Ok(Self::Simulator(late(&unfit.to_string(), load().as_deref()))),
        }
    }

    /// The first line that the user sees; none where it says what the user has asked for.
    pub(super) fn first_line(&self, args: &DemoArgs, scenario: &Scenario) -> Option<String> {
        match self {
            Self::BetweenKernels => {
                let count = scenario.hops(PathDirection::Forward).len();
                let hops = format!("{} hop{}", word(count), if count == 1 { "" } else { "s" });
                let seconds = seconds(args);
                Some(format!("Demo: {hops} between two kernels on this machine, about {seconds} s."))
            }
            Self::Simulator(_) if args.simulate => None,
            Self::Simulator(why) => Some(format!("Demo in the simulator: {why}")),
        }
    }
}

/// What it usually takes.
fn seconds(args: &DemoArgs) -> u32 {
    match (args.quick, args.thorough) {
        (true, _) => 6,
        (_, true) => 60,
        _ => 20,
    }
}

fn missing(why: &WhyNot, is_root: bool) -> String {
    let (what, error) = match why {
        WhyNot::TunDevice(error) => ("no /dev/net/tun", error),
        WhyNot::TunInNamespace(error) => ("no TUN device in a namespace", error),
        WhyNot::NetworkNamespace(error) | WhyNot::UserNamespace(error) => ("no user namespace", error),
        other => return other.to_string(),
    };
    let text = error.to_string();
    let text = text.split(" (os error").next().unwrap_or_default();
    let denied = error.kind() == io::ErrorKind::PermissionDenied && !is_root;
    format!("{what} ({text}){}", if denied { ". Real sockets: sudo narrows demo" } else { "." })
}

fn late(what: &str, load: Option<&str>) -> String {
    let load = load.map_or_else(String::new, |load| format!("; load {load}"));
    format!("this machine cannot keep time now ({what}{load}). --real insists.")
}

/// Programs that wanted a processor in the last minute.
fn load() -> Option<String> {
    let text = std::fs::read_to_string("/proc/loadavg").ok()?;
    let load: f64 = text.split_whitespace().next()?.parse().ok()?;
    Some(format!("{load:.1}"))
}

fn word(count: usize) -> String {
    const WORDS: [&str; 9] = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine"];
    let known = count.checked_sub(1).and_then(|index| WORDS.get(index));
    known.map_or_else(|| count.to_string(), |word| (*word).to_owned())
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Words {
        #[command(flatten)]
        args: DemoArgs,
    }

    fn args(words: &[&str]) -> DemoArgs {
        Words::parse_from([&["demo"], words].concat()).args
    }

    fn built_in() -> Scenario {
        Scenario::from_toml(super::super::BUILT_IN).expect("the built-in scenario")
    }

    #[test]
    fn the_first_line_says_where_and_why() {
        let line = |place: Place, words: &[&str]| place.first_line(&args(words), &built_in()).unwrap_or_default();
        assert_eq!(
            line(Place::BetweenKernels, &[]),
            "Demo: three hops between two kernels on this machine, about 20 s."
        );
        let denied = || io::Error::from_raw_os_error(1);
        assert_eq!(
            line(Place::Simulator(missing(&WhyNot::NetworkNamespace(denied()), false)), &[]),
            "Demo in the simulator: no user namespace (Operation not permitted). Real sockets: sudo narrows demo"
        );
        assert_eq!(
            line(Place::Simulator(late("1 % of packets 1.7 ms late, limit 0.1 ms", Some("3.9"))), &[]),
            "Demo in the simulator: this machine cannot keep time now (1 % of packets 1.7 ms late, limit 0.1 ms; \
             load 3.9). --real insists."
        );
        assert_eq!(line(Place::Simulator("asked for".to_owned()), &["--simulate"]), "");
    }

    /// Nobody is told to use rights that would not help.
    #[test]
    fn sudo_is_named_only_where_it_helps() {
        let gone = || io::Error::from_raw_os_error(2);
        assert_eq!(missing(&WhyNot::TunDevice(gone()), false), "no /dev/net/tun (No such file or directory).");
        let denied = WhyNot::TunDevice(io::Error::from_raw_os_error(13));
        assert_eq!(missing(&denied, true), "no /dev/net/tun (Permission denied).");
    }

    /// Where it cannot be refused for lack of rights, what is asked for is what is chosen.
    #[test]
    fn what_is_asked_for_needs_no_look_at_the_machine() {
        let place = Place::choose(&args(&["--simulate"]), &built_in(), StartOptions::default(), &Progress::new(true));
        assert_eq!(place.ok(), Some(Place::Simulator("asked for with --simulate".to_owned())));
    }
}
