//! A trace that does not end.

use super::super::super::jobs::Work;
use super::super::super::route::Traced;
use super::*;

#[test]
fn a_trace_that_hangs_holds_nothing_up_for_ever_and_its_times_count_for_nothing() {
    let target = TargetId::new(1);
    for (ended, counts) in [(45, true), (100, false)] {
        let (mut engine, ends) = engine(narrow(&["far.example"]), Box::new(Recorder::default()), at(0));
        engine.look(at(0));
        let mut works: Vec<Work> = ends.jobs.try_iter().collect();
        let hung = works.pop().unwrap();
        assert!(works.is_empty() && hung.job.kind == JobKind::Route, "{hung:?}");
        let mut began = None;
        for second in 1..=ended {
            engine.look(at(second));
            for job in jobs(&ends) {
                assert!(job.kind.loads(), "no second trace beside one that hangs: {job:?}");
                began.get_or_insert(second);
            }
        }
        // Routes have half a minute.
        assert_eq!(began.is_some_and(|began| (60..=63).contains(&began)), !counts, "{began:?}");
        let router = std::collections::BTreeSet::from([[10, 0, 0, 1].into()]);
        let traced =
            Traced { route: vec![router], round_trips_ns: vec![vec![5_000_000]], reached: true, ..Traced::default() };
        let done = Done { octets: Some(64), outcome: Outcome::Done, traced: Some(traced), ..Done::of(hung) };
        engine.take(Message::Done(Box::new(done)), at(ended));
        assert_eq!(engine.subjects[&target].traced_at.is_some(), counts, "{ended}");
        engine.look(at(ended + 1));
        assert_eq!(jobs(&ends).iter().any(|job| job.kind.loads()), counts, "what waited begins");
    }
}
