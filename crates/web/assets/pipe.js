// The path as a pipe: its height is the capacity, its filling what is free, its rings are routers.

import { amount, h, redraw, s, said, table } from "./kit.js";

// Rates of the scale, as powers of ten.
const DECADES = [6, 11];

function half(rate) {
  if (rate === null) return 20;
  const place = (Math.log10(Math.max(rate, 1)) - DECADES[0]) / (DECADES[1] - DECADES[0]);
  return 10 + 30 * Math.min(1, Math.max(0, place));
}

/** The hop that a cause names, if it names one. */
export function namedHop(cause) {
  const found = /\bhop (\d+)/.exec(cause ?? "");
  return found ? Number(found[1]) : null;
}

/** Draws `path`; `capacity` and `available` are the newest values, `cause` the open incident's. */
export function pipe({ name, path, capacity, available, cause }) {
  const holder = h("div", {});
  const hot = namedHop(cause);
  redraw(holder, () => holder.replaceChildren(draw(holder.clientWidth || 640, { name, path, capacity, available, hot })));
  return h("div", {}, h("p", {}, sentence({ name, path, capacity, available, cause })), holder);
}

function sentence({ name, path, capacity, available, cause }) {
  const hops = path.hops.length;
  const mute = path.hops.filter((hop) => hop.addresses.length === 0).length;
  const known = capacity ? `The path carries ${said(capacity, "bit/s")}` : "The path's capacity is not known";
  const free = available && available.value !== null ? `; ${said(available, "bit/s")} of it is free` : "";
  return `${known}${free}. It has ${hops} hops to ${name}${mute ? `, of which ${mute} did not answer` : ""}, and an MTU of ${path.mtu_octets ?? "unknown"} octets.${cause ? ` Now: ${cause}.` : ""}`;
}

function draw(width, { name, path, capacity, available, hot }) {
  const narrow = width < 560;
  const [left, right] = narrow ? [64, width - 64] : [112, width - 112];
  const middle = 62;
  const box = left - 10;
  const tall = half(capacity?.value ?? null);
  const short = (text, most) => (text.length > most ? `${text.slice(0, most - 1)}…` : text);
  const label = (x, text) => s("text", { x, y: middle + 5, "text-anchor": "middle" }, short(text, narrow ? 7 : 13));
  const picture = s("svg", {
    class: "pipe", viewBox: `0 0 ${width} 150`, role: "img",
    "aria-label": `The path from this host to ${name} as a pipe; the table below has its hops`,
  });
  for (const x of [2, right + 8]) picture.append(s("rect", { class: "host", x, y: middle - 24, width: box - 2, height: 48, rx: 8 }));
  picture.append(label(2 + box / 2, narrow ? "here" : "this host"), label(right + 8 + box / 2, name));
  picture.append(s("rect", { class: "hull", x: left, y: middle - tall, width: right - left, height: 2 * tall }));
  if (capacity && available && available.value !== null) {
    const share = Math.min(1, available.value / capacity.value);
    const free = tall * share;
    picture.append(s("rect", { class: "taken", x: left, y: middle - tall, width: right - left, height: 2 * tall }));
    picture.append(s("rect", { class: "hull", x: left, y: middle - free, width: right - left, height: 2 * free }));
    picture.append(s("rect", { class: "free", x: left, y: middle - free, width: right - left, height: 2 * free }));
  }
  const open = capacity && capacity.claim === "at_least" ? "wall open" : "wall";
  for (const side of [-1, 1]) picture.append(s("path", { class: open, d: `M${left} ${middle + side * tall}H${right}` }));
  // The last hop is the target itself.
  const rings = path.hops.slice(0, -1);
  rings.forEach((hop, n) => {
    const x = left + ((n + 1) / (rings.length + 1)) * (right - left);
    const kind = n + 1 === hot ? "hop hot" : hop.addresses.length ? "hop" : "hop mute";
    picture.append(s("ellipse", { class: kind, cx: x, cy: middle, rx: narrow ? 5 : 7, ry: tall }));
    const every = Math.max(1, Math.ceil(24 / ((right - left) / (rings.length + 1))));
    if (n + 1 === hot || n % every === 0) {
      picture.append(s("text", { class: n + 1 === hot ? "hot" : "", x, y: middle + tall + 18, "text-anchor": "middle" }, n + 1 === hot ? `▲ ${n + 1}` : String(n + 1)));
    }
  });
  const words = narrow ? "green: free; orange: taken" : "height: capacity, logarithmic, 1 Mbit/s to 100 Gbit/s; green inside: free; orange at the walls: taken; dashed ring: no answer";
  picture.append(s("text", { class: "so", x: width / 2, y: 143, "text-anchor": "middle" }, words));
  return picture;
}

/** The hops as a table; `before` is the path that was there earlier. */
export function hops(path, before, title = "Hops of the path") {
  const same = (hop, n) => !before || JSON.stringify(before.hops[n]?.addresses) === JSON.stringify(hop.addresses);
  const rows = path.hops.map((hop, n) => ({ ...hop, n: n + 1, same: same(hop, n) }));
  return table(`${title}, least round trip to each`, [
    ["hop", (row) => row.n],
    ["who answered", (row) => (row.addresses.length ? row.addresses.join(", ") : "nobody")],
    ["least round trip", (row) => (row.round_trip_ns === null ? "not known" : amount(row.round_trip_ns, "ns")), true],
    ...(before ? [["against before", (row) => (row.same ? "same" : h("span", { class: "changed" }, "◆ new"))]] : []),
  ], rows);
}
