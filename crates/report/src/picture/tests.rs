use proptest::prelude::*;
use quick_xml::Reader;
use quick_xml::events::Event;

use super::*;

/// Reads `text` as XML to its end: tags match, attributes are quoted and unique, references are
/// known. Returns the text outside of tags and the names of all elements.
pub(crate) fn read_xml(text: &str) -> (String, Vec<String>) {
    let mut reader = Reader::from_str(text);
    reader.config_mut().check_end_names = true;
    let (mut words, mut names) = (String::new(), Vec::new());
    let mut depth = 0usize;
    loop {
        match reader.read_event().unwrap() {
            Event::Eof => break,
            Event::Start(tag) => {
                depth += 1;
                tag.attributes().for_each(|attribute| drop(attribute.unwrap().unescape_value().unwrap()));
                names.push(String::from_utf8(tag.name().as_ref().to_vec()).unwrap());
            }
            Event::Empty(tag) => {
                tag.attributes().for_each(|attribute| drop(attribute.unwrap().unescape_value().unwrap()));
                names.push(String::from_utf8(tag.name().as_ref().to_vec()).unwrap());
            }
            Event::End(_) => depth -= 1,
            Event::Text(text) => words.push_str(&text.decode().unwrap()),
            Event::GeneralRef(reference) => match reference.resolve_char_ref().unwrap() {
                Some(c) => words.push(c),
                None => words.push_str(match reference.decode().unwrap().as_ref() {
                    "lt" => "<",
                    "gt" => ">",
                    "amp" => "&",
                    "quot" => "\"",
                    "apos" => "'",
                    other => panic!("unknown reference {other}"),
                }),
            },
            Event::DocType(_) => {}
            other => panic!("unexpected {other:?}"),
        }
    }
    assert_eq!(depth, 0, "an element is open at the end");
    (words, names)
}

fn series(label: &str, points: &[Point]) -> Vec<Series> {
    vec![
        Series::new(label, points.to_vec()),
        Series::published(format!("{label}, printed"), Some(label), points.to_vec()),
    ]
}

/// Each kind of picture, with this name everywhere and these values on every axis.
fn every_kind(name: &str, points: &[Point]) -> Vec<Picture> {
    let title = || name.to_owned();
    let series = || series(name, points);
    let first = points.first().map(|point| point.y);
    let lines = || -> Vec<SizedRoundTrip> {
        let sized = points.iter().map(|point| SizedRoundTrip { ip_octets: whole(point.x), round_trip_ns: point.y });
        sized.collect()
    };
    let mut all = responses(name, points);
    all.extend(of_time(name, points));
    all.extend([
        Picture::ErrorAgainstUtilisation(ErrorAgainstUtilisation { title: title(), series: series() }),
        Picture::EstimateAgainstTruth(EstimateAgainstTruth {
            title: title(),
            quantity: Quantity::Rate,
            series: series(),
        }),
        Picture::CostAgainstError(CostAgainstError { title: title(), cost: Quantity::Time, series: series() }),
        Picture::DispersionHistogram(DispersionHistogram {
            title: title(),
            quantity: Quantity::Rate,
            bins: DispersionHistogram::bins(&points.iter().map(|point| point.y).collect::<Vec<_>>(), 1e6),
            modes: points.iter().map(|p| Mode { low: p.x, high: p.y, chosen: p.x > p.y }).collect(),
            truth: first,
            estimate: first,
        }),
        Picture::SizeRegression(SizeRegression {
            title: title(),
            hops: vec![HopRegression {
                label: title(),
                least: lines(),
                all: lines(),
                fit: first.map(|value| SizeFit { intercept_ns: value, slope_ns_per_octet: value, rate_bps: first }),
            }],
        }),
        Picture::LossAgainstBurst(LossAgainstBurst {
            title: title(),
            series: series(),
            truth_octets: first,
            interval_octets: first.zip(first),
        }),
        delays(name, points),
    ]);
    all
}

fn responses(name: &str, points: &[Point]) -> Vec<Picture> {
    let first = points.first().map(|point| point.y);
    let of = |response| {
        Picture::ResponseCurve(ResponseCurve {
            title: name.to_owned(),
            response,
            series: series(name, points),
            fitted: series(name, points),
            capacity_bps: first,
            available_bps: first,
        })
    };
    vec![of(Response::Rates), of(Response::RateRatio), of(Response::Gaps)]
}

