//! `narrows host --record FILE`: what this host does to packets and stamps, for simulated hosts.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use narrows_diagnose::host::Inventory;
use narrows_host_profile::{About, Ends, HostProfile, PacketRow, Quantiles, Recorded, Rows, StallState};
use narrows_net::client::SocketWorld;
use narrows_net::host::{BusyReading, RecordingOptions};
use narrows_probe::probes::{Fate, Train, TrainId, TrainReport};
use narrows_probe::{Event, Probe, World};
use narrows_units::{Direction, format_duration};

use super::HostArgs;
use crate::connect::{self, Peer};
use crate::exit::{Exit, Failure};
use crate::progress::Progress;
use crate::{environment, output};

/// How a recording is asked for.
#[derive(Debug, clap::Args)]
pub(super) struct RecordingArgs {
    /// Record what this host does to packets and stamps (pacing, stamps, batches, wake-ups, calls,
    /// stalls) into this host profile, which simulated hosts can play; with a SERVER, stamps and
    /// batches are those of packets that it sends here
    #[arg(long, value_name = "FILE", conflicts_with_all = ["rate", "fix", "capture"])]
    pub(super) record: Option<PathBuf>,
    /// For how long to record, s
    #[arg(long, value_name = "SECONDS", default_value = "30", requires = "record",
          value_parser = clap::value_parser!(u16).range(1..=3600))]
    record_seconds: u16,
    /// Record both ends on this machine, with a path in software between them
    #[arg(long, requires = "record", conflicts_with = "server")]
    both_ends: bool,
}

/// Less is not worth a file. Windows and the pauses between them are as long, so that a second of
/// recording has half of one in windows.
const LEAST_SECONDS: f64 = 0.25;

pub(super) fn run(args: &HostArgs, file: &Path, stop: &Arc<AtomicBool>, progress: &Progress) -> Result<Exit, Failure> {
    output::check(Some(&file.to_path_buf()))?;
    let name = name_of(file)?;
    let peer = args.peer()?;
    let lasting = Duration::from_secs(args.recording.record_seconds.into());
    // With a server, half of the time is for what only its packets show.
    let here = if peer.is_some() { lasting / 2 } else { lasting };
    let (before, at) = (BusyReading::read(), environment::now());
    let from_server = match &peer {
        Some(peer) => Some(from_server(peer, lasting.saturating_sub(here), stop, progress)?),
        None => None,
    };
    progress.say(format!("this host, for {}", format_duration(here)));
    let options = RecordingOptions { lasting: here, both_ends: args.recording.both_ends };
    let rows = narrows_net::host::record(&options, stop)
        .map_err(|error| Failure::host(format!("cannot record this host: {error}")))?;
    progress.finish();
    let busy_share = before.zip(BusyReading::read()).and_then(|(before, after)| before.share_until(&after));
    let seconds = rows.windows.iter().map(|window| window.to.saturating_sub(window.from)).sum::<i64>() as f64 / 1e9;
    if seconds < LEAST_SECONDS {
        return Err(Failure::host(format!(
            "stopped after {seconds:.1} s of recording: too little, nothing was written"
        )));
    }
    let interface = args.interface(None)?;
    let machine = machine(&narrows_net::host::inventory(interface.clone()));
    let over = peer.as_ref().map_or_else(|| "loopback".to_owned(), |peer| format!("loopback, and from {}", peer.name));
    let seconds = (seconds * 10.0).round() / 10.0;
    let about = About {
        name,
        about: about(options.both_ends, busy_share, rows.clock_steps),
        recorded: Recorded { at, seconds, over, machine, busy_share },
        virtual_interface: options.both_ends || interface.as_ref().is_none_or(|interface| interface.is_virtual),
    };
    let profile = profile(&rows, from_server.as_ref(), about)?;
    output::write(&profile.to_toml(), Some(file))?;
    let text = if args.json {
        serde_json::to_string(&profile).map_err(|error| Failure::host(error.to_string()))? + "\n"
    } else {
        text(&profile, file)
    };
    output::write(&text, args.output.as_deref())?;
    Ok(Exit::Valid)
}

