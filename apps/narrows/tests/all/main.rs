//! The program as its users run it, in one test program: each is linked with everything.

mod alerts;
mod answers;
mod available_lab;
mod call;
mod common;
mod configuration;
mod contract;
mod documents;
mod evaluate;
#[cfg(feature = "fleet")]
mod fleet_commands;
#[cfg(feature = "fleet")]
mod fleet_containers;
#[cfg(feature = "fleet")]
mod fleet_cuts_lab;
#[cfg(feature = "fleet")]
mod fleet_delays_lab;
#[cfg(feature = "fleet")]
mod fleet_documents;
#[cfg(feature = "fleet")]
mod fleet_faults;
#[cfg(feature = "fleet")]
mod fleet_lab;
#[cfg(feature = "fleet")]
mod fleet_lies;
#[cfg(feature = "fleet")]
mod fleet_move_lab;
mod from_here_lab;
mod gate;
mod help;
mod history;
mod hops_lab;
mod host;
mod host_lab;
mod hostile_lab;
mod interrupt;
mod iperf3_lab;
mod lab;
mod lab_command;
mod leased;
mod links;
mod passive;
mod passive_lab;
mod pasted;
mod pasted_lab;
mod real_time;
mod refusals;
mod replay;
mod reports;
mod screens;
mod service;
mod strangers;
mod throughput;
mod traffic;
mod watch;
mod watch_api;
#[cfg(feature = "fleet")]
mod watch_faults;
#[cfg(feature = "fleet")]
mod watch_flapping_lab;
mod watch_hosts;
mod watch_kills;