fn of_time(name: &str, points: &[Point]) -> [Picture; 3] {
    let title = || name.to_owned();
    let series = || series(name, points);
    let first = points.first().map(|point| point.y);
    [
        Picture::TransferOverTime(TransferOverTime {
            title: title(),
            rates: series(),
            windows: series(),
            stop_ns: first,
            value_bps: first,
            truth_bps: first,
        }),
        Picture::Convergence(Convergence {
            title: title(),
            quantity: Quantity::Octets,
            over: Quantity::Count,
            series: series(),
            truth: first,
        }),
        Picture::Timeline(Timeline {
            title: title(),
            quantity: Quantity::Rate,
            truth: points.to_vec(),
            series: series(),
        }),
    ]
}

fn delays(name: &str, points: &[Point]) -> Picture {
    Picture::DelayTrend(DelayTrend {
        title: name.to_owned(),
        packets: points
            .iter()
            .map(|point| DelayedPacket { packet: whole(point.x), delay_ns: signed(point.y) })
            .collect(),
        lost: points.iter().map(|point| whole(point.y)).collect(),
        groups: points
            .iter()
            .map(|point| DelayGroup {
                first: whole(point.x),
                last: whole(point.x).saturating_add(3),
                median_ns: signed(point.y),
            })
            .collect(),
        trend: Some(Trend::Ambiguous),
        tests: vec![TrendTest { name: name.to_owned(), value: 0.5, increasing_above: 0.66, none_below: 0.54 }],
    })
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "saturates, which is what extreme inputs want"
)]
fn whole(value: f64) -> u64 {
    value as u64
}

#[expect(clippy::cast_possible_truncation, reason = "saturates, which is what extreme inputs want")]
fn signed(value: f64) -> i64 {
    value as i64
}

/// Every number in an attribute of geometry lies within the picture.
fn assert_inside(svg: &str) {
    let height: f64 = svg.split(" height=\"").nth(1).unwrap().split('"').next().unwrap().parse().unwrap();
    for (name, most) in [("x", 641.0), ("x1", 641.0), ("x2", 641.0), ("cx", 641.0), ("y", height), ("cy", height)] {
        for part in svg.split(&format!(" {name}=\"")).skip(1) {
            let value: f64 = part.split('"').next().unwrap().parse().unwrap();
            assert!((-0.1..=most).contains(&value), "{name}={value} of {most}: {svg}");
        }
    }
}

fn judge(picture: &Picture) {
    let svg = picture.svg();
    assert_eq!(svg, picture.svg(), "the same input gives the same bytes");
    let (_, names) = read_xml(&svg);
    assert_eq!(names.iter().filter(|name| *name == "svg").count(), 1);
    assert_eq!(names.iter().filter(|name| *name == "desc").count(), 1);
    assert!(!svg.contains("NaN") && !svg.contains("inf\""), "{svg}");
    assert_inside(&svg);
}

fn ordinary() -> Vec<Point> {
    vec![Point::between(10.0, 2e6, 1e6, 3e6), Point::between(20.0, 5e6, 4e6, 7e6), Point::new(30.0, 6e6)]
}

#[test]
fn every_kind_is_well_formed_and_inside() {
    for picture in every_kind("pathload", &ordinary()) {
        judge(&picture);
    }
}

#[test]
fn names_from_files_stay_text() {
    let name = "</title></svg><script>alert(\"1\" & '2')</script>\u{0}\u{202e}";
    for picture in every_kind(name, &ordinary()) {
        let svg = picture.svg();
        let (words, names) = read_xml(&svg);
        assert!(!names.iter().any(|name| name == "script"), "{svg}");
        assert!(!svg.contains("<script") && !svg.contains('\u{202e}') && !svg.contains('\u{0}'));
        assert!(words.contains("</title></svg><script>"), "the name is shown: {words}");
        judge(&picture);
    }
}

