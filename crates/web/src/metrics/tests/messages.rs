//! The messages as `prost` reads them: what ours are held against.

use prost::Message;

/// One name with all of its metrics.
#[derive(Clone, PartialEq, Message)]
pub(in crate::metrics) struct MetricFamily {
    #[prost(string, optional, tag = "1")]
    pub(in crate::metrics) name: Option<String>,
    #[prost(string, optional, tag = "2")]
    pub(in crate::metrics) help: Option<String>,
    /// 0 counter, 1 gauge, 4 histogram.
    #[prost(int32, optional, tag = "3")]
    pub(in crate::metrics) kind: Option<i32>,
    #[prost(message, repeated, tag = "4")]
    pub(in crate::metrics) metric: Vec<Metric>,
}

#[derive(Clone, PartialEq, Message)]
pub(in crate::metrics) struct Metric {
    #[prost(message, repeated, tag = "1")]
    pub(in crate::metrics) label: Vec<LabelPair>,
    #[prost(message, optional, tag = "2")]
    pub(in crate::metrics) gauge: Option<Number>,
    #[prost(message, optional, tag = "3")]
    pub(in crate::metrics) counter: Option<Number>,
    #[prost(message, optional, tag = "7")]
    pub(in crate::metrics) histogram: Option<Histogram>,
}

#[derive(Clone, PartialEq, Message)]
pub(in crate::metrics) struct LabelPair {
    #[prost(string, optional, tag = "1")]
    pub(in crate::metrics) name: Option<String>,
    #[prost(string, optional, tag = "2")]
    pub(in crate::metrics) value: Option<String>,
}

/// A counter's value, or a gauge's.
#[derive(Clone, Copy, PartialEq, Message)]
pub(in crate::metrics) struct Number {
    #[prost(double, optional, tag = "1")]
    pub(in crate::metrics) value: Option<f64>,
}

/// Classic buckets and native ones together: a scraper takes those that it knows.
#[derive(Clone, PartialEq, Message)]
pub(in crate::metrics) struct Histogram {
    #[prost(uint64, optional, tag = "1")]
    pub(in crate::metrics) sample_count: Option<u64>,
    #[prost(double, optional, tag = "2")]
    pub(in crate::metrics) sample_sum: Option<f64>,
    #[prost(message, repeated, tag = "3")]
    pub(in crate::metrics) bucket: Vec<Bucket>,
    #[prost(sint32, optional, tag = "5")]
    pub(in crate::metrics) schema: Option<i32>,
    #[prost(double, optional, tag = "6")]
    pub(in crate::metrics) zero_threshold: Option<f64>,
    #[prost(uint64, optional, tag = "7")]
    pub(in crate::metrics) zero_count: Option<u64>,
    #[prost(message, repeated, tag = "12")]
    pub(in crate::metrics) positive_span: Vec<BucketSpan>,
    #[prost(sint64, repeated, tag = "13")]
    pub(in crate::metrics) positive_delta: Vec<i64>,
}

#[derive(Clone, Copy, PartialEq, Message)]
pub(in crate::metrics) struct Bucket {
    #[prost(uint64, optional, tag = "1")]
    pub(in crate::metrics) cumulative_count: Option<u64>,
    #[prost(double, optional, tag = "2")]
    pub(in crate::metrics) upper_bound: Option<f64>,
}

/// So many buckets in a row, so far behind the end of the last run.
#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub(in crate::metrics) struct BucketSpan {
    #[prost(sint32, optional, tag = "1")]
    pub(in crate::metrics) offset: Option<i32>,
    #[prost(uint32, optional, tag = "2")]
    pub(in crate::metrics) length: Option<u32>,
}
