use super::*;

fn document() -> EvaluationDocument {
    let mut document = EvaluationDocument::new("p".into(), String::new(), "[Key] table 1".into(), vec!["n".into()]);
    let row = EvaluationRow {
        scenario: "s".into(),
        method: "default".into(),
        kind: RowKind::Method,
        params: BTreeMap::new(),
        world: Some(World::Simulator),
        metric: Metric::AvailableIpCapacity,
        hop: None,
        status: Status::Measured,
        why: None,
        published: Some(Published {
            value_bps: Some(67.4e6),
            error_ratio: Some(-0.037),
            octets: Some(7_200_000),
            ..Published::default()
        }),
        summary: Summary { runs: 3, truth_bps: Some(70e6), peak_rate_bps: Some(1), ..Summary::default() },
        judged_runs: None,
        not_judged_runs: None,
        external_tool_version: None,
        tracking: None,
    };
    document.rows.push(row.clone());
    document.rows.push(EvaluationRow {
        kind: RowKind::Published,
        world: None,
        hop: Some(2),
        status: Status::PublishedOnly,
        why: Some("no longer to be had".into()),
        summary: Summary::default(),
        judged_runs: Some(0),
        not_judged_runs: Some(0),
        external_tool_version: None,
        tracking: None,
        ..row
    });
    document
}

#[test]
fn json_follows_the_shipped_schema() {
    let schema: serde_json::Value = serde_json::from_str(schema::EVALUATION).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let json: serde_json::Value = serde_json::from_str(&document().json()).unwrap();
    let errors: Vec<String> = validator.iter_errors(&json).map(|error| error.to_string()).collect();
    assert!(errors.is_empty(), "{errors:?}");
    for (field, wrong) in [
        ("status", serde_json::json!("fine")),
        ("hop", serde_json::json!(0)),
        ("median_error_ratio", serde_json::json!("none")),
        ("throughput", serde_json::json!(1)),
    ] {
        let mut bad = json.clone();
        bad["rows"][0][field] = wrong;
        assert!(!validator.is_valid(&bad), "the schema must refuse {field}");
    }
    let mut bad = json;
    bad["rows"][1].as_object_mut().unwrap().remove("runs");
    assert!(!validator.is_valid(&bad), "every summary field is there, also where nothing ran");
}

/// Rows hold every field of `simulate`'s summary, under the same name.
#[test]
fn rows_hold_the_summary_of_simulate() {
    let json: serde_json::Value = serde_json::from_str(&document().json()).unwrap();
    let simulation: serde_json::Value = serde_json::from_str(schema::SIMULATION).unwrap();
    for name in simulation["properties"]["summary"]["required"].as_array().unwrap() {
        assert!(json["rows"][0].get(name.as_str().unwrap()).is_some(), "{name}");
    }
}
