mod messages;

use super::*;

fn of(target: &str) -> TargetLabels {
    let cadence = Duration::from_secs(60);
    TargetLabels { source: "here".to_owned(), target: target.to_owned(), ip_version: 4, cadence }
}

fn sample(claim: Claim) -> Sample {
    let at = WallTime::from_millis(1_000_000);
    let rates = [Some(60e6), Some(50e6), Some(70e6)];
    Sample { at, value: rates[0], low: rates[1], high: rates[2], claim, loaded: false, host_busy: false, run: None }
}

#[test]
fn a_gauge_vanishes_after_three_cadences() {
    let metrics = Metrics::default();
    metrics.follow(&of("office"), &[]);
    metrics.sample(&of("office"), Signal::AvailableForward, "slope", &sample(Claim::Estimate));
    let said = |millis: i64| metrics.exposition(WallTime::from_millis(millis)).open_metrics().expect("it is text");
    assert!(said(1_180_000).contains(
        "narrows_available_bits_per_second{source=\"here\",target=\"office\",ip_version=\"4\",\
         direction=\"forward\",method=\"slope\"} 60000000.0\n"
    ));
    assert!(!said(1_180_001).contains("narrows_available"));
}

#[test]
fn a_step_of_the_clock_makes_no_gauge_vanish() {
    let metrics = Metrics::default();
    metrics.follow(&of("office"), &[]);
    metrics.sample(&of("office"), Signal::AvailableForward, "slope", &sample(Claim::Estimate));
    let at = WallTime::from_millis;
    metrics.clock_stepped(ClockStep { from: at(1_010_000), to: at(4_610_000) });
    let has = |millis| metrics.text(at(millis)).expect("it is text").contains("narrows_available_bits_per_second{");
    assert!(has(4_780_000) && !has(4_780_001));
}

/// Slices of a fast path are rare; a capacity is measured once a week.
#[test]
fn three_cadences_are_those_of_what_renews_a_gauge() {
    let metrics = Metrics::default();
    metrics.follow(&of("office"), &["change"]);
    metrics.sample(&of("office"), Signal::AvailableForward, "track", &sample(Claim::Estimate));
    metrics.sample(&of("office"), Signal::AvailableReverse, "track", &sample(Claim::Estimate));
    metrics.sample(&of("office"), Signal::Capacity, "track", &sample(Claim::Estimate));
    metrics.up(&of("office"), Some(true), Some(false), WallTime::from_millis(1_000_000));
    // What was noted before keeps pace as well.
    metrics.follow(&TargetLabels { cadence: Duration::from_secs(1800), ..of("office") }, &[]);
    let said = |seconds: i64| metrics.text(WallTime::from_millis(1_000_000 + seconds * 1000)).expect("it is text");
    let has = |seconds: i64, name: &str, label: &str| {
        said(seconds).lines().any(|line| line.starts_with(&format!("narrows_{name}{{")) && line.contains(label))
    };
    let week = 7 * 86_400;
    for (name, label, seconds) in [
        ("server_up", "", 180),
        ("available_bits_per_second", "direction=\"forward\"", 5400),
        ("available_high_bits_per_second", "direction=\"reverse\"", 10_800),
        ("capacity_low_bits_per_second", "", 3 * week),
    ] {
        assert!(has(seconds, name, label) && !has(seconds + 1, name, label), "{name} {label}");
    }
    assert!(has(4 * week, "events_total", "kind=\"change\"} 0"), "{}", said(4 * week));
}

#[test]
fn a_lower_bound_has_no_upper_end() {
    let metrics = Metrics::default();
    metrics.sample(&of("office"), Signal::Capacity, "slope", &sample(Claim::Estimate));
    metrics.sample(&of("office"), Signal::Capacity, "slope", &sample(Claim::AtLeast));
    let said = metrics.exposition(WallTime::from_millis(1_000_000)).classic().expect("it is text");
    assert!(said.contains("narrows_capacity_low_bits_per_second{"), "{said}");
    assert!(!said.contains("narrows_capacity_high_bits_per_second{"), "{said}");
}

#[test]
fn the_older_format_names_counters_in_full() {
    let metrics = Metrics::default();
    metrics.pulse(&of("office"), Some(Duration::from_micros(1500)));
    metrics.pulse(&of("office"), None);
    let now = WallTime::from_millis(0);
    let classic = metrics.exposition(now).classic().expect("it is text");
    for line in [
        "# TYPE narrows_pulses_lost_total counter",
        "narrows_pulses_lost_total{source=\"here\",target=\"office\",ip_version=\"4\"} 1",
        "narrows_round_trip_seconds_bucket{le=\"0.0016\",source=\"here\",target=\"office\",ip_version=\"4\"} 1",
    ] {
        assert!(classic.lines().any(|said| said == line), "{line}\n{classic}");
    }
    assert!(!classic.contains("EOF"));
    let open = metrics.exposition(now).open_metrics().expect("it is text");
    assert!(open.contains("# TYPE narrows_pulses_lost counter\n") && open.ends_with("# EOF\n"), "{open}");
}

#[test]
fn a_retired_target_is_not_spoken_of() {
    let metrics = Metrics::default();
    metrics.pulse(&of("office"), None);
    metrics.pulse(&of("lab"), None);
    metrics.retire("office");
    let said = metrics.exposition(WallTime::from_millis(0)).classic().expect("it is text");
    assert!(!said.contains("office") && said.contains("lab"), "{said}");
}

/// Field by field, as the messages of `client_model` number them.
#[test]
fn protobuf_has_classic_and_native_buckets() {
    use prost::Message as _;
    let metrics = Metrics::default();
    for seconds in [1.0, 1.05, 2.0] {
        metrics.pulse(&of("office"), Some(Duration::from_secs_f64(seconds)));
    }
    let octets = metrics.exposition(WallTime::from_millis(0)).protobuf();
    let (mut rest, mut families) = (&octets[..], Vec::new());
    while !rest.is_empty() {
        families.push(messages::MetricFamily::decode_length_delimited(&mut rest).expect("a message"));
    }
    let family = |name: &str| families.iter().find(|family| family.name() == name).expect("it is there");
    assert_eq!(family("narrows_pulses_sent_total").metric[0].counter.and_then(|one| one.value), Some(3.0));
    let times = &family(names::ROUND_TRIP).metric[0];
    let labels: Vec<&str> = times.label.iter().map(messages::LabelPair::name).collect();
    assert_eq!(labels, ["source", "target", "ip_version"]);
    let histogram = times.histogram.as_ref().expect("it is one");
    assert_eq!((histogram.sample_count(), histogram.bucket.len(), histogram.schema()), (3, 20, 3));
    assert_eq!(histogram.bucket.iter().map(messages::Bucket::cumulative_count).max(), Some(3));
    assert_eq!(histogram.positive_delta, [1, 0, 0]);
    let spans: Vec<_> = histogram.positive_span.iter().map(|span| (span.offset(), span.length())).collect();
    assert_eq!(spans, [(0, 2), (6, 1)]);
    assert!((histogram.sample_sum() - 4.05).abs() < 1e-9);
    let again: Vec<u8> = families.iter().flat_map(prost::Message::encode_length_delimited_to_vec).collect();
    assert_eq!(octets, again);
}
