// Round trips by time and size; darker is more.

import { LEFT, numbers, RIGHT } from "./chart.js";
import { amount, colour, folded, h, redraw, s, scale, table, ticks, time } from "./kit.js";

const [TOP, BOTTOM] = [20, 26];

/** The least time that at least `share` of a column's round trips did not exceed. */
function quantile(heat, column, share) {
  const counts = heat.counts[column];
  const all = counts.reduce((sum, count) => sum + count, 0);
  let seen = 0;
  for (let row = 0; row < counts.length; row++) {
    seen += counts[row];
    if (all > 0 && seen >= share * all) return heat.upper_ns[row];
  }
  return null;
}

/** The map with its sentence and table; `view` holds the time that was read last. */
export function heatmap(heat, events, view = {}) {
  const rows = heat.upper_ns.map((_, row) => heat.counts.reduce((sum, column) => sum + column[row], 0));
  const first = rows.findIndex((count) => count > 0);
  const title = "Round trips";
  if (first < 0) return h("section", {}, h("h2", {}, title), h("p", { class: "soft" }, "No answered pulse is stored for this time."));
  const last = rows.length - 1 - [...rows].reverse().findIndex((count) => count > 0);
  const canvas = h("canvas", { "aria-hidden": "true" });
  const frame = h("div", { class: "chart heat", tabindex: "0", role: "group" }, canvas);
  const readout = h("p", { class: "readout", "aria-live": "polite" }, "Arrow keys read columns.");
  const sentence = sum(heat, rows, last);
  frame.setAttribute("aria-label", `${title}. ${sentence} Arrow keys read columns.`);
  const columns = heat.times_ms.length;
  // The column in which the time lies that was read.
  let at = view.read_ms === undefined ? columns - 1 : Math.max(0, heat.times_ms.findLastIndex((ms) => ms <= view.read_ms));
  const text = (n) => {
    const [half, most] = [0.5, 0.95].map((share) => quantile(heat, n, share));
    const lost = heat.lost_ppm[n] ? `; ${amount(heat.lost_ppm[n], "ppm")} lost` : "";
    return `${time(heat.times_ms[n])}: ${half === null ? "no answer" : `half within ${amount(half, "ns")}, 95 % within ${amount(most, "ns")}`}${lost}`;
  };
  const tell = () => {
    view.read_ms = heat.times_ms[at];
    readout.textContent = text(at);
  };
  if (view.read_ms !== undefined) tell();
  redraw(frame, () => draw(canvas, frame.clientWidth - 16, heat, first, last, events));
  frame.addEventListener("mousemove", (event) => {
    const box = canvas.getBoundingClientRect();
    at = Math.floor(((event.clientX - box.left - LEFT) / (box.width - LEFT - RIGHT)) * columns);
    at = Math.min(columns - 1, Math.max(0, at));
    tell();
  });
  frame.addEventListener("keydown", (event) => {
    const move = { ArrowLeft: -1, ArrowRight: 1, PageUp: -20, PageDown: 20, Home: -columns, End: columns }[event.key];
    if (move === undefined) return;
    at = Math.min(columns - 1, Math.max(0, at + move));
    tell();
    event.preventDefault();
  });
  const ramp = [0.08, 0.3, 0.55, 0.8, 1].map((share, n) =>
    s("rect", { x: n * 5.2, width: "5.2", height: "12", fill: "var(--heat)", "fill-opacity": share }));
  return h("section", {}, h("h2", {}, title), h("p", {}, sentence), frame,
    h("ul", { class: "key" },
      h("li", {}, s("svg", { viewBox: "0 0 26 12", "aria-hidden": "true" }, ramp), "few to many of a column's round trips"),
      heat.lost_ppm.some((ppm) => ppm > 0) && h("li", {}, s("svg", { viewBox: "0 0 26 12", "aria-hidden": "true" }, s("rect", { x: "9", width: "8", height: "12", fill: "var(--mark)" })), "loss; the full bar is 5 % or more")),
    readout,
    folded(`Table of ${columns} time${columns === 1 ? "" : "s"}`, () => table("Round trips and loss", [
      ["from", (n) => time(heat.times_ms[n])],
      ["half within", (n) => show(quantile(heat, n, 0.5)), true],
      ["95 % within", (n) => show(quantile(heat, n, 0.95)), true],
      ["lost", (n) => amount(heat.lost_ppm[n], "ppm"), true],
    ], heat.times_ms.map((_, n) => columns - 1 - n))));
}

const show = (nanos) => (nanos === null ? "no answer" : amount(nanos, "ns"));

