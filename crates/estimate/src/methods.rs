//! Every method, one file or folder each, and the slice that lists them.
//!
//! Command line, documentation, tests and fuzz targets read [`METHODS`]; adding a method is one module and one line here.

pub mod fac2;
pub mod pathload;

use crate::registry::Method;

/// Every method.
pub const METHODS: &[&dyn Method] = &[&fac2::Fac2, &pathload::Pathload];

/// The method of that name.
pub fn find(name: &str) -> Option<&'static dyn Method> {
    METHODS.iter().copied().find(|method| method.info().name == name)
}
