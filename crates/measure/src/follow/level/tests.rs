use super::*;

fn point(ms: i64, rate: f64, growth: f64) -> Point {
    Point { at: Stamp::from_nanos(ms * 1_000_000), rate, growth, error: 0.001, time: 0.0025, loss: 0.0 }
}

/// The fluid line `s = (R - A)/C`.
fn fluid(capacity: f64, available: f64) -> Level {
    let mut level = Level::new(None);
    for (index, offset) in [0.1, 0.1, 0.3, 0.1, 0.2, 0.1, 0.3, 0.1, 0.1, 0.3].into_iter().enumerate() {
        let rate = available + offset * capacity;
        level.push(point(250 * i64::try_from(index).unwrap(), rate, (rate - available) / capacity));
    }
    level
}

#[test]
fn exact_on_the_fluid_line() {
    for tenths in 1..=10 {
        let available = 1e8 * f64::from(tenths);
        let level = fluid(1e9, available);
        let now = level.now(Duration::from_secs(1)).unwrap();
        assert!((now.available / 1e9 - available / 1e9).abs() < 0.004, "{tenths} {now:?}");
        assert!((now.available - available).abs() <= 3.0 * now.error + 1e6, "{tenths} {now:?}");
        assert!((now.capacity / 1e9 - 1.0).abs() < 0.06, "{tenths} {now:?}");
    }
}

#[test]
fn one_train_over_an_idle_path_gives_its_capacity() {
    let mut level = Level::new(None);
    level.push(point(0, 1.4e9, 0.4));
    let now = level.now(Duration::from_secs(1)).unwrap();
    assert!((now.available / 1e9 - 1.0).abs() < 1e-9, "{now:?}");
}

/// By hand: values 10 and 12 with errors of 1 scatter by no more than those (between: 4/2 - 1 =
/// 1, so both weigh alike), and one with an error of 10 hardly counts.
#[test]
fn values_count_by_their_errors() {
    let mean = weighted(&[(10.0, 1.0), (12.0, 1.0)]).unwrap();
    assert!((mean.value - 11.0).abs() < 1e-9 && (mean.between - 1.0).abs() < 1e-9, "{}", mean.between);
    assert!((mean.error - 1.0).abs() < 1e-9, "{}", mean.error);
    let mean = weighted(&[(10.0, 1.0), (10.5, 1.0), (30.0, 10.0)]).unwrap();
    assert!((mean.value - 10.25).abs() < 0.3, "{}", mean.value);
    assert!(weighted(&[]).is_none());
}

#[test]
fn a_outlier_train_is_left_out_and_a_new_level_forgets() {
    let mut level = fluid(1e9, 5e8);
    level.push(point(2600, 6e8, 0.9));
    let now = level.now(Duration::from_secs(1)).unwrap();
    assert!((now.available / 5e8 - 1.0).abs() < 0.01, "{now:?}");
    assert!((now.available - 5e8).abs() < now.error, "{now:?}");
    // Nothing of the trains is left, and of what they told that the link carried others'
    // traffic: less is available than came out.
    let new = level.restarted(&[point(3000, 3e8, 0.5)]);
    let available = new.now(Duration::from_secs(1)).unwrap().available;
    assert!((0.5e8..1.8e8).contains(&available), "{available}");
    let idle = Level::new(None).restarted(&[point(3000, 3e8, 0.5)]);
    assert!((idle.now(Duration::from_secs(1)).unwrap().available / 2e8 - 1.0).abs() < 1e-9);
}
