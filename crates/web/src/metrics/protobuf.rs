//! Metrics in Prometheus' protobuf format, which alone carries native histograms.
//!
//! `prometheus-client` can write it too, but of `OpenMetrics`' own messages, which Prometheus does
//! not take, and with a compiler of `.proto` files among its build dependencies. These are the
//! messages of `io.prometheus.client` (`metrics.proto` of `prometheus/client_model`), as far as
//! they are used. Half a dozen messages are written by hand here: a crate for it would take longer
//! to compile than all of this one.

/// One name with all of its metrics.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct MetricFamily {
    pub(super) name: Option<String>,
    pub(super) help: Option<String>,
    /// 0 counter, 1 gauge, 4 histogram.
    pub(super) kind: Option<i32>,
    pub(super) metric: Vec<Metric>,
}

#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Metric {
    pub(super) label: Vec<LabelPair>,
    pub(super) gauge: Option<Number>,
    pub(super) counter: Option<Number>,
    pub(super) histogram: Option<Histogram>,
}

#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct LabelPair {
    pub(super) name: Option<String>,
    pub(super) value: Option<String>,
}

/// A counter's value, or a gauge's.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct Number {
    pub(super) value: Option<f64>,
}

/// Classic buckets and native ones together: a scraper takes those that it knows.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Histogram {
    pub(super) sample_count: Option<u64>,
    pub(super) sample_sum: Option<f64>,
    pub(super) bucket: Vec<Bucket>,
    pub(super) schema: Option<i32>,
    pub(super) zero_threshold: Option<f64>,
    pub(super) zero_count: Option<u64>,
    pub(super) positive_span: Vec<BucketSpan>,
    pub(super) positive_delta: Vec<i64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct Bucket {
    pub(super) cumulative_count: Option<u64>,
    pub(super) upper_bound: Option<f64>,
}

/// So many buckets in a row, so far behind the end of the last run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct BucketSpan {
    pub(super) offset: Option<i32>,
    pub(super) length: Option<u32>,
}

/// Each with its length in front.
pub(super) fn delimited(families: &[MetricFamily]) -> Vec<u8> {
    let mut out = Wire::default();
    for family in families {
        out.octets(&family.wire().0);
    }
    out.0
}

impl MetricFamily {
    fn wire(&self) -> Wire {
        let mut out = Wire::default();
        out.text(1, self.name.as_deref());
        out.text(2, self.help.as_deref());
        out.count(3, self.kind.map(i32::unsigned_abs).map(u64::from));
        self.metric.iter().for_each(|metric| out.message(4, &metric.wire()));
        out
    }
}

impl Metric {
    fn wire(&self) -> Wire {
        let mut out = Wire::default();
        for label in &self.label {
            let mut pair = Wire::default();
            pair.text(1, label.name.as_deref());
            pair.text(2, label.value.as_deref());
            out.message(1, &pair);
        }
        for (tag, number) in [(2, self.gauge), (3, self.counter)] {
            if let Some(number) = number {
                let mut one = Wire::default();
                one.double(1, number.value);
                out.message(tag, &one);
            }
        }
        if let Some(histogram) = &self.histogram {
            out.message(7, &histogram.wire());
        }
        out
    }
}

impl Histogram {
    fn wire(&self) -> Wire {
        let mut out = Wire::default();
        out.count(1, self.sample_count);
        out.double(2, self.sample_sum);
        for bucket in &self.bucket {
            let mut one = Wire::default();
            one.count(1, bucket.cumulative_count);
            one.double(2, bucket.upper_bound);
            out.message(3, &one);
        }
        out.count(5, self.schema.map(|schema| zigzag(schema.into())));
        out.double(6, self.zero_threshold);
        out.count(7, self.zero_count);
        for span in &self.positive_span {
            let mut one = Wire::default();
            one.count(1, span.offset.map(|offset| zigzag(offset.into())));
            one.count(2, span.length.map(u64::from));
            out.message(12, &one);
        }
        if !self.positive_delta.is_empty() {
            let mut packed = Wire::default();
            self.positive_delta.iter().for_each(|delta| packed.varint(zigzag(*delta)));
            out.message(13, &packed);
        }
        out
    }
}

/// Octets as <https://protobuf.dev/programming-guides/encoding/> has them.
#[derive(Debug, Default)]
struct Wire(Vec<u8>);

impl Wire {
    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value.to_le_bytes()[0] | 0x80);
            value >>= 7;
        }
        self.0.push(value.to_le_bytes()[0]);
    }

    fn tag(&mut self, tag: u64, kind: u64) {
        self.varint(tag << 3 | kind);
    }

    fn octets(&mut self, octets: &[u8]) {
        // No machine has more octets than fit 64 bits.
        self.varint(u64::try_from(octets.len()).unwrap_or(u64::MAX));
        self.0.extend(octets);
    }

    fn count(&mut self, tag: u64, value: Option<u64>) {
        if let Some(value) = value {
            self.tag(tag, VARINT);
            self.varint(value);
        }
    }

    fn double(&mut self, tag: u64, value: Option<f64>) {
        if let Some(value) = value {
            self.tag(tag, DOUBLE);
            self.0.extend(value.to_le_bytes());
        }
    }

    fn text(&mut self, tag: u64, text: Option<&str>) {
        if let Some(text) = text {
            self.tag(tag, OCTETS);
            self.octets(text.as_bytes());
        }
    }

    fn message(&mut self, tag: u64, message: &Self) {
        self.tag(tag, OCTETS);
        self.octets(&message.0);
    }
}

/// Small numbers are short on either side of zero.
const fn zigzag(value: i64) -> u64 {
    (value << 1 ^ value >> 63).cast_unsigned()
}

const VARINT: u64 = 0;
const DOUBLE: u64 = 1;
const OCTETS: u64 = 2;
pub(super) const COUNTER: i32 = 0;
pub(super) const GAUGE: i32 = 1;
pub(super) const HISTOGRAM: i32 = 4;
