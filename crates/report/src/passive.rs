//! The result document of `passive`: flows of captured traffic, and what they say together about
//! each pair of hosts.

use std::fmt::Write as _;

use narrows_probe::{BoundKind, Confidence, Diagnostics, Limit};
use narrows_units::BitRate;
use serde::Serialize;

use crate::rows::Remark;
use crate::schema;

/// One capture, or several read one after the other.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PassiveDocument {
    /// Name and version of the schema that this document follows.
    pub schema: &'static str,
    /// What was read, in order: files, or one interface.
    pub inputs: Vec<String>,
    /// One row per direction of a connection and method, in the order in which the connections
    /// began.
    pub flows: Vec<PassiveFlow>,
    /// One row per sending host, receiving host and method.
    pub pairs: Vec<PassivePair>,
    /// Packets in all.
    pub packets: u64,
    /// Octets that they had on their links.
    pub octets: u64,
    /// Places of the capture and packets that could not be read.
    pub unreadable: u64,
    /// The first places that could not be read.
    pub damage: Vec<PassiveDamage>,
    /// What the packets were.
    pub counts: PassiveCounts,
    /// Finest step between stamps.
    pub resolution_ns: u64,
}

/// What one method made of one direction of a connection.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PassiveFlow {
    /// Address and port of the data's sender.
    pub source: String,
    /// Address and port of their receiver.
    pub destination: String,
    /// VLAN identifiers, the outer one first.
    pub vlan: Vec<u16>,
    /// Which way the data went: from the host that opened the connection (forward), or to it.
    pub direction: FlowDirection,
    /// By which method.
    pub method: String,
    /// IP-layer capacity in bit/s; `null` when inconclusive.
    pub value: Option<u64>,
    /// Lower end of the interval.
    pub low: Option<u64>,
    /// Upper end of the interval.
    pub high: Option<u64>,
    /// What it claims.
    pub verdict: BoundKind,
    /// How much stands behind it.
    pub confidence: Option<Confidence>,
    /// What set it; `null` when inconclusive.
    pub limited_by: Option<Limit>,
    /// Samples that it rests on.
    pub samples: u64,
    /// Where the capture sits on the way of the data.
    pub vantage: &'static str,
    /// Smallest round trip from the capture to the receiver and back.
    pub ahead_ns: Option<u64>,
    /// Smallest round trip from the capture to the sender and back.
    pub behind_ns: Option<u64>,
    /// Why it might mislead.
    pub caveats: Vec<Remark>,
    /// Why there is no value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<Remark>,
    /// Packets with data.
    pub data_packets: u64,
    /// Their TCP payload, retransmissions included.
    pub payload_octets: u64,
    /// First packet, on the capturing clock.
    pub began_ns: i64,
    /// From the first packet to the last.
    pub lasted_ns: u64,
    /// Intermediate results.
    pub evidence: Diagnostics,
}

/// Which way a flow's data went.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FlowDirection {
    /// From the host that opened the connection.
    Forward,
    /// To it.
    Reverse,
    /// The opening was not captured.
    Unknown,
}

/// What one method's flows between two hosts say together.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PassivePair {
    /// Address of the data's sender.
    pub source: String,
    /// Address of their receiver.
    pub destination: String,
    /// By which method.
    pub method: String,
    /// IP-layer capacity in bit/s; `null` when inconclusive.
    pub value: Option<u64>,
    /// Lower end of the interval.
    pub low: Option<u64>,
    /// Upper end of the interval.
    pub high: Option<u64>,
    /// What it claims.
    pub verdict: BoundKind,
    /// Flows that were looked at.
    pub flows: usize,
    /// Flows that the value rests on.
    pub used: usize,
    /// Their samples.
    pub samples: u64,
    /// Why it might mislead.
    pub caveats: Vec<Remark>,
    /// Why there is no value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<Remark>,
}

/// A place that could not be read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PassiveDamage {
    /// Of which input.
    pub input: String,
    /// Octets of it before that place.
    pub octet: u64,
    /// Packets of it before that place.
    pub packet: u64,
    /// What is wrong there.
    pub why: String,
}

