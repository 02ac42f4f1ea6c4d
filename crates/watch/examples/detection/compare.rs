//! Methods side by side, each with the threshold at which it alarms falsely equally often.

use std::time::Duration;

use narrows_stat::median;
use narrows_watch::Signal;
use narrows_watch::detect::{Chart, Detector, RATE_PER_SIDE, Score, Side, Windows};

use crate::charts::{Medratio, PageHinkley, PlainWindows, RunLengths, Statistic, TwoInARow, TwoSidedCusum};
use crate::cusum::Cusum;
use crate::series::{Kind, LEVEL, SIGMA, Value, series, shifted};

const TRAINED: usize = 21 * 1440;
const DAYS: i64 = 51;
const SIZES: [f64; 6] = [1.0, 1.5, 2.0, 3.0, 4.0, 6.0];
const FOLLOWED: usize = 240;

/// False alarms per series-month at which methods are compared.
const ALARMS: f64 = 1.0 / 3.0;

/// Values that a method sees before an injected change.
const BEFORE: usize = 600;

/// A chart that never alarms and keeps the score: the input of all methods behind our level and
/// season.
#[derive(Clone, Default)]
struct Recorder(f64);

impl Chart for Recorder {
    fn push(&mut self, score: Score, _slack: f64) -> Option<Side> {
        self.0 = score.z;
        None
    }
    fn fraction(&self) -> f64 {
        0.0
    }
    fn clear(&mut self) {}
    fn calibrate(&mut self, _history: &[f64], _rate: f64) {}
}

/// What methods read: scores of our level and season, and values in spreads of the noise.
#[derive(Default, Clone)]
struct Inputs {
    scores: Vec<f64>,
    raw: Vec<f64>,
}

impl Inputs {
    fn push(&mut self, detector: &mut Detector<Recorder>, (reading, local): &Value) {
        if reading.usable() {
            detector.push(reading, *local);
            self.scores.push(detector.chart().0);
            self.raw.push((reading.value - LEVEL) / SIGMA);
        }
    }
}

/// The product's chart, calibrated on the series' past.
/// The statistic is its share of the threshold.
struct Calibrated<C>(C);

impl<C: Chart> Statistic for Calibrated<C> {
    fn push(&mut self, z: f64) -> f64 {
        self.0.push(Score { z, allowance: 0.0, up: true, down: true }, 0.0);
        self.0.fraction()
    }
}

fn calibrated<C: Chart + 'static>(mut chart: C, sample: &Sample) -> Box<dyn Statistic> {
    chart.calibrate(&sample.history, 60.0 * RATE_PER_SIDE);
    Box::new(Calibrated(chart))
}

/// A series without change, and changes that branch from it.
struct Sample {
    history: Vec<f64>,
    plain: Inputs,
    branches: Vec<(f64, Inputs)>,
}

type Make = fn(&Sample) -> Box<dyn Statistic>;

const METHODS: [(&str, bool, Make); 10] = [
    ("scaled windows (ours)", true, |sample| calibrated(Windows::default(), sample)),
    ("CUSUM, own threshold", true, |sample| calibrated(Cusum::new(16.0), sample)),
    ("CUSUM", true, |_| Box::new(TwoSidedCusum::default())),
    ("likelihood ratio over windows", true, |_| Box::new(PlainWindows::default())),
    ("threshold, 2 in a row", true, |_| Box::new(TwoInARow::default())),
    ("BOCPD", true, |_| Box::new(RunLengths::default())),
    ("threshold, 2 in a row", false, |_| Box::new(TwoInARow::default())),
    ("Page-Hinkley", false, |_| Box::new(PageHinkley::default())),
    ("BOCPD", false, |_| Box::new(RunLengths::default())),
    ("SmokePing Medratio", false, |_| Box::new(Medratio::default())),
];