fn profile(here: &Rows, from_server: Option<&Rows>, about: About) -> Result<HostProfile, Failure> {
    let made = HostProfile::of_rows(here, about).and_then(|profile| match from_server {
        Some(rows) => profile.with_stamps_of(rows),
        None => Ok(profile),
    });
    made.map_err(|error| Failure::host(format!("no profile came of the recording: {error}")))
}

/// The file's stem names the profile.
fn name_of(file: &Path) -> Result<String, Failure> {
    let stem = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let is_name = !stem.is_empty() && stem.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c));
    let why = "the file's name names the profile: letters, digits, '-', '_' and '.'";
    is_name.then_some(stem).ok_or_else(|| Failure::usage(format!("--record {}: {why}", file.display())))
}

fn machine(inventory: &Inventory) -> String {
    let processor = &inventory.processor;
    let virtually = if inventory.machine.hypervisor == Some(true) { ", virtual" } else { "" };
    format!(
        "Linux {}, {} processors ({}){virtually}",
        inventory.kernel.as_deref().unwrap_or("of unknown version"),
        processor.online.map_or_else(|| "unknown number of".to_owned(), |count| count.to_string()),
        processor.model.as_deref().unwrap_or("model unknown"),
    )
}

fn about(both_ends: bool, busy_share: Option<f64>, clock_steps: usize) -> String {
    let mut about = if both_ends { "both ends and the path on one machine" } else { "one host" }.to_owned();
    if let Some(share) = busy_share {
        let _ = write!(about, ", while other programs took {:.0} % of the processors", share * 100.0);
    }
    if clock_steps > 0 {
        let _ = write!(about, "; the wall clock was stepped {clock_steps} times, and packets near a step are left out");
    }
    about
}

/// Packets that the server sends here, as stamps of this host see them: each train's fastest packet
/// tells when the others arrived.
fn from_server(peer: &Peer, lasting: Duration, stop: &Arc<AtomicBool>, progress: &Progress) -> Result<Rows, Failure> {
    /// Small packets: a queue on the path would look like this host's delay.
    const IP_OCTETS: u16 = 200;
    /// A rest, as between the trains on loopback.
    const REST: Duration = Duration::from_millis(10);
    progress.say(format!("packets from {}", peer.name));
    let mut world = peer.connect(Direction::Reverse, stop, progress)?;
    let mut rows = Rows::default();
    let began = world.now();
    for id in 0.. {
        let spent = (world.now() - began).nanos();
        if stop.load(Ordering::Relaxed) || spent >= i64::try_from(lasting.as_nanos()).unwrap_or(i64::MAX) {
            break;
        }
        let (count, gap) = Rows::train(0);
        let gap = Duration::from_nanos(gap.unsigned_abs());
        let train = Train::uniform(TrainId(id + 1), count, IP_OCTETS, gap);
        let event = world.send(Probe::Train(train)).map_err(|error| connect::failure(&error))?;
        let Event::Train(report) = event else { break };
        rows.packets.extend(arrivals(&report));
        wait(&mut world, REST)?;
    }
    if rows.packets.is_empty() {
        return Err(Failure::host(format!(
            "{} sent no packet that arrived, or refuses to; record without it",
            peer.name
        )));
    }
    Ok(rows)
}

fn wait(world: &mut SocketWorld, time: Duration) -> Result<(), Failure> {
    let until = world.now() + time;
    world.wait(until).map_err(|error| connect::failure(&error))
}

/// The train's rows by this host's clock.
fn arrivals(report: &TrainReport) -> Vec<PacketRow> {
    let stamps = || {
        report.arrivals.iter().filter_map(|row| match row.fate {
            Fate::Received(at) => Some((row.departed.nanos(), at.nanos())),
            Fate::Echoed { .. } | Fate::Answered(_) | Fate::Lost => None,
        })
    };
    let least = stamps().map(|(departed, seen)| seen.saturating_sub(departed)).min().unwrap_or(0);
    stamps()
        .map(|(departed, seen_ns)| {
            let arrived_ns = departed.saturating_add(least);
            PacketRow {
                planned_ns: None,
                stamped_ns: arrived_ns,
                left_ns: arrived_ns,
                returned_ns: arrived_ns,
                arrived_ns,
                seen_ns,
                read_ns: seen_ns,
            }
        })
        .collect()
}

