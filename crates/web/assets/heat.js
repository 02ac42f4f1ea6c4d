// Round trips by time and size; darker is more.

import { amount, colour, folded, h, redraw, s, table, time } from "./kit.js";

const LEFT = 78;
const BOTTOM = 24;

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

/** The map with its sentence and table. */
export function heatmap(heat) {
  const rows = heat.upper_ns.map((_, row) => heat.counts.reduce((sum, column) => sum + column[row], 0));
  const first = rows.findIndex((count) => count > 0);
  const title = "Round trips";
  if (first < 0) return h("section", {}, h("h2", {}, title), h("p", {}, "No pulse was answered in this time."));
  const last = rows.length - 1 - [...rows].reverse().findIndex((count) => count > 0);
  const canvas = h("canvas", { "aria-hidden": "true" });
  const frame = h("div", { class: "chart heat", tabindex: "0", role: "group" }, canvas);
  const readout = h("p", { class: "readout", "aria-live": "polite" }, "Darker cells hold more round trips. Move with the arrow keys.");
  const sentence = sum(heat, rows, first, last);
  frame.setAttribute("aria-label", `${title}. ${sentence} Arrow keys read columns.`);
  const columns = heat.times_ms.length;
  let at = columns - 1;
  const text = (n) => {
    const [half, most] = [0.5, 0.95].map((share) => quantile(heat, n, share));
    const lost = heat.lost_ppm[n] ? `; ${amount(heat.lost_ppm[n], "ppm")} lost` : "";
    return `${time(heat.times_ms[n])}: ${half === null ? "no answer" : `half within ${amount(half, "ns")}, 95 % within ${amount(most, "ns")}`}${lost}`;
  };
  redraw(frame, () => draw(canvas, frame.clientWidth - 16, heat, first, last));
  frame.addEventListener("mousemove", (event) => {
    const box = canvas.getBoundingClientRect();
    at = Math.floor(((event.clientX - box.left - LEFT) / (box.width - LEFT)) * columns);
    if (at >= 0 && at < columns) readout.textContent = text(at);
  });
  frame.addEventListener("keydown", (event) => {
    const move = { ArrowLeft: -1, ArrowRight: 1, PageUp: -20, PageDown: 20, Home: -columns, End: columns }[event.key];
    if (move === undefined) return;
    at = Math.min(columns - 1, Math.max(0, at + move));
    readout.textContent = text(at);
    event.preventDefault();
  });
  const ramp = [0.08, 0.3, 0.55, 0.8, 1].map((share, n) =>
    s("rect", { x: n * 5.2, width: "5.2", height: "12", fill: "var(--heat)", "fill-opacity": share }));
  return h("section", {}, h("h2", {}, title), h("p", {}, sentence), frame,
    h("ul", { class: "key" },
      h("li", {}, s("svg", { viewBox: "0 0 26 12", "aria-hidden": "true" }, ramp), "few to many round trips"),
      heat.lost_ppm.some((ppm) => ppm > 0) && h("li", {}, s("svg", { viewBox: "0 0 26 12", "aria-hidden": "true" }, s("rect", { x: "9", width: "8", height: "12", fill: "var(--mark)" })), "bar at the bottom: loss, full height is 5 %")),
    readout,
    folded(`Table of ${columns} columns`, () => table("Round trips and loss", [
      ["from", (n) => time(heat.times_ms[n])],
      ["half within", (n) => show(quantile(heat, n, 0.5)), true],
      ["95 % within", (n) => show(quantile(heat, n, 0.95)), true],
      ["lost", (n) => amount(heat.lost_ppm[n], "ppm"), true],
    ], heat.times_ms.map((_, n) => columns - 1 - n))));
}

const show = (nanos) => (nanos === null ? "no answer" : amount(nanos, "ns"));

function sum(heat, rows, first, last) {
  const all = rows.reduce((sum, count) => sum + count, 0);
  const within = (share) => {
    let seen = 0;
    return heat.upper_ns[rows.findIndex((count) => (seen += count) >= share * all)];
  };
  const lost = heat.lost_ppm.reduce((sum, ppm) => sum + ppm, 0) / heat.lost_ppm.length;
  const least = heat.upper_ns[first];
  return `Half of the round trips took at most ${amount(within(0.5), "ns")}, 95 % at most ${amount(within(0.95), "ns")}, the longest ${amount(heat.upper_ns[last], "ns")}; the least was below ${amount(least, "ns")}. ${amount(lost, "ppm")} of the pulses were lost.`;
}

function draw(canvas, width, heat, first, last) {
  if (width <= LEFT) return;
  const ratio = devicePixelRatio;
  const height = width < 500 ? 190 : 240;
  canvas.width = width * ratio;
  canvas.height = height * ratio;
  canvas.style.height = `${height}px`;
  const ctx = canvas.getContext("2d");
  ctx.scale(ratio, ratio);
  // One class more on either side, so that nothing sticks to the edge.
  const [low, high] = [Math.max(0, first - 1), Math.min(heat.upper_ns.length - 1, last + 1)];
  const columns = heat.times_ms.length;
  const [cell, tall] = [(width - LEFT) / columns, (height - BOTTOM - 6) / (high - low + 1)];
  const y = (row) => height - BOTTOM - (row - low + 1) * tall;
  ctx.fillStyle = colour("heat");
  heat.counts.forEach((counts, column) => {
    const most = Math.max(...counts);
    counts.forEach((count, row) => {
      if (count === 0 || row < low || row > high) return;
      ctx.globalAlpha = 0.08 + 0.92 * (count / most);
      ctx.fillRect(LEFT + column * cell, y(row), cell + 0.4, tall + 0.4);
    });
  });
  ctx.globalAlpha = 1;
  ctx.fillStyle = colour("mark");
  heat.lost_ppm.forEach((ppm, column) => {
    const bar = Math.min(1, ppm / 50000) * 16;
    if (bar > 0) ctx.fillRect(LEFT + column * cell, height - BOTTOM - Math.max(2, bar), Math.max(cell, 1.5), Math.max(2, bar));
  });
  axes(ctx, width, height, heat, { low, high, tall, y, cell });
}

function axes(ctx, width, height, heat, { low, high, tall, y, cell }) {
  ctx.fillStyle = colour("soft");
  ctx.strokeStyle = colour("line");
  ctx.font = "12px system-ui, sans-serif";
  ctx.textAlign = "right";
  ctx.textBaseline = "middle";
  const every = Math.max(1, Math.ceil(26 / tall));
  for (let row = low; row <= high; row += every) {
    ctx.fillText(amount(heat.upper_ns[row], "ns"), LEFT - 8, Math.max(8, y(row)));
  }
  ctx.beginPath();
  ctx.moveTo(LEFT, height - BOTTOM + 0.5);
  ctx.lineTo(width, height - BOTTOM + 0.5);
  ctx.stroke();
  ctx.textBaseline = "top";
  const range = heat.until_ms - heat.since_ms;
  const count = Math.max(2, Math.floor((width - LEFT) / 150));
  for (let n = 0; n <= count; n++) {
    const column = Math.round((n / count) * (heat.times_ms.length - 1));
    const full = time(heat.times_ms[column], range);
    ctx.textAlign = n === 0 ? "left" : n === count ? "right" : "center";
    ctx.fillText(range < 36 * 3600e3 ? full.slice(11) : full.slice(5), LEFT + (column + (n === count ? 1 : 0)) * cell, height - BOTTOM + 6);
  }
}