pub(crate) fn print(count: u64, seed: u64) {
    println!(
        "\nMedian delay in values at {ALARMS:.2} false alarms per series-month; `>240` where more than half were not found.\n"
    );
    println!("| series | method | input | 1 | 1.5 | 2 | 3 | 4 | 6 spreads |");
    println!("|---|---|---|--:|--:|--:|--:|--:|--:|");
    for kind in Kind::ALL {
        let samples: Vec<Sample> = (seed..seed + count).map(|seed| sample(kind, seed)).collect();
        for (name, scored, make) in METHODS {
            let threshold = threshold(&samples, scored, make);
            let cells: Vec<String> = SIZES.iter().map(|size| delay(&samples, scored, make, threshold, *size)).collect();
            let input = if scored { "our scores" } else { "values" };
            println!("| {} | {name} | {input} | {} |", kind.name(), cells.join(" | "));
        }
    }
}

fn sample(kind: Kind, seed: u64) -> Sample {
    let values = series(kind, seed, DAYS);
    let mut detector = Detector::with_chart(Signal::AvailableForward, Duration::from_secs(60), Recorder::default());
    let (mut plain, mut branches) = (Inputs::default(), Vec::new());
    let mut history = Vec::new();
    for (index, value) in values.iter().enumerate() {
        if index == TRAINED {
            let scores = std::mem::take(&mut plain).scores;
            history = scores[scores.len().saturating_sub(14 * 1440)..].to_vec();
        }
        if let Some(value) = value {
            plain.push(&mut detector, value);
        }
        if index > TRAINED + 1440 && index % (7 * 1440) == usize::try_from(seed * 97 % 1440).unwrap_or(0) {
            for size in SIZES {
                let from = plain.raw.len() - BEFORE;
                let mut branch = Inputs { scores: plain.scores[from..].to_vec(), raw: plain.raw[from..].to_vec() };
                let mut detector = detector.clone();
                for value in values[index + 1..].iter().take(FOLLOWED).flatten() {
                    branch.push(&mut detector, &shifted(*value, -size * SIGMA));
                }
                branches.push((size, branch));
            }
        }
    }
    Sample { history, plain, branches }
}

fn input(inputs: &Inputs, scored: bool) -> impl Iterator<Item = f64> + '_ {
    if scored { inputs.scores.iter().copied() } else { inputs.raw.iter().copied() }
}

/// The highest statistic of each four hours; those above the threshold are alarms, at most one of
/// them in a row.
fn threshold(samples: &[Sample], scored: bool, make: Make) -> f64 {
    let mut peaks = Vec::new();
    for sample in samples {
        let mut chart = make(sample);
        let statistics: Vec<f64> = input(&sample.plain, scored).map(|value| chart.push(value)).collect();
        let blocks: Vec<f64> = statistics[BEFORE..]
            .chunks(240)
            .map(|chunk| chunk.iter().fold(f64::MIN, |most, one| most.max(*one)))
            .collect();
        for (index, peak) in blocks.iter().enumerate() {
            let beside = [index.checked_sub(1), Some(index + 1)].into_iter().flatten().filter_map(|at| blocks.get(at));
            if beside.copied().all(|other| other <= *peak) {
                peaks.push(*peak);
            }
        }
    }
    peaks.sort_by(|one, other| other.total_cmp(one));
    let allowed = narrows_units::to_usize(narrows_units::rounded(samples.len() as f64 * ALARMS));
    peaks.get(allowed).copied().unwrap_or(f64::INFINITY)
}

fn delay(samples: &[Sample], scored: bool, make: Make, threshold: f64, size: f64) -> String {
    let mut delays = Vec::new();
    let all = samples.iter().flat_map(|sample| sample.branches.iter().map(move |(one, branch)| (sample, one, branch)));
    for (sample, _, branch) in all.filter(|(_, one, _)| (*one - size).abs() < 1e-9) {
        let mut chart = make(sample);
        let mut found = f64::INFINITY;
        for (index, value) in input(branch, scored).enumerate() {
            if chart.push(value) > threshold && index >= BEFORE {
                found = (index - BEFORE + 1) as f64;
                break;
            }
        }
        delays.push(found.min(1e6));
    }
    let middle = median(&delays).unwrap_or(f64::NAN);
    if middle > FOLLOWED as f64 { ">240".to_owned() } else { format!("{middle:.0}") }
}