#[test]
fn empty_single_and_extreme_inputs_have_pictures() {
    let cases: [Vec<Point>; 8] = [
        vec![],
        vec![Point::new(0.0, 0.0)],
        vec![Point::new(5.0, 5.0); 40],
        vec![Point::new(f64::NAN, 1.0), Point::new(1.0, f64::INFINITY)],
        vec![Point::new(f64::MAX, f64::MIN), Point::new(f64::MIN, f64::MAX)],
        vec![Point::new(1e-30, 1e-30), Point::new(1e30, 1e30)],
        vec![Point::between(1.0, -1e9, f64::NAN, 2.0), Point::between(2.0, 1e9, 9.0, -9.0)],
        (0..5_000).map(|k| Point::new(f64::from(k), f64::from(k % 7))).collect(),
    ];
    for points in cases {
        for picture in every_kind("x", &points) {
            judge(&picture);
            if points.is_empty() {
                let (words, _) = read_xml(&picture.svg());
                assert!(words.contains("to show"), "an empty picture says so: {words}");
            }
            assert!(picture.svg().len() < 700_000, "{}", picture.svg().len());
        }
    }
}

#[test]
fn many_series_and_long_names_are_bounded() {
    let series: Vec<Series> =
        (0..300).map(|k| Series::new(format!("{k} {}", "long name ".repeat(50)), ordinary())).collect();
    let picture = Picture::ErrorAgainstUtilisation(ErrorAgainstUtilisation { title: "many ".repeat(100), series });
    judge(&picture);
    let svg = picture.svg();
    assert!(svg.len() < 200_000, "{}", svg.len());
    assert!(svg.contains("279 series are not drawn"), "what is left out is said");
}

#[test]
fn json_of_pictures_reads_back() {
    for picture in every_kind("pathload", &ordinary()) {
        let json = serde_json::to_string(&picture).unwrap();
        assert_eq!(serde_json::from_str::<Picture>(&json).unwrap(), picture, "{json}");
    }
}

/// By hand: x runs from 0 to 100 over 66 to 624 px, y from 0 to 10 over 270 px that start at 54 px.
#[test]
fn points_are_where_the_axes_say() {
    let picture = Picture::Convergence(Convergence {
        title: "t".to_owned(),
        quantity: Quantity::Count,
        over: Quantity::Count,
        series: vec![Series::new("s", vec![Point::new(50.0, 5.0), Point::new(100.0, 0.0), Point::new(0.0, 10.0)])],
        truth: None,
    });
    let svg = picture.svg();
    for circle in ["cx=\"345\" cy=\"184\"", "cx=\"624\" cy=\"314\"", "cx=\"66\" cy=\"54\""] {
        assert!(svg.contains(circle), "{circle}: {svg}");
    }
}

#[test]
fn small_pictures() {
    let styles = SeriesStyles::of_methods(["pathload", "fac2"]);
    let error = Picture::ErrorAgainstUtilisation(ErrorAgainstUtilisation {
        title: "Error against load".to_owned(),
        series: vec![
            Series::new("fac2", vec![Point::between(0.0, 0.0, -0.01, 0.01), Point::between(0.5, -0.02, -0.05, 0.01)]),
            Series::published("pathload, printed", Some("pathload"), vec![Point::new(0.5, -2.5)]),
        ],
    });
    insta::assert_snapshot!("error_against_utilisation", lines(&error.inline(&styles)));
    let histogram = Picture::DispersionHistogram(DispersionHistogram {
        title: "Dispersion".to_owned(),
        quantity: Quantity::Rate,
        bins: DispersionHistogram::bins(&[97e6, 97.2e6, 74e6], 1e6),
        modes: vec![Mode { low: 96e6, high: 98e6, chosen: true }],
        truth: Some(97.5e6),
        estimate: Some(97.1e6),
    });
    insta::assert_snapshot!("dispersion_histogram", lines(&histogram.inline(&styles)));
    let delays = delays("Delays", &[Point::new(0.0, -5e6), Point::new(1.0, -4.9e6), Point::new(2.0, -4.7e6)]);
    insta::assert_snapshot!("delay_trend", lines(&delays.inline(&styles)));
}

/// An element per line, so that a change of one shows as one.
fn lines(svg: &str) -> String {
    svg.replace("><", ">\n<")
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn no_values_panic_or_break_the_markup(values in prop::collection::vec((any::<f64>(), any::<f64>(), any::<f64>()), 0..12)) {
        let points: Vec<Point> = values.iter().map(|&(x, y, end)| Point::between(x, y, end, -end)).collect();
        for picture in every_kind("any", &points) {
            judge(&picture);
        }
    }

    #[test]
    fn no_name_breaks_the_markup(name in any::<String>()) {
        for picture in every_kind(&name, &ordinary()) {
            judge(&picture);
        }
    }
}
