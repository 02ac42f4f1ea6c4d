// The path as a pipe: its height is the capacity, its filling what is free, its rings are routers.

import { amount, h, redraw, s, said, table } from "./kit.js";

// Rates of the scale, as powers of ten.
const DECADES = [6, 11];

function half(rate) {
  if (rate === null) return 20;
  const place = (Math.log10(Math.max(rate, 1)) - DECADES[0]) / (DECADES[1] - DECADES[0]);
  return 10 + 30 * Math.min(1, Math.max(0, place));
}

/**
 * Draws `path`; `capacity` and `available` are the newest values, `incident` the open one, at one of
 * whose hops its cause lies, `old` how long ago what is available was measured, where that is too long.
 */
export function pipe({ name, path, capacity, available, incident, old }) {
  const holder = h("div", {});
  const cause = incident?.cause;
  const hot = { first: incident?.first_hop ?? Infinity, last: incident?.last_hop ?? -Infinity };
  redraw(holder, () => holder.replaceChildren(draw(holder.clientWidth || 640, { name, path, capacity, available, hot, old })));
  return h("div", {}, h("p", {}, sentence({ name, path, capacity, available, cause, old })), holder);
}

function sentence({ name, path, capacity, available, cause, old }) {
  const count = path.hops.length;
  const mute = path.hops.filter((hop) => hop.addresses.length === 0).length;
  const carries = capacity ? `The path carries ${said(capacity, "bit/s")}` : "The path's capacity is not known yet";
  const free = available && available.value !== null ? `; ${said(available, "bit/s")} of it ${old ? `was free ${old} ago` : "is free"}` : "";
  const silent = mute ? `, of which ${mute} did not answer` : "";
  return `${carries}${free}. It has ${count} hop${count === 1 ? "" : "s"} to ${name}${silent}; its MTU is ${path.mtu_octets ? `${path.mtu_octets} octets` : "not known yet"}.${now(cause)}`;
}

/** The open incident's cause. */
function now(cause) {
  if (!cause) return "";
  return cause === "not seen" ? " The cause of the change was not seen." : ` Now: ${cause}.`;
}

function draw(width, { name, path, capacity, available, hot, old }) {
  const narrow = width < 560;
  const [left, right] = narrow ? [60, width - 60] : [112, width - 112];
  const middle = 70;
  const box = left - 10;
  const tall = half(capacity?.value ?? null);
  const short = (text, most) => (text.length > most ? `${text.slice(0, most - 1)}…` : text);
  const text = (x, y, words, extra) => s("text", { x, y, "text-anchor": "middle", ...extra }, words);
  const label = (x, words) => text(x, middle + 5, short(words, narrow ? 7 : 13));
  const known = capacity && available && available.value !== null && !old;
  const picture = s("svg", {
    class: "pipe", viewBox: `0 0 ${width} ${narrow ? 138 : 150}`, role: "img",
    "aria-label": `The path from this host to ${name} as a pipe; the table below has its hops`,
  });
  for (const x of [2, right + 8]) picture.append(s("rect", { class: "host", x, y: middle - 24, width: box - 2, height: 48, rx: 8 }));
  picture.append(label(2 + box / 2, narrow ? "here" : "this host"), label(right + 8 + box / 2, name));
  const layer = (kind, half) => s("rect", { class: kind, x: left, y: middle - half, width: right - left, height: 2 * half });
  picture.append(layer("hull", tall));
  if (known) {
    const free = Math.max(1.5, tall * Math.min(1, available.value / capacity.value));
    picture.append(layer("taken", tall), layer("hull", free), layer("free", free));
  }
  const open = capacity?.claim === "at_least" ? "wall open" : "wall";
  for (const side of [-1, 1]) picture.append(s("path", { class: open, d: `M${left} ${middle + side * tall}H${right}` }));
  if (capacity) {
    const words = `${said(capacity, "bit/s")}${known ? `, free ${said(available, "bit/s")}` : ""}`;
    picture.append(text((left + right) / 2, middle - tall - 8, narrow ? words : `capacity ${words}`));
  }
  // The last hop is the target itself.
  const rings = path.hops.slice(0, -1);
  const every = Math.max(1, Math.ceil(24 / ((right - left) / (rings.length + 1))));
  const isHot = (number) => hot.first <= number && number <= hot.last;
  const isNear = (number) => isHot(number - 1) || isHot(number + 1);
  const place = (number) => left + (number / (rings.length + 1)) * (right - left);
  rings.forEach((hop, n) => {
    const x = place(n + 1);
    const kind = isHot(n + 1) ? "hop hot" : hop.addresses.length ? "hop" : "hop mute";
    picture.append(s("ellipse", { class: kind, cx: x, cy: middle, rx: narrow ? 5 : 7, ry: tall }));
    if (n % every === 0 && !isHot(n + 1) && (every === 1 || !isNear(n + 1))) picture.append(text(x, middle + tall + 18, String(n + 1)));
  });
  if (hot.first <= rings.length) {
    const last = Math.min(hot.last, rings.length);
    const words = last === hot.first ? hot.first : `${hot.first}–${last}`;
    picture.append(text(place((hot.first + last) / 2), middle + tall + 18, `▲ ${words}`, { class: "hot" }));
  }
  const legend = [known && (narrow ? "green: free; orange: taken" : "green: free; orange: taken by others"), !narrow && "height: capacity, logarithmic", rings.some((hop) => hop.addresses.length === 0) && !narrow && "dashed ring: no answer"];
  picture.append(text(width / 2, narrow ? 132 : 144, legend.filter(Boolean).join("; "), { class: "so" }));
  return picture;
}

/** The hops as a table; `before` is the path that was there earlier. */
export function hops(path, before, title = "Hops of the path") {
  const text = (hop) => hop?.addresses.join(", ") ?? "";
  const change = (hop, n) => {
    if (!text(hop) || (before.hops[n] && text(before.hops[n]) === text(hop))) return null;
    const earlier = before.hops.findIndex((old) => text(old) === text(hop));
    return h("div", { class: "changed" }, earlier < 0 ? "◆ new" : `◇ was hop ${earlier + 1}`);
  };
  const rows = path.hops.map((hop, n) => ({ ...hop, n: n + 1, change: before && change(hop, n) }));
  return table(`${title}, least round trip to each`, [
    ["hop", (row) => row.n],
    ["who answered", (row) => [text(row) || "nobody", row.change]],
    ["least round trip", (row) => (row.round_trip_ns === null ? "not known" : amount(row.round_trip_ns, "ns")), true],
  ], rows);
}
