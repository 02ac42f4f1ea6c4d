//! What a host's interfaces have sent.

use std::ops::Sub;

use narrows_evaluate::RunFault;
use narrows_lab::Node;

use super::{broke, host_pair};

/// Octets of each packet in an Ethernet interface's counters that are not IP.
const LINK_HEADER: u64 = 14;

/// Octets and packets that a host sent over all interfaces but the loopback.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Sent {
    /// As the interfaces count them.
    octets: u64,
    pub(super) packets: u64,
}

impl Sent {
    /// Without the Ethernet header that is counted with each packet.
    pub(super) fn ip_octets(self) -> u64 {
        self.octets.saturating_sub(self.packets * LINK_HEADER)
    }
}

impl Sub for Sent {
    type Output = Self;

    fn sub(self, before: Self) -> Self {
        Self { octets: self.octets.saturating_sub(before.octets), packets: self.packets.saturating_sub(before.packets) }
    }
}

/// What `host` has sent so far.
pub(super) fn sent_by(host: &Node) -> Result<Sent, RunFault> {
    let table =
        host.run(|| std::fs::read_to_string("/proc/thread-self/net/dev")).map_err(|error| host_pair::fault(&error))?;
    let table = table.map_err(|error| broke(format!("reading the interface counters: {error}")))?;
    Ok(total(&table))
}

/// Columns `transmit bytes` and `transmit packets` of `/proc/net/dev` (`proc_pid_net(5)`): the 9th
/// and 10th number.
fn total(table: &str) -> Sent {
    let mut sum = Sent::default();
    for line in table.lines() {
        let Some((name, numbers)) = line.split_once(':') else {
            continue;
        };
        let mut numbers = numbers.split_whitespace().skip(8).map(str::parse::<u64>);
        if let (false, Some(Ok(octets)), Some(Ok(packets))) = (name.trim() == "lo", numbers.next(), numbers.next()) {
            sum.octets += octets;
            sum.packets += packets;
        }
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "\
Inter-|   Receive                                                |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed
    lo:     500       5    0    0    0     0          0         0      500       5    0    0    0     0       0          0
 path0:    1000      10    0    0    0     0          0         0     4500       3    0    7    0     0       0          0
  eth1:       0       0    0    0    0     0          0         0      100       1    0    0    0     0       0          0
broken: 1 2
";

    #[test]
    fn the_loopback_does_not_count() {
        let sent = total(TABLE);
        assert_eq!((sent.octets, sent.packets), (4600, 4));
        assert_eq!(sent.ip_octets(), 4600 - 4 * 14);
        let since = sent - Sent { octets: 600, packets: 1 };
        assert_eq!((since.octets, since.packets), (4000, 3));
    }
}
