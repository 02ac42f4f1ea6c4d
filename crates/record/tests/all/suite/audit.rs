//! Who did what.

use narrows_record::{Audit, broken_at};

use super::World;
use crate::common::NOON;

pub(super) async fn chain(world: &World) {
    let write = |record, who: &'static str| async move {
        let record: &dyn narrows_record::Record = record;
        for number in 0..10 {
            record.audit(who, "token.made", &format!("number {number}\0"), NOON + number).await.unwrap();
        }
    };
    tokio::join!(write(&*world.a, "hub"), write(&*world.b, "alice"));
    let all = world.a.audits(None, 99).await.unwrap();
    let numbers: Vec<u64> = all.iter().map(|one| one.number).collect();
    assert_eq!(numbers, (1..=20).rev().collect::<Vec<_>>());
    assert_eq!(broken_at(&all), None);
    assert_eq!(all.iter().filter(|one| one.who == "alice").count(), 10);
    assert!(all.iter().all(|one| one.hash.len() == 64 && one.text.ends_with('\u{fffd}')));
    let page = world.b.audits(Some(7), 3).await.unwrap();
    assert_eq!(page, all[14..17]);
    assert_eq!(world.b.audits(Some(1), 3).await.unwrap(), []);
    let mut forged = all.clone();
    forged[9] = Audit { who: "bob".to_owned(), ..forged[9].clone() };
    assert_eq!(broken_at(&forged), Some(forged[9].number));
}
