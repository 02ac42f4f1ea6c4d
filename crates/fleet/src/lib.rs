//! What a fleet decides: who measures which path when, which runs exclude each other, and which
//! link holds paths back.
//!
//! Everything here is pure. Time is an argument, chance comes from a seed, and no file, socket or
//! thread is touched. `docs/design/fleet.md` has the reasons, and what each part does when another
//! one fails.
//!
//! * [`config`]: sites, groups, tests and alerts from TOML; pairs out.
//! * [`alert`]: runs and rules in; alerts out, one for the paths that one link holds back.
//! * [`allowance`]: how many octets a path gets whose light runs find nothing.
//! * [`keys`]: what a loading run excludes.
//! * [`mesh`]: which light runs each agent starts, computed alone.
//! * [`timetable`]: when each loading run may start: the first barrier against collisions.
//! * [`lease`]: who may load a key now: the second barrier.
//! * [`clock`]: the clocks of hosts and hub.
//! * [`message`]: what agents and hub say to each other.
//! * [`topology`]: traces in, links, routes and segments out.
//! * [`tomography`]: values of paths in, which link limits them out, and what to measure next.
//! * [`sharing`]: whether slow paths share a link: the fewest that explain them, delays, a proof by
//!   load.

pub mod alert;
pub mod allowance;
pub mod clock;
pub mod config;
pub mod keys;
pub mod lease;
pub mod mesh;
pub mod message;
pub mod sharing;
pub mod timetable;
pub mod tomography;
pub mod topology;
