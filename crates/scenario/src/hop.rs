//! One hop: a link, what queues in front of it, what may happen on it, and the router behind it.

use std::time::Duration;

use narrows_units::{BitRate, Framing, Octets};

use crate::service::Service;

/// A link from one node to the next.
#[derive(Debug, Clone, PartialEq)]
pub struct Hop {
    /// For people; need not be unique.
    pub name: String,
    /// Nominal rate at the wire. Zero is refused.
    pub rate: BitRate,
    /// Octet times per packet around the IP packet.
    pub framing: Framing,
    /// Whether packets are served one after the other.
    pub service: Service,
    /// Propagation, after the last bit has left.
    pub delay: Duration,
    /// Drop-tail queue in front of the link.
    pub queue: Queue,
    /// Largest IP packet.
    pub mtu: u16,
    /// Store-and-forward devices inside the hop, after the link, in order: each serialises every
    /// packet once more, and no hop limit counts them.
    pub layer2: Vec<Layer2>,
    /// Token bucket in front of the queue.
    pub bucket: Option<TokenBucket>,
    /// Drops ahead of the queue's end.
    pub early_drop: Option<EarlyDrop>,
    /// Losses that have nothing to do with queues. They happen on the wire, after the link was
    /// occupied.
    pub loss: Loss,
    /// Delay variation added to propagation; packets do not overtake one another because of it.
    pub jitter: Jitter,
    /// Overtaking.
    pub reorder: Option<Reorder>,
    /// Later rates, in order of time. A packet that is being sent is finished at the rate at which
    /// it began.
    pub schedule: Vec<RateChange>,
    /// The router at the end of the hop (ignored on the last hop, which ends at a host).
    pub router: Router,
    /// What a lab plays it with; the simulator treats all kinds alike.
    pub link: Link,
}

impl Hop {
    /// An Ethernet link of this nominal rate: no propagation, 1000 packets of queue, MTU 1500,
    /// nothing else.
    pub fn rate(rate: BitRate) -> Self {
        Self {
            name: String::new(),
            rate,
            framing: Framing::ETHERNET,
            service: Service::Single,
            delay: Duration::ZERO,
            queue: Queue::Packets(1000),
            mtu: 1500,
            layer2: Vec::new(),
            bucket: None,
            early_drop: None,
            loss: Loss::None,
            jitter: Jitter::None,
            reorder: None,
            schedule: Vec::new(),
            router: Router::default(),
            link: Link::RealTime,
        }
    }

    /// With a name.
    #[must_use]
    pub fn named(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    /// With another framing.
    #[must_use]
    pub fn framing(mut self, framing: Framing) -> Self {
        self.framing = framing;
        self
    }

    /// Served in another way.
    #[must_use]
    pub fn service(mut self, service: Service) -> Self {
        self.service = service;
        self
    }

    /// With propagation delay.
    #[must_use]
    pub fn delay(mut self, delay: Duration) -> Self {
        self.delay = delay;
        self
    }

    /// With another queue.
    #[must_use]
    pub fn queue(mut self, queue: Queue) -> Self {
        self.queue = queue;
        self
    }

    /// With another MTU in IP octets.
    #[must_use]
    pub fn mtu(mut self, ip_octets: u16) -> Self {
        self.mtu = ip_octets;
        self
    }

    /// With one more hidden device.
    #[must_use]
    pub fn layer2(mut self, device: Layer2) -> Self {
        self.layer2.push(device);
        self
    }

    /// With a token bucket.
    #[must_use]
    pub fn bucket(mut self, bucket: TokenBucket) -> Self {
        self.bucket = Some(bucket);
        self
    }

    /// With drops ahead of the queue's end.
    #[must_use]
    pub fn early_drop(mut self, early_drop: EarlyDrop) -> Self {
        self.early_drop = Some(early_drop);
        self
    }

    /// With losses.
    #[must_use]
    pub fn loss(mut self, loss: Loss) -> Self {
        self.loss = loss;
        self
    }

    /// With jitter.
    #[must_use]
    pub fn jitter(mut self, jitter: Jitter) -> Self {
        self.jitter = jitter;
        self
    }

    /// With overtaking.
    #[must_use]
    pub fn reorder(mut self, reorder: Reorder) -> Self {
        self.reorder = Some(reorder);
        self
    }

    /// With a later rate.
    #[must_use]
    pub fn then_rate(mut self, at: Duration, rate: BitRate) -> Self {
        self.schedule.push(RateChange { at, rate });
        self
    }

    /// With another router behind it.
    #[must_use]
    pub fn router(mut self, router: Router) -> Self {
        self.router = router;
        self
    }

    /// Played in a lab by another kind of link.
    #[must_use]
    pub fn link(mut self, link: Link) -> Self {
        self.link = link;
        self
    }
}

/// What a lab plays a hop with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Link {
    /// The hop's own model against the real clock, packet by packet: what this crate says is what
    /// happens.
    #[default]
    RealTime,
    /// A virtual cable with Linux's token bucket filter at both ends, tc-tbf(8): the hop's rate,
    /// queue and framing, or its token bucket with the link's rate as peak rate.
    Tbf(Burst),
    /// A virtual cable with one class of Linux's hierarchical token bucket at both ends, tc-htb(8).
    Htb(Burst),
    /// A virtual cable as it is, as fast as the machine. Of the hop only the MTU is played.
    Veth,
}

