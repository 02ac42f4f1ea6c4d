//! The spool of a member of before. Its results are that member's: the bus takes them from nobody
//! else, and their numbers mean nothing to the record of another one.

use std::path::PathBuf;

use narrows_fleet::message::Joined;

use crate::error::{Error, Result};
use crate::spool::{Bounds, Spool, Waiting};
use crate::state::State;

/// Results that nobody can send any more, and where they are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Former {
    /// The file.
    pub path: PathBuf,
    /// How many results are in it.
    pub runs: u64,
}

/// The spool of this member. One that another member of this host left is put aside, with all that
/// it remembers: orders of another hub have other serials.
pub(crate) fn own(state: &State, joined: &Joined, bounds: Bounds) -> Result<(Spool, Option<Former>)> {
    let spool = Spool::open(&state.path(SPOOL), bounds)?;
    let owner = format!("{} {}", joined.hub_key, joined.agent);
    let of_before = match spool.owner()? {
        Some(other) => other != owner,
        // A version of before wrote no owner: its results say whose they are.
        None => spool.agent()?.is_some_and(|agent| agent != joined.agent),
    };
    if !of_before {
        spool.set_owner(&owner)?;
        return Ok((spool, None));
    }
    let former = put_aside(state, spool)?;
    let spool = Spool::open(&state.path(SPOOL), bounds)?;
    spool.set_owner(&owner)?;
    Ok((spool, former))
}

/// Gives the file of a spool another name, or removes it if nothing waits in it.
pub(crate) fn put_aside(state: &State, spool: Spool) -> Result<Option<Former>> {
    let Waiting { runs, .. } = spool.waiting()?;
    // Closed, it is one file.
    drop(spool);
    let file = state.path(SPOOL);
    if runs == 0 {
        std::fs::remove_file(&file).map_err(|error| Error::file(&file, error))?;
        return Ok(None);
    }
    let names = (1_u32..).map(|number| state.path(&format!("spool-{number}.db")));
    let path = names.into_iter().find(|path| !path.exists()).expect("there are more numbers than files");
    std::fs::rename(&file, &path).map_err(|error| Error::file(&file, error))?;
    Ok(Some(Former { path, runs }))
}

/// The spool of the present member.
pub(crate) const SPOOL: &str = "spool.db";
