//! A bounded run of every fuzz target.

use anyhow::{Context, Result, bail};

use crate::shell::{quiet, root, say, shown};

/// `--seconds N` per target (default 30).
pub(crate) fn run(args: &[String]) -> Result<bool> {
    let seconds: u32 = match args {
        [] => 30,
        [flag, value] if flag == "--seconds" => value.parse().context("--seconds needs a number")?,
        _ => bail!("cargo xtask fuzz [--seconds N]"),
    };
    if quiet("cargo", &["fuzz", "--version"]).is_none() && !shown("cargo", &["install", "--locked", "cargo-fuzz"], &[])?
    {
        bail!("cargo-fuzz is not installed and could not be");
    }
    let mut targets: Vec<String> = std::fs::read_dir(root().join("fuzz/fuzz_targets"))?
        .filter_map(|entry| Some(entry.ok()?.path().file_stem()?.to_string_lossy().into_owned()))
        .collect();
    targets.sort();
    // Sanitizers are unstable flags; this lets a stable compiler take them.
    let env = [("RUSTC_BOOTSTRAP", "1")];
    let time = format!("-max_total_time={seconds}");
    let mut failed = 0;
    for target in &targets {
        let args = ["fuzz", "run", target.as_str(), "--", &time, "-print_final_stats=1", "-verbosity=0"];
        if !shown("cargo", &args, &env)? {
            say(&format!("fuzz: {target} FAILED; the input is under fuzz/artifacts/{target}\n"));
            failed += 1;
        }
    }
    say(&format!("{} passed, {failed} failed\n", targets.len() - failed));
    Ok(failed == 0)
}
