//! sprobe: estimates the capacity of the way to an uncooperative host from TCP SYN packets, or says that it does not know.
//!
//! # Model
//!
//! ```text
//!  SYNs   . . . [======][======] . . . ──▶ narrow link ──▶ host, which answers each with a RST of 40 octets
//!  RSTs   . . .            .          .   . . .   ──▶ the spacing of the two large ones' answers is 8 W(L) / C
//! ```
//!
//! A pair of large SYN segments travels amid small ones. The host's answers are small and of one size, so the way back keeps their
//! distances unless it is very much slower. On a quiet path the large pair's answers lie farther apart than those of
//! neighbours that are small: a packet of others between small ones shows as a gap that should not be there, and the train is thrown away.
//!
//! # Assumptions
//!
//! - A1 First come, first served, one packet at a time.
//! - A2 The train leaves faster than the narrow link can send it.
//! - A3 The host answers every SYN at once, in order, with packets of one size; no firewall, proxy or limit does it instead, and SYNs
//!   that carry data pass.
//! - A4 `C_back W(L) / W(40) > C_there`: answers do not queue on the way back.
//! - A5 Stamps are finer than the large pair's spacing.
//!
//! # Formula
//!
//! With `a_i` the times of the answers, in s: `x = 8 W(L) / (a_k+1 - a_k)` of the large pair `k`, `k+1`; `W` are octets on the narrow link's
//! wire. A train counts if (`train`) all answers came, in order; the pair's spacing is the largest of all but the one in front
//! of it; the small ones' median spacing is less than two thirds of it (ours: else hosts or the way back set the distances, A4);
//! and the spacing in front of the pair, which holds the first large packet's time on every link, is no less than the pair's
//! (ours). The original compares with every spacing; in front of the pair that refuses idle paths, since
//! the first large packet's own time on the faster links adds to it. The answer is the median of at least three trains, no fewer
//! than those that do not count, which must agree within a quarter.
//!
//! # Parameters
//!
//! Declared below; `narrows methods sprobe` prints the table.
//!
//! # Cost
//!
//! Five to ten trains of 8 packets, 3.2 kB each: 16 to 32 kB in 2 to 5 s (published goal: below a minute).
//!
//! # Fails when
//!
//! - A1: striped links change the order of answers: [`Reason::NoAgreement`].
//! - A2: [`Reason::SenderTooSlow`] (`nettimer-slow-sender`).
//! - A3: no answer at all is [`Reason::NoAnswer`], half of them [`Reason::TooMuchLoss`]; in a world without SYNs
//!   [`Reason::NotOffered`]. Send them only to hosts whose owners agree.
//! - A4: [`Reason::NoAgreement`] with [`Caveat::AsymmetricLimit`] (`sprobe-asymmetric`).
//! - A5: [`Reason::StampsTooCoarse`].
//! - On loaded paths few trains count: [`Reason::NoAgreement`]. The large pair of every third train is smaller, and its rate must agree
//!   within a tenth (ours): steady traffic behind the narrow link parts pairs of one size all alike. By design it says nothing rather than something wrong; the original
//!   tolerates errors of a factor of two, here the range is that of the trains.
//! - The reverse direction (a connection whose far end sends its first window) is not offered: nothing in the vocabulary of probes
//!   makes a host that knows nothing of us send full segments.
//!
//! # References
//!
//! - `[SProbe02]` S. Saroiu, P. Gummadi, S. Gribble: `SProbe`, a fast technique for measuring bottleneck bandwidth in uncooperative
//!   environments, 2002. Known from the authors' talk; numbers of packets and trains are ours.

mod answer;
mod session;
#[cfg(test)]
mod tests;
mod train;

use std::time::Duration;

use narrows_units::{Framing, Layer, Metric};

use narrows_probe::facts::Answering;
#[cfg(doc)]
use narrows_probe::outcome::{Caveat, Reason};
use narrows_probe::registry::{
    Activity, Classification, Deployment, Imposes, MethodInfo, Methodology, Needs, Privilege, Protocol, Range, Scope,
    params,
};
use narrows_train::campaign;

use session::Session;

/// The registry entry.
#[derive(Debug, Clone, Copy)]
pub struct Sprobe;

static INFO: MethodInfo = MethodInfo {
    name: "sprobe",
    summary: "capacity of the way to an uncooperative host from TCP SYN pairs, or nothing",
    metric: Metric::IpCapacity,
    class: Classification {
        scope: Scope::EndToEnd,
        methodology: Methodology::PacketDispersion,
        activity: Activity::Active,
        protocol: Protocol::Tcp,
        works_on_asymmetric: true,
        deployment: Deployment::Sender,
        layer: Some(Layer::Ip),
        privilege: Privilege::RawSocket,
    },
    needs: Needs {
        single_packet_stamps: true,
        sender_faster_than_result: true,
        pacing: false,
    },
    imposes: Imposes {
        typical_octets: 16_200,
        max_octets: 100_000,
        typical_time: Duration::from_millis(2500),
        max_time: Duration::from_secs(30),
        fills_path: false,
    },
    parameters: Params::PARAMETERS,
    source: include_str!("sprobe.rs"),
};

campaign::method!(Sprobe, answered_by: &[Answering::TcpSyn]);

params! {
    /// Everything that can be set.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct Params {
        /// Trains at most.
        pub trains: u32 = "10" { range: Between("3", "100"), source: "ours: at most, and no more than it takes" },
        /// Trains that count, after which no more are sent.
        pub enough: u32 = "5" { range: Between("3", "100"), source: "ours" },
        /// Small SYNs on either side of the pair.
        pub small: usize = "3" { range: Between("1", "20"), source: "ours" },
        /// IP octets of a large SYN.
        pub ip_octets: Option<u16> = "path MTU" {
            name: "octets", unit: "IP octets", range: Between("200", "65535"), unset: Some("0"), source: "recalled: 1500",
        },
        /// From the begin of one train to the begin of the next.
        pub spacing: Duration = "500 ms" {
            range: Between("0 s", "10 s"), source: "ours: SYNs to a host that is not ours are sent rarely",
        },
        /// How the narrow link wraps packets.
        pub framing: Framing = "ethernet" { range: Range::FRAMING, unset: Some(""), source: "ours" },
    }
}

impl Params {
    /// What the longest run imposes: round trips of up to a second (ours).
    fn imposes(&self, usual: &Imposes) -> Imposes {
        let small = u64::try_from(self.small).unwrap_or(u64::MAX);
        let octets = 2 * u64::from(self.ip_octets.unwrap_or(1500)) + 2 * small * 60;
        let each = self.spacing.max(Duration::from_secs(1)).saturating_mul(2);
        Imposes {
            max_octets: usual.max_octets.max(u64::from(self.trains) * octets),
            max_time: usual.max_time.max(each.saturating_mul(self.trains)),
            ..usual.clone()
        }
    }
}
