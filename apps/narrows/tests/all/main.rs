//! The program as its users run it, in one test program: each is linked with everything.

mod available_lab;
mod call;
mod common;
mod contract;
mod documents;
mod evaluate;
mod from_here_lab;
mod gate;
mod help;
mod hops_lab;
mod host;
mod host_lab;
mod hostile_lab;
mod interrupt;
mod iperf3_lab;
mod lab;
mod lab_command;
mod passive;
mod passive_lab;
mod real_time;
mod refusals;
mod replay;
mod strangers;
mod throughput;
mod traffic;
mod watch;
