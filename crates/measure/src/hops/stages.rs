//! Several links inside one hop: what store-and-forward devices add to the time of a packet, and
//! which standard links add up to it.
//!
//! A packet is serialised once per link, so that a hop of several looks like
//! `1/C = 1/C1 + 1/C2 + …` (`[PDM03]`). A single link of that rate would look the same to single
//! packets, but not to two of them sent at once: these leave a row of links as far apart as its
//! slowest one makes them.

/// Standard rates, Mbit/s: of Ethernet, which devices inside a hop may have (IEEE 802.3); and of
/// other links, which may only stand alone (ITU-T G.702, G.707).
const ETHERNET: [f64; 10] = [10.0, 100.0, 1000.0, 2500.0, 5000.0, 10_000.0, 25_000.0, 40_000.0, 50_000.0, 100_000.0];
const OTHER_RATES: [f64; 9] = [1.544, 2.048, 34.368, 44.736, 51.84, 155.52, 622.08, 2488.32, 9953.28];
/// Links in a row at most.
const MOST_STAGES: usize = 3;
/// Half of an interval over its middle beyond which sums of standard rates say nothing: there are
/// too many of them.
const WIDEST: f64 = 0.04;
/// A sum may be off by this share beside the interval: clocks and crystals (IEEE 802.3: 100 ppm),
/// framing.
const TOLERANCE: f64 = 0.004;
/// One standard link explains a slope that is off by this share: less than what a device of ten
/// times the rate adds.
const ALONE: f64 = 0.02;
/// A pair's spacing agrees with a reading that is off by no more than this share of what lies
/// between the two readings.
const PAIR: f64 = 0.4;
/// Pairs agree if they are within this share of what one link would make of them, and these must at
/// least (ours).
const AGREED: f64 = 0.015;
const LEAST_PAIRS: usize = 4;
/// The first of two packets finds hosts and routers asleep, and is late by what it takes to wake
/// them: 20 to 60 us on Linux over virtual links, up to this with processors that sleep deeply
/// (ours). Pairs that are closer than one link makes them by less than this say nothing sure.
const WAKING_NS: f64 = 100_000.0;

/// What a hop's slope is read as.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Stages {
    /// Rates of the links in a row, the slowest first, bit/s at the wire; at least two.
    pub(super) rates: Vec<f64>,
    /// Other rows of as many links fit as well.
    pub(super) ambiguous: bool,
    /// The slope is known too coarsely to say that these are the links; only that there may be
    /// several.
    pub(super) vague: bool,
    /// Pairs tell the slowest link, to this share of it; the rest may be other links, or the
    /// router's own time for each octet.
    pub(super) measured: Option<f64>,
}

/// What pairs say of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pairs {
    /// They are as far apart as one link of the whole rate makes them.
    OneLink,
    /// They are as far apart as the slowest of the row makes them.
    Row,
    /// Neither.
    Unknown,
}

/// The row of standard links that a slope, in ns per octet and known to `half_width`, is the sum
/// of; `None` where one link will do, or nothing fits.
pub(super) fn stages(slope: f64, half_width: f64) -> Option<Stages> {
    let off = half_width.max(slope * TOLERANCE);
    if !(slope > 0.0 && off.is_finite()) || off > slope / 2.0 {
        return None;
    }
    let vague = off > WIDEST * slope;
    let fits = |sum: f64| (sum - slope).abs() <= off;
    // One link is so much likelier than a fast device beside it that it must be far off.
    let one = if vague { off } else { (1.5 * off).max(slope * ALONE) };
    // In a wide interval there is always some old rate.
    let others: &[f64] = if vague { &[] } else { &OTHER_RATES };
    let alone = ETHERNET.iter().chain(others).any(|&mbps| (per_octet(mbps) - slope).abs() <= one);
    if alone {
        return None;
    }
    (2..=MOST_STAGES).find_map(|count| {
        let mut rows = Vec::new();
        add_rows(count, 0, &mut Vec::new(), &mut rows);
        rows.retain(|row| fits(row.iter().map(|&mbps| per_octet(mbps)).sum()));
        let distance = |row: &Vec<f64>| (row.iter().map(|&mbps| per_octet(mbps)).sum::<f64>() - slope).abs();
        if vague {
            // The one whose slowest link is the fastest: that much the hop may have.
            rows.sort_by(|a, b| b[0].total_cmp(&a[0]));
        } else {
            rows.sort_by(|a, b| distance(a).total_cmp(&distance(b)));
        }
        let first = rows.first()?;
        Some(Stages {
            rates: first.iter().map(|mbps| mbps * 1e6).collect(),
            ambiguous: rows.len() > 1,
            vague,
            measured: None,
        })
    })
}

