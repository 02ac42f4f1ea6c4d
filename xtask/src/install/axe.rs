//! axe-core, which judges whether everybody can use the pages: one file that tests run in the
//! browser. It is no part of the program.

use std::fs;

use anyhow::{Context, Result};

use super::found;
use crate::shell::{quiet, root, say};

/// What tests name it.
pub(super) const NAME: &str = "axe-core";
const PACKAGE: &str = "axe-core@4.14.1";
/// As `npm view axe-core@4.14.1 dist.integrity` says.
const INTEGRITY: &str =
    "sha512-FHfa+lmNjQZfJz1q8wKqIDwC6DExcHt/pkjNQb09a3NPjCKg2rhu5qb2S4r76ASyFNNtuFooJpZe37OgudVGtQ==";

/// Puts it into `target/axe-core`, unless it is there; whether it is there then.
pub(super) fn fetch() -> Result<bool> {
    let folder = root().join("target/axe-core");
    if folder.join("axe.min.js").is_file() {
        return Ok(true);
    }
    if !found("npm") {
        say(&format!("{NAME} is not there, and neither is npm, which fetches it\n"));
        return Ok(false);
    }
    fs::create_dir_all(&folder)?;
    let place = folder.to_string_lossy();
    let Some(said) = quiet("npm", &["pack", "--json", "--pack-destination", &place, PACKAGE]) else {
        say(&format!("{NAME} could not be fetched\n"));
        return Ok(false);
    };
    let said: serde_json::Value = serde_json::from_str(&said).context("npm pack --json")?;
    if said[0]["integrity"] != INTEGRITY {
        say(&format!("{PACKAGE} is not the file that the tests know\n"));
        return Ok(false);
    }
    let archive = folder.join(said[0]["filename"].as_str().context("npm names the file")?);
    let args = ["xzf", &archive.to_string_lossy(), "-C", &place, "--strip-components=1", "package/axe.min.js"];
    Ok(quiet("tar", &args).is_some())
}
