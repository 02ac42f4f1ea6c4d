//! What holds for every record. Each case has a database of its own.

mod agents;
mod alerts;
mod arrivals;
mod audit;
mod groupings;
mod many;
mod orders;
mod outcomes;
mod plans;
mod proofs;
mod routes;
mod runs;
mod series;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use narrows_record::Record;

/// Two hubs, each with its own connections to the same database.
pub(crate) struct World {
    pub(crate) a: Arc<dyn Record>,
    pub(crate) b: Arc<dyn Record>,
}

type Held<'a> = Pin<Box<dyn Future<Output = ()> + 'a>>;

/// A case: its name, and what must hold.
pub(crate) struct Case {
    pub(crate) name: &'static str,
    pub(crate) run: for<'a> fn(&'a World) -> Held<'a>,
}

pub(crate) fn cases() -> Vec<Case> {
    let case = |name, run: for<'a> fn(&'a World) -> Held<'a>| Case { name, run };
    vec![
        case("an agent joins by a token", |world| Box::pin(agents::join(world))),
        case("a token joins as many as it says", |world| Box::pin(agents::tokens(world))),
        case("of two racers one has the token", |world| Box::pin(agents::race(world))),
        case("a result is read as it was sent", |world| Box::pin(runs::whole(world))),
        case("a result is kept once", |world| Box::pin(runs::once(world))),
        case("a batch is kept or not", |world| Box::pin(runs::all_or_nothing(world))),
        case("newest values are those that count", |world| Box::pin(runs::newest(world))),
        case("lists are filtered", |world| Box::pin(runs::lists(world))),
        case("runs are read on in the order in which they were kept", |world| Box::pin(arrivals::order(world))),
        case("a cursor that leaves a gap is refused", |world| Box::pin(arrivals::gaps(world))),
        case("wrong times change nothing", |world| Box::pin(runs::wrong_times(world))),
        case("no run is missed while two clients send", |world| Box::pin(arrivals::concurrent(world))),
        case("a pair fails since its last value", |world| Box::pin(outcomes::failing(world))),
        case("two clients send at once", |world| Box::pin(many::concurrent(world))),
        case("sites have the median of their pairs", |world| Box::pin(many::sites(world))),
        case("sums are those of a recount", |world| Box::pin(series::recount(world))),
        case("what is old goes", |world| Box::pin(series::retain(world))),
        case("routes are known since when", |world| Box::pin(routes::since(world))),
        case("routes that come late are those of a recount", |world| Box::pin(routes::late(world))),
        case("a span is reserved once", |world| Box::pin(plans::reserve(world))),
        case("of two hubs one reserves", |world| Box::pin(plans::two_hubs(world))),
        case("a span ends with its run, and has what that sent", |world| Box::pin(plans::end(world))),
        case("an order and its spans are kept, or neither", |world| Box::pin(orders::give(world))),
        case("an order keeps its run", |world| Box::pin(orders::states(world))),
        case("a proof has its paths for itself", |world| Box::pin(proofs::alone(world))),
        case("of two hubs one proves", |world| Box::pin(proofs::race(world))),
        case("one grouping runs at a time", |world| Box::pin(groupings::alone(world))),
        case("of two hubs one groups", |world| Box::pin(groupings::race(world))),
        case("settings and serials", |world| Box::pin(plans::settings(world))),
        case("states of alerts are kept", |world| Box::pin(alerts::states(world))),
        case("a notice waits until it is done", |world| Box::pin(alerts::notices(world))),
        case("a silence ends", |world| Box::pin(alerts::silences(world))),
        case("the audit is a chain", |world| Box::pin(audit::chain(world))),
    ]
}
