use narrows_units::Metric;
use serde_json::json;

use super::*;

fn document(name: &str) -> Value {
    let path = format!("{}/../../apps/narrows/tests/documents/{name}.json", env!("CARGO_MANIFEST_DIR"));
    stored(&std::fs::read_to_string(path).expect("a stored document")).expect("JSON")
}

fn of(document: &Value, name: &str) -> Reading {
    let quantity = Quantity::named(name).expect("in the table");
    let all = readings(document);
    *all.iter().find(|reading| reading.quantity == quantity).unwrap_or_else(|| panic!("no {name} in {all:#?}"))
}

#[test]
fn every_metric_is_in_the_table_with_its_unit() {
    for metric in Metric::ALL {
        assert_eq!(Quantity::of(metric).unit, metric.unit().into(), "{metric}");
    }
    for (at, quantity) in QUANTITIES.iter().enumerate() {
        for name in [quantity.name, quantity.short] {
            assert_eq!(Quantity::named(name), Some(&QUANTITIES[at]), "{name} stands for two");
        }
    }
}

#[test]
fn a_report_has_its_rows_and_the_loss_of_its_echoes() {
    let report = document("report-1");
    assert_eq!(readings(&report).len(), report["metrics"].as_array().unwrap().len() + 1);
    let available = of(&report, "available");
    assert_eq!(available.possible(), (54_736_100.0, 70_188_360.0));
    assert_eq!(available.layer, Some(Layer::Ip));
    // A lower bound leaves the upper side open.
    assert_eq!(of(&report, "cross").possible(), (27_335_992.0, f64::INFINITY));
    let loss = of(&report, "loss");
    assert_eq!((loss.value, loss.low), (Some(0.0), Some(0.0)));
    // None of 20 lost: at most 12 % at 90 %.
    assert!((0.1..0.15).contains(&loss.high.unwrap()), "{loss:?}");
}

#[test]
fn every_measuring_commands_document_is_read() {
    assert!(of(&document("throughput"), "throughput").value.unwrap() > 7e9);
    assert_eq!(of(&document("throughput"), "retransmits").value, Some(5.0));
    assert_eq!(of(&document("throughput"), "loaded_rtt").value, Some(879_000.0));
    assert!(of(&document("burst-1"), "burst").quantity.unit == QuantityUnit::Octet);
    assert!(of(&document("streams-1"), "streams").quantity.unit == QuantityUnit::Count);
    assert_eq!(of(&document("available-watch-1-summary"), "available").claim, BoundKind::LowerBound);
    let hops = document("hops-1");
    assert_eq!(of(&hops, "rtt").value, Some(11_587.0));
    assert_eq!(of(&hops, "loss").value, Some(0.0));
    // Its narrow hop is not known.
    assert_eq!(of(&hops, "capacity").claim, BoundKind::Inconclusive);
    assert_eq!(readings(&document("host-1")), []);
}

#[test]
fn both_directions_of_a_udp_test() {
    let sum = |bps: f64| json!({"bits_per_second": bps, "lost_packets": 2, "packets": 100, "jitter_ms": 0.5});
    let document = json!({
        "start": {"test_start": {"protocol": "UDP", "reverse": 0}},
        "end": {"sum_received": sum(1e6), "sum_received_bidir_reverse": sum(2e6)},
    });
    let found = readings(&document);
    let named = |name: &str| -> Vec<(Direction, Option<f64>)> {
        let these = found.iter().filter(|reading| reading.quantity.short == name);
        these.map(|reading| (reading.direction, reading.value)).collect()
    };
    assert_eq!(named("throughput"), [(Direction::Forward, Some(1e6)), (Direction::Reverse, Some(2e6))]);
    assert_eq!(named("loss"), [(Direction::Forward, Some(0.02)), (Direction::Reverse, Some(0.02))]);
    assert_eq!(named("jitter")[0].1, Some(500_000.0));
}

#[test]
fn a_page_holds_its_document() {
    let page = "<!DOCTYPE html>\n<html><script type=\"application/json\" id=\"narrows-document\">\n\
                {\"metric\":\"path_mtu\",\"text\":\"a<\\/script>b\"}\n</script><p>{}</p></html>";
    assert_eq!(stored(page).unwrap()["metric"], "path_mtu");
    assert_eq!(stored("<!DOCTYPE html><html></html>"), Err(StoredError::NoDocument));
    assert_eq!(stored("{\"kind\":\"window\"}\n{\"kind\":\"summary\"}\n").unwrap()["kind"], "summary");
    assert!(matches!(stored("capacity 97 Mbit/s"), Err(StoredError::NoJson { .. })));
    assert!(matches!(stored(""), Err(StoredError::NoJson { .. })));
}
