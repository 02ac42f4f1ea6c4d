// A signal over time: line, 90 % band, bounds, gaps, events. Arrow keys move, Enter opens.

import { amount, colour, folded, h, interval, median, redraw, s, said, scale, table, ticks, time } from "./kit.js";

/** Where every plot begins and ends beside its frame, so that times stand above each other. */
export const [LEFT, RIGHT] = [56, 20];

/** How long a hole is before it is one. */
function gapOf(points) {
  return 3 * median(points.slice(1).map((point, n) => point.at_ms - points[n].at_ms));
}

/** Points with holes where nothing was measured, in uPlot's columns, over the whole time asked. */
function columns(series) {
  const gap = gapOf(series.points);
  const [x, value, low, high] = [[series.since_ms / 1000], [null], [null], [null]];
  const hole = (ms) => {
    x.push(ms / 1000);
    for (const column of [value, low, high]) column.push(null);
  };
  let before = null;
  for (const point of series.points) {
    if (before !== null && gap > 0 && point.at_ms - before > gap) hole(before + 1);
    before = point.at_ms;
    if (point.at_ms / 1000 <= x[0]) x[0] = point.at_ms / 1000 - 1;
    x.push(point.at_ms / 1000);
    value.push(point.value);
    low.push(point.claim === "at_most" ? null : point.low ?? point.value);
    high.push(point.claim === "at_least" ? point.value : point.high ?? point.value);
  }
  if (before === null || series.until_ms > before) hole(series.until_ms);
  return [x, value, low, high];
}

/** The roof (the capacity) at each time of `x`, from its own points; the last one holds for a while. */
function roofAt(x, roof) {
  const points = roof.points.filter((point) => point.value !== null);
  if (points.length === 0) return x.map(() => null);
  const end = points[points.length - 1].at_ms + roof.holds_ms;
  let n = 0;
  return x.map((at) => {
    while (n + 1 < points.length && points[n + 1].at_ms / 1000 <= at) n++;
    return at * 1000 > end ? null : points[n].value;
  });
}

/**
 * Draws `series` with its table and sentence; `roof` is a second series above it, `open(point)` is
 * called for the point that is chosen. `view` holds what a person looks at: the zoom and the time read
 * last. A page that draws anew hands it over again.
 */
export function chart({ title, series, roof, events = [], incidents = [], open, sentence, height = 250, view = {} }) {
  const known = series.points;
  if (known.length === 0) return h("section", {}, h("h2", {}, title), h("p", { class: "soft" }, "Nothing was measured in this time."));
  const plot = h("div", { class: "plot" });
  const readout = h("p", { class: "readout", "aria-live": "polite" },
    open ? "A click, or arrow keys and Enter, opens a run. Drag to zoom, double-click to go back." : "Arrow keys read values.");
  const frame = h("div", { class: "chart", tabindex: "0", role: "group", "aria-label": `${title}. ${sentence} Arrow keys read values.` }, plot);
  const unit = series.unit;
  let drawn = null;
  const nearest = (seconds) => known.reduce((best, point, n) =>
    Math.abs(point.at_ms / 1000 - seconds) < Math.abs(known[best].at_ms / 1000 - seconds) ? n : best, 0);
  let at = view.read_ms === undefined ? known.length - 1 : nearest(view.read_ms / 1000);
  const tell = () => {
    const point = known[at];
    view.read_ms = point.at_ms;
    const range = interval(point, unit);
    readout.textContent = `${time(point.at_ms)}: ${said(point, unit)}${range ? ` (${range})` : ""}${point.count > 1 ? `, mean of ${point.count} values` : ""}`;
  };
  if (view.read_ms !== undefined) tell();
  const aim = () => drawn?.setCursor({ left: drawn.valToPos(known[at].at_ms / 1000, "x"), top: 10 });
  const draw = () => {
    drawn?.destroy();
    drawn = null;
    plot.replaceChildren();
    if (plot.clientWidth === 0) return;
    const { zoom } = view;
    const data = columns(series);
    if (roof) data.push(roofAt(data[0], roof));
    drawn = new globalThis.uPlot(options({ series, roof, events, incidents, plot, height, view }), data, plot);
    if (zoom) drawn.setScale("x", zoom);
    // The plot knows its scales when what it has begun is done.
    if (view.read_ms !== undefined) queueMicrotask(aim);
    // Whoever measures the page sees when it was drawn.
    performance.mark("chart");
    drawn.over.addEventListener("mousemove", () => {
      if (drawn.cursor.left >= 0) { at = nearest(drawn.posToVal(drawn.cursor.left, "x")); tell(); }
    });
    let down = 0;
    drawn.over.addEventListener("mousedown", (event) => { down = event.clientX; });
    drawn.over.addEventListener("click", (event) => {
      if (open && Math.abs(event.clientX - down) < 4) open(known[nearest(drawn.posToVal(event.offsetX, "x"))]);
    });
  };
  frame.addEventListener("keydown", (event) => {
    const move = { ArrowLeft: -1, ArrowRight: 1, PageUp: -20, PageDown: 20, Home: -known.length, End: known.length }[event.key];
    if (move !== undefined) {
      at = Math.min(known.length - 1, Math.max(0, at + move));
      aim();
      tell();
      event.preventDefault();
    } else if (event.key === "Enter" && open && event.target === frame) {
      open(known[at]);
    }
  });
  redraw(plot, draw);
  const bases = [basis("The rate", series), roof && basis("The capacity", roof)].filter(Boolean).join(" ");
  return h("section", {}, h("h2", {}, title), h("p", {}, sentence), frame, keys(series, roof, events, incidents),
    bases && h("p", { class: "soft small" }, bases), readout, values(title, series));
}

