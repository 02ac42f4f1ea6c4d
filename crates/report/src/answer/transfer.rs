//! The answer of a transfer: what it carried, what that did to the round trip, what limited it.

use std::time::Duration;

use narrows_units::{Direction, Layer, format_duration};

use super::figures::rate;
use super::rules::{Rule, Said, of_direction};
use crate::answer_line::{AnswerLine, Topic};

/// What a transfer came to, one direction of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Transfer {
    /// Which way the data went.
    pub direction: Direction,
    /// Payload that arrived, bit/s; zero: none did.
    pub rate_bps: u64,
    /// Whose payload.
    pub layer: Layer,
    /// Over this time.
    pub time: Duration,
    /// Datagrams lost, of those sent; `None` where none are counted.
    pub lost: Option<(u64, u64)>,
    /// The round trip without load and under it; `None` where it was not measured.
    pub delay: Option<LoadedDelay>,
    /// What limited it, by its machine name; `None`: this side cannot tell.
    pub limited_by: Option<&'static str>,
}

/// A round trip without load and under it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LoadedDelay {
    /// The shortest.
    pub idle: Duration,
    /// The median under load.
    pub median: Duration,
    /// The 95th percentile under load.
    pub p95: Duration,
    /// How public speed tests grade the mean increase.
    pub grade: &'static str,
}

impl Transfer {
    /// The lines of this direction.
    pub fn answer(&self) -> Vec<AnswerLine> {
        let said =
            [(Topic::Carried, Some(self.carried())), (Topic::Delay, self.delayed()), (Topic::Limit, self.limit())];
        of_direction(self.direction, said)
    }

    fn carried(&self) -> Rule {
        if self.rate_bps == 0 {
            return ("t2", "nothing: no payload arrived".to_owned());
        }
        let layer = match self.layer {
            Layer::TcpPayload => "TCP payload",
            Layer::UdpPayload => "UDP payload",
            Layer::Wire | Layer::Frame | Layer::Ip => "payload",
        };
        let lost = match self.lost {
            Some((lost, sent)) if lost > 0 => {
                format!("; {:.2} % of the packets lost", 100.0 * lost as f64 / sent.max(1) as f64)
            }
            _ => String::new(),
        };
        ("t1", format!("{} {layer} over {}{lost}", rate(self.rate_bps), short(self.time)))
    }

    fn delayed(&self) -> Said {
        let delay = self.delay?;
        Some(("r1", format!("{} idle, {} loaded, grade {}", short(delay.idle), short(delay.p95), delay.grade)))
    }

    fn limit(&self) -> Said {
        let factor = self.limited_by.filter(|_| self.rate_bps > 0)?;
        let said = match (factor, self.delay) {
            ("queue", Some(delay)) => format!("full queues, +{}", short(delay.median.saturating_sub(delay.idle))),
            ("queue", None) => "full queues".to_owned(),
            (factor, _) => in_words(factor).to_owned(),
        };
        Some(("l4", said))
    }
}

/// What a machine name means.
fn in_words(factor: &str) -> &str {
    match factor {
        "application" => "the program that sends, not the path",
        "sending host" => "the processor of the host that sends, not the path",
        "receiving host" => "the processor of the host that receives, not the path",
        "interface" => "the interface of the host that sends",
        "peer window" => "the receive window",
        "send buffer" => "the send buffer",
        "pacing" => "the rate that was asked for",
        "shaper" => "a token bucket that delays the excess",
        "policer" => "a token bucket that drops the excess",
        "window still growing" => "the test was too short",
        other => other,
    }
}

/// Three digits, in ASCII.
fn short(time: Duration) -> String {
    let ns = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
    format_duration(Duration::from_nanos(super::rounded(ns, 3))).replace('µ', "u")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn transfer() -> Transfer {
        let ms = Duration::from_micros;
        Transfer {
            direction: Direction::Forward,
            rate_bps: 62_412_345,
            layer: Layer::TcpPayload,
            time: Duration::from_secs(10),
            lost: None,
            delay: Some(LoadedDelay { idle: ms(10_123), median: ms(38_100), p95: ms(41_200), grade: "B" }),
            limited_by: Some("queue"),
        }
    }

    fn answer(transfer: &Transfer) -> String {
        let lines = transfer.answer();
        let rules: Vec<&str> = lines.iter().map(|line| line.rule).collect();
        format!("{}{}\n", crate::answer_text(&lines), rules.join(" "))
    }

    #[test]
    fn a_tcp_transfer_with_a_queue() {
        insta::assert_snapshot!(answer(&transfer()), @r"
        Carried   62.4 Mbit/s TCP payload over 10 s
        Delay     10.1 ms idle, 41.2 ms loaded, grade B
        Limit     full queues, +28 ms
        t1 r1 l4
        ");
    }

    #[test]
    fn datagrams_and_nothing_at_all() {
        let udp = Transfer {
            layer: Layer::UdpPayload,
            lost: Some((12, 1_000)),
            delay: None,
            limited_by: Some("random loss"),
            ..transfer()
        };
        insta::assert_snapshot!(answer(&udp), @r"
        Carried   62.4 Mbit/s UDP payload over 10 s; 1.20 % of the packets lost
        Limit     random loss
        t1 l4
        ");
        let nothing = Transfer { rate_bps: 0, delay: None, ..transfer() };
        insta::assert_snapshot!(answer(&nothing), @r"
        Carried   nothing: no payload arrived
        t2
        ");
    }
}
