//! What the kernels of a lab are told about themselves.

use std::fs;
use std::path::Path;

use narrows_scenario::Router;

use super::kind::NodeKind;
use crate::error::LabError;
use crate::node::Node;

/// A setting: its place under `/proc/sys`, and its value.
pub(crate) type Setting = (String, String);

/// Linux counts this many answers at once per destination where `icmp_ratelimit` spaces them
/// (`XRLIM_BURST_FACTOR` of `net/ipv4/route.c`).
const PEER_BURST: u32 = 6;
/// Longest spacing of answers; none will ever be sent.
const NEVER_MS: u32 = 2_000_000_000;
/// More answers per second than any kernel sends.
const UNLIMITED: u32 = 1_000_000_000;

/// Settings for a node, to be made before it has devices: those take over what stands under
/// `default`.
pub(crate) fn settings(kind: NodeKind, router: Option<&Router>, ipv6: bool) -> Vec<Setting> {
    let mut settings = Vec::new();
    let mut set = |place: &str, value: u32| settings.push((format!("net/{place}"), value.to_string()));
    if ipv6 {
        for scope in ["all", "default"] {
            let mut conf = |name: &str, value| set(&format!("ipv6/conf/{scope}/{name}"), value);
            if kind == NodeKind::Switch {
                conf("disable_ipv6", 1);
                continue;
            }
            // Neighbours and routes are given, so nothing has to be discovered, announced or asked
            // for.
            conf("accept_dad", 0);
            conf("dad_transmits", 0);
            conf("accept_ra", 0);
            conf("autoconf", 0);
            conf("router_solicitations", 0);
            conf("accept_redirects", 0);
            // No link-local addresses, and so no multicast groups for them.
            conf("addr_gen_mode", 1);
            // Groups are joined all the same and reported, which no setting forbids: at once, then,
            // and not in the first seconds.
            conf("mldv1_unsolicited_report_interval", 1);
            conf("mldv2_unsolicited_report_interval", 1);
            conf("forwarding", 1);
        }
    }
    if kind == NodeKind::Switch {
        return settings;
    }
    for scope in ["all", "default"] {
        let mut conf = |name: &str, value| set(&format!("ipv4/conf/{scope}/{name}"), value);
        conf("rp_filter", 0);
        conf("accept_redirects", 0);
        conf("send_redirects", 0);
    }
    set("ipv4/ip_forward", 1);
    let limit = Limit::of(router);
    set("ipv4/icmp_ratelimit", limit.spacing_ms);
    set("ipv4/icmp_msgs_per_sec", limit.per_second);
    set("ipv4/icmp_msgs_burst", limit.burst);
    if ipv6 {
        set("ipv6/icmp/ratelimit", limit.spacing_ms);
    }
    settings
}

/// How a kernel limits its ICMP errors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Limit {
    /// Per destination, milliseconds between two; zero for no limit.
    spacing_ms: u32,
    /// For all destinations together.
    per_second: u32,
    burst: u32,
}

impl Limit {
    /// Of hosts (`None`) and routers. Linux has two limits: per destination, with a burst of 6, in
    /// whole milliseconds; and for all destinations, in whole credits per second, with any burst,
    /// of which an answer takes 0, 1 or 2 at random (`icmp_global_allow`).
    fn of(router: Option<&Router>) -> Self {
        let none = Self { spacing_ms: 0, per_second: UNLIMITED, burst: UNLIMITED };
        match router {
            Some(router) if !router.answers => Self { spacing_ms: NEVER_MS, per_second: 0, burst: 0 },
            Some(Router { icmp_limit: Some((rate, burst)), .. }) => {
                if *burst == PEER_BURST || *rate < 1.0 {
                    Self { spacing_ms: whole(1_000.0 / rate), ..none }
                } else {
                    Self { per_second: whole(*rate), burst: *burst, ..none }
                }
            }
            Some(_) | None => none,
        }
    }
}

