//! One file per subcommand.

#[cfg(feature = "watch")]
pub(crate) mod alerts;
pub(crate) mod available;
pub(crate) mod burst;
pub(crate) mod config;
pub(crate) mod demo;
pub(crate) mod diff;
pub(crate) mod emulate;
pub(crate) mod evaluate;
#[cfg(feature = "watch")]
pub(crate) mod history;
pub(crate) mod hops;
pub(crate) mod host;
pub(crate) mod lab;
pub(crate) mod manual;
pub(crate) mod measure;
pub(crate) mod methods;
pub(crate) mod passive;
pub(crate) mod replay;
pub(crate) mod serve;
pub(crate) mod simulate;
pub(crate) mod streams;
pub(crate) mod test;
pub(crate) mod throughput;
pub(crate) mod traffic;
