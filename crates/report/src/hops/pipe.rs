//! The path as a pipe: as wide as each hop's capacity, shaded as far as it is free.

use std::fmt::Write as _;

use narrows_probe::BoundKind;
use narrows_units::BitRate;

use super::table::{capacity, cut, label};
use super::{HopRow, HopsDocument};

/// What a terminal's lines are made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Strokes {
    /// Box drawing and shades.
    Unicode,
    /// Nothing beyond ASCII.
    Ascii,
}

impl Strokes {
    /// The text, without what such a terminal cannot show.
    pub fn plain(self, text: &str) -> String {
        if self == Self::Unicode {
            return text.to_owned();
        }
        let replaced = |c: char| match c {
            '…' => "..".to_owned(),
            '–' => "-".to_owned(),
            'µ' => "u".to_owned(),
            '◀' => "<-".to_owned(),
            c if c.is_ascii() => c.to_string(),
            _ => "?".to_owned(),
        };
        text.chars().map(replaced).collect()
    }
}

/// A path drawn: from the sender, above, to the peer, below. Widths are logarithmic between two
/// whole powers of ten, which are stated; the share that is free is linear.
#[derive(Debug, Clone, PartialEq)]
pub struct Pipe {
    pub(super) title: String,
    pub(super) segments: Vec<Segment>,
    /// Rates at no width and at full width, as powers of ten.
    pub(super) decades: (i32, i32),
    pub(super) any_free: bool,
}

/// One hop.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Segment {
    pub(super) ttl: u16,
    /// Where its capacity lies on the scale, 0 to 1; `None`: not known.
    pub(super) width: Option<f64>,
    /// How wide it is drawn: where its capacity is not known, as the hop before it (or behind it),
    /// so that it looks like no narrow link.
    pub(super) drawn: f64,
    /// The truth may be more.
    pub(super) open: bool,
    /// The share that is free, 0 to 1.
    pub(super) free: Option<f64>,
    pub(super) label: String,
    pub(super) router: String,
    pub(super) mark: &'static str,
}

/// Columns inside the walls at no width, and what full width adds.
const LEAST: usize = 4;
const MORE: usize = 32;

impl Pipe {
    /// Of a finished document.
    pub fn new(document: &HopsDocument) -> Self {
        let logs = document.hops.iter().filter_map(|hop| log(hop.capacity?));
        let (low, high) =
            logs.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), log| (low.min(log), high.max(log)));
        let decades = decades(low, high);
        let mut segments: Vec<Segment> = document.hops.iter().map(|hop| segment(document, hop, decades)).collect();
        fill_gaps(&mut segments);
        Self {
            title: format!("Path to {}", super::table::printable(&document.target.name)),
            any_free: segments.iter().any(|segment| segment.free.is_some()),
            segments,
            decades,
        }
    }

    /// The scale in words.
    pub(super) fn scale(&self) -> String {
        let (low, high) = self.decades;
        let free = if self.any_free { "shaded: the share that is free" } else { "what is free was not measured" };
        format!("width: capacity, logarithmic, {} to {}; {free}", power(low), power(high))
    }

    /// The drawing for a terminal, ending in a newline; empty without hops.
    pub fn text(&self, strokes: Strokes) -> String {
        let mut out = String::new();
        if self.segments.is_empty() {
            return out;
        }
        let glyphs = Glyphs::of(strokes);
        // Writing to a String cannot fail.
        let _ = writeln!(out, "{}", strokes.plain(&self.scale()));
        let mut above = None;
        for segment in &self.segments {
            let columns = columns(segment.drawn);
            out.push_str(&glyphs.joint(above, Some(columns)));
            let _ = writeln!(out, "{}", glyphs.body(segment, columns));
            above = Some(columns);
        }
        out.push_str(&glyphs.joint(above, None));
        out
    }
}

/// Hops of unknown capacity are drawn as wide as the last known one before them, the first of them
/// as the first known one behind; a path of which nothing is known half as wide as there is room.
fn fill_gaps(segments: &mut [Segment]) {
    let first = segments.iter().find_map(|segment| segment.width);
    let mut last = first.unwrap_or(0.5);
    for segment in segments {
        last = segment.width.unwrap_or(last);
        segment.drawn = last;
    }
}

/// Inside the walls; always even, so that the middle stays where it is.
fn columns(width: f64) -> usize {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "between zero and the half of MORE")]
    let half = (width.clamp(0.0, 1.0) * (MORE / 2) as f64).round() as usize;
    LEAST + 2 * half
}

fn log(bps: u64) -> Option<f64> {
    (bps > 0).then(|| (bps as f64).log10())
}

/// Whole powers of ten around what is there, at least one apart.
fn decades(low: f64, high: f64) -> (i32, i32) {
    if !(low.is_finite() && high.is_finite()) {
        return (6, 9);
    }
    #[expect(clippy::cast_possible_truncation, reason = "logarithms of 64-bit integers")]
    let (low, high) = (low.floor() as i32, high.ceil() as i32);
    (low, high.max(low + 1))
}

