//! mtr's own report, so that what reads that reads this.

use serde_json::{Value, json};

use super::{HopRow, HopsDocument};

impl HopsDocument {
    /// The JSON of `mtr --json` (mtr 0.95): times in milliseconds, losses in percent. `source` is this host's name. Sizes of probes vary, of
    /// which mtr's report has one: it says `"varied"`.
    pub fn mtr(&self, source: &str) -> String {
        let tests = self.hops.iter().map(|hop| hop.probes.sent).max().unwrap_or(0);
        let report = json!({
            "report": {
                "mtr": {
                    "src": source,
                    "dst": self.target.name,
                    "tos": 0,
                    "tests": tests,
                    "psize": "varied",
                    "bitpattern": "0x00",
                },
                "hubs": self.hops.iter().map(hub).collect::<Vec<Value>>(),
            }
        });
        // An indented document, as mtr writes; a map of strings and numbers cannot fail.
        serde_json::to_string_pretty(&report).unwrap_or_default()
    }
}

fn hub(hop: &HopRow) -> Value {
    let probes = &hop.probes;
    let router = hop.routers.first();
    let host = router.map_or_else(
        || "???".to_owned(),
        |router| router.name.clone().unwrap_or_else(|| router.address.to_string()),
    );
    let lost = probes.sent.saturating_sub(probes.answered) as f64 * 100.0 / probes.sent.max(1) as f64;
    json!({
        "count": hop.ttl,
        "host": host,
        "Loss%": thousandth(lost),
        "Snt": probes.sent,
        "Last": ms(probes.last_ns),
        "Avg": ms(probes.mean_ns),
        "Best": ms(probes.best_ns),
        "Wrst": ms(probes.worst_ns),
        "StDev": ms(probes.deviation_ns),
    })
}

fn ms(time_ns: u64) -> f64 {
    thousandth(time_ns as f64 / 1e6)
}

fn thousandth(value: f64) -> f64 {
    (value * 1000.0).round() / 1000.0
}