/** From where a value was measured, where that is not said by what it is: a round trip needs no other end. */
const FROM = { server: "from both ends", single: "from this end alone", mixed: "partly from this end alone" };

/** From where the rates of a series were measured, and when that changed. */
function basis(name, { unit, points }) {
  const known = points.filter((point) => FROM[point.basis]);
  if (unit !== "bit/s" || known.every((point) => point.basis === "server")) return "";
  const turns = known.filter((point, n) => n > 0 && point.basis !== known[n - 1].basis);
  const last = turns.slice(-3).map((point) => `${FROM[point.basis]} from ${time(point.at_ms)} on`);
  const rest = turns.length > 3 ? ` (the last 3 of ${turns.length} changes)` : "";
  return `${name} was measured ${[turns.length > 3 ? null : FROM[known[0].basis], ...last].filter(Boolean).join(", then ")}${rest}.`;
}

function options({ series, roof, events, incidents, plot, height, view }) {
  const width = plot.clientWidth;
  const axis = { stroke: colour("soft"), grid: { stroke: colour("line"), width: 1 }, ticks: { show: false }, gap: 6, font: "12px system-ui, sans-serif" };
  const line = (name, extra) => ({ label: name, points: { show: false }, ...extra });
  const single = series.points.length < 3 ? { points: { show: true, size: 7, fill: colour("value") } } : {};
  const known = series.points.filter((point) => point.value !== null);
  const most = Math.max(1, ...known.map((point) => point.high ?? point.value), ...(roof?.points ?? []).map((point) => point.value ?? 0));
  const [name, size] = scale(series.unit, most);
  const labels = new Map();
  const times = (u, _, low, high) => {
    labels.clear();
    for (const [ms, label] of ticks(low * 1000, high * 1000, Math.max(2, Math.floor((width - LEFT) / 76)))) labels.set(ms / 1000, label);
    return [...labels.keys()];
  };
  return {
    width,
    height: width < 500 ? Math.min(height, 200) : height,
    ms: 1e-3,
    legend: { show: false },
    padding: [20, RIGHT, 0, 0],
    cursor: { y: false, points: { size: 7 } },
    scales: {
      x: { time: true, range: (_, low, high) => (low === null ? [series.since_ms / 1000, series.until_ms / 1000] : [low, high]) },
      y: { range: () => [0, most * 1.06] },
    },
    axes: [
      { ...axis, size: 26, splits: times, values: (_, splits) => splits.map((at) => labels.get(at) ?? "") },
      { ...axis, size: LEFT, space: 34, incrs: [1, 2, 2.5, 5].flatMap((n) => [...Array(16)].map((_, power) => n * size * 10 ** (power - 6))).sort((a, b) => a - b),
        values: (_, splits) => splits.map((value) => String(Number((value / size).toPrecision(6)))) },
    ],
    series: [
      {},
      line("value", { stroke: colour("value"), width: 1.8, ...single }),
      line("low", { stroke: "transparent", width: 0 }),
      line("high", { stroke: "transparent", width: 0 }),
      ...(roof ? [line("roof", { stroke: colour("roof"), width: 1.6, dash: [7, 4] })] : []),
    ],
    bands: [{ series: [3, 2], fill: colour("band") }],
    hooks: {
      setScale: [(u, key) => {
        const { min, max } = u.scales.x;
        if (key === "x") view.zoom = min > u.data[0][0] || max < u.data[0].at(-1) ? { min, max } : null;
      }],
      drawClear: [(u) => spans(u, incidents, series)],
      draw: [(u) => { marks(u, series); numbers(u.ctx, u.bbox, events, (ms) => u.valToPos(ms / 1000, "x", true)); named(u, name); }],
    },
  };
}

