//! The sizes of a flow's data packets, by their frequency, in bounded memory (`[MG82]`).

/// The most frequent sizes.
#[derive(Debug, Clone, Default)]
pub(in crate::passive) struct Sizes {
    /// IP octets, payload octets, packets.
    known: [(u32, u32, u64); 6],
    largest_payload: u32,
}

impl Sizes {
    pub(super) fn count(&mut self, ip_octets: u32, payload: u32) {
        self.largest_payload = self.largest_payload.max(payload);
        if let Some(place) = self.known.iter_mut().find(|one| one.2 > 0 && (one.0, one.1) == (ip_octets, payload)) {
            place.2 += 1;
        } else if let Some(free) = self.known.iter_mut().find(|one| one.2 == 0) {
            *free = (ip_octets, payload, 1);
        } else {
            for one in &mut self.known {
                one.2 -= 1;
            }
        }
    }

    pub(super) fn largest_payload(&self) -> u32 {
        self.largest_payload
    }

    /// IP and payload octets of a full packet on the wire: the most frequent large size, unless it
    /// is a multiple of another that was seen. `None` before data came, or where none is large.
    pub(in crate::passive) fn full(&self) -> Option<(u32, u32)> {
        let large = || self.known.iter().filter(|one| one.2 > 0 && one.1 >= super::LEAST_PAYLOAD);
        let most = large().max_by_key(|one| one.2)?;
        let divides = |one: &&(u32, u32, u64)| one.1 < most.1 && most.1.is_multiple_of(one.1);
        let unit = large().filter(divides).min_by_key(|one| one.1).unwrap_or(most);
        Some((unit.0, unit.1))
    }
}
