//! What shells are told when they ask for the next word: `narrows completions`.

use clap::Command;
use clap_complete::engine::{ArgValueCandidates, CompletionCandidate};
use narrows_methods::METHODS;

use crate::config::{self, Scope};

/// Set by the scripts of `narrows completions`: the program then completes instead of running.
pub(crate) const VARIABLE: &str = "NARROWS_COMPLETE";

/// Answers a shell that asks; returns where none does.
pub(crate) fn answer(command: fn() -> Command) {
    clap_complete::CompleteEnv::with_factory(command).var(VARIABLE).complete();
}

/// Methods, with what they are for.
pub(crate) fn methods() -> ArgValueCandidates {
    ArgValueCandidates::new(|| {
        let all = METHODS.iter().map(|method| method.info());
        all.map(|info| CompletionCandidate::new(info.name).help(Some(info.summary.into()))).collect()
    })
}

/// Labs that are up.
pub(crate) fn labs() -> ArgValueCandidates {
    ArgValueCandidates::new(|| {
        narrows_lab::labs().into_iter().map(|lab| CompletionCandidate::new(lab.id.to_string())).collect()
    })
}

/// Interfaces of this host.
pub(crate) fn interfaces() -> ArgValueCandidates {
    ArgValueCandidates::new(|| {
        let entries = std::fs::read_dir("/sys/class/net").into_iter().flatten().flatten();
        let mut names: Vec<_> = entries.map(|entry| entry.file_name()).collect();
        names.sort();
        names.into_iter().map(CompletionCandidate::new).collect()
    })
}

/// Hosts that files of settings have a table of.
pub(crate) fn hosts() -> ArgValueCandidates {
    ArgValueCandidates::new(|| {
        // Who only wants a word completed does not want to hear of a broken file.
        let settings = config::settings(&config::paths()).unwrap_or_default();
        let mut names: Vec<String> = settings
            .into_iter()
            .filter_map(|setting| match setting.scope {
                Scope::Host(name) => Some(name),
                Scope::Command(_) | Scope::Any => None,
            })
            .collect();
        names.sort();
        names.dedup();
        names.into_iter().map(CompletionCandidate::new).collect()
    })
}
