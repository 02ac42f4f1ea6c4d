//! What labs leave behind whose processes live no more.

use std::collections::BTreeSet;
use std::fs;
use std::net::Ipv4Addr;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use super::process::process_began;
use super::{LabState, directory, files, is_ours, log_file, one_at_a_time, owner};
use crate::namespace::{NAMED, remove};

/// Removes what labs left behind whose processes live no more (killed, or crashed): files of state
/// and named namespaces. Everything else went with the process. Labs inside which programs still
/// run stay as they are, for [`programs_in`] to find them. Returns the labs' names.
pub fn clean_dead_labs() -> Vec<String> {
    let _alone = one_at_a_time();
    let mut cleaned = BTreeSet::new();
    let mut owned = BTreeSet::new();
    for (file, state) in files() {
        if state.is_alive() || !programs_in(&state).is_empty() {
            owned.insert(state.id.to_string());
            continue;
        }
        for name in &state.namespaces {
            // Only names of ours, whatever the file says.
            if owner(name).is_some() {
                remove(&Path::new(NAMED).join(name));
            }
        }
        if fs::remove_file(&file).is_ok() {
            let _ = fs::remove_file(log_file(&state.id));
            cleaned.insert(state.id.to_string());
        }
    }
    remove_scraps();
    let entries = fs::read_dir(NAMED).into_iter().flatten().filter_map(Result::ok);
    for name in entries.filter_map(|entry| entry.file_name().into_string().ok()) {
        // A lab's file is made before its namespaces: looked at afresh, since one may have begun
        // meanwhile.
        let Some(id) = owner(&name).filter(|id| !owned.contains(*id)) else {
            continue;
        };
        let lives = files().iter().any(|(_, state)| state.id.as_str() == id && state.is_alive());
        if !lives && remove(&Path::new(NAMED).join(&name)) {
            cleaned.insert(id.to_owned());
        }
    }
    cleaned.into_iter().collect()
}

/// Removes files that were being written when their process was killed.
fn remove_scraps() {
    if !is_ours(&directory()) {
        return;
    }
    let entries = fs::read_dir(directory()).into_iter().flatten().filter_map(Result::ok);
    for path in entries.map(|entry| entry.path()) {
        let dead = path
            .file_name()
            .and_then(|name| writer(name.to_str()?))
            .is_some_and(|process| process_began(process).is_none());
        if dead {
            // What is gone already is fine.
            let _ = fs::remove_file(&path);
        }
    }
}

/// The process that writes a draft (`<id>.<process>.draft`), or the log of a lab without a name yet
/// (`up_<process>.log`).
pub(super) fn writer(file: &str) -> Option<u32> {
    let draft = file.strip_suffix(".draft").and_then(|name| name.rsplit_once('.')).map(|(_, process)| process);
    let log = || file.strip_prefix("up_")?.strip_suffix(".log");
    draft.or_else(log)?.parse().ok()
}

/// Processes that live in a lab's namespaces, without the one that holds it; also in those of a lab
/// whose holder is dead.
pub fn programs_in(state: &LabState) -> Vec<u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().filter_map(Result::ok);
    let processes = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let mark = state.mark();
    let lives_inside = |process: &u32| {
        let namespace = fs::metadata(format!("/proc/{process}/ns/net"));
        *process != state.process
            && namespace.is_ok_and(|namespace| state.numbers.contains(&namespace.ino()))
            // A namespace that is gone leaves its number to another, which may be anybody's.
            && fs::read_to_string(format!("/proc/{process}/net/fib_trie")).is_ok_and(|table| bears(&table, mark))
    };
    processes.filter(lives_inside).collect()
}

/// Every lab of this user whose holder is dead, in order of their names: programs may still run
/// inside.
pub fn dead_labs() -> Vec<LabState> {
    let found = files().into_iter().map(|(_, state)| state);
    found.filter(|state| !state.is_alive()).collect()
}

/// Whether a namespace's table of addresses (`fib_trie`) has both.
pub(super) fn bears(table: &str, mark: [Ipv4Addr; 2]) -> bool {
    let has = |address: Ipv4Addr| {
        let text = address.to_string();
        table.split_whitespace().any(|word| word == text)
    };
    mark.into_iter().all(has)
}
