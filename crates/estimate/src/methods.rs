//! Every method, one file or folder each, and the slice that lists them.
//!
//! Command line, documentation, tests and fuzz targets read [`METHODS`]; adding a method is one module and one line here.

mod bulk;
mod burst;
#[cfg(test)]
mod chaos;
#[cfg(test)]
mod fluid;
mod streams;
mod tcp;
mod udp;
mod window;

use crate::registry::Method;

/// Every method.
pub const METHODS: &[&dyn Method] = &[&burst::Burst, &udp::Udp, &tcp::Tcp, &streams::Streams, &window::Window];

/// The method of that name.
pub fn find(name: &str) -> Option<&'static dyn Method> {
    METHODS.iter().copied().find(|method| method.info().name == name)
}