function sum(heat, rows, last) {
  const all = rows.reduce((sum, count) => sum + count, 0);
  const within = (share) => {
    let seen = 0;
    return heat.upper_ns[rows.findIndex((count) => (seen += count) >= share * all)];
  };
  const lost = heat.lost_ppm.reduce((sum, ppm) => sum + ppm, 0) / heat.lost_ppm.length;
  return `Half of the round trips took at most ${amount(within(0.5), "ns")}, 95 % at most ${amount(within(0.95), "ns")}, the longest ${amount(heat.upper_ns[last], "ns")}. ${amount(lost, "ppm")} of the pulses were lost.`;
}

function draw(canvas, width, heat, first, last, events) {
  if (width <= LEFT) return;
  const ratio = devicePixelRatio;
  const height = width < 500 ? 190 : 230;
  canvas.width = width * ratio;
  canvas.height = height * ratio;
  canvas.style.height = `${height}px`;
  const ctx = canvas.getContext("2d");
  ctx.scale(ratio, ratio);
  // One class more on either side, so that nothing sticks to the edge.
  const [low, high] = [Math.max(0, first - 1), Math.min(heat.upper_ns.length - 1, last + 1)];
  const wide = width - LEFT - RIGHT;
  const tall = (height - BOTTOM - TOP) / (high - low + 1);
  const { since_ms: since, until_ms: until, times_ms: times } = heat;
  const place = (ms) => LEFT + ((ms - since) / (until - since)) * wide;
  const step = Math.min(until - times[0], ...times.slice(1).map((ms, n) => ms - times[n]));
  const span = (column) => {
    const from = Math.max(LEFT, place(times[column]));
    return [from, Math.max(1.2, Math.min(LEFT + wide, place(times[column] + step)) - from)];
  };
  const y = (row) => height - BOTTOM - (row - low + 1) * tall;
  axes(ctx, heat, { low, high, tall, y, place, width, height });
  ctx.fillStyle = colour("heat");
  heat.counts.forEach((counts, column) => {
    const most = Math.max(...counts);
    const [x, cell] = span(column);
    counts.forEach((count, row) => {
      if (count === 0 || row < low || row > high) return;
      ctx.globalAlpha = 0.12 + 0.88 * (count / most);
      ctx.fillRect(x, y(row), cell + 0.3, tall + 0.3);
    });
  });
  ctx.globalAlpha = 1;
  ctx.fillStyle = colour("mark");
  heat.lost_ppm.forEach((ppm, column) => {
    const bar = Math.max(2, Math.min(1, ppm / 50000) * 16);
    const [x, cell] = span(column);
    if (ppm > 0) ctx.fillRect(x, height - BOTTOM - bar, cell, bar);
  });
  ctx.setTransform(1, 0, 0, 1, 0, 0);
  const box = { left: LEFT * ratio, top: TOP * ratio, width: wide * ratio, height: (height - BOTTOM - TOP) * ratio };
  numbers(ctx, box, events, (ms) => place(ms) * ratio);
}

function axes(ctx, heat, { low, high, tall, y, place, width, height }) {
  ctx.fillStyle = colour("soft");
  ctx.strokeStyle = colour("line");
  ctx.lineWidth = 1;
  ctx.font = "12px system-ui, sans-serif";
  ctx.textAlign = "right";
  const [name, size] = scale("ns", heat.upper_ns[high]);
  ctx.fillText(name, LEFT - 6, TOP - 7);
  ctx.textBaseline = "middle";
  const every = Math.max(1, Math.ceil(24 / tall));
  for (let row = low; row <= high; row += every) {
    if (y(row) > TOP + 4) ctx.fillText(String(Number((heat.upper_ns[row] / size).toPrecision(3))), LEFT - 6, y(row));
  }
  ctx.textAlign = "center";
  ctx.textBaseline = "top";
  ctx.beginPath();
  for (const [ms, label] of ticks(heat.since_ms, heat.until_ms, Math.max(2, Math.floor((width - LEFT) / 76)))) {
    ctx.moveTo(Math.round(place(ms)) + 0.5, TOP);
    ctx.lineTo(Math.round(place(ms)) + 0.5, height - BOTTOM);
    ctx.fillText(label, Math.min(place(ms), width - ctx.measureText(label).width / 2), height - BOTTOM + 7);
  }
  ctx.moveTo(LEFT, height - BOTTOM + 0.5);
  ctx.lineTo(width - RIGHT, height - BOTTOM + 0.5);
  ctx.stroke();
}
