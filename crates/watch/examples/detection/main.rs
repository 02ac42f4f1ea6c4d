//! Measures change detection over simulated series: `docs/results/watch.md` is what it prints.
//!
//! `cargo run --release -p narrows-watch --example detection -- [SERIES] [FIRST_SEED] [product |
//! compare | causes]`

#![allow(clippy::print_stdout, reason = "a program that prints a table")]

mod causes;
mod charts;
mod compare;
mod cusum;
mod product;
mod series;

fn main() {
    let mut arguments = std::env::args().skip(1);
    let count = arguments.next().and_then(|text| text.parse().ok()).unwrap_or(60);
    let seed = arguments.next().and_then(|text| text.parse().ok()).unwrap_or(1000);
    let part = arguments.next();
    let wanted = |name: &str| part.as_deref().is_none_or(|part| part == name);
    println!("Series of each kind: {count}, seeds {seed} to {}.\n", seed + count - 1);
    if wanted("product") {
        product::print(count, seed);
    }
    if wanted("compare") {
        compare::print(count, seed);
    }
    if wanted("causes") {
        causes::print(seed);
    }
}
