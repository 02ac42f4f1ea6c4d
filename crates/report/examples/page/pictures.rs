//! Invented observations, drawn.

use narrows_report::World;
use narrows_report::page::{Figure, Pictures, Reproduction};
use narrows_report::picture::{
    Convergence, DelayGroup, DelayTrend, DelayedPacket, DispersionHistogram, ErrorAgainstUtilisation, HopRegression,
    LossAgainstBurst, Mode, Picture, Point, Quantity, Response, ResponseCurve, Series, SizeFit, SizeRegression,
    SizedRoundTrip, Timeline, TransferOverTime, Trend, TrendTest,
};

use crate::{CAPACITY, LOADS, Noise, PAPER, character, scenario};

pub(crate) fn pictures() -> Pictures {
    let of_plan = [
        (error_against_utilisation(), "Hollow: as printed, relative to the paper’s truth."),
        (timeline(), "A tight link whose load changes every 40 s, polled by two methods."),
        (loss(), "Loss starts where the burst no longer fits the queue."),
        (regression(), "Slopes rise hop by hop; what a slope adds is the hop's serialisation time per octet."),
    ];
    let of_scenario = [
        (response(Response::Rates), "Trains at rates from 5 to 100 Mbit/s."),
        (response(Response::RateRatio), "The same trains as a ratio."),
        (gaps(), "Pairs, by gap."),
        (histogram(), "600 packet pairs; post-narrow-link traffic squeezes some of them."),
        (trend(), "One stream above what is available."),
        (transfer(), "One TCP connection; the quick mode stops once its rate has settled."),
        (convergence(), "The interval after each fleet of streams."),
    ];
    let figure = |scenario: Option<String>| {
        move |(picture, caption): (Picture, &str)| Figure {
            scenario: scenario.clone(),
            caption: caption.to_owned(),
            picture,
        }
    };
    let mut figures: Vec<Figure> = of_plan.into_iter().map(figure(None)).collect();
    figures.extend(of_scenario.clone().into_iter().map(figure(None)));
    figures.extend(of_scenario.into_iter().map(figure(Some(scenario(30.0)))));
    Pictures {
        figures,
        reproduction: Reproduction {
            command: "narrows evaluate plans/seed001-table10.toml --html table10.html".to_owned(),
            seed: Some(1),
            program: "narrows 0.1.0".to_owned(),
            machine: vec!["Linux 6.12, 2 CPUs, timestamps by the kernel".to_owned(), "iperf3 3.12".to_owned()],
        },
    }
}

fn error_against_utilisation() -> Picture {
    let mut noise = Noise(3);
    let mut series: Vec<Series> = ["pathload", "fac2", "slops-quick", "iperf3-tcp"]
        .into_iter()
        .map(|method| {
            let points = LOADS.into_iter().map(|load| {
                let (bias, spread, ..) = character(method, World::Lab, load);
                let middle = bias + spread * 0.2 * noise.next();
                Point::between(load * 1e6 / CAPACITY, middle, bias - spread * 1.3, bias + spread * 1.3)
            });
            Series::new(method, points.collect())
        })
        .collect();
    let printed = LOADS.into_iter().zip(PAPER).map(|(load, value)| {
        let truth = 97.52 - load;
        Point::new(load * 1e6 / CAPACITY, (value - truth) / truth)
    });
    series.push(Series::published("pathload, [Abut18]", Some("pathload"), printed.collect()));
    Picture::ErrorAgainstUtilisation(ErrorAgainstUtilisation {
        title: "Error against load: available IP-layer capacity, lab".to_owned(),
        series,
    })
}

fn response(response: Response) -> Picture {
    let mut noise = Noise(11);
    let available = CAPACITY - 30e6;
    let points: Vec<Point> = (1..=20)
        .map(|k| {
            let sent = f64::from(k) * 5e6;
            let received = if sent <= available { sent } else { CAPACITY * sent / (sent + 30e6) };
            let spread = 0.4e6 + if sent > available { 1.6e6 } else { 0.0 };
            let middle = received + spread * 0.3 * noise.next();
            match response {
                Response::RateRatio => {
                    Point::between(sent, sent / middle, sent / (middle + spread), sent / (middle - spread))
                }
                _ => Point::between(sent, middle, middle - spread, middle + spread),
            }
        })
        .collect();
    let fitted = match response {
        Response::RateRatio => {
            vec![Series::new("fitted", vec![Point::new(available, 1.0), Point::new(100e6, (100e6 + 30e6) / CAPACITY)])]
        }
        _ => Vec::new(),
    };
    Picture::ResponseCurve(ResponseCurve {
        title: "Response of table10-30Mbit-s to trains".to_owned(),
        response,
        series: vec![Series::new("fac2, trains of 100", points)],
        fitted,
        capacity_bps: Some(CAPACITY),
        available_bps: Some(available),
    })
}

