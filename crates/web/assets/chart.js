// A signal over time: line, 90 % band, bounds, gaps, events. Arrow keys move, Enter opens.

import { amount, colour, folded, h, interval, redraw, s, said, table, time } from "./kit.js";
import { median } from "./overview.js";

/** Points with holes where nothing was measured, in uPlot's columns. */
function columns(series) {
  const known = series.points;
  const steps = known.slice(1).map((point, n) => point.at_ms - known[n].at_ms);
  const gap = 3 * median(steps);
  const [x, value, low, high] = [[], [], [], []];
  known.forEach((point, n) => {
    if (n > 0 && gap > 0 && steps[n - 1] > gap) {
      x.push((known[n - 1].at_ms + 1) / 1000);
      for (const column of [value, low, high]) column.push(null);
    }
    x.push(point.at_ms / 1000);
    value.push(point.value);
    low.push(point.claim === "at_most" ? null : point.low ?? point.value);
    high.push(point.claim === "at_least" ? point.value : point.high ?? point.value);
  });
  return [x, value, low, high];
}

/** The roof (the capacity) at each time of `x`, from its own points. */
function roofAt(x, roof) {
  const points = (roof?.points ?? []).filter((point) => point.value !== null);
  let n = 0;
  return x.map((at) => {
    while (n + 1 < points.length && points[n + 1].at_ms / 1000 <= at) n++;
    return points.length ? points[n].value : null;
  });
}

/**
 * Draws `series` with its table and sentence; `roof` is a second series above it, `open(point)` is
 * called for the point that is chosen.
 */
export function chart({ title, series, roof, events = [], open, sentence }) {
  const plot = h("div", { class: "plot" });
  const readout = h("p", { class: "readout", "aria-live": "polite" },
    open ? "Click a time, or move with the arrow keys and press Enter, to open its run. Drag to zoom, double-click to go back."
      : "Move with the arrow keys. Drag to zoom, double-click to go back.");
  const frame = h("div", { class: "chart", tabindex: "0", role: "group", "aria-label": `${title}. ${sentence} Arrow keys read values.` }, plot);
  const unit = series.unit;
  const known = series.points;
  let at = known.length - 1;
  let drawn = null;
  const tell = () => {
    const point = known[at];
    const range = interval(point, unit);
    readout.textContent = `${time(point.at_ms)}: ${said(point, unit)}${range ? ` (${range})` : ""}${point.count > 1 ? `, mean of ${point.count} values` : ""}`;
  };
  const nearest = (seconds) => known.reduce((best, point, n) =>
    Math.abs(point.at_ms / 1000 - seconds) < Math.abs(known[best].at_ms / 1000 - seconds) ? n : best, 0);
  const draw = () => {
    drawn?.destroy();
    plot.replaceChildren();
    if (known.length === 0 || plot.clientWidth === 0) return;
    const data = columns(series);
    if (roof) data.push(roofAt(data[0], roof));
    drawn = new globalThis.uPlot(options({ series, roof, events, plot }), data, plot);
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
    if (move !== undefined && known.length) {
      at = Math.min(known.length - 1, Math.max(0, at + move));
      drawn?.setCursor({ left: drawn.valToPos(known[at].at_ms / 1000, "x"), top: 10 });
      tell();
      event.preventDefault();
    } else if (event.key === "Enter" && open && known.length && event.target === frame) {
      open(known[at]);
    }
  });
  redraw(plot, draw);
  if (known.length === 0) plot.append(h("p", { class: "soft" }, "Nothing was measured in this time."));
  return h("section", {}, h("h2", {}, title), h("p", {}, sentence), frame, keys(series, roof, events), readout, values(title, series));
}

