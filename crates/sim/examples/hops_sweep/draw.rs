//! Paths from seeds.

use std::fmt::Write as _;

use narrows_stat::SplitMix64;

/// Mbit/s of links, the usual ones more often.
const RATES: [u64; 20] =
    [10, 10, 20, 30, 50, 70, 100, 100, 100, 100, 155, 200, 300, 500, 1000, 1000, 1000, 2500, 5000, 10_000];
/// More cross traffic than this the simulator takes too long over, Mbit/s.
const MOST_CROSS: f64 = 700.0;

struct Draw(SplitMix64);

impl Draw {
    fn share(&mut self) -> f64 {
        self.0.next_unit()
    }

    fn chance(&mut self, share: f64) -> bool {
        self.share() < share
    }

    fn below(&mut self, most: usize) -> usize {
        usize::try_from(self.0.next_u64() % (most.max(1) as u64)).unwrap_or(0)
    }

    fn between(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.share()
    }

    fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())]
    }
}

/// What a kind of path has; shares of paths.
#[derive(Clone, Copy)]
struct Kind {
    loaded: [usize; 2],
    strange: f64,
    hidden: f64,
    asymmetric: f64,
    lossy: f64,
    jittery: f64,
    stalls: f64,
    framed: f64,
    hops: [usize; 2],
    /// Every router and the peer limit their answers to 1/s, six at once.
    limited: bool,
    only: Option<&'static str>,
    /// The narrow link is in the middle third.
    middle: bool,
    /// Every link and its host keep each packet for some microseconds more, as virtual ones do, and
    /// the sender stands still now and then.
    hosts: bool,
    /// Mbit/s of all links, where they are not drawn.
    rates: Option<&'static [u64]>,
}

const CALM: Kind = Kind {
    loaded: [0, 0],
    strange: 0.0,
    hidden: 0.0,
    asymmetric: 0.0,
    lossy: 0.0,
    jittery: 0.0,
    stalls: 0.0,
    framed: 0.0,
    hops: [2, 12],
    limited: false,
    only: None,
    middle: false,
    hosts: false,
    rates: None,
};
/// The lab's path.
const LAB: Kind = Kind { hosts: true, hops: [3, 3], rates: Some(&[100, 10, 100]), ..CALM };

/// `wide` has everything; the others one thing each.
fn kind(name: &str) -> Kind {
    match name {
        "calm" => CALM,
        "loaded" => Kind { loaded: [1, 5], ..CALM },
        "five" => Kind { loaded: [5, 5], hops: [5, 12], ..CALM },
        "strange" => Kind { strange: 1.0, ..CALM },
        "copying" => Kind { strange: 1.0, only: Some("copies"), ..CALM },
        "hidden" => Kind { hidden: 1.0, ..CALM },
        "back" => Kind { asymmetric: 1.0, ..CALM },
        "lossy" => Kind { lossy: 1.0, ..CALM },
        "jittery" => Kind { jittery: 1.0, ..CALM },
        "stalls" => Kind { stalls: 1.0, ..CALM },
        "hosts" => Kind { hosts: true, ..CALM },
        "lab" => LAB,
        "lab-back" => Kind { asymmetric: 1.0, ..LAB },
        "lab-copying" => Kind { strange: 1.0, only: Some("copies"), ..LAB },
        "twelve" => Kind { hops: [12, 12], middle: true, ..CALM },
        "twelve-loaded" => Kind { hops: [12, 12], middle: true, loaded: [1, 3], ..CALM },
        "limited" => Kind { limited: true, hops: [2, 8], ..CALM },
        "limited-loaded" => Kind { limited: true, hops: [2, 8], loaded: [1, 2], ..CALM },
        _ => Kind {
            loaded: [0, 5],
            strange: 0.4,
            hidden: 0.2,
            asymmetric: 0.25,
            lossy: 0.15,
            jittery: 0.25,
            stalls: 0.15,
            framed: 0.3,
            ..CALM
        },
    }
}

