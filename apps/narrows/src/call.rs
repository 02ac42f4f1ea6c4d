//! The command line before it is parsed: `narrows HOST` is `narrows test HOST`.

use std::ffi::OsString;
use std::net::ToSocketAddrs;

use clap::Command;
use clap::error::{ContextKind, ErrorKind};

use crate::exit::Failure;

/// What a call without words prints, to standard error. It ends with the code of a wrong call, 2:
/// nothing was measured, and a script whose variable was empty must notice. <https://clig.dev> asks
/// for concise help where arguments are missing, and keeps zero for success.
pub(crate) const FIRST_STEPS: &str = "\
narrows demo        try it: measures a path on this machine whose truth is known
narrows HOST        what the path to HOST carries, and what holds it back
narrows serve       run this on HOST, so that everything can be measured
narrows hops HOST   the path hop by hop, to any host
narrows --help      all commands
";

/// The words with `test` put in front of a host that stands in the place of a command.
pub(crate) fn completed(
    mut words: Vec<OsString>,
    command: &Command,
    resolves: impl Fn(&str) -> bool,
) -> Result<Vec<OsString>, Failure> {
    let is_verbose = |word: &OsString| {
        word == "--verbose" || word.to_str().and_then(|word| word.strip_prefix("-v")).is_some_and(only_v)
    };
    let Some(at) = (1..words.len()).find(|&at| !is_verbose(&words[at])) else { return Ok(words) };
    let Some(word) = words[at].to_str() else { return Ok(words) };
    if word.starts_with('-') || word == "help" || command.find_subcommand(word).is_some() {
        return Ok(words);
    }
    #[cfg(not(feature = "fleet"))]
    if let Some((_, feature)) = OF_FEATURES.iter().find(|(name, _)| *name == word) {
        return Err(Failure::without(&format!("`narrows {word}`"), feature));
    }
    if !looks_like_a_host(word) {
        if is_near_miss(word, command) {
            // Clap says which command was meant.
            return Ok(words);
        }
        if !resolves(word) {
            let text = format!("{word:?} is neither a command (see narrows --help) nor a host whose name resolves");
            return Err(Failure::usage(text));
        }
    }
    words.insert(at, OsString::from("test"));
    Ok(words)
}

/// Commands that some builds lack, and the feature that has each. The fleet has the other features
/// with it.
#[cfg(not(feature = "fleet"))]
const OF_FEATURES: &[(&str, &str)] = &[
    ("agent", "fleet"),
    ("alerts", "watch"),
    ("fleet", "fleet"),
    ("history", "watch"),
    ("hub", "fleet"),
    ("watch", "watch"),
];

/// A name that the resolver knows.
pub(crate) fn resolves(word: &str) -> bool {
    (word, 0).to_socket_addrs().is_ok_and(|mut addresses| addresses.next().is_some())
}

fn only_v(rest: &str) -> bool {
    rest.bytes().all(|octet| octet == b'v')
}

/// An address, or a name with a domain.
fn looks_like_a_host(word: &str) -> bool {
    word == "localhost" || (word.contains(['.', ':']) && !word.contains('/'))
}

/// Clap would ask whether another command was meant.
fn is_near_miss(word: &str, command: &Command) -> bool {
    let tried = command.clone().try_get_matches_from([command.get_name(), word]);
    tried.is_err_and(|error| {
        error.kind() == ErrorKind::InvalidSubcommand && error.get(ContextKind::SuggestedSubcommand).is_some()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn command() -> Command {
        let subcommands = ["test", "hops", "available", "demo"].map(Command::new);
        Command::new("narrows").subcommand_required(true).subcommands(subcommands)
    }

    /// What the words become where only "printer" and "tset" resolve.
    fn read(words: &str) -> Result<String, Failure> {
        let words = words.split(' ').map(OsString::from).collect();
        let words = completed(words, &command(), |word| ["printer", "tset"].contains(&word))?;
        Ok(words.iter().map(|word| word.to_str().expect("our words are text")).collect::<Vec<_>>().join(" "))
    }

    #[test]
    fn a_host_in_place_of_a_command_is_tested() {
        for host in ["far.example", "192.0.2.7", "2001:db8::1", "fe80::1%eth0", "localhost", "printer"] {
            let words = format!("narrows -vv {host} --json");
            assert_eq!(read(&words).unwrap(), format!("narrows -vv test {host} --json"));
        }
    }

    #[test]
    fn commands_flags_and_near_misses_stay() {
        for words in ["narrows", "narrows hops x", "narrows --help", "narrows -V", "narrows help", "narrows tset"] {
            assert_eq!(read(words).unwrap(), words);
        }
    }

    #[test]
    fn what_is_neither_is_the_callers_to_mend() {
        for words in ["narrows nowhere-at-all", "narrows scenarios/demo.toml"] {
            let failure = read(words).expect_err(words);
            assert_eq!((failure.exit.code(), failure.who), (2, "caller"), "{words}");
        }
    }
}
