//! Both hosts' settings and what they counted over a job, and the time of day.

use narrows_net::client::SocketWorld;
use narrows_net::host::{CounterReading, Interface};
use narrows_report::{Environments, HostEnvironment};
use narrows_units::BitRate;

use crate::moment::Moment;

/// Now, RFC 3339, for the head of a report.
pub(crate) fn now() -> String {
    Moment::now().rfc_3339()
}

/// This host's name, as the kernel has it.
pub(crate) fn hostname() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname");
    name.map_or_else(|_| "localhost".to_owned(), |name| name.trim().to_owned())
}

/// Settings of both hosts before a job, and what was counted by then. To be taken once the session
/// is open: getting in overflows buffers of this host on purpose, which no path did.
#[derive(Debug)]
pub(crate) struct Before {
    interface: Option<Interface>,
    here: HostEnvironment,
    counts: CounterReading,
    remote: HostEnvironment,
}

impl Before {
    /// Reads this host, and asks the peer. What that does not tell is unknown, and no reason not
    /// to measure.
    pub(crate) fn job(world: &mut SocketWorld) -> Self {
        let interface = world.interface().cloned();
        let here = HostEnvironment {
            sending_connections: narrows_net::host::sending_connections(world.peer()),
            ..narrows_net::host::environment(interface.clone())
        };
        Self {
            here,
            remote: world.ask_remote_host().ok().flatten().unwrap_or_default(),
            counts: CounterReading::now(interface.as_ref()),
            interface,
        }
    }

    /// The same with what was counted since; `world` is the session of the job, unless it broke.
    pub(crate) fn after(self, world: Option<&mut SocketWorld>) -> Environments {
        let mut here = self.here;
        self.counts.until(&CounterReading::now(self.interface.as_ref()), &mut here);
        let reported = world.and_then(|world| world.ask_remote_host().ok().flatten());
        Environments { here, remote: reported.unwrap_or(self.remote) }
    }
}

/// A rate below which no memory of any host that runs this program is a limit (ours: those of 2003
/// copied 144 MB/s, which carry 770 Mbit/s).
const MEMORY_MATTERS: BitRate = BitRate::from_mbps(500);

/// What memory and calls of this host cost, for advice about a rate that memory may bound, and for
/// whoever wants the `figures`. Takes some tens of milliseconds: after the last measurement.
pub(crate) fn add_costs(environments: &mut [Environments], sustained: Option<BitRate>, figures: bool) {
    if !figures && sustained.is_none_or(|rate| rate < MEMORY_MATTERS) {
        return;
    }
    let costs = narrows_net::host::memory_costs();
    for hosts in environments {
        hosts.here.take_costs(&costs);
    }
}
