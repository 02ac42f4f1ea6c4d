//! Methods, worlds and paths over whole scenarios, in one program: each program is linked with
//! everything.

mod advice;
mod available;
mod bursts;
mod capacity;
mod cross_traffic;
mod hops;
mod hops_forecast;
mod hops_remote;
mod job;
mod limits;
mod ns3;
mod passive;
mod queueing;
mod quick;
mod quick_mode;
mod remote_hosts;
mod streams;
mod transfer;
mod udp;
mod world;
mod world_laws;