/// What the packets of a capture were.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct PassiveCounts {
    /// TCP packets that were used.
    pub tcp: u64,
    /// UDP packets.
    pub udp: u64,
    /// Other protocols over IP.
    pub other_ip: u64,
    /// Fragments of IP packets.
    pub fragments: u64,
    /// Not IP.
    pub other_link: u64,
    /// TCP packets without a stamp.
    pub unstamped: u64,
    /// Packets of which the capture holds too little.
    pub cut_short: u64,
    /// Packets whose headers contradict themselves.
    pub malformed: u64,
    /// Packets of a link type that is not known.
    pub unknown_link: u64,
    /// Time stamps that lie before that of the packet in front.
    pub stepped_back: u64,
    /// Packets that the capture is known to have dropped.
    pub dropped: u64,
    /// Packets that were found in the sender's capture, too, where one was given.
    pub matched: u64,
    /// Octets of files that were passed over.
    pub skipped_octets: u64,
    /// TCP connections.
    pub connections: u64,
    /// Directions with too little data for a row.
    pub small: u64,
    /// Directions left out, as there were too many.
    pub left_out: u64,
    /// Connections that were ended early for want of memory.
    pub evicted: u64,
}

impl PassiveDocument {
    /// Name and version of its schema.
    pub const SCHEMA: &'static str = schema::PASSIVE_NAME;

    /// As one line of JSON.
    pub fn json(&self) -> String {
        serde_json::to_string(self).unwrap_or_else(|error| format!("{{\"error\":\"{error}\"}}"))
    }

    /// Whether there is any value.
    pub fn is_conclusive(&self) -> bool {
        self.flows.iter().any(|flow| flow.value.is_some())
    }

    /// As text, ending in a newline.
    pub fn text(&self) -> String {
        let mut out = String::new();
        // Writing to a String cannot fail.
        let _ = self.write(&mut out);
        out
    }

    fn write(&self, out: &mut String) -> std::fmt::Result {
        let counts = &self.counts;
        writeln!(
            out,
            "{}: {} packets ({} TCP, {} UDP, {} other), {} octets, {} connection(s)",
            self.inputs.join(", "),
            self.packets,
            counts.tcp,
            counts.udp,
            self.packets.saturating_sub(counts.tcp + counts.udp),
            self.octets,
            counts.connections,
        )?;
        if self.flows.is_empty() {
            writeln!(out, "no flow carries enough data for an answer")?;
        } else {
            self.write_flows(out)?;
            self.write_pairs(out)?;
        }
        self.write_remarks(out)
    }

    fn write_flows(&self, out: &mut String) -> std::fmt::Result {
        let mut rows = vec![["flow", "method", "IP capacity", "interval", "samples", "capture at"].map(str::to_owned)];
        let mut last = String::new();
        for flow in &self.flows {
            let mut name = format!("{} > {}", flow.source, flow.destination);
            for vlan in &flow.vlan {
                let _ = write!(name, " vlan {vlan}");
            }
            // One name for all methods of a flow.
            let shown = if name == last { String::new() } else { name.clone() };
            last = name;
            rows.push([
                shown,
                flow.method.clone(),
                value(flow.value, flow.verdict),
                interval(flow.low, flow.high, flow.verdict),
                flow.samples.to_string(),
                flow.vantage.to_owned(),
            ]);
        }
        writeln!(out)?;
        table(out, &rows)?;
        self.write_reasons(out)
    }

    /// Why there is no value, and why one might mislead: once for all methods of a flow that say
    /// the same.
    fn write_reasons(&self, out: &mut String) -> std::fmt::Result {
        let is_same = |a: &PassiveFlow, b: &PassiveFlow| {
            (&a.source, &a.destination, &a.vlan, a.began_ns) == (&b.source, &b.destination, &b.vlan, b.began_ns)
        };
        for flow in self.flows.chunk_by(is_same) {
            let mut said: Vec<(String, Vec<&str>)> = Vec::new();
            for row in flow {
                let remarks = row.reason.iter().chain(&row.caveats);
                let text = remarks.map(|remark| remark.text.as_str()).collect::<Vec<_>>().join("; ");
                match said.iter_mut().find(|(known, _)| *known == text) {
                    Some((_, methods)) => methods.push(&row.method),
                    None if text.is_empty() => {}
                    None => said.push((text, vec![&row.method])),
                }
            }
            if let (Some(row), false) = (flow.first(), said.is_empty()) {
                writeln!(out, "{} > {}", row.source, row.destination)?;
            }
            for (text, methods) in &said {
                writeln!(out, "  {}: {text}", methods.join(", "))?;
            }
        }
        Ok(())
    }