fn gaps() -> Picture {
    let mut noise = Noise(12);
    let points = (1..=24).map(|k| {
        let gap = f64::from(k) * 20e3;
        let out = gap.max(123e3 * 0.31 + gap * 0.69).max(123e3) + 3e3 * noise.next();
        Point::between(gap, out, out - 6e3, out + 9e3)
    });
    Picture::ResponseCurve(ResponseCurve {
        title: "Gaps of pairs on table10-30Mbit-s".to_owned(),
        response: Response::Gaps,
        series: vec![Series::new("pairs of 1500 octets", points.collect())],
        fitted: Vec::new(),
        capacity_bps: Some(CAPACITY),
        available_bps: None,
    })
}

fn histogram() -> Picture {
    let mut noise = Noise(5);
    let samples: Vec<f64> = (0..600)
        .map(|k| match k % 10 {
            0..=4 => CAPACITY + 0.5e6 * noise.normal(),
            5..=7 => 74e6 + 3e6 * noise.normal(),
            8 => 58e6 + 4e6 * noise.normal(),
            _ => 125e6 + 6e6 * noise.normal(),
        })
        .collect();
    Picture::DispersionHistogram(DispersionHistogram {
        title: "Dispersion rates of packet pairs on table10-30Mbit-s".to_owned(),
        quantity: Quantity::Rate,
        bins: DispersionHistogram::bins(&samples, 1e6),
        modes: vec![
            Mode { low: 70e6, high: 78e6, chosen: false },
            Mode { low: 96e6, high: 99e6, chosen: true },
            Mode { low: 119e6, high: 131e6, chosen: false },
        ],
        truth: Some(CAPACITY),
        estimate: Some(97.1e6),
    })
}

fn trend() -> Picture {
    let mut noise = Noise(9);
    let packets: Vec<DelayedPacket> = (0..100)
        .filter(|&packet| packet != 61 && packet != 88)
        .map(|packet| {
            #[expect(clippy::cast_possible_truncation, reason = "below a second of nanoseconds")]
            let delay_ns = (-40_000_000.0 + packet as f64 * 5_200.0 + 60_000.0 * noise.next().abs()) as i64;
            DelayedPacket { packet, delay_ns }
        })
        .collect();
    let groups = packets.chunks(10).map(|part| {
        let mut delays: Vec<i64> = part.iter().map(|packet| packet.delay_ns).collect();
        delays.sort_unstable();
        DelayGroup { first: part[0].packet, last: part[part.len() - 1].packet, median_ns: delays[delays.len() / 2] }
    });
    Picture::DelayTrend(DelayTrend {
        title: "One-way delays of a stream at 80 Mbit/s".to_owned(),
        groups: groups.collect(),
        packets,
        lost: vec![61, 88],
        trend: Some(Trend::Increasing),
        tests: vec![
            TrendTest { name: "PCT".to_owned(), value: 0.89, increasing_above: 0.66, none_below: 0.54 },
            TrendTest { name: "PDT".to_owned(), value: 0.81, increasing_above: 0.55, none_below: 0.45 },
        ],
    })
}

fn regression() -> Picture {
    let mut noise = Noise(21);
    let mut slope = 0.0;
    let mut base = 60e3;
    let hops = [100e6, 10e6, 100e6].into_iter().enumerate().map(|(index, rate)| {
        slope += 8e9 / rate;
        base += 90e3;
        let mut all = Vec::new();
        let mut least = Vec::new();
        for size in (1..=15).map(|k| k * 100) {
            let line = base + slope * size as f64;
            let mut lowest = f64::INFINITY;
            for _ in 0..12 {
                let late = noise.next().abs();
                let round_trip_ns = line + 8e3 * noise.next().abs() + if late > 0.7 { 400e3 * late } else { 0.0 };
                lowest = lowest.min(round_trip_ns);
                all.push(SizedRoundTrip { ip_octets: size, round_trip_ns });
            }
            least.push(SizedRoundTrip { ip_octets: size, round_trip_ns: lowest });
        }
        HopRegression {
            label: format!("hop {}", index + 1),
            least,
            all,
            fit: Some(SizeFit { intercept_ns: base, slope_ns_per_octet: slope, rate_bps: Some(rate * 0.98) }),
        }
    });
    Picture::SizeRegression(SizeRegression {
        title: "Round-trip time over packet size, 100, 10 and 100 Mbit/s".to_owned(),
        hops: hops.collect(),
    })
}

