//! Colours and strokes, light, dark and on paper.

use std::fmt::Write as _;

/// The palette of Okabe and Ito (2008), which people with any common colour vision tell apart, in
/// an order that leaves the colours weak on white for last: on a light and on a dark ground. The
/// dark ground swaps the two blues and black for yellow.
const SERIES: [(&str, &str); 7] = [
    ("#0072b2", "#56b4e9"),
    ("#d55e00", "#e8702a"),
    ("#009e73", "#1fbf92"),
    ("#cc79a7", "#cc79a7"),
    ("#e69f00", "#e69f00"),
    ("#56b4e9", "#3a8fd0"),
    ("#1b1b1b", "#f0e442"),
];

/// How many colours there are; series beyond them repeat a colour with another shape and dash.
pub(crate) const COLOURS: usize = SERIES.len();

/// The rules that every picture needs, for a page that shows several or for one that stands alone.
pub(crate) fn css() -> String {
    let mut out = String::from(concat!(
        ".nw{font-family:system-ui,-apple-system,'Segoe UI','DejaVu Sans',sans-serif;font-size:12px}",
        ".nw .ln{fill:none;stroke-width:2;stroke-linejoin:round}",
        ".nw .th{stroke-width:1.2}",
        ".nw .mk{stroke-width:1.6}",
        ".nw .sm{stroke-width:.8}",
        ".nw .fa{opacity:.55}",
        ".nw .da1{stroke-dasharray:7 3}.nw .da2{stroke-dasharray:2 3}",
        ".nw .ti{font-size:14px;font-weight:600}",
        ".nw .no{font-style:italic}",
    ));
    ground(&mut out, false);
    out.push_str("@media screen and (prefers-color-scheme:dark){");
    ground(&mut out, true);
    out.push('}');
    out
}

fn ground(out: &mut String, dark: bool) {
    let pick = |light: &'static str, night: &'static str| if dark { night } else { light };
    let (ink, soft, grid, back) = (
        pick("#1b1b1b", "#e8e8e6"),
        pick("#55585e", "#a9adb5"),
        pick("#e3e5e8", "#33373e"),
        pick("#ffffff", "#15181d"),
    );
    let shade = pick(".07", ".10");
    // Writing to a String cannot fail.
    for (index, (light, night)) in SERIES.iter().enumerate() {
        let colour = if dark { night } else { light };
        let _ = write!(out, ".nw .c{index}{{stroke:{colour};fill:{colour}}}");
    }
    let _ = write!(
        out,
        ".nw .ln{{fill:none}}.nw .bd{{stroke:none;fill-opacity:.17}}.nw .bar{{fill-opacity:.75;stroke:none}}\
         .nw .ho{{fill:{back}}}\
         .nw text{{fill:{ink}}}.nw .so{{fill:{soft}}}\
         .nw .gr{{stroke:{grid};stroke-width:1}}.nw .ax{{stroke:{soft};stroke-width:1}}\
         .nw .rf{{stroke:{ink};stroke-width:1.4;fill:none}}.nw .rs{{stroke:{soft};stroke-width:1.1;fill:none}}\
         .nw .zone{{fill:{ink};fill-opacity:{shade};stroke:none}}\
         .nw .bg{{fill:{back}}}"
    );
}
