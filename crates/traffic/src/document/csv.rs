//! The series of all flows as one table.

use std::fmt::Write as _;

use super::Report;

const HEAD: &str = "flow,name,side,layer,from_ns,interval_ns,packets,octets,rate_bps,lost,duplicates,reordered,\
                    delay_variation_min_ns,delay_variation_mean_ns,delay_variation_max_ns,cwnd_segments,rtt_ns,\
                    retransmitted_segments\n";

impl Report {
    /// A header line, then a line per flow, side and interval. Times of the sending side count from
    /// the flow's beginning, those of the receiving side from the session's first arrival.
    pub fn csv(&self) -> String {
        let mut text = HEAD.to_owned();
        for (index, flow) in self.flows.iter().enumerate() {
            let name = quoted(&flow.name);
            let rate = |octets: u64, interval: u64| {
                let bits = u128::from(octets) * 8_000_000_000;
                bits.checked_div(u128::from(interval)).map(|rate| rate.to_string()).unwrap_or_default()
            };
            let length = flow.sent.interval_ns;
            for bin in &flow.sent.intervals {
                let _ = writeln!(
                    text,
                    "{index},{name},sent,{},{},{length},{},{},{},,,,,,,{},{},{}",
                    flow.layer,
                    bin.from_ns,
                    bin.packets,
                    bin.octets,
                    rate(bin.octets, length),
                    optional(bin.cwnd_segments),
                    optional(bin.rtt_ns),
                    optional(bin.retransmitted_segments),
                );
            }
            let Some(received) = &flow.received else { continue };
            let length = received.interval_ns;
            for bin in &received.intervals {
                let [low, mean, high] = bin.delay_variation_ns.map_or([None; 3], |delays| delays.map(Some));
                let _ = writeln!(
                    text,
                    "{index},{name},received,{},{},{length},{},{},{},{},{},{},{},{},{},,,",
                    flow.layer,
                    bin.from_ns,
                    bin.packets,
                    bin.octets,
                    rate(bin.octets, length),
                    bin.lost,
                    bin.duplicates,
                    bin.reordered,
                    optional(low),
                    optional(mean),
                    optional(high),
                );
            }
        }
        text
    }
}

fn optional<T: ToString>(value: Option<T>) -> String {
    value.map(|value| value.to_string()).unwrap_or_default()
}

/// RFC 4180 §2: quoted if it holds what would end it.
fn quoted(text: &str) -> String {
    if text.contains(['"', ',', '\n', '\r']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::quoted;

    #[test]
    fn names_with_commas_stay_one_cell() {
        assert_eq!(quoted("cbr"), "cbr");
        assert_eq!(quoted("replay a,\"b\".pcap"), "\"replay a,\"\"b\"\".pcap\"");
    }
}
