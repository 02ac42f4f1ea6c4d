//! Trains that are long enough to tell what a path carries for long.

use narrows_train::bucket::Course;

use super::session::MethodRun;

/// Those that tell of deep buckets.
pub(super) fn all(session: &MethodRun) -> impl Iterator<Item = &Course> {
    session.courses.iter().filter(|course| is_long(course))
}

/// Of these those that are at least half as long as the longest: a bucket may let shorter
/// ones through at once.
pub(super) fn longest(session: &MethodRun) -> Vec<&Course> {
    let most = all(session).map(|course| course.octets).fold(0.0, f64::max);
    all(session).filter(|course| course.octets * 2.0 >= most).collect()
}

pub(super) fn is_long(course: &Course) -> bool {
    course.octets >= LONG_OCTETS
}

/// Ours: a quarter of what a train that looks for a bucket has on fast links.
const LONG_OCTETS: f64 = 120e3;
