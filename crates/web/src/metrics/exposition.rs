//! Metrics as text: `OpenMetrics` 1.0, and the older format for whoever does not ask for it. Or as
//! protobuf, with native histograms, for whoever asks for that.

use std::fmt::{self, Write as _};

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric, MetricEncoder, text};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Registry;

use super::protobuf::{self, Bucket, LabelPair, Metric, MetricFamily, Number};
use super::{Labels, RoundTrips, names};

/// One metric with its labels and value.
#[derive(Debug)]
pub(crate) struct Line {
    name: &'static str,
    help: &'static str,
    labels: Labels,
    value: Value,
}

#[derive(Debug)]
enum Value {
    Counter(u64),
    Gauge(f64),
    Histogram(Box<RoundTrips>),
}

/// What one scrape says; lines of the same name stand together.
#[derive(Debug)]
pub(crate) struct Exposition {
    lines: Vec<Line>,
}

impl Line {
    pub(crate) fn gauge(name: &'static str, help: &'static str, labels: Labels, value: f64) -> Self {
        Self { name, help, labels, value: Value::Gauge(value) }
    }

    pub(crate) fn counter(name: &'static str, help: &'static str, labels: Labels, count: u64) -> Self {
        Self { name, help, labels, value: Value::Counter(count) }
    }

    pub(crate) fn histogram(name: &'static str, help: &'static str, labels: Labels, of: RoundTrips) -> Self {
        Self { name, help, labels, value: Value::Histogram(Box::new(of)) }
    }
}

impl Value {
    fn encode(&self, encoder: MetricEncoder) -> fmt::Result {
        match self {
            Self::Counter(count) => ConstCounter::new(*count).encode(encoder),
            Self::Gauge(value) => ConstGauge::new(*value).encode(encoder),
            Self::Histogram(times) => times.histogram.encode(encoder),
        }
    }

    fn metric_type(&self) -> MetricType {
        match self {
            Self::Counter(_) => MetricType::Counter,
            Self::Gauge(_) => MetricType::Gauge,
            Self::Histogram(_) => MetricType::Histogram,
        }
    }

    fn message(&self, labels: &Labels) -> Metric {
        let pair =
            |(name, value): &(&str, String)| LabelPair { name: Some((*name).to_owned()), value: Some(value.clone()) };
        let metric = Metric { label: labels.iter().map(pair).collect(), ..Metric::default() };
        let number = |value| Some(Number { value: Some(value) });
        match self {
            Self::Counter(count) => Metric { counter: number(*count as f64), ..metric },
            Self::Gauge(value) => Metric { gauge: number(*value), ..metric },
            Self::Histogram(times) => Metric { histogram: Some(times.message()), ..metric },
        }
    }
}

impl RoundTrips {
    fn message(&self) -> protobuf::Histogram {
        let below = names::ROUND_TRIP_BUCKETS.into_iter().zip(&self.counts).scan(0, |sum, (upper, count)| {
            *sum += count;
            Some(Bucket { cumulative_count: Some(*sum), upper_bound: Some(upper) })
        });
        let mut message = protobuf::Histogram {
            sample_count: Some(self.counts.iter().sum()),
            sample_sum: Some(self.sum),
            bucket: below.collect(),
            ..protobuf::Histogram::default()
        };
        self.native.add_to(&mut message);
        message
    }
}

impl Exposition {
    pub(crate) fn new(lines: Vec<Line>) -> Self {
        Self { lines }
    }

    /// As `OpenMetrics`.
    pub(crate) fn open_metrics(self) -> Result<String, fmt::Error> {
        let mut registry = Registry::default();
        registry.register_collector(Box::new(self));
        let mut out = String::new();
        text::encode(&mut out, &registry)?;
        Ok(out)
    }

    /// In the format of Prometheus 0.0.4, in which a counter's own name ends with `_total`.
    pub(crate) fn classic(self) -> Result<String, fmt::Error> {
        let counters: Vec<&str> =
            self.lines.iter().filter(|line| matches!(line.value, Value::Counter(_))).map(|line| line.name).collect();
        let open = self.open_metrics()?;
        let mut out = String::with_capacity(open.len());
        for line in open.lines().filter(|line| *line != "# EOF") {
            let mut words = line.splitn(4, ' ');
            let head = (words.next(), words.next(), words.next(), words.next());
            match head {
                (Some("#"), Some(kind @ ("HELP" | "TYPE")), Some(name), Some(rest)) if counters.contains(&name) => {
                    writeln!(out, "# {kind} {name}_total {rest}")?;
                }
                _ => {
                    out.push_str(line);
                    out.push('\n');
                }
            }
        }
        Ok(out)
    }
}

impl Exposition {
    /// As messages of `io.prometheus.client`, each with its length in front.
    pub(crate) fn protobuf(&self) -> Vec<u8> {
        let families = self.lines.chunk_by(|one, other| one.name == other.name).filter_map(|lines| {
            let first = lines.first()?;
            let (name, kind) = match first.value {
                Value::Counter(_) => (format!("{}_total", first.name), protobuf::COUNTER),
                Value::Gauge(_) => (first.name.to_owned(), protobuf::GAUGE),
                Value::Histogram(_) => (first.name.to_owned(), protobuf::HISTOGRAM),
            };
            let metric = lines.iter().map(|line| line.value.message(&line.labels)).collect();
            Some(MetricFamily { name: Some(name), help: Some(first.help.to_owned()), kind: Some(kind), metric })
        });
        protobuf::delimited(&families.collect::<Vec<_>>())
    }
}

impl Collector for Exposition {
    fn encode(&self, mut encoder: DescriptorEncoder) -> fmt::Result {
        for lines in self.lines.chunk_by(|one, other| one.name == other.name) {
            let [first, ..] = lines else { continue };
            let mut family = encoder.encode_descriptor(first.name, first.help, None, first.value.metric_type())?;
            for line in lines {
                if line.labels.is_empty() {
                    line.value.encode(family)?;
                    break;
                }
                line.value.encode(family.encode_family(&line.labels)?)?;
            }
        }
        Ok(())
    }
}
