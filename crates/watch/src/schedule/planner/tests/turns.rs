//! Jobs that may not meet.

use super::*;

#[test]
fn targets_of_one_link_take_turns() {
    let mut world = World::new(6, &[2000, 5000]);
    world.run(day(1), |world| {
        let loading = world.running.iter().filter(|(_, job)| job.kind.loads()).count();
        assert!(loading <= 1);
    });
    assert!(world.sent.values().all(|jobs| jobs.len() > 500));
}

#[test]
fn a_path_has_one_job_at_a_time_and_slow_routes_leave_room_for_slices() {
    let mut world = World::new(7, &[100_000]);
    let target = TargetId::new(0);
    world.run(day(1).after(Duration::from_secs(300)), |world| {
        if world.now.boot >= day(1) {
            world.planner.observe(target, world.now.boot, PathEvent::Trigger);
        }
        assert!(world.running.len() <= 1, "{:?}", world.running);
    });
    let (loads, routes): (Vec<Sent>, Vec<Sent>) =
        world.sent[&target].iter().partition(|sent| sent.4 != Why::Base && sent.2 > 20_000);
    assert!(loads.len() > 500 && routes.len() > 24, "{} {}", loads.len(), routes.len());
    let minute = |sent: &&Sent| sent.0 >= day(1) && sent.0 < day(1).after(Duration::from_secs(60));
    let slices = loads.iter().filter(minute).count();
    assert!(slices >= 4 && routes.iter().filter(minute).count() >= 8, "{slices}");
}

#[test]
fn a_route_that_hangs_holds_its_target_up_for_a_minute_and_no_longer() {
    let mut world = World::new(8, &[100_000]);
    let target = TargetId::new(0);
    let mut first_load = None;
    world.run(day(1), |world| {
        for (ends, job) in &mut world.running {
            if job.kind == JobKind::Route {
                *ends = day(2);
            } else {
                first_load.get_or_insert(world.now.boot);
            }
        }
        let routes = world.running.iter().filter(|(_, job)| job.kind == JobKind::Route).count();
        assert!(routes <= 1 && world.running.len() <= 2, "{:?}", world.running);
    });
    let waited = first_load.unwrap().since(day(0));
    assert!((60..65).contains(&waited.as_secs()), "{waited:?}");
    assert!(world.sent[&target].len() > 500, "{}", world.sent[&target].len());
    assert!(world.sent[&target].iter().all(|sent| sent.4 != Why::Base));
    // It ends after all.
    world.running.iter_mut().for_each(|(ends, _)| *ends = world.now.boot);
    world.run(day(1).after(Duration::from_secs(3600)), |_| {});
    let routes = world.sent[&target].iter().filter(|sent| sent.4 == Why::Base).count();
    assert!(routes >= 12, "{routes}");
}