fn power(decade: i32) -> String {
    let bps = u32::try_from(decade).ok().and_then(|decade| 10u64.checked_pow(decade));
    bps.map_or_else(|| format!("10^{decade} bit/s"), |bps| BitRate::from_bps(bps).to_string())
}

fn segment(document: &HopsDocument, hop: &HopRow, (low, high): (i32, i32)) -> Segment {
    let place = |log: f64| ((log - f64::from(low)) / f64::from(high - low)).clamp(0.0, 1.0);
    let is = |which: Option<u16>| which == Some(hop.ttl);
    let free = hop.available.zip(hop.capacity).filter(|(_, capacity)| *capacity > 0);
    Segment {
        ttl: hop.ttl,
        width: hop.capacity.and_then(log).map(place),
        drawn: 0.0,
        open: hop.verdict == BoundKind::LowerBound,
        free: free.map(|(available, capacity)| (available as f64 / capacity as f64).clamp(0.0, 1.0)),
        label: capacity(hop),
        router: hop.routers.first().map_or_else(|| "???".to_owned(), label),
        mark: match (is(document.narrow_hop), is(document.tight_hop)) {
            (true, true) => "narrow, tight",
            (true, false) => "narrow",
            (false, true) => "tight",
            (false, false) => "",
        },
    }
}

struct Glyphs {
    wall: char,
    open: char,
    unknown: char,
    free: char,
    flat: char,
    /// Corners of a body: top left, top right, bottom left, bottom right.
    corners: [char; 4],
    strokes: Strokes,
}

impl Glyphs {
    fn of(strokes: Strokes) -> Self {
        match strokes {
            Strokes::Unicode => Self {
                wall: '│',
                open: '╎',
                unknown: '┊',
                free: '▒',
                flat: '─',
                corners: ['╭', '╮', '╰', '╯'],
                strokes,
            },
            Strokes::Ascii => Self {
                wall: '|',
                open: ':',
                unknown: '.',
                free: '#',
                flat: '-',
                corners: ['+', '+', '+', '+'],
                strokes,
            },
        }
    }

    fn body(&self, segment: &Segment, columns: usize) -> String {
        let wall = match (segment.width, segment.open) {
            (None, _) => self.unknown,
            (_, true) => self.open,
            _ => self.wall,
        };
        let inside = match (segment.width, segment.free) {
            (None, _) => format!("{:^columns$}", "?"),
            (_, Some(free)) => self.shaded(free, columns),
            (_, None) => " ".repeat(columns),
        };
        let side = (LEAST + MORE - columns) / 2;
        let mark = if segment.mark.is_empty() { String::new() } else { format!(" <- {}", segment.mark) };
        let label = self.strokes.plain(&format!("{}{mark}", segment.label));
        let router = self.strokes.plain(&cut(&segment.router, 24));
        let (blank, after) = (" ".repeat(side), " ".repeat(side));
        let line = format!("{:>4} {blank}{wall}{inside}{wall}{after} {router:<24} {label}", segment.ttl);
        line.trim_end().to_owned()
    }

    /// The free part lies in the middle, where the way is open.
    fn shaded(&self, free: f64, columns: usize) -> String {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a share of a small number")]
        let cells = (free * columns as f64).round() as usize;
        let left = (columns - cells.min(columns)) / 2;
        let filled: String = std::iter::repeat_n(self.free, cells.min(columns)).collect();
        format!("{}{filled}{}", " ".repeat(left), " ".repeat(columns - cells.min(columns) - left))
    }

    /// The line between two bodies, or at an end of the pipe.
    fn joint(&self, above: Option<usize>, below: Option<usize>) -> String {
        let whole = LEAST + MORE + 2;
        let mut line = vec![' '; whole];
        let edges = |columns: usize| ((LEAST + MORE - columns) / 2, (LEAST + MORE + columns) / 2 + 1);
        let [top_left, top_right, bottom_left, bottom_right] = self.corners;
        match (above.map(edges), below.map(edges)) {
            (Some(one), Some(other)) if one == other => return String::new(),
            (Some(one), Some(other)) if one.0 < other.0 => {
                // It narrows: the upper walls end, the lower begin.
                self.step(&mut line, (one.0, other.0), (bottom_left, top_right));
                self.step(&mut line, (other.1, one.1), (top_left, bottom_right));
            }
            (Some(one), Some(other)) => {
                self.step(&mut line, (other.0, one.0), (top_left, bottom_right));
                self.step(&mut line, (one.1, other.1), (bottom_left, top_right));
            }
            (None, Some((left, right))) => self.step(&mut line, (left, right), (top_left, top_right)),
            (Some((left, right)), None) => self.step(&mut line, (left, right), (bottom_left, bottom_right)),
            (None, None) => return String::new(),
        }
        let text: String = line.into_iter().collect();
        format!("     {}\n", text.trim_end())
    }

    fn step(&self, line: &mut [char], (from, to): (usize, usize), (first, last): (char, char)) {
        for place in line.iter_mut().take(to + 1).skip(from) {
            *place = self.flat;
        }
        if let Some(place) = line.get_mut(from) {
            *place = first;
        }
        if let Some(place) = line.get_mut(to) {
            *place = last;
        }
    }
}
