//! Made-up orders, a configuration, and a run with its evidence.

use serde_json::{Value, json};

use crate::made_up::{Fleet, HOUR, MINUTE, NOW};

impl Fleet {
    pub(crate) fn orders(&self) -> Value {
        if self.idle() {
            return json!({ "orders": [] });
        }
        let order = |n: u64, minutes: i64, command: &str, state: &str, keys: &[&str], said: Option<&str>| {
            let run = (state == "done").then_some("019ab000-0001-7000-8000-00000000abcd");
            json!({ "id": format!("019ab000-0000-7000-8000-00000000ab{n:02}"), "source": "ams-1", "target": "fra-1", "command": command,
                "at_ms": NOW + minutes * MINUTE, "keys": keys, "state": state, "run": run, "said": said })
        };
        let keys = ["host.ams-1", "host.fra-1", "access.ams.up", "link.16045690984503098046.0"];
        json!({ "orders": [
            order(1, 4, "throughput -P 4 -t 10", "waits", &keys, None),
            order(2, 0, "available", "running", &[], None),
            order(3, -61, "throughput -t 10", "done", &keys, None),
            order(4, -90, "hops", "skipped", &keys, Some("link.16045690984503098046.0 was held by lon-3")),
            order(5, -300, "rtt", "lost", &[], None),
        ] })
    }

    pub(crate) fn config(&self) -> Value {
        if self.idle() {
            return json!({ "toml": "", "before": null, "applied": null });
        }
        let file = "[sites.ams]\nhosts = [\"ams-*\"]\naccess = { down = \"1 Gbit/s\", up = \"200 Mbit/s\", budget = \"50 GB/day\" }\n\n\
            [groups]\ncore = [\"ams-1\", \"fra-1\"]\nedge = { label = \"role=edge\", except = [\"edge-9\"] }\n\n\
            [[test]]\npairs = \"core to edge\"\nrun = \"throughput -P 4 -t 10\"\nevery = \"6 h\"\n";
        let before = file.replace("\"6 h\"", "\"12 h\"").replace("up = \"200 Mbit/s\"", "up = \"100 Mbit/s\"");
        json!({ "toml": file, "before": before, "applied": { "at_ms": NOW - 26 * HOUR, "who": "web 198.51.100.7" } })
    }
}

/// A run whose route changed while it ran, with the document of `narrows available`.
pub(crate) fn one_run(id: &str) -> Value {
    let hops = |last: &[&str]| last.iter().map(|address| json!({ "address": address })).collect::<Vec<_>>();
    let mut after = hops(&["192.0.2.1", "192.0.2.77", "192.0.2.10"]);
    after[1] = json!({ "address": null });
    json!({
        "schema": "narrows.run/1", "id": id, "agent": "ams-1", "seq": 812, "target": "fra-1", "kind": "available",
        "origin": { "order": "019ab000-0000-7000-8000-00000000ab03" }, "began_ms": NOW - 61 * MINUTE, "length_ms": 7_400, "exit": "done",
        "reason": null, "octets": 3_912_000, "flags": ["own_load"],
        "route_before": hops(&["192.0.2.1", "192.0.2.9", "192.0.2.10"]), "route_after": after,
        "values": [{ "metric": "available_ip_capacity", "direction": "forward", "unit": "bit/s", "claim": "estimate", "value": 412e6, "low": 398e6, "high": 431e6 }],
        "evidence": {
            "schema": "narrows.report/1", "metric": "available_ip_capacity", "direction": "forward", "unit": "bit/s", "verdict": "estimated",
            "value": 412e6, "low": 398e6, "high": 431e6, "confidence": "good", "method": "available", "octets": 3_912_000,
            "caveats": [{ "id": "software_stamps", "text": "Timestamps come from software: expect 3 microseconds more or less." }],
            "evidence": { "trains": 24, "train_rate_bps": [200e6, 300e6, 380e6, 410e6, 430e6, 405e6, 415e6] },
        },
    })
}