/// One link of a standard rate takes this, in ns per octet and known to `half_width`.
pub(super) fn is_standard(slope: f64, half_width: f64) -> bool {
    let off = half_width.max(slope * ALONE);
    let mut all = ETHERNET.iter().chain(&OTHER_RATES);
    all.any(|&mbps| (per_octet(mbps) - slope).abs() <= off)
}

/// What pairs say of a hop whose links may have any rate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Slowest {
    /// It is one link.
    All,
    /// The slowest of its links takes so long for the second packet, ns.
    Takes(f64),
    /// It takes no longer than what lies before the hop.
    Hidden,
    /// It may take as little as this, ns; or the first packet of a pair was late.
    Doubtful(f64),
    /// Nothing.
    Unreported,
}

/// Reads the spacing that more than half of the pairs agree on: `whole_ns` is what one link would
/// make it, known to `off_ns`, `front_ns` what links before the hop already did; `tick_ns`: what
/// one spacing is off by.
pub(super) fn slowest(spacings_ns: &[i64], (whole_ns, off_ns): (f64, f64), front_ns: f64, tick_ns: f64) -> Slowest {
    let near = (AGREED * whole_ns).max(off_ns + tick_ns / 2.0);
    let Some(ns) = agreed(spacings_ns, (AGREED * whole_ns).max(1.01 * tick_ns)) else {
        return Slowest::Unreported;
    };
    if whole_ns < front_ns + 2.0 * near {
        return Slowest::Unreported;
    }
    // The slowest of two links takes half of the whole at least: clearly less is three links, or a
    // late first packet.
    let under_half = |ns: f64| (near..=WAKING_NS).contains(&(whole_ns / 2.0 - ns));
    let doubtful = |ns: f64| ns > 0.0 && (whole_ns - ns <= WAKING_NS || under_half(ns));
    match ns {
        _ if (ns - whole_ns).abs() <= near && near <= ALONE * whole_ns => Slowest::All,
        _ if ns < front_ns + near && doubtful(front_ns) => Slowest::Doubtful(front_ns),
        _ if ns < front_ns + near => Slowest::Hidden,
        _ if ns > front_ns + 2.0 * near && ns < whole_ns - 2.0 * near && doubtful(ns) => Slowest::Doubtful(ns),
        _ if ns > front_ns + 2.0 * near && ns < whole_ns - 2.0 * near => Slowest::Takes(ns),
        _ => Slowest::Unreported,
    }
}

/// The mean of the spacings that lie within `near_ns` of one of them, if they are more than half of
/// all.
fn agreed(spacings_ns: &[i64], near_ns: f64) -> Option<f64> {
    let around = |&at: &i64| {
        let close: Vec<f64> =
            spacings_ns.iter().map(|&ns| ns as f64).filter(|ns| (ns - at as f64).abs() <= near_ns).collect();
        (close.len(), close.iter().sum::<f64>() / close.len().max(1) as f64)
    };
    let (count, mean) = spacings_ns.iter().map(around).max_by_key(|(count, _)| *count)?;
    (count >= LEAST_PAIRS && 2 * count > spacings_ns.len()).then_some(mean)
}

fn add_rows(count: usize, from: usize, row: &mut Vec<f64>, rows: &mut Vec<Vec<f64>>) {
    if row.len() == count {
        rows.push(row.clone());
        return;
    }
    for (index, mbps) in ETHERNET.iter().enumerate().skip(from) {
        row.push(*mbps);
        add_rows(count, index, row, rows);
        row.pop();
    }
}

/// ns per octet.
fn per_octet(mbps: f64) -> f64 {
    8000.0 / mbps
}

