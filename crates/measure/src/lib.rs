//! What users get: for each metric the method that answers unless the caller names another.
//!
//! | module | methods | result | unit |
//! |---|---|---|---|
//! | [`rtt`] | `rtt` | round-trip time | ns |
//! | [`pmtu`] | `pmtu` | largest packet that passes whole | IP octets |
//! | [`capacity`] | `capacity`, `pathrate`, `signature` | rate of the narrow link | bit/s, IP |
//! | [`available`] | `slope` | what cross traffic leaves free | bit/s, IP |
//! | [`follow`] | `track` | the same, again and again | bit/s, IP |
//! | [`hops`] | `hops` | capacity, latency and loss of each hop | bit/s (IP), ns, share |
//! | [`burst`] | `burst` | largest burst without loss | IP octets |
//! | [`shaper`] | `shaper` | rate and depth of a token bucket | bit/s (IP), octets |
//! | [`udp`] | `udp` | rate of UDP at little loss | bit/s, UDP payload |
//! | [`tcp`] | `tcp` | rate of one TCP connection | bit/s, TCP payload |
//! | [`streams`] | `streams` | fewest TCP connections that fill the path | count |
//! | [`window`] | `window` | smallest TCP window that fills the path | octets |
//! | [`answers`] | `answers` | capacity towards a host without our server | bit/s, IP |
//! | [`asymprobe`] | `asymprobe` | capacity of both directions, from one end | bit/s, IP |
//!
//! A method is a state machine: it gets facts about the path and reports of its probes, and gives
//! an outcome (a value with an interval, a bound, or *inconclusive* with a reason) with caveats. It
//! reads no clock and opens no socket.
//!
//! Each module's documentation is the method's manual, the `.md` file beside it: its assumptions,
//! its formula, and under *Fails when* what is seen if an assumption does not hold. Parameters are
//! in `Params`. A constant stands in the file that uses it, and says where its value comes from.
//!
//! `narrows_methods` lists the methods; its module `job` decides which of them run, and in which
//! order. To add a method, follow the recipe in `CONTRIBUTING.md`; start from `rtt.rs`.

pub mod answers;
pub mod asymprobe;
pub mod available;
pub mod burst;
pub mod capacity;
pub mod follow;
pub mod hops;
pub mod pmtu;
pub mod rtt;
pub mod shaper;
pub mod streams;
pub mod tcp;
pub mod udp;
pub mod window;
