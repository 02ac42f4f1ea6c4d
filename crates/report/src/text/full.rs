//! The complete report, in the sections and with the labels that netest had (`[Netest03]` figures 3
//! to 6), one way after the other.

use std::fmt::Write as _;

use narrows_probe::{BoundKind, BurstFinding, Finding, StreamsFinding, TcpFinding, TwoStreams, WindowFinding};
use narrows_units::{BitRate, Direction, Metric, Octets};

use crate::document::Document;
use crate::rows::MetricRow;

impl Document {
    /// Everything that was found in the sections of netest, one way after the other.
    pub fn netest_text(&self) -> String {
        let mut out = String::new();
        // Writing to a String cannot fail.
        let _ = self.write_full(&mut out);
        out
    }

    fn write_full(&self, out: &mut String) -> std::fmt::Result {
        self.write_hosts(out)?;
        let mut directions: Vec<Direction> = self.metrics.iter().map(|row| row.direction).collect();
        directions.dedup();
        for direction in directions {
            let rows = Rows { all: &self.metrics, direction };
            let way = match direction {
                Direction::Forward => "from this host to the server",
                Direction::Reverse => "from the server to this host",
                Direction::RoundTrip => "there and back",
            };
            writeln!(out, "\n=== {way} ===")?;
            write_statistics(out, &rows)?;
            write_general(out, &rows)?;
            write_udp(out, &rows)?;
            write_tcp(out, &rows)?;
            self.write_advisory(out, direction)?;
        }
        writeln!(out)
    }

    fn write_hosts(&self, out: &mut String) -> std::fmt::Result {
        let here = &self.host.sender_environment;
        writeln!(out, "--- Host section ---")?;
        let mut line = |label: &str, value: Option<String>| {
            writeln!(out, "        {label:<22} {}", value.unwrap_or_else(|| "not known".to_owned()))
        };
        let copy = |rate: Option<u64>| rate.map(|octets| format!("{} MBps", octets / 1_000_000));
        // A copy reads and writes: the bus moves each octet twice.
        let bus = here.memory_copy_octets_per_second.map(|octets| octets.saturating_mul(2));
        let nanos = |time: Option<f64>| time.map(|time| format!("{time:.0} ns"));
        line("local CPU speed", here.processor_mhz.map(|mhz| format!("{mhz:.2} MHz")))?;
        line("usable local mem", here.memory_octets.map(|octets| format!("{} MBytes", octets / 1_000_000)))?;
        line("mem bus speed", copy(bus))?;
        line("max mem copy speed", copy(here.memory_copy_octets_per_second))?;
        line("min mem copy speed", copy(here.memory_copy_least_octets_per_second))?;
        line("NIC speed (measured)", self.host.sender.max_send_rate.map(|rate| mbps(rate.bps())))?;
        line("NIC speed (negotiated)", self.host.sender.interface_rate.map(|rate| mbps(rate.bps())))?;
        line("sub_cost", nanos(here.call_ns))?;
        line("ts_call", nanos(here.clock_read_ns))?;
        line("sys-call", nanos(here.system_call_ns))?;
        line("kernel", here.kernel.clone())?;
        let remote = &self.host.receiver;
        line("server NIC speed", remote.max_send_rate.or(remote.interface_rate).map(|rate| mbps(rate.bps())))?;
        line("server send call", Some(format!("{} ns", remote.send_cost.as_nanos())))?;
        line("server receive call", Some(format!("{} ns", remote.receive_cost.as_nanos())))
    }

    fn write_advisory(&self, out: &mut String, direction: Direction) -> std::fmt::Result {
        writeln!(out, "\n--- Advisory section ---")?;
        let own: Vec<_> = self.advice.iter().filter(|advice| advice.direction == direction).collect();
        if own.is_empty() {
            writeln!(out, "        nothing to mend")?;
        }
        for advice in &own {
            for (index, line) in super::wrapped(&advice.text, 96).into_iter().enumerate() {
                let head = if index == 0 { format!("  {:>3}   ", advice.rule) } else { " ".repeat(8) };
                writeln!(out, "{head}{line}")?;
            }
        }
        let rows = Rows { all: &self.metrics, direction };
        rows.maximum(out)
    }
}

/// The rows of one way.
struct Rows<'a> {
    all: &'a [MetricRow],
    direction: Direction,
}

