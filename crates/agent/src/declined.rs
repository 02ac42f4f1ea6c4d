//! What the owner of a host does not allow is left out of a plan; the rest is carried out.
//!
//! The hub knows no owner's limits, and one plan asks for many things. Refused as a whole for one
//! peer, it would leave its agent with an old plan, or with none.

use std::collections::BTreeSet;

use narrows_fleet::keys::Name;
use narrows_fleet::message::Plan;

use crate::command::{checked, is_known};
use crate::limits::Limits;

/// A plan as its agent goes by it.
#[derive(Debug, Clone, PartialEq)]
pub struct Accepted {
    /// The plan, without what the owner of the host does not allow.
    pub plan: Plan,
    /// What was left out, in words.
    pub declined: Vec<String>,
}

/// Leaves out what the owner does not allow: targets, kinds, rates, and loading runs beyond a day's
/// octets.
pub(crate) fn allowed(mut plan: Plan, limits: &Limits) -> Accepted {
    let mut declined: Vec<String> = drop_commands(&mut plan, limits).into_iter().collect();
    declined.extend(drop_targets(&mut plan, limits));
    declined.extend(drop_costly(&mut plan, limits));
    Accepted { plan, declined }
}

/// Runs of a kind that this version does not know are left to the work, which says so in a result.
fn drop_commands(plan: &mut Plan, limits: &Limits) -> BTreeSet<String> {
    let mut reasons = BTreeSet::new();
    let mut may = |words: &[String]| match checked(words, limits) {
        Err(why) if is_known(words) => {
            reasons.insert(why);
            false
        }
        _ => true,
    };
    plan.mesh.retain(|words| may(words));
    plan.directed.retain(|run| may(&run.command));
    plan.runs.retain(|run| may(&run.command));
    reasons
}

fn drop_targets(plan: &mut Plan, limits: &Limits) -> Option<String> {
    let own = plan.agent.clone();
    let may = |name: &Name| *name == own || limits.target(name);
    let named = plan.directed.iter().map(|run| &run.target).chain(plan.runs.iter().map(|run| &run.target));
    let named = plan.peers.iter().map(|peer| &peer.name).chain(named);
    let refused: BTreeSet<Name> = named.filter(|name| !may(name)).cloned().collect();
    if refused.is_empty() {
        return None;
    }
    // Places in the mesh follow from the order of all peers. Without some, each says its own.
    if plan.mesh_hosts.is_none() {
        plan.mesh_hosts = Some(plan.hosts());
        for (place, peer) in (0..).zip(&mut plan.peers) {
            peer.place = Some(place);
        }
    }
    plan.peers.retain(|peer| may(&peer.name));
    plan.directed.retain(|run| may(&run.target));
    plan.runs.retain(|run| may(&run.target));
    let shown: Vec<&str> = refused.iter().take(SHOWN).map(Name::as_str).collect();
    let more = refused.len() - shown.len();
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    Some(format!("the owner of this host allows no runs towards {}{more}", shown.join(", ")))
}

/// Loading runs stay in the order of their times as long as a day has octets for them.
fn drop_costly(plan: &mut Plan, limits: &Limits) -> Option<String> {
    let most = u128::from(limits.octets_per_day?.count());
    let length_ms = u128::from(plan.length_ms.max(1));
    plan.runs.sort_by_key(|run| (run.at_ms, run.id));
    let (mut octets, mut dropped) = (0_u128, 0_u32);
    plan.runs.retain(|run| {
        let with_it = octets + u128::from(run.octets);
        let fits = with_it * DAY_MS / length_ms <= most;
        if fits {
            octets = with_it;
        } else {
            dropped += 1;
        }
        fits
    });
    let text = || format!("{dropped} loading runs are more than the octets that the owner of this host allows a day");
    (dropped > 0).then(text)
}

/// Names of targets in one sentence.
const SHOWN: usize = 5;
const DAY_MS: u128 = 86_400_000;