/// What spacings of pairs say that one link would leave `whole_ns` apart, and a row (or what lies
/// before it) `row_ns`: three of five at least must agree with one reading and not with the other.
pub(super) fn judge_pairs(spacings_ns: &[i64], whole_ns: f64, row_ns: f64) -> Pairs {
    let within = PAIR * (whole_ns - row_ns).abs();
    let near = |expected: f64| {
        let agree = |&&ns: &&i64| (ns as f64 - expected).abs() <= within;
        spacings_ns.iter().filter(agree).count()
    };
    let (whole, row) = (whole_ns, row_ns);
    let enough = (3 * spacings_ns.len()).div_ceil(5).max(2);
    match (near(whole), near(row)) {
        (whole, row) if whole >= enough && whole > row => Pairs::OneLink,
        (whole, row) if row >= enough && row > whole => Pairs::Row,
        _ => Pairs::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(mbps: f64, share: f64) -> Option<Stages> {
        let slope = 8000.0 / mbps;
        stages(slope, slope * share)
    }

    /// The specification's examples: a 100 Mbit/s port behind a 1 Gbit/s switch, and two alike.
    #[test]
    fn published_sums_are_read() {
        assert_eq!(read(90.909, 0.001).unwrap().rates, [100e6, 1000e6]);
        assert_eq!(read(50.0, 0.01).unwrap().rates, [100e6, 100e6]);
        assert_eq!(read(9.0909, 0.002).unwrap().rates, [10e6, 100e6]);
        assert_eq!(read(500.0, 0.01).unwrap().rates, [1000e6, 1000e6]);
        assert_eq!(read(1000.0 / 30.0, 0.005).unwrap().rates, [100e6, 100e6, 100e6]);
    }

    #[test]
    fn one_standard_link_is_one() {
        for mbps in [10.0, 100.0, 1000.0, 44.736, 155.52, 2.048] {
            assert_eq!(read(mbps, 0.01), None, "{mbps}");
        }
    }

    #[test]
    fn what_is_no_sum_stays_alone() {
        for mbps in [20.0, 30.0, 70.0, 300.0, 600.0] {
            assert_eq!(read(mbps, 0.005), None, "{mbps}");
        }
    }

    /// Within more than 4 % too much is a sum of something.
    #[test]
    fn wide_intervals_say_little() {
        let stages = read(50.0, 0.05).unwrap();
        assert!(stages.vague && (stages.rates[0] - 100e6).abs() < 1.0, "{stages:?}");
        assert_eq!(read(50.0, 0.6), None);
        assert_eq!(read(92.0, 0.1), None);
    }

    #[test]
    fn several_rows_are_reported() {
        // 100 Mbit/s in front of 2.5 or of 5 Gbit/s: 96.2 and 98.0.
        let stages = read(96.9, 0.012).unwrap();
        assert!(stages.ambiguous && (stages.rates[0] - 100e6).abs() < 1.0, "{stages:?}");
        // Within what one link alone may be off by.
        assert_eq!(read(98.5, 0.005), None);
    }

    /// Links of any rates: one of 30 Mbit/s in front of another, which look like one of 15.
    #[test]
    fn pairs_tell_the_slowest_link() {
        let whole = 820_267.0;
        let row = [410_100, 410_200, 410_150, 900_000, 410_130];
        assert!(
            matches!(slowest(&row, (whole, 1000.0), 123_040.0, 1000.0), Slowest::Takes(ns) if (ns - 410_145.0).abs() < 30.0)
        );
        assert_eq!(slowest(&row, (whole, 1000.0), 410_133.0, 1000.0), Slowest::Hidden);
        assert_eq!(slowest(&[820_000; 4], (whole, 1000.0), 123_040.0, 1000.0), Slowest::All);
        // Further apart than one link makes them, too few, or no two alike.
        assert_eq!(slowest(&[990_000; 7], (whole, 1000.0), 123_040.0, 1000.0), Slowest::Unreported);
        assert_eq!(slowest(&row[..3], (whole, 1000.0), 123_040.0, 1000.0), Slowest::Unreported);
        assert_eq!(slowest(&[410_000, 500_000, 600_000, 700_000], (whole, 1000.0), 0.0, 1000.0), Slowest::Unreported);
        // A first packet that was late by 40 us looks like a link of 145 Mbit/s.
        let late = [83_000, 84_000, 82_500, 83_200];
        assert!(matches!(
            slowest(&late, (123_040.0, 500.0), 0.0, 1000.0),
            Slowest::Doubtful(ns) if (ns - 83_175.0).abs() < 1.0
        ));
        // Late by 33 us, two of 100 Mbit/s look like one of 137 and others; by no more than chance,
        // they are two.
        assert!(matches!(
            slowest(&[89_900, 90_000, 90_100, 90_000], (246_080.0, 500.0), 0.0, 1000.0),
            Slowest::Doubtful(ns) if (ns - 90_000.0).abs() < 1.0
        ));
        assert!(matches!(slowest(&[125_000; 4], (246_080.0, 500.0), 0.0, 1000.0), Slowest::Takes(_)));
        assert!(is_standard(80.0, 0.1) && !is_standard(8000.0 / 30.0, 0.1));
    }

    #[test]
    fn pairs_tell_a_row_from_one_link() {
        // 100 in front of 100 Mbit/s: 123 us; one of 50: 246 us.
        let row = [123_000, 123_100, 124_000, 300_000];
        let one = [246_000, 246_100, 240_000, 400_000];
        assert_eq!(judge_pairs(&row, 246_080.0, 123_040.0), Pairs::Row);
        assert_eq!(judge_pairs(&one, 246_080.0, 123_040.0), Pairs::OneLink);
        assert_eq!(judge_pairs(&[1_230_400; 5], 246_080.0, 123_040.0), Pairs::Unknown);
        assert_eq!(judge_pairs(&row[..1], 246_080.0, 123_040.0), Pairs::Unknown);
    }
}
