//! Every table and figure of the five papers has a row in `docs/results/papers.md`, with a verdict.

use anyhow::{Context, Result};

use crate::shell::root;

const PAGE: &str = "docs/results/papers.md";

/// Beginning of a paper's heading, its figures, and its tables.
const PAPERS: [(&str, u32, u32); 5] =
    [("## 000:", 10, 4), ("## 001:", 2, 11), ("## 002:", 6, 0), ("## 003:", 10, 0), ("## 004:", 6, 2)];

const VERDICTS: [&str; 3] = ["reproduced", "partly", "not"];

pub(super) fn check(broken: &mut Vec<String>) -> Result<()> {
    let page = std::fs::read_to_string(root().join(PAGE)).context(PAGE)?;
    broken.extend(judge(&page).into_iter().map(|fault| format!("{PAGE}: {fault}")));
    Ok(())
}

fn judge(page: &str) -> Vec<String> {
    let mut faults = Vec::new();
    for (heading, figures, tables) in PAPERS {
        let section = page.lines().skip_while(|line| !line.starts_with(heading)).skip(1);
        let rows: Vec<&str> =
            section.take_while(|line| !line.starts_with("## ")).filter(|line| line.starts_with("| ")).collect();
        for (kind, last) in [("figure", figures), ("table", tables)] {
            for number in 1..=last {
                let row = rows.iter().find(|row| names(first_cell(row), kind).contains(&number));
                match row.map(|row| row.trim_end_matches(['|', ' ']).rsplit("| ").next().unwrap_or_default()) {
                    None => faults.push(format!("{heading} no row for {kind} {number}")),
                    Some(verdict) if !VERDICTS.iter().any(|known| verdict.starts_with(known)) => {
                        faults.push(format!("{heading} {kind} {number} has no verdict"));
                    }
                    Some(_) => {}
                }
            }
        }
    }
    faults
}

fn first_cell(row: &str) -> &str {
    row.trim_start_matches("| ").split(" |").next().unwrap_or_default()
}

/// Numbers behind a word: `figure 2`, `figures 5, 6`, `figures 3 to 6`.
fn names(cell: &str, kind: &str) -> Vec<u32> {
    let Some((_, rest)) = cell.split_once(kind) else { return Vec::new() };
    let mut found = Vec::new();
    let mut range = false;
    for word in rest.trim_start_matches('s').split([' ', ',']).filter(|word| !word.is_empty()) {
        match (word.parse::<u32>(), word) {
            (Ok(number), _) => {
                let from = found.last().copied().filter(|_| range).map_or(number, |last: u32| last + 1);
                found.extend(from..=number);
                range = false;
            }
            (Err(_), "to") => range = true,
            (Err(_), "and") => {}
            (Err(_), _) => break,
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::{judge, names};

    #[test]
    fn numbers_behind_a_word() {
        assert_eq!(names("figure 2", "figure"), [2]);
        assert_eq!(names("figures 5, 6", "figure"), [5, 6]);
        assert_eq!(names("figures 3 to 6", "figure"), [3, 4, 5, 6]);
        assert_eq!(names("figure 9, equations 2 and 3", "figure"), [9]);
        assert!(names("§4.2", "table").is_empty());
    }

    #[test]
    fn a_row_or_a_verdict_that_is_missing_is_told() {
        let page = "## 002: Netest\n\n| what | verdict |\n|---|---|\n| figure 1 | not: lost |\n\
                    | figures 2 to 4 | partly |\n| figure 5 | – |\n\n## 003: next\n\n| figure 6 | not |\n";
        let faults = judge(page);
        assert!(faults.contains(&"## 002: figure 5 has no verdict".to_owned()), "{faults:?}");
        assert!(faults.contains(&"## 002: no row for figure 6".to_owned()), "{faults:?}");
        assert_eq!(faults.iter().filter(|fault| fault.starts_with("## 002")).count(), 2, "{faults:?}");
    }
}
