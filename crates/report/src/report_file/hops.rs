//! A path's hops as a report file.

use std::time::Duration;

use narrows_probe::BoundKind;
use narrows_units::{BitRate, format_duration};

use super::{Align, Cell, MetricSection, Path, ReportFile, Table, cost_in_words, facts, in_order, notes, title};
use crate::hops::{HopRow, HopsDocument, Pipe};
use crate::picture::{Curve, Picture, Point, Quantity, Series};

impl ReportFile {
    /// Of `hops`.
    pub fn of_hops(document: &HopsDocument, command: &str) -> Self {
        let mut notes = notes(&document.notes);
        notes.extend(document.error.as_ref().map(|problem| problem.text.clone()));
        Self {
            title: title("hops", &document.target),
            facts: facts(document.started_at.as_deref(), &document.cost, &document.version),
            notes,
            answer: document.answer.clone(),
            path: Some(Path::Hops(Pipe::new(document))),
            results: table(document),
            found: vec![found(document)],
            spent: Vec::new(),
            cost: cost_in_words(&document.cost),
            hosts: Table::default(),
            host_notes: Vec::new(),
            advice: Vec::new(),
            doubts: doubts(document),
            command: command.to_owned(),
            json: document.json(),
        }
    }
}

fn table(document: &HopsDocument) -> Table {
    let head = vec![
        ("hop", Align::Right),
        ("router", Align::Left),
        ("capacity", Align::Right),
        ("interval", Align::Right),
        ("free", Align::Right),
        ("round trip", Align::Right),
        ("waiting", Align::Right),
        ("lost", Align::Right),
        ("answers", Align::Right),
        ("mark", Align::Left),
    ];
    Table { head, rows: document.hops.iter().map(|hop| cells(document, hop)).collect() }
}

fn cells(document: &HopsDocument, hop: &HopRow) -> Vec<Cell> {
    let number = |value: Option<u64>| value.map(|value| value as f64);
    let time = |ns: Option<u64>| ns.map_or_else(|| "-".to_owned(), |ns| format_duration(Duration::from_nanos(ns)));
    let rate = |bps: Option<u64>| bps.map_or_else(|| "-".to_owned(), |bps| BitRate::from_bps(bps).to_string());
    let routers: Vec<String> = hop.routers.iter().map(crate::hops::label).collect();
    let interval = hop.low.zip(hop.high).filter(|(low, high)| low < high);
    let interval = interval
        .map_or_else(String::new, |(low, high)| format!("{} - {}", BitRate::from_bps(low), BitRate::from_bps(high)));
    let is = |which: Option<u16>| which == Some(hop.ttl);
    let mark = match (is(document.narrow_hop), is(document.tight_hop)) {
        (true, true) => "narrow, tight",
        (true, false) => "narrow",
        (false, true) => "tight",
        (false, false) => "",
    };
    vec![
        Cell::number(hop.ttl.to_string(), Some(hop.ttl.into())),
        if routers.is_empty() { "no answer".into() } else { routers.join(", ").into() },
        Cell::number(crate::hops::capacity(hop), number(hop.capacity)),
        Cell::number(interval, number(hop.low)),
        Cell::number(rate(hop.available), number(hop.available)),
        Cell::number(time(hop.round_trip_ns), number(hop.round_trip_ns)),
        Cell::number(time(hop.queueing_ns), number(hop.queueing_ns)),
        Cell::number(
            hop.loss_ratio.map_or_else(|| "-".to_owned(), |ratio| Quantity::Ratio.print(ratio)),
            hop.loss_ratio,
        ),
        Cell::number(format!("{} of {}", hop.probes.answered, hop.probes.sent), Some(hop.probes.answered as f64)),
        mark.into(),
    ]
}

fn found(document: &HopsDocument) -> MetricSection {
    let mut words = vec![format!("By {}, asked by {}.", document.method, document.via)];
    if !document.reached {
        words.push("The destination did not answer.".to_owned());
    }
    words.extend(
        document.reason.as_ref().map(|reason| format!("No value for the path: {}.", reason.text.trim_end_matches('.'))),
    );
    let server = document.server.as_ref();
    for (name, way) in
        [("forward", server.and_then(|it| it.forward.as_ref())), ("reverse", server.and_then(|it| it.reverse.as_ref()))]
    {
        if let Some((way, bps)) = way.and_then(|way| Some((way, way.capacity?))) {
            let bound = match way.verdict {
                BoundKind::LowerBound => "at least ",
                BoundKind::UpperBound => "at most ",
                BoundKind::Estimated | BoundKind::Inconclusive => "",
            };
            let rate = BitRate::from_bps(bps);
            words.push(format!("Trains to the server there say {bound}{rate} for the whole {name} direction."));
        }
    }
    let point = |hop: &HopRow| {
        let probes = hop.probes;
        let ns = |ns: u64| ns as f64;
        (probes.answered > 0)
            .then(|| Point::between(hop.ttl.into(), ns(probes.mean_ns), ns(probes.best_ns), ns(probes.worst_ns)))
    };
    let points: Vec<Point> = document.hops.iter().filter_map(point).collect();
    let picture = Picture::Curve(Curve {
        title: "Round trips by hop".to_owned(),
        x_title: "hop".to_owned(),
        x: Quantity::Count,
        y_title: "round trip: mean, from the least to the longest".to_owned(),
        y: Quantity::Time,
        series: vec![Series::new("answers", points.clone())],
        marks: Vec::new(),
        from_zero: true,
    });
    let caption =
        "A rise that all later hops keep is on the path. A rise at one hop alone is that router's slow answers.";
    MetricSection {
        what: "hops".to_owned(),
        claim: match document.hops.len() {
            1 => "1 hop".to_owned(),
            count => format!("{count} hops"),
        },
        words,
        pictures: if points.is_empty() { Vec::new() } else { vec![(caption, picture)] },
        evidence: Vec::new(),
    }
}

fn doubts(document: &HopsDocument) -> Vec<(String, String)> {
    let path = document.caveats.iter().map(|caveat| ("path".to_owned(), caveat));
    let hops =
        document.hops.iter().flat_map(|hop| hop.caveats.iter().map(|caveat| (format!("hop {}", hop.ttl), caveat)));
    in_order(path.chain(hops).collect())
}
