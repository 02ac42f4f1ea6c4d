//! Methods, worlds and paths over whole scenarios, in one program: each program is linked with everything.

mod advice;
mod available;
mod bursts;
mod far_hosts;
mod hops;
mod hops_far;
mod hops_forecast;
mod limits;
mod passive;
mod queueing;
mod quick;
mod quick_mode;
mod streams;
mod transfer;
mod world;
mod world_laws;
