//! The answer for people, with the curve as bars.

use std::fmt::Write as _;
use std::time::Duration;

use narrows_units::{BitRate, Octets, format_duration};

use super::{StreamsDocument, StreamsRow};

/// Characters of the longest bar.
const WIDTH: u64 = 40;

impl StreamsDocument {
    /// The answer for people; every line ends. `ascii`: nothing beyond ASCII.
    pub fn text(&self, ascii: bool) -> String {
        let mut out = self.row.text();
        if !out.ends_with('\n') {
            out.push('\n');
        }
        if !self.curve.is_empty() {
            out.push('\n');
        }
        let most = self.curve.iter().map(|row| row.rate_bps).max().unwrap_or(0);
        for row in &self.curve {
            self.put_row(&mut out, row, most.max(1), ascii);
        }
        self.put_numbers(&mut out);
        self.put_buffers(&mut out);
        if ascii { out.replace('µ', "u") } else { out }
    }

    fn put_row(&self, out: &mut String, row: &StreamsRow, most: u64, ascii: bool) {
        let length = u128::from(row.rate_bps) * u128::from(WIDTH) / u128::from(most);
        let bar = if ascii { "#" } else { "█" }.repeat(usize::try_from(length).unwrap_or(0).max(1));
        let arrow = if ascii { "<-" } else { "◀" };
        let marks = [(self.fill, "fills the path"), (self.intrusive, "intrusive"), (self.harmful, "harmful")];
        let marks: Vec<&str> =
            marks.into_iter().filter(|(streams, _)| *streams == Some(row.streams)).map(|(_, name)| name).collect();
        let mark = if marks.is_empty() { String::new() } else { format!("  {arrow} {}", marks.join(", ")) };
        let _ = writeln!(
            out,
            "  {:>3}  {:>12}  {:>9}  {:>6.2} %  {bar}{mark}",
            row.streams,
            BitRate::from_bps(row.rate_bps).to_string(),
            format_duration(Duration::from_nanos(row.rtt_ns)),
            row.retransmitted_share * 100.0
        );
    }

    fn put_numbers(&self, out: &mut String) {
        out.push('\n');
        match (self.fill, self.fill_is_extrapolated) {
            (Some(1), false) => out.push_str("  One stream fills the path.\n"),
            (Some(fill), false) => {
                let _ = writeln!(out, "  {fill} fill the path.");
            }
            (Some(fill), true) => {
                let _ = writeln!(out, "  {fill} would fill the path (estimated: the sum still rose in proportion).");
            }
            (None, _) if self.curve.is_empty() => {}
            (None, _) => out.push_str("  How many fill the path is not known: the sum still rose.\n"),
        }
        if let Some(streams) = self.intrusive {
            let by = self.intrusive_by.join(", ");
            let _ = writeln!(out, "  Intrusive from {streams} on ({by}).");
        }
        if let Some(streams) = self.harmful {
            let _ = writeln!(out, "  Harmful from {streams} on: they get less than fewer do.");
        }
        if let Some(flows) = self.competing_flows {
            let _ = writeln!(out, "  The curve is that of a path shared with about {flows:.1} other connections.");
        }
        match self.recommended {
            Some(true) => out.push_str("  Parallel streams: recommended; mend window and congestion control first.\n"),
            Some(false) => out.push_str("  Parallel streams: not recommended.\n"),
            None => {}
        }
    }

    fn put_buffers(&self, out: &mut String) {
        let Some(buffers) = &self.buffers else { return };
        let granted = buffers
            .granted_octets
            .map_or_else(|| "an unknown size".to_owned(), |octets| Octets::new(octets).to_string());
        let _ = writeln!(
            out,
            "  Buffers of {} asked for at both sides of this host: granted {granted}, {:.2} times the rate.",
            Octets::new(buffers.requested_octets),
            buffers.gain
        );
        if buffers.clamped {
            out.push_str("  The kernel granted less: raise net.core.wmem_max and net.core.rmem_max.\n");
        }
        if buffers.kernel_at_fault {
            out.push_str("  The sending host's kernel ties its send buffer to its receive buffer: set both, or mend the kernel.\n");
        }
    }
}