const STRANGE: [&str; 11] = [
    "slow",
    "limited",
    "quick-limit",
    "silent",
    "random-quotes",
    "passes-on",
    "siblings",
    "copies",
    "short",
    "long",
    "rerouted",
];

fn router(draw: &mut Draw, only: Option<&str>) -> String {
    let what = only.unwrap_or_else(|| draw.pick(&STRANGE));
    let us = draw.between(20.0, 3000.0);
    match what {
        "slow" => format!("icmp_delay = \"{us:.0} us\", icmp_jitter = \"{:.0} us\"", us / 5.0),
        "limited" => "icmp_per_second = 1.0, icmp_burst = 6".to_owned(),
        "quick-limit" => {
            format!("icmp_per_second = {:.1}, icmp_burst = {}", draw.between(2.0, 100.0), 1 + draw.below(20))
        }
        "silent" => "answers = false".to_owned(),
        "random-quotes" => "quotes_at_random = true".to_owned(),
        "passes-on" => "forwards_expired = true".to_owned(),
        "siblings" => format!("siblings = {}", 2 + draw.below(2)),
        "copies" => format!("icmp_delay = \"30 us\", icmp_per_octet = \"{:.0} ns\"", draw.between(10.0, 400.0)),
        "short" => "icmp_max_octets = 56".to_owned(),
        "long" => "icmp_max_octets = 1500".to_owned(),
        _ => format!("rerouted_at = \"{:.1} s\", rerouted_longer = \"{us:.0} us\"", draw.between(0.5, 8.0)),
    }
}

fn cross(draw: &mut Draw, rate: f64) -> String {
    let load = (rate * draw.between(0.05, 0.8)).min(MOST_CROSS);
    let sizes = draw.pick(&["1500", "1500", "\"imix\"", "[[64, 0.3], [1500, 0.7]]"]);
    let sizes = if load > 100.0 { "1500" } else { sizes };
    let how = match draw.below(4) {
        0 => "arrivals = \"cbr\"".to_owned(),
        1 => format!("arrivals = \"pareto\", shape = 1.5, mean_on = \"20 ms\", peak = \"{:.0} kbit/s\"", rate * 970.0),
        _ => "arrivals = \"poisson\"".to_owned(),
    };
    format!("{{ {how}, rate = \"{:.0} kbit/s\", ip_octets = {sizes} }}", load * 1000.0)
}

/// What one path has.
#[derive(Clone, Copy)]
struct Here {
    /// Share of routers that are strange.
    strange: f64,
    /// Share of hops with a device inside.
    hidden: f64,
    lossy: bool,
    jittery: bool,
    framed: bool,
}

/// One path as a file.
pub(crate) fn path(seed: u64, name: &str) -> String {
    let kind = kind(name);
    let mut draw = Draw(SplitMix64::new(seed.wrapping_mul(0x9e37_79b9) ^ 0x5eed));
    let count = kind.hops[0] + draw.below(kind.hops[1] - kind.hops[0] + 1);
    let narrow = if kind.middle { count / 3 + draw.below(count / 3) } else { draw.below(count) };
    let least = if kind.middle { 10 } else { draw.pick(&[10, 10, 10, 20, 50, 100, 100, 1000]) };
    let mut rates: Vec<u64> = (0..count).map(|_| draw.pick(&RATES).max(2 * least)).collect();
    rates[narrow] = least;
    if let Some(fixed) = kind.rates {
        rates = fixed.to_vec();
    }
    let loads = kind.loaded[0] + draw.below(kind.loaded[1] - kind.loaded[0] + 1);
    let loaded: Vec<usize> = (0..loads).map(|_| draw.below(count)).collect();
    let strange_share = if draw.chance(kind.strange) { draw.between(0.1, 0.5) } else { 0.0 };
    let here = Here {
        strange: strange_share,
        hidden: if draw.chance(kind.hidden) { 0.3 } else { 0.0 },
        lossy: draw.chance(kind.lossy),
        jittery: draw.chance(kind.jittery),
        framed: draw.chance(kind.framed),
    };
    let mut text = format!("name = \"{name}-{seed}\"\nabout = \"one of many\"\nseed = {seed}\n");
    for (hop, &rate) in rates.iter().enumerate() {
        let busy = loaded.contains(&hop);
        add_hop(&mut text, &mut draw, &kind, here, (hop, rate, hop + 1 == count, busy));
    }
    if draw.chance(kind.asymmetric) {
        add_back(&mut text, &mut draw, &kind, count, least);
    }
    add_ends(&mut text, &mut draw, &kind, here.strange);
    text
}

