//! Measures tomography over drawn networks: `docs/results/tomography.md` is what it prints.
//!
//! `cargo run --release -p narrows-fleet --example tomography -- [GRAPHS] [FIRST_SEED] [HOSTS]`
//!
//! With a number of hosts, only networks of so many are drawn.

#![allow(clippy::print_stdout, reason = "a program that prints tables")]
#![allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "counts of hosts and runs")]

mod delays;
mod network;
mod proofs;
mod survey;
mod tables;
mod windows;

fn main() {
    let numbers: Vec<u64> = std::env::args().skip(1).filter_map(|text| text.parse().ok()).collect();
    let at = |place: usize| numbers.get(place).copied();
    let (graphs, seed, hosts) = (at(0).unwrap_or(200), at(1).unwrap_or(1), at(2).map(|hosts| hosts as usize));
    tables::print_surveys(graphs, seed, hosts);
    if hosts.is_none() {
        tables::print_windows(seed);
        tables::print_groups(seed);
        tables::print_proofs(seed);
    }
}
