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
//! | name | unit | default | range | source |
//! |---|---|---|---|---|
//! | `trains` | 1 | 10 | 3 to 100 | ours: at most, and no more than it takes |
//! | `enough` | 1 | 5 | 3 to 100 | ours: trains that count, after which no more are sent |
//! | `small` | 1 | 3 | 1 to 20 | ours: small SYNs on either side |
//! | `octets` | IP octets | path MTU | 200 to 65535 | recalled: 1500 |
//! | `spacing` | s | 500 ms | 0 to 10 s | ours: SYNs to a host that is not ours are sent rarely |
//! | `framing` | | ethernet | ethernet, vlan, bare, octets | ours |
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

use units::{Framing, Layer, Metric};

use crate::facts::Answering;
use crate::methods::campaign::{self, read_framing, within};
#[cfg(doc)]
use crate::outcome::{Caveat, Reason};
use crate::registry::{
    Activity, Classification, Deployment, Imposes, MethodInfo, Methodology, Needs, ParamError, Privilege, Protocol,
    RawParams, Scope,
};

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
    parameters: &[
        ("trains", "trains at most, 3..100; 10"),
        ("enough", "trains that count, after which no more are sent, 3..100; 5"),
        ("small", "small SYNs on either side of the pair, 1..20; 3"),
        ("octets", "IP octets of a large SYN, 200..65535; path MTU"),
        ("spacing", "from train to train, 0..10 s; 500 ms"),
        (
            "framing",
            "of the narrow link: ethernet, vlan, bare, or octets per packet; ethernet",
        ),
    ],
    source: include_str!("sprobe.rs"),
};

campaign::method!(Sprobe, answered_by: &[Answering::TcpSyn]);

/// Everything that can be set.
#[derive(Debug, Clone, PartialEq)]
pub struct Params {
    /// Trains at most.
    pub trains: u32,
    /// Trains that count, after which no more are sent.
    pub enough: u32,
    /// Small SYNs on either side of the pair.
    pub small: usize,
    /// IP octets of a large SYN; `None`: what the path takes.
    pub ip_octets: Option<u16>,
    /// From the begin of one train to the begin of the next.
    pub spacing: Duration,
    /// How the narrow link wraps packets.
    pub framing: Framing,
}

impl Default for Params {
    fn default() -> Self {
        Self {
            trains: 10,
            enough: 5,
            small: 3,
            ip_octets: None,
            spacing: Duration::from_millis(500),
            framing: Framing::ETHERNET,
        }
    }
}

impl TryFrom<&RawParams> for Params {
    type Error = ParamError;

    fn try_from(raw: &RawParams) -> Result<Self, ParamError> {
        let base = Self::default();
        let octets: u16 = raw.get("octets", 0)?;
        let params = Self {
            trains: raw.get("trains", base.trains)?,
            enough: raw.get("enough", base.enough)?,
            small: raw.get("small", base.small)?,
            ip_octets: Some(octets).filter(|octets| *octets > 0),
            spacing: raw.get_duration("spacing", base.spacing)?,
            framing: read_framing(raw, base.framing)?,
        };
        within((3..=100).contains(&params.trains), "trains", params.trains, "3 to 100")?;
        within((3..=100).contains(&params.enough), "enough", params.enough, "3 to 100")?;
        within((1..=20).contains(&params.small), "small", params.small, "1 to 20")?;
        let large = params.ip_octets.is_none_or(|octets| octets >= 200);
        within(large, "octets", octets, "200 to 65535")?;
        let spacing = params.spacing <= Duration::from_secs(10);
        within(
            spacing,
            "spacing",
            units::format_duration(params.spacing).as_str(),
            "0 to 10 s",
        )?;
        Ok(params)
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
