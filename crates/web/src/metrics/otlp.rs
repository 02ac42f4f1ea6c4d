//! The same numbers as an OTLP request: gauges with the times at which they were measured.

use narrows_watch::WallTime;
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value as Any;
use opentelemetry_proto::tonic::common::v1::{AnyValue, InstrumentationScope, KeyValue};
use opentelemetry_proto::tonic::metrics::v1::metric::Data;
use opentelemetry_proto::tonic::metrics::v1::number_data_point::Value;
use opentelemetry_proto::tonic::metrics::v1::{
    AggregationTemporality, Gauge, Histogram, HistogramDataPoint, Metric, NumberDataPoint, ResourceMetrics,
    ScopeMetrics, Sum,
};
use opentelemetry_proto::tonic::resource::v1::Resource;
use prost::Message as _;

use super::{Labels, Metrics, names};

impl Metrics {
    /// The body of a POST to `/v1/metrics` (OTLP/HTTP, binary protobuf) that says everything that
    /// holds at `now`; counters began at `began`.
    ///
    /// Units are left out: receivers would append them to names, which have them already.
    pub fn otlp(&self, began: WallTime, now: WallTime) -> Vec<u8> {
        let scope = InstrumentationScope {
            name: "narrows".to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            ..InstrumentationScope::default()
        };
        let metrics = self.otlp_metrics(nanos(began), now);
        let scope_metrics = vec![ScopeMetrics { scope: Some(scope), metrics, schema_url: String::new() }];
        let service = vec![attribute("service.name", "narrows")];
        let resource = Some(Resource { attributes: service, ..Resource::default() });
        let resource_metrics = vec![ResourceMetrics { resource, scope_metrics, schema_url: String::new() }];
        ExportMetricsServiceRequest { resource_metrics }.encode_to_vec()
    }

    fn otlp_metrics(&self, began: u64, now: WallTime) -> Vec<Metric> {
        let mut metrics = Vec::new();
        let mut noted = self.noted();
        noted.forget_old(now);
        let point = |labels: &Labels, start: u64, at: WallTime, value: Value| NumberDataPoint {
            attributes: attributes(labels),
            start_time_unix_nano: start,
            time_unix_nano: nanos(at),
            value: Some(value),
            ..NumberDataPoint::default()
        };
        let counts: Vec<_> = noted.counters.iter().collect();
        for same in counts.chunk_by(|((one, _), _), ((other, _), _)| one == other) {
            let counter = same[0].0.0;
            let whole = |count: &u64| Value::AsInt(i64::try_from(*count).unwrap_or(i64::MAX));
            let data_points = same.iter().map(|((_, labels), count)| point(labels, began, now, whole(count))).collect();
            let sum = Sum { data_points, aggregation_temporality: CUMULATIVE, is_monotonic: true };
            metrics.push(metric(counter.name(), counter.help(), Data::Sum(sum)));
        }
        let values: Vec<_> = noted.gauges.iter().collect();
        for same in values.chunk_by(|((one, _), _), ((other, _), _)| one == other) {
            let gauge = same[0].0.0;
            let of = |labels: &Labels, at, value| point(labels, 0, at, Value::AsDouble(value));
            let data_points = same.iter().map(|((_, labels), one)| of(labels, one.at, one.value)).collect();
            metrics.push(metric(gauge.name(), gauge.help(), Data::Gauge(Gauge { data_points })));
        }
        let histograms = noted.round_trips.iter().map(|(labels, times)| HistogramDataPoint {
            attributes: attributes(labels),
            start_time_unix_nano: began,
            time_unix_nano: nanos(now),
            count: times.counts.iter().sum(),
            sum: Some(times.sum),
            bucket_counts: times.counts.clone(),
            explicit_bounds: names::ROUND_TRIP_BUCKETS.to_vec(),
            ..HistogramDataPoint::default()
        });
        let data_points: Vec<_> = histograms.collect();
        if !data_points.is_empty() {
            let histogram = Histogram { data_points, aggregation_temporality: CUMULATIVE };
            metrics.push(metric(names::ROUND_TRIP, names::ROUND_TRIP_HELP, Data::Histogram(histogram)));
        }
        metrics
    }
}

