//! `--check`: what would be followed, how often, and what a day would cost.

use std::time::Duration;

use narrows_units::{Octets, format_duration};
use narrows_watch::BootTime;
use narrows_watch::schedule::{Forecast, NightTest, Planner, TargetId};

use super::clocks;
use super::engine::LOADING_JOBS;
use super::settings::{Settings, Target};

/// Each target with its forecast, as if its capacity were the first one assumed; then all together.
pub(super) fn text(settings: &Settings) -> String {
    let mut planner = Planner::new(clocks::local_zone(), 0, LOADING_JOBS);
    let (mut parts, mut all, mut limits) = (Vec::new(), 0, 0);
    for (target, number) in settings.targets.iter().zip(1..) {
        let id = TargetId::new(number);
        planner.set_target(id, target.budget.clone(), BootTime::default());
    }
    for (target, number) in settings.targets.iter().zip(1..) {
        let Some(forecast) = planner.forecast(TargetId::new(number)) else { continue };
        all += forecast.total().count();
        limits += forecast.limit.count();
        parts.push(of_target(target, &forecast));
    }
    for rule in &settings.rules {
        let who = if rule.notify.is_empty() { "nobody; it is on the pages".to_owned() } else { rule.notify.join(", ") };
        parts.push(format!("alert {}: tells {who}\n", rule.name));
    }
    if let Some(size) = settings.max_size {
        parts.push(format!("store: at most {size}; then the oldest round trips go first\n"));
    }
    parts.push(format!(
        "targets: {}; all send {} a day as forecast, never more than {}\n",
        settings.targets.len(),
        Octets::new(all),
        Octets::new(limits)
    ));
    parts.concat()
}

fn of_target(target: &Target, forecast: &Forecast) -> String {
    let budget = &target.budget;
    let host = if target.name == target.host { String::new() } else { format!("{}, ", target.host) };
    let night = match budget.test {
        NightTest::Full => "the whole test at night if it fits, else capacity and hops",
        NightTest::Light => "capacity and hops at night",
        NightTest::Off => "nothing more at night",
    };
    let quiet = if budget.quiet.is_empty() { "" } else { "; in quiet hours pulses and routes alone" };
    format!(
        "{name} ({host}port {port} of narrows serve)\n\
         \x20 budget    {share} % of the path over a minute, {limit} a day\n\
         \x20 capacity  {capacity} assumed until it is measured\n\
         \x20 measures  a pulse every second, the route every 5 min, a slice every {cadence}; {night}{quiet}\n\
         \x20 forecast  {total} a day: pulses and routes {base}, slices {slices}, night {nights}\n\
         \x20 besides   at most {evidence} a day for incidents and for runs that people ask for\n",
        name = target.name,
        port = target.port.unwrap_or(narrows_wire::DEFAULT_PORT),
        share = budget.share * 100.0,
        limit = forecast.limit,
        capacity = budget.first_capacity,
        cadence = spoken(forecast.cadence_time),
        total = forecast.total(),
        base = forecast.base,
        slices = forecast.cadence,
        nights = forecast.night,
        evidence = forecast.evidence_at_most,
    )
}

fn spoken(time: Duration) -> String {
    let minutes = time.as_secs().div_ceil(60);
    if minutes >= 2 { format!("{minutes} min") } else { format_duration(time) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::watch::settings;

    #[test]
    fn a_check_says_what_a_day_costs() {
        let mut settings = settings::read(None, &["far.example".to_owned(), "192.0.2.1".to_owned()]).unwrap();
        settings.targets[1].name = "office".to_owned();
        settings.targets[1].budget.first_capacity = narrows_units::BitRate::from_gbps(10);
        let expected = "\
far.example (port 8620 of narrows serve)
  budget    1 % of the path over a minute, 2 GB a day
  capacity  100 Mbit/s assumed until it is measured
  measures  a pulse every second, the route every 5 min, a slice every 2 min; the whole test at night if it fits, else \
capacity and hops
  forecast  1.216 GB a day: pulses and routes 13.1 MB, slices 1.133 GB, night 70 MB
  besides   at most 496.7 MB a day for incidents and for runs that people ask for
office (192.0.2.1, port 8620 of narrows serve)
";
        let text = text(&settings);
        assert!(text.starts_with(expected), "{text}");
        assert!(text.contains("a slice every 6 min"), "{text}");
        assert!(text.ends_with("never more than 4 GB\n") && !text.contains("store:"), "{text}");
        settings.max_size = Some(Octets::new(2_000_000_000));
        assert!(super::text(&settings).contains("\nstore: at most 2 GB; "));
    }
}
