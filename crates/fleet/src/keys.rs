//! What a loading run excludes.
//!
//! A *resource* is what two runs could load at once: a host, an access link, a link. It has one or
//! more slots, and each slot is a [`Key`] that one run leases at a time. A run needs one key of
//! each of its resources.
//!
//! As text, on the bus and in reports: `host.<agent>`, `access.<site>.up`, `link.<id>.<slot>`. All
//! of its parts are tokens of a NATS subject.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use narrows_units::BitRate;
use serde::{Deserialize, Serialize};

/// Text that names no agent, site or key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// Not a token.
    #[error("\"{0}\" is no name: 1 to {LONGEST_NAME} of the letters a-z, A-Z, 0-9, \"-\" and \"_\"")]
    Name(String),
    /// Not a key.
    #[error("\"{0}\" is no key; keys are \"host.NAME\", \"access.SITE.up\", \"access.SITE.down\" and \"link.ID.SLOT\"")]
    Key(String),
}

/// A name that fits a subject of the bus as it is: no dot, space or wildcard.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Name(Arc<str>);

/// Longest name, in octets: a key of three parts stays far below the 255 that a bus surely takes.
pub const LONGEST_NAME: usize = 64;

impl Name {
    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for Name {
    type Err = KeyError;

    fn from_str(text: &str) -> Result<Self, KeyError> {
        let fits = |letter: u8| letter.is_ascii_alphanumeric() || letter == b'-' || letter == b'_';
        let good = (1..=LONGEST_NAME).contains(&text.len()) && text.bytes().all(fits);
        good.then(|| Self(text.into())).ok_or_else(|| KeyError::Name(text.to_owned()))
    }
}

impl TryFrom<String> for Name {
    type Error = KeyError;

    fn try_from(text: String) -> Result<Self, KeyError> {
        text.parse()
    }
}

impl From<Name> for String {
    fn from(name: Name) -> Self {
        name.as_str().to_owned()
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

/// Which direction of an access link, as its site sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Access {
    /// Towards the site.
    Down,
    /// From the site.
    Up,
}

/// What two loading runs could disturb each other on.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Resource {
    /// One direction of the link that a site shares.
    Access(Name, Access),
    /// A host, as source or as target.
    Host(Name),
    /// One direction of a link of the topology, by its number; 0 is [`Self::UNTRACED`].
    Link(u64),
}

/// One slot of a resource. Keys are sorted in one way everywhere, and leased in that order: of two
/// runs that want the same keys, one gets the first of them and so all.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Key {
    /// The only slot of an access link.
    Access(Name, Access),
    /// The only slot of a host.
    Host(Name),
    /// A link's number, and the slot.
    Link(u64, u32),
}

impl Resource {
    /// The links of paths that nobody traced. Each may be any link of the fleet: a run over such a
    /// path meets all runs over links, and the other ones over such paths. Those share this key;
    /// from runs over known links only the timetable keeps it apart.
    pub const UNTRACED: Self = Self::Link(0);

    /// Whether it is a link that was traced.
    pub const fn is_traced_link(&self) -> bool {
        matches!(self, Self::Link(1..))
    }

    /// The key of a slot. Hosts and access links have slot 0 alone.
    pub fn key(&self, slot: u32) -> Key {
        match self {
            Self::Access(site, direction) => Key::Access(site.clone(), *direction),
            Self::Host(agent) => Key::Host(agent.clone()),
            Self::Link(link) => Key::Link(*link, slot),
        }
    }
}

/// How many loading runs a link bears at once: `max(1, floor(0.1 C / p))`, where `C` is the lower
/// bound of its capacity and `p` the highest rate of *any* run that crosses it. Ours: together they
/// take a tenth of the link, so that each finds what the others leave unchanged within its error.
///
/// With the rate of one run instead, a fast run on slot 0 would meet slow ones on the other slots.
/// A plan counts the slots of a link once. Runs of a plan that counted others exclude all of them.
pub fn link_slots(capacity_low: Option<BitRate>, peak: BitRate) -> u32 {
    let capacity = capacity_low.unwrap_or(BitRate::ZERO).bps();
    u32::try_from(capacity / 10 / peak.bps().max(1)).unwrap_or(u32::MAX).max(1)
}

/// What is known of the path of a run.
#[derive(Debug, Clone, Copy)]
pub struct Path<'a> {
    /// The agent that sends.
    pub source: &'a Name,
    /// The agent that receives.
    pub target: &'a Name,
    /// The source's site, if its access link counts.
    pub source_site: Option<&'a Name>,
    /// The target's site, if its access link counts.
    pub target_site: Option<&'a Name>,
    /// Links from source to target: those of all routes of the last day.
    pub forward: &'a [u64],
    /// Links from target to source.
    pub reverse: &'a [u64],
    /// The run loads both directions, as TCP does: its acknowledgements queue like data.
    pub both_directions: bool,
}

