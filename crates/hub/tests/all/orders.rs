//! What orders may take, and what becomes of them.

use narrows_hub::Error;

use crate::world::{BEGIN, HOUR, MINUTE, World, name};

const DAY: i64 = 24 * HOUR;
/// The access link of a: a fifth of its octets is for orders.
const ACCESS: &str = "[sites.ams]\nhosts = [\"a\"]\n\
                      access = { down = \"1 Gbit/s\", up = \"1 Gbit/s\", budget = \"1 GB/day\" }\n";

/// An order of a to b; the reason if it is refused.
async fn order(world: &World, command: &str) -> Result<(), String> {
    match world.hub.order(&name("a"), &name("b"), command, "test").await {
        Ok(_) => Ok(()),
        Err(Error::Request(why)) => Err(why),
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
