//! What is told to have limited a transfer, over paths that no threshold was set by: rates, round
//! trips, queues and seeds are drawn.
//!
//! `cargo run --release -p narrows-sim --example verdicts -- [PATHS [SEED]] [wide]`; `wide`: 1
//! Mbit/s to 10 Gbit/s, 1 to 200 ms, Reno, CUBIC and BBR, one to four connections.
//! `UPDATE_VERDICTS=1` writes the matrix into `docs/results/verdicts.md`, `ONLY_LIMIT="shaper"`
//! tries one limit, `SHOW_LIMITS=1` tells each transfer.

#![expect(clippy::print_stdout, reason = "a program that prints a table")]

#[path = "../tests/all/limits/induced.rs"]
mod induced;

use narrows_stat::SplitMix64;

use induced::{Base, Control, FURTHER, INDUCED, matrix, page};

/// A share, 0..1.
fn share(random: &mut SplitMix64) -> f64 {
    (random.next_u64() >> 40) as f64 / f64::from(1u32 << 24)
}

fn main() {
    let mut arguments = std::env::args().skip(1).filter_map(|argument| argument.parse::<u64>().ok());
    let paths = arguments.next().unwrap_or(12);
    let seed = arguments.next().unwrap_or(2026);
    let wide = std::env::args().any(|argument| argument == "wide");
    let mut random = SplitMix64::new(seed);
    let bases: Vec<Base> = (0..paths)
        .map(|path| if wide { drawn(path, seed, &mut random) } else { moderate(path, seed, &mut random) })
        .collect();
    for base in &bases {
        println!("{base:?}");
    }
    let all = if wide { [&INDUCED[..], &FURTHER].concat() } else { INDUCED.to_vec() };
    let (text, wrong) = matrix(&all, &bases, &mut |line| println!("{line}"));
    println!("\n{text}");
    for line in &wrong {
        println!("{line}");
    }
    page(if wide { "wide" } else { "unseen" }, &text);
}

/// Even on the scale of decades.
fn between(random: &mut SplitMix64, low: f64, high: f64) -> f64 {
    low * (high / low).powf(share(random))
}

/// 10 to 250 Mbit/s, 8 to 120 ms, queues of 0.5 to 3 products, Reno and CUBIC in turn.
fn moderate(path: u64, seed: u64, random: &mut SplitMix64) -> Base {
    Base {
        mbps: between(random, 10.0, 250.0),
        rtt_ms: between(random, 8.0, 120.0),
        queue: between(random, 0.5, 3.0),
        control: if path.is_multiple_of(2) { Control::Reno } else { Control::Cubic },
        streams: 1,
        length: 12.0,
        seed: seed.wrapping_add(path),
    }
}

/// Segments that a test may carry: what keeps a run to seconds.
const MOST_SEGMENTS: f64 = 1.5e6;

/// 1 Mbit/s to 10 Gbit/s, 1 to 200 ms (at least thirty round trips in the test), queues of 0.5 to 3
/// products, the three controls in turn, one, two or four connections.
fn drawn(path: u64, seed: u64, random: &mut SplitMix64) -> Base {
    let mbps = between(random, 1.0, 10_000.0);
    let length = (MOST_SEGMENTS * 1500.0 * 8.0 / (mbps * 1e6)).clamp(2.0, 12.0);
    Base {
        mbps,
        length,
        rtt_ms: between(random, 1.0, 200.0).min(length * 1e3 / 30.0),
        queue: between(random, 0.5, 3.0),
        control: [Control::Reno, Control::Cubic, Control::Bbr][usize::try_from(path % 3).unwrap_or(0)],
        streams: if share(random) < 0.5 { 1 } else { [2, 4][usize::from(share(random) < 0.5)] },
        seed: seed.wrapping_add(path),
    }
}
