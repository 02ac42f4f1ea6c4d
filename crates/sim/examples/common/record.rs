//! What the examples of `cargo xtask record` share: the hosts that they play, and cells of a table.

use std::sync::Arc;

use narrows_host_profile::HostProfile;
use narrows_scenario::Scenario;

/// The value of `NAME=VALUE` among the arguments.
pub(crate) fn word<'a>(args: &'a [String], name: &str) -> Option<&'a str> {
    args.iter().find_map(|arg| arg.strip_prefix(name)?.strip_prefix('='))
}

/// The profile of `hosts=FILE`; `None` without such an argument.
pub(crate) fn hosts(args: &[String]) -> Option<Arc<HostProfile>> {
    let file = word(args, "hosts")?;
    let text = std::fs::read_to_string(file).unwrap_or_else(|error| panic!("{file}: {error}"));
    Some(Arc::new(HostProfile::from_toml(&text).unwrap_or_else(|error| panic!("{file}: {error}"))))
}

/// The scenario between these hosts, if there are any.
pub(crate) fn between(scenario: Scenario, hosts: Option<&Arc<HostProfile>>) -> Scenario {
    let Some(profile) = hosts else { return scenario };
    scenario.hosts(profile).validate().expect("a profile fits every path")
}

/// `held` of `of` as a share, bold if the binomial of nine in ten excludes chance.
pub(crate) fn coverage(held: u64, of: u64) -> String {
    if of == 0 {
        return "–".to_owned();
    }
    let share = format!("{:.0} % of {of}", 100.0 * held as f64 / of as f64);
    if narrows_stat::binomial_cdf(held, of, 0.9) < 0.001 { format!("**{share}**") } else { share }
}

/// Median and smallest share of the truth of lower bounds.
pub(crate) fn tightness(shares: &[f64]) -> String {
    let least = shares.iter().copied().reduce(f64::min);
    match (narrows_stat::median(shares), least) {
        (Some(middle), Some(least)) => format!("{:.0}, {:.0} of {}", 100.0 * middle, 100.0 * least, shares.len()),
        _ => "–".to_owned(),
    }
}

/// A line that becomes a cell of a page's table.
#[expect(clippy::print_stdout, reason = "what the record reads")]
pub(crate) fn cell(label: &str, text: impl std::fmt::Display) {
    println!("cell\t{label}\t{text}");
}
