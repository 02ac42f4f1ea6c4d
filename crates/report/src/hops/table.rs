//! The path as a table for people.

use std::fmt::Write as _;
use std::time::Duration;

use narrows_probe::BoundKind;
use narrows_units::{BitRate, Layer, Octets, format_duration};

use super::{HopRow, HopsDocument, RouterRow};
use crate::answer_line::answer_text;

/// Columns of a router's name, unless the table may be wide.
const NAME_COLUMNS: usize = 32;

impl HopsDocument {
    /// The table, ending in a newline; names are cut to fit unless it may be `wide`.
    pub fn text(&self, wide: bool) -> String {
        let mut out = String::new();
        // Writing to a String cannot fail.
        let _ = self.write(&mut out, wide);
        out
    }

    fn write(&self, out: &mut String, wide: bool) -> std::fmt::Result {
        let address = self.target.address.map_or_else(String::new, |address| format!(" ({address})"));
        let target = printable(&self.target.name);
        writeln!(out, "Path to {target}{address} by {}, method {}", self.via, self.method)?;
        for note in &self.notes {
            writeln!(out, "  note: {}", note.text)?;
        }
        if !self.answer.is_empty() {
            write!(out, "\n{}", answer_text(&self.answer))?;
        }
        let layer = match self.layer {
            None => "",
            Some(Layer::Ip) => " (IP)",
            Some(_) => " (see layer)",
        };
        let columns = self.name_columns(wide);
        writeln!(
            out,
            "\n hop  {:<columns$}  {:>7}  {:>10}  {:>10}  capacity{layer}",
            "router", "loss", "round trip", "queueing"
        )?;
        for hop in &self.hops {
            self.write_hop(out, hop, columns)?;
        }
        if self.hops.is_empty() {
            writeln!(out, "   no hop answered")?;
        }
        self.write_tail(out)
    }

    fn name_columns(&self, wide: bool) -> usize {
        let names = self.hops.iter().flat_map(|hop| &hop.routers).map(|router| label(router).chars().count());
        let longest = names.max().unwrap_or(0).max(15);
        if wide { longest } else { longest.min(NAME_COLUMNS) }
    }

    fn write_hop(&self, out: &mut String, hop: &HopRow, columns: usize) -> std::fmt::Result {
        let mut routers = hop.routers.iter();
        let first = routers.next().map_or_else(|| "???".to_owned(), label);
        let time = |ns: Option<u64>| ns.map_or_else(|| "–".to_owned(), |ns| format_duration(Duration::from_nanos(ns)));
        let loss = hop.loss_ratio.map_or_else(|| "–".to_owned(), |ratio| format!("{:.1} %", 100.0 * ratio));
        let line = format!(
            "{:>4}  {:<columns$}  {loss:>7}  {:>10}  {:>10}  {}{}",
            hop.ttl,
            cut(&first, columns),
            time(hop.round_trip_ns),
            time(hop.queueing_ns),
            capacity(hop),
            self.marks(hop),
        );
        writeln!(out, "{}", line.trim_end())?;
        if let Some(available) = hop.available {
            writeln!(out, "      free: {}", BitRate::from_bps(available))?;
        }
        for router in routers {
            writeln!(out, "      also {}", label(router))?;
        }
        for router in &hop.routers {
            for one in &router.mpls {
                let (number, class, ttl) = (one.label, one.traffic_class, one.ttl);
                writeln!(out, "      MPLS label {number}, class {class}, TTL {ttl}")?;
            }
        }
        for device in &hop.hidden_devices {
            let kind = printable(&device.kind);
            let (nominal, ip) = (BitRate::from_bps(device.nominal), BitRate::from_bps(device.capacity));
            writeln!(out, "      hidden inside: a {kind} of {nominal} ({ip} at this layer)")?;
        }
        let said = hop.caveats.iter().any(|caveat| caveat.id == "answers_limited");
        if let Some(limited) = hop.limited.filter(|_| !said) {
            let every = format_duration(Duration::from_nanos(limited.every_ns));
            writeln!(out, "      answers {} at once, then one per {every}", limited.burst)?;
        }
        for caveat in &hop.caveats {
            writeln!(out, "      {}", caveat.text)?;
        }
        Ok(())
    }

    fn marks(&self, hop: &HopRow) -> String {
        let is = |which: Option<u16>| which == Some(hop.ttl);
        match (is(self.narrow_hop), is(self.tight_hop)) {
            (true, true) => "  ◀ narrow, tight",
            (true, false) => "  ◀ narrow",
            (false, true) => "  ◀ tight",
            (false, false) => "",
        }
        .to_owned()
    }

    fn write_tail(&self, out: &mut String) -> std::fmt::Result {
        if !self.reached && !self.hops.is_empty() {
            writeln!(out, "  the destination did not answer")?;
        }
        self.write_peer_kind(out)?;
        if let Some(reason) = &self.reason {
            writeln!(out, "  inconclusive: {}", reason.text)?;
        }
        for caveat in &self.caveats {
            writeln!(out, "  {}", caveat.text)?;
        }
        let unmatched_replies = &self.unmatched_replies;
        let kinds = [
            (unmatched_replies.late, "late"),
            (unmatched_replies.duplicate, "duplicate"),
            (unmatched_replies.foreign, "about packets never sent"),
            (unmatched_replies.short, "quoting too little"),
        ];
        let reported: Vec<String> =
            kinds.iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("{count} {what}")).collect();
        if !reported.is_empty() {
            writeln!(out, "  answers left out: {}", reported.join(", "))?;
        }
        writeln!(
            out,
            "  cost: {} packets, {}, {}",
            self.cost.packets,
            Octets::new(self.cost.octets),
            format_duration(Duration::try_from_secs_f64(self.cost.seconds).unwrap_or_default())
        )
    }
}

/// What is claimed of a hop's capacity.
pub(crate) fn capacity(hop: &HopRow) -> String {
    let rate = BitRate::from_bps;
    let (Some(value), Some(low), Some(high)) = (hop.capacity, hop.low, hop.high) else {
        return "–".to_owned();
    };
    match hop.verdict {
        BoundKind::LowerBound => format!("at least {}", rate(value)),
        BoundKind::UpperBound => format!("at most {}", rate(value)),
        BoundKind::Estimated | BoundKind::Inconclusive => format!("{} ({} … {})", rate(value), rate(low), rate(high)),
    }
}

/// Address, with its name before it if there is one.
pub(crate) fn label(router: &RouterRow) -> String {
    router
        .name
        .as_ref()
        .map_or_else(|| router.address.clone(), |name| format!("{} ({})", printable(name), router.address))
}

/// At most so many characters.
pub(super) fn cut(text: &str, columns: usize) -> String {
    crate::picture::shorten(text, columns)
}

/// Names come from outside: nothing in them may move a terminal's cursor.
pub(super) fn printable(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '?' } else { c }).collect()
}
