//! How near the default answer for available bandwidth comes to what its trains could tell.

use std::path::PathBuf;

use anyhow::{Context, Result, bail};

use crate::provenance::Provenance;
use crate::shell::{root, shown, watched};

/// `--write FILE`; the rest goes to the example, which says what it takes.
pub(crate) fn run(args: &[String]) -> Result<bool> {
    let mut rest: Vec<&str> = args.iter().map(String::as_str).collect();
    let mut file = None;
    if let Some(at) = rest.iter().position(|arg| *arg == "--write") {
        if at + 1 >= rest.len() {
            bail!("--write needs a file");
        }
        rest.remove(at);
        file = Some(PathBuf::from(rest.remove(at)));
    }
    let build = ["build", "--release", "--locked", "--workspace", "--all-features", "--example", "efficiency"];
    if !shown("cargo", &build, &[])? {
        return Ok(false);
    }
    let made = Provenance::begins(&format!("cargo xtask efficiency {}", args.join(" ")));
    let (good, tables) = watched("target/release/examples/efficiency", &rest)?;
    if let (true, Some(file)) = (good, file) {
        let page = format!(
            "# How much of what its trains could tell the default answer gets\n\n{}\n{RULES}\n{}\n{tables}",
            made.lines(),
            summary(&tables)
        );
        std::fs::write(root().join(&file), page).with_context(|| file.display().to_string())?;
    }
    Ok(good)
}

/// The median ratio of all rows that have one, and of those of each kind of hosts.
fn summary(tables: &str) -> String {
    let mut of_hosts: Vec<(&str, Vec<f64>)> = Vec::new();
    for row in tables.lines() {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let Some((hosts, ratio)) = cells.get(HOSTS).zip(cells.get(RATIO).and_then(|cell| cell.parse().ok())) else {
            continue;
        };
        match of_hosts.iter_mut().find(|(known, _)| known == hosts) {
            Some((_, ratios)) => ratios.push(ratio),
            None => of_hosts.push((hosts, vec![ratio])),
        }
    }
    let median = |ratios: &[f64]| narrows_stat::median(ratios).unwrap_or(f64::NAN);
    let all: Vec<f64> = of_hosts.iter().flat_map(|(_, ratios)| ratios.iter().copied()).collect();
    let parts: Vec<String> = of_hosts.iter().map(|(hosts, ratios)| format!("{hosts} {:.2}", median(ratios))).collect();
    format!("**The median ratio is {:.2}, of {} rows**; by hosts: {}.\n", median(&all), all.len(), parts.join(", "))
}

/// Places of two columns in a row that is cut at its bars.
const HOSTS: usize = 2;
const RATIO: usize = 8;

/// How to read the table.
const RULES: &str = "\
This page says how far the default estimate of available bandwidth (`available`) is from the best that its own trains allow. The observer
(*oracle*) knows exactly what was free on the path while the same trains passed: the least over the links of capacity minus cross
traffic. It pays the same octets: trains count by theirs. So its error is that of sampling alone. The goal is a ratio of at most 1.5 in the median of the rows.

The truth is what was free on the path in all of the estimate's own time, in the same world without probes
([decision 13](../design/adr/0013-truth-of-a-run-is-what-was-free.md)). An observer of that whole time has no error. All columns but the
last three and *ratio* are shares in per cent; errors and half-widths are shares of the narrow link's capacity, medians over the runs.

| column | meaning |
|---|---|
| median, p90 | unsigned error of `available`; runs without a value are left out, for the observer too |
| oracle median, oracle p90 | the same of the observer |
| ratio | of the two medians; none where the observer's median is below 0.2 %: nothing is random there |
| oracle by time | its median error where trains count by their time: the small packets between the trains, which look for bursts, are a \
tenth of the octets and most of the time. What passes between two of them no packet sees |
| bias, oracle bias | medians of signed errors |
| half-width | half of the interval of 90 % |
| coverage | share of the numbers whose interval or bound covers the truth |
| bounds/none | runs with a bound instead of a value, and runs without a number |
| model | `sqrt(v/T)/C`, the standard deviation of [path-model.md](../design/path-model.md) for the time `T` that trains passed, where all \
traffic of the tight link is Poisson. The median of unsigned errors is 0.67 of a standard deviation, and trains that fill the share `p` \
of a run see `sqrt(1 - p)` of it |
| wander | how far the truth of a run is from the long-run rate, unsigned |
| MB, s, s with trains | IP octets and time of a run; time for which trains passed, first to last departure |
";

#[cfg(test)]
mod tests {
    use super::summary;

    #[test]
    fn ratios_are_summed_up_by_hosts() {
        let row = |hosts: &str, ratio: &str| format!("| demo | {hosts} | 40 | 3 | 6 | 2 | 3 | {ratio} | 0.7 |\n");
        let head = row("hosts", "ratio") + "|---|---|--:|--:|--:|--:|--:|--:|--:|\n";
        let rows = [row("ideal", "1.2"), row("busy", "3.0"), row("ideal", "\u{2013}"), row("ideal", "1.4")];
        let text = summary(&(head + &rows.concat()));
        assert_eq!(text, "**The median ratio is 1.40, of 3 rows**; by hosts: ideal 1.30, busy 3.00.\n");
    }
}
