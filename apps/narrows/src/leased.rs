//! A child of an agent ends by itself: when the lease of what it loads ends, and when the agent
//! does, also if that was killed or stopped.
//!
//! `NARROWS_SEND_UNTIL=stdin`: each line of standard input is a time of `CLOCK_BOOTTIME` in ns
//! until which this process may send; before the first line it does nothing. `=closed`: standard
//! input only has to stay open.

use std::io::BufRead;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use narrows_net::clock;
use nix::sys::time::TimeSpec;
use nix::time::{ClockId, ClockNanosleepFlags, clock_nanosleep};

use crate::exit::Failure;

/// Which of the two it is, for the agent that starts a child.
#[cfg(feature = "fleet")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Until {
    /// As long as standard input says so.
    Stdin,
    /// As long as standard input is open.
    Closed,
}

#[cfg(feature = "fleet")]
impl Until {
    /// The child's environment.
    pub(crate) const fn variable(self) -> (&'static str, &'static str) {
        match self {
            Self::Stdin => (VARIABLE, STDIN),
            Self::Closed => (VARIABLE, CLOSED),
        }
    }
}

/// Begins to obey, if this process is such a child. Returns once it may begin.
pub(crate) fn obey() -> Result<(), Failure> {
    match std::env::var(VARIABLE).as_deref() {
        Ok(STDIN) => {}
        Ok(CLOSED) => {
            std::thread::spawn(|| {
                while next_line().is_some() {}
                end("its agent is gone");
            });
            return Ok(());
        }
        Ok(other) => return Err(Failure::usage(format!("{VARIABLE}: \"{other}\" is neither {STDIN} nor {CLOSED}"))),
        Err(_) => return Ok(()),
    }
    let Some(first) = next_line().and_then(|line| until(&line)) else { end("it was never leased") };
    let last = Arc::new(AtomicI64::new(first));
    let renewed = Arc::clone(&last);
    std::thread::spawn(move || {
        while let Some(line) = next_line() {
            match until(&line) {
                // The agent alone knows whether a lease was renewed; an earlier time counts too.
                Some(time) => renewed.store(time, Ordering::Relaxed),
                None => break,
            }
        }
        end("its agent is gone, or says what is no time");
    });
    std::thread::spawn(move || {
        loop {
            let stop = last.load(Ordering::Relaxed).saturating_sub(GUARD_NS);
            if clock::boot_ns() >= stop {
                end("its lease ended");
            }
            // A renewal may also bring the time forward.
            sleep_until(stop.min(clock::boot_ns() + LOOK_NS));
        }
    });
    Ok(())
}

fn next_line() -> Option<String> {
    let mut line = String::new();
    match std::io::stdin().lock().read_line(&mut line) {
        Ok(octets) if octets > 0 => Some(line),
        _ => None,
    }
}

fn until(line: &str) -> Option<i64> {
    line.trim().parse().ok()
}

/// On the clock that goes on while the machine sleeps: the first thing after waking is to look.
fn sleep_until(boot_ns: i64) {
    let time = TimeSpec::new(boot_ns.div_euclid(1_000_000_000), boot_ns.rem_euclid(1_000_000_000));
    // A signal is the one failure that a valid instant has; the caller looks at the clock again.
    let _ = clock_nanosleep(ClockId::CLOCK_BOOTTIME, ClockNanosleepFlags::TIMER_ABSTIME, &time);
}

/// At once: no other thread of this process may send any more.
fn end(why: &str) -> ! {
    crate::output::complain(why);
    std::process::exit(1)
}

const VARIABLE: &str = "NARROWS_SEND_UNTIL";
const STDIN: &str = "stdin";
const CLOSED: &str = "closed";
/// What may still be on its way out when the lease ends: `fleet::lease::GUARD`.
const GUARD_NS: i64 = 50_000_000;
const LOOK_NS: i64 = 1_000_000_000;
