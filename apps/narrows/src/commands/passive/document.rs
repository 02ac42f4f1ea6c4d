//! From findings to the document that is printed.

use narrows_capture::findings::{Answer, FlowFinding};
use narrows_capture::findings::{PairFinding, Together};
use narrows_diagnose::passive::Vantage;
use narrows_probe::{BoundKind, Estimate, Outcome};
use narrows_report::{FlowDirection, PassiveCounts, PassiveDamage, PassiveDocument, PassiveFlow, PassivePair, Remark};

use super::Read;

pub(super) fn document(read: &Read) -> PassiveDocument {
    let findings = &read.findings;
    let counts = &findings.counts;
    let places: u64 = read.damages.iter().map(|(_, damages)| damages.count()).sum();
    let damage = read.damages.iter().flat_map(|(input, damages)| {
        damages.first().iter().map(|damage| PassiveDamage {
            input: input.clone(),
            octet: damage.octet,
            packet: damage.packet,
            why: damage.fault.to_string(),
        })
    });
    let flows = findings.flows.iter().flat_map(|flow| flow.answers.iter().map(|answer| row(flow, answer)));
    PassiveDocument {
        schema: PassiveDocument::SCHEMA,
        inputs: read.inputs.clone(),
        flows: flows.collect(),
        pairs: findings.pairs.iter().map(pair).collect(),
        packets: counts.packets,
        octets: counts.octets,
        unreadable: places + counts.unreadable(),
        damage: damage.collect(),
        counts: PassiveCounts {
            tcp: counts.tcp,
            udp: counts.udp,
            other_ip: counts.other_ip,
            fragments: counts.fragments,
            other_link: counts.other_link,
            unstamped: counts.unstamped,
            cut_short: counts.cut_short,
            malformed: counts.malformed,
            unknown_link: counts.unknown_link,
            stepped_back: counts.stepped_back,
            dropped: findings.dropped,
            matched: read.matched,
            skipped_octets: read.damages.iter().map(|(_, damages)| damages.skipped_octets()).sum(),
            connections: counts.flows.connections,
            small: counts.flows.small,
            left_out: counts.left_out,
            evicted: counts.flows.evicted,
        },
        resolution_ns: unsigned(findings.resolution_ns),
    }
}

fn row(flow: &FlowFinding, answer: &Answer) -> PassiveFlow {
    let estimate = answer.outcome.estimate();
    let range = estimate.map(Estimate::in_unit);
    let (reason, evidence) = match &answer.outcome {
        Outcome::Estimated(estimate) => (None, estimate.diagnostics.clone()),
        Outcome::Inconclusive { reason, diagnostics: evidence, .. } => (Some(Remark::from(reason)), evidence.clone()),
    };
    PassiveFlow {
        source: flow.source.to_string(),
        destination: flow.destination.to_string(),
        vlan: vlans(flow.vlan),
        direction: match flow.opened_by_source {
            Some(true) => FlowDirection::Forward,
            Some(false) => FlowDirection::Reverse,
            None => FlowDirection::Unknown,
        },
        method: answer.method.name.to_owned(),
        value: range.map(|range| range.value),
        low: range.map(|range| range.low),
        high: range.map(|range| range.high),
        verdict: answer.outcome.verdict(),
        confidence: estimate.map(|estimate| estimate.confidence),
        limited_by: estimate.map(|estimate| estimate.limited_by),
        samples: answer.samples,
        vantage: match flow.sight.vantage {
            Vantage::Sender => "sender",
            Vantage::Receiver => "receiver",
            Vantage::Middle => "middle",
            Vantage::Unknown => "unknown",
        },
        ahead_ns: flow.sight.ahead_ns.map(unsigned),
        behind_ns: flow.sight.behind_ns.map(unsigned),
        caveats: answer.outcome.caveats().iter().map(Remark::from).collect(),
        reason,
        data_packets: flow.data_packets,
        payload_octets: flow.payload_octets,
        began_ns: flow.began_ns,
        lasted_ns: unsigned(flow.lasted_ns),
        evidence,
    }
}

fn pair(pair: &PairFinding) -> PassivePair {
    let (value, low, high, verdict, reason) = match &pair.together {
        Together::Value { value, low, high, verdict } => {
            (Some(value.bps()), Some(low.bps()), Some(high.bps()), *verdict, None)
        }
        Together::Nothing(reason) => (None, None, None, BoundKind::Inconclusive, Some(Remark::from(reason))),
    };
    let conflict = (pair.disagreeing > 0).then(|| Remark {
        id: "flows_disagree".to_owned(),
        text: format!("{} of {} flow(s) say something else", pair.disagreeing, pair.flows),
        brief: "flows disagree",
    });
    PassivePair {
        source: pair.source.to_string(),
        destination: pair.destination.to_string(),
        method: pair.method.name.to_owned(),
        value,
        low,
        high,
        verdict,
        flows: pair.flows,
        used: pair.used,
        samples: pair.samples,
        caveats: conflict.into_iter().collect(),
        reason,
    }
}

/// Identifiers, the outer one first.
fn vlans(packed: u32) -> Vec<u16> {
    const TAGGED: u32 = 0x1000;
    let parts = [packed >> 16, packed & 0xFFFF];
    let tagged = parts.into_iter().filter(|part| part & TAGGED != 0);
    tagged.filter_map(|part| u16::try_from(part & 0x0FFF).ok()).collect()
}

fn unsigned(nanos: i64) -> u64 {
    u64::try_from(nanos).unwrap_or(0)
}
