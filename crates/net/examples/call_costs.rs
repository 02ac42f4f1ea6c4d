//! `[Jin03a]` table 2 on this machine: what reading the clock and a read or write of no octets
//! cost, one by one and in loops of 1000 and 1800. Prints a table, ns per call.
//!
//! Each loop is timed 101 times; the least and the median stand in the table. A single call
//! contains the cost of timing it.

use std::fs::File;
use std::io::{Read, Write};
use std::time::SystemTime;

const LOOPS: [u32; 3] = [1, 1000, 1800];
const REPEATS: usize = 101;

fn main() -> std::io::Result<()> {
    let mut source = File::open("/dev/null")?;
    let mut sink = File::options().write(true).open("/dev/null")?;
    row("clock", || {
        std::hint::black_box(now());
        Ok(())
    })?;
    row("read/write", || {
        let octets = source.read(&mut [])? + sink.write(&[])?;
        std::hint::black_box(octets);
        Ok(())
    })
}

/// One line: least and median for each number of loops.
#[expect(clippy::print_stdout, reason = "an example prints its result")]
fn row(name: &str, mut call: impl FnMut() -> std::io::Result<()>) -> std::io::Result<()> {
    // The paper's figure is the mean of a read and a write.
    let per_round = if name == "read/write" { 2.0 } else { 1.0 };
    let mut columns = Vec::new();
    for loops in LOOPS {
        let mut times = Vec::with_capacity(REPEATS);
        for _ in 0..REPEATS {
            let begun = now();
            for _ in 0..loops {
                call()?;
            }
            let taken = now().duration_since(begun).unwrap_or_default();
            times.push(taken.as_secs_f64() * 1e9 / f64::from(loops) / per_round);
        }
        times.sort_by(f64::total_cmp);
        columns.push(format!("{loops} loops: least {:.0} ns, median {:.0} ns", times[0], times[REPEATS / 2]));
    }
    println!("{name}: {}", columns.join("; "));
    Ok(())
}

#[expect(clippy::disallowed_methods, reason = "the call whose cost is measured")]
fn now() -> SystemTime {
    SystemTime::now()
}
