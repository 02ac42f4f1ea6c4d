//! mtr's own report, so that what reads that reads this.

use serde::Serialize;

use super::{HopRow, HopsDocument};

/// The document, in mtr's order.
#[derive(Serialize)]
struct Document<'a> {
    report: Report<'a>,
}

#[derive(Serialize)]
struct Report<'a> {
    mtr: Head<'a>,
    hubs: Vec<Hub>,
}

#[derive(Serialize)]
struct Head<'a> {
    src: &'a str,
    dst: &'a str,
    tos: u8,
    tests: u64,
    psize: &'static str,
    bitpattern: &'static str,
}

#[derive(Serialize)]
struct Hub {
    count: u16,
    host: String,
    #[serde(rename = "Loss%")]
    loss: f64,
    #[serde(rename = "Snt")]
    sent: u64,
    #[serde(rename = "Last")]
    last: f64,
    #[serde(rename = "Avg")]
    mean: f64,
    #[serde(rename = "Best")]
    best: f64,
    #[serde(rename = "Wrst")]
    worst: f64,
    #[serde(rename = "StDev")]
    deviation: f64,
}

impl HopsDocument {
    /// The JSON of `mtr --json` (mtr 0.95): times in milliseconds, losses in percent. `source` is
    /// this host's name. Sizes of probes vary, of which mtr's report has one: it says `"varied"`.
    pub fn mtr(&self, source: &str) -> String {
        let report = Report {
            mtr: Head {
                src: source,
                dst: &self.target.name,
                tos: 0,
                tests: self.hops.iter().map(|hop| hop.probes.sent).max().unwrap_or(0),
                psize: "varied",
                bitpattern: "0x00",
            },
            hubs: self.hops.iter().map(hub).collect(),
        };
        // An indented document, as mtr writes; a structure of strings and finite numbers cannot
        // fail.
        serde_json::to_string_pretty(&Document { report }).unwrap_or_default()
    }
}

fn hub(hop: &HopRow) -> Hub {
    let probes = &hop.probes;
    let router = hop.routers.first();
    let lost = probes.sent.saturating_sub(probes.answered) as f64 * 100.0 / probes.sent.max(1) as f64;
    Hub {
        count: hop.ttl,
        host: router
            .map_or_else(|| "???".to_owned(), |router| router.name.clone().unwrap_or_else(|| router.address.clone())),
        loss: thousandth(lost),
        sent: probes.sent,
        last: ms(probes.last_ns),
        mean: ms(probes.mean_ns),
        best: ms(probes.best_ns),
        worst: ms(probes.worst_ns),
        deviation: ms(probes.deviation_ns),
    }
}

fn ms(time_ns: u64) -> f64 {
    thousandth(time_ns as f64 / 1e6)
}

fn thousandth(value: f64) -> f64 {
    (value * 1000.0).round() / 1000.0
}