/// How the limit that a kernel keeps departs from the one that the scenario asks for, in words;
/// `None` if it does not.
pub(crate) fn departure(router: &Router) -> Option<String> {
    let (rate, burst) = router.icmp_limit.filter(|_| router.answers)?;
    if burst == PEER_BURST || rate < 1.0 {
        let kept = 1_000.0 / f64::from(whole(1_000.0 / rate));
        let burst =
            if burst == PEER_BURST { String::new() } else { format!(", {PEER_BURST} at once instead of {burst}") };
        let same = (kept / rate - 1.0).abs() < 1e-9 && burst.is_empty();
        (!same).then(|| format!("ICMP answers: {kept:.3} per second and destination instead of {rate}{burst}"))
    } else {
        Some(format!(
            "ICMP answers: Linux's global limit of {} credits per second, {burst} at once, of which each answer takes 0, 1 or 2 at random",
            whole(rate)
        ))
    }
}

fn whole(value: f64) -> u32 {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "limited to the range of the type on the same line"
    )]
    let whole = value.round().clamp(1.0, f64::from(NEVER_MS)) as u32;
    whole
}

/// Makes the settings in a node. Those that this kernel does not have are left out where the older
/// behaviour is the one wanted.
pub(crate) fn apply(node: &Node, settings: &[Setting]) -> Result<(), LabError> {
    node.run(|| {
        for (place, value) in settings {
            let path = Path::new("/proc/sys").join(place);
            if !path.exists() {
                tracing::debug!(place, "this kernel has no such setting");
                continue;
            }
            fs::write(&path, value)
                .map_err(|source| LabError::kernel(format!("writing {value} to {}", path.display()), source))?;
        }
        Ok(())
    })?
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value<'a>(settings: &'a [Setting], place: &str) -> Option<&'a str> {
        let found = settings.iter().filter(|(name, _)| name == place);
        found.map(|(_, value)| value.as_str()).next_back()
    }

    fn limited(rate: f64, burst: u32) -> Router {
        Router { icmp_limit: Some((rate, burst)), ..Router::default() }
    }

    #[test]
    fn limits_of_routers() {
        let of = |router: &Router| {
            let settings = settings(NodeKind::Router, Some(router), true);
            let get = |place| value(&settings, place).unwrap().parse::<u32>().unwrap();
            assert_eq!(get("net/ipv6/icmp/ratelimit"), get("net/ipv4/icmp_ratelimit"));
            [get("net/ipv4/icmp_ratelimit"), get("net/ipv4/icmp_msgs_per_sec"), get("net/ipv4/icmp_msgs_burst")]
        };
        assert_eq!(of(&Router::default()), [0, UNLIMITED, UNLIMITED]);
        assert_eq!(of(&limited(1.0, 6)), [1_000, UNLIMITED, UNLIMITED]);
        assert_eq!(of(&limited(0.5, 1)), [2_000, UNLIMITED, UNLIMITED]);
        assert_eq!(of(&limited(50.0, 10)), [0, 50, 10]);
        let silent = Router { answers: false, ..limited(50.0, 10) };
        assert_eq!(of(&silent), [NEVER_MS, 0, 0]);
    }

    #[test]
    fn departures_are_said() {
        assert_eq!(departure(&Router::default()), None);
        assert_eq!(departure(&limited(1.0, 6)), None);
        assert_eq!(departure(&limited(0.5, 6)), None);
        let third = departure(&limited(3.0, 6)).unwrap();
        assert_eq!(third, "ICMP answers: 3.003 per second and destination instead of 3");
        assert!(departure(&limited(0.5, 2)).unwrap().ends_with("6 at once instead of 2"));
        assert!(departure(&limited(50.0, 10)).unwrap().contains("50 credits per second, 10 at once"));
    }

    #[test]
    fn switches_are_deaf_and_routers_forward() {
        let switch = settings(NodeKind::Switch, None, true);
        assert_eq!(value(&switch, "net/ipv6/conf/default/disable_ipv6"), Some("1"));
        assert_eq!(value(&switch, "net/ipv4/ip_forward"), None);
        let router = settings(NodeKind::Router, Some(&Router::default()), false);
        assert_eq!(value(&router, "net/ipv4/ip_forward"), Some("1"));
        assert_eq!(value(&router, "net/ipv4/conf/all/rp_filter"), Some("0"));
        assert!(router.iter().all(|(place, _)| !place.contains("ipv6")));
    }
}