function options({ series, roof, events, plot }) {
  const { unit } = series;
  const ink = colour("soft");
  const axis = { stroke: ink, grid: { stroke: colour("line"), width: 1 }, ticks: { stroke: colour("line"), width: 1 }, font: "12px system-ui, sans-serif" };
  const line = (name, extra) => ({ label: name, points: { show: false }, ...extra });
  const known = series.points.filter((point) => point.value !== null);
  const most = Math.max(1, ...known.map((point) => point.high ?? point.value), ...(roof?.points ?? []).map((point) => point.value ?? 0));
  return {
    width: plot.clientWidth,
    height: plot.clientWidth < 500 ? 220 : 280,
    ms: 1e-3,
    legend: { show: false },
    padding: [18, 8, 0, 0],
    cursor: { y: false, points: { size: 7 } },
    scales: {
      x: { time: true, range: (_, low, high) => (low === null ? [series.since_ms, series.until_ms] : [low, high]) },
      y: { range: () => [0, most * 1.06] },
    },
    axes: [
      { ...axis, space: 90, values: (_, splits, __, ___, step) => splits.map((at) => (step >= 86400 ? time(at * 1000).slice(step >= 28 * 86400 ? 0 : 5, 10) : step >= 21600 ? time(at * 1000).slice(5) : time(at * 1000).slice(11))) },
      { ...axis, size: 92, values: (_, splits) => splits.map((value) => (value === 0 ? "0" : amount(value, unit, most))) },
    ],
    series: [
      {},
      line("value", { stroke: colour("value"), width: 1.8 }),
      line("low", { stroke: "transparent", width: 0 }),
      line("high", { stroke: "transparent", width: 0 }),
      ...(roof ? [line("roof", { stroke: colour("roof"), width: 1.6, dash: [7, 4] })] : []),
    ],
    bands: [{ series: [3, 2], fill: colour("band") }],
    hooks: { draw: [(u) => marks(u, series, events)] },
  };
}

/** Bounds as triangles, inconclusive times as crosses, events as numbered lines. */
function marks(u, series, events) {
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
  ctx.font = `600 ${11 * ratio}px system-ui, sans-serif`;
  ctx.textAlign = "center";
  events.forEach((event, n) => {
    const x = u.valToPos(event.at_ms / 1000, "x", true);
    if (x < left || x > left + width) return;
    ctx.strokeStyle = colour("mark");
    ctx.setLineDash([3 * ratio, 3 * ratio]);
    ctx.lineWidth = 1.4 * ratio;
    ctx.beginPath();
    ctx.moveTo(x, top); ctx.lineTo(x, top + height);
    ctx.stroke();
    ctx.fillStyle = colour("mark");
    ctx.fillText(String(n + 1), Math.min(Math.max(x, left + 6 * ratio), left + width - 6 * ratio), top - 5 * ratio);
  });
  ctx.restore();
}

/** What the marks mean. */
function keys(series, roof, events) {
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
    events.length > 0 && key("event, numbered as in the list", stroke("mark", { "stroke-dasharray": "3 3" })));
}

function values(title, series) {
  const newest = series.points.slice(-200).reverse();
  const name = newest.length < series.points.length ? `Table of the newest 200 of ${series.points.length} values` : `Table of ${newest.length} values`;
  return folded(name, () => table(`${title}; 90 % intervals`, [
    ["time", (point) => time(point.at_ms)],
    ["value", (point) => said(point, series.unit), true],
    ["interval", (point) => interval(point, series.unit), true],
    ["values", (point) => point.count, true],
  ], newest));
}

/** One sentence about a series. */
export function sum(series, name) {
  const known = series.points.filter((point) => point.value !== null);
  if (known.length === 0) return `The ${name} is not known in this time.`;
  const values = known.map((point) => point.value);
  const sorted = [...values].sort((a, b) => a - b);
  const of = (share) => amount(sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))], series.unit);
  const bounds = known.some((point) => point.claim === "at_least") ? " Some values are lower bounds." : "";
  const rest = series.points.length - known.length;
  const holes = rest ? ` ${rest} of ${series.points.length} are inconclusive.` : "";
  return `Half of the time the ${name} was ${of(0.5)} or more, 95 % of the time ${of(0.05)} or more; the last value is ${said(known[known.length - 1], series.unit)}.${bounds}${holes}`;
}