fn add_hop(text: &mut String, draw: &mut Draw, kind: &Kind, here: Here, hop: (usize, u64, bool, bool)) {
    let (hop, rate, last, busy) = hop;
    let delay = 10.0 * 1000.0_f64.powf(draw.share());
    let _ = write!(text, "\n[[hop]]\nname = \"h{hop}\"\nrate = \"{rate} Mbit/s\"\ndelay = \"{delay:.0} us\"\n");
    if kind.hosts {
        *text += "jitter = { exponential = \"15 us\" }\n";
    }
    if here.framed && draw.chance(0.5) {
        let framing =
            draw.pick(&["{ vlan_tags = 1 }", "{ overhead_octets = 24 }", "{ overhead_octets = 9 }", "\"bare\""]);
        let _ = writeln!(text, "framing = {framing}");
    }
    if draw.chance(here.hidden) {
        let port = rate * draw.pick(&[1, 1, 10]);
        let _ = writeln!(text, "layer2 = [{{ rate = \"{port} Mbit/s\", queue = \"1000 packets\" }}]");
    }
    if here.lossy && draw.chance(0.3) {
        let _ = writeln!(text, "loss = {{ ratio = {:.3} }}", draw.between(0.002, 0.04));
    }
    if !last {
        let answers = if draw.chance(here.strange) {
            router(draw, kind.only)
        } else if kind.limited {
            "icmp_per_second = 1.0, icmp_burst = 6".to_owned()
        } else if here.jittery {
            format!("icmp_jitter = \"{:.0} us\"", draw.between(2.0, 100.0))
        } else {
            String::new()
        };
        let _ = writeln!(text, "router = {{ {answers} }}");
    }
    let cross = if busy { cross(draw, rate as f64) } else { String::new() };
    let _ = writeln!(text, "cross = [{cross}]");
}

fn add_back(text: &mut String, draw: &mut Draw, kind: &Kind, count: usize, least: u64) {
    for hop in 0..count {
        let rate = draw.pick(&RATES).max(least / 2);
        let delay = 10.0 * 1000.0_f64.powf(draw.share());
        let _ = write!(text, "\n[[reverse]]\nname = \"b{hop}\"\nrate = \"{rate} Mbit/s\"\ndelay = \"{delay:.0} us\"\n");
        if draw.chance(0.15) && kind.loaded[1] > 0 {
            let _ = writeln!(text, "cross = [{}]", cross(draw, rate as f64));
        }
    }
}

fn add_ends(text: &mut String, draw: &mut Draw, kind: &Kind, strange: f64) {
    let _ = write!(text, "\n[sender]\nclock = {{ granularity = \"1 us\" }}\nsend_cost = \"2 us\"\n");
    if kind.hosts {
        *text += "stalls = { every = \"200 ms\", lasting = \"5 ms\" }\n";
    }
    if draw.chance(kind.stalls) {
        let _ = write!(
            text,
            "receive_cost = \"3 us\"\npacing_jitter = \"50 us\"\nstalls = {{ every = \"{:.0} ms\", lasting = \"{:.0} ms\" }}\n",
            draw.between(50.0, 500.0),
            draw.between(1.0, 20.0)
        );
    }
    if kind.limited {
        *text += "\n[receiver]\nanswers = { icmp_per_second = 1.0, icmp_burst = 6 }\n";
    } else if draw.chance(strange) {
        let only = kind.only.or_else(|| Some(draw.pick(&["slow", "limited", "copies", "short", "silent"])));
        let answers = router(draw, only);
        let _ = write!(text, "\n[receiver]\nanswers = {{ {answers} }}\n");
    }
}