/// How many octets a kernel's shaper lets through at once when it has rested.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Burst {
    /// One packet of the MTU: the nearest to a link that sends packets one by one.
    #[default]
    OnePacket,
    /// So many, counted as the link counts, framing included.
    Octets(Octets),
}

impl Link {
    /// As scenario files write it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::RealTime => "real_time",
            Self::Tbf(_) => "tbf",
            Self::Htb(_) => "htb",
            Self::Veth => "veth",
        }
    }
}

/// How much waits before the next packet is dropped (drop-tail; the packet being sent counts).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Queue {
    /// IP octets.
    Octets(Octets),
    /// Packets, of any size.
    Packets(u32),
    /// Never drops.
    Unlimited,
}

/// A hidden store-and-forward device (a switch): its outgoing link.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Layer2 {
    /// Nominal rate of its outgoing link.
    pub rate: BitRate,
    /// Framing of that link.
    pub framing: Framing,
    /// Propagation of that link.
    pub delay: Duration,
    /// Its queue.
    pub queue: Queue,
}

/// A token bucket. It starts full.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TokenBucket {
    /// Token rate, in IP octets × 8 per second.
    pub rate: BitRate,
    /// Depth in IP octets.
    pub burst: Octets,
    /// What becomes of packets without tokens: they wait in a queue of this size (a shaper), or are
    /// dropped at once (`None`: a policer).
    pub queue: Option<Queue>,
    /// Most that a waiting packet goes on late, after there are tokens for it, and twice the least:
    /// a kernel waits for them with a timer. Packets that have tokens by then go with it. Tokens
    /// are not lost.
    pub timer: Duration,
}

/// Random early detection (`[RED93]` §4): drops that become likelier as the queue grows. What is
/// compared is a moving average of the IP octets that wait; each arriving packet finds it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct EarlyDrop {
    /// Average below which no packet is dropped.
    pub from: Octets,
    /// Average from which on every packet is.
    pub to: Octets,
    /// Share of packets dropped just below that; it grows evenly from zero at `from`. In (0, 1].
    pub ratio: f64,
    /// Weight of what each packet finds in the average, in (0, 1]; 1: the queue itself.
    pub weight: f64,
}

/// Losses on the wire.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Loss {
    /// None.
    None,
    /// Each packet for itself.
    Random {
        /// Probability, 0..1.
        ratio: f64,
    },
    /// Gilbert–Elliott: a good state without loss and a bad state that loses every packet.
    Bursty {
        /// Long-run share of packets lost, 0..1.
        ratio: f64,
        /// Mean length of a loss burst in packets, at least 1.
        mean_burst: f64,
    },
}

/// Delay variation on the wire, drawn for each packet.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Jitter {
    /// None.
    None,
    /// Uniform between zero and this.
    Uniform(Duration),
    /// Exponential with this mean.
    Exponential(Duration),
}

/// Overtaking: a share of the packets is held back.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Reorder {
    /// Share of packets held back, 0..1.
    pub ratio: f64,
    /// For how long.
    pub by: Duration,
}

/// A rate from some time on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RateChange {
    /// Since the scenario's begin.
    pub at: Duration,
    /// The new nominal rate; zero stops the link.
    pub rate: BitRate,
}

/// How the router at the end of a hop answers packets whose hop limit runs out there.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Router {
    /// It answers at all.
    pub answers: bool,
    /// Time to generate an answer.
    pub icmp_delay: Duration,
    /// Variation of that time (exponential, this mean).
    pub icmp_jitter: Duration,
    /// Answers per second, and how many may come at once; `None` for no limit (Linux: 1 per second
    /// and destination, 6 at once).
    pub icmp_limit: Option<(f64, u32)>,
    /// Most octets of the answer's IP packet (RFC 1812: 576; many hardware routers quote 28 octets
    /// and end at 56).
    pub icmp_max_octets: u16,
    /// What routers do that they should not.
    pub oddities: Oddities,
}

/// What routers do that they should not, or not for one flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Oddities {
    /// Time per octet of the packet that an answer takes longer: a processor that copies.
    pub icmp_per_octet: Duration,
    /// Answers quote a random share of what they may.
    pub quotes_at_random: bool,
    /// Packets whose hop limit has run out are passed on; the next node answers.
    pub forwards_expired: bool,
    /// Answers say that they come from the node of this number on this way (1: the first router). A
    /// path on which packets go round shows itself so: the hops of each round with the addresses of
    /// the first.
    pub answers_as: Option<u16>,
    /// So many routers share the place, each for some of the packets of one flow; 0 and 1: one.
    pub siblings: u8,
    /// From this time on another router stands there, and its answers take longer by the second of
    /// the two.
    pub rerouted: Option<(Duration, Duration)>,
}

impl Default for Router {
    /// A Linux router with its rate limit off.
    fn default() -> Self {
        Self {
            answers: true,
            icmp_delay: Duration::from_micros(20),
            icmp_jitter: Duration::ZERO,
            icmp_limit: None,
            icmp_max_octets: 576,
            oddities: Oddities::default(),
        }
    }
}