    fn write_pairs(&self, out: &mut String) -> std::fmt::Result {
        let mut rows = vec![["hosts", "method", "IP capacity", "interval", "flows", "samples"].map(str::to_owned)];
        let mut last = String::new();
        for pair in &self.pairs {
            let name = format!("{} > {}", pair.source, pair.destination);
            let shown = if name == last { String::new() } else { name.clone() };
            last = name;
            rows.push([
                shown,
                pair.method.clone(),
                value(pair.value, pair.verdict),
                interval(pair.low, pair.high, pair.verdict),
                format!("{} of {}", pair.used, pair.flows),
                pair.samples.to_string(),
            ]);
        }
        writeln!(out)?;
        table(out, &rows)?;
        for pair in &self.pairs {
            for caveat in &pair.caveats {
                writeln!(out, "{} > {}, {}: {}", pair.source, pair.destination, pair.method, caveat.text)?;
            }
        }
        Ok(())
    }

    fn write_remarks(&self, out: &mut String) -> std::fmt::Result {
        let counts = &self.counts;
        let said = [
            (counts.small, "direction(s) with too few packets for an answer"),
            (counts.left_out, "direction(s) left out: only the largest are shown"),
            (counts.evicted, "connection(s) ended early because memory was full"),
            (counts.dropped, "packet(s) dropped by the capture"),
            (counts.fragments, "fragment(s) not used"),
            (counts.unstamped, "TCP packet(s) without a stamp not used"),
            (counts.stepped_back, "time stamp(s) out of order"),
            (counts.cut_short, "packet(s) cut off within their headers"),
            (counts.malformed, "packet(s) whose headers make no sense"),
            (counts.unknown_link, "packet(s) of a link type that is not known"),
        ];
        if said.iter().any(|(count, _)| *count > 0) || self.unreadable > 0 {
            writeln!(out)?;
        }
        for (count, what) in said.iter().filter(|(count, _)| *count > 0) {
            writeln!(out, "{count} {what}")?;
        }
        for damage in &self.damage {
            writeln!(
                out,
                "{}: at octet {}, after packet {}: {}",
                damage.input, damage.octet, damage.packet, damage.why
            )?;
        }
        if !self.damage.is_empty() {
            writeln!(out, "{} octets were passed over; what could be read is shown", counts.skipped_octets)?;
        }
        Ok(())
    }
}

fn value(value: Option<u64>, verdict: BoundKind) -> String {
    let Some(bps) = value else {
        return "inconclusive".to_owned();
    };
    let rate = BitRate::from_bps(bps);
    match verdict {
        BoundKind::LowerBound => format!("at least {rate}"),
        BoundKind::UpperBound => format!("at most {rate}"),
        BoundKind::Estimated | BoundKind::Inconclusive => rate.to_string(),
    }
}

fn interval(low: Option<u64>, high: Option<u64>, verdict: BoundKind) -> String {
    match (low, high) {
        (Some(low), Some(high)) if verdict == BoundKind::Estimated => {
            format!("{} to {}", BitRate::from_bps(low), BitRate::from_bps(high))
        }
        _ => String::new(),
    }
}

/// Columns as wide as their widest cell, two blanks apart.
fn table<const N: usize>(out: &mut String, rows: &[[String; N]]) -> std::fmt::Result {
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..N).map(width).collect();
    for row in rows {
        let mut line = String::new();
        for (cell, width) in row.iter().zip(&widths) {
            write!(line, "{cell:<width$}  ")?;
        }
        writeln!(out, "{}", line.trim_end())?;
    }
    Ok(())
}
