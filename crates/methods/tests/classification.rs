//! The registry's classes against those of `[Abut18]` tables 2 and 3, for every method that bears
//! the name of a tool classed there (and for `tcp`, which does what iperf does). Methods that do
//! not exist yet are compared as soon as they do.

use std::collections::BTreeSet;

use narrows_methods as methods;
use narrows_probe::Classification;
use narrows_units::Layer;

/// What the tables say of one tool, in the registry's words. Of the protocols the probes' alone:
/// the tables name the control connection's too ("UDP & TCP").
struct Classed {
    tool: &'static str,
    ours: &'static str,
    class: [(&'static str, &'static str); 8],
}

const fn classed(
    tool: &'static str,
    ours: &'static str,
    [scope, methodology, activity, protocol, asymmetric, deployment, layer, privilege]: [&'static str; 8],
) -> Classed {
    Classed {
        tool,
        ours,
        class: [
            ("scope", scope),
            ("methodology", methodology),
            ("activity", activity),
            ("protocol", protocol),
            ("asymmetric", asymmetric),
            ("deployment", deployment),
            ("layer", layer),
            ("privilege", privilege),
        ],
    }
}

const PAIRS: &str = "packet pair and train dispersion";
const SIZES: &str = "variable packet size";
const ROOT: &str = "CAP_NET_RAW";

/// Passive nettimer is left out: its three ways of use are three places of deployment.
const TABLES: [Classed; 7] = [
    classed("pathrate", "pathrate", ["end-to-end", PAIRS, "active", "UDP", "no", "both", "3", ROOT]),
    classed("nettimer (active)", "nettimer", ["end-to-end", PAIRS, "active", "UDP", "no", "sender only", "3", ROOT]),
    classed("pathchar", "pathchar", ["per-hop", SIZES, "active", "UDP", "no", "sender only", "3", ROOT]),
    classed("pchar", "pchar", ["per-hop", SIZES, "active", "UDP", "no", "sender only", "3", ROOT]),
    classed("clink", "clink", ["per-hop", SIZES, "active", "UDP", "no", "sender only", "3", ROOT]),
    classed("pathload", "pathload", ["end-to-end", "probe rate model", "active", "UDP", "no", "both", "3", "none"]),
    classed("iperf", "tcp", ["end-to-end", "bulk transfer", "active", "TCP", "yes", "both", "4", "none"]),
];

/// Where our method is not what the tables say of the tool, and why.
const DEPARTURES: [(&str, &str, &str); 3] = [
    ("pathrate", "asymmetric", "gaps at the receiver speak of one direction; the tool measures one way only"),
    ("pathrate", "privilege", "kernel stamps and UDP sockets need no root"),
    ("pathload", "asymmetric", "trends of delays speak of one direction"),
];

fn ours(class: &Classification) -> [(&'static str, String); 8] {
    let layer = match class.layer {
        Some(Layer::Wire | Layer::Frame) => "2",
        Some(Layer::Ip) => "3",
        Some(_) => "4",
        None => "none",
    };
    let asymmetric = if class.works_on_asymmetric { "yes" } else { "no" };
    [
        ("scope", class.scope.to_string()),
        ("methodology", class.methodology.to_string()),
        ("activity", class.activity.to_string()),
        ("protocol", class.protocol.to_string()),
        ("asymmetric", asymmetric.to_owned()),
        ("deployment", class.deployment.to_string()),
        ("layer", layer.to_owned()),
        ("privilege", class.privilege.to_string()),
    ]
}

/// Every difference is one that we know and give a reason for, and every reason is of a difference
/// that is there.
#[test]
fn classes_are_the_papers_but_for_known_departures() {
    let mut unknown = Vec::new();
    let mut seen = BTreeSet::new();
    let mut compared = 0;
    for tool in &TABLES {
        let Some(method) = methods::find(tool.ours) else {
            continue;
        };
        compared += 1;
        for ((field, theirs), (same, ours)) in tool.class.iter().zip(ours(&method.info().class)) {
            assert_eq!(*field, same);
            let known = DEPARTURES.iter().find(|(name, of, _)| (*name, *of) == (tool.ours, *field));
            if ours == *theirs {
                continue;
            }
            match known {
                Some((name, of, _)) => drop(seen.insert((*name, *of))),
                None => unknown.push(format!("{} ({}): {field} is {ours}, the paper's {theirs}", tool.ours, tool.tool)),
            }
        }
    }
    assert!(unknown.is_empty(), "{unknown:#?}");
    assert!(compared >= 3, "only {compared} methods of the tables' names were found");
    for (name, field, why) in DEPARTURES {
        assert!(
            !why.is_empty() && seen.contains(&(name, field)),
            "{name}: {field} is as in the paper; the departure is stale"
        );
    }
}
