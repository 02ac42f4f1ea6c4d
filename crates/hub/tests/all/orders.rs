//! What orders may take, and what becomes of them.

use narrows_fleet::message::{Exit, Order, Origin};
use narrows_hub::{Error, Hub};
use narrows_record::Reservation;
use narrows_units::Metric;
use uuid::Uuid;

use crate::world::{BEGIN, HOUR, MINUTE, World, name, soon};

const DAY: i64 = 24 * HOUR;
/// The access link of a: a fifth of its octets is for orders.
const ACCESS: &str = "[sites.ams]\nhosts = [\"a\"]\n\
                      access = { down = \"1 Gbit/s\", up = \"1 Gbit/s\", budget = \"1 GB/day\" }\n";

/// An order of a to b; the reason if it is refused.
async fn order(world: &World, command: &str) -> Result<(), String> {
    match world.hub.order(&name("a"), &name("b"), command, "test").await {
        Ok(_) => Ok(()),
        Err(Error::Conflict(why)) => Err(why),
        Err(error) => panic!("{error}"),
    }
}

/// Of a day, orders have a fifth of a tenth: 1728 s of each key.
#[tokio::test]
async fn orders_spend_their_share_of_the_time_and_it_comes_back_after_a_day() {
    let mut world = World::new().await;
    let _agents = world.fleet(["a", "b", "c"]).await;
    // 600 s each, one after the other.
    let long = "throughput -t 595";
    let refused = Err("the budget of host.a has no time left".to_owned());
    assert_eq!(order(&world, long).await, Ok(()));
    assert_eq!(order(&world, long).await, Ok(()));
    assert_eq!(order(&world, long).await, refused, "both are to come");
    world.pass(15 * MINUTE);
    assert_eq!(order(&world, long).await, refused, "one has passed, one runs");
    world.restart().await;
    world.pass(HOUR);
    assert_eq!(order(&world, long).await, refused, "both have passed");
    // What is left is enough for less.
    assert_eq!(order(&world, "throughput -t 295").await, Ok(()));
    // A day after the first one ended. The second one ended ten minutes later.
    world.pass(BEGIN + DAY + 10 * MINUTE - 1 - world.now());
    assert_eq!(order(&world, long).await, refused);
    world.pass(1);
    assert_eq!(order(&world, long).await, Ok(()));
    assert_eq!(order(&world, long).await, refused);
}

#[tokio::test]
async fn orders_spend_their_share_of_the_octets_and_none_of_the_plans() {
    let world = World::new().await;
    let [a, ..] = world.fleet(["a", "b", "c"]).await;
    world.apply(ACCESS).await;
    // 80 MB each.
    let much = "throughput -t 10 -b 64M";
    assert_eq!(order(&world, much).await, Ok(()));
    world.pass(HOUR);
    assert_eq!(order(&world, much).await, Ok(()));
    world.pass(HOUR);
    assert_eq!(order(&world, much).await, Err("the budget of access.ams.down has no octets left".to_owned()));
    // The plan has the other 800 MB: four runs of 200 MB, and not one more.
    let test = "[[test]]\npairs = [[\"a\", \"b\"]]\nrun = \"throughput -t 10 -b 160M\"\nevery = \"4 h\"\n";
    world.apply(&format!("{ACCESS}{test}")).await;
    assert_eq!(a.plan().await.runs.len(), 4);
    world.pass(23 * HOUR);
    assert_eq!(order(&world, much).await, Ok(()));
}

/// What a run did not send is free again; of one that was stopped nobody knows what it sent.
#[tokio::test]
async fn an_order_spends_what_its_run_sent() {
    let world = World::new().await;
    let [mut a, ..] = world.fleet(["a", "b", "c"]).await;
    world.apply(ACCESS).await;
    // 80 MB of the 200 MB for orders, each.
    let much = "throughput -t 10 -b 64M";
    let full = Err("the budget of access.ams.down has no octets left".to_owned());
    let mut given = Vec::new();
    for _ in 0..2 {
        given.push(world.hub.order(&name("a"), &name("b"), much, "test").await.unwrap());
        world.pass(HOUR);
    }
    assert_eq!(order(&world, much).await, full);
    for (id, exit, octets, fits) in [(given[0], Exit::Stopped, 0, false), (given[1], Exit::Done, 20_000_000, true)] {
        let mut run = a.run(&name("b"), "throughput", Metric::TcpAchievableSingle, 60.0, world.now() - 2 * HOUR);
        (run.origin, run.exit, run.octets) = (Origin::Order(id), exit, octets);
        a.publish(&run).await;
        assert_eq!(world.ingest().await, 1);
        assert_eq!(order(&world, much).await, if fits { Ok(()) } else { full.clone() });
    }
    // 180 of 200 MB are spent.
    assert_eq!(order(&world, much).await, full);
}

/// The state of the newest order, and its run.
async fn state(world: &World) -> (String, Option<Uuid>) {
    let newest = world.record.orders(1).await.unwrap().remove(0).state;
    (newest.state, newest.run)
}