/** The unit, once, above its axis. */
function named(u, name) {
  u.ctx.save();
  u.ctx.font = `${12 * devicePixelRatio}px system-ui, sans-serif`;
  u.ctx.fillStyle = colour("soft");
  u.ctx.textAlign = "right";
  u.ctx.textBaseline = "alphabetic";
  u.ctx.fillText(name, u.bbox.left - 6 * devicePixelRatio, u.bbox.top - 7 * devicePixelRatio);
  u.ctx.restore();
}

/** Times of incidents, behind everything. */
function spans(u, incidents, series) {
  const { left, top, width, height } = u.bbox;
  u.ctx.save();
  u.ctx.fillStyle = colour("bad");
  u.ctx.globalAlpha = 0.1;
  for (const incident of incidents) {
    const place = (ms) => Math.min(left + width, Math.max(left, u.valToPos(ms / 1000, "x", true)));
    const [from, to] = [place(incident.began_ms), place(incident.ended_ms ?? series.until_ms)];
    u.ctx.fillRect(from, top, Math.max(to - from, 0), height);
  }
  u.ctx.restore();
}

/** Bounds as triangles, inconclusive times as crosses. */
function marks(u, series) {
  const { ctx } = u;
  const { left, top, width, height } = u.bbox;
  const ratio = devicePixelRatio;
  ctx.save();
  ctx.beginPath();
  ctx.rect(left, 0, width, top + height);
  ctx.clip();
  let last = -Infinity;
  for (const point of series.points) {
    const x = u.valToPos(point.at_ms / 1000, "x", true);
    if (point.claim === "estimate" || x - last < 16 * ratio) continue;
    last = x;
    const size = 4 * ratio;
    ctx.beginPath();
    if (point.value === null) {
      ctx.strokeStyle = colour("mark");
      ctx.lineWidth = 1.5 * ratio;
      const y = top + height - 2 * size;
      ctx.moveTo(x - size, y - size); ctx.lineTo(x + size, y + size);
      ctx.moveTo(x + size, y - size); ctx.lineTo(x - size, y + size);
      ctx.stroke();
    } else {
      ctx.fillStyle = colour("value");
      const y = u.valToPos(point.value, "y", true);
      const way = point.claim === "at_least" ? -1 : 1;
      ctx.moveTo(x - size, y); ctx.lineTo(x + size, y); ctx.lineTo(x, y + way * 1.8 * size);
      ctx.fill();
    }
  }
  ctx.restore();
}

/** Events as numbered lines in the box of a plot; `place` says where a time is. */
export function numbers(ctx, { left, top, width, height }, events, place) {
  const ratio = devicePixelRatio;
  ctx.save();
  ctx.font = `600 ${12 * ratio}px system-ui, sans-serif`;
  ctx.textAlign = "center";
  ctx.textBaseline = "alphabetic";
  ctx.strokeStyle = ctx.fillStyle = colour("mark");
  ctx.setLineDash([3 * ratio, 3 * ratio]);
  ctx.lineWidth = 1.4 * ratio;
  const places = events.map((event, n) => ({ x: place(event.at_ms), numbers: [n + 1] }));
  const shown = places.filter(({ x }) => x >= left && x <= left + width).sort((one, other) => one.x - other.x);
  for (const { x } of shown) {
    ctx.beginPath();
    ctx.moveTo(x, top); ctx.lineTo(x, top + height);
    ctx.stroke();
  }
  for (const { text, from, to } of joined(shown, (text) => ctx.measureText(text).width, [left, left + width], 6 * ratio)) {
    ctx.fillText(text, (from + to) / 2, top - 6 * ratio);
  }
  ctx.restore();
}