fn metric(name: &str, help: &str, data: Data) -> Metric {
    Metric { name: name.to_owned(), description: help.to_owned(), data: Some(data), ..Metric::default() }
}

fn attributes(labels: &Labels) -> Vec<KeyValue> {
    labels.iter().map(|(name, value)| attribute(name, value)).collect()
}

fn attribute(key: &str, value: &str) -> KeyValue {
    let value = AnyValue { value: Some(Any::StringValue(value.to_owned())) };
    KeyValue { key: key.to_owned(), value: Some(value), ..KeyValue::default() }
}

fn nanos(at: WallTime) -> u64 {
    u64::try_from(at.millis()).unwrap_or(0).saturating_mul(1_000_000)
}

const CUMULATIVE: i32 = AggregationTemporality::Cumulative as i32;

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use narrows_store::records::Sample;
    use narrows_watch::{Claim, Signal};

    use super::*;
    use crate::metrics::TargetLabels;

    const BEGAN: WallTime = WallTime::from_millis(1_000_000);

    fn of() -> TargetLabels {
        let cadence = Duration::from_secs(60);
        TargetLabels { source: "here".to_owned(), target: "office".to_owned(), ip_version: 4, cadence }
    }

    /// What a collector reads of it.
    fn read(metrics: &Metrics, now: WallTime) -> Vec<Metric> {
        let request = ExportMetricsServiceRequest::decode(&metrics.otlp(BEGAN, now)[..]).expect("it is protobuf");
        let [resource] = &request.resource_metrics[..] else { panic!("{request:?}") };
        resource.scope_metrics[0].metrics.clone()
    }

    fn data(metrics: &[Metric], name: &str) -> Data {
        let found = metrics.iter().find(|metric| metric.name == name);
        found.and_then(|metric| metric.data.clone()).unwrap_or_else(|| panic!("no {name}"))
    }

    #[test]
    fn numbers_have_their_own_times() {
        let metrics = Metrics::default();
        metrics.follow(&of(), &["change"]);
        metrics.event(&of(), "change");
        metrics.pulse(&of(), Some(Duration::from_millis(18)));
        metrics.pulse(&of(), Some(Duration::from_secs(60)));
        let (at, rates) = (BEGAN.after(Duration::from_secs(5)), Some(6e7));
        let claim = Claim::Estimate;
        let sample =
            Sample { at, value: rates, low: None, high: None, claim, loaded: false, host_busy: false, run: None };
        metrics.sample(&of(), Signal::AvailableForward, "watch", &sample);
        let now = BEGAN.after(Duration::from_secs(60));
        let all = read(&metrics, now);
        let Data::Sum(events) = data(&all, "narrows_events") else { panic!("a sum") };
        let point = &events.data_points[0];
        assert!(events.is_monotonic && events.aggregation_temporality == CUMULATIVE);
        assert_eq!((point.value, point.start_time_unix_nano), (Some(Value::AsInt(1)), 1_000_000_000_000));
        assert_eq!(point.time_unix_nano, 1_060_000_000_000);
        let keys: Vec<&str> = point.attributes.iter().map(|attribute| attribute.key.as_str()).collect();
        assert_eq!(keys, ["source", "target", "ip_version", "kind"]);
        let Data::Gauge(available) = data(&all, "narrows_available_bits_per_second") else { panic!("a gauge") };
        let point = &available.data_points[0];
        assert_eq!((point.value, point.time_unix_nano), (Some(Value::AsDouble(6e7)), 1_005_000_000_000));
        let Data::Histogram(times) = data(&all, "narrows_round_trip_seconds") else { panic!("a histogram") };
        let point = &times.data_points[0];
        assert_eq!(
            (point.count, point.sum, point.bucket_counts.len()),
            (2, Some(60.018), point.explicit_bounds.len() + 1)
        );
        // 18 ms is above 12.8 ms and not above 25.6 ms; a minute is above all.
        assert_eq!((point.bucket_counts[9], point.bucket_counts[20]), (1, 1), "{:?}", point.bucket_counts);
        let later = read(&metrics, now.after(Duration::from_secs(600)));
        assert!(later.iter().all(|metric| !metric.name.contains("available")), "old values are not sent");
    }
}
