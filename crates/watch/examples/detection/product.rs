//! The product's detector as it is, with the thresholds that it sets itself.

use std::time::Duration;

use narrows_stat::median;
use narrows_watch::detect::{Change, Detector, Side};
use narrows_watch::{Signal, WallTime};

use crate::series::{Kind, SIGMA, Value, series, shifted};

const TRAINED_DAYS: usize = 21;
const DAYS: i64 = 51;
const SIZES: [f64; 7] = [0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0];
const FOLLOWED: usize = 240;
/// Sizes of changes, and values before them.
const YOUNG: [(f64, usize); 10] =
    [(10.0, 3), (10.0, 4), (10.0, 6), (10.0, 8), (6.0, 15), (10.0, 15), (6.0, 60), (10.0, 60), (6.0, 600), (10.0, 600)];

fn detector() -> Detector {
    Detector::new(Signal::AvailableForward, Duration::from_secs(60))
}

pub(crate) fn print(count: u64, seed: u64) {
    println!(
        "| series | false alarms per series-month: first 21 days | days 22 to 51 | thresholds (median up, down) |"
    );
    println!("|---|--:|--:|--:|");
    let mut delays = Vec::new();
    for kind in Kind::ALL {
        delays.push((kind, false_alarms(kind, count, seed)));
    }
    println!(
        "\n| series | size (spreads) | found in 240 values | delay in values: median | mean | time covered | wrong side first |"
    );
    println!("|---|--:|--:|--:|--:|--:|--:|");
    for (kind, runs) in &delays {
        for size in SIZES {
            row(*kind, size, runs);
        }
    }
    young(count, seed);
}

/// Large changes of series that are too young for thresholds of their own.
fn young(count: u64, seed: u64) {
    println!(
        "\n| series | size (spreads) | values before | found in 240 values | delay in values: median | time covered |"
    );
    println!("|---|--:|--:|--:|--:|--:|");
    for kind in Kind::ALL {
        for (size, before) in YOUNG {
            let runs: Vec<Run> = (seed..seed + count)
                .map(|seed| {
                    let values = series(kind, seed, 2);
                    let mut one = detector();
                    for (reading, local) in values.iter().take(before).flatten() {
                        one.push(reading, *local);
                    }
                    inject(&one, size, &values[before..])
                })
                .collect();
            let delays: Vec<f64> = runs.iter().filter_map(|run| run.delay).map(|delay| delay as f64).collect();
            println!(
                "| {} | {size} | {before} | {} of {count} | {} | {} of {} |",
                kind.name(),
                delays.len(),
                median(&delays).map_or("-".to_owned(), |delay| format!("{delay:.0}")),
                runs.iter().filter(|run| run.covered).count(),
                delays.len()
            );
        }
    }
}

/// What became of one injected change.
struct Run {
    size: f64,
    delay: Option<usize>,
    covered: bool,
    wrong_side: bool,
}

fn false_alarms(kind: Kind, count: u64, seed: u64) -> Vec<Run> {
    let (mut cold, mut warm, mut runs) = (0_u32, 0_u32, Vec::new());
    let (mut ups, mut downs) = (Vec::new(), Vec::new());
    for seed in seed..seed + count {
        let values = series(kind, seed, DAYS);
        let mut one = detector();
        for (index, value) in values.iter().enumerate() {
            let Some((reading, local)) = value else { continue };
            if one.push(reading, *local).is_some() {
                if index < TRAINED_DAYS * 1440 { cold += 1 } else { warm += 1 }
            }
            // Branches at another minute of the day in each series.
            if index > TRAINED_DAYS * 1440 && index % (7 * 1440) == usize::try_from(seed * 97 % 1440).unwrap_or(0) {
                runs.extend(SIZES.iter().map(|size| inject(&one, *size, &values[index + 1..])));
            }
        }
        let (up, down) = one.chart().thresholds();
        ups.push(up);
        downs.push(down);
    }
    let months = |days: f64| count as f64 * days / 30.0;
    println!(
        "| {} | {:.2} | {:.2} | {:.1}, {:.1} |",
        kind.name(),
        f64::from(cold) / months(21.0),
        f64::from(warm) / months(30.0),
        median(&ups).unwrap_or(0.0),
        median(&downs).unwrap_or(0.0)
    );
    runs
}

fn inject(before: &Detector, size: f64, rest: &[Option<Value>]) -> Run {
    let mut one = before.clone();
    let first = rest.iter().flatten().next().map_or(WallTime::default(), |(reading, _)| reading.at);
    let mut run = Run { size, delay: None, covered: false, wrong_side: false };
    for (index, value) in rest.iter().take(FOLLOWED).enumerate() {
        let Some(value) = value else { continue };
        let (reading, local) = shifted(*value, -size * SIGMA);
        if let Some(change) = one.push(&reading, local) {
            let Change { side, at_low, at_high, .. } = change;
            if side == Side::Up {
                run.wrong_side = true;
                continue;
            }
            // The change lies between the value before `first` and `first`.
            run.covered = at_low < first && at_high >= first;
            run.delay = Some(index + 1);
            break;
        }
    }
    run
}

fn row(kind: Kind, size: f64, runs: &[Run]) {
    let those: Vec<&Run> = runs.iter().filter(|run| (run.size - size).abs() < 1e-9).collect();
    let delays: Vec<f64> = those.iter().filter_map(|run| run.delay).map(|delay| delay as f64).collect();
    let covered = those.iter().filter(|run| run.covered).count();
    println!(
        "| {} | {size} | {} of {} | {:.0} | {:.1} | {:.0} % | {} |",
        kind.name(),
        delays.len(),
        those.len(),
        median(&delays).unwrap_or(f64::NAN),
        delays.iter().sum::<f64>() / delays.len() as f64,
        100.0 * covered as f64 / delays.len() as f64,
        those.iter().filter(|run| run.wrong_side).count()
    );
}
