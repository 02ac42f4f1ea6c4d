//! Measures change detection over simulated series: `docs/results/watch.md` is what it prints.
//!
//! `cargo run --release -p narrows-watch --example detection -- [SERIES] [FIRST_SEED]`

#![allow(clippy::print_stdout, reason = "a program that prints a table")]

mod charts;
mod compare;
mod cusum;
mod product;
mod series;

fn main() {
    let mut arguments = std::env::args().skip(1);
    let count = arguments.next().and_then(|text| text.parse().ok()).unwrap_or(60);
    let seed = arguments.next().and_then(|text| text.parse().ok()).unwrap_or(1000);
    println!("Series of each kind: {count}, seeds {seed} to {}.\n", seed + count - 1);
    product::print(count, seed);
    if arguments.next().is_none() {
        compare::print(count, seed);
    }
}
