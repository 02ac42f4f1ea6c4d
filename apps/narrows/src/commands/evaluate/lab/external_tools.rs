//! A run of another program in the same hosts, and its number beside the truth.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use narrows_evaluate::external_tool::{self, Adapter, ExternalToolRun, Host, Number, ParsedNumber, Setting};
use narrows_evaluate::{Judged, Run, RunFault, truth};
use narrows_probe::{BoundKind, Estimate, Ranged};
use narrows_scenario::{PathDirection, Scenario};
use narrows_units::{BitRate, Direction, Framing, Layer, Metric, nanos};

use super::counters::{Sent, sent_by};
use super::host_pair::{Ends, HostPair};

/// One program over one path.
pub(super) struct Trial<'a> {
    pub(super) host_pair: &'a HostPair,
    /// As this machine plays it.
    pub(super) scenario: &'a Scenario,
    pub(super) adapter: &'a Adapter,
    /// What its number is held to; the adapter's own metric, unless the plan says otherwise.
    pub(super) metric: Metric,
    pub(super) params: &'a BTreeMap<String, String>,
}

impl Trial<'_> {
    pub(super) fn run(&self, stop: &AtomicBool) -> Result<Run, RunFault> {
        let mtu = truth::path_mtu(self.scenario);
        let setting = Setting {
            sender: self.host_pair.address(Host::Sender)?,
            receiver: self.host_pair.address(Host::Receiver)?,
            mtu,
            line_rate: super::line_rate(self.scenario, self.way(), mtu),
        };
        let clock = self.host_pair.clock();
        self.host_pair.begin()?;
        let (before, began) = (self.sent()?, clock.now());
        let run = external_tool::run(self.adapter, &setting, self.params, &Ends(self.host_pair), stop);
        let run = run.map_err(|error| super::fault(self.adapter, &error))?;
        let (after, ended) = (self.sent()?, clock.now());
        Ok(self.judge(&run, after - before, (began, ended), mtu))
    }

    fn way(&self) -> PathDirection {
        match self.adapter.direction() {
            Direction::Reverse => PathDirection::Reverse,
            Direction::Forward | Direction::RoundTrip => PathDirection::Forward,
        }
    }

    /// By the host that sends what is measured.
    fn sent(&self) -> Result<Sent, RunFault> {
        let end = match self.way() {
            PathDirection::Forward => Host::Sender,
            PathDirection::Reverse => Host::Receiver,
        };
        sent_by(self.host_pair.node(end))
    }

    fn judge(&self, run: &ExternalToolRun, sent: Sent, span: (Duration, Duration), mtu: u16) -> Run {
        let numbers = &run.reading.numbers;
        let hops: Vec<Judged> = numbers.iter().filter_map(|number| self.of_hop(number, span, mtu)).collect();
        let whole = match numbers.as_slice() {
            [number @ Number { hop: None, .. }] => self.of_path(number, span, mtu),
            _ => self.smallest(&hops, span, mtu),
        };
        let why = numbers.iter().any(|number| matches!(number.found, ParsedNumber::Inconclusive(_)));
        Run {
            path: whole,
            truth_basis: narrows_report::TruthBasis::Scenario,
            long_run_truth: None,
            truth_deviation: None,
            hops,
            octets: sent.ip_octets(),
            packets: sent.packets,
            time_ns: nanos(run.time),
            // Nobody counts a stranger's octets within 10 ms.
            peak_rate_bps: 0,
            confidence: None,
            caveats: Vec::new(),
            reason: (why && whole.value.is_none()).then(|| "program_gave_no_number".to_owned()),
            not_judged: None,
            external_tool_version: None,
            recording: None,
            tracking: None,
            measured_before: 0,
        }
    }

    fn of_path(&self, number: &Number, span: (Duration, Duration), mtu: u16) -> Judged {
        let hops = self.scenario.hops(self.way());
        let narrow = self.scenario.truth(self.way()).narrow_hop(mtu);
        let framing = hops.get(narrow).map_or(Framing::BARE, |hop| hop.framing);
        self.claim(number, None, self.truth(span), framing, mtu)
    }

    /// Beyond the last hop of the scenario there is none: what a program says of it is not judged.
    fn of_hop(&self, number: &Number, span: (Duration, Duration), mtu: u16) -> Option<Judged> {
        let hop = number.hop?;
        let index = usize::from(hop).checked_sub(1)?;
        let framing = self.scenario.hops(self.way()).get(index)?.framing;
        let truth = self.scenario.truth(self.way()).over(span.0, span.1);
        let rate = match self.metric {
            Metric::IpCapacity => truth.hop_capacity(index, mtu),
            Metric::AvailableIpCapacity => truth.hop_available(index, mtu),
            _ => None,
        };
        Some(self.claim(number, Some(hop), rate.map(BitRate::bps), framing, mtu))
    }

    /// Of a program that rates hops: the smallest, if it rated all of them.
    fn smallest(&self, hops: &[Judged], span: (Duration, Duration), mtu: u16) -> Judged {
        let all = hops.len() == self.scenario.hops(self.way()).len() && hops.iter().all(|hop| hop.value.is_some());
        let smallest = hops.iter().filter(|_| all).min_by_key(|hop| hop.value);
        let none = Number { hop: None, found: ParsedNumber::Inconclusive(String::new()) };
        let nothing = self.claim(&none, None, self.truth(span), Framing::BARE, mtu);
        smallest.map_or(nothing, |hop| Judged { hop: None, truth: nothing.truth, ..*hop })
    }

    /// At the layer at which the metric is counted here.
    fn truth(&self, span: (Duration, Duration)) -> Option<u64> {
        let at = Estimate::new(self.metric, Some(layer_of(self.metric)), Ranged::exactly(BitRate::ZERO));
        truth::of(self.scenario, self.way(), self.metric, Some(&at), span)
    }

    /// A program that prints a bare number claims that number: its interval is the number itself.
    fn claim(&self, number: &Number, hop: Option<u16>, truth: Option<u64>, framing: Framing, mtu: u16) -> Judged {
        let convert = |bps: u64| {
            let rate = BitRate::from_bps(bps);
            self.adapter.at_layer(rate, layer_of(self.metric), mtu, framing).map(BitRate::bps)
        };
        let (value, interval) = match number.found {
            ParsedNumber::Rate { value_bps, interval_bps } => (convert(value_bps), interval_bps),
            ParsedNumber::Inconclusive(_) => (None, None),
        };
        let (low, high) = match interval {
            Some((low, high)) => (convert(low), convert(high)),
            None => (value, value),
        };
        Judged {
            hop,
            truth,
            value,
            low,
            high,
            verdict: if value.is_some() { BoundKind::Estimated } else { BoundKind::Inconclusive },
        }
    }
}

/// Where our own methods count the metric, so that rows compare.
fn layer_of(metric: Metric) -> Layer {
    match metric {
        Metric::UdpAchievable => Layer::UdpPayload,
        Metric::TcpAchievableSingle | Metric::TcpAchievableParallel => Layer::TcpPayload,
        _ => Layer::Ip,
    }
}
