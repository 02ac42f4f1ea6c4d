//! Whom a train method asks, and what it makes of a world that refuses: another size, another
//! peer, or no answer.

use std::collections::VecDeque;

use super::train_method::refusal_reason;
use narrows_probe::contract::Refusal;
use narrows_probe::outcome::Reason;
use narrows_probe::probes::PeerKind;

/// Sizes that are tried before another peer is (ours).
const MOST_RESIZED: u32 = 8;

/// Peers that are left to ask, the best first.
#[derive(Debug, Clone)]
pub struct PeerKinds {
    left: VecDeque<PeerKind>,
    refusals: u32,
}

impl PeerKinds {
    /// Peers to be tried, the best first.
    pub fn new(best_first: impl IntoIterator<Item = PeerKind>) -> Self {
        Self { left: best_first.into_iter().collect(), refusals: 0 }
    }

    /// The one to ask now.
    pub fn first(&self) -> Option<PeerKind> {
        self.left.front().copied()
    }

    /// After a refusal: `resize` takes over the size that it names and says true, or the next
    /// peer is asked. Gives up with a reason that says `what` was wanted once there is none.
    pub fn refused(
        &mut self,
        refusal: Refusal,
        what: &str,
        resize: impl FnOnce(Refusal) -> bool,
    ) -> Result<(), Reason> {
        self.refusals = self.refusals.saturating_add(1);
        if refusal == Refusal::ForbiddenByPeer {
            return Err(Reason::ForbiddenByPeer);
        }
        if self.refusals <= MOST_RESIZED && resize(refusal) {
            return Ok(());
        }
        self.left.pop_front();
        if self.left.is_empty() {
            return Err(refusal_reason(refusal, what));
        }
        Ok(())
    }
}

/// Sizes that the world takes, IP octets.
#[derive(Debug, Clone, Copy)]
pub struct SizeBounds {
    /// IP octets of the smallest packet.
    pub least_octets: u16,
    /// IP octets of the largest packet.
    pub most_octets: u16,
}

impl SizeBounds {
    /// Any.
    pub const ANY: Self = Self { least_octets: 0, most_octets: u16::MAX };

    /// Takes over what a refusal says of sizes, if that is news.
    pub fn take(&mut self, refusal: Refusal) -> bool {
        match refusal {
            Refusal::TooLarge { max_ip_octets } if max_ip_octets < self.most_octets => {
                self.most_octets = max_ip_octets;
            }
            Refusal::TooSmall { min_ip_octets } if min_ip_octets > self.least_octets => {
                self.least_octets = min_ip_octets;
            }
            _ => return false,
        }
        true
    }
}

/// Most octets that a packet which is to be small may have (ours).
const MOST_SMALL: u16 = 500;

/// The same for a large and a small size, of which the first is of no use below `least_large`.
pub fn resize_two(refusal: Refusal, large: &mut u16, least_large: u16, small: &mut u16) -> bool {
    match refusal {
        Refusal::TooLarge { max_ip_octets } if (least_large..*large).contains(&max_ip_octets) => {
            *large = max_ip_octets;
        }
        Refusal::TooSmall { min_ip_octets } if min_ip_octets > *small && min_ip_octets <= MOST_SMALL => {
            *small = min_ip_octets;
        }
        _ => return false,
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    const LARGE: Refusal = Refusal::TooLarge { max_ip_octets: 900 };

    #[test]
    fn sizes_first_then_the_next_peer_kind_then_a_reason() {
        let mut ends = PeerKinds::new([PeerKind::Receiver, PeerKind::Echo]);
        let mut bounds = SizeBounds::ANY;
        assert_eq!(ends.refused(LARGE, "packets", |refusal| bounds.take(refusal)), Ok(()));
        assert_eq!((ends.first(), bounds.most_octets), (Some(PeerKind::Receiver), 900));
        // No news.
        assert_eq!(ends.refused(LARGE, "packets", |refusal| bounds.take(refusal)), Ok(()));
        assert_eq!(ends.first(), Some(PeerKind::Echo));
        let what = "packets".to_owned();
        assert_eq!(
            ends.refused(Refusal::NotOffered, "packets", |refusal| bounds.take(refusal)),
            Err(Reason::NotOffered { what })
        );
        assert_eq!(ends.first(), None);
    }

    #[test]
    fn a_peer_that_forbids_is_not_asked_otherwise() {
        let mut ends = PeerKinds::new([PeerKind::Receiver, PeerKind::Echo]);
        let forbidden = ends.refused(Refusal::ForbiddenByPeer, "packets", |_| true);
        assert_eq!(forbidden, Err(Reason::ForbiddenByPeer));
    }

    #[test]
    fn a_world_that_names_ever_other_sizes_is_left() {
        let mut ends = PeerKinds::new([PeerKind::Receiver]);
        for _ in 0..MOST_RESIZED {
            assert_eq!(ends.refused(LARGE, "packets", |_| true), Ok(()));
        }
        assert!(ends.refused(LARGE, "packets", |_| true).is_err());
    }

    #[test]
    fn two_sizes_keep_apart() {
        let (mut large, mut small) = (1500, 60);
        assert!(resize_two(LARGE, &mut large, 200, &mut small));
        let least = |min_ip_octets| Refusal::TooSmall { min_ip_octets };
        assert!(resize_two(least(500), &mut large, 200, &mut small));
        assert!(!resize_two(least(501), &mut large, 200, &mut small));
        assert!(!resize_two(Refusal::TooLarge { max_ip_octets: 199 }, &mut large, 200, &mut small));
        assert_eq!((large, small), (900, 500));
    }
}
