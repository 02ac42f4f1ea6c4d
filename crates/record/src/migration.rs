//! Versions of the schema, one step after the other.

use sha2::{Digest, Sha256};

use crate::error::{Error, Result};
use narrows_units::hex;

/// The steps of a database: what makes version N out of version N - 1, from N = 1 on.
pub(crate) type Steps = &'static [&'static str];

/// SHA-256 of a step, as the database keeps it.
pub(crate) fn checksum(step: &str) -> String {
    hex::to_text(&Sha256::digest(step))
}

/// The steps that a database with these versions and checksums lacks, with their versions.
pub(crate) fn missing(steps: Steps, found: &[(i32, String)]) -> Result<Vec<(i32, &'static str)>> {
    let known: Vec<(i32, &'static str)> = (1..).zip(steps.iter().copied()).collect();
    if let Some((newer, _)) = found.iter().find(|(version, _)| known.iter().all(|(known, _)| known != version)) {
        let last = known.len();
        return Err(Error::Foreign(format!(
            "it has version {newer}, this program knows up to {last}: use a newer one"
        )));
    }
    for (version, sum) in found {
        let step = known.iter().find(|(known, _)| known == version);
        if step.is_none_or(|(_, step)| checksum(step) != *sum) {
            return Err(Error::Foreign(format!("its version {version} was made by another step than this program's")));
        }
    }
    Ok(known.into_iter().skip(found.len()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_done_once_and_in_order() {
        const STEPS: Steps = &["one", "two", "three"];
        let done = |versions: &[(i32, &str)]| -> Vec<(i32, String)> {
            versions.iter().map(|(version, step)| (*version, checksum(step))).collect()
        };
        assert_eq!(missing(STEPS, &[]).unwrap(), [(1, "one"), (2, "two"), (3, "three")]);
        assert_eq!(missing(STEPS, &done(&[(1, "one"), (2, "two")])).unwrap(), [(3, "three")]);
        for (found, said) in [(done(&[(1, "one"), (4, "four")]), "version 4"), (done(&[(1, "other")]), "another step")]
        {
            let error = missing(STEPS, &found).unwrap_err().to_string();
            assert!(error.contains(said), "{error}");
        }
    }
}
