//! Trains that are there already.

use super::answer;
use super::params::{Params, Preset};
use super::sample::Phase;
use super::session::MethodRun;
use narrows_probe::contract::{Event, Refusal};
use narrows_probe::observations::{AnalyseError, Observations};
use narrows_probe::outcome::{Outcome, Reason};
use narrows_probe::probes::{PeerKind, Probe, Train, TrainReport};

/// The samples of all trains, concluded together. A run's own trains tell by their names what they
/// were sent for; of other methods' trains those that were sent back to back, the first packet not
/// counted, serve as preliminary ones.
pub(crate) fn analyse(observations: &Observations, params: Params) -> Result<Outcome, AnalyseError> {
    let whole = params.preset == Preset::Faithful;
    let own = observations.rows.iter().any(|row| match &row.asked {
        Probe::Train(train) => Phase::of(train.id).is_some_and(|phase| phase != Phase::Lengths),
        _ => false,
    });
    let mut session = MethodRun::new(observations.facts.clone(), params);
    let mut stopped = observations.stopped.clone();
    let mut used = 0;
    for row in &observations.rows {
        let Probe::Train(train) = &row.asked else { continue };
        if train.peer_kind != PeerKind::Receiver || !(own || serves(train)) {
            continue;
        }
        match &row.reported {
            Event::Train(report) if own => match lengths(train).as_slice() {
                several @ [_, _, ..] => drop(session.take_several(report, several)),
                _ => drop(session.take(report, whole)),
            },
            Event::Train(report) => {
                let report = TrainReport { id: Phase::Preliminary.train_id(used), ..report.clone() };
                let _ = session.take(&report, whole);
            }
            // As in the state machine: a smaller full size is another session.
            Event::Refused(Refusal::TooLarge { max_ip_octets })
                if *max_ip_octets < session.facts.path_mtu && *max_ip_octets > 0 =>
            {
                let mut facts = session.facts.clone();
                facts.path_mtu = *max_ip_octets;
                session = MethodRun::new(facts, session.params);
            }
            Event::Refused(refusal) if own => stopped = Some(super::refusal_reason(*refusal)),
            _ => {}
        }
        used += 1;
    }
    if used == 0 && stopped.is_none() {
        return Err(observations.nothing(
            if whole { "pathrate" } else { "capacity" },
            "back-to-back trains of 3 packets or more to the receiver",
        ));
    }
    let stopped: Option<Reason> = stopped;
    Ok(answer::conclude(&session, stopped.as_ref()))
}

/// Lengths of the trains that went along with one another.
fn lengths(train: &Train) -> Vec<usize> {
    if !matches!(Phase::of(train.id), Some(Phase::Pairs | Phase::Preliminary)) {
        return Vec::new();
    }
    let later = (1..train.packets.len()).filter(|at| !train.packets[*at].gap.is_zero());
    let begins: Vec<usize> = std::iter::once(0).chain(later).chain([train.packets.len()]).collect();
    begins.windows(2).map(|two| two[1] - two[0]).collect()
}

fn serves(train: &Train) -> bool {
    let uniform = train.packets.windows(2).all(|two| two[0].ip_octets == two[1].ip_octets);
    uniform && train.packets.len() >= 3 && train.duration().is_zero()
}
