//! Every method, one file or folder each, and the slice that lists them.
//!
//! Command line, documentation, tests and fuzz targets read [`METHODS`]; adding a method is one module and one line here.

mod bulk;
pub mod burst;
#[cfg(test)]
mod chaos;
pub mod fac2;
#[cfg(test)]
mod fluid;
pub mod pathload;
pub mod pathrate;
pub mod pmtu;
pub mod rtt;
pub mod streams;
pub mod tcp;
pub mod udp;
pub mod window;

use crate::registry::Method;

/// Every method, one per line, in the order in which the main job asks.
pub const METHODS: &[&dyn Method] = &[
    &rtt::Rtt,
    &pmtu::Pmtu,
    &pathrate::Pathrate,
    &fac2::Fac2,
    &pathload::Pathload,
    &burst::Burst,
    &udp::Udp,
    &tcp::Tcp,
    &streams::Streams,
    &window::Window,
];

/// The method of that name.
pub fn find(name: &str) -> Option<&'static dyn Method> {
    METHODS.iter().copied().find(|method| method.info().name == name)
}
