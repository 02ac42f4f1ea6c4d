//! What Prometheus reads.

use std::time::Duration;

use narrows_store::records::Sample;
use narrows_watch::{Claim, Signal};
use narrows_web::TargetLabels;

use crate::site::Site;
use crate::year::now;

/// A site that has something to say of every metric.
pub(crate) fn everything() -> Site {
    let site = Site::start();
    let cadence = Duration::from_secs(60);
    let of = TargetLabels { source: "here".to_owned(), target: "office".to_owned(), ip_version: 4, cadence };
    let metrics = site.live.metrics();
    let (value, low, high) = (Some(6e7), Some(5e7), Some(7e7));
    let sample =
        Sample { at: now(), value, low, high, claim: Claim::Estimate, loaded: false, host_busy: false, run: None };
    metrics.pulse(&of, Some(Duration::from_millis(18)));
    metrics.sample(&of, Signal::AvailableForward, "slope", &sample);
    metrics.path(&of, Some(1500), 8, now());
    metrics.path_changed(&of);
    metrics.follow(&of, &["change"]);
    metrics.up(&of, Some(true), Some(false), now());
    metrics.event(&of, "change");
    metrics.host_event("here", "woke");
    metrics.sent(&of, "slice", 243_800);
    metrics.budget_left(&of, 1_000_000, now());
    metrics.alert(&of, "uplink-low", true, now());
    metrics.store(43_000_000, false, now());
    metrics.host_busy(0.01, now());
    metrics.sample(&of, Signal::Capacity, "slope", &sample);
    site
}

#[test]
fn metrics_come_in_the_format_that_is_asked_for() {
    let site = Site::start();
    let cadence = Duration::from_secs(60);
    let of = TargetLabels { source: "here".to_owned(), target: "office".to_owned(), ip_version: 4, cadence };
    site.live.metrics().pulse(&of, None);
    let classic = site.get("/metrics");
    assert!(classic.head.contains("content-type: text/plain; version=0.0.4"), "{classic:?}");
    assert!(classic.body.contains("\n# TYPE narrows_pulses_lost_total counter\n"), "{classic:?}");
    let open = site.get_with("/metrics", "Accept: application/openmetrics-text;version=1.0.0\r\n");
    assert!(open.head.contains("content-type: application/openmetrics-text; version=1.0.0"), "{open:?}");
    assert!(open.body.contains("\n# TYPE narrows_pulses_lost counter\n") && open.body.ends_with("# EOF\n"), "{open:?}");
}

#[test]
fn a_probe_tells_what_is_stored() {
    let site = Site::start();
    let said = site.get("/probe?target=office&module=available").body;
    assert!(said.contains("\nprobe_success 1.0\n") && said.contains("\nnarrows_probe_value 23400000.0\n"), "{said}");
    // Its server is gone for five hours, which is more than three of the slowest cadences.
    let gone = site.get("/probe?target=far").body;
    assert!(gone.contains("\nprobe_success 0.0\n") && gone.contains("narrows_probe_age_seconds 18060.0"), "{gone}");
    site.get("/probe?target=nobody").refused(404, "nobody");
    site.get("/probe?target=office&module=icmp").refused(400, "module");
}

#[test]
fn ready_says_which_part_is_not() {
    let site = Site::start();
    assert_eq!(site.get("/-/ready").status, 503);
    site.live.ready();
    assert_eq!(site.json("/-/ready")["status"], "ready");
    site.live.fault("store", Some("no space left".to_owned()));
    let reply = site.get("/-/ready");
    assert_eq!((reply.status, reply.json()["faults"][0].as_str()), (503, Some("store")));
    assert_eq!(site.json("/api/v1/targets")["faults"]["store"], "no space left");
}
