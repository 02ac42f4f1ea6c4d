//! The answer for people.

use std::fmt::Write as _;
use std::time::Duration;

use narrows_probe::BoundKind;
use narrows_units::{BitRate, Octets, format_duration};

use super::{BurstDocument, Means, QueueVerdict};

impl BurstDocument {
    /// The answer for people; every line ends.
    pub fn text(&self) -> String {
        let mut out = self.row.text();
        if !out.ends_with('\n') {
            out.push('\n');
        }
        if let (Some(p10), Some(median), Some(max)) = (self.p10, self.median, self.max) {
            let more = if self.max_is_bound == Some(true) { " or more" } else { "" };
            let at = self.rate_bps.map_or_else(|| "back to back".to_owned(), |rate| format!("at {}", bits(rate)));
            let _ = writeln!(
                out,
                "  sent {at}: nine of ten survive up to {}, half up to {}, the best {}{more}",
                octets(p10),
                octets(median),
                octets(max)
            );
        }
        self.put_curve(&mut out);
        self.put_queue(&mut out);
        if let Some(means) = &self.means {
            put_means(&mut out, means, self.row.verdict == BoundKind::LowerBound);
        }
        out
    }

    fn put_curve(&self, out: &mut String) {
        if self.curve.len() < 2 {
            return;
        }
        let _ = writeln!(out, "\n  {:>14}  {:>10}  {:>10}  {:>10}  bursts", "sent at", "p10", "median", "max");
        for row in &self.curve {
            let _ = writeln!(
                out,
                "  {:>14}  {:>10}  {:>10}  {:>10}  {:>6}",
                bits(row.rate_bps),
                octets(row.p10),
                octets(row.median),
                octets(row.max),
                row.bursts
            );
        }
    }

    fn put_queue(&self, out: &mut String) {
        let queue = &self.queue;
        let policy = match (queue.policy.as_deref(), queue.counts.as_deref()) {
            (Some("drop_tail"), Some(counts)) => format!("a queue that drops when it is full and counts {counts}"),
            (Some("drop_tail"), None) => "a queue that drops when it is full".to_owned(),
            (Some("early_drop"), _) => "a queue that drops before it is full (active queue management)".to_owned(),
            (Some("policer"), _) => "a policer: what exceeds its bucket is dropped, nothing waits".to_owned(),
            (Some("shaper"), _) => "a shaper: what exceeds its bucket waits in a queue".to_owned(),
            (Some("random_loss"), _) => "chance: packets are lost whether they wait or not".to_owned(),
            _ => String::new(),
        };
        if !policy.is_empty() {
            let _ = writeln!(out, "\n  dropped by {policy}");
        }
        if let (Some(rate), Some(depth)) = (queue.bucket_rate_bps, queue.bucket_octets) {
            let _ = writeln!(out, "  bucket of {}, filled at {}", octets(depth), bits(rate));
        }
        if let Some(effective) = queue.effective_octets {
            let by = if queue.basis.as_deref() == Some("line") {
                "by the line of 1/burst over 1/rate"
            } else {
                "by one rate"
            };
            let delay =
                queue.by_delay_octets.map_or_else(String::new, |by_delay| format!("; by delay {}", octets(by_delay)));
            let drain = queue.drain_ns.map_or_else(String::new, |ns| format!("; drains in {}", time(ns)));
            let _ = writeln!(out, "  effective queue {} {by}{delay}{drain}", octets(effective));
        }
    }
}

fn put_means(out: &mut String, means: &Means, bound: bool) {
    let least = if bound { "at least " } else { "" };
    let _ = writeln!(
        out,
        "\n  An unpaced TCP window of that size sustains {least}{}; what is available times the round trip is {}.",
        bits(means.unpaced_tcp_bps),
        octets(means.delay_product_octets)
    );
    if means.pace && !bound {
        let _ = writeln!(
            out,
            "  Pace the sender (fq, BBR or a pacing limit): it then needs a queue of {} only. Unpaced it takes {} connections to fill the path.",
            octets(means.paced_queue_octets),
            means.unpaced_streams
        );
    }
    let _ = writeln!(
        out,
        "  UDP bursts of up to {} every {} leave half of the queue to cross traffic: {} in all.",
        octets(means.safe_udp_burst_octets),
        time(means.safe_udp_interval_ns),
        bits(means.safe_udp_bps)
    );
    if let Some(window) = means.slow_start_loss_octets.filter(|_| !bound) {
        let _ = writeln!(out, "  An unpaced slow start loses first with about {} in flight.", octets(window));
    }
    let said = match means.queue {
        Some(QueueVerdict::Shallow) => "shallow: one Reno connection needs",
        Some(QueueVerdict::Bloated) => "bloated (more than 100 ms): enough for one Reno connection are",
        Some(QueueVerdict::Fair) => "fair: one Reno connection needs",
        None => return,
    };
    let _ = writeln!(
        out,
        "  The queue is {said} {}, CUBIC {}.",
        octets(means.reno_queue_octets),
        octets(means.cubic_queue_octets)
    );
}

fn bits(bps: u64) -> String {
    BitRate::from_bps(bps).to_string()
}

fn octets(count: u64) -> String {
    Octets::new(count).to_string()
}

fn time(ns: u64) -> String {
    format_duration(Duration::from_nanos(ns))
}
