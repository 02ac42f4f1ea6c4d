use proptest::prelude::*;

use super::Judgement::{Clear, Crossed, Open};
use super::*;

fn reading(claim: BoundKind, low: f64, value: f64, high: f64) -> Reading {
    let value = (claim != BoundKind::Inconclusive).then_some(value);
    let quantity = Quantity::named("available").expect("in the table");
    let (low, high) = (value.map(|_| low), value.map(|_| high));
    Reading { quantity, direction: Direction::Forward, layer: None, value, low, high, claim }
}

fn judged(condition: &str, reading: Reading) -> Judgement {
    let conditions: Conditions = condition.parse().unwrap_or_else(|error| panic!("{condition}: {error}"));
    let judged = conditions.judge(&[reading]);
    assert_eq!(judged.len(), 1);
    judged[0].0
}

#[test]
fn estimates_settle_every_condition() {
    let result = reading(BoundKind::Estimated, 40e6, 45e6, 60e6);
    for (condition, expected) in [
        ("available<50M", Crossed),
        ("available_ip_capacity < 50 Mbit/s", Crossed),
        ("available<45M", Clear),
        ("available<=45M", Crossed),
        ("available>45M", Clear),
        ("available>=45M", Crossed),
        // Surely below, surely above.
        ("available.high<50M", Clear),
        ("available.high<61M", Crossed),
        ("available.low>39M", Crossed),
        ("available.low<39M", Clear),
    ] {
        assert_eq!(judged(condition, result), expected, "{condition}");
    }
}

#[test]
fn bounds_settle_what_they_can() {
    let at_least = reading(BoundKind::LowerBound, 50e6, 50e6, 50e6);
    let at_most = reading(BoundKind::UpperBound, 50e6, 50e6, 50e6);
    for (condition, lower, upper) in [
        ("available<40M", Clear, Open),
        ("available<60M", Open, Crossed),
        ("available>40M", Crossed, Open),
        ("available>60M", Open, Clear),
        ("available.high<60M", Open, Crossed),
        ("available.low<60M", Crossed, Crossed),
        ("available.low<40M", Clear, Open),
    ] {
        assert_eq!(judged(condition, at_least), lower, "at least: {condition}");
        assert_eq!(judged(condition, at_most), upper, "at most: {condition}");
    }
    let nothing = reading(BoundKind::Inconclusive, 0.0, 0.0, 0.0);
    assert_eq!(judged("available<40M", nothing), Open);
}

#[test]
fn the_worse_direction_counts_and_lines_say_which() {
    let conditions: Conditions = "available<50M,capacity<1G".parse().unwrap();
    let forward = reading(BoundKind::Estimated, 60e6, 61e6, 62e6);
    let reverse = Reading { direction: Direction::Reverse, ..reading(BoundKind::Estimated, 40e6, 41e6, 42e6) };
    let judged = conditions.judge(&[forward, reverse]);
    assert_eq!(judged[0], (Crossed, "available < 50 Mbit/s: crossed, it is 41 Mbit/s, reverse direction".to_owned()));
    assert_eq!(judged[1], (Open, "capacity < 1 Gbit/s: open, it was not measured".to_owned()));
}

#[test]
fn what_cannot_be_read_is_named() {
    for (text, word) in [
        ("", "compares nothing"),
        ("available", "compares nothing"),
        ("available<50M,", "compares nothing"),
        ("speed<50M", "rtt, loaded_rtt, loss, jitter, mtu, capacity"),
        ("available.mid<50M", "available.mid"),
        ("available<50 ms", "available: unit \"ms\""),
        ("loss>200%", "no share"),
        ("available<", "available: empty value"),
        ("available=<50M", "available="),
    ] {
        let error = text.parse::<Conditions>().expect_err(text).to_string();
        assert!(error.contains(word), "{text}: {error}");
    }
    let conditions: Conditions = "loss>1%".parse().unwrap();
    let error = conditions.check(&[Quantity::named("capacity").unwrap()]).unwrap_err().to_string();
    assert_eq!(error, "loss is not measured here; this command has capacity");
}

fn claims() -> impl Strategy<Value = BoundKind> {
    prop::sample::select(vec![
        BoundKind::Estimated,
        BoundKind::LowerBound,
        BoundKind::UpperBound,
        BoundKind::Inconclusive,
    ])
}

proptest! {
    /// A condition and its opposite are never both met nor both clear, and open together.
    #[test]
    fn opposites_exclude_each_other(
        claim in claims(), value in 1u64..1_000_000, spread in 0u64..1_000, limit in 0u64..1_000_000,
        end in prop::sample::select(vec!["", ".low", ".high"]),
        operators in prop::sample::select(vec![("<", ">="), (">", "<=")]),
    ) {
        let result = reading(claim, value.saturating_sub(spread) as f64, value as f64, (value + spread) as f64);
        let one = judged(&format!("available{end}{}{limit}", operators.0), result);
        let other = judged(&format!("available{end}{}{limit}", operators.1), result);
        let opposite = match one { Crossed => Clear, Clear => Crossed, Open => Open };
        prop_assert_eq!(other, opposite);
        if claim == BoundKind::Estimated {
            prop_assert_ne!(one, Open);
        }
    }

    /// What a bound settles, every truth that the bound allows settles alike.
    #[test]
    fn a_settled_bound_holds_for_every_truth(
        is_lower in any::<bool>(), bound in 1u64..1_000_000, beyond in 0u64..1_000_000, limit in 0u64..1_000_000,
        operator in prop::sample::select(vec!["<", "<=", ">", ">="]),
    ) {
        let claim = if is_lower { BoundKind::LowerBound } else { BoundKind::UpperBound };
        let truth = if is_lower { bound + beyond } else { bound.saturating_sub(beyond) } as f64;
        let condition = format!("available{operator}{limit}");
        let by_bound = judged(&condition, reading(claim, bound as f64, bound as f64, bound as f64));
        if by_bound != Open {
            prop_assert_eq!(judged(&condition, reading(BoundKind::Estimated, truth, truth, truth)), by_bound);
        }
    }
}