fn text(profile: &HostProfile, file: &Path) -> String {
    let mut text = format!("host profile {}: {}\n{}\n", profile.name, profile.about, profile.recorded.machine);
    let _ = writeln!(text, "{:<26} {:>9} {:>12} {:>12} {:>12}  what", "key", "values", "median", "99 %", "most");
    for (key, quantiles, what) in profile.parts() {
        let _ = writeln!(text, "{key:<26} {}  {what}", row(quantiles, key.ends_with("_ns")));
    }
    let stalls = &profile.stalls;
    let share = stalls.share(StallState::stops_sender) * 100.0;
    let _ = match (profile.ends, stalls.states.is_empty()) {
        (_, true) => writeln!(text, "stalls over {}: none", time(stalls.threshold_ns)),
        (Ends::One, _) => writeln!(text, "stalls over {}: {share:.2} % of the time", time(stalls.threshold_ns)),
        (Ends::Both, _) => {
            let receiver = stalls.share(StallState::stops_receiver) * 100.0;
            let both = stalls.share(|state| state == StallState::Both) * 100.0;
            let over = time(stalls.threshold_ns);
            writeln!(
                text,
                "stalls over {over}: sender {share:.2} %, receiver {receiver:.2} %, both {both:.2} % of the time"
            )
        }
    };
    for (state, sojourn) in &stalls.states {
        let _ = writeln!(text, "  {:<24} {}", state.key(), row(&sojourn.lasting_ns, true));
    }
    let _ = writeln!(text, "written to {}; play it: narrows simulate SCENARIO --hosts {0} …", file.display());
    text
}

fn row(quantiles: &Quantiles, is_time: bool) -> String {
    let [median, high, most] = [0.5, 0.99, 1.0].map(|share| {
        let value = quantiles.value(share);
        if is_time { time(value) } else { value.to_string() }
    });
    format!("{:>9} {median:>12} {high:>12} {most:>12}", quantiles.count)
}

fn time(ns: i64) -> String {
    format_duration(Duration::from_nanos(ns.unsigned_abs()))
}

#[cfg(test)]
mod tests {
    use narrows_probe::StampSource;
    use narrows_probe::probes::{Arrival, PacingCheck};
    use narrows_units::Stamp;

    use super::*;

    #[test]
    fn files_name_profiles() {
        assert_eq!(name_of(Path::new("hosts/busy-2.toml")).ok().as_deref(), Some("busy-2"));
        for wrong in ["", "/", "a b.toml", "é.toml"] {
            assert!(name_of(Path::new(wrong)).is_err(), "{wrong:?}");
        }
    }

    /// The fastest of a train took 100; the others arrived as long after their departures, whatever
    /// the two clocks say.
    #[test]
    fn the_fastest_packet_tells_when_others_came() {
        let arrival = |seq: u32, departed: i64, seen: Option<i64>| Arrival {
            seq,
            departed: Stamp::from_nanos(departed),
            ip_octets: 200,
            fate: seen.map_or(Fate::Lost, |at| Fate::Received(Stamp::from_nanos(at))),
        };
        let report = TrainReport {
            id: TrainId(1),
            arrivals: vec![arrival(0, 1000, Some(1130)), arrival(1, 1050, Some(1150)), arrival(2, 1100, None)],
            reordered: 0,
            duplicates: 0,
            local_drops: 0,
            departed_by: StampSource::Kernel,
            arrived_by: StampSource::Kernel,
            pacing: PacingCheck::Kept,
        };
        let rows: Vec<(i64, i64)> = arrivals(&report).iter().map(|row| (row.arrived_ns, row.seen_ns)).collect();
        assert_eq!(rows, [(1100, 1130), (1150, 1150)]);
    }
}
