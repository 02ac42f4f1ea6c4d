use super::*;

const SIZES: [f64; 8] = [48.0, 64.0, 288.0, 552.0, 584.0, 1024.0, 1468.0, 1500.0];

fn points(quote: f64, forward: f64, reverse: f64) -> Vec<Point> {
    SIZES
        .iter()
        .map(|&octets| {
            let reply = octets.min(quote) + 28.0;
            Point {
                forward: octets + 38.0,
                reverse: reply + 38.0,
                quick_ns: 1e6 + forward * (octets + 38.0) + reverse * (reply + 38.0),
                quick: 3,
                error_ns: None,
            }
        })
        .collect()
}

/// Answers that quote 548 octets, and a reverse direction of another rate: both slopes are told
/// apart.
#[test]
fn both_ways_are_reported_apart() {
    let line = draw(&points(548.0, 880.0, 300.0), 1.0).unwrap();
    assert!((line.forward - 880.0).abs() < 1e-6, "{line:?}");
    assert!((line.reverse - 300.0).abs() < 1e-6, "{line:?}");
    assert!((line.intercept_ns - 1e6).abs() < 1e-3, "{line:?}");
    assert_eq!(line.assumed, Assumed::Nothing);
}

#[test]
fn constant_answers_are_in_the_intercept() {
    let line = draw(&points(28.0, 80.0, 80.0), 1.0).unwrap();
    assert!((line.forward - 80.0).abs() < 1e-6 && line.reverse == 0.0, "{line:?}");
    assert_eq!(line.assumed, Assumed::Nothing);
}

#[test]
fn whole_quotes_leave_one_slope() {
    let line = draw(&points(9000.0, 80.0, 80.0), 1.0).unwrap();
    assert!((line.forward - 80.0).abs() < 1e-6, "{line:?}");
    assert_eq!(line.assumed, Assumed::Alike);
}

/// Two lengths of eight never met an empty queue.
#[test]
fn queues_do_not_lift_the_line() {
    let mut points = points(548.0, 880.0, 880.0);
    points[6].quick_ns += 300_000.0;
    points[1].quick_ns += 40_000.0;
    let line = draw(&points, 1000.0).unwrap();
    assert!((line.forward - 880.0).abs() < 8.0, "{line:?}");
}

/// Above what answers quote lengths tell of the forward direction, below of both ways together;
/// where answers are all of one length the ends do.
#[test]
fn ends_of_what_tells_have_the_largest_shares() {
    let largest = |quote: f64| {
        let shares = shares(&points(quote, 80.0, 80.0));
        let mut order: Vec<usize> = (0..shares.len()).collect();
        order.sort_by(|&a, &b| shares[b].total_cmp(&shares[a]));
        let mut four = order[..4].to_vec();
        four.sort_unstable();
        four
    };
    assert_eq!(largest(548.0), [3, 4, 6, 7]);
    assert_eq!(largest(28.0), [0, 1, 6, 7]);
    assert_eq!(largest(9000.0), [0, 1, 6, 7]);
}

/// Lines of 10 Mbit/s and of a hop behind it, with errors in what lengths above the quote take.
fn behind_narrow(forward: f64, reverse: f64, errors: [f64; 2]) -> (Line, Line) {
    let drawn = |forward: f64, reverse: f64, error: f64| {
        let mut points = points(548.0, forward, reverse);
        for point in &mut points {
            point.error_ns = Some(4000.0);
        }
        points[6].quick_ns += error;
        points[7].quick_ns += error;
        draw(&points, 1.0).unwrap()
    };
    (drawn(880.0, 880.0, errors[0]), drawn(880.0 + forward, 880.0 + reverse, errors[1]))
}

/// A hop of 100 Mbit/s: what is wrong of the forward direction alone is less wrong of both ways
/// together, and known better.
#[test]
fn one_rate_both_ways_is_nearer() {
    let (before, here) = behind_narrow(80.0, 80.0, [-3000.0, 3000.0]);
    let ways = DirectionSlopes::between(Some(&before), &here).unwrap();
    let alike = ways.as_one().unwrap();
    let forward = here.forward - before.forward;
    assert!((forward - 80.0) > 1.5 * (alike.slope - 80.0) && alike.slope > 80.0, "{alike:?} {forward}");
    let se = here.se.hypot(before.se);
    assert!(alike.se < 0.7 * se && alike.se > 0.3 * se, "{alike:?} {se}");
    assert!(!ways.differ() && !ways.are_alike());
    let narrow = DirectionSlopes::between(None, &before).unwrap();
    assert!(narrow.are_alike());
}

/// Another reverse direction is seen where errors leave room for it to be, and then nothing is
/// read as one rate.
#[test]
fn ways_that_differ_are_not_one() {
    let (before, here) = behind_narrow(80.0, 8.0, [0.0, 0.0]);
    let ways = DirectionSlopes::between(Some(&before), &here).unwrap();
    assert!(ways.differ() && ways.as_one().is_none());
    let (mut before, here) = behind_narrow(80.0, 80.0, [0.0, 0.0]);
    before.both = None;
    assert_eq!(DirectionSlopes::between(Some(&before), &here), None);
}

#[test]
fn too_few_lengths_draw_no_line() {
    assert_eq!(draw(&points(548.0, 80.0, 80.0)[..3], 1.0), None);
    let same = vec![points(548.0, 80.0, 80.0)[0]; 6];
    assert_eq!(draw(&same, 1.0), None);
}