impl<'a> Rows<'a> {
    fn iter(&self) -> impl Iterator<Item = &'a MetricRow> {
        let direction = self.direction;
        self.all.iter().filter(move |row| row.direction == direction)
    }

    fn row(&self, metric: Metric) -> Option<&'a MetricRow> {
        self.iter().find(|row| row.metric == metric)
    }

    fn value(&self, metric: Metric) -> Option<u64> {
        self.row(metric)?.value
    }

    fn found(&self, metric: Metric) -> Option<&'a Finding> {
        Some(&self.row(metric)?.details.finding)
    }

    fn tcp(&self) -> Option<&'a TcpFinding> {
        match self.found(Metric::TcpAchievableSingle)? {
            Finding::Tcp(found) => Some(found),
            _ => None,
        }
    }

    fn window(&self) -> Option<&'a WindowFinding> {
        match self.found(Metric::TcpWindowOctets)? {
            Finding::Window(found) => Some(found),
            _ => None,
        }
    }

    fn streams(&self) -> Option<&'a StreamsFinding> {
        match self.found(Metric::TcpStreamsToFill)? {
            Finding::Streams(found) => Some(found),
            _ => None,
        }
    }

    fn burst(&self) -> Option<&'a BurstFinding> {
        match self.found(Metric::MaximumBurstOctets)? {
            Finding::Burst(found) => Some(found),
            _ => None,
        }
    }

    fn two_streams(&self) -> Option<&'a TwoStreams> {
        match self.found(Metric::UdpAchievable)? {
            Finding::Udp(found) => found.two_streams.as_ref(),
            _ => None,
        }
    }

    fn cost(&self) -> (u64, f64) {
        self.iter().fold((0, 0.0), |sum: (u64, f64), row| (sum.0.saturating_add(row.octets), sum.1 + row.seconds))
    }

    /// Least, mean and most of what each transfer over one or more connections carried.
    fn tcp_rates(&self) -> Option<(f64, f64, f64)> {
        let mut rates: Vec<f64> = self.value(Metric::TcpAchievableSingle).map(|bps| bps as f64).into_iter().collect();
        let levels = self.streams().map_or(&[][..], |found| &found.levels);
        let tried = self.window().map_or(&[][..], |found| &found.tried_bps);
        let more = levels.iter().map(|level| level.sum_bps).chain(tried.iter().copied());
        rates.extend(more.filter(|bps| bps.is_finite()));
        let mean = narrows_stat::mean(&rates)?;
        let least = rates.iter().copied().fold(f64::INFINITY, f64::min);
        Some((least, mean, rates.iter().copied().fold(0.0, f64::max)))
    }

    /// netest's last line: the highest rate, and who set it.
    fn maximum(&self, out: &mut String) -> std::fmt::Result {
        let hosts = |row: &&MetricRow| {
            use narrows_probe::Limit;
            matches!(row.limited_by, Some(Limit::Sender | Limit::Receiver))
                && row.metric.unit() == narrows_units::Unit::BitPerSecond
        };
        let Some(row) = self.iter().filter(hosts).max_by_key(|row| row.value) else {
            return Ok(());
        };
        let (Some(bps), Some(limit)) = (row.value, row.limited_by) else {
            return Ok(());
        };
        writeln!(out, "maximum throughput is around {:.3} Mb/s limited by the {limit}", bps as f64 / 1e6)
    }
}

fn write_statistics(out: &mut String, rows: &Rows<'_>) -> std::fmt::Result {
    let (octets, seconds) = rows.cost();
    let used = octets as f64 * 8.0 / seconds.max(1e-9);
    writeln!(out, "\n--- General statistics ---")?;
    writeln!(out, "Average bandwidth used in testing: {:.4} Mb/s in {seconds:.4} sec", used / 1e6)?;
    match rows.tcp_rates() {
        Some((least, mean, most)) => writeln!(
            out,
            "TCP transf rate:        min {:.4} / avg {:.4} / max {:.4} Mb/s",
            least / 1e6,
            mean / 1e6,
            most / 1e6
        ),
        None => writeln!(out, "TCP transf rate:        not measured"),
    }
}

fn write_general(out: &mut String, rows: &Rows<'_>) -> std::fmt::Result {
    writeln!(out, "\n--- General section ---")?;
    let rtt = rows.value(Metric::RoundTripTime);
    writeln!(
        out,
        "        Round Trip Time (RTT):          {}",
        rtt.map_or_else(unknown, |nanos| format!("{:.4} ms", nanos as f64 / 1e6))
    )?;
    let burst = rows.row(Metric::MaximumBurstOctets);
    let at_least = burst.filter(|row| row.verdict == BoundKind::LowerBound).map_or("", |_| "at least ");
    writeln!(
        out,
        "        Maximum burst size:             {}",
        burst.and_then(|row| row.value).map_or_else(unknown, |octets| format!("{at_least}{octets} Bytes"))
    )?;
    if let Some(rate) = rows.burst().and_then(|found| found.rate_bps).map(BitRate::bps) {
        writeln!(out, "            sent at:                    {:.4} Mb/s", rate as f64 / 1e6)?;
    }
    for (label, metric) in [
        ("Capacity:                      ", Metric::IpCapacity),
        ("Available Bandwidth:           ", Metric::AvailableIpCapacity),
    ] {
        writeln!(out, "        {label} {}", rows.value(metric).map_or_else(unknown, mbps))?;
    }
    let mtu = rows.value(Metric::PathMtu);
    writeln!(
        out,
        "        Path MTU:                       {}",
        mtu.map_or_else(unknown, |octets| format!("{octets} Bytes"))
    )
}