/** Numbers at places from left to right, as texts within `low` to `high`: those that would touch stand as one, "2–4". */
export function joined(places, widthOf, [low, high], gap) {
  const label = (one) => {
    const all = [...one.numbers].sort((a, b) => a - b);
    const inRow = all.length > 1 && all.at(-1) - all[0] === all.length - 1;
    const text = inRow ? `${all[0]}–${all.at(-1)}` : all.join(", ");
    const width = widthOf(text);
    const from = Math.max(low, Math.min(one.x - width / 2, high - width));
    return { ...one, text, from, to: from + width };
  };
  const texts = [];
  for (const place of places) {
    let next = label(place);
    while (texts.length > 0 && texts.at(-1).to + gap > next.from) {
      const last = texts.pop();
      const count = last.numbers.length + next.numbers.length;
      const x = (last.x * last.numbers.length + next.x * next.numbers.length) / count;
      next = label({ x, numbers: [...last.numbers, ...next.numbers] });
    }
    texts.push(next);
  }
  return texts;
}

/** What the marks mean. */
function keys(series, roof, events, incidents) {
  const key = (text, ...shapes) => h("li", {}, s("svg", { viewBox: "0 0 26 12", "aria-hidden": "true" }, ...shapes), text);
  const stroke = (name, extra) => s("path", { d: "M0 6h26", stroke: `var(--${name})`, "stroke-width": "2", fill: "none", ...extra });
  const claims = new Set(series.points.map((point) => point.claim));
  return h("ul", { class: "key" },
    key("value", stroke("value")),
    claims.has("estimate") && key("90 % interval", s("rect", { width: "26", height: "12", fill: "var(--band)" })),
    roof && key("capacity", stroke("roof", { "stroke-dasharray": "7 4" })),
    claims.has("at_least") && key("at least", s("path", { d: "M8 10h10l-5-9z", fill: "var(--value)" })),
    claims.has("at_most") && key("at most", s("path", { d: "M8 2h10l-5 9z", fill: "var(--value)" })),
    claims.has("inconclusive") && key("inconclusive", s("path", { d: "M9 2l8 8M17 2l-8 8", stroke: "var(--mark)", "stroke-width": "2" })),
    events.length > 0 && key("event, by its number", stroke("mark", { "stroke-dasharray": "3 3" })),
    incidents.length > 0 && key("incident", s("rect", { width: "26", height: "12", fill: "var(--bad)", "fill-opacity": "0.14" })));
}

function values(title, series) {
  const newest = series.points.slice(-200).reverse();
  const name = newest.length < series.points.length ? `Table of the newest 200 of ${series.points.length} values` : `Table of ${newest.length} value${newest.length === 1 ? "" : "s"}`;
  return folded(name, () => table(`${title}; 90 % intervals`, [
    ["time", (point) => time(point.at_ms)],
    ["value", (point) => said(point, series.unit), true],
    ["interval", (point) => interval(point, series.unit), true],
    ["values", (point) => point.count, true],
    ...(newest.every((point) => point.basis === newest[0].basis) ? [] : [["measured", (point) => FROM[point.basis]]]),
  ], newest));
}

/** One sentence about a series. */
export function sum(series, name) {
  const known = series.points.filter((point) => point.value !== null);
  if (known.length === 0) return `The ${name} is not known in this time.`;
  const last = known[known.length - 1];
  const bounds = known.filter((point) => point.claim === "at_least").length;
  const low = bounds === 0 ? "" : bounds === known.length ? " All values are lower bounds." : ` ${bounds} of ${known.length} values are lower bounds.`;
  const rest = series.points.length - known.length;
  const holes = rest ? ` ${rest} of ${series.points.length} are inconclusive.` : "";
  const old = series.until_ms - last.at_ms > 2 * gapOf(known) ? `, measured ${time(last.at_ms)}` : "";
  const ending = `the last value is ${said(last, series.unit)}${old}.${low}${holes}`;
  if (known.length === 1) return `The ${name} has one value: ${ending}`;
  const sorted = known.map((point) => point.value).sort((a, b) => a - b);
  const of = (share) => amount(sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))], series.unit);
  if (of(0) === of(1)) return `The ${name} was ${of(0)} all the time; ${ending}`;
  if (known.length < 20) return `The ${name} was between ${of(0)} and ${of(1)}; ${ending}`;
  // Rates are good when they are high, delays and losses when they are low.
  const [bound, share] = series.unit === "bit/s" ? ["or more", 0.05] : ["or less", 0.95];
  return `Half of the time the ${name} was ${of(0.5)} ${bound}, 95 % of the time ${of(share)} ${bound}; ${ending}`;
}