/// An order of a to b whose span is still to come, because b is busy. Returns its spans too.
async fn later(world: &World, hub: &Hub) -> (Uuid, Vec<Reservation>) {
    hub.order(&name("c"), &name("b"), "throughput -t 10", "test").await.unwrap();
    let id = hub.order(&name("a"), &name("b"), "throughput -t 10", "test").await.unwrap();
    let spans = own(world, id).await;
    assert_eq!(spans.iter().map(|span| span.begin_ms - BEGIN).collect::<Vec<_>>(), [15_000; 3]);
    (id, spans)
}

async fn own(world: &World, run: Uuid) -> Vec<Reservation> {
    let spans = world.record.reservations(BEGIN).await.unwrap();
    spans.into_iter().filter(|span| span.run == run).collect()
}

#[tokio::test]
async fn an_order_outlives_the_hub_that_gave_it() {
    let mut world = World::new().await;
    let [mut a, ..] = world.fleet(["a", "b", "c"]).await;
    let mut orders = a.subscribe("order").await;
    let (id, spans) = later(&world, &world.hub).await;
    let given: Order = a.open(&soon(orders.next()).await.unwrap().payload).unwrap();
    assert_eq!((given.id, state(&world).await), (id, ("waits".to_owned(), None)));
    world.restart().await;
    world.hub.plan().await.unwrap();
    // The agent goes by its newest plan, and has not heard of the order.
    a.say(&a.status(a.plan().await.serial)).await;
    world.hear().await;
    let again: Order = a.open(&soon(orders.next()).await.unwrap().payload).unwrap();
    assert_eq!(again, given);
    assert_eq!(own(&world, id).await, spans);
    let mut status = a.status(a.plan().await.serial);
    status.order = Some(id);
    a.say(&status).await;
    world.hear().await;
    assert_eq!(state(&world).await, ("running".to_owned(), None));
    world.restart().await;
    let mut run = a.run(&name("b"), "throughput", Metric::TcpAchievableSingle, 900.0, BEGIN + 15_100);
    run.origin = Origin::Order(id);
    a.publish(&run).await;
    assert_eq!(world.ingest().await, 1);
    assert_eq!(state(&world).await, ("done".to_owned(), Some(run.id)));
}

#[tokio::test]
async fn a_second_hub_leaves_the_orders_of_the_first_alone_and_takes_their_results() {
    let mut world = World::new().await;
    let [mut a, mut b, _c] = world.fleet(["a", "b", "c"]).await;
    let first = world.hub.clone();
    world.restart().await;
    world.hub.plan().await.unwrap();
    let (id, spans) = later(&world, &first).await;
    // No plan has this span. The second hub plans around it, and hears that a goes by its plan.
    world.hub.plan().await.unwrap();
    a.say(&a.status(a.plan().await.serial)).await;
    world.hear().await;
    assert_eq!(own(&world, id).await, spans);
    let mut run = a.run(&name("b"), "throughput", Metric::TcpAchievableSingle, 900.0, BEGIN + 100);
    run.origin = Origin::Order(id);
    // Another agent's run is not the order's.
    let mut foreign = b.run(&name("c"), "throughput", Metric::TcpAchievableSingle, 900.0, BEGIN + 100);
    foreign.origin = Origin::Order(id);
    b.publish(&foreign).await;
    assert_eq!(world.ingest().await, 1);
    assert_eq!(state(&world).await, ("waits".to_owned(), None));
    a.publish(&run).await;
    assert_eq!(world.ingest().await, 1);
    assert_eq!(state(&world).await, ("done".to_owned(), Some(run.id)));
}

/// A span has room for more than its run takes. What is left is free, and no budget pays for it.
#[tokio::test]
async fn a_span_ends_with_its_run() {
    let world = World::new().await;
    let [mut a, mut b, _c] = world.fleet(["a", "b", "c"]).await;
    let id = world.hub.order(&name("a"), &name("b"), "throughput -t 595", "test").await.unwrap();
    let ends = async || {
        let spans = world.record.reservations(world.now()).await.unwrap();
        spans.iter().map(|span| span.end_ms - BEGIN).collect::<Vec<_>>()
    };
    assert_eq!(ends().await, [600_000; 3]);
    let mut run = a.run(&name("b"), "throughput", Metric::TcpAchievableSingle, 900.0, BEGIN + 100);
    run.origin = Origin::Order(id);
    a.publish(&run).await;
    assert_eq!(world.ingest().await, 1);
    assert_eq!(ends().await, [2_100; 3]);
    // Two more of 600 s fit into the 1728 s of the day, and the next one begins at once.
    for begin in [2_100, 602_100] {
        assert_eq!(order(&world, "throughput -t 595").await, Ok(()));
        assert_eq!(ends().await.into_iter().max(), Some(begin + 600_000));
    }
    // So does the span of a run of the timetable.
    let test = "[[test]]\npairs = [[\"b\", \"c\"]]\nrun = \"throughput -t 100\"\nevery = \"24 h\"\n";
    world.apply(test).await;
    let planned = b.plan().await.runs.remove(0);
    let mut run = b.run(&name("c"), "throughput", Metric::TcpAchievableSingle, 900.0, planned.at_ms + 50);
    run.origin = Origin::Planned;
    b.publish(&run).await;
    assert_eq!(world.ingest().await, 1);
    let ends: Vec<_> = own(&world, planned.id).await.iter().map(|span| span.end_ms).collect();
    assert_eq!(ends, [planned.at_ms + 2_050; 3]);
}