fn transfer() -> Picture {
    let mut noise = Noise(31);
    let rate = (0..200).map(|k| {
        let time = f64::from(k) * 0.025;
        let settled = 64e6 * (1.0 - (-time / 0.35).exp());
        Point::new(time * 1e9, (settled + 2.5e6 * noise.normal()).max(0.0))
    });
    let mut window = 14_600.0;
    let mut windows = Vec::new();
    for k in 0..200 {
        let time = f64::from(k) * 0.025;
        windows.push(Point::new(time * 1e9, window));
        window = if window > 420e3 {
            window * 0.7
        } else if k < 20 {
            window * 1.19
        } else {
            window + 2_600.0
        };
    }
    Picture::TransferOverTime(TransferOverTime {
        title: "A TCP transfer on table10-30Mbit-s".to_owned(),
        rates: vec![Series::new("delivered, per 25 ms", rate.collect())],
        windows: vec![Series::new("connection 1", windows)],
        stop_ns: Some(1.9e9),
        value_bps: Some(63.1e6),
        truth_bps: Some(65.2e6),
    })
}

fn convergence() -> Picture {
    let truth = CAPACITY - 30e6;
    let (mut low, mut high) = (0.0, 120e6);
    let mut points = Vec::new();
    for step in 0..10 {
        points.push(Point::between(f64::from(step), f64::midpoint(low, high), low, high));
        let middle: f64 = f64::midpoint(low, high);
        if middle > truth + 1e6 {
            high = middle;
        } else if middle < truth - 1e6 {
            low = middle;
        }
    }
    Picture::Convergence(Convergence {
        title: "Interval after each fleet, pathload, run 1".to_owned(),
        quantity: Quantity::Rate,
        over: Quantity::Count,
        series: vec![Series::new("pathload", points)],
        truth: Some(truth),
    })
}

fn loss() -> Picture {
    let points = (2..=40).map(|k| {
        let octets = f64::from(k) * 4_000.0;
        let lost = if octets > 66e3 { 1.0 - 66e3 / octets } else { 0.0 };
        Point::new(octets, lost * 0.9)
    });
    Picture::LossAgainstBurst(LossAgainstBurst {
        title: "Loss against burst size, queue of 64 kB".to_owned(),
        series: vec![Series::new("burst", points.collect())],
        truth_octets: Some(66e3),
        interval_octets: Some((62e3, 70e3)),
    })
}

fn timeline() -> Picture {
    let mut noise = Noise(41);
    let levels = [2e9, 7e9, 10e9, 7e9, 2e9, 10e9];
    let truth: Vec<Point> =
        levels.into_iter().enumerate().map(|(k, level)| Point::new(k as f64 * 40e9, level * 0.975)).collect();
    let at = |time: f64| truth.iter().rev().find(|point| point.x <= time).map_or(0.0, |point| point.y);
    let polled = |every: f64, lag: f64, spread: f64, noise: &mut Noise| -> Vec<Point> {
        let mut points = Vec::new();
        let mut time = every;
        while time < 240e9 {
            let value = at(time - lag) * (1.0 + spread * noise.normal());
            points.push(Point::between(time, value, value * (1.0 - 2.0 * spread), value * (1.0 + 2.0 * spread)));
            time += every;
        }
        points
    };
    let series = vec![
        Series::new("fac2", polled(8e9, 0.0, 0.03, &mut noise)),
        Series::new("iperf3-tcp", polled(14e9, 6e9, 0.05, &mut noise)),
    ];
    Picture::Timeline(Timeline {
        title: "Available capacity over time, 10 Gbit/s".to_owned(),
        quantity: Quantity::Rate,
        truth,
        series,
    })
}