fn write_udp(out: &mut String, rows: &Rows<'_>) -> std::fmt::Result {
    writeln!(out, "\n--- UDP section ---")?;
    let single = rows.value(Metric::UdpAchievable);
    writeln!(out, "        Single stream UDP throughput:   {}", single.map_or_else(unknown, mbps))?;
    let two = rows.two_streams();
    writeln!(
        out,
        "        Multi- stream UDP throughput:   {}",
        two.map_or_else(|| "not tried".to_owned(), |two| mbps(two.delivered_bps.bps()))
    )?;
    match two {
        Some(two) => writeln!(out, "        Use of multiple streams is {}", two.verdict),
        None => writeln!(out, "        Use of multiple streams was not tried"),
    }
}

/// Connections beyond one are recommended where one falls short of this share of what is available
/// (`[Netest03]` §IV; the share is ours).
const SHORT: f64 = 0.8;

/// What the report says of parallel connections. What was not tried is not advised against, and
/// without what is available nobody knows whether one connection falls short of it.
const fn advised(fill: u64, tried: bool, short: Option<bool>) -> &'static str {
    match (fill, tried, short) {
        (..=1, ..) => "is not needed",
        (_, false, _) => "was not tried",
        (_, true, None) => "not known",
        (_, true, Some(true)) => "is recommended",
        (_, true, Some(false)) => "is not recommended",
    }
}

fn write_tcp(out: &mut String, rows: &Rows<'_>) -> std::fmt::Result {
    writeln!(out, "\n--- TCP section ---")?;
    let window = rows.value(Metric::TcpWindowOctets);
    writeln!(
        out,
        "        Optimal TCP Window size:        {}",
        window.map_or_else(unknown, |octets| format!("{octets} Bytes"))
    )?;
    if let Some(octets) = rows.window().map(|found| found.buffer_to_ask_octets.count()) {
        writeln!(out, "            buffer to ask for:          {octets} Bytes")?;
    }
    let single = rows.value(Metric::TcpAchievableSingle);
    writeln!(out, "        Single stream TCP throughput:   {}", single.map_or_else(unknown, mbps))?;
    let limits = rows.tcp().filter(|_| single.is_some()).map_or(&[][..], |found| &found.limits);
    if !limits.is_empty() {
        let names: Vec<&str> = limits.iter().map(|limit| limit.name()).collect();
        writeln!(out, "            limited by:                 {}", names.join("; "))?;
    }
    let (fill, available) = (rows.value(Metric::TcpStreamsToFill), rows.value(Metric::AvailableIpCapacity));
    let short = single.zip(available).map(|(single, available)| (single as f64) < SHORT * available as f64);
    let Some(fill) = fill else {
        return writeln!(out, "        Use of parallel TCP streams:    not known");
    };
    let estimated = rows
        .row(Metric::TcpStreamsToFill)
        .is_some_and(|row| row.caveats.iter().any(|caveat| caveat.id == "not_converged"));
    let is = advised(fill, !estimated, short);
    writeln!(out, "            Use of parallel TCP streams:        {is}")?;
    let suffix = if estimated { " (estimated)" } else { "" };
    writeln!(out, "    {fill} TCP streams can fully utilize the Available bandwidth{suffix}")?;
    if let Some(parallel) = rows.value(Metric::TcpAchievableParallel) {
        writeln!(out, "        Parallel streams TCP throughput: {}", mbps(parallel))?;
    }
    let streams = rows.streams();
    for (count, words) in [
        (streams.and_then(|found| found.intrusive), "are intrusive"),
        (streams.and_then(|found| found.harmful), "are harmful"),
    ] {
        if let Some(count) = count {
            writeln!(out, "    {count} TCP streams {words}")?;
        }
    }
    if let Some(octets) = rows.burst().and_then(|found| found.queue.effective_octets).map(Octets::count) {
        writeln!(out, "        Effective queue:                {}", Octets::new(octets))?;
    }
    Ok(())
}

fn unknown() -> String {
    "not known".to_owned()
}

fn mbps(bps: u64) -> String {
    format!("{:.4} Mbps", bps as f64 / 1e6)
}

#[cfg(test)]
mod tests {
    use super::advised;

    #[test]
    fn what_was_not_tried_is_not_advised_against() {
        assert_eq!(advised(4, false, Some(false)), "was not tried");
        assert_eq!(advised(4, true, None), "not known");
        assert_eq!(advised(4, true, Some(false)), "is not recommended");
        assert_eq!(advised(4, true, Some(true)), "is recommended");
        assert_eq!(advised(1, true, None), "is not needed");
    }
}
