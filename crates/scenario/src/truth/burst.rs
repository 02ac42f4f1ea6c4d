//! How much of a burst an idle path takes.

use narrows_units::{BitRate, Framing};

use super::Truth;
use crate::service::{Channels, Dealing, Service};
use crate::stages::{first_drop, first_drop_of, first_without_tokens, picos, room};

/// The largest burst that an idle path takes without loss.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BurstTruth {
    /// IP octets of the largest burst without loss.
    pub ip_octets: u64,
    /// The hop whose queue overflows first beyond it.
    pub hop: usize,
}

impl Truth<'_> {
    /// The largest burst of packets of `ip_octets` that the *idle* path takes without loss, sent at
    /// the pace of the first link (or of `sender`, if that is slower), with all buckets full;
    /// `None` if no queue or policer drops up to 100 000 packets, if a link gathers bursts or has
    /// slots, or if drops ahead of a queue's end are left to chance. By the recursion of each FIFO
    /// stage, not by a formula.
    pub fn burst(&self, ip_octets: u16, sender: Option<BitRate>) -> Option<BurstTruth> {
        const PACKETS: usize = 100_000;
        if self.hops().iter().any(|hop| has_bursts(hop.service) || hop.early_drop.is_some()) {
            return None;
        }
        let gap = sender.map_or(0, |rate| picos(u64::from(ip_octets), rate));
        let mut arrivals: Vec<u64> = (0..PACKETS).map(|k| gap.saturating_mul(k as u64)).collect();
        // The interface holds back what its host sends faster: a socket that blocks, not a queue
        // that drops.
        if let Some(rate) = self.interface() {
            let wire = Framing::ETHERNET.wire_octets(u32::from(ip_octets));
            first_drop(&mut arrivals, picos(u64::from(wire), rate), usize::MAX);
        }
        let mut first_loss: Option<(usize, usize)> = None;
        for (index, hop) in self.hops().iter().enumerate() {
            let devices = hop.layer2.iter().map(|device| (device.rate, device.framing, device.queue));
            if let Some(bucket) = &hop.bucket
                && let Some(lost) = first_without_tokens(&mut arrivals, bucket, ip_octets)
            {
                arrivals.truncate(lost);
                first_loss = Some((lost, index));
            }
            for (rate, framing, queue) in std::iter::once((hop.rate, hop.framing, hop.queue)).chain(devices) {
                let room = room(queue, ip_octets);
                let time = picos(u64::from(framing.wire_octets(u32::from(ip_octets))), rate);
                // Devices never stand behind channels.
                let channels = side_by_side(hop.service);
                let lost = first_drop_of(&mut arrivals, time, room, channels);
                arrivals.truncate(lost.unwrap_or(PACKETS));
                if let Some(lost) = lost {
                    first_loss = Some((lost, index));
                }
            }
        }
        first_loss.map(|(packets, hop)| BurstTruth { ip_octets: packets as u64 * u64::from(ip_octets), hop })
    }
}

fn has_bursts(service: Service) -> bool {
    matches!(service, Service::Aggregation(_) | Service::Slots(_))
}

/// Channels that the packets of one flow take in turn.
fn side_by_side(service: Service) -> usize {
    match service {
        Service::Channels(Channels { count, by: Dealing::Packet | Dealing::Load }) => usize::from(count),
        _ => 1,
    }
}
