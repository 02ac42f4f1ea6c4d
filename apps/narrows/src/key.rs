//! The shared key's file.

use std::path::Path;

use narrows_wire::Psk;

use crate::exit::Failure;

/// Reads a key; refuses a file that others can read.
pub(crate) fn read(path: &Path) -> Result<Psk, Failure> {
    narrows_net::serve::read_psk_file(path).map_err(|error| Failure::usage(error.to_string()))
}
