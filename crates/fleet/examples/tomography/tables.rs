//! The tables of the page.

use narrows_stat::{clopper_pearson, quantile};

use super::network::Kind;
use super::survey::{AS_RECORDED, NARROW, Score, WIDE, surveys};
use super::{delays, proofs, windows};

pub(crate) fn print_surveys(graphs: u64, seed: u64, hosts: Option<usize>) {
    let rows = [
        ("Errors of 1.2 %", WIDE),
        ("Intervals 1.2 % wide (errors of 0.365 %)", NARROW),
        (
            "The same, with the accuracy record's shares of bounds, of runs without answer and of wrong values",
            AS_RECORDED,
        ),
    ];
    for (name, errors) in rows {
        let mut scores = surveys(graphs, seed, hosts, errors);
        let mut lines: Vec<(String, Vec<Score>)> = Vec::new();
        let all: Vec<Score> = scores.values().flatten().cloned().collect();
        let policers = scores.remove(&Kind::Policers).unwrap_or_default();
        let without: Vec<Score> = scores.values().flatten().cloned().collect();
        lines.extend(scores.into_iter().map(|(kind, scores)| (format!("{} {}", scores.len(), name_of(kind)), scores)));
        lines.push((format!("**{} without policers**", without.len()), without));
        lines.push((format!("{} {}", policers.len(), name_of(Kind::Policers)), policers));
        lines.push((format!("**all {}**", all.len()), all));
        lines.retain(|(_, scores)| !scores.is_empty());
        println!("## {name}\n");
        print_located(&lines);
        print_values(&lines);
    }
}

fn print_located(lines: &[(String, Vec<Score>)]) {
    println!(
        "| networks | pairs measured | located by runs | right | right within 5 % | `hops` runs per host | located with them | \
         right | right within 5 % | mean confidence | contradicted |"
    );
    println!("|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|");
    for (name, scores) in lines {
        let sum = |of: fn(&Score) -> u64| scores.iter().map(of).sum::<u64>();
        let cells = [
            name.clone(),
            percent(sum(|one| one.runs), sum(|one| one.pairs)),
            percent(sum(|one| one.located[0]), sum(|one| one.valued)),
            percent(sum(|one| one.right[0]), sum(|one| one.located[0])),
            percent(sum(|one| one.near[0]), sum(|one| one.located[0])),
            format!("{:.2}", sum(|one| one.hops_runs) as f64 / sum(|one| one.hosts) as f64),
            percent(sum(|one| one.located[1]), sum(|one| one.valued)),
            percent(sum(|one| one.right[1]), sum(|one| one.located[1])),
            percent(sum(|one| one.near[1]), sum(|one| one.located[1])),
            format!(
                "{:.2} %",
                100.0 * scores.iter().map(|one| one.confidence).sum::<f64>() / sum(|one| one.located[1]) as f64
            ),
            percent(sum(|one| one.contradicted), sum(|one| one.valued)),
        ];
        println!("| {} |", cells.join(" | "));
    }
    println!();
}

fn print_values(lines: &[(String, Vec<Score>)]) {
    println!(
        "| networks | not measured, inferred from runs | with `hops` runs | error, median | 95th | off by > 10 % | \
         located segments | held by 90 % intervals | inferred pairs held |"
    );
    println!("|---|--:|--:|--:|--:|--:|--:|--:|--:|");
    for (name, scores) in lines {
        let sum = |of: fn(&Score) -> u64| scores.iter().map(of).sum::<u64>();
        let errors: Vec<f64> = scores.iter().flat_map(|score| score.errors.iter().copied()).collect();
        let at =
            |p: f64| quantile(&errors, p).map_or_else(|| "-".to_owned(), |error| format!("{:.2} %", 100.0 * error));
        let off = errors.iter().filter(|error| **error > 0.1).count() as u64;
        let cells = [
            name.clone(),
            percent(sum(|one| one.inferred[0]), sum(|one| one.rest)),
            percent(sum(|one| one.inferred[1]), sum(|one| one.rest)),
            at(0.5),
            at(0.95),
            percent(off, errors.len() as u64),
            sum(|one| one.segments).to_string(),
            with_interval(sum(|one| one.covered), sum(|one| one.segments)),
            percent(sum(|one| one.inferred_covered), sum(|one| one.inferred[1])),
        ];
        println!("| {} |", cells.join(" | "));
    }
    println!();
}

pub(crate) fn print_windows(seed: u64) {
    println!("## Available capacity in windows of ten minutes\n");
    println!("| named by | pairs named | limits in the last window | limits in at least three of the four |");
    println!("|---|--:|--:|--:|");
    let found = windows::trials(WINDOW_NETWORKS, seed);
    let (named, right) = (percent(found.located, found.pairs), percent(found.right, found.located));
    println!("| the last window | {named} | {right} | {} |", percent(found.steady, found.located));
    let (named, steady) = (percent(found.agreed, found.pairs), percent(found.agreed_steady, found.agreed));
    println!("| three of the last four windows | {named} | | {steady} |\n");
}

pub(crate) fn print_groups(seed: u64) {
    println!("## Grouping by RFC 8382\n");
    println!(
        "| trials | pairs that share | precision | recall | F1 | flows behind a bottleneck called free | free flows grouped |"
    );
    println!("|--:|--:|--:|--:|--:|--:|--:|");
    let found = delays::trials(GROUP_TRIALS, seed);
    println!(
        "| {GROUP_TRIALS} | {} | {:.3} | {:.3} | {:.3} | {} | {} |\n",
        found.both + found.missed,
        found.precision(),
        found.recall(),
        found.f1(),
        percent(found.unseen, found.behind),
        percent(found.grouped, found.free),
    );
}

pub(crate) fn print_proofs(seed: u64) {
    println!("## Proofs by load\n");
    println!("| what is available varies by | proofs | right | inconclusive | wrong |");
    println!("|--:|--:|--:|--:|--:|");
    for variation in [0.02, 0.05, 0.1, 0.2] {
        let found = proofs::trials(PROOFS, seed, variation);
        println!(
            "| {:.0} % | {PROOFS} | {} | {} | {} |",
            100.0 * variation,
            percent(found.right, PROOFS),
            percent(found.inconclusive, PROOFS),
            with_interval(found.wrong, PROOFS),
        );
    }
}

fn name_of(kind: Kind) -> &'static str {
    match kind {
        Kind::Plain => "plain",
        Kind::RateClasses => "with equal access rates",
        Kind::Parallel => "with parallel links",
        Kind::Policers => "with policers",
        Kind::RouteChanges => "with route changes",
        Kind::MissedAliases => "with missed aliases",
    }
}

fn percent(part: u64, whole: u64) -> String {
    if whole == 0 { "-".to_owned() } else { format!("{:.2} %", 100.0 * part as f64 / whole as f64) }
}

/// With the interval of 95 % of Clopper and Pearson.
fn with_interval(part: u64, whole: u64) -> String {
    match clopper_pearson(part, whole, 0.95) {
        Ok(held) => format!("{} ({:.2}-{:.2})", percent(part, whole), 100.0 * held.low(), 100.0 * held.high()),
        Err(_) => "-".to_owned(),
    }
}

const WINDOW_NETWORKS: u64 = 40;
const GROUP_TRIALS: u64 = 4_000;
const PROOFS: u64 = 4_000;