impl Path<'_> {
    /// What a loading run over this path needs: sorted, each once. Between hosts of one site no
    /// access link is crossed.
    pub fn resources(&self) -> Vec<Resource> {
        let mut all = vec![Resource::Host(self.source.clone()), Resource::Host(self.target.clone())];
        let mut direction = |from: Option<&Name>, to: Option<&Name>, links: &[u64]| {
            if from != to {
                all.extend(from.map(|site| Resource::Access(site.clone(), Access::Up)));
                all.extend(to.map(|site| Resource::Access(site.clone(), Access::Down)));
            }
            all.extend(links.iter().map(|link| Resource::Link(*link)));
        };
        direction(self.source_site, self.target_site, self.forward);
        if self.both_directions {
            direction(self.target_site, self.source_site, self.reverse);
        }
        all.sort();
        all.dedup();
        all
    }
}

impl fmt::Display for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Down => "down",
            Self::Up => "up",
        })
    }
}

impl fmt::Display for Resource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Access(site, direction) => write!(f, "access.{site}.{direction}"),
            Self::Host(agent) => write!(f, "host.{agent}"),
            Self::Link(link) => write!(f, "link.{link}"),
        }
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Access(site, direction) => write!(f, "access.{site}.{direction}"),
            Self::Host(agent) => write!(f, "host.{agent}"),
            Self::Link(link, slot) => write!(f, "link.{link}.{slot}"),
        }
    }
}

impl FromStr for Key {
    type Err = KeyError;

    fn from_str(text: &str) -> Result<Self, KeyError> {
        let parts: Vec<&str> = text.split('.').collect();
        let key = match parts[..] {
            ["host", agent] => Some(Self::Host(agent.parse()?)),
            ["access", site, "up"] => Some(Self::Access(site.parse()?, Access::Up)),
            ["access", site, "down"] => Some(Self::Access(site.parse()?, Access::Down)),
            ["link", link, slot] => link.parse().ok().zip(slot.parse().ok()).map(|(link, slot)| Self::Link(link, slot)),
            _ => None,
        };
        // A number has several spellings; a key has one, or two runs could lease it at once.
        key.filter(|key| key.to_string() == text).ok_or_else(|| KeyError::Key(text.to_owned()))
    }
}

impl TryFrom<String> for Key {
    type Error = KeyError;

    fn try_from(text: String) -> Result<Self, KeyError> {
        text.parse()
    }
}

impl From<Key> for String {
    fn from(key: Key) -> Self {
        key.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> Name {
        text.parse().unwrap()
    }

    #[test]
    fn keys_read_what_they_print_and_nothing_else() {
        for text in ["host.ams-1", "access.ams.up", "access.ams.down", "link.18446744073709551615.4294967295"] {
            assert_eq!(text.parse::<Key>().unwrap().to_string(), text);
        }
        for text in ["", "host", "host.", "host.a.b", "host.*", "host.a b", "access.ams.sideways", "link.1"] {
            assert!(text.parse::<Key>().is_err(), "{text}");
        }
        for other_spelling in ["link.01.0", "link.+1.0", "link.1.00"] {
            assert!(other_spelling.parse::<Key>().is_err(), "{other_spelling}");
        }
        assert!("n".repeat(LONGEST_NAME).parse::<Name>().is_ok());
        assert!("n".repeat(LONGEST_NAME + 1).parse::<Name>().is_err());
    }

    #[test]
    fn slots_take_a_tenth_of_the_link_together() {
        let slots = |capacity| link_slots(Some(BitRate::from_mbps(capacity)), BitRate::from_mbps(100));
        assert_eq!([slots(999), slots(1_000), slots(1_999), slots(2_000), slots(40_000)], [1, 1, 1, 2, 40]);
        assert_eq!(link_slots(None, BitRate::from_mbps(1)), 1);
        assert_eq!(link_slots(Some(BitRate::from_gbps(1)), BitRate::ZERO), 100_000_000);
    }

    #[test]
    fn a_run_needs_its_hosts_accesses_and_links() {
        let (a, b, ams, fra) = (name("a"), name("b"), name("ams"), name("fra"));
        let mut path = Path {
            source: &a,
            target: &b,
            source_site: Some(&ams),
            target_site: Some(&fra),
            forward: &[7, 3, 7],
            reverse: &[4],
            both_directions: false,
        };
        let text = |path: &Path<'_>| path.resources().iter().map(ToString::to_string).collect::<Vec<_>>().join(" ");
        assert_eq!(text(&path), "access.ams.up access.fra.down host.a host.b link.3 link.7");
        path.both_directions = true;
        let both = "access.ams.down access.ams.up access.fra.down access.fra.up host.a host.b link.3 link.4 link.7";
        assert_eq!(text(&path), both);
        path.target_site = Some(&ams);
        assert_eq!(text(&path), "host.a host.b link.3 link.4 link.7");
    }
}
