//! ICMP answers to the packets of a train.

use narrows_probe::probes::{HopReply, HopReplyKind, Train};
use narrows_units::Stamp;
use narrows_wire::Tag;

use super::super::{SocketWorld, nap};
use crate::clock::{self, nanos};
use crate::errors::Answer;
use crate::socket::ProbeSocket;

impl SocketWorld {
    /// What was answered to each packet by ICMP. Waits until nothing is `awaited` any more (the
    /// positions of the packets of which something may still come), or until the path was quiet for
    /// a while since `last_ns`.
    pub(super) fn icmp_answers(
        &mut self,
        train: &Train,
        id: u32,
        socket: &ProbeSocket,
        awaited: impl Fn() -> Vec<usize>,
        last_ns: impl Fn() -> i64,
    ) -> Vec<Option<HopReply>> {
        let mut replies = vec![None; train.packets.len()];
        loop {
            let awaited = awaited();
            self.queue.drain(socket);
            for answer in self.queue.take_answers() {
                if let HopReplyKind::PacketTooBig { mtu: Some(mtu) } = answer.kind {
                    self.path_mtu = self.path_mtu.min(mtu);
                }
                let limited = |&seq: &usize| replies[seq].is_none() && train.packets[seq].hop_limit.is_some();
                let candidates: Vec<usize> = awaited.iter().copied().filter(limited).collect();
                if let Some(seq) = subject(&answer, self.keys.token.tag(), id, &candidates)
                    && let Some(place) = replies.get_mut(seq)
                {
                    place.get_or_insert(HopReply {
                        from: answer.from,
                        returned: Stamp::from_nanos(answer.returned_ns),
                        reply_ip_octets: answer.ip_octets,
                        kind: answer.kind,
                    });
                }
            }
            let deadline = last_ns().saturating_add(nanos(self.quiet()));
            if awaited.iter().all(|&seq| replies[seq].is_some()) || clock::now_ns() >= deadline {
                return replies;
            }
            nap(deadline);
        }
    }
}

/// Which packet an answer is about: the quoted header says it, or, where a router quotes too
/// little, the fact that only one packet can be meant.
fn subject(answer: &Answer, tag: Tag, id: u32, candidates: &[usize]) -> Option<usize> {
    const TAG: std::ops::Range<usize> = 4..12;
    const ID: std::ops::Range<usize> = 12..16;
    let seq_at = narrows_wire::Probe::SEQ_OFFSET;
    let quoted = &answer.quoted;
    if let (Some(quoted_tag), Some(quoted_id), Some(seq)) =
        (quoted.get(TAG), quoted.get(ID), quoted.get(seq_at..seq_at + 4))
    {
        let of_this_train = quoted_tag == tag.octets() && quoted_id == id.to_be_bytes();
        let seq = u32::from_be_bytes(seq.try_into().ok()?);
        return of_this_train.then(|| usize::try_from(seq).ok()).flatten();
    }
    match candidates {
        [only] => Some(*only),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_decide_and_short_quotes_only_where_one_packet_is_open() {
        let tag = Tag::new([9; 8]);
        let mut header = [0; narrows_wire::PROBE_OCTETS];
        let probe = narrows_wire::Probe { kind: narrows_wire::ProbeKind::Train, tag, id: 4, seq: 7, stamp_ns: 0 };
        probe.write(&mut header).unwrap();
        let mut answer = Answer {
            from: [192, 0, 2, 1].into(),
            bound_for: None,
            kind: HopReplyKind::TimeExceeded,
            returned_ns: 0,
            by_kernel: false,
            ip_octets: 56,
            quoted: header.to_vec(),
            extensions: None,
        };
        assert_eq!(subject(&answer, tag, 4, &[]), Some(7));
        assert_eq!(subject(&answer, tag, 5, &[3]), None);
        assert_eq!(subject(&answer, Tag::new([8; 8]), 4, &[3]), None);
        answer.quoted.truncate(20);
        assert_eq!(subject(&answer, tag, 4, &[]), Some(7));
        answer.quoted.truncate(19);
        assert_eq!(subject(&answer, tag, 4, &[3]), Some(3));
        assert_eq!(subject(&answer, tag, 4, &[3, 4]), None);
    }
}
