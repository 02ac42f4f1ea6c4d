//! What holds for every bus. Each case has a server of its own, so they run at the
//! same time.

mod keys;
mod messages;
mod results;

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use narrows_bus::{Bucket, Settings};

use crate::world::{LEASES, World};

type Run = for<'a> fn(&'a mut World) -> Pin<Box<dyn Future<Output = ()> + 'a>>;

/// A case: its name, the settings of its server, and what must hold.
pub(crate) struct Case {
    pub(crate) name: &'static str,
    pub(crate) settings: Settings,
    pub(crate) run: Run,
}

/// Settings as a fleet has them, but small.
fn settings() -> Settings {
    let mut settings = Settings::fleet(1);
    settings.stream.max_octets = 10_000_000;
    settings.buckets = vec![Bucket::new("plan", "plan"), Bucket::new(LEASES, "lease")];
    for bucket in &mut settings.buckets {
        bucket.max_octets = 10_000_000;
    }
    settings
}

pub(crate) fn cases() -> Vec<Case> {
    let case = |name, run: Run| Case { name, settings: settings(), run };
    let mut again = case("what is not acknowledged comes again", |world| Box::pin(results::again(world)));
    again.settings.sinks.ack_wait = Duration::from_millis(300);
    let mut pending = case("few results are with a sink at once", |world| Box::pin(results::pending(world)));
    pending.settings.sinks.max_pending = 3;
    let mut full = case("a full stream refuses", |world| Box::pin(results::full(world)));
    full.settings.stream.max_octets = 65_536;
    vec![
        case("a result is kept once", |world| Box::pin(results::once(world))),
        again,
        pending,
        full,
        case("killed, the server has what it acknowledged", |world| Box::pin(results::killed(world))),
        case("a key is written at its revision", |world| Box::pin(keys::revisions(world))),
        case("of two writers one wins", |world| Box::pin(keys::two_writers(world))),
        case("other settings are noticed", |world| Box::pin(keys::provide(world))),
        case("messages reach those who listen, in order", |world| Box::pin(messages::order(world))),
        case("a slow reader costs no memory", |world| Box::pin(messages::slow(world))),
        case("foreign subjects are refused", |world| Box::pin(messages::foreign(world))),
    ]
}
